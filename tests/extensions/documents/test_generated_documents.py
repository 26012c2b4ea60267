"""Generated documents of many formats: whatever a translator does, tags keep their sentence, and no word, tag or placeholder is lost or glued.

A long form: `python -m tests.extensions.documents.test_generated_documents 300`, 300 times 30 documents.
"""

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from transformer_cli.decoding.details import word_spans
from transformer_cli.decoding.translation import PlacedPiece
from transformer_cli.extensions.documents import format_named, read_document, translate_document
from transformer_cli.extensions.documents.translator import (
    AnsweredText,
    LinkedWords,
    moved_links,
)

from .archives import packed, unpacked
from .fake_translators import REVERSED, UPPER, Identity, WordByWord


@dataclass
class Clauses(WordByWord):
    """Translates clause by clause: the words of each are reversed, and one clause stays or is lost."""

    loses: bool = False

    def _answer(self, text: str) -> AnsweredText:
        ends = [match.end() for match in re.finditer(r",\s", text)]
        result, links, pieces = "", [], []
        for number, (start, end) in enumerate(pairwise([0, *ends, len(text)])):
            clause = text[start:end].rstrip()
            translated = clause
            of_clause = tuple(LinkedWords(each, each) for each in word_spans(clause))
            if number != 1:
                answer = REVERSED._answer(clause.rstrip(",.!?"))
                translated = answer.text + clause[len(clause.rstrip(",.!?")) :]
                of_clause = answer.links
            elif self.loses:
                translated, of_clause = "", ()
            begin = len(result) + bool(result)
            links += moved_links(of_clause, start, begin)
            if translated:
                result += " " * bool(result) + translated
            pieces.append(PlacedPiece((start, start + len(clause)), (min(begin, len(result)), len(result))))
        return AnsweredText(result, tuple(links), tuple(pieces) if ends else ())


TRANSLATORS: dict[str, WordByWord] = {
    "identity": Identity(),
    "upper": UPPER,
    "reversed": REVERSED,
    "clauses": Clauses(str.upper),
    "losing": Clauses(str.upper, loses=True),
}


@dataclass
class Paragraph:
    """Words, tags and marks in the order in which they are written."""

    events: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of a kind (text, open, close, point, code) and a text or a number."""
    kinds: dict[str, str] = field(default_factory=dict)
    """The kind of each tag."""
    place: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The sentence and the clause of each word."""


class Writer:
    """Writes a random paragraph."""

    def __init__(self, choose: random.Random, form: "Form") -> None:
        self.made = Paragraph()
        self._choose, self._form = choose, form
        self._opened: list[str] = []
        self._num_marks = 0
        self._used: set[str] = set()

    def paragraph(self) -> Paragraph:
        num_sentences = self._choose.randint(1, 3)
        for sentence in range(num_sentences):
            num_clauses = self._choose.choice([1, 1, 2, 3])
            for clause in range(num_clauses):
                is_last = clause == num_clauses - 1
                end = self._choose.choice(".!?") if is_last else ","
                is_end = is_last and sentence == num_sentences - 1
                self._clause((sentence, clause), end, is_end=is_end)
        return self.made

    def _clause(self, place: tuple[int, int], end: str, *, is_end: bool) -> None:
        num_words = self._choose.randint(2, 5)
        for number in range(num_words):
            is_last = number == num_words - 1
            if self.made.events:
                self.made.events.append(("text", " "))
            self._open_tags()
            self._add_word(place, is_first=place[1] == number == 0)
            closing = []
            while self._opened and ((is_end and is_last) or self._is_chosen(0.45)):
                closing.append(("close", self._opened.pop()))
            if self._form.has_points and self._is_chosen(0.06):
                closing.append(("point", self._new("p")))
            mark = [("text", end)] if is_last else []
            self.made.events += closing + mark if self._is_chosen(0.7) else mark + closing

    def _open_tags(self) -> None:
        while len(self._opened) < 2 and self._is_chosen(0.18):
            taken = {self.made.kinds[each] for each in self._opened}
            tag = self._new("t")
            self._opened.append(tag)
            self.made.kinds[tag] = self._choose.choice([kind for kind in self._form.kinds if kind not in taken])
            self.made.events.append(("open", tag))

    def _add_word(self, place: tuple[int, int], *, is_first: bool) -> None:
        if self._form.has_code and self._is_chosen(0.06):
            word = f"{self._new('x')}_y"
            self.made.events.append(("code", word))
        else:
            word = self._new_word()
            self.made.events.append(("text", word.capitalize() if is_first else word))
        self.made.place[word] = place

    def _is_chosen(self, probability: float) -> bool:
        return self._choose.random() < probability

    def _new(self, kind: str) -> str:
        self._num_marks += 1
        return f"{kind}{self._num_marks}"

    def _new_word(self) -> str:
        while True:
            word = "".join(self._choose.choices(SYLLABLES, k=self._choose.randint(2, 3)))
            if word not in self._used:
                self._used.add(word)
                return word


