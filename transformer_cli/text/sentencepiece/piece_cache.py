"""A cache of words for an imported SentencePiece model: the ids of a text are those of its words, joined.

SentencePiece splits at spaces, after its normalisation. So a text is encoded word by word, if no character at the edge of a word
can change how the word beside it is normalised: such as a combining mark at its beginning.
"""

import re
from collections.abc import Callable

from transformer_cli.text.caching.word_cache import MAX_CACHED_WORDS, as_bytes

# Letters, digits and common marks; combining marks and format characters are not among them.
_PLAIN = re.compile(r"[\w!-/:-@\[-^`{-~«»¡¿°\u2010-\u2015\u2018-\u201e\u2026€£]{1,40}")


class PieceCache:
    """Ids of texts as bytes (uint32), as `WordCache` gives them.

    Args:
        encode_text: the ids of a text.
    """

    def __init__(self, encode_text: Callable[[str], list[int]]) -> None:
        self._encode_text = encode_text
        self.first_words = self.later_words = _Words(encode_text)

    def __len__(self) -> int:
        return len(self.later_words)

    def encode(self, text: str) -> bytes:
        """The ids of a text."""
        try:
            return b"".join(map(self.later_words.__getitem__, text.split(" ")))
        except KeyError:
            return as_bytes(self._encode_text(text))


class _Words(dict[str, bytes]):
    """A cache of words; KeyError for a word that must be encoded together with its neighbours."""

    def __init__(self, encode_text: Callable[[str], list[int]]) -> None:
        super().__init__({"": b""})
        self._encode_text = encode_text

    def __missing__(self, word: str) -> bytes:
        if _PLAIN.fullmatch(word) is None:
            raise KeyError(word)
        if len(self) >= MAX_CACHED_WORDS:
            self.clear()
            self[""] = b""
        ids = self[word] = as_bytes(self._encode_text(word))
        return ids
