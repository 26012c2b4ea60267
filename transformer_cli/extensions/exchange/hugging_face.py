"""The library transformers of Hugging Face: the export format `hf`, which `tfm import` reads, too, and the check of an import."""

import importlib.util
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from transformer_cli.checkpoint.trained_files import TrainedModel
from transformer_cli.config import Config, DecodingConfig, ModelConfig
from transformer_cli.extensions.exchange.export_format import (
    Decoded,
    ExportFormat,
    Obstacle,
    OtherEngine,
    Quantization,
    add_to_folder,
    json_content,
    quoted,
    unsaid_of_beam,
)
from transformer_cli.extensions.exchange.hugging_face_models import (
    TableForm,
    fitting_class,
    hugging_face_config,
    hugging_face_obstacles,
    hugging_face_tensors,
    num_hugging_face_positions,
)
from transformer_cli.extensions.exchange.model_folder import INDEX, PICKLED, WEIGHTS, ModelFolder
from transformer_cli.extensions.exchange.own_folder import OWN_FOLDER, own_files, own_tokenizers
from transformer_cli.extensions.exchange.sentencepiece_tokenizers import ForeignTokenizers
from transformer_cli.extensions.exchange.tokenizer_json import (
    tokenizer_config,
    tokenizer_json,
    tokenizer_obstacles,
    vocabulary_sizes,
)
from transformer_cli.model import Transformer
from transformer_cli.process.errors import DataError
from transformer_cli.process.messages import on_one_line
from transformer_cli.text import Tokenizer

logger = logging.getLogger(__name__)

BATCH_SENTENCES = 25
COMPARED_SENTENCES = (
    "Good morning.",
    "The train to the airport leaves at 7:45, doesn't it?",
    "Où est la gare ? Elle est à côté de l'église.",
    "Das Mädchen hört gern Musik; ihr Bruder (12) auch!",
    "¿Cuánto cuesta esto? — 3.000,50 €.",
    "Это очень хорошая книга.",
    "火车站在哪里。",
    "visit https://example.org or write to me@example.org",
)
MAX_DIFFERENCE = 1e-3
"""Larger differences are no rounding: the logits of these models are of the order of 10."""
_NUM_TARGET_IDS = 12


class HuggingFaceFormat(ExportFormat):
    """A folder for transformers, which may train the model further."""

    name = "hf"
    modules = ("transformers", "safetensors")
    library = "transformers"

    def obstacles(self, config: Config) -> list[Obstacle]:
        reason = "no model class of transformers has this"
        found = [Obstacle(setting, reason) for setting in hugging_face_obstacles(config.model)]
        return [*found, *tokenizer_obstacles(config)]

    def write(self, trained: TrainedModel, path: Path, *, quantization: Quantization | None) -> None:
        from safetensors.torch import save  # of the extra `export`: `tfm info` does without it

        assert quantization is None
        vocabularies = vocabulary_sizes(*trained.tokenizers)
        state = trained.model.state_dict()
        tensors = hugging_face_tensors(trained.config.model, vocabularies, state)
        (path / WEIGHTS).write_bytes(save(tensors, metadata={"format": "pt"}))
        add_to_folder(path, own_files(trained, None))
        add_to_folder(path, {name: json_content(content) for name, content in _settings(trained).items()})

    def open(self, path: Path) -> OtherEngine:
        return TransformersFolder(path)

    def unsaid_search(self, decoding: DecodingConfig) -> list[str]:
        return unsaid_of_beam(decoding, "transformers")

    def usage(self, trained: TrainedModel, name: str) -> str:
        tags = trained.source_tokenizer.special_tokens[4:]
        return f"""\
```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer  # pip install transformers torch

tokenizer = AutoTokenizer.from_pretrained({quoted(name)})
model = AutoModelForSeq2SeqLM.from_pretrained({quoted(name)})
sentences = tokenizer(["{tags[0] if tags else ""}Good morning."], padding=True, return_tensors="pt")
print(tokenizer.batch_decode(model.generate(**sentences), skip_special_tokens=True))
```
"""


