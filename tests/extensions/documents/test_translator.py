"""Documents and a real model: a small one with random weights, which says anything, so that nothing may depend on it."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_cli.config import TokenizerConfig
from transformer_cli.decoding import Glossary
from transformer_cli.decoding.details import word_spans
from transformer_cli.decoding.loading import load_translator
from transformer_cli.decoding.memory import MemoryPair, TranslationMemory
from transformer_cli.extensions.documents import (
    Format,
    ModelTranslator,
    format_named,
    read_document,
    translate_document,
)
from transformer_cli.extensions.documents.character_encoding import DecodedText
from transformer_cli.extensions.documents.formats import ReadingOptions
from transformer_cli.extensions.documents.segments import Segment, Slot, SplicedDocument
from transformer_cli.extensions.documents.translation import UNSURE_PLACE
from transformer_cli.extensions.documents.translator import AskedText, LinkedWords, _links_by_own
from transformer_cli.process.errors import UsageError
from transformer_cli.text.tokenizer import train_tokenizer

from ...decoding.small_translators import WORDS, tokenizer_of_words, translator

MODEL = ModelTranslator.of(translator(tokenizer_of_words(), beam_size=2))
WITH_TERMS = ModelTranslator.of(
    translator(tokenizer_of_words()).with_glossary(Glossary.of({"uno": "due", "tre": "sei sette"}))
)
PARTS = [
    *WORDS,
    "uno due. Tre quattro.",
    "<b>",
    "</b>",
    "<i>",
    "</i>",
    "<img>",
    "<code>x</code>",
    "{name}",
    "%s",
    " ",
    " ",
    ".",
    "\n",
    "&amp;",
    "https://x.org",
    "42",
    "<p>",
    "\x01",
    "\u00a0",
]


@pytest.mark.long
@pytest.mark.parametrize("model", [MODEL, WITH_TERMS], ids=["plain", "with a glossary"])
@settings(max_examples=30)
@given(parts=st.lists(st.sampled_from(PARTS), max_size=25))
def test_any_model_leaves_all_markup_and_placeholders(model: ModelTranslator, parts: list[str]) -> None:
    page = "".join(parts)
    found = translate_document(read_document(page.encode(), format_named("html")), model)
    text = found.data.decode()
    kept = re.compile(r"<[^>]*>|\{name\}|https://x\.org")
    assert Counter(kept.findall(text)) == Counter(kept.findall(page))
    blocks = [re.sub(r"</?[bi]>|<img>", "", part) for part in (page, text)]
    assert blocks[0].count("<p>") == blocks[1].count("<p>")


def test_a_document_has_the_terms_and_the_protected_spans() -> None:
    page = "<p>Uno https://x.org/uno {name} <b>tre</b>.</p><p>Quattro 42</p>"
    found = translate_document(read_document(page.encode(), format_named("html")), WITH_TERMS)
    text = found.data.decode()
    assert [text.count(span) for span in ("https://x.org/uno", "{name}", "42")] == [1, 1, 1]
    first = re.sub(r"</?[bp]>", " ", text.split("</p>")[0])
    assert re.search(r"\bdue\b", first, re.IGNORECASE)
    assert re.search(r"\bsei\s+sette\b", first, re.IGNORECASE)


@pytest.mark.long
@pytest.mark.parametrize(
    ("terms", "page"),
    [({"uno A4": "due"}, "<p>Tre uno A4 sei.</p>"), ({"uno": "due A4"}, "<p>Tre uno sei.</p>")],
)
def test_a_term_may_replace_or_bring_in_a_protected_span(terms: dict[str, str], page: str) -> None:
    of_words = train_tokenizer([" ".join([*WORDS, "A4"]), *WORDS], TokenizerConfig())
    model = ModelTranslator.of(translator(of_words).with_glossary(Glossary.of(terms)))
    text = translate_document(read_document(page.encode(), format_named("html")), model).data.decode()
    assert re.search(rf"\b{next(iter(terms.values()))}\b", text)
    assert "uno A4" not in text


def test_only_texts_with_markup_are_aligned() -> None:
    with_links, without = MODEL.translate([AskedText("uno due tre", True), AskedText("uno due tre")])
    assert with_links.text == without.text
    assert with_links.links
    assert not without.links


def test_sentences_do_not_end_inside_a_placeholder() -> None:
    sentences = MODEL.sentences("Uno {a. B} due. Tre https://x.org/A.B. Quattro.")
    assert [sentence.text for sentence in sentences] == ["Uno {a. B} due.", "Tre https://x.org/A.B.", "Quattro."]


def test_a_translator_without_sentence_splitting_reads_a_text_at_once() -> None:
    whole = translator(tokenizer_of_words(), split_sentences=False)
    assert len(ModelTranslator.of(whole).sentences("Uno. Due.")) == 1


def test_an_engine_without_attention_gives_no_links() -> None:
    class Silent:
        def __init__(self, engine: object) -> None:
            self.translate = engine.translate  # type: ignore[attr-defined]

    silent = replace(MODEL.translator, engine=Silent(MODEL.translator.engine))
    [answer] = ModelTranslator(silent).translate([AskedText("uno due", True)])
    assert answer.text
    assert answer.links == ()


@pytest.mark.long
@pytest.mark.parametrize("sentence", ["The train{} and the hotel{} are old.", "We see the bridge{} and the trains."])
def test_a_word_with_its_plural_in_brackets_has_the_links_of_the_plural(sentence: str) -> None:
    """The model reads trains for train(s): a tag around it belongs around the translation of trains."""
    of = ModelTranslator.of(load_translator(Path(__file__).parents[3] / "docs/run"))
    num_brackets = sentence.count("{}")
    texts = [sentence.format(*[ending] * num_brackets) for ending in ("s", "(s)")]
    answers = of.translate([AskedText(text, True) for text in texts])
    assert answers[0].text == answers[1].text
    plural, brackets = (
        [(word_spans(text).index(link.source), link.target) for link in answer.links]
        for text, answer in zip(texts, answers, strict=True)
    )
    assert plural == brackets


def with_memory(rows: dict[str, str]) -> ModelTranslator:
    pairs = [MemoryPair(source, target, "m.tsv:1") for source, target in rows.items()]
    return ModelTranslator(replace(MODEL.translator, memory=TranslationMemory.of(pairs, str, "m.tsv")))


CORRECTIONS = {
    "The train leaves at 10:30.": "Le train part à 10h30.",
    "It costs $100.": "Cela coûte 100 $US.",
    "The rate is 5%.": "Le taux est de 5 %.",
    "It weighs 1.5 kilos.": "Ça pèse 1,5 kilo.",
    "He was born in the 1990s.": "Il est né dans les années 90.",
    "I have 3 dogs, on 2026-11-28.": "J'ai trois chiens, le 28 novembre 2026.",
    "Look at https://example.org/en now.": "Regardez https://example.org/fr maintenant.",
    "Uno (due) tre.": "Sei due.",
    "Hello {name}, you have %d.": "Tu as %d, {name}.",
    "Uno. Due, 5%.": "Tre 5 %. Sei.",
    "(Uno due.)": "(Sei quattro.)",
    "Uno | due": "Sei ou quattro",
}


@pytest.mark.parametrize(
    ("name", "head", "around"),
    [("md", "", ("", "\n\n")), ("html", "", ("<p>", "</p>\n")), ("csv", "English\n", ('"', '"\n'))],
)
def test_a_person_chooses_how_a_correction_writes_numbers_and_addresses(
    name: str, head: str, around: tuple[str, str]
) -> None:
    def written(texts: Iterable[str]) -> str:
        return head + "".join(text.join(around) for text in texts)

    page = written([*CORRECTIONS] * 2).encode()
    options = ReadingOptions(("English",)) if name == "csv" else ReadingOptions()
    found = translate_document(read_document(page, format_named(name), options), with_memory(CORRECTIONS))
    assert found.data.decode() == written([*CORRECTIONS.values()] * 2)
    assert found.doubts == ()
    assert found.num_from_memory == found.num_segments == 2 * len(CORRECTIONS)


def test_a_correction_of_several_sentences_holds_for_a_text_with_markup() -> None:
    corrections = {"Uno due. Tre quattro 5%.": "Sei 5 %. Uno."}
    page = b"<p>Uno <b>due</b>. Tre quattro 5%.</p>"
    found = translate_document(read_document(page, format_named("html")), with_memory(corrections))
    assert re.sub("</?[bp]>", "", found.data.decode()) == "Sei 5 %. Uno."
    assert (found.num_from_memory, found.data.count(b"<b>")) == (1, 1)


def words_of(links: Iterable[LinkedWords], source: str, target: str) -> set[tuple[str, str]]:
    return {(source[slice(*one.source)], target[slice(*one.target)]) for one in links}


def linked(source: str, target: str, *pairs: tuple[str, str]) -> list[LinkedWords]:
    places = [{text[slice(*span)]: span for span in word_spans(text)} for text in (source, target)]
    return [LinkedWords(places[0][one], places[1][other]) for one, other in pairs]


SOLD = "She sold it yesterday."
OWN = "Elle l'a vendu hier."
OF_OWN = linked(SOLD, OWN, ("She", "Elle"), ("sold", "vendu"), ("it", "l'a"), ("yesterday.", "hier."))


def test_a_word_of_a_correction_that_the_model_writes_too_has_the_link_of_the_model() -> None:
    target = "Hier, elle l'a vendu."
    wrong = linked(
        SOLD, target, ("She", "Hier,"), ("She", "elle"), ("sold", "vendu."), ("it", "l'a"), ("yesterday.", "vendu.")
    )
    links, unsure = _links_by_own(wrong, target, OWN, OF_OWN)
    expected = {("She", "elle"), ("sold", "vendu."), ("it", "l'a"), ("yesterday.", "Hier,")}
    assert words_of(links, SOLD, target) == expected
    assert unsure == ()


def test_a_word_of_a_correction_that_nothing_links_is_unsure_and_others_keep_the_links_of_the_attention() -> None:
    target = "La veille, elle l'a liquidé."
    by_attention = linked(
        SOLD,
        target,
        ("She", "La"),
        ("She", "veille,"),
        ("She", "elle"),
        ("sold", "liquidé."),
        ("it", "l'a"),
        ("yesterday.", "elle"),
    )
    links, unsure = _links_by_own(by_attention, target, OWN, OF_OWN)
    assert {("sold", "liquidé."), ("She", "elle"), ("it", "l'a")} <= words_of(links, SOLD, target)
    assert [SOLD[slice(*word)] for word in unsure] == ["yesterday."]


def test_a_word_that_stands_twice_shows_no_place() -> None:
    text, own = "x due x", "x due"
    uno, due = (0, 3), (4, 7)
    by_attention = [LinkedWords(uno, (0, 1)), LinkedWords(due, (2, 5)), LinkedWords(due, (6, 7))]
    links, unsure = _links_by_own(by_attention, text, own, [LinkedWords(uno, (2, 5)), LinkedWords(due, (0, 1))])
    assert set(links) == {LinkedWords(uno, (0, 1)), LinkedWords(uno, (2, 5)), LinkedWords(due, (6, 7))}
    assert unsure == ()


@pytest.mark.long
def test_formats_stand_at_their_words_in_translations_from_a_memory_or_are_named() -> None:
    corrections = {
        "He bought a red car yesterday.": "Hier il a acheté une voiture rouge.",
        "She sold a blue house yesterday.": "La veille, elle vendit une maison bleue.",
    }
    pairs = [MemoryPair(source, target, "m.tsv:1") for source, target in corrections.items()]
    model = load_translator(Path(__file__).parents[3] / "docs" / "demonstration")
    remembering = ModelTranslator.of(replace(model, memory=TranslationMemory.of(pairs, str, "m.tsv")))
    page = """<p>He bought a red car <u>yesterday</u>.</p>
