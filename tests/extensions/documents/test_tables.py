"""CSV and TSV: the chosen columns are translated, and every other byte stays."""

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.extensions.documents.formats import ReadingOptions, ReadingWatch
from transformer_cli.extensions.documents.tables import read_csv, read_tsv, rows_of_table
from transformer_cli.extensions.documents.translation import translate_document
from transformer_cli.process.errors import DataError, UsageError

from .fake_translators import UPPER, Identity, WordByWord, done, translated


@pytest.mark.parametrize("columns", [("English",), ("English=Italian",), ("1",)])
@pytest.mark.parametrize(
    ("data", "row", "found"),
    [
        ('English,Italian\nuno,\n"due,tre",\nquattro, cinque,\n', 4, "3 cells, and the first row has 2: if a text of it has a comma"),
        ('English\n"uno;\ndue"\n\nuno, due\n', 4, "2 cells, and the first row has 1: if a text of it has a comma"),
        ("English\tNote\nuno\tx\ty\tz\n", 2, "4 cells, and the first row has 2: if a text of it has a tab"),
    ],
)  # fmt: skip
def test_a_row_with_more_cells_than_the_first_one_is_named(
    data: str, row: int, found: str, columns: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    (read_tsv if "\t" in data else read_csv)(data.encode(), ReadingOptions(columns))
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith(f"row {row}: it has {found} inside")


def test_shorter_rows_are_usual_and_few_longer_ones_are_named(caplog: pytest.LogCaptureFixture) -> None:
    read_csv(b"English,Note,\nuno,x,\ndue\ntre,y\n\n", ReadingOptions(("English",)))
    assert not caplog.messages
    read_csv(b"English\n" + b"uno, due\n" * 20, ReadingOptions(("English",)))
    assert len(caplog.messages) == 6
    assert caplog.messages[-1] == "15 more rows have more cells than the first row"


@pytest.mark.parametrize(("data", "shown"), [(b"Text\n", "1 column: Text"), (b"a,b\n", "2 columns: a, b")])
def test_the_columns_of_a_table_are_counted(data: bytes, shown: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_csv(data, ReadingOptions(("English",)))
    assert refused.value.hint == f"the table has {shown}"


TEXTS = st.text(st.sampled_from("ab ,;\"\n\r'|x\u00e8"), max_size=12)
TABLES = st.lists(st.lists(TEXTS, min_size=2, max_size=4), min_size=1, max_size=6)


def with_lines_in_short_rows(table: list[list[str]], width: int) -> list[list[str]]:
    """Between tabs, a cell of two lines in a longer row looks like two lone marks in rows of the width of the first one."""
    return [[re.sub("[\r\n]", " ", cell) if len(row) > width else cell for cell in row] for row in table]


@given(TABLES, st.sampled_from(",;\t|"), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_rows_are_those_of_the_csv_module(table: list[list[str]], delimiter: str, quoting: int) -> None:
    file = io.StringIO(newline="")
    table = with_lines_in_short_rows(table, len(table[0])) if delimiter == "\t" else table
    csv.writer(file, delimiter=delimiter, quoting=quoting).writerows(table)
    found = [[cell.value for cell in row] for row in rows_of_table(file.getvalue(), delimiter, ReadingWatch())]
    assert found == list(csv.reader(io.StringIO(file.getvalue(), newline=""), delimiter=delimiter))


@given(
    TABLES,
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
)
def test_the_chosen_column_changes_and_nothing_else(table: list[list[str]], quoting: int, mark: bytes) -> None:
    file = io.StringIO(newline="")
    csv.writer(file, delimiter="\t", quoting=quoting).writerows([["a", "b"], *with_lines_in_short_rows(table, 2)])
    data = mark + file.getvalue().encode()
    document = read_tsv(data, ReadingOptions(columns=("2",)))
    assert translate_document(document, Identity()).data == data
    found = done(document, UPPER).data.removeprefix(mark).decode()
    before = list(csv.reader(io.StringIO(file.getvalue(), newline=""), delimiter="\t"))
    after = list(csv.reader(io.StringIO(found, newline=""), delimiter="\t"))
    for old, new in zip(before, after, strict=True):
        assert [old[:1], old[2:]] == [new[:1], new[2:]]
        assert "".join(new[1:2]).split() == "".join(old[1:2]).upper().split()


def test_a_name_chooses_a_column_and_the_first_row_stays() -> None:
    table = b'id;title\n1;"red; car"\n2;blue car\r\n'
    document = read_csv(table, ReadingOptions(columns=("title",)))
    assert done(document, UPPER).data == b'id;title\n1;"RED; CAR"\n2;BLUE CAR\r\n'
    assert [segment.place for segment in document.segments] == [
        "row 2, column 2",
        "row 3, column 2",
    ]


def test_a_place_is_the_row_that_a_spreadsheet_shows() -> None:
    """Line breaks inside cells count for nothing, blank rows do, and the line that names the delimiter is no row."""
    table = b'sep=;\r\nid;title\r\n1;"red\r\ncar"\r\n;\r\n\r\n2;blue car\r\n'
    document = read_csv(table, ReadingOptions(columns=("title",)))
    assert [segment.place for segment in document.segments] == ["row 2, column 2", "row 5, column 2"]


def test_a_cell_is_quoted_if_its_translation_needs_it() -> None:
    from .fake_translators import WordByWord

    document = read_csv(b"a,b\nx,one two\n", ReadingOptions(columns=("b",)))
    assert done(document, WordByWord(lambda word: word + ",")).data == b'a,b\nx,"one, two,"\n'


def test_without_columns_the_message_names_them() -> None:
    with pytest.raises(UsageError) as caught:
        read_csv(b"id,title\n1,car\n")
    assert "--columns" in str(caught.value)
    assert "the table has 2 columns: id, title" in str(caught.value)


def test_a_column_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no column text"):
        read_csv(b"id,title\n1,car\n", ReadingOptions(columns=("text",)))


def test_an_open_quotation_mark_is_refused_with_its_line() -> None:
    with pytest.raises(DataError, match="line 2: a quotation mark opens"):
        read_csv(b'id,title\n1,"car\n', ReadingOptions(columns=("title",)))


def test_a_lone_mark_between_tabs_is_text_and_whole_cells_in_marks_stay_so() -> None:
    data = (
        b'text\tn\n"Lone mark\t1\n"in ""marks"", a\tb"\t2\n"two\nlines"\t3\n"Yes," he said.\t4\n'
        b'6" disk\t"\nlone at the end"\t6\n"open\t7\n'
    )
    document = read_tsv(data, ReadingOptions(columns=("text",)))
    assert translate_document(document, Identity()).data == data
    assert [segment.place.partition(",")[0] for segment in document.segments] == [
        f"row {number}" for number in range(2, 9)
    ]
    assert done(document, UPPER).data == (
        b'text\tn\n"LONE MARK\t1\n"IN ""MARKS"", A\tB"\t2\n"TWO\nLINES"\t3\n"YES," HE SAID.\t4\n'
        b'6" DISK\t"\nLONE AT THE END"\t6\n"OPEN\t7\n'
    )


def test_a_mark_inside_a_cell_without_marks_is_plain_text_afterwards_too() -> None:
    data = b'text\tn\nA 5" disk, "red"\t1\n'
    found = done(read_tsv(data, ReadingOptions(columns=("text",))), UPPER).data
    assert found == b'text\tn\nA 5" DISK, "RED"\t1\n'


@pytest.mark.parametrize(
    "text",
    [
        '"Name, first,\n(all, of them)";text\nx;the house\n',
        '"Name,\r\nfirst";"text"\r\n"x";"the house"\r\n',
        '"\t\n start \t\n end",text\nx,the house\n',
        "name;text\rA, B, C, D;the house\r",
        '5" pipe;text\n6" pipe, 7" pipe;the house\n',
        '"open\ttext\nHe said "b", c, d\tthe house\n',
    ],
)
def test_signs_inside_quoted_names_and_other_line_ends_do_not_decide_the_delimiter(text: str) -> None:
    document = read_csv(text.encode(), ReadingOptions(columns=("text",)))
    assert translated(document) == text.replace("the house", "THE HOUSE")


@pytest.mark.parametrize("line", ["sep=;\r\n", '"sep=;"\n', "SEP=;\n"])
def test_the_line_of_excel_that_names_the_delimiter_is_no_row(line: str) -> None:
    text = f"{line}id;text\n1;the house, too\n"
    document = read_csv(text.encode(), ReadingOptions(columns=("text",)))
    assert translated(document) == text.replace("the house, too", "THE HOUSE, TOO")


@pytest.mark.parametrize(
    ("cell", "is_formula"),
    [
        ("=SUM(A1:A9)", True),
        ("=B2*1.2", True),
        ("=$A$1&x", True),
        ("=IF(A1>0;yes;no)", True),
        ("=Sheet1!A1", True),
        ("= the house", False),
        ("=== Title ===", False),
        ("a =SUM of b", False),
    ],
)
def test_formulas_of_a_spreadsheet_stay(cell: str, is_formula: bool) -> None:
    text = f"a\t{cell}\n"
    found = done(read_tsv(text.encode(), ReadingOptions(columns=("2",)))).data.decode()
    assert found == (text if is_formula else f"a\t{cell.upper()}\n")


@pytest.mark.parametrize("columns", [("text",), ("text", "text"), ("2", "text"), ("text", "3", "2")])
def test_all_columns_of_one_name_are_translated_once(columns: tuple[str, ...]) -> None:
    data = b"id,text,text\n1,a dog,a cat\n"
    found = done(read_csv(data, ReadingOptions(columns=columns)), WordByWord(lambda word: f"{word}x"))
    assert found.data == b"id,text,text\n1,ax dogx,ax catx\n"


def test_translations_go_into_a_new_column() -> None:
    table = b'id;English;note\n1;"red; car";x\n2;42\n\n3;=A1;y\n4;the ""big"" cat;"z"\n5\n'
    document = read_csv(table, ReadingOptions(columns=("English=Italian",)))
    assert done(document, UPPER).data == (
        b'id;English;note;Italian\n1;"red; car";x;"RED; CAR"\n2;42;;42\n\n3;=A1;y;\n'
        b'4;the ""big"" cat;"z";THE ""BIG"" CAT\n5;;;\n'
    )
    assert [one.place for one in document.segments] == ["row 2, column 2", "row 6, column 2"]


def test_only_empty_cells_of_a_column_of_translations_are_filled() -> None:
    table = b"English,Italian,id\ncat,,1\ndog,cane,2\nTaxi,,3\n"
    document = read_csv(table, ReadingOptions(columns=("English=Italian",)))
    assert done(document, UPPER).data == b"English,Italian,id\ncat,CAT,1\ndog,cane,2\nTaxi,TAXI,3\n"
    assert translate_document(document, Identity()).data == table.replace(b"cat,,", b"cat,cat,").replace(
        b"Taxi,,", b"Taxi,Taxi,"
    )
    by_number = read_csv(b"cat,\ndog,\n", ReadingOptions(columns=("1=2",)))
    assert done(by_number, UPPER).data == b"cat,CAT\ndog,DOG\n"


def test_several_columns_of_translations_stand_in_their_order() -> None:
    table = b"a\tb\none\ttwo\nthree\n"
    document = read_tsv(table, ReadingOptions(columns=("b=B", "a=A", "a")))
    assert done(document, UPPER).data == b"a\tb\tB\tA\nONE\ttwo\tTWO\tONE\nTHREE\t\t\tTHREE\n"


@given(TABLES, st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_a_new_column_has_a_translation_for_each_row_and_the_others_stay(table: list[list[str]], quoting: int) -> None:
    file = io.StringIO(newline="")
    csv.writer(file, delimiter="\t", quoting=quoting).writerows([["a", "b"], *with_lines_in_short_rows(table, 2)])
    document = read_tsv(file.getvalue().encode(), ReadingOptions(columns=("b=c",)))
    found = done(document, UPPER).data.decode()
    before = [*csv.reader(io.StringIO(file.getvalue(), newline=""), delimiter="\t")]
    after = [*csv.reader(io.StringIO(found, newline=""), delimiter="\t")]
    assert after[0] == ["a", "b", "c"]
    for old, new in zip(before[1:], after[1:], strict=True):
        assert new[: len(old)][:2] == old[:2]
        if len(old) == 2:
            assert new[2].split() == old[1].upper().split()


@pytest.mark.parametrize("columns", ["a=a", "a=", "c=d", "a=b,a=b", "a=x,b=x", "a=9"])
def test_a_column_of_translations_that_cannot_be_is_refused(columns: str) -> None:
    with pytest.raises(UsageError):
        read_csv(b"a,b\none,two\n", ReadingOptions(columns=tuple(columns.split(","))))


def test_a_name_with_an_equals_sign_is_a_name() -> None:
    document = read_csv(b"a=b,c\none,two\n", ReadingOptions(columns=("a=b",)))
    assert done(document, UPPER).data == b"a=b,c\nONE,two\n"


@pytest.mark.parametrize(
    ("data", "columns", "written"),
    [
        ("A report\nid;text\n1;dog\n2;a, cat\n", ("2",), "A report\nid;TEXT\n1;DOG\n2;A, CAT\n"),
        ("a,b\n1,x,dog\n2,y,cat\n", ("3",), "a,b\n1,x,DOG\n2,y,CAT\n"),
        ("a,b\n1,x,dog\n2,y\n", ("3=it",), "a,b,,it\n1,x,dog,DOG\n2,y,,\n"),
    ],
)
def test_columns_behind_a_short_first_row_are_read(data: str, columns: tuple[str, ...], written: str) -> None:
    assert translated(read_csv(data.encode(), ReadingOptions(columns))) == written
