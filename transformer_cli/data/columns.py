"""Finds the two columns of an unknown table that hold sentences and their translations, and whether its first row names them."""

import difflib
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformer_cli.data.sources.lines import num_lone_returns, read_text_chunks
from transformer_cli.data.sources.records import first_records
from transformer_cli.data.sources.tables import OTHER_SEPARATORS, ROLES, first_rows, require_equal_columns
from transformer_cli.process.errors import DataError
from transformer_cli.process.messages import for_shell, on_one_line
from transformer_cli.text.languages import (
    UNKNOWN_LANGUAGE,
    best_match,
    code_of_language,
    contradicting_language,
    guess_language,
    is_known_language,
    language_in,
    name_of,
    named_language,
    primary_language,
    script_of_letters,
)
from transformer_cli.text.normalization import has_letter

NUM_SAMPLED_ROWS = 1000
_NUM_GUESSED_ROWS = 300
_IDENTIFIERS = frozenset({"id", "uuid", "url", "link", "key", "nr", "no", "index"})
# At most this many columns are named in a message.
_NUM_NAMED = 20


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, and what its first rows hold."""

    field: int | str
    """The column in a config: its name, or its number from 0."""
    title: str
    """Its name in the header; empty if there is none."""
    holds: str
    """text, numbers, dates, labels (few different values), links, gaps (most cells are empty) or nothing."""
    example: str
    language: str
    """The language of a text column, from its text or its name; `und` if neither shows it."""
    doubt: str | None = None
    """What is odd about the column, such as a name that its text contradicts."""


def columns_of(
    path: Path, kind: str, *, names: Sequence[str | None] = (), encoding: str | None = None
) -> tuple[list[Column], bool]:
    """The columns of a TSV, CSV, JSON Lines or Parquet file, and whether its first row is a header.

    Args:
        path: the file.
        kind: tsv, csv, jsonl or parquet.
        names: if the first row has one of these, it is a header.
        encoding: of the file; None: UTF-8.

    Raises:
        DataError: the file cannot be read, or has no rows.
    """
    if kind in ("jsonl", "parquet"):
        records = first_records(path, kind, NUM_SAMPLED_ROWS, encoding)
        fields = list(dict.fromkeys(field for record in records for field in record))
        if not fields:
            raise DataError(f"{path}: no rows")
        return [_column(field, field, [row.get(field) for row in records]) for field in fields], False
    require_line_feeds(path, encoding)
    rows = first_rows(path, kind, NUM_SAMPLED_ROWS, encoding)
    if not rows:
        raise DataError(f"{path}: no rows")
    _require_a_table(rows, path, kind)
    titles = [title.strip() for title in rows[0]]
    if is_title_line(titles, rows[1:]):
        raise _title_above(path, rows[0], "the other cells of this row are empty")
    require_equal_columns(path, kind, NUM_SAMPLED_ROWS, encoding)
    has_header = not set(titles).isdisjoint(names) or is_header(titles, rows[1:])
    columns = []
    for number, title in enumerate(titles):
        cells = [row[number] if number < len(row) else "" for row in rows[has_header:]]
        is_name = has_header and title and titles.count(title) == 1
        columns.append(_column(title if is_name else number, title if has_header else "", cells))
    return columns, has_header


def require_line_feeds(path: Path, encoding: str | None = None) -> None:
    """Refuse lines that a carriage return alone ends; a line feed in a quoted field may be in the file too."""
    beginning = next(read_text_chunks(path, encoding), b"")
    num_alone = num_lone_returns(beginning)
    if num_alone > beginning.count(b"\n"):
        raise DataError(
            f"{path}: a carriage return alone ends its lines, as on old Macs: {num_alone:,} at its beginning",
            hint=f"convert the line ends: tr '\\r' '\\n' < {for_shell(path)} > new{path.suffix}",
        )


def _require_a_table(rows: Sequence[Sequence[str]], path: Path, kind: str) -> None:
    """Refuse a table of one column, or one with a title above it."""
    widths = Counter(map(len, rows))
    usual = widths.most_common(1)[0][0]
    first = on_one_line(rows[0][0], 50)
    if len(rows[0]) == 1 and usual > 1:
        raise _title_above(path, rows[0], f"the rows below have {usual} columns")
    if len(rows[0]) > 1:
        return
    known = "a tab" if kind == "tsv" else "a comma, a semicolon or a tab"
    others = [name for mark, name in OTHER_SEPARATORS.items() if share_of(rows, lambda row: mark in row[0]) > 0.9]  # noqa: B023
    raise DataError(
        f"{path}: it has one column, where two are needed; it begins with {first!r}",
        hint=(f"{others[0]} may be meant to separate its columns; " if others else "")
        + f"{known} separates the columns of a {kind.upper()} file; save it so, or give two text files",
    )


def _title_above(path: Path, row: Sequence[str], why: str) -> DataError:
    title = on_one_line(next(filter(str.strip, row), ""), 50)
    return DataError(
        f"{path}: its first row has 1 column ({title}), and {why}: it looks like a title above the table",
        hint="remove the rows above the names of the columns, or above the first pair",
    )


def choose_columns(
    columns: Sequence[Column],
    fields: tuple[int | str | None, int | str | None],
    languages: tuple[str | None, str | None],
    where: str,
) -> tuple[Column, Column]:
    """The source column and the target column.

    Columns that the user names come first; then columns in the languages that the user names; then the
    first two columns of text, of which those named after a language are preferred.

    Raises:
        DataError: there are no two such columns.
    """
    chosen = [None if field is None else _named(columns, field, where) for field in fields]
    texts = [one for one in columns if one.holds == "text" and one not in chosen]
    texts.sort(key=lambda one: (_is_identifier(one), not named_language(one.title)))
    for side, language in enumerate(languages):
        if chosen[side] is None and language is not None:
            place = best_match(language, [one.language for one in texts])
            chosen[side] = None if place is None else texts[place]
            texts = [one for one in texts if one is not chosen[side]]
    best = iter(sorted(texts[: chosen.count(None)], key=columns.index))
    source, target = (next(best, None) if one is None else one for one in chosen)
    if source is not None and source is target:
        raise DataError(
            f"{where}: the source and the target are the same column, {source.title or source.field}",
            hint="give --source-field and --target-field two columns",
        )
    if source is None or target is None:
        named = [f"{one.title or one.field}: {one.holds}" for one in columns]
        held = "; ".join(named[:_NUM_NAMED]) + (
            f"; and {len(named) - _NUM_NAMED:,} more" if len(named) > _NUM_NAMED else ""
        )
        raise DataError(
            f"{where}: no two columns that hold sentences; its columns hold: {held}",
            hint="name them: --source-field NAME --target-field NAME (or numbers, from 0)",
        )
    return source, target


def _named(columns: Sequence[Column], field: int | str, where: str) -> Column:
    for number, column in enumerate(columns):
        if field in (column.field, column.title) or str(field) == str(number):
            return column
    names = [column.title or str(column.field) for column in columns]
    alike = {name.casefold(): name for name in reversed(names)}
    close = difflib.get_close_matches(str(field).casefold(), alike, n=1)
    hint = "give a name of a column as it is written, or its number from 0"
    shown = ", ".join(on_one_line(name, 50) for name in names[:_NUM_NAMED])
    raise DataError(
        f"{where}: no column {field}, found {shown}"
        + (f" and {len(names) - _NUM_NAMED:,} more" if len(names) > _NUM_NAMED else ""),
        hint=f"did you mean {alike[close[0]]}? {hint}" if close else hint,
    )


def _is_identifier(column: Column) -> bool:
    return column.title.casefold() in _IDENTIFIERS


def _column(field: int | str, title: str, cells: Sequence[Any]) -> Column:
    is_text = any(isinstance(cell, str) for cell in cells)
    texts = [cell if isinstance(cell, str) else "" for cell in cells]
    filled = [text.strip() for text in texts if text.strip()]
    kind = kind_of_cells(texts) if is_text else kind_of_cells(["" if one is None else "0" for one in cells])
    others = [str(cell) for cell in cells if cell is not None]
    language, doubt = UNKNOWN_LANGUAGE, None
    if kind == "text":
        what = f"column {on_one_line(title, 50)}"
        language, doubt = spoken_language(what, named_language(title), filled[:_NUM_GUESSED_ROWS])
    return Column(field, title, kind, next(iter([*filled, *others]), ""), language, doubt)


def spoken_language(what: str, named: str | None, sentences: Sequence[str]) -> tuple[str, str | None]:
    """The language of sentences, and a warning if it is not the one that their name says.

    Args:
        what: where the name stands, such as column Italian.
        named: the language that the name says, if any.
    """
    if named is None:
        return guess_language(sentences), None
    found = contradicting_language(named, sentences)
    if found is None:
        return named, _doubt_of_name(what, named, sentences)
    return found, (
        f"{what} looks like {name_of(found)} ({found}), and its name says "
        f"{name_of(named)} ({named}): its text decides; if the text deceives, correct the "
        "languages in the config, or give --source-language and --target-language"
    )


def _doubt_of_name(what: str, named: str, sentences: Sequence[str]) -> str | None:
    """A note about a language of which nothing but its code is known, if its text looks like another one."""
    found = guess_language(sentences)
    if is_known_language(named) or found in (UNKNOWN_LANGUAGE, primary_language(named)):
        return None
    return (
        f"{what} looks like {name_of(found)} ({found}), and its name says {name_of(named)} ({named}), of which no words are "
        "known here: its name decides; cells that are not translated may be the reason, else give --source-language and --target-language"
    )


def facts_of(column: Column) -> Mapping[str, str]:
    """A column as one row of a table for people."""
    what = f"text, {column.language}" if column.holds == "text" else column.holds
    name = on_one_line(column.title, 50) or f"column {column.field}"
    return {"name": name, "holds": what, "example": on_one_line(column.example, 50)}


# Whether the first row of a table names its columns, told by what its cells and the cells below hold.


_FEW_ROWS = 20
_DATE = re.compile(r"\d{4}([-/.])\d{1,2}\1\d{1,2}([T ].*)?|\d{1,2}([-/.])\d{1,2}\3\d{2,4}([ ,].*)?")
# Words in the names of columns -> what they mean. Two words of one meaning, such as sentence and frase, may be a pair
# of a word list.
_MEANINGS = {
    "sentence": "sentence sentences frase frasi frases phrase satz sätze oración zin zdanie предложение 例文 文",
    "text": "text texto testo texte tekst текст",
    "translation": "translation traduzione traduction traducción tradução traducere übersetzung zieltext vertaling tłumaczenie przekład "
    "překlad preklad prevod prijevod превод переклад перевод fordítás översättning översättningen oversettelse oversættelse käännös "
    "tõlge vertimas tulkojums çeviri hedef μετάφραση תרגום ترجمة الترجمة ترجمه अनुवाद অনুবাদ மொழிபெயர்ப்பு คำแปล dịch terjemahan "
    "翻訳 訳文 译文 譯文 翻译 翻譯 目标语言 目标文本 目標語言 번역 번역문",
    "original": "original originale originel оригинал оригінал источник исходный oryginał źródło źródłowy originál quelltext ausgangstext "
    "fuente origen fonte bron forrás källa lähde kaynak orijinal πρωτότυπο πηγή מקור الأصل المصدر मूल स्रोत মূল ต้นฉบับ gốc sumber asli "
    "原文 源文 源语言 源文本 源語言 原句 원문",
}
_MEANING_OF = {word: meaning for meaning, words in _MEANINGS.items() for word in words.split()}
# A name of a column has at most this many words.
_MAX_WORDS = 4
_MIN_ROWS_TO_COMPARE = 5
_FEW_SHORT = 0.05
_LABEL_SHARE = 0.1


def names_by_length_alone(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether a first row is a header only because it is short: it names neither languages nor roles."""
    words = [_words_of(title) for title in titles]
    named = {language_in(title) for title in titles} - {None}
    return is_header(titles, rows) and not named and not _num_roles(words)


