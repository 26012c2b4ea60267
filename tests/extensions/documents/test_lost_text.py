"""Documents and a model that loses text: no text is deleted, and each segment that stays is named."""

import pytest

from transformer_cli.extensions.documents import (
    ModelTranslator,
    format_named,
    read_document,
    translate_document,
)
from transformer_cli.extensions.documents.translation import (
    DIVIDED,
    UNTRANSLATED,
    TranslatedDocument,
)

from ...decoding.stub_translators import CLAUSES, cut_after, silent_about, stub_translator

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
    assert [(doubt.reason, doubt.text.strip()) for doubt in found.doubts] == [
        (UNTRANSLATED, "the mute sleeps.")
    ]
    assert found.num_marked == 1


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
