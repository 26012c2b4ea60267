import bz2
import csv
import gzip
import io
import lzma
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard as zstd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transformer_cli.data.sources.lines import MAX_LINE_BYTES, RawPair
from transformer_cli.data.sources.tables import Fields, read_table
from transformer_cli.process.errors import DataError

ANY = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
CELL = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


def _fields(source: int | str | None = None, target: int | str | None = None) -> Fields:
    return Fields(source, target, "en", "it", "data.corpora.0")


def _read(
    folder: Path,
    content: str | bytes,
    kind: str = "csv",
    fields: Fields | None = None,
    has_header: bool | None = None,
) -> list[RawPair]:
    path = folder / f"a.{kind}"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    kind = kind.partition(".")[0]  # what follows is a compression
    return list(read_table(path, kind, fields or _fields(), has_header=has_header))


def _texts(pairs: list[RawPair]) -> list[tuple[str, str]]:
    return [((pair.source or b"").decode(), (pair.target or b"").decode()) for pair in pairs]


@pytest.mark.long
@ANY
@given(
    rows=st.lists(st.tuples(CELL, CELL), min_size=1),
    delimiter=st.sampled_from(",;\t"),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_what_the_standard_writer_writes_is_read_back(
    rows: list[tuple[str, str]], delimiter: str, end: str, tmp_path: Path
) -> None:
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows(rows)
    found = _texts(_read(tmp_path, "sep=" + delimiter + "\n" + stream.getvalue(), fields=_fields(0, 1)))
    # A line end inside a field is one line feed, however it was written.
    assert found == [tuple(cell.replace("\r\n", "\n") for cell in row) for row in rows]


@ANY
@given(
    rows=st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=5),
    delimiter=st.sampled_from(",;\t"),
)
def test_rows_are_cut_as_by_the_standard_reader(
    rows: list[tuple[str, str, str]], delimiter: str, tmp_path: Path
) -> None:
    rows = [tuple(cell.replace("\r", "") for cell in row) for row in rows]  # type: ignore[misc]
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter, lineterminator="\n").writerows(rows)
    text = stream.getvalue()
    expected = [(row[2], row[0]) for row in csv.reader(io.StringIO(text), delimiter=delimiter)]
    assert _texts(_read(tmp_path, f"sep={delimiter}\n{text}", fields=_fields(2, 0))) == expected


@pytest.mark.parametrize(
    ("line", "source"),
    [
        ('"a ""b"" c",x', 'a "b" c'),
        ('"a, b",x', "a, b"),
        ('a "b" c,x', 'a "b" c'),
        ('5" pipe,x', '5" pipe'),
        ('"",x', ""),
        ('"""",x', '"'),
        (' "a",x', ' "a"'),
        ('"a""",x', 'a"'),
        ('"""a"" b",x', '"a" b'),
        ("a\rb,x", "a\rb"),
        ("a\u2028b,x", "a\u2028b"),
    ],
)
def test_quotes_are_taken_off_where_they_enclose_a_field(line: str, source: str, tmp_path: Path) -> None:
    assert _texts(_read(tmp_path, f"{line}\n1,2\n")) == [(source, "x"), ("1", "2")]


def test_a_field_may_run_over_several_lines_and_the_row_has_the_number_of_its_first(
    tmp_path: Path,
) -> None:
    content = 'one,uno\r\n"two\r\n\r\nlines, ""quoted""","due\r\nrighe"\r\nthree,tre\r\n'
    assert _read(tmp_path, content) == [
        RawPair(1, b"one", b"uno"),
        RawPair(2, b'two\n\nlines, "quoted"', b"due\nrighe"),
        RawPair(6, b"three", b"tre"),
    ]


