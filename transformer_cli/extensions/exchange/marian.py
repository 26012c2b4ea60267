"""The export format `marian`: a folder for Marian, with `model.npz`, the vocabularies and `decoder.yml`.

The check computes the written files a second time, in numpy (`marian_reading.py`): Marian itself is no package that everyone can install.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from transformer_cli.checkpoint.trained_files import TrainedModel
from transformer_cli.config import Config, DecodingConfig
from transformer_cli.extensions.exchange.export_format import (
    Decoded,
    ExportFormat,
    Obstacle,
    OtherEngine,
    Quantization,
    add_to_folder,
    quoted,
    unsaid_of_beam,
)
from transformer_cli.extensions.exchange.marian_format import (
    Arrays,
    marian_obstacles,
    marian_parts,
    npz_content,
    read_npz,
    settings_of,
    shape_of,
)
from transformer_cli.extensions.exchange.marian_reading import MarianModel
from transformer_cli.extensions.exchange.own_folder import OWN_FOLDER, own_files
from transformer_cli.process.errors import ConfigError
from transformer_cli.process.messages import for_shell
from transformer_cli.text import SequenceFormat, Tokenizer
from transformer_cli.text.sentencepiece_model import parsed_model

MODEL_FILE, DECODER_FILE = "model.npz", "decoder.yml"
_DROPPED = (Tokenizer.pad_id, Tokenizer.sos_id)
"""Entries that Marian does not have: it needs no padding token, and its decoder starts with zeros."""
_USAGE = """\
With the command of [Marian](https://marian-nmt.github.io):

```sh
echo "Good morning." | marian-decoder -c {settings}
```

or in Python, with `pip install pymarian`:

```python
from pymarian import Translator

folder = {name}
translator = Translator(models=f"{{folder}}/model.npz", vocabs=[{vocabs}], beam_size={beam}, normalize={normalize})
print(translator.translate("Good morning."))
```
"""


class MarianFormat(ExportFormat):
    """A folder for Marian, which may train the model further."""

    name = "marian"
    library = "marian"

    def obstacles(self, config: Config) -> list[Obstacle]:
        found = [*marian_obstacles(config.model)]
        if not config.tokenizer.is_of_library:
            reason = "Marian cuts text with SentencePiece: kind: sentencepiece"
            found.append(Obstacle(f"tokenizer.kind: {config.tokenizer.kind}", reason))
        if SequenceFormat.of(config.data).tags:
            reason = "a tag before the source is no text, and Marian reads text only"
            found.append(Obstacle("data: a target language that is named by a tag", reason))
        return found

    def write(self, trained: TrainedModel, path: Path, *, quantization: Quantization | None) -> None:
        (path / OWN_FOLDER).mkdir()
        add_to_folder(path, marian_files(trained) | own_files(trained, None))

    def open(self, path: Path) -> OtherEngine:
        return MarianFolder(path)

    def unsaid_search(self, decoding: DecodingConfig) -> list[str]:
        found = unsaid_of_beam(decoding, "Marian")
        if decoding.no_repeat_ngram_size is not None:
            found.append("Marian has no decoding.no_repeat_ngram_size")
        return found

    def usage(self, trained: TrainedModel, name: str) -> str:
        vocabs = ", ".join(f'f"{{folder}}/{one}"' for one in vocabulary_names(trained))
        search = {"beam": trained.config.decoding.beam_size, "normalize": _exponent(trained.config)}
        settings = for_shell(f"{name}/{DECODER_FILE}")
        return _USAGE.format(name=quoted(name), settings=settings, vocabs=vocabs, **search)


def marian_files(trained: TrainedModel) -> dict[str, bytes]:
    """The files for Marian, by their names in the folder.

    Raises:
        ConfigError: a tokenizer is not one of the SentencePiece library.
    """
    names, both = vocabulary_names(trained), trained.tokenizers
    vocabularies = [marian_vocabulary(tokenizer) for tokenizer in both]
    files = {name: one.content for name, one in zip(names, vocabularies, strict=True)}
    config = trained.config.model
    sizes = len(vocabularies[0].rows), len(vocabularies[1].rows)
    arrays = marian_arrays(trained, vocabularies[0].rows, vocabularies[1].rows)
    files[MODEL_FILE] = npz_content(arrays, settings_of(config, sizes))
    files[DECODER_FILE] = yaml.safe_dump(_search(trained.config, names), sort_keys=False).encode()
    return files


def vocabulary_names(trained: TrainedModel) -> tuple[str, str]:
    """The names of the vocabularies of source and target."""
    if trained.source_tokenizer is trained.target_tokenizer:
        return "vocab.spm", "vocab.spm"
    [direction] = trained.config.data.directions
    if direction.source == direction.target:
        return "vocab.source.spm", "vocab.target.spm"
    return f"vocab.{direction.source}.spm", f"vocab.{direction.target}.spm"


def _search(config: Config, vocabularies: Sequence[str]) -> dict[str, Any]:
    """The content of decoder.yml."""
    return {
        "relative-paths": True,
        "models": [MODEL_FILE],
        "vocabs": list(vocabularies),
        "beam-size": config.decoding.beam_size,
        "normalize": _exponent(config),
        "word-penalty": 0,
        "max-length-factor": config.decoding.max_length_ratio or 3.0,
        "mini-batch": 32,
        "maxi-batch": 100,
        "maxi-batch-sort": "src",
    }


def _exponent(config: Config) -> float:
    """Marian divides a score by length^normalize."""
    return config.decoding.length_penalty


class MarianVocabulary(NamedTuple):
    """A vocabulary as Marian reads it."""

    content: bytes
    """Of the .spm file."""
    rows: list[int]
    """For each id of Marian, our id."""


def marian_vocabulary(tokenizer: Tokenizer) -> MarianVocabulary:
    """A tokenizer with the ids of Marian: `</s>` 0, `<unk>` 1, then all others in our order; without padding and start.

    Raises:
        ConfigError: it is not one of the SentencePiece library.
    """
    layout = tokenizer.parts.layout
    if not layout.is_of_library:
        raise ConfigError(
            "the tokenizer of this run comes from a model with a vocabulary beside its SentencePiece model, which --to marian cannot write",
            hint="formats that can hold it: --to ctranslate2, --to onnx",
        )
    model = parsed_model(layout.content, "the tokenizer of the run")
    first = (Tokenizer.eos_id, Tokenizer.unk_id)
    others = (index for index in range(tokenizer.vocab_size) if index not in (*first, *_DROPPED))
    rows = [*first, *others]
    pieces = [model.pieces[index] for index in rows]
    del model.pieces[:]
    model.pieces.extend(pieces)
    for name, index in (("eos", 0), ("unk", 1), ("bos", -1), ("pad", -1)):
        setattr(model.trainer_spec, f"{name}_id", index)
    model.trainer_spec.vocab_size = len(rows)
    return MarianVocabulary(model.SerializeToString(), rows)


def our_rows(tokenizer: Tokenizer) -> list[int]:
    """For each of our ids, that of `marian_vocabulary`; -1: Marian has no such entry."""
    rows = marian_vocabulary(tokenizer).rows
    places = {ours: theirs for theirs, ours in enumerate(rows)}
    return [places.get(index, -1) for index in range(tokenizer.vocab_size)]


def marian_arrays(trained: TrainedModel, source_rows: Sequence[int], target_rows: Sequence[int]) -> Arrays:
    """The tensors of a model under the names of Marian.

    Args:
        source_rows, target_rows: for each id of Marian, our id.
    """
    state, config = trained.model.state_dict(), trained.config.model
    sizes = len(source_rows), len(target_rows)
    arrays: Arrays = {}
    for part in marian_parts(config):
        if part.is_absent:
            arrays[part.theirs] = np.zeros(shape_of(part, config, sizes), np.float32)
            continue
        ours = state[part.ours].detach().float().numpy()
        if part.kind == "matrix":
            ours = ours.T
        elif part.kind == "row":
            ours = ours[None]
        if part.theirs == "decoder_ff_logit_out_b":
            ours = ours[:, target_rows]
        elif part.kind == "table":
            ours = ours[source_rows if part.theirs == "encoder_Wemb" else target_rows]
        arrays[part.theirs] = np.ascontiguousarray(ours)
    return arrays


class MarianFolder:
    """An `OtherEngine`: the files of a folder, computed in numpy, and its vocabularies in the SentencePiece library."""

    def __init__(self, folder: Path) -> None:
        found = read_npz(folder / MODEL_FILE)
        names = yaml.safe_load((folder / DECODER_FILE).read_text(encoding="utf-8"))["vocabs"]
        vocabularies = [(folder / name).read_bytes() for name in names]
        self._open(MarianModel(found.arrays, found.settings), vocabularies)

    def _open(self, model: MarianModel, vocabularies: Sequence[bytes]) -> None:
        from sentencepiece import SentencePieceProcessor

        self._model = model
        self._source, self._target = (SentencePieceProcessor(model_proto=content) for content in vocabularies)
        self._banned = [
            index
            for index in range(self._target.vocab_size())
            if index != self._target.eos_id() and (self._target.is_control(index) or self._target.is_unknown(index))
        ]
        self._rows = [_rows_by_name(library) for library in (self._source, self._target)]

    def describe(self) -> str:
        return "a reading of the files in numpy"

    def decode(self, sources: Sequence[str], limits: Sequence[int]) -> list[Decoded]:
        end = self._target.eos_id()
        encoded = [[*self._source.encode(text), self._source.eos_id()] for text in sources]
        written = self._model.greedy(encoded, limits, end=end, banned=self._banned)
        return [
            Decoded(
                tuple(self._rows[0][index] for index in source),
                tuple(self._rows[1][index] for index in target),
                self._target.decode([index for index in target if index != end]),
            )
            for source, target in zip(encoded, written, strict=True)
        ]


def _rows_by_name(library: Any) -> list[int]:
    """For each id of a vocabulary, our id."""
    first = [library.unk_id(), -1, -1, library.eos_id()]
    others = [index for index in range(library.vocab_size()) if index not in first]
    ours = {old: new for new, old in enumerate([*first, *others]) if old >= 0}
    return [ours[index] for index in range(library.vocab_size())]
