"""The interface of an export format: what it cannot hold, how it is written, and how its program decodes it."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from torch import Tensor

from transformer_cli.checkpoint.trained_files import TrainedModel
from transformer_cli.config import Config, DecodingConfig, ModelConfig
from transformer_cli.decoding import TokenIds
from transformer_cli.text import SequenceFormat

Quantization = Literal["int8"]


class Obstacle(NamedTuple):
    """A setting of a config that keeps a model out of a format."""

    setting: str
    """The setting and its value, such as `model.qk_norm: true`."""
    reason: str
    """What the other program lacks, as the end of a sentence: "CTranslate2 has no such norm"."""


class Decoded(NamedTuple):
    """What another program made of one source text."""

    source_ids: TokenIds
    """What its tokenizer made of the text; the ids are those of our source vocabulary, with [EOS]."""
    target_ids: TokenIds
    """Its greedy translation, as ids of our target vocabulary; ends with [EOS] unless it reached the limit."""
    text: str
    """The translation as text."""


class OtherEngine(Protocol):
    """The program for which a model was exported, with this model."""

    def describe(self) -> str:
        """Its name and version, such as `CTranslate2 4.8.0`."""
        ...

    def decode(self, sources: Sequence[str], limits: Sequence[int]) -> list[Decoded]:
        """Tokenise, translate by greedy search, and detokenise, as a user of the exported files would.

        Args:
            sources: one sentence each, normalised. A model of several target languages gets the tag, such as <2it>,
                directly before the sentence.
            limits: for each source, the largest number of target tokens, [EOS] included.
        """
        ...


@dataclass(frozen=True)
class ExportFormat(ABC):
    """A format into which a run can be exported; a folder, unless it has a `suffix`."""

    name: ClassVar[str]
    """As in `tfm export --to NAME`."""
    library: ClassVar[str]
    """The library that reads the format, as the Hugging Face hub names it."""
    modules: ClassVar[tuple[str, ...]] = ()
    """The optional packages that writing and checking need; all are in the extra `export`."""
    suffix: ClassVar[str] = ""
    """The end of the name of a format that is one file, such as `.argosmodel`."""
    quantizations: ClassVar[tuple[Quantization, ...]] = ()
    """The types of `tfm export --quantize` that the format has."""
    is_greedy: ClassVar[bool] = False
    """Whether its programs translate by greedy search only, whatever the beam of the run is."""
    splits_sentences: ClassVar[bool] = False
    """Whether its programs split a text into sentences before they translate."""

    @abstractmethod
    def obstacles(self, config: Config) -> list[Obstacle]:
        """The settings in the way, beside those of `shared_obstacles`; without any, the config can be exported."""

    @abstractmethod
    def write(self, trained: TrainedModel, path: Path, *, quantization: Quantization | None) -> None:
        """Write the files.

        Args:
            trained: on the CPU, in float32; it stays unchanged.
            path: an existing empty folder; if the format has a `suffix`, an existing empty file.
            quantization: the type of the weights; None: float32.

        Raises:
            ConfigError: the tokenizers of this run cannot be expressed in the format.
        """

    @abstractmethod
    def open(self, path: Path) -> OtherEngine:
        """The other program with the files that `write` has written."""

    @abstractmethod
    def usage(self, trained: TrainedModel, name: str) -> str:
        """How the exported files are used, as Markdown without a heading; code that runs as it stands.

        Args:
            trained: the run.
            name: the path of the folder or file, as the user gave it.
        """

    def unsaid_search(self, decoding: DecodingConfig) -> list[str]:
        """The settings of a beam search that the files cannot say, for people; nothing if the format has no settings of a search."""
        return []

    def add_files(self, path: Path, files: Mapping[str, bytes]) -> None:
        """Put further files beside those of the model, such as README.md."""
        add_to_folder(path, files)

    def stored_tensors(self, path: Path) -> dict[str, Tensor] | None:
        """The float32 tensors in the files, from which `tfm import` takes the weights.

        None: `tfm import` converts the tensors of this format itself, because another program may have trained them further.

        Args:
            path: the folder or file that `write` has written.

        Raises:
            MissingInputError: a file is missing.
            DataError: a file cannot be read.
        """
        return None


def shown_setting(config: ModelConfig, name: str) -> str:
    """A setting of a model and its value, such as `model.qk_norm: true`."""
    value = getattr(config, name)
    return f"model.{name}: {str(value).lower() if isinstance(value, bool) else value}"


def add_to_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder; a name may have a folder before it."""
    for name, content in files.items():
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_bytes(content)


def json_content(content: Mapping[str, Any]) -> bytes:
    """The content of a JSON file in an export."""
    return json.dumps(content, ensure_ascii=False, indent=1).encode() + b"\n"


def unsaid_of_beam(decoding: DecodingConfig, program: str) -> list[str]:
    """The settings of a beam search that a program lacks which divides scores by length^alpha."""
    found = []
    if decoding.beam_size > 1 and decoding.length_penalty and decoding.length_normalization == "gnmt":
        found.append(
            f"with a beam of {decoding.beam_size}, {program} divides scores by length^{decoding.length_penalty:g}, not as "
            "decoding.length_normalization: gnmt, so that another hypothesis may win"
        )
    if decoding.beam_size > 1 and decoding.coverage_penalty:
        found.append(f"{program} has no decoding.coverage_penalty")
    return found


def quoted(name: str) -> str:
    """A name in quotes, as code in Python and JavaScript has it."""
    return json.dumps(name, ensure_ascii=False)


def shared_obstacles(config: Config) -> list[Obstacle]:
    """The settings that keep a model out of every format."""
    sequence_format = SequenceFormat.of(config.data)
    obstacles = []
    if not sequence_format.has_end:
        reason = "other programs end a translation only at [EOS]"
        obstacles.append(Obstacle("data.end_symbol: false", reason))
    if not sequence_format.is_shifted:
        reason = "other programs give the decoder the target behind a start token"
        obstacles.append(Obstacle("data.shift_target: false", reason))
    return obstacles