class TransformersFolder:
    """An `OtherEngine`: the model and the tokenizer that transformers finds in a folder."""

    def __init__(self, folder: Path) -> None:
        import transformers

        with _quiet():
            tokenizers, models = transformers.AutoTokenizer, transformers.AutoModelForSeq2SeqLM
            self._tokenizer: Any = tokenizers.from_pretrained(folder, local_files_only=True)
            self._model: Any = models.from_pretrained(folder, local_files_only=True)
        self._name = f"transformers {transformers.__version__}"
        source, _ = own_tokenizers(ModelFolder(folder / OWN_FOLDER))
        # The tokens of a source follow those of the target, unless both have the same ids.
        end = self._tokenizer("")["input_ids"][-1]
        self._our_ids = range(end - source.eos_id, end - source.eos_id + source.vocab_size)
        self._unk_id = source.unk_id

    def describe(self) -> str:
        return self._name

    def decode(self, sources: Sequence[str], limits: Sequence[int]) -> list[Decoded]:
        order = sorted(range(len(sources)), key=lambda index: len(sources[index]))
        found: dict[int, Decoded] = {}
        for begin in range(0, len(order), BATCH_SENTENCES):
            batch = order[begin : begin + BATCH_SENTENCES]
            decoded = self._decode_batch([sources[index] for index in batch], [limits[index] for index in batch])
            found |= zip(batch, decoded, strict=True)
        return [found[index] for index in range(len(sources))]

    def _decode_batch(self, sources: list[str], limits: list[int]) -> Iterator[Decoded]:
        batch = self._tokenizer(sources, padding=True, return_tensors="pt")
        with _quiet():
            written = self._model.generate(
                **batch,
                num_beams=1,
                do_sample=False,
                no_repeat_ngram_size=0,
                max_length=1 + max(limits),
            )
        lengths = batch["attention_mask"].sum(1).tolist()
        rows = zip(batch["input_ids"].tolist(), lengths, written.tolist(), limits, strict=True)
        for source, length, target, limit in rows:
            ids = target[1 : 1 + limit]  # the first one is [SOS]
            end = self._tokenizer.eos_token_id
            ids = ids[: ids.index(end) + 1] if end in ids else ids
            text = self._tokenizer.decode(ids, skip_special_tokens=True)
            yield Decoded(tuple(map(self._our_id, source[:length])), tuple(ids), text)

    def _our_id(self, source_id: int) -> int:
        """Our id of a source token; unlisted pieces are unknown."""
        is_listed = source_id in self._our_ids
        return source_id - self._our_ids.start if is_listed else self._unk_id