SYLLABLES = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]


class Form:
    """How a format writes paragraphs: HTML is the example of all others."""

    name = "html"
    kinds = ("b", "i", "a", "span")
    has_points = has_code = True
    tag = re.compile(r"<(?P<close>/)?(?:b|i|a|span)(?P<attributes>[^<>]*)>")
    point = re.compile(r'<img src="(p\d+)">')

    def open(self, kind: str, number: str) -> str:
        return f'<{kind} href="{number}">' if kind == "a" else f'<{kind} id="{number}">'

    def close(self, kind: str, number: str) -> str:
        return f"</{kind}>"

    def write_point(self, number: str) -> str:
        return f'<img src="{number}">'

    def code(self, text: str) -> str:
        return f"<code>{text}</code>"

    def text(self, text: str) -> str:
        return text

    def document(self, paragraphs: Sequence[str]) -> bytes:
        return "\n".join(f"<p>{each}</p>" for each in paragraphs).encode()

    def paragraphs(self, data: bytes) -> list[str]:
        return re.findall(r"<p>(.*?)</p>", data.decode(), re.DOTALL)

    def events(self, inner: str) -> Iterator[tuple[str, str]]:
        """The same kinds of events as those of a `Paragraph`; a tag without a number has its kind."""
        opened: list[str] = []
        place = 0
        for match in re.finditer(r"<code>(.*?)</code>|<[^<>]*>", inner):
            yield "text", inner[place : match.start()]
            place = match.end()
            numbers = re.findall(r'"(\w+)"', match[0])
            if match[1]:
                yield "code", match[1]
            elif point := self.point.fullmatch(match[0]):
                yield "point", point[1]
            elif match[0].startswith("</"):
                yield "close", opened.pop()
            else:
                opened.append(numbers[-1] if numbers else match[0][1:-1])
                yield "open", opened[-1]
                if match[0].endswith("/>"):
                    yield "close", opened.pop()
        assert not opened, inner
        yield "text", inner[place:]


class Markdown(Form):
    name = "md"
    kinds = ("**", "_", "[")
    point = re.compile(r"!\[\]\((p\d+)\)")

    def open(self, kind: str, number: str) -> str:
        return kind

    def close(self, kind: str, number: str) -> str:
        return f"]({number})" if kind == "[" else kind

    def write_point(self, number: str) -> str:
        return f"![]({number})"

    def code(self, text: str) -> str:
        return f"`{text}`"

    def document(self, paragraphs: Sequence[str]) -> bytes:
        return "\n\n".join(paragraphs).encode() + b"\n"

    def paragraphs(self, data: bytes) -> list[str]:
        return data.decode().strip("\n").split("\n\n")

    def events(self, inner: str) -> Iterator[tuple[str, str]]:
        opened: list[str] = []
        place = 0
        # A link has its number at its end.
        links = iter(self._links_in_order(inner))
        for match in re.finditer(r"`([^`]*)`|(?<!\\)!\[\]\((p\d+)\)|\*\*|(?<!\w)_|_(?!\w)|\[|\]\((t\d+)\)", inner):
            yield "text", inner[place : match.start()].replace("\\", "")
            place = match.end()
            if match[1]:
                yield "code", match[1]
            elif match[2]:
                yield "point", match[2]
            elif match[0] == "[":
                opened.append(next(links))
                yield "open", opened[-1]
            elif match[3] or match[0] in opened:
                assert opened[-1] == (match[3] or match[0]), inner
                yield "close", opened.pop()
            else:
                opened.append(match[0])
                yield "open", match[0]
        assert not opened, inner
        yield "text", inner[place:]

    @staticmethod
    def _links_in_order(inner: str) -> list[str]:
        found: list[str] = []
        waiting: list[int] = []
        for match in re.finditer(r"(?:(?<!!)|(?<=\\!))\[|\]\((t\d+)\)", inner):
            if match[1]:
                found[waiting.pop()] = match[1]
            else:
                waiting.append(len(found))
                found.append("")
        return found


