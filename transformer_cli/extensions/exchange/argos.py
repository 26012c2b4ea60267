"""The export format `argos`: a package for Argos Translate and LibreTranslate, one `.argosmodel` file.

Argos Translate knows two tokenizers: a SentencePiece model, or Moses with byte-pair encoding. It reads one SentencePiece
model for both sides, adds no [EOS], and bans no token; so the exported model does both by itself.
"""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch import Tensor

from transformer_cli.checkpoint.trained_files import TrainedModel
from transformer_cli.config import Config
from transformer_cli.extensions.exchange.ctranslate2 import MODEL_FILE, CTranslate2Folder
from transformer_cli.extensions.exchange.ctranslate2_models import (
    BuiltIn,
    TokenNames,
    ctranslate2_files,
    read_weights,
    unsupported_settings,
)
from transformer_cli.extensions.exchange.export_format import (
    Decoded,
    ExportFormat,
    Obstacle,
    OtherEngine,
    Quantization,
    json_content,
    quoted,
)
from transformer_cli.extensions.exchange.model_folder import MAX_TOKENIZER_BYTES
from transformer_cli.extensions.exchange.own_folder import OWN_FOLDER, RECORD
from transformer_cli.extensions.exchange.position_tables import MIN_POSITIONS
from transformer_cli.extensions.exchange.sentencepiece_tokenizers import sentencepiece_bytes
from transformer_cli.process.errors import DataError, MissingInputError
from transformer_cli.storage.filesystem import is_bare_name, zip_damage_explained
from transformer_cli.text import SequenceFormat
from transformer_cli.text.languages import name_of_language
from transformer_cli.text.normalization import EOS

SENTENCEPIECE = "sentencepiece.model"
MODEL_FOLDER = "model"
_MAX_FILES = 20


class ArgosFormat(ExportFormat):
    """A package, which is one file."""

    name = "argos"
    modules = ("ctranslate2", "sentencepiece", "google.protobuf")
    splits_sentences = True
    suffix = ".argosmodel"
    quantizations = ("int8",)
    library = "argostranslate"

    def obstacles(self, config: Config) -> list[Obstacle]:
        reason = "Argos Translate runs models in CTranslate2, which has no such layer"
        found = [Obstacle(setting, reason) for setting in unsupported_settings(config.model)]
        if not config.tokenizer.is_of_library:
            reason = (
                "Argos Translate splits text with SentencePiece only: train with tokenizer.kind: sentencepiece, "
                "or fine-tune an imported run, such as an OPUS-MT model"
            )
            found.append(Obstacle(f"tokenizer.kind: {config.tokenizer.kind}", reason))
        if len(config.data.directions) > 1:
            shown = ", ".join(map(str, config.data.directions))
            reason = f"the model translates {shown}, but a package translates in one direction"
            found.append(Obstacle("data.both_directions, or several languages", reason))
        elif SequenceFormat.of(config.data).tags:
            reason = "Argos Translate gives a model the text alone, without a tag of the target language before it"
            found.append(Obstacle("data.target_tag: true", reason))
        return found

    def write(self, trained: TrainedModel, path: Path, *, quantization: Quantization | None) -> None:
        source, target = trained.tokenizers
        files = ctranslate2_files(
            trained.model,
            target,
            TokenNames.from_entries(source, target),
            quantization=quantization,
            built_in=BuiltIn(
                adds_source_end=True,
                never_written=(target.unk_id, target.pad_id, target.sos_id, *target.tag_ids),
                min_positions=MIN_POSITIONS,
            ),
        )
        contents = {f"{MODEL_FOLDER}/{name}": content for name, content in files.items()}
        contents[SENTENCEPIECE] = sentencepiece_bytes(source)
        contents["metadata.json"] = json_content(_metadata(trained.config))
        _add(path, contents, trained.config)

    def open(self, path: Path) -> OtherEngine:
        return ArgosPackage(path)

    def add_files(self, path: Path, files: Mapping[str, bytes]) -> None:
        with zipfile.ZipFile(path) as package:
            folder = package.namelist()[0].split("/")[0]
        _write_members(path, {f"{folder}/{name}": content for name, content in files.items()})

    def stored_tensors(self, path: Path) -> dict[str, Tensor] | None:
        name = f"{MODEL_FOLDER}/{MODEL_FILE}"
        return read_weights(package_member(path, name), f"{path}: {name}")

    def usage(self, trained: TrainedModel, name: str) -> str:
        [direction] = trained.config.data.directions
        return f"""\
In Argos Translate:

```python
import argostranslate.package  # pip install argostranslate
import argostranslate.translate

argostranslate.package.install_from_path({quoted(name)})
print(argostranslate.translate.translate("Good morning.", "{direction.source}", "{direction.target}"))
```

LibreTranslate uses every package that is installed for Argos Translate on the same machine.
"""


