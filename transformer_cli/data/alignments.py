"""Given word alignments of training pairs: read, checked, kept with their pairs, and turned into links between subwords.

A line of a file in the Pharaoh format holds the links of a pair, such as `0-0 1-2`: word of the source, word of the target,
counted from 0. Words are what white space separates.
"""

import re
from pathlib import Path

from transformer_cli.data.sources.lines import read_lines
from transformer_cli.process.errors import DataError
from transformer_cli.process.messages import on_one_line
from transformer_cli.text import Tokenizer
from transformer_cli.text.normalization import word_spans, words_at

_LINK = re.compile(r"(\d{1,9})-(\d{1,9})")
_FORMAT_HINT = "a line holds links such as 0-0 1-2: word of the source, word of the target, counted from 0"


class AlignmentFile:
    """The lines of a file with alignments, one for each row of a corpus, taken in the order of the rows."""

    def __init__(self, path: Path) -> None:
        self._path, self._lines, self._number = path, read_lines(path), 0

    def links_of_row(self, number: int, source: str, target: str) -> str:
        """The links of a pair, for `SentencePair.links`: the numbers of words of both sides, then the links.

        Args:
            number: of the row, from 1; it grows from call to call, and rows between are skipped.
            source, target: as they stand in the corpus.

        Raises:
            DataError: the file has no such line, or the line is malformed or names a word that the pair does not have.
        """
        line = b""
        while self._number < number:
            found = next(self._lines, _END)
            if found is _END:
                raise DataError(
                    f"{self._path} has {self._number:,} lines, but its corpus has more pairs",
                    hint="line N holds the links of pair N; a pair without links has an empty line",
                )
            self._number += 1
            line = found or b""
        given = line.decode("utf-8", "replace").split()
        if not given:
            return ""
        sizes = len(source.split()), len(target.split())
        for link in given:
            self._check(link, sizes)
        return " ".join([f"{sizes[0]}-{sizes[1]}", *given])

    def require_end_after(self, num_rows: int) -> None:
        """Check that the file has no line behind the last row of its corpus.

        Raises:
            DataError: it has more lines.
        """
        num_lines = self._number + sum(1 for _ in self._lines)
        if num_lines != num_rows:
            raise DataError(
                f"{self._path} has {num_lines:,} lines, but its corpus has {num_rows:,} pairs",
                hint="line N holds the links of pair N; a pair without links has an empty line",
            )

    def _check(self, link: str, sizes: tuple[int, int]) -> None:
        where = f"{self._path}: line {self._number}"
        found = _LINK.fullmatch(link)
        if found is None:
            raise DataError(f"{where}: {on_one_line(link, 40)!r} is not a link", hint=_FORMAT_HINT)
        for side, word, size in zip(("source", "target"), found.groups(), sizes, strict=True):
            if int(word) >= size:
                raise DataError(
                    f"{where}: the link {link} names word {word} of the {side}, which has only {size} words",
                    hint="words are counted from 0, and are what white space separates in the corpus file",
                )


_END = b"\n"  # no line contains a line feed


def reversed_links(links: str) -> str:
    """The links of the reversed pair."""
    return " ".join("-".join(reversed(link.split("-"))) for link in links.split())


def links_of_tokens(
    links: str, texts: tuple[str, str], tokenizers: tuple[Tokenizer, Tokenizer], num_tags: int
) -> list[int]:
    """The links between tokens, as positions of target and source in turn: each token of a word has the links of its word.

    There are none if cleaning has changed the number of words: the numbers of the links would then be those of other words.

    Args:
        links: as in `SentencePair.links`.
        texts: of source and target, cleaned.
        tokenizers: of source and target.
        num_tags: how many tags stand before the tokens of the source.
    """
    if not links:
        return []
    sizes, *pairs = (tuple(map(int, link.split("-"))) for link in links.split())
    words = [word_spans(text) for text in texts]
    if sizes != (len(words[0]), len(words[1])):
        return []
    token_positions: list[dict[int, list[int]]] = []
    for text, tokenizer, spans in zip(texts, tokenizers, words, strict=True):
        tokens: dict[int, list[int]] = {}
        for position, token_words in enumerate(words_at(tokenizer.spans(text), spans)):
            for word in token_words:
                tokens.setdefault(word, []).append(position)
        token_positions.append(tokens)
    found = {
        (target, source + num_tags)
        for source_word, target_word in pairs
        for source in token_positions[0].get(source_word, ())
        for target in token_positions[1].get(target_word, ())
    }
    return [position for link in sorted(found) for position in link]