class Xliff(Form):
    name = "xliff"
    kinds = ("g", "mrk")
    point = re.compile(r'<bx id="(p\d+)"/>')

    def open(self, kind: str, number: str) -> str:
        return f'<{kind} id="{number}">' if kind == "g" else f'<mrk mtype="x" mid="{number}">'

    def write_point(self, number: str) -> str:
        return f'<bx id="{number}"/>'

    def code(self, text: str) -> str:
        return f'<ph id="{text}">&lt;c&gt;</ph>'

    def document(self, paragraphs: Sequence[str]) -> bytes:
        units = "\n".join(
            f'<trans-unit id="{number}"><source>{each}</source></trans-unit>' for number, each in enumerate(paragraphs)
        )
        return f'<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="f" datatype="plaintext" source-language="en"><body>\n{units}\n</body></file></xliff>'.encode()

    def paragraphs(self, data: bytes) -> list[str]:
        found = re.findall(r"<target[^>]*>(.*?)</target>", data.decode(), re.DOTALL)
        return found

    def events(self, inner: str) -> Iterator[tuple[str, str]]:
        codes = re.sub(r'<ph id="(\w+)">&lt;c&gt;</ph>', r"<code>\1</code>", inner)
        return super().events(codes)


class Android(Form):
    name = "android"
    has_points = has_code = False  # <code> is a tag as others

    def document(self, paragraphs: Sequence[str]) -> bytes:
        strings = "\n".join(f'<string name="n{number}">{each}</string>' for number, each in enumerate(paragraphs))
        return f"<resources>\n{strings}\n</resources>".encode()

    def paragraphs(self, data: bytes) -> list[str]:
        return re.findall(r"<string name[^>]*>(.*?)</string>", data.decode(), re.DOTALL)


class Odt(Form):
    name = "odt"
    kinds = ("text:span", "text:a")
    point = re.compile(r'<text:bookmark text:name="(p\d+)"/>')

    def open(self, kind: str, number: str) -> str:
        return f'<{kind} text:style-name="{number}">'

    def write_point(self, number: str) -> str:
        return f'<text:bookmark text:name="{number}"/>'

    def code(self, text: str) -> str:
        return f'<text:date text:name="{text}">1</text:date>'

    def document(self, paragraphs: Sequence[str]) -> bytes:
        inner = "".join(f"<text:p>{each}</text:p>" for each in paragraphs)
        spaces = 'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
        content = f"<office:document-content {spaces}>{inner}</office:document-content>"
        return packed({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content})

    def paragraphs(self, data: bytes) -> list[str]:
        return re.findall(r"<text:p>(.*?)</text:p>", unpacked(data)["content.xml"], re.DOTALL)

    def events(self, inner: str) -> Iterator[tuple[str, str]]:
        codes = re.sub(r'<text:date text:name="(\w+)">1</text:date>', r"<code>\1</code>", inner)
        return super().events(codes)


class Json(Form):
    name = "json"
    has_points = has_code = False  # they stay in the text

    def document(self, paragraphs: Sequence[str]) -> bytes:
        return json.dumps({f"k{n}": each for n, each in enumerate(paragraphs)}).encode()

    def paragraphs(self, data: bytes) -> list[str]:
        return list(json.loads(data).values())


FORMS: list[Form] = [Form(), Markdown(), Xliff(), Android(), Odt(), Json()]


def written(form: Form, made: Paragraph) -> str:
    result = ""
    for kind, text in made.events:
        if kind == "text":
            result += form.text(text)
        elif kind in ("open", "close"):
            result += getattr(form, kind)(made.kinds[text], text)
        elif kind == "point":
            result += form.write_point(text)
        else:
            result += form.code(text)
    return result


