"""API keys: who may ask a server, and the comparison of keys in constant time."""

import hashlib
import hmac
from collections.abc import Iterable
from pathlib import Path

from transformer_cli.process.errors import DataError, MissingInputError

_MAX_KEYS = 10_000
_SCHEMES = ("bearer ", "deepl-auth-key ")


class ApiKeys:
    """The keys of a server; without any key, everybody may ask. Only their digests are kept."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._digests = [_digest(key) for key in keys]

    def __repr__(self) -> str:
        return f"ApiKeys({len(self._digests)} keys)"

    @property
    def are_required(self) -> bool:
        """Whether a request needs a key."""
        return bool(self._digests)

    def allow(self, key: str) -> bool:
        """Whether this is one of the keys; the comparison takes the same time for every key."""
        given = _digest(key)
        # All keys are compared, so that the time does not say which of them is similar.
        return any([hmac.compare_digest(given, digest) for digest in self._digests])


def key_in_header(authorization: str) -> str:
    """The key of the header Authorization: `Bearer KEY`, or `DeepL-Auth-Key KEY`; empty if there is none."""
    for scheme in _SCHEMES:
        if authorization.lower().startswith(scheme):
            return authorization[len(scheme) :].strip()
    return ""


def read_api_keys(path: Path) -> ApiKeys:
    """The keys of a file: one on each line; blank lines and lines that begin with # are skipped.

    Raises:
        MissingInputError: there is no such file.
        DataError: it cannot be read, or holds no key.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise MissingInputError(f"--api-keys {path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"--api-keys {path}: cannot be read ({type(error).__name__})",
            hint="the file has one key on each line, in UTF-8",
        ) from None
    lines = [line.strip() for line in text.splitlines()]
    keys = [line for line in lines if line and not line.startswith("#")]
    if not keys:
        raise DataError(
            f"--api-keys {path}: the file holds no key", hint="write one key on each line"
        )
    if len(keys) > _MAX_KEYS:
        raise DataError(
            f"--api-keys {path}: {len(keys)} keys, but at most {_MAX_KEYS} are possible"
        )
    return ApiKeys(keys)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