def _settings(trained: TrainedModel) -> dict[str, dict[str, Any]]:
    """The JSON files."""
    config, tokenizers = trained.config, trained.tokenizers
    vocabularies = vocabulary_sizes(*tokenizers)
    form = TableForm.of(config.model, vocabularies, fitting_class(config.model))
    most = num_hugging_face_positions(config.model)
    return {
        "config.json": hugging_face_config(config.model, vocabularies),
        "generation_config.json": generation_config(config.model, config.decoding, tokenizers[1]),
        "tokenizer.json": tokenizer_json(*tokenizers, form, config.data.cleaning),
        "tokenizer_config.json": tokenizer_config(tokenizers[0], most),
    }


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the progress bars and the advice of transformers."""
    from transformers import utils

    talk: Any = utils.logging
    verbosity, had_bars = talk.get_verbosity(), talk.is_progress_bar_enabled()
    talk.set_verbosity_error()
    talk.disable_progress_bar()
    try:
        yield
    finally:
        talk.set_verbosity(verbosity)
        if had_bars:
            talk.enable_progress_bar()


def generation_config(model: ModelConfig, decoding: DecodingConfig, target: Tokenizer) -> dict[str, Any]:
    """The counterparts of our settings of decoding.

    transformers divides by length^alpha (`decoding.length_normalization: average`) and has one limit for all lengths of a source.
    """
    never_written = [target.unk_id, target.pad_id, target.sos_id, *target.tag_ids]
    # transformers counts [SOS], too.
    longest = 1 + (decoding.max_length or model.max_length)
    beam_settings = {
        "num_beams": decoding.beam_size,
        "length_penalty": decoding.length_penalty,
        "early_stopping": True,
    }
    return {
        "max_length": min(longest, num_hugging_face_positions(model)),
        "do_sample": False,
        **(beam_settings if decoding.beam_size > 1 else {"num_beams": 1}),
        "no_repeat_ngram_size": decoding.no_repeat_ngram_size or 0,
        "bad_words_ids": [[index] for index in never_written],
        "pad_token_id": target.pad_id,
        "bos_token_id": target.sos_id,
        "eos_token_id": target.eos_id,
        "decoder_start_token_id": target.sos_id,
        "forced_eos_token_id": None,
        "forced_bos_token_id": None,
    }


def compare_with_transformers(folder: Path, tokenizers: ForeignTokenizers, model: Transformer) -> list[str]:
    """Compare ids and logits on a few sentences; `ImportedModel.compare` of a folder of transformers.

    Raises:
        DataError: they differ.
    """
    if importlib.util.find_spec("transformers") is None:
        return ["not compared: the package transformers is not installed; the weights were converted by their names"]
    if not any((folder / name).is_file() for name in (WEIGHTS, INDEX)):
        reason = f"transformers would read {PICKLED} without a limit"
        return [f"not compared with transformers: {reason}; the weights were converted by their names"]
    try:
        return _compared(folder, tokenizers, model)
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, TypeError) as error:
        logger.debug("transformers cannot load %s", folder, exc_info=error)
        return [f"not compared: transformers cannot load {folder}: {on_one_line(str(error), 200)}"]


def _compared(folder: Path, tokenizers: ForeignTokenizers, model: Transformer) -> list[str]:
    import transformers

    options: dict[str, Any] = {"local_files_only": True}
    with _quiet():
        theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(
            folder, dtype=torch.float32, use_safetensors=True, **options
        ).eval()
        their_tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **options)
    largest, num_different = 0.0, 0
    source, rows = tokenizers.source, torch.tensor(tokenizers.target_rows)
    encoded = {sentence: [*source.encode(sentence), source.eos_id] for sentence in COMPARED_SENTENCES}
    short = {one: ids for one, ids in encoded.items() if len(ids) <= model.config.max_length}
    for sentence, ids in short.items():
        their_ids = [tokenizers.source_rows[index] for index in ids]
        num_different += their_tokenizer(sentence)["input_ids"] != their_ids
        target_ids = _some_ids(tokenizers.target, len(sentence))
        largest = max(largest, _difference(model, theirs, ids, their_ids, target_ids, rows))
    name = f"transformers {transformers.__version__}"
    if not largest <= MAX_DIFFERENCE:
        raise DataError(f"the imported model computes other logits than {name}: they differ by {largest:.2g}")
    same = "the same ids" if not num_different else f"the same ids in {len(short) - num_different} of them"
    return [f"{len(short)} sentences, {name}: {same}; logits differ by at most {largest:.1e}"]


def _some_ids(tokenizer: Tokenizer, seed: int) -> list[int]:
    """Ids of ordinary entries, as the beginning of a translation."""
    first = len(tokenizer.special_tokens)
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(first, tokenizer.vocab_size, (_NUM_TARGET_IDS,), generator=generator)
    return [tokenizer.sos_id, *ids.tolist()]


def _difference(
    model: Transformer,
    theirs: Any,
    ids: list[int],
    their_ids: list[int],
    target_ids: list[int],
    rows: torch.Tensor,
) -> float:
    """The largest difference of the logits of all entries but [SOS], which the other program does not have."""
    source, target = torch.tensor([ids]), torch.tensor([target_ids])
    with torch.inference_mode():
        ours = model(source, torch.ones_like(source, dtype=torch.bool), target)
        expected = theirs(input_ids=torch.tensor([their_ids]), decoder_input_ids=rows[target]).logits
    difference = (ours - expected[..., rows]).abs()
    difference[..., Tokenizer.sos_id] = 0.0
    return float(difference.max())