def test_a_spreadsheet_saved_in_europe_is_read(tmp_path: Path) -> None:
    content = '\ufeffEnglish;Italiano\r\n"Hello; you, there";"Ciao, tu"\r\nYes, sir;Sì, signore\r\n'
    assert _texts(_read(tmp_path, content, fields=_fields("English", "Italiano"))) == [
        ("Hello; you, there", "Ciao, tu"),
        ("Yes, sir", "Sì, signore"),
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_the_one_that_all_rows_have(delimiter: str, tmp_path: Path) -> None:
    rows = [("a, b; c", "d"), ("e", "f; g"), ("h,,,", "i")]
    content = "".join(f'"{source}"{delimiter}"{target}"\n' for source, target in rows)
    assert _texts(_read(tmp_path, content)) == rows


def test_commas_in_sentences_do_not_hide_the_semicolon(tmp_path: Path) -> None:
    assert _texts(_read(tmp_path, "a, b;c, d\ne;f\n")) == [("a, b", "c, d"), ("e", "f")]


def test_quotes_are_text_in_tsv(tmp_path: Path) -> None:
    assert _texts(_read(tmp_path, '"a\tb"\n"\t""\n', "tsv")) == [('"a', 'b"'), ('"', '""')]


@pytest.mark.parametrize("kind", ["tsv", "csv"])
def test_a_row_with_another_number_of_columns_stops_with_its_line(kind: str, tmp_path: Path) -> None:
    rows = [b"a\tb"] * 200 + [b"a\tb\tc"]
    with pytest.raises(DataError, match=rf"a\.{kind}:201: 3 columns, where the first row has 2") as caught:
        _read(tmp_path, b"\n".join(rows), kind)
    assert "tab inside a sentence?" in str(caught.value.hint)


def test_a_quote_that_never_closes_stops_with_the_line_where_it_opens(tmp_path: Path) -> None:
    rows = [b"a,b"] * 200 + [b'"c,d'] + [b"e,f"] * 3
    with pytest.raises(DataError, match=r"a\.csv:201: a quote opens a field here, and no quote closes it"):
        _read(tmp_path, b"\n".join(rows))
    with pytest.raises(DataError, match=r"a\.csv:201: a quote opens"):
        _read(tmp_path, b"\n".join(rows + [b"x" * 1000] * (MAX_LINE_BYTES // 1000)))


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ('English,Italian\nHello,Ciao\nGood,"Buono\nBye,Ciao\n', 3),
        ('Good,"Buono\nBye,Ciao\n', 1),
        ('"Good,Buono\nBye,Ciao\n', 1),
        ('a;b\n1, 2;"3\n4, 5;6\n', 2),
        ('a\tb\n1, 2\t"3\n4, 5\t6\n', 2),
        ('a,b\n"one\ntwo","three\nc,d\n', 3),
    ],
)
def test_a_quote_among_the_first_rows_that_never_closes_is_told_too(content: str, line: int, tmp_path: Path) -> None:
    """The open quote must not hide the delimiter: the error is about the quote, not about columns."""
    with pytest.raises(DataError, match=rf"a\.csv:{line}: a quote opens .* and no quote closes it"):
        _read(tmp_path, content)


@pytest.mark.parametrize(
    ("content", "line", "found"),
    [
        ('"Hello,Ciao\n"The cat sleeps.","Il gatto dorme."\n', 1, "in line 2 .*'The cat sleeps"),
        ('a,b\n"Hello,Ciao\n"The cat","Il gatto"\nc,d\n', 2, "in line 3 .*'The cat\"'"),
        ('a,b\nc,"d" e\n', 2, "closes it is followed by ' e', where a comma"),
        ('a,b\n"c\nd","e"f\n', 3, "closes it is followed by 'f'"),
        ('a;b\n"c" or d;e\n', 2, "followed by ' or d', where a semicolon"),
        ('"Hi", he said\tCiao\nc\td\n', 1, "followed by ', he said', where a tab"),
        ('a,b\n"c""d"e,f\n', 2, "followed by 'e'"),
        ("a,b\n" * 150 + '"c"d,e\n', 151, "followed by 'd'"),
    ],
)
def test_text_behind_a_closing_quote_stops_with_the_line_where_the_quote_opens(
    content: str, line: int, found: str, tmp_path: Path
) -> None:
    """A stray quote joins all rows up to the next quote into one field; such a pair is not returned."""
    with pytest.raises(DataError, match=rf"a\.csv:{line}: a quote opens .*{found}") as caught:
        _read(tmp_path, content)
    assert "double the quotes that are part of a sentence" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("kind", "delimiter", "hint"),
    [
        (
            "csv",
            ",",
            "is a comma missing, or is there a line end or an unpaired quote inside a sentence?",
        ),
        ("csv", ";", "is a semicolon missing"),
        ("tsv", "\t", "is a tab missing, or is there a line end inside a sentence?"),
    ],
)
def test_the_hint_for_a_row_with_too_few_columns_says_what_may_be_missing(
    kind: str, delimiter: str, hint: str, tmp_path: Path
) -> None:
    rows = [delimiter.join("ab"), "cd", delimiter.join("ef")]
    with pytest.raises(DataError, match=r":2: 1 column, where the first row has 2") as caught:
        _read(tmp_path, "\n".join(rows), kind)
    assert hint in str(caught.value.hint)
    rows = [delimiter.join("abc"), delimiter.join("de")]
    with pytest.raises(DataError, match=r":2: 2 columns, where the first row has 3"):
        _read(tmp_path, "\n".join(rows), kind)


@pytest.mark.parametrize("kind", ["tsv", "csv"])
def test_blank_lines_above_the_first_row_are_empty_pairs(kind: str, tmp_path: Path) -> None:
    pairs = _read(tmp_path, "\r\n\nen\tit\nyou\ttu\n", kind)
    assert pairs == [RawPair(1, b"", b""), RawPair(2, b"", b""), RawPair(4, b"you", b"tu")]


@pytest.mark.parametrize("kind", ["tsv", "csv"])
def test_one_column_is_an_error(kind: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="one column only, where two are needed; it begins with 'hello'"):
        _read(tmp_path, "hello\nyou\n", kind)


@pytest.mark.parametrize(
    ("fields", "has_header", "expected"),
    [
        (_fields(), None, [("The sea", "Il mare"), ("The sky", "Il cielo")]),
        (_fields(1, 2), None, [("en", "it"), ("The sea", "Il mare"), ("The sky", "Il cielo")]),
        (_fields(1, 2), True, [("The sea", "Il mare"), ("The sky", "Il cielo")]),
        (_fields("en", "it"), None, [("The sea", "Il mare"), ("The sky", "Il cielo")]),
        (_fields("it", "en"), None, [("Il mare", "The sea"), ("Il cielo", "The sky")]),
        (_fields("it", 0), None, [("Il mare", "1"), ("Il cielo", "2")]),
        (_fields(None, "note"), None, [("The sea", "x"), ("The sky", "y")]),
    ],
)
def test_columns_are_found_by_name_by_number_and_by_default(
    fields: Fields, has_header: bool | None, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    content = "id\ten\tit\tnote\n1\tThe sea\tIl mare\tx\n2\tThe sky\tIl cielo\ty\n"
    assert _texts(_read(tmp_path, content, "tsv", fields, has_header)) == expected


@pytest.mark.parametrize("header", ["English,Italian", "EN,DE", "source,Target", "english,id,italiano", "en_US,it-IT"])
def test_a_first_row_that_looks_like_a_header_but_is_read_as_a_pair_gives_one_warning(
    header: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    content = f"{header}\n{header.replace(header[0], 'x')}\n"
    fields = _fields(0, 2) if "id" in header else _fields()
    for _ in range(3):  # once for each split
        assert len(_read(tmp_path, content, fields=fields)) == 2
    (record,) = caplog.records
    told = record.getMessage()
    assert told.startswith(f"{tmp_path}/a.csv: the first row, {header.split(',')[0]} and ")
    assert "data.corpora.0.has_header: true" in told
    assert "source_field" in told


@pytest.mark.parametrize(
    ("content", "fields", "has_header"),
    [
        ("English,Italian\na,b\n", _fields(), True),
        ("English,Italian\na,b\n", _fields(), False),
        ("English,Italian\na,b\n", _fields("English", "Italian"), None),
        ("en,it\na,b\n", _fields(), None),  # taken as a header
        ("Hello,Ciao\nEnglish,Italian\n", _fields(), None),
        ("English,Inglese\na,b\n", _fields(), None),
        ("No,No\na,b\n", _fields(), None),
        ("1,English,Italian\n2,a,b\n", _fields(), None),  # other columns are read
    ],
)
def test_a_first_row_that_is_no_header_or_a_known_header_gives_no_warning(
    content: str,
    fields: Fields,
    has_header: bool | None,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert _read(tmp_path, content, fields=fields, has_header=has_header)
    assert "looks like a header" not in caplog.text


def test_without_names_the_first_two_columns_are_taken(tmp_path: Path) -> None:
    assert _texts(_read(tmp_path, "a\tb\tc\n", "tsv")) == [("a", "b")]
    assert _texts(_read(tmp_path, "a\tb\tc\n", "tsv", _fields(1, None))) == [("b", "a")]
    assert _texts(_read(tmp_path, "a\tb\tc\n", "tsv", has_header=True)) == []


@pytest.mark.parametrize(
    ("content", "fields", "told"),
    [
        (
            "1276\tLet's try.\t2481\tProviamo.\n",
            _fields(),
            "the source is column 0 ('1276'), the target is column 1 (\"Let's try.\"); not used: 2 ('2481'), 3 ('Proviamo.')",
        ),
        ("id\ten\tsource\n1\ta\tb\n", _fields("en"), "column 1 ('en'), the target is column 0 ('id')"),
        ("1276\ta\t2481\tb\n", _fields(1, 3), None),
        ("id\ten\tit\n1\ta\tb\n", _fields(), None),  # found by the languages
        ("a\tb\n", _fields(), None),
    ],
)
def test_columns_that_are_chosen_by_their_place_while_others_are_not_used_give_a_warning(
    content: str,
    fields: Fields,
    told: str | None,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for _ in range(2):  # told once, although a corpus is read several times
        _read(tmp_path, content, "tsv", fields)
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == (told is not None)
    assert told is None or told in warnings[0]
    assert told is None or "source_field and target_field of data.corpora.0" in warnings[0]


def test_a_column_that_does_not_exist_is_an_error_that_names_those_found(tmp_path: Path) -> None:
    content = "english,italian\na,b\n"
    with pytest.raises(DataError, match="no column italiano, found english, italian") as caught:
        _read(tmp_path, content, fields=_fields("english", "italiano"))
    assert "did you mean italian?" in str(caught.value.hint)
    assert "data.corpora.0.source_field" in str(caught.value.hint)
    with pytest.raises(DataError, match="no column 2, found 0, 1"):
        _read(tmp_path, content, fields=_fields(0, 2))


@pytest.mark.parametrize(
    ("encoding", "name", "told"),
    [("windows-1252", "Français", "windows-1252"), ("windows-1251", "Русский", "windows-1251")],
)
def test_a_header_in_an_old_encoding_is_named_as_such(tmp_path: Path, encoding: str, name: str, told: str) -> None:
    content = f"No;English;{name}\n1;a;b\n".encode(encoding)
    with pytest.raises(DataError, match=f"no column {name} .* not UTF-8; as {told}: No, English, {name}") as caught:
        _read(tmp_path, content, fields=_fields("English", name))
    assert f"data.corpora.0.encoding: {told}" in str(caught.value.hint)


def test_a_header_that_is_damaged_asks_for_an_encoding(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no column Italian in the header") as caught:
        _read(tmp_path, b"English;\xff\x81talian\na;b\n", fields=_fields("English", "Italian"))
    assert "data.corpora.0.encoding, such as windows-1252" in str(caught.value.hint)


def test_columns_that_cannot_be_told_apart_are_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="2 columns are named a"):
        _read(tmp_path, "a,a,b\n1,2,3\n", fields=_fields("a", "b"))
    with pytest.raises(DataError, match="column 1 is both source and target"):
        _read(tmp_path, "a,b\n1,2\n", fields=_fields("b", 1))
    with pytest.raises(DataError, match="given by name, but has_header is false"):
        _read(tmp_path, "a,b\n1,2\n", fields=_fields("a", "b"), has_header=False)


@pytest.mark.parametrize("kind", ["tsv", "csv"])
def test_blank_rows_are_empty_pairs_and_long_ones_are_left_out_in_their_place(kind: str, tmp_path: Path) -> None:
    long = b"x" * MAX_LINE_BYTES
    assert _read(tmp_path, b"a\tb\n\n" + long + b"\tc\nd\te\n", kind) == [
        RawPair(1, b"a", b"b"),
        RawPair(2, b"", b""),
        RawPair(3, None, None),
        RawPair(4, b"d", b"e"),
    ]


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress), (".zst", zstd.compress)],
    ids=["gz", "bz2", "xz", "zst"],
)
def test_a_compressed_table_that_is_cut_short_is_told_as_such(
    suffix: str, compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    """E10: also if no row is missing, and if the table is so short that sniffing reads all of it."""
    words = random.Random(1).sample(range(10**9), 1200)
    rows = [f"{words[n : n + 10]}".replace(",", "") + f",{words[n]}" for n in range(0, 1200, 20)]
    whole = compress("\n".join(rows).encode())
    assert len("\n".join(rows)) > 4096, "more than is looked at as a beginning"
    for missing in (1, 2, 4, 8, 9, 20, len(whole) // 2):
        with pytest.raises(DataError, match="cut short: the end of its"):
            _read(tmp_path, whole[:-missing], f"csv{suffix}")
    assert len(_read(tmp_path, whole, f"csv{suffix}")) == 60
