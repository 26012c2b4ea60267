"""The translated files that clients may download: in memory, each for a limited time."""

import secrets
import time
from collections import OrderedDict
from typing import NamedTuple

KEPT_SECONDS = 1800.0
_ID_BYTES = 16


class _File(NamedTuple):
    data: bytes
    expires_at: float


class TranslatedFiles:
    """Files by names that nobody can guess; the oldest ones are dropped when memory is full."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._files: OrderedDict[str, _File] = OrderedDict()

    def add(self, name: str, data: bytes) -> str:
        """Keep a file; returns the name under which it can be downloaded, with 128 random bits in it."""
        self._drop_old()
        unique = f"{secrets.token_hex(_ID_BYTES)}.{name}"
        self._files[unique] = _File(data, time.monotonic() + KEPT_SECONDS)
        while len(self._files) > 1 and self._num_bytes() > self._max_bytes:
            self._files.popitem(last=False)
        return unique

    def get(self, unique: str) -> bytes | None:
        """The file of this name; None if it is not there any more."""
        self._drop_old()
        found = self._files.get(unique)
        return None if found is None else found.data

    def _drop_old(self) -> None:
        now = time.monotonic()
        while self._files and next(iter(self._files.values())).expires_at < now:
            self._files.popitem(last=False)

    def _num_bytes(self) -> int:
        return sum(len(file.data) for file in self._files.values())
