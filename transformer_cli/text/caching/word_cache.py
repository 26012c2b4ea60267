"""A cache of words in front of the tokenizer: the ids of a text are those of its words, joined.

Splitting a text into pieces looks at most two characters back, and no piece crosses the space before a word. So a text
is cut at spaces into parts of one word; where a word changes how the text after it is split (`can_be_encoded_alone`),
a part has several words. The same part always has the same ids, except as the first part of a text.
"""

import re
from array import array
from collections.abc import Callable, Iterable, Iterator

from transformer_cli.text.word_split import can_be_encoded_alone

MAX_CACHED_WORDS = 500_000
MAX_CACHED_CHARACTERS = 40
# Letters that Unicode NFC leaves alone, of scripts with spaces between words.
_LETTERS = "[A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0400-\u0481\u048a-\u052f]+"
# A word such as cat, l'acqua, don't or mother-in-law, with up to two marks after it. How such a word is split depends on
# nothing around it, so that the library need not split it.
_PLAIN = re.compile(
    rf"({_LETTERS})(?:(['\u2019])({_LETTERS}))?((?:-{_LETTERS})*)([.,;:!?)]{{0,2}})"
)
_CLITICS = frozenset({"s", "t", "d", "m", "re", "ve", "ll"})  # as in `word_split.py`


class WordCache:
    """Ids of texts as bytes (uint32 in the byte order of the machine), which are joined faster than lists.

    Args:
        encode_text: the ids of a text that is encoded as a whole.
        encode_piece: the ids of a piece of text that splitting does not cut.
    """

    def __init__(
        self, encode_text: Callable[[str], list[int]], encode_piece: Callable[[str], list[int]]
    ) -> None:
        prefix = len(encode_text("a"))
        self._pieces = _Bounded(lambda piece: as_bytes(encode_piece(piece)))
        self.later_words = _Words(
            lambda word: self._plain(word) or as_bytes(encode_text(f"a {word}")[prefix:])
        )
        self.first_words = _Words(
            lambda word: (
                self.later_words[word] if _PLAIN.fullmatch(word) else as_bytes(encode_text(word))
            )
        )
        self._later_parts = _Bounded(lambda part: as_bytes(encode_text(f"a {part}")[prefix:]))
        self._first_parts = _Bounded(lambda part: as_bytes(encode_text(part)))

    def __len__(self) -> int:
        words = self.later_words, self.first_words
        caches = *words, self._later_parts, self._first_parts, self._pieces
        return sum(map(len, caches))

    def encode(self, text: str) -> bytes:
        """The ids of a text."""
        words = text.split(" ")
        try:
            remaining = iter(words)
            first = self.first_words[next(remaining)]
            return first + b"".join(map(self.later_words.__getitem__, remaining))
        except KeyError:
            return b"".join(self._of_parts(words))

    def _of_parts(self, words: list[str]) -> Iterator[bytes]:
        parts = _parts(words)
        yield self._first_parts[next(parts)]
        for part in parts:
            is_word = " " not in part and part and can_be_encoded_alone(part)
            if is_word and len(part) <= MAX_CACHED_CHARACTERS:
                yield self.later_words[part]
            else:
                yield self._later_parts[part]

    def _plain(self, word: str) -> bytes | None:
        """The ids of a word of the form `_PLAIN`."""
        found = _PLAIN.fullmatch(word)
        if found is None:
            return None
        letters, apostrophe, rest, others, marks = found.groups()
        pieces = [f" {letters}"]
        if apostrophe and rest.casefold() in _CLITICS:
            pieces.append(apostrophe + rest)
        elif apostrophe:
            pieces = [f" {letters}{apostrophe}", f" {rest}"]
        for other in others.split("-")[1:]:
            pieces += "-", f" {other}"
        return b"".join(map(self._pieces.__getitem__, (*pieces, *marks)))


def as_bytes(ids: Iterable[int]) -> bytes:
    """The ids as uint32."""
    return array("I", ids).tobytes()


def _parts(words: list[str]) -> Iterator[str]:
    """Parts of a text: single words, or several words that must be encoded together."""
    waiting: list[str] = []
    for word in words:
        if waiting or not word or not can_be_encoded_alone(word):
            waiting.append(word)
            if not word or not can_be_encoded_alone(word):
                continue
            word = " ".join(waiting)
            waiting = []
        yield word
    if waiting:
        yield " ".join(waiting)


class _Bounded(dict[str, bytes]):
    """A cache that encodes a part when it is missing; the cache is emptied when it is full."""

    def __init__(self, encode: Callable[[str], bytes]) -> None:
        super().__init__()
        self._encode = encode

    def __missing__(self, part: str) -> bytes:
        ids = self._encode(part)
        if len(part) <= MAX_CACHED_CHARACTERS:
            if len(self) >= MAX_CACHED_WORDS:
                self.clear()
            self[part] = ids
        return ids


class _Words(_Bounded):
    """A cache of single words; KeyError for a word that must be encoded together with its neighbours."""

    def __missing__(self, word: str) -> bytes:
        if not 0 < len(word) <= MAX_CACHED_CHARACTERS or not can_be_encoded_alone(word):
            raise KeyError(word)
        return super().__missing__(word)
