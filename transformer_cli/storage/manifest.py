"""The manifest of a checkpoint folder: its fields, its text, and a checksum that detects any flipped bit."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from transformer_cli.process.errors import DataError

MANIFEST_NAME = "MANIFEST.json"
FORMAT_VERSION = 2
MAX_MANIFEST_BYTES = 1 << 20
MAX_FILES = 64
LATEST_SAVED_AT = 2**52
"""The latest accepted `saved_at`, in milliseconds since 1970; later checkpoints still get numbers below 2^53."""
_CHECKSUM = "manifest_sha256"
_BARE_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"


class DamagedError(DataError):
    """The files of a folder differ from its manifest, or the manifest is missing."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ListedFile(_Strict):
    """One file of the folder."""

    name: Annotated[str, Field(pattern=_BARE_NAME)]
    size: Annotated[int, Field(ge=0, le=2**50)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Manifest(_Strict):
    """The facts about a checkpoint, and the list of its files."""

    format_version: Annotated[int, Field(ge=1, le=FORMAT_VERSION)]
    run_id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    """A random name, drawn when the run starts from scratch."""
    step: Annotated[int, Field(ge=0, lt=10**12)]
    data_fingerprint: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")]
    """SHA-256 over the fingerprint of the training data."""
    metric: Annotated[str, Field(pattern=r"^[a-z_+]{1,20}$")]
    """The name of the metric of `score`."""
    score: Annotated[float, Field(allow_inf_nan=False)] | None
    """Score of this checkpoint on the validation split; None if it was not measured."""
    saved_at: Annotated[int, Field(ge=0, lt=2**53)]
    """Milliseconds since 1970, and always more than in earlier checkpoints: it gives their order."""
    files: Annotated[tuple[ListedFile, ...], Field(max_length=MAX_FILES)]

    def encode(self) -> bytes:
        """The manifest as JSON, with a checksum over its own text."""
        fields = self.model_dump(mode="json")
        return _readable({**fields, _CHECKSUM: _digest(_compact(fields))})


def parse_manifest(data: bytes, origin: str) -> Manifest:
    """Parse a manifest.

    Raises:
        DamagedError: the text is no manifest, has a wrong checksum, or has a newer format.
    """
    fields = parse_json(data, origin)
    if not isinstance(fields, dict):
        raise DamagedError(f"{origin}: not a manifest")
    version = fields.get("format_version")
    if type(version) is int and version > FORMAT_VERSION:
        raise DamagedError(
            f"{origin}: format version {version} is newer than tfm knows ({FORMAT_VERSION}): upgrade tfm",
            hint="pip install --upgrade transformer-cli",
        )
    checksum = fields.pop(_CHECKSUM, None)
    text = _compact(fields)
    if checksum != _digest(text) or _readable({**fields, _CHECKSUM: checksum}) != data:
        raise DamagedError(f"{origin}: does not match its own checksum")
    try:
        manifest = Manifest.model_validate_json(text)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise DamagedError(f"{origin}: {where}: {problem['msg']}") from error
    names = [file.name for file in manifest.files]
    if len({*names, MANIFEST_NAME}) != len(names) + 1:
        raise DamagedError(f"{origin}: names a file twice, or itself")
    return manifest


def parse_json(data: bytes, origin: str) -> Any:
    """Parse JSON strictly.

    Raises:
        DamagedError: the text is not JSON, or a key occurs twice.
    """
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=without_duplicates)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{origin}: not JSON: {error}") from error


def encode_json(values: Mapping[str, Any]) -> bytes:
    """Values as JSON; Python prints a float so that reading it returns the same bits."""
    return (json.dumps(values, indent=1) + "\n").encode("ascii")


def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The mapping of these keys; raises ValueError if a key occurs twice (for `object_pairs_hook`)."""
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError("a key occurs twice")
    return mapping


def is_bare_name(name: str) -> bool:
    """Whether a manifest may list a file of this name: no path, not hidden, at most 100 characters."""
    return re.fullmatch(_BARE_NAME, name) is not None


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def _compact(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":"), sort_keys=True).encode("ascii")


def _readable(fields: dict[str, Any]) -> bytes:
    return (json.dumps(fields, indent=1, sort_keys=True) + "\n").encode("ascii")
