"""The cache of a server: hypotheses of sentences that were translated before, the least recently used ones dropped."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence

from transformer_cli.decoding import Hypothesis, Request

Key = bytes

# About what Python takes for an entry without its tokens, and for each token.
_BYTES_OF_ENTRY = 600
_BYTES_OF_TOKEN = 40


def key_of(conditions: bytes, request: Request) -> Key:
    """The hash of everything that decides about the hypotheses of a request.

    Args:
        conditions: the hash of the model and of the settings of decoding.
        request: the token ids of the source, the prefix, the terms and the seed.
    """
    return hashlib.blake2b(conditions + repr(tuple(request)).encode(), digest_size=16).digest()


class ResultCache:
    """Hypotheses by the keys of their requests; several threads may use it."""

    def __init__(self, max_bytes: int) -> None:
        self.num_hits = 0
        self.num_misses = 0
        self.num_bytes = 0
        """About the memory that it takes."""
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._entries: OrderedDict[Key, Sequence[Hypothesis]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Sequence[Hypothesis] | None:
        """The hypotheses of a request; None if they are not there."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                self.num_misses += 1
            else:
                self.num_hits += 1
                self._entries.move_to_end(key)
            return found

    def put(self, key: Key, hypotheses: Sequence[Hypothesis]) -> None:
        """Keep the hypotheses of a request; drop others if memory is full."""
        size = _size_of(hypotheses)
        if size > self._max_bytes:
            return
        with self._lock:
            before = self._entries.pop(key, None)
            self.num_bytes += size - (0 if before is None else _size_of(before))
            self._entries[key] = hypotheses
            while self.num_bytes > self._max_bytes:
                _, dropped = self._entries.popitem(last=False)
                self.num_bytes -= _size_of(dropped)


def _size_of(hypotheses: Sequence[Hypothesis]) -> int:
    return _BYTES_OF_ENTRY + sum(
        _BYTES_OF_ENTRY // 3 + _BYTES_OF_TOKEN * len(hypothesis.ids) for hypothesis in hypotheses
    )
