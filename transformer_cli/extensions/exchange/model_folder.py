"""A model folder from elsewhere: its files, each read with a limit of its size, and its languages."""

import codecs
import io
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from pydantic import ValidationError
from torch import Tensor

from transformer_cli.config import FileCorpus, FilesData, ModelConfig
from transformer_cli.config.data import CleaningConfig
from transformer_cli.config.refusal import plain_reason
from transformer_cli.extensions.exchange.pickled_weights import read_pickled
from transformer_cli.process.device import require_memory
from transformer_cli.process.errors import DataError, MissingInputError, UsageError
from transformer_cli.storage import DamagedError
from transformer_cli.storage.filesystem import (
    is_bare_name,
    parse_json,
    read_all_tensors,
    require_finite,
)
from transformer_cli.text.languages import meant_among, primary_language

MAX_JSON_BYTES = 64 << 20
MAX_TEXT_BYTES = 1 << 20
MAX_TOKENIZER_BYTES = 100 << 20
WEIGHTS, INDEX, PICKLED = "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"
CORPUS = "corpus.tsv"
"""The name of the corpus in the config of an imported run, which the user replaces."""
_LONGEST_CODE = 3
_PAIR_IN_NAME = re.compile(r"(?:^|[-_.])([A-Za-z]{2,8})-([A-Za-z]{2,8})$")
_LANGUAGE = re.compile(r"[A-Za-z]{1,8}([-_][A-Za-z0-9]{1,8})*")


class ModelFolder:
    """A folder, whose files are read by name."""

    def __init__(self, path: Path) -> None:
        if not path.is_dir():
            problem = "a file, where a folder is expected" if path.exists() else "no such folder"
            raise MissingInputError(f"{path}: {problem}", hint="give the folder that holds the files of the model")
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def has(self, *names: str) -> bool:
        """Whether the folder has all these files."""
        return all((self.path / name).is_file() for name in names)

    def bytes(self, name: str, *, max_bytes: int) -> bytes:
        """The content of a file.

        Raises:
            MissingInputError: there is no such file, or it cannot be read.
            DataError: it is larger than `max_bytes`.
        """
        path = self.path / name
        try:
            with path.open("rb") as file:
                content = file.read(max_bytes + 1)
        except FileNotFoundError:
            raise MissingInputError(f"{path}: no such file", hint="copy the whole folder of the model") from None
        except OSError as error:
            raise MissingInputError(f"{path}: cannot be read: {error.strerror}") from error
        if len(content) > max_bytes:
            raise DataError(f"{path}: more than {max_bytes:,} bytes, the limit for this file")
        return content

    def text(self, name: str, *, max_bytes: int) -> str:
        """A file as text; raises the errors of `bytes`, and DataError if it is not UTF-8."""
        try:
            return self.bytes(name, max_bytes=max_bytes).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise DataError(f"{self.path / name}: not UTF-8 text") from error

    def json(self, name: str, *, max_bytes: int = MAX_JSON_BYTES) -> dict[str, Any]:
        """The JSON object in a file; raises the errors of `bytes`, and DataError if it is none."""
        origin = str(self.path / name)
        try:
            # Programs on Windows may have put a byte-order mark before it.
            found = parse_json(self.bytes(name, max_bytes=max_bytes).removeprefix(codecs.BOM_UTF8), origin)
        except DamagedError as error:
            raise DataError(error.message, hint="copy the file again") from error
        if not isinstance(found, dict):
            raise DataError(f"{origin}: not a JSON object")
        return found

    def json_or_empty(self, name: str) -> dict[str, Any]:
        """The JSON object in a file; empty if there is no such file."""
        return self.json(name) if self.has(name) else {}

    def tensors(self) -> dict[str, Tensor]:
        """The weights: of model.safetensors, of the parts that its index names, or of pytorch_model.bin.

        Raises:
            MissingInputError: there are no weights.
            DataError: they cannot be used.
        """
        if self.has(WEIGHTS):
            return self.safetensors(WEIGHTS)
        if self.has(INDEX):
            return self._parts()
        if self.has(PICKLED):
            return read_pickled(self.path / PICKLED).tensors
        if self.has(f"{PICKLED}.index.json"):
            raise DataError(
                f"{self.path}: the weights are in several files, pytorch_model-*.bin, which cannot be read",
                hint="load the model with transformers and save it again: its save_pretrained writes safetensors files",
            )
        raise MissingInputError(
            f"{self.path}: there is no {WEIGHTS} and no {PICKLED}",
            hint="copy the whole folder of the model; weights of TensorFlow and Flax (tf_model.h5, flax_model.msgpack) cannot be read",
        )

    def _parts(self) -> dict[str, Tensor]:
        names = self.json(INDEX).get("weight_map")
        if not isinstance(names, dict) or not all(map(_is_safetensors_name, names.values())):
            raise DataError(f"{self.path / INDEX}: not a map from tensors to safetensors files")
        tensors: dict[str, Tensor] = {}
        for name in sorted(set(names.values())):
            tensors |= self.safetensors(name)
        return tensors

    def safetensors(self, name: str) -> dict[str, Tensor]:
        """The tensors of a safetensors file; raises the errors of `tensors`."""
        path = self.path / name
        try:
            with io.FileIO(path) as file:
                _require_memory(os.fstat(file.fileno()).st_size, path)
                tensors = read_all_tensors(file, str(path))
        except FileNotFoundError:
            raise MissingInputError(f"{path}: no such file") from None
        except OSError as error:
            raise MissingInputError(f"{path}: cannot be read: {error.strerror}") from error
        require_finite(tensors, str(path))
        return tensors


