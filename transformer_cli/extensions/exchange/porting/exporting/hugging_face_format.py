"""The export format `hf`: a folder for the library transformers of Hugging Face, which `tfm import` reads, too."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_cli.config import Config
from transformer_cli.extensions.exchange.interchange.hugging_face.model_classes import (
    fitting_class,
    obstacles,
)
from transformer_cli.extensions.exchange.porting.exporting.export_format import (
    Decoded,
    Obstacle,
    OtherEngine,
    Quantization,
    add_to_folder,
)
from transformer_cli.extensions.exchange.porting.exporting.own_folder import OWN_FOLDER, own_files
from transformer_cli.text import Tokenizer
from transformer_cli.text.tokenizer import Tokenizers, load_tokenizers

if TYPE_CHECKING:  # the import of PyTorch takes seconds
    from torch import Tensor

    from transformer_cli.checkpoint import TrainedModel

MODEL_FILE = "model.safetensors"
BATCH_SENTENCES = 25


@dataclass(frozen=True, slots=True)
class HuggingFaceFormat:
    """See `ExportFormat`."""

    name: str = "hf"
    modules: tuple[str, ...] = ("transformers", "safetensors")
    suffix: str = ""
    quantizations: tuple[Quantization, ...] = ()
    library: str = "transformers"

    def obstacles(self, config: Config) -> list[Obstacle]:
        reason = "no model class of transformers has this"
        return [Obstacle(setting, reason) for setting in obstacles(config.model)]

    def write(
        self, trained: "TrainedModel", path: Path, *, quantization: Quantization | None
    ) -> None:
        assert quantization is None
        from safetensors.torch import save

        from transformer_cli.extensions.exchange.interchange.hugging_face.to_hugging_face import (
            hugging_face_tensors,
        )

        vocabularies = _vocabularies(trained)
        state = trained.model.state_dict()
        tensors = hugging_face_tensors(trained.config.model, vocabularies, state)
        (path / MODEL_FILE).write_bytes(save(tensors, metadata={"format": "pt"}))
        add_to_folder(path, own_files(trained, None))
        add_to_folder(path, {name: _json(content) for name, content in _settings(trained).items()})

    def open(self, path: Path) -> OtherEngine:
        return TransformersFolder(path)

    def add_files(self, path: Path, files: Mapping[str, bytes]) -> None:
        add_to_folder(path, files)

    def stored_tensors(self, path: Path) -> "dict[str, Tensor] | None":
        return None

    def usage(self, trained: "TrainedModel", name: str) -> str:
        tags = trained.source_tokenizer.special_tokens[4:]
        return f"""\
```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer  # pip install transformers torch

tokenizer = AutoTokenizer.from_pretrained("{name}")
model = AutoModelForSeq2SeqLM.from_pretrained("{name}")
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
        source, _ = own_tokenizers(folder)
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
            of_batch = [sources[index] for index in batch], [limits[index] for index in batch]
            found |= zip(batch, self._decode_batch(*of_batch), strict=True)
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
        rows = batch["input_ids"].tolist(), batch["attention_mask"].sum(1).tolist()
        for source, length, target, limit in zip(*rows, written.tolist(), limits, strict=True):
            ids = target[1 : 1 + limit]  # the first one is [SOS]
            end = self._tokenizer.eos_token_id
            ids = ids[: ids.index(end) + 1] if end in ids else ids
            text = self._tokenizer.decode(ids, skip_special_tokens=True)
            yield Decoded(tuple(map(self._our_id, source[:length])), tuple(ids), text)

    def _our_id(self, source_id: int) -> int:
        """Our id of a source token; unlisted pieces are unknown."""
        is_listed = source_id in self._our_ids
        return source_id - self._our_ids.start if is_listed else self._unk_id


def own_tokenizers(folder: Path) -> Tokenizers:
    """The tokenizers of the run from which a folder was made."""

    def load(name: str) -> Tokenizer:
        return Tokenizer.from_json((folder / OWN_FOLDER / name).read_text(encoding="utf-8"))

    return load_tokenizers(lambda name: (folder / OWN_FOLDER / name).is_file(), load)


def _settings(trained: "TrainedModel") -> dict[str, dict[str, Any]]:
    """The JSON files."""
    from transformer_cli.extensions.exchange.interchange.hugging_face.embedding_tables import (
        TableForm,
    )
    from transformer_cli.extensions.exchange.interchange.hugging_face.generation_settings import (
        generation_config,
    )
    from transformer_cli.extensions.exchange.interchange.hugging_face.to_hugging_face import (
        hugging_face_config,
        num_positions,
    )
    from transformer_cli.extensions.exchange.interchange.hugging_face.tokenizer_json import (
        tokenizer_config,
        tokenizer_json,
    )

    config, vocabularies = trained.config, _vocabularies(trained)
    form = TableForm.of(config.model, vocabularies, fitting_class(config.model))
    tokenizers = trained.source_tokenizer, trained.target_tokenizer
    most = num_positions(config.model)
    return {
        "config.json": hugging_face_config(config.model, vocabularies),
        "generation_config.json": generation_config(config.model, config.decoding, tokenizers[1]),
        "tokenizer.json": tokenizer_json(*tokenizers, form, config.data.cleaning),
        "tokenizer_config.json": tokenizer_config(tokenizers[0], most),
    }


def _vocabularies(trained: "TrainedModel") -> Any:
    from transformer_cli.extensions.exchange.interchange.hugging_face.embedding_tables import (
        Vocabularies,
    )
    from transformer_cli.extensions.exchange.interchange.hugging_face.tokenizer_json import (
        num_unlisted,
    )

    source, target = trained.source_tokenizer, trained.target_tokenizer
    sizes = source.vocab_size, target.vocab_size
    return Vocabularies(*sizes, are_shared=source is target, num_unlisted=num_unlisted(source))


def _json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False, indent=1).encode() + b"\n"


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