<p>He bought a <u>red</u> car yesterday.</p>
<p>She sold a <u>blue</u> house yesterday.</p>
<p>She sold a blue house <u>yesterday</u>.</p>"""
    found = translate_document(read_document(page.encode(), format_named("html")), remembering)
    first, second, third, _ = found.data.decode().splitlines()
    assert first == "<p><u>Hier</u> il a acheté une voiture rouge.</p>"
    assert second == "<p>Hier il a acheté une voiture <u>rouge</u>.</p>"
    assert third == "<p>La veille, elle vendit une maison <u>bleue</u>.</p>"
    assert found.num_from_memory == 4
    assert [(doubt.place, doubt.reason) for doubt in found.doubts] == [("line 4", UNSURE_PLACE)]


@pytest.mark.parametrize(
    ("source", "target", "lost"),
    [
        ("Uno {name} due", "Sei", "{name}"),
        ("Uno %d due 5%", "Sei 5 %", "%d"),
        ("Uno %s %s due", "Sei %s", "%s"),
        ("Uno %sdue tre", "Sei", "%s"),
        ("Uno &lt;br&gt; due", "Sei", "<br>"),
    ],
)
def test_a_correction_without_a_placeholder_is_not_used_and_named(source: str, target: str, lost: str) -> None:
    page = f"<p>{source}</p><p>Uno tre</p>".encode()
    corrections = {unescape(source): target, "Uno tre": "Quattro"}
    found = translate_document(read_document(page, format_named("html")), with_memory(corrections))
    assert found.num_from_memory == 1
    assert f"its translation in the memory was not used, because it lacks {lost}" in found.doubts[0].reason
    text = unescape(found.data.decode())
    assert text.count(lost) == source.count(lost) or lost == "<br>"
    assert "Sei" not in text


def test_a_label_whose_mark_of_a_key_stands_in_the_memory_is_found() -> None:
    segment = replace(Segment.plain("&Uno due", "1"), is_label=True)
    document = SplicedDocument(DecodedText("&Uno due"), (Slot(0, 8, segment, lambda found: found.text),))
    found = translate_document(document, with_memory({"&Uno due": "Tre &sei"}))
    assert found.data == b"Tre &sei"


def test_a_missing_package_is_named_with_its_extra() -> None:
    missing = Format("nothing", (".x",), "plain_lines.read_plain_text", ("no_such_package",))
    with pytest.raises(UsageError) as caught:
        read_document(b"", missing)
    assert "the document format nothing needs no_such_package" in str(caught.value)
    assert '".[documents]"' in str(caught.value)