def _is_safetensors_name(name: Any) -> bool:
    return isinstance(name, str) and is_bare_name(name) and name.endswith(".safetensors")


def _require_memory(num_bytes: int, path: Path) -> None:
    hint = "close other programs, or use a machine with more memory"
    require_memory(2 * num_bytes, torch.device("cpu"), f"{path}: the weights", hint=hint)


def fitting_config(settings: Mapping[str, Any], origin: str, hint: str | None = None) -> ModelConfig:
    """Our settings of a model from elsewhere.

    Raises:
        DataError: no model of ours has such sizes; the message names the first setting in the way.
    """
    try:
        return ModelConfig.model_validate(settings)
    except ValidationError as error:
        first = error.errors()[0]
        place = "".join(f"{one}: " for one in first["loc"])
        problem = plain_reason(first)
        raise DataError(f"{origin}: these sizes fit no model of ours: {place}{problem}", hint=hint) from error


def text_setting(settings: Mapping[str, Any], name: str) -> str | None:
    """A setting that is text, or the `content` of a token; None if it is absent or something else."""
    value = settings.get(name)
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else None


class NamedLanguages(NamedTuple):
    """The languages of a model folder that the user names: `--from` and `--to` of `tfm import`."""

    source: str | None = None
    targets: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ModelLanguages:
    """The directions of a model."""

    source: str
    targets: tuple[str, ...]
    tagged: tuple[str, ...]
    """The same as `targets` if a tag before the source names the target language; else empty."""


def folder_languages(folder: ModelFolder, named: NamedLanguages, *, codes: Sequence[str]) -> ModelLanguages:
    """The languages of a model.

    Args:
        folder: of the model.
        named: what the user says.
        codes: the target languages for which the vocabulary has an entry such as >>fra<<; with two or more of them, such an
            entry must stand before each source.

    Raises:
        UsageError: nothing says what the languages are, or the model does not have one that the user names.
    """
    found = _pair_in_files(folder) or _pair_in_model_name(folder) or _pair_in_name(folder)
    source = named.source or (found and found[0])
    usable = [code for code in codes if _LANGUAGE.fullmatch(code)]
    if len(usable) > 1:
        targets = tuple(_code_of(language, usable) for language in named.targets) or (*usable,)
    elif len(named.targets) > 1:
        raise UsageError(
            f"--to {' --to '.join(named.targets)}: the vocabulary of this model has no entries for several "
            "target languages, such as >>fra<<",
            hint="give one --to",
        )
    else:
        targets = (*named.targets,) or ((found[1],) if found else ())
    if source is None or not targets:
        missing = "--from" if source is None else "--to"
        raise UsageError(
            f"{folder}: no file in it says between which languages the model translates",
            hint=f"add {missing} with a language, such as {missing} en",
        )
    for language in (source, *targets):
        if not _LANGUAGE.fullmatch(language):
            raise UsageError(f"{language!r} is not the code of a language, such as en or pt-BR")
    return ModelLanguages(source, targets, targets if len(usable) > 1 else ())


def imported_data(languages: ModelLanguages, *, normalize_unicode: bool = True) -> FilesData:
    """The data section of an imported run: where its corpus for fine-tuning would be."""
    [first, *others] = languages.targets
    corpora = [FileCorpus(path=CORPUS)]
    if others:
        corpora = [FileCorpus(path=f"{target}-{CORPUS}", target_language=target) for target in languages.targets]
    return FilesData(
        source="files",
        source_language=languages.source,
        target_language=first,
        cleaning=CleaningConfig(normalize_unicode=normalize_unicode, normalize_invisible=None, join_white_space=False),
        target_tag=bool(languages.tagged) and not others,
        corpora=tuple(corpora),
    )


def _code_of(language: str, codes: Sequence[str]) -> str:
    if (meant := meant_among(language, codes)) is not None:
        return meant
    shown = ", ".join(codes[:20]) + (", ..." if len(codes) > 20 else "")
    raise UsageError(f"--to {language}: this model translates into: {shown}")


def _pair_in_files(folder: ModelFolder) -> tuple[str, str] | None:
    settings = folder.json_or_empty("tokenizer_config.json")
    source, target = (text_setting(settings, f"{side}_lang") for side in ("source", "target"))
    if source and target and _LANGUAGE.fullmatch(source) and _LANGUAGE.fullmatch(target):
        return source, target
    settings = folder.json_or_empty("model_info.json")  # of TranslateLocally
    source, target = text_setting(settings, "src"), text_setting(settings, "trg")
    if source and target and all(_is_code(language) for language in (source, target)):
        return source, target
    return None


def _is_code(language: str) -> bool:
    """Whether a text is the code of a language, and not its name."""
    is_short = len(primary_language(language)) <= _LONGEST_CODE
    return is_short and _LANGUAGE.fullmatch(language) is not None


def _pair_in_model_name(folder: ModelFolder) -> tuple[str, str] | None:
    """Of the name of a file as in Firefox, such as model.enit.intgemm.alphas.bin."""
    found = [re.match(r"model\.([a-z]{2})([a-z]{2})\.intgemm", one.name) for one in folder.path.glob("model.*.bin")]
    return (found[0][1], found[0][2]) if len(found) == 1 and found[0] else None


def _pair_in_name(folder: ModelFolder) -> tuple[str, str] | None:
    found = _PAIR_IN_NAME.search(folder.path.absolute().name)
    if found is None:
        return None
    # Codes have two or three letters; other names may have a hyphen, too, such as mine-marian.
    are_codes = all(len(primary_language(code)) <= _LONGEST_CODE for code in found.groups()[:2])
    return (found[1], found[2]) if are_codes else None