def words_in(events: Sequence[tuple[str, str]]) -> dict[str, set[str]]:
    """The words inside each tag, in small letters; those of equal names follow each other as name, name 2 and so on."""
    inside: dict[str, set[str]] = {}
    opened: list[str] = []
    for kind, text in events:
        if kind == "open":
            name, number = text, 2
            while name in inside:
                name, number = f"{text} {number}", number + 1
            opened.append(name)
            inside[name] = set()
        elif kind == "close":
            assert opened.pop().split(" ")[0] == text
        elif kind in ("text", "code"):
            for name in opened:
                inside[name] |= {word.lower() for word in re.findall(r"\w+", text)}
    assert not opened
    return inside


def check(form: Form, name: str, made: Sequence[Paragraph]) -> None:
    """Translate a document, and compare each paragraph with its translation."""
    data = form.document([written(form, each) for each in made])
    found = translate_document(read_document(data, format_named(form.name)), TRANSLATORS[name])
    if name == "identity" and form.name != "xliff":
        assert found.data == data, (form.name, data, found.data)
    if name == "identity":
        return  # a target of XLIFF is empty, and others are the same
    results = form.paragraphs(found.data)
    assert len(results) == len(made)
    for source, result in zip(made, results, strict=True):
        check_paragraph(form, name, source, result)


def check_paragraph(form: Form, name: str, source: Paragraph, result: str) -> None:
    message = f"{form.name}, {name}:\n{written(form, source)}\n{result}"
    events = list(form.events(result))
    before = list(form.events(written(form, source)))
    plain = [
        "".join(text if kind == "text" else f" {text} " * (kind == "code") for kind, text in each)
        for each in (before, events)
    ]
    words = [Counter(re.findall(r"\w+", each.lower())) for each in plain]
    if name == "losing":
        assert words[1] <= words[0], message
    else:
        assert words[0] == words[1], message
    counts = [Counter(each for each in of_both if each[0] != "text") for of_both in (before, events)]
    is_torn = any(len({source.place[word] for word in each}) > 1 for each in words_in(before).values())
    if name == "losing" or (form.name == "md" and is_torn):  # an emphasis without words is left out
        counts = [Counter({each: n for each, n in count.items() if each[1] not in ("**", "_")}) for count in counts]
    assert counts[0] == counts[1], message
    inside, given = words_in(events), words_in(before)
    places = source.place
    for tag, of_tag in inside.items():
        candidates = (
            [given[tag]]
            if tag.startswith(("t", "p")) and tag in given
            else [each for other, each in given.items() if other.split(" ")[0] == tag.split(" ")[0]]
        )
        level = 1 if name in ("upper", "identity", "reversed") else 2
        fits = [
            {places[word][:level] for word in of_tag} <= {places[word][:level] for word in each} for each in candidates
        ]
        assert any(fits) or (form.name == "md" and (name == "losing" or is_torn)), f"{message}\n{tag}: {of_tag}"
        # Only a tag around words of one clause, in none of several clauses, surely finds them side by side.
        [around, *_] = sorted(
            (each for each in given.values() if candidates[0] <= each),
            key=lambda each: -len({places[word][:level] for word in each}),
        )
        is_whole = name == "upper" or len({places[word][:level] for word in around}) < 2
        if len(candidates) == 1 and name != "losing" and is_whole:
            assert of_tag == candidates[0], f"{message}\n{tag}: {of_tag}"


def run(seed: int, form: Form, name: str) -> None:
    choose = random.Random(seed)
    made = [Writer(choose, form).paragraph() for _ in range(choose.randint(1, 3))]
    check(form, name, made)


@pytest.mark.long
@pytest.mark.parametrize("name", TRANSLATORS)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_tags_words_and_placeholders_of_any_document_are_where_they_belong(form: Form, name: str) -> None:
    for seed in range(3):
        run(seed, form, name)


if __name__ == "__main__":
    failures = []
    for number in range(int(sys.argv[1])):
        for a_form in FORMS:
            for a_name in TRANSLATORS:
                try:
                    run(number, a_form, a_name)
                except AssertionError as error:
                    failures.append(f"{number}: {error}"[:1500])
    sys.stdout.write("\n\n".join([*failures[:10], f"failures: {len(failures)}\n"]))
