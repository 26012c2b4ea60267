"""Documents are watched while they are read: too many texts are refused, and a reader ends when nobody waits."""

import re
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from transformer_cli.config.data import Direction
from transformer_cli.extensions.documents import (
    format_named,
    markdown_blocks,
    markdown_inline,
    read_document,
    translate_document,
)
from transformer_cli.extensions.documents import html as html_module
from transformer_cli.extensions.documents.formats import ReadingOptions, ReadingWatch, TooMuchText
from transformer_cli.extensions.documents.screens import words_with_markup
from transformer_cli.extensions.documents.translator import AnsweredText, AskedText
from transformer_cli.text.sentences import Sentence

from .archives import packed

pytestmark = pytest.mark.long

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"


def zipped(parts: dict[str, str]) -> bytes:
    """Without compression, which would look like a zip bomb here."""
    return packed(parts, stored=tuple(parts))


def _docx(paragraphs: int) -> bytes:
    body = "<w:p><w:r><w:t>uno</w:t></w:r></w:p>" * paragraphs
    return zipped({"word/document.xml": f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>'})


def _odt(paragraphs: int) -> bytes:
    body = "<t:p>uno</t:p>" * paragraphs
    return zipped({"content.xml": f'<o:d xmlns:o="{OFFICE}" xmlns:t="{TEXT}">{body}</o:d>'})


def _epub(chapters: int) -> bytes:
    """A book whose chapters have one paragraph each."""
    items = "".join(
        f'<item id="c{number}" href="c{number}.xhtml" media-type="application/xhtml+xml"/>'
        for number in range(chapters)
    )
    parts = {
        "META-INF/container.xml": '<container><rootfile full-path="book.opf"/></container>',
        "book.opf": f"<package><manifest>{items}</manifest></package>",
        **{f"c{number}.xhtml": "<p>uno</p>" for number in range(chapters)},
    }
    return zipped(parts)


TEXTS: dict[str, Callable[[int], bytes | str]] = {
    "txt": lambda count: "uno\n" * count,
    "md": lambda count: "uno\n\n" * count,
    "po": lambda count: 'msgid "uno"\nmsgstr ""\n\n' * count,
    "srt": lambda count: "1\n00:00:01,000 --> 00:00:02,000\nUno.\n\n" * count,
    "vtt": lambda count: "WEBVTT\n\n" + "00:01.000 --> 00:02.000\nUno.\n\n" * count,
    "csv": lambda count: "uno,2\n" * count,
    "tsv": lambda count: "uno\t2\n" * count,
    "json": lambda count: "[" + ",".join(['"uno"'] * count) + "]",
    "yaml": lambda count: "- uno\n" * count,
    "html": lambda count: "<p>uno" * count,
    "docx": _docx,
    "odt": _odt,
    "epub": _epub,
    "xliff": lambda count: (
        '<xliff version="1.2"><file source-language="en">'
        + '<trans-unit id="1"><source>uno</source></trans-unit>' * count
        + "</file></xliff>"
    ),
    "tmx": lambda count: (
        '<tmx version="1.4"><header srclang="en"/><body>'
        + '<tu><tuv xml:lang="en"><seg>uno</seg></tuv></tu>' * count
        + "</body></tmx>"
    ),
}
"""For each format: a document with so many texts."""


def read(name: str, data: bytes | str, watch: ReadingWatch) -> Any:
    encoded = data if isinstance(data, bytes) else data.encode()
    return read_document(encoded, format_named(name), ReadingOptions(columns=("1",), watch=watch))


@pytest.mark.parametrize("name", TEXTS)
def test_a_document_with_as_many_texts_as_are_allowed_is_read(name: str) -> None:
    document = read(name, TEXTS[name](20), ReadingWatch(max_segments=20))
    assert len(document.segments) == 20


@pytest.mark.parametrize("name", TEXTS)
def test_too_many_texts_are_refused_with_what_was_found_and_the_limit(name: str) -> None:
    with pytest.raises(TooMuchText, match=r"more than 20 texts to translate: 21 up to"):
        read(name, TEXTS[name](40), ReadingWatch(max_segments=20))


@pytest.mark.parametrize("name", TEXTS)
def test_too_many_characters_are_refused(name: str) -> None:
    with pytest.raises(TooMuchText, match=r"more than 50 characters to translate: 5[1-4] up to"):
        read(name, TEXTS[name](40), ReadingWatch(max_characters=50))


class Left(Exception):
    """Nobody waits any more."""


@pytest.mark.parametrize("name", TEXTS)
def test_a_reader_ends_at_the_next_look_when_nobody_waits(name: str) -> None:
    num_looks, leaves_at = 0, 3

    def check() -> None:
        nonlocal num_looks
        num_looks += 1
        if num_looks == leaves_at:
            raise Left

    watch = ReadingWatch(check)
    with pytest.raises(Left):
        read(name, TEXTS[name](600), watch)
    assert num_looks == leaves_at


MARKUP = {
    "html": "<b>",
    "md": "[",
    "json": "[0],",
    "yaml": "- 1\n",
    "csv": ",",
    "docx": None,
    "xliff": "<g/>",
    "po": "# a\n",
}


@pytest.mark.parametrize("name", MARKUP)
def test_markup_without_text_is_counted_too(name: str) -> None:
    """Each tag takes memory, although there is nothing to translate."""
    part = MARKUP[name]
    if name == "docx":
        xml = f'<w:document xmlns:w="{WORD}">' + "<w:p/>" * 3000 + "</w:document>"
        data: str | bytes = zipped({"word/document.xml": xml})
    elif name == "xliff":
        data = f'<xliff version="1.2">{str(part) * 3000}</xliff>'
    elif name == "json":
        data = f"[{str(part) * 3000}0]"
    else:
        data = str(part) * 3000
    read(name, data, ReadingWatch())
    with pytest.raises(TooMuchText, match="more than 1000 parts"):
        read(name, data, ReadingWatch(max_parts=1000))


def test_a_plain_text_takes_little_memory_for_each_short_line() -> None:
    num_lines = 20_000
    read("txt", "x\n", ReadingWatch())
    tracemalloc.start()
    document = read("txt", "x\n" * num_lines, ReadingWatch())
    num_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(document.segments) == num_lines
    assert num_bytes / num_lines < 400


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["txt", "html", "md", "csv", "srt", "po"])
def test_a_refused_document_of_a_mebibyte_takes_little_memory(name: str) -> None:
    data = TEXTS[name](1)
    data = data * (2**20 // len(data)) if isinstance(data, str) else data
    read(name, TEXTS[name](1), ReadingWatch())
    tracemalloc.start()
    with pytest.raises(TooMuchText):
        read(name, data, ReadingWatch(max_parts=5000, max_segments=1000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 150 * 2**20 if name == "md" else peak < 40 * 2**20


def num_steps(work: Callable[[], Any]) -> int:
    """How many lines of Python are executed."""
    count = 0

    def tracer(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


NESTED: dict[str, tuple[str, Callable[[int], str]]] = {
    "marks": ("html", lambda count: "<sup>" * count + "</sup>" * count),
    "links": ("html", lambda count: "<a>" * count + "</a>" * count),
    "breaks": ("html", lambda count: "x<br>" * count),
    "brackets": ("md", lambda count: "[" * count),
    "images": ("md", lambda count: "![" * count),
    "stars": ("md", lambda count: "*x" * count),
    "strings": ("po", lambda count: 'msgid ""\n' + '"x"\n' * count + 'msgstr ""\n'),
}


@pytest.mark.parametrize("case", NESTED)
def test_the_work_grows_with_the_length_of_a_document_and_no_faster(case: str) -> None:
    name, of_length = NESTED[case]
    read(name, of_length(10), ReadingWatch())
    few, many = (num_steps(lambda count=count: read(name, of_length(count), ReadingWatch())) for count in (200, 800))
    assert many < 6 * few


def _environments(count: int) -> str:
    names = (f"{number:06d}".translate(str.maketrans("0123456789", "abcdefghij")) for number in range(count))
    return "".join(f"\\begin{{{name}}}" for name in names)


CUE = "1\n00:00:01,000 --> 00:00:02,000\n"
# What a regular expression could search again from each of its places; it holds the interpreter lock meanwhile.
RUNS: dict[str, tuple[str, Callable[[int], str]]] = {
    "white space in a cue": ("srt", lambda count: f"{CUE}uno{' ' * count}due\n"),
    "white space in a tag": ("html", lambda count: f"<p{' ' * count}>uno"),
    "white space in a charset": ("html", lambda count: f"<meta charset={' ' * (count // 5)}>"),
    "a formula that never ends": ("md", lambda count: f"uno $a{'=' * count}"),
    "white space in a line of a template": ("html", lambda count: f"@a{' ' * (count // 10)}x\n"),
    "white space behind a setting of Razor": ("html", lambda count: f"@model {' ' * count}<"),
    "comments that never end in a template": ("html", lambda count: "{" + "<!--" * count),
    "comments before a page": ("html", lambda count: "<!--a-->" * (count // 4) + "x"),
    "environments of different names": ("html", lambda count: _environments(count // 4)),
    "environments in Markdown": ("md", lambda count: _environments(count // 10)),
    "white space in the title of a box": ("md", lambda count: f":::note a{' ' * count}x{{"),
    "white space behind a directive of MyST": ("md", lambda count: f":::{{note}} {' ' * count}x"),
    "names that may be a role of MyST": ("md", lambda count: "% a\n" + "{a" * (count // 4)),
    "white space before the title of a box": ("md", lambda count: f"!!! {' ' * count}x"),
    "the offset of a plural": ("json", lambda count: f'["{{n, plural, offset:{"1" * count}!"]'),
}


@pytest.mark.parametrize("case", RUNS)
def test_a_long_run_of_one_sign_is_not_searched_again_from_each_of_its_places(case: str) -> None:
    name, of_length = RUNS[case]
    assert_no_square(lambda length: read(name, of_length(length), ReadingWatch()))


@pytest.mark.parametrize(
    "lines",
    [["", "-- --", "a"], ["$$a"], ["\\begin{a}"], [":::{math}", "a"], [":::{note}", "---", "a"]],
)
def test_the_rows_behind_a_table_or_formula_are_not_read_again_for_each_of_them(
    lines: list[str],
) -> None:
    few, many = (
        num_steps(lambda count=count: markdown_blocks.divided_lines(lines * count, set())) for count in (50, 800)
    )
    assert many < 20 * few


def test_footnotes_that_never_end_are_not_searched_again_from_each_of_them() -> None:
    assert_no_square(lambda length: list(markdown_inline._MARKS.finditer("[^" * length)))


def test_white_space_in_the_header_of_a_catalogue_is_not_searched_again() -> None:
    def written(length: int) -> bytes:
        header = f'msgid ""\nmsgstr ""\n"Language:{" " * length}"\n\n'
        catalogue = read("po", f'{header}msgid "uno"\nmsgstr ""\n', ReadingWatch())
        return translate_document(catalogue, Capitals()).data

    assert b"UNO" in written(1)
    assert_no_square(written)


@pytest.mark.parametrize("language", ["it", "zh"])
def test_white_space_behind_a_translation_is_not_searched_again_from_each_of_its_places(
    language: str,
) -> None:
    assert_no_square(lambda length: words_with_markup(["uno" + " " * length], language))
    words = words_with_markup([" uno  due ", "tre \n", " "], language)
    assert [word.gap for word in words if word.gap] == [" ", "  ", " "]


def assert_no_square(work: Callable[[int], Any]) -> None:
    """Assert that eight times the length takes far less than 64 times as long."""

    def seconds(length: int) -> float:
        started_at = time.process_time()
        work(length)
        return time.process_time() - started_at

    seconds(10)
    few, many = (min(seconds(length) for _ in range(3)) for length in (2000, 16_000))
    assert many < 24 * few + 0.001


class CountedRun(list[Any]):
    """A list that counts how many of its items are copied."""

    num_copied = 0

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        if isinstance(index, slice):
            CountedRun.num_copied += len(found)
        return found


class CountedReader(html_module._Reader):
    """A reader of HTML whose texts count what is copied of them."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, CountedRun(value) if name == "_run" else value)


def test_the_parts_before_a_link_of_a_menu_are_not_copied_for_each_link(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(html_module, "_Reader", CountedReader)
    monkeypatch.setattr(CountedRun, "num_copied", 0)
    num_links = 100
    [segment] = read("html", "uno" + "|<b>2</b>" * num_links, ReadingWatch()).segments
    assert len(segment.pieces) > 2 * num_links
    assert CountedRun.num_copied < 20 * num_links


def test_fields_that_never_end_are_looked_at_once() -> None:
    def document(count: int) -> bytes:
        begin = '<w:r><w:fldChar w:fldCharType="begin"/></w:r>' * count
        return zipped({"word/document.xml": f'<w:document xmlns:w="{WORD}"><w:p>{begin}</w:p></w:document>'})

    few, many = (num_steps(lambda count=count: read("docx", document(count), ReadingWatch())) for count in (100, 400))
    assert many < 6 * few


def test_a_book_that_names_a_chapter_often_reads_it_once() -> None:
    items = "".join(f'<item id="{number}" href="c.xhtml" media-type="application/xhtml+xml"/>' for number in range(50))
    parts = {
        "META-INF/container.xml": '<container><rootfile full-path="book.opf"/></container>',
        "book.opf": f"<package><manifest>{items}</manifest></package>",
        "c.xhtml": "<p>uno</p>",
    }
    assert len(read("epub", zipped(parts), ReadingWatch(max_segments=1)).segments) == 1


class Capitals:
    """Translates a text into capitals."""

    languages = Direction("en", "it")

    def sentences(self, text: str) -> list[Sentence]:
        return [Sentence(text, "")]

    def knows(self, text: str) -> bool:
        return False

    def has_read(self, word: str) -> bool:
        return False

    def translate(self, texts: Sequence[AskedText]) -> list[AnsweredText]:
        return [AnsweredText(asked.text.upper()) for asked in texts]


@pytest.mark.heavy
@pytest.mark.parametrize("word", ["uno ", "uno\n", "uno", "<b>uno</b> "])
def test_a_cue_of_any_length_is_written_in_time(word: str) -> None:
    def written(count: int) -> bytes:
        cue = f"1\n00:00:01,000 --> 99:00:02,000\n{word * count}\n"
        return translate_document(read("srt", cue, ReadingWatch()), Capitals()).data

    assert written(2000).lower().split()[4:] == (word * 2000).lower().encode().split()
    few, many = (num_steps(lambda count=count: written(count)) for count in (500, 2000))
    assert many < 6 * few


def test_the_translation_of_a_document_ends_when_nobody_waits() -> None:
    num_looks = 0

    def check() -> None:
        nonlocal num_looks
        num_looks += 1
        if num_looks == 5:
            raise Left

    with pytest.raises(Left):
        translate_document(read("txt", "uno\n" * 50, ReadingWatch()), Capitals(), check)
    assert num_looks == 5


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_numbers_of_lines_are_those_of_the_line_ends_before_a_place(ends: str) -> None:
    from transformer_cli.extensions.documents.segments import LineNumbers

    text = f"a{ends}{ends}b{ends}c\r\n\rd"
    lines = LineNumbers(text)
    forward = range(len(text) + 1)
    for place in [*forward, *reversed(forward), 3, 9, 0, 5]:
        expected = 1 + sum(each.end() <= place for each in re.finditer(r"\r\n?|\n", text))
        assert lines.number_at(place) == expected, place