def is_header(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether a first row names columns: languages or roles, or a word above a column of numbers.

    A cell that comes again and again below it, such as the language of each sentence, is a label and no name.
    """
    titles = ["" if _is_label(title, number, rows) else title for number, title in enumerate(titles)]
    words = [_words_of(title) for title in titles]
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
    if _are_in_another_script(titles, rows):
        return True
    return any(
        title
        and kind_of_cells([title]) == "text"
        and kind_of_cells([row[number] for row in rows if number < len(row)]) in ("numbers", "dates", "links")
        for number, title in enumerate(titles)
    )


def _language_of(title: str, number: int, rows: Sequence[Sequence[str]]) -> str | None:
    """The language that a title names; a code such as am is a word where words of this length stand below."""
    if language_in(title) is None and code_of_language(title) is not None:
        cells = [row[number].strip() for row in rows if number < len(row)]
        is_word = sum(len(cell) <= len(title) for cell in cells) > _FEW_SHORT * len(cells)
        return None if is_word else code_of_language(title)
    return named_language(title)


def _is_shortest(titles: Sequence[str], rows: Sequence[Sequence[str]], *, names_a_language: bool) -> bool:
    """Whether all cells are much shorter than all cells below, and end without punctuation, as names of columns do.

    Beside the name of a language, it is enough that they are shorter. Words that stand below again are text.
    """
    factor, num_needed = (1, _MIN_ROWS_TO_COMPARE) if names_a_language else (2, _FEW_ROWS)
    below = [[cell.strip() for cell in row] for row in rows if len(row) == len(titles)]
    if len(titles) < 2 or len(below) < num_needed or not all(titles) or any(map(_is_closed, titles)):
        return False
    words_below = [{word for cell in cells for word in _words_of(cell)} for cells in zip(*below, strict=True)]
    if all(words_below[number].issuperset(_words_of(title)) for number, title in enumerate(titles)):
        return False
    shortest = [min(filter(None, map(len, cells)), default=0) for cells in zip(*below, strict=True)]
    return all(
        factor * len(title) < length and len(title.split()) <= _MAX_WORDS
        for title, length in zip(titles, shortest, strict=True)
    )


def _are_in_another_script(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether all titles are in the script of one column, and no cell of another column is: names in the language of one side.

    In Latin letters this says nothing, because names of firms and programs stand in texts of every script.
    """
    scripts = [script_of_letters(title) for title in titles]
    below = [row for row in rows if len(row) == len(titles)]
    [script, *others] = {*scripts} - {""} or {"LATIN"}
    if others or script == "LATIN" or len(below) < _MIN_ROWS_TO_COMPARE:
        return False
    if any(_is_closed(title) or len(title.split()) > _MAX_WORDS for title in titles):
        return False
    column_scripts = [
        {script_of_letters(cell) for cell in cells}
        for cells, own in zip(zip(*below, strict=True), scripts, strict=True)
        if own
    ]
    return any(script in found for found in column_scripts) and any(
        found - {""} and script not in found for found in column_scripts
    )


def _is_label(title: str, number: int, rows: Sequence[Sequence[str]]) -> bool:
    num_equal = sum(number < len(row) and row[number].strip() == title for row in rows)
    return num_equal > max(1, _LABEL_SHARE * len(rows))  # once may be a word of a list


def _words_of(title: str) -> list[str]:
    """Letters and digits, with the marks that scripts of India and Thailand write as signs of their own."""
    kept = (sign if sign.isalnum() or unicodedata.category(sign).startswith("M") else " " for sign in title.casefold())
    return "".join(kept).split()


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
    # Above texts in two other scripts, as Russian and Chinese; the same name on both sides is rather a pair.
    is_latin = len({*cells}) > 1 and all(script_of_letters(cell) == "LATIN" for cell in cells)
    if is_latin and not any(script_of_letters(cell) == "LATIN" for below in rows for cell in below):
        return True
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
    if share_of(filled, has_letter) < 0.5:
        return "numbers"
    is_long = share_of(filled, lambda cell: len(cell.split()) > 1) > 0.1
    if len(filled) >= _FEW_ROWS and len(set(filled)) < (0.02 if is_long else 0.2) * len(filled):
        return "labels"
    return "text"


def share_of(cells: Sequence[Any], holds: Any) -> float:
    return sum(bool(holds(cell)) for cell in cells) / len(cells)