def package_member(path: Path, name: str) -> bytes:
    """A file in a package.

    Args:
        path: the package.
        name: of the file, below the one folder in which all files of a package lie.

    Raises:
        MissingInputError: the package has no such file.
        DataError: it is no package, or it is damaged.
    """
    with (
        zip_damage_explained(f"{path}: not a whole package", "copy the file again"),
        zipfile.ZipFile(path) as package,
    ):
        members = package.namelist()
        member = f"{members[0].split('/')[0]}/{name}" if members else name
        if member not in members:
            raise MissingInputError(f"{path}: there is no {name} in this package")
        return package.read(member)


class ArgosPackage:
    """An `OtherEngine`: what Argos Translate does with a package, with its two libraries, by greedy search."""

    def __init__(self, path: Path) -> None:
        from sentencepiece import SentencePieceProcessor

        with TemporaryDirectory(prefix="tfm-") as name, zipfile.ZipFile(path) as package:
            for member in package.namelist():
                relative = Path(member).relative_to(Path(member).parts[0])
                target = Path(name) / relative
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(package.read(member))
            processor: Any = SentencePieceProcessor(model_file=str(Path(name) / SENTENCEPIECE))
            self._tokenizer, self._model = processor, CTranslate2Folder(Path(name) / MODEL_FOLDER)

    def describe(self) -> str:
        return f"the libraries of Argos Translate ({self._model.name})"

    def decode(self, sources: Sequence[str], limits: Sequence[int]) -> list[Decoded]:
        encoded = [self._tokenizer.encode(source, out_type=str) for source in sources]
        written = self._model.translations(encoded, limits, replace_unknowns=True)
        found = []
        for source, target in zip(encoded, written, strict=True):
            pieces = [piece for piece in target if piece != EOS]
            text = self._tokenizer.decode_pieces(pieces).replace("\u2581", " ").removeprefix(" ")
            source_ids = self._model.source_ids([*source, EOS])
            found.append(Decoded(source_ids, self._model.target_ids(target), text))
        return found


def _metadata(config: Config) -> dict[str, Any]:
    [direction] = config.data.directions
    return {
        "package_version": "1.0",
        "argos_version": "1.9",
        "from_code": direction.source,
        "from_name": name_of_language(direction.source),
        "to_code": direction.target,
        "to_name": name_of_language(direction.target),
        "links": [],
        "type": "translate",
    }


def _add(path: Path, contents: Mapping[str, bytes], config: Config) -> None:
    """Write the members below one folder, as Argos Translate unpacks packages side by side."""
    [direction] = config.data.directions
    folder = f"translate-{direction.source}_{direction.target}-1_0"
    path.unlink()
    _write_members(path, {f"{folder}/{name}": content for name, content in contents.items()})


def _write_members(path: Path, contents: Mapping[str, bytes]) -> None:
    """Append members with a fixed time, so that equal models give equal files."""
    with zipfile.ZipFile(path, "a") as package:
        for name, content in contents.items():
            member = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            member.external_attr = 0o644 << 16
            package.writestr(member, content, compress_type=zipfile.ZIP_DEFLATED)


def unpack_own_files(path: Path, folder: Path) -> None:
    """Copy the record of the export and its folder `tfm/` into a folder; the weights stay in the package.

    Args:
        path: of the package.
        folder: an empty one.

    Raises:
        DataError: it is no package of tfm, or it is damaged.
    """
    with (
        zip_damage_explained(f"{path}: not a whole package", "copy the file again"),
        zipfile.ZipFile(path) as package,
    ):
        for member in _own_members(package, path):
            name = member.filename.split("/", 1)[1]
            (folder / name).parent.mkdir(exist_ok=True)
            with package.open(member) as file:  # the size that the package states may be wrong
                content = file.read(MAX_TOKENIZER_BYTES + 1)
            if len(content) > MAX_TOKENIZER_BYTES:
                raise DataError(f"{path}: {member.filename} has more than {MAX_TOKENIZER_BYTES:,} bytes")
            (folder / name).write_bytes(content)


def _own_members(package: zipfile.ZipFile, path: Path) -> list[zipfile.ZipInfo]:
    found = []
    for member in package.infolist():
        _, *parts = member.filename.split("/")
        is_own = len(parts) == 2 and parts[0] == OWN_FOLDER and is_bare_name(parts[1])
        if is_own or parts == [RECORD]:
            found.append(member)
    if not found or len(found) > _MAX_FILES:
        raise DataError(
            f"{path}: not a package that tfm export has made",
            hint="import the model from which the package was made; docs/importing.md lists what can be imported",
        )
    return found
