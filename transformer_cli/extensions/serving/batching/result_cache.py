"""The cache of a server: results of sentences that were translated before, the least recently used ones dropped."""

import hashlib
import threading
from collections import OrderedDict
from typing import Any, NamedTuple

Key = bytes

# About what Python takes for the key of an entry and its place.
_BYTES_OF_KEY = 300


def key_of(conditions: bytes, item: object) -> Key:
    """The hash of everything that decides about a result.

    Args:
        conditions: the hash of the model and of the settings of decoding.
        item: what is computed, such as a request: the token ids of the source, the prefix, the terms and the seed.
            Its `repr` tells it from all others.
    """
    return hashlib.blake2b(conditions + repr(item).encode(), digest_size=16).digest()


class _Entry(NamedTuple):
    result: Any
    num_bytes: int


class ResultCache:
    """Results by the keys of their requests; several threads may use it."""

    def __init__(self, max_bytes: int) -> None:
        self.num_hits = 0
        self.num_misses = 0
        self.num_bytes = 0
        """About the memory that it takes."""
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Any:
        """The result of a request; None if it is not there."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                self.num_misses += 1
                return None
            self.num_hits += 1
            self._entries.move_to_end(key)
            return found.result

    def put(self, key: Key, result: Any, num_bytes: int) -> None:
        """Keep a result; drop others if memory is full.

        Args:
            result: not None; nobody changes it.
            num_bytes: about the memory that it takes.
        """
        entry = _Entry(result, num_bytes + _BYTES_OF_KEY)
        if entry.num_bytes > self._max_bytes:
            return
        with self._lock:
            before = self._entries.pop(key, None)
            self.num_bytes += entry.num_bytes - (before.num_bytes if before else 0)
            self._entries[key] = entry
            while self.num_bytes > self._max_bytes:
                _, dropped = self._entries.popitem(last=False)
                self.num_bytes -= dropped.num_bytes
