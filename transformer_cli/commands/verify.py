"""`tfm verify`: whether the files of a run, a checkpoint or an export are those that were written, and who signed them."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated

import typer

from transformer_cli.checkpoint.run_folder import (
    CALIBRATION_FILE,
    CHECKPOINTS,
    CONVERTED,
    LOCK_FILE,
    SHORTLIST_FILE,
    RunFolder,
)
from transformer_cli.checkpoint.trained_files import find_run, load_weights, read_trained_files
from transformer_cli.commands import completion
from transformer_cli.commands.command_line import JsonOption, RunOption
from transformer_cli.commands.output import show
from transformer_cli.config import load_stored_config
from transformer_cli.config.decoding import ShortlistConfig
from transformer_cli.process.errors import (
    ConfigError,
    DataError,
    MissingInputError,
    StorageError,
    TfmError,
    UsageError,
)
from transformer_cli.process.imports import require_extra
from transformer_cli.process.messages import counted, for_shell
from transformer_cli.storage import SIGNATURE_NAME, damage_of, open_sealed
from transformer_cli.storage.filesystem import parse_json, size_in_words
from transformer_cli.storage.writing import broken_json_lines, is_running

_EXPORT = "transformer_cli.extensions.exchange.exported_files"

_CHECKPOINT_NAME = re.compile(r"(step|average)-[0-9]{1,12}")
_LINKS = ("best", "last")
# How messages of model-signing begin, and their meaning.
_REASONS = {
    "Signature mismatch": "the files are not those that were signed",
    "Key mismatch": "it was made with another key",
}


@dataclass
class Checked:
    """A folder whose files were read: a checkpoint, a model converted from one, or an export."""

    folder: Path
    what: str
    num_files: int = 0
    num_bytes: int = 0
    problems: list[str] = field(default_factory=list)
    signature: str | None = None
    """valid, invalid, unchecked; None: there is none."""


@dataclass
class Verification:
    """What is right and wrong below one folder."""

    place: Path
    checked: list[Checked] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Of files that are in no checked folder."""
    unknown: list[str] = field(default_factory=list)
    """Names in the folder of a run that tfm does not write there."""
    without_checksums: list[str] = field(default_factory=list)
    """Files of a run that no manifest lists."""
    signature: str | None = None
    """Of the whole folder, as `Checked.signature`."""

    @property
    def all_problems(self) -> list[str]:
        """Those of the checked folders, then the others."""
        return [*(problem for one in self.checked for problem in one.problems), *self.problems]


