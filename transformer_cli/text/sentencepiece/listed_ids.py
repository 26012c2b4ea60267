"""From the tokens of a SentencePiece model to ids of the vocabulary, which need not be the same list.

As in Marian, an unknown run of characters that is an entry of the vocabulary, such as a piece of the other language, gets the id of that entry.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from transformer_cli.text.sentencepiece.sentencepiece_layout import is_hidden
from transformer_cli.text.tokenizer_layout import Layout


class ListedIds:
    """The ids of tokens.

    Args:
        layout: of the tokenizer.
        vocabulary: the listed pieces with their scores, in the order of their ids.
    """

    def __init__(self, layout: Layout, vocabulary: Sequence[Sequence[Any]]) -> None:
        self._unk_id, self._vocab_size = 0, len(vocabulary)
        first = len(layout.specials)
        names = [name for name, _ in vocabulary]
        self._hidden = {
            layout.entry_of(name): index
            for index, name in enumerate(names)
            if index >= first and is_hidden(name)
        }

    def are_settled(self, ids: Iterable[int]) -> bool:
        """Whether all ids stand for listed pieces, so that `of` would change nothing."""
        return all(0 < index < self._vocab_size for index in ids)

    def of(self, tokens: Iterable[str], ids: Iterable[int]) -> list[int]:
        """The ids of tokens; unlisted pieces are unknown.

        Args:
            tokens: the pieces; an unknown run of characters is one of them.
            ids: as the library gives them.
        """
        return [
            index
            if 0 < index < self._vocab_size
            else self._hidden.get(token, self._unk_id)
            if index == self._unk_id
            else self._unk_id
            for token, index in zip(tokens, ids, strict=True)
        ]
