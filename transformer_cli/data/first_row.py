"""Whether the first row of a table names its columns, told by what its cells and the cells below hold."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from transformer_cli.data.sources.fields import ROLES
from transformer_cli.text.languages import code_of_language, language_in, named_language

_FEW_ROWS = 20
_DATE = re.compile(r"\d{4}([-/.])\d{1,2}\1\d{1,2}([T ].*)?|\d{1,2}([-/.])\d{1,2}\3\d{2,4}([ ,].*)?")
# Words in the names of columns -> what they mean. Two words of one meaning, such as sentence and frase, may be a pair
# of a word list.
_MEANINGS = {
    "sentence": "sentence sentences frase frasi frases phrase satz sätze oración zin zdanie предложение 例文 文",
    "translation": "translation traduzione traduction traducción tradução übersetzung vertaling tłumaczenie перевод "
    "翻訳 訳文 译文 翻译",
    "original": "original originale originel оригинал 原文",
}
_MEANING_OF = {word: meaning for meaning, words in _MEANINGS.items() for word in words.split()}
# A name of a column has at most this many words.
_MAX_WORDS = 4
_MIN_ROWS_TO_COMPARE = 5
_FEW_SHORT = 0.05
_LABEL_SHARE = 0.1


def is_header(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether a first row names columns: languages or roles, or a word above a column of numbers.

    A cell that comes again and again below it, such as the language of each sentence, is a label and no name.
    """
    titles = [
        "" if _is_label(title, number, rows) else title for number, title in enumerate(titles)
    ]
    words = [re.split(r"[\W_]+", title.casefold()) for title in titles]
    languages = [
        _language_of(title, number, rows)
        for number, (title, parts) in enumerate(zip(titles, words, strict=True))
        if len(title.split()) <= 2 or (len(parts) <= _MAX_WORDS and _roles_in(parts))
    ]
    named = {language for language in languages if language}
    # English and Inglese name one language, so that row is a pair of words.
    if len(named) + _num_roles(words) >= 2:
        return True
    is_doubled = len(list(filter(None, languages))) > len(named)
    if not is_doubled and _is_shortest(titles, rows, names_a_language=bool(named)):
        return True
    return any(
        title
        and kind_of_cells([title]) == "text"
        and kind_of_cells([row[number] for row in rows if number < len(row)])
        in ("numbers", "dates", "links")
        for number, title in enumerate(titles)
    )


def _language_of(title: str, number: int, rows: Sequence[Sequence[str]]) -> str | None:
    """The language that a title names; a code such as am is a word where words of this length stand below."""
    if language_in(title) is None and code_of_language(title) is not None:
        cells = [row[number].strip() for row in rows if number < len(row)]
        is_word = sum(len(cell) <= len(title) for cell in cells) > _FEW_SHORT * len(cells)
        return None if is_word else code_of_language(title)
    return named_language(title)


def _is_shortest(
    titles: Sequence[str], rows: Sequence[Sequence[str]], *, names_a_language: bool
) -> bool:
    """Whether all cells are much shorter than all cells below, and end without punctuation, as names of columns do.

    Beside the name of a language, it is enough that they are shorter.
    """
    factor, num_needed = (1, _MIN_ROWS_TO_COMPARE) if names_a_language else (2, _FEW_ROWS)
    below = [[cell.strip() for cell in row] for row in rows if len(row) == len(titles)]
    if (
        len(titles) < 2
        or len(below) < num_needed
        or not all(titles)
        or any(map(_is_closed, titles))
    ):
        return False
    shortest = [min(filter(None, map(len, cells)), default=0) for cells in zip(*below, strict=True)]
    return all(
        factor * len(title) < length and len(title.split()) <= _MAX_WORDS
        for title, length in zip(titles, shortest, strict=True)
    )


def _is_label(title: str, number: int, rows: Sequence[Sequence[str]]) -> bool:
    num_equal = sum(number < len(row) and row[number].strip() == title for row in rows)
    return num_equal > max(1, _LABEL_SHARE * len(rows))  # once may be a word of a list


def _roles_in(words: Sequence[str]) -> list[str]:
    return [word for word in words if word in ROLES or word in _MEANING_OF]


def _num_roles(titles: Sequence[Sequence[str]]) -> int:
    """How many names hold a role; different words of one meaning count as one."""
    found: dict[str, list[str]] = defaultdict(list)
    for words in titles:
        roles = _roles_in(words)
        if roles and len(words) <= _MAX_WORDS:
            found[_MEANING_OF.get(roles[0], roles[0])].append(roles[0])
    return sum(len(roles) if len(set(roles)) == 1 else 1 for roles in found.values())


def is_title_line(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether a first row has text in one of its cells only, and the row below holds the names of the columns.

    Above a pair, such a row does no harm: it is a pair without a translation, which is dropped.
    """
    has_names_below = len(rows) > 1 and is_header([cell.strip() for cell in rows[0]], rows[1:])
    return sum(map(bool, titles)) == 1 and has_names_below


def looks_like_names(row: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether a first row, cut to its source and target, differs from the pairs below as names of columns do.

    Names are short and end without punctuation. This is a reason to ask, no proof.
    """
    cells = [cell.strip() for cell in row]
    if not all(cells) or any(map(_is_closed, cells)):
        return False
    num_words = [len(cell.split()) for cell in cells]
    if max(num_words) > _MAX_WORDS:
        return False
    if any(named_language(cell) for cell in cells):
        return True
    if len(rows) < _MIN_ROWS_TO_COMPARE:
        return False
    are_closed = share_of(rows, lambda below: all(_is_closed(cell.strip()) for cell in below))
    are_short = share_of(rows, lambda below: all(len(cell.split()) <= 2 for cell in below))
    return are_closed > 0.9 or (max(num_words) <= 2 and are_short < 0.05)


def _is_closed(text: str) -> bool:
    return bool(text) and unicodedata.category(text[-1]).startswith("P")


def kind_of_cells(cells: Sequence[str]) -> str:
    """What the cells of a column hold, by the majority of those that are not empty."""
    filled = [cell.strip() for cell in cells if cell.strip()]
    if 2 * len(filled) < len(cells) or not filled:
        return "nothing" if not filled else "gaps"
    if share_of(filled, lambda cell: re.match(r"\w+://|www\.", cell) is not None) > 0.5:
        return "links"
    if share_of(filled, lambda cell: _DATE.fullmatch(cell) is not None) > 0.5:
        return "dates"
    if share_of(filled, lambda cell: any(char.isalpha() for char in cell)) < 0.5:
        return "numbers"
    is_long = share_of(filled, lambda cell: len(cell.split()) > 1) > 0.1
    if len(filled) >= _FEW_ROWS and len(set(filled)) < (0.02 if is_long else 0.2) * len(filled):
        return "labels"
    return "text"


def share_of(cells: Sequence[Any], holds: Any) -> float:
    return sum(bool(holds(cell)) for cell in cells) / len(cells)