def verify_command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN",
            help="Name or folder of a run, of one of its checkpoints, or of an export. Default: the newest run under runs/.",
            autocompletion=completion.runs,
        ),
    ] = None,
    run: RunOption = None,
    public_key: Annotated[
        Path | None,
        typer.Option(
            "--public-key",
            help="The public key of who should have signed it, a PEM file; all must be signed then (extra `sign`).",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check that the files of a run or an export are complete and unchanged. The exit code is 65 if they are not."""
    if name is not None and run is not None:
        raise UsageError("the run is named twice", hint=f"tfm verify {for_shell(name)}")
    found = verification(name if name is not None else run)
    check_signatures(found, public_key)
    facts = {
        "folder": str(found.place),
        "is_sound": not found.all_problems,
        "checked": [
            {
                "folder": str(one.folder),
                "files": one.num_files,
                "bytes": one.num_bytes,
                "problems": one.problems,
                "signature": one.signature,
            }
            for one in found.checked
        ],
        "problems": found.problems,
        "unknown": found.unknown,
        "without_checksums": found.without_checksums,
        "signature": found.signature,
    }
    show(facts, list(_lines(found)), as_json=as_json)
    if found.all_problems:
        raise DataError(
            f"{found.place}: not as it was written: {counted(len(found.all_problems), 'problem')}",
            hint=f"copy what is named here again from where it came{_or_else(found)}",
        )


def _or_else(found: Verification) -> str:
    """What helps where a damaged file cannot be copied again."""
    damaged = {one.what for one in found.checked if one.problems}
    if "export" in damaged:
        return ", or export the run again: tfm export"
    if "checkpoint" in damaged:
        return ", or use another checkpoint: tfm translate skips a damaged one, and says so"
    return "" if damaged else "; the checkpoints are sound"


def verification(name: str | None) -> Verification:
    """Read all files of a run, a checkpoint or an export.

    Args:
        name: the name of a run, or the path of a run, a checkpoint or an export; None: the newest run.

    Raises:
        MissingInputError: there is no such run or folder, or it has no checkpoint yet.
        StorageError: the folder cannot be read.
        DataError: an export has no checksums, because an earlier version made it.
    """
    if name is not None and resolve_name(f"{_EXPORT}:is_export")(Path(name)):
        exported = resolve_name(f"{_EXPORT}:check_export")(Path(name))
        return Verification(Path(name), [Checked(Path(name), "export", *exported)])
    place = find_run(name)
    found = Verification(place)
    if (place / CHECKPOINTS).is_dir():
        _check_run(found)
        if not found.checked:
            raise MissingInputError(f"{place}: this run has no checkpoint yet")
    else:
        found.checked.append(_checked_checkpoint(place))
    return found


def _check_run(found: Verification) -> None:
    """Check each checkpoint and converted model of a run, then its other files."""
    run = RunFolder(found.place)
    for name in _names(run.checkpoints_folder):
        path = run.checkpoints_folder / name
        if _CHECKPOINT_NAME.fullmatch(name):
            found.checked.append(_checked_checkpoint(path))
        elif name not in _LINKS:
            found.unknown.append(f"{CHECKPOINTS}/{name}")
    sound = next((one.folder for one in found.checked if not one.problems), None)
    logs = (run.metrics_file, run.learning_file, run.log_file, run.environment_file, run.seen_words_file)
    single = {run.config_file.name, CALIBRATION_FILE, SHORTLIST_FILE, *(one.name for one in logs)}
    folders = run.tensorboard_folder, run.data_folder, run.given_folder
    known = {LOCK_FILE, SIGNATURE_NAME, CHECKPOINTS, *(one.name for one in folders)}
    for name in _names(run.path):
        if name.startswith(CONVERTED):
            found.checked.append(_checked_sealed(run.path / name, "converted model"))
        elif name in single:
            problems = _unreadable(run.path / name, sound)
            found.problems += problems
            found.without_checksums += [] if problems else [name]
        elif name not in known and not name.startswith(f"{CHECKPOINTS}-old-"):
            found.unknown.append(name)
        elif name in (one.name for one in folders):
            found.without_checksums.append(f"{name}/")


def _names(folder: Path) -> list[str]:
    """The names in a folder, without hidden ones."""
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except OSError as error:
        raise StorageError(f"{folder}: cannot be read: {error.strerror}") from error


def _checked_checkpoint(folder: Path) -> Checked:
    """Every file against the manifest; then config, tokenizers and state are read, and the weights loaded."""
    checked = _checked_sealed(folder, "checkpoint")
    if not checked.problems:
        try:
            files = read_trained_files(folder)
            files.checkpoint.state()
            load_weights(files)
        except (DataError, ConfigError) as error:
            checked.problems.append(error.message)
    return checked


def _checked_sealed(folder: Path, what: str) -> Checked:
    checked = Checked(folder, what)
    if folder.is_symlink():
        checked.problems.append(f"{folder}: a symbolic link, where a folder is expected")
        return checked
    checked.problems += damage_of(folder)
    if not checked.problems:
        with open_sealed(folder) as sealed:
            checked.num_files = len(sealed.manifest.files)
            checked.num_bytes = sum(file.size for file in sealed.manifest.files)
    return checked


def _unreadable(path: Path, checkpoint: Path | None) -> list[str]:
    """What is wrong with a file of a run that has no checksum.

    Args:
        checkpoint: a sound one of the run, whose tokenizers a shortlist must fit.
    """
    from transformer_cli.decoding.checks.quality import read_quality

    try:
        if path.suffix == ".yaml":
            load_stored_config(path)
        elif path.name == CALIBRATION_FILE:
            read_quality(path.parent)
        elif path.name == SHORTLIST_FILE:
            return _wrong_shortlist(path, checkpoint)
        elif path.suffix == ".json":
            parse_json(path.read_bytes(), str(path))
        elif path.suffix == ".jsonl" and not is_running(path.parent):  # it may be writing a line
            return [
                f"{path}: line {number} is cut off or damaged, and is passed over" for number in broken_json_lines(path)
            ]
    except OSError as error:
        return [f"{path}: cannot be read: {error.strerror}"]
    except TfmError as error:
        return [f"{error.message}; {error.hint}" if error.hint else error.message]
    return []


def _wrong_shortlist(path: Path, checkpoint: Path | None) -> list[str]:
    """What would make `decoding.shortlist` refuse a file.

    Raises:
        DataError, MissingInputError: as of `load_shortlist`.
    """
    from transformer_cli.decoding.shortlist import load_shortlist

    if checkpoint is None:
        return [f"{path}: cannot be compared with the tokenizers of a checkpoint: none is sound"]
    files = read_trained_files(checkpoint)
    load_shortlist(path, ShortlistConfig(), files.tokenizers)
    return []


# Signatures of OpenSSF Model Signing: of the whole folder, or of each checkpoint or export in it.


def check_signatures(found: Verification, public_key: Path | None) -> None:
    """Compare each signature with a key; with a key, everything must be signed.

    Args:
        found: gets the results, and a problem for each folder without a valid signature.
        public_key: a PEM file; None: only say whether signatures are there.

    Raises:
        UsageError: there is a key, but the extra is not installed.
        MissingInputError: there is no such file.
        DataError: the file is no public key.
    """
    places: list[Verification | Checked] = [*found.checked]
    if all(one.folder != found.place for one in found.checked):
        places.append(found)
    signed = [one for one in places if (_place_of(one) / SIGNATURE_NAME).is_file()]
    for one in signed:
        one.signature = "unchecked"
    if public_key is None:
        return
    require_extra("sign", ("model_signing", "OpenSSL"), purpose="tfm verify --public-key")
    _require_key(public_key)
    for one in signed:
        problem = _wrong_signature(_place_of(one), public_key)
        one.signature = "invalid" if problem else "valid"
        one.problems += [problem] if problem else []
    if found.signature is None:
        unsigned = [one for one in found.checked if one.signature is None]
        for one in unsigned:
            one.problems.append(f"{one.folder}: is not signed: there is no {SIGNATURE_NAME} in this folder")


def _place_of(one: Verification | Checked) -> Path:
    return one.folder if isinstance(one, Checked) else one.place


def _require_key(public_key: Path) -> None:
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        load_pem_public_key(public_key.read_bytes())
    except OSError as error:
        raise MissingInputError(f"{public_key}: {error.strerror}") from error
    except Exception as error:  # of several libraries
        raise DataError(
            f"{public_key}: not a public key in PEM format",
            hint='such a file begins with "-----BEGIN PUBLIC KEY-----"',
        ) from error


def _wrong_signature(folder: Path, public_key: Path) -> str | None:
    """Why the signature of a folder does not hold; None: it holds."""
    # The library logs to the root logger what is raised here anyway.
    logging.getLogger("model_signing").setLevel(logging.CRITICAL)
    signature = folder / SIGNATURE_NAME
    try:
        # As its own command does: the signature is no part of what is signed.
        hashed = resolve_name("model_signing.hashing:Config")().set_ignored_paths(paths=[signature])
        config = resolve_name("model_signing.verifying:Config")().use_elliptic_key_verifier(public_key=public_key)
        config.set_hashing_config(hashed).verify(folder, signature)
    except Exception as error:  # of several libraries
        problem = str(error).strip()
        reason = next(
            (meaning for mark, meaning in _REASONS.items() if problem.startswith(mark)),
            f"the file is damaged, or made in another way than with a key ({problem or type(error).__name__})",
        )
        return f"{signature}: the signature does not hold: {reason}"
    return None


# What a person reads.


def _lines(found: Verification) -> Iterator[str]:
    yield f"{found.place}: {', '.join(_kinds(found.checked))}"
    for one in found.checked:
        files = f"{one.num_files} files, {size_in_words(one.num_bytes)}"
        signed = f", signature {one.signature}" if one.signature else ""
        where = one.folder if one.folder == found.place else one.folder.relative_to(found.place)
        yield f"  {f'{where}':<32}  {'NOT SOUND' if one.problems else f'sound: {files}'}{signed}"
        yield from (f"      {problem}" for problem in one.problems)
    yield from (f"  {problem}" for problem in found.problems)
    if found.without_checksums:
        yield f"  readable, but without checksums: {', '.join(found.without_checksums)}"
    if found.unknown:
        yield f"  not files of tfm: {', '.join(found.unknown)}"
    if found.signature:
        yield f"  signature of the whole folder: {found.signature}"
    if "unchecked" in (found.signature, *(one.signature for one in found.checked)):
        yield "  a signature says something only beside a key: --public-key FILE, of who should have signed"


def _kinds(checked: Sequence[Checked]) -> list[str]:
    whats = [one.what for one in checked]
    return [counted(whats.count(what), what) for what in dict.fromkeys(whats)]
