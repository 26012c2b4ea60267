"""Documents and a model that loses text: no text is deleted, and each segment that stays is named."""

import re
from dataclasses import replace

import pytest

from transformer_cli.decoding.engine import Explanation
from transformer_cli.extensions.documents import (
    ModelTranslator,
    format_named,
    read_document,
    translate_document,
)
from transformer_cli.extensions.documents.translation import TranslatedDocument
from transformer_cli.extensions.documents.translator import DIVIDED, UNTRANSLATED

from ...decoding.stub_translators import (
    CLAUSES,
    StubEngine,
    cut_after,
    silent_about,
    stub_translator,
)

LONG = ", ".join(CLAUSES) + "."
XLIFF = """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file original="f" datatype="plaintext" source-language="en" target-language="it"><body>
<trans-unit id="u1"><source>{}</source></trans-unit>
<trans-unit id="u2"><source>the train waits.</source></trans-unit>
</body></file></xliff>
"""
PO = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "{}"\nmsgstr ""\n\nmsgid "the train waits."\nmsgstr ""\n'
SRT = "1\n00:00:01,000 --> 00:00:02,000\n{}\n\n2\n00:00:03,000 --> 00:00:04,000\nthe train waits.\n"
DOCUMENTS = {
    "html": "<p>\n{}\n</p><p>the train waits.</p>",
    "xliff": XLIFF,
    "srt": SRT,
    "json": '{{"a": "{}", "b": "the train waits."}}',
    "po": PO,
    "md": "# {}\n\nthe train waits.\n",
}


def done(name: str, text: str, model: object, *, keeps_text: bool = True) -> TranslatedDocument:
    document = read_document(DOCUMENTS[name].format(text).encode(), format_named(name))
    of = stub_translator(model, keeps_text=keeps_text)  # type: ignore[arg-type]
    return translate_document(document, ModelTranslator.of(of))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_segment_without_a_translation_keeps_its_text_and_is_named(name: str) -> None:
    found = done(name, "the mute sleeps.", silent_about("mute"))
    text = found.data.decode()
    assert "the mute sleeps." in text
    assert "THE TRAIN WAITS." in text
    assert [(doubt.reason, doubt.text.strip()) for doubt in found.doubts] == [(UNTRANSLATED, "the mute sleeps.")]
    assert len(found.messages) == 1


@pytest.mark.parametrize("name", sorted(set(DOCUMENTS) - {"po", "xliff"}))  # these have both texts
def test_without_the_guard_the_text_is_gone(name: str) -> None:
    found = done(name, "the mute sleeps.", silent_about("mute"), keeps_text=False)
    assert "mute" not in found.data.decode()
    assert found.doubts == ()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_long_sentence_is_translated_clause_by_clause_and_named(name: str) -> None:
    found = done(name, LONG, cut_after())
    text = found.data.decode().replace('"\n"', "")  # PO writes a long text in several strings
    assert LONG.upper() in " ".join(text.split())
    assert [doubt.reason for doubt in found.doubts] == [DIVIDED]
    assert "look whether words are missing" in DIVIDED  # a clause alone may lose one


def test_a_sentence_of_which_one_clause_stays_is_marked_in_the_formats_that_have_marks() -> None:
    text = LONG.replace("sister", "mute")
    xliff = done("xliff", text, silent_about("mute")).data.decode()
    assert xliff.count('state="needs-review-translation"') == 1
    assert xliff.count('state="translated"') == 1
    assert "the mute laughs" in xliff.partition("<target")[2]
    po = done("po", text, silent_about("mute")).data.decode()
    assert po.count("#, fuzzy") == 1


def test_a_segment_that_stays_is_not_called_translated() -> None:
    xliff = done("xliff", "the mute sleeps.", silent_about("mute")).data.decode()
    assert xliff.count('state="translated"') == 1
    po = done("po", "the mute sleeps.", silent_about("mute")).data.decode()
    assert 'msgid "the mute sleeps."\nmsgstr ""' in po or "#, fuzzy" in po


def test_markup_in_a_sentence_that_stays_does_not_move() -> None:
    page = "<p>the <b>mute</b> sleeps.</p>"
    document = read_document(page.encode(), format_named("html"))
    of = ModelTranslator.of(stub_translator(silent_about("mute")))
    assert translate_document(document, of).data.decode() == page


class Confused(StubEngine):
    """An engine whose attention is of no use: the first word of a text attends to the last one, and so on."""

    @staticmethod
    def _explanation(num_source: int, num_target: int) -> Explanation:
        found = StubEngine._explanation(num_source, num_target)
        return replace(found, attention=found.attention[:, ::-1].copy())


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "md",
            "the train waits, and [the mute sleeps](https://a.org).",
            "THE TRAIN WAITS, and [the mute sleeps](https://a.org).",
        ),
        ("md", "**the train** waits, and the *mute* sleeps.", None),
        ("html", "the train waits, and the <b>mute</b> sleeps.", "THE TRAIN WAITS, and the <b>mute</b> sleeps."),
        (
            "html",
            "the train waits, and <i>the <b>mute</b> sleeps</i>.",
            "THE TRAIN WAITS, and <i>the <b>mute</b> sleeps</i>.",
        ),
        ("html", "the train waits,<br>and the mute<img> sleeps.", "THE TRAIN WAITS,<br> and the mute<img> sleeps."),
        (
            "html",
            "the train waits, and <a href='x'>the</a> mute <a href='y'>sleeps</a>.",
            "THE TRAIN WAITS, and <a href='x'>the</a> mute <a href='y'>sleeps</a>.",
        ),
        ("srt", "the train waits, and the <i>mute</i> sleeps.", "THE TRAIN WAITS, and the <i>mute</i> sleeps."),
        (
            "xliff",
            'the train waits, and the <g id="1">mute</g> sleeps.',
            'THE TRAIN WAITS, and the <g id="1">mute</g> sleeps.',
        ),
    ],
)
def test_a_clause_that_stays_keeps_its_markup(name: str, text: str, expected: str | None) -> None:
    of = stub_translator(silent_about("mute"))
    model = ModelTranslator.of(replace(of, engine=Confused(silent_about("mute"))))
    document = read_document(DOCUMENTS[name].format(text).encode(), format_named(name))
    found = translate_document(document, model).data.decode()
    if expected is None:
        first, second = found.splitlines()[0].split(",")
        assert first.count("**") == 2
        assert second == " and the *mute* sleeps."
    else:
        assert expected in " ".join(found.split())


@pytest.mark.parametrize(
    ("name", "text", "before"),
    [
        ("md", "the train waits [and hotel 8](https://a.org/). The house burns.", "](https://a.org/)."),
        ("html", "the train waits <b>and hotel 8</b>. The house burns.", "</b>."),
        ("html", "the train waits (<b>the hotel</b>) and the house burns.", "</b>)"),
    ],
)
def test_a_tag_ends_with_the_piece_in_which_its_words_were_translated(name: str, text: str, before: str) -> None:
    def says(text: str) -> list[str]:  # a model that loses numbers and brackets
        return [re.sub(r"[\d()]", "", text.upper())]

    of = replace(stub_translator(says, repair=True), engine=Confused(says))
    document = read_document(DOCUMENTS[name].format(text).encode(), format_named(name))
    found = translate_document(document, ModelTranslator.of(of)).data.decode()
    behind = found.partition(before)[2]
    assert "HOUSE BURNS" in behind, found
