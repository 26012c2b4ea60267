"""Characters that nobody sees change no translation, on every road to the model: texts, documents, servers, scores."""

import io
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from transformer_cli import load_translator
from transformer_cli.commands.next import next_token_probabilities
from transformer_cli.config import FilesData
from transformer_cli.data.pairs import SentencePair
from transformer_cli.decoding import Glossary, Translator
from transformer_cli.decoding.engine import ExplainingEngine
from transformer_cli.decoding.given_pairs import PairAligner, TextAligner, pair_likelihoods
from transformer_cli.decoding.line_form import with_fixed_spaces
from transformer_cli.decoding.translation import SourceText, copied
from transformer_cli.evaluation.validation import validate
from transformer_cli.extensions.documents import (
    ModelTranslator,
    format_named,
    read_document,
    translate_document,
)
from transformer_cli.text.normalization import with_plain_spaces

from ..extensions.serving.served_translators import served, small_runs
from .small_translators import WORDS, tokenizer_of_words, translator
from .test_details import COPIERS

SPACES = "\u00a0\u1680\u2000\u2003\u2009\u200a\u202f\u205f\u3000"
VANISHING = (
    "\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069"
    "\ufe0f\ufeff"
)
PLAIN, TARGET = "The station is big.", "La stazione è grande."
CHANGED = [
    *(f"The{space}station{space}is big." for space in SPACES),
    *(f"The sta{one}tion is big{one}." for one in VANISHING),
    *(f"{one}The {one}station{one} is big.{one}" for one in VANISHING),
]


@pytest.fixture(scope="module")
def trained() -> Translator:
    return load_translator(str(Path(__file__).parents[2] / "docs/run"))


@pytest.mark.long
@pytest.mark.parametrize("protects", [False, True])
def test_a_trained_model_translates_the_text_that_is_seen(trained: Translator, protects: bool) -> None:
    given = replace(trained, protects_spans=protects)
    assert {one.text for one in given.translate([PLAIN, *CHANGED])} == {TARGET}
    assert [one.source for one in given.translate(CHANGED)] == CHANGED


def test_with_details_the_words_of_the_given_line_are_linked(trained: Translator) -> None:
    [plain, *changed] = trained.translate([PLAIN, *CHANGED], with_details=True)
    assert plain.details is not None
    for one in changed:
        assert one.details is not None
        assert (one.text, one.details.links) == (plain.text, plain.details.links)


@pytest.mark.parametrize("kind", COPIERS)
def test_models_of_words_and_of_subwords_read_the_same(kind: str) -> None:
    [plain] = COPIERS[kind].translate(["Il gatto dorme."])
    changed = [f"Il{space}gatto dorme." for space in SPACES]
    changed += [f"Il ga{one}tto{one} dorme.{one}" for one in VANISHING]
    # A copy has both neighbours of a fixed space, so this comes back.
    assert {with_plain_spaces(one.text) for one in COPIERS[kind].translate(changed)} == {plain.text}


def test_a_model_that_was_trained_without_the_rule_reads_the_text_as_it_is() -> None:
    copier = COPIERS["bpe"]
    cleaning = copier.pipeline.data.cleaning.model_copy(update={"normalize_invisible": False})
    data = copier.pipeline.data.model_copy(update={"cleaning": cleaning})
    exact = replace(copier, pipeline=replace(copier.pipeline, data=data))
    line = "Il\u00a0ga\u00adtto"
    assert [one.text for one in exact.translate([line])] == [line]


@pytest.mark.parametrize(
    ("line", "translation"),
    [
        ("\u00a0\u3000The station is\u00a0big.", f"\u00a0\u3000{TARGET}"),
        ("\u200b- The sta\u00adtion is big.", f"- {TARGET}"),
        ("|\u2003The station\u202fis big.\u2003|", f"|\u2003{TARGET}\u2003|"),
    ],
)
def test_the_layout_of_a_line_keeps_its_spaces(trained: Translator, line: str, translation: str) -> None:
    assert [one.text for one in trained.translate([line])] == [translation]


@pytest.mark.long
@pytest.mark.parametrize(
    "span",
    [
        *("20\u00a0€", "5\u202f%", "1\u202f234\u202f567", "10\u2009000", "€\u00a05", "20\u00a0°C"),
        "\U0001f469\U0001f3fd\u200d\U0001f680",
        "\u2764\ufe0f\u200d\U0001f525",
        "1\ufe0f\u20e3",
        "\u00a9\ufe0f",
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    ],
)
def test_a_protected_span_comes_back_with_its_own_characters(trained: Translator, span: str) -> None:
    given = replace(trained, protects_spans=True)
    [found] = given.translate([f"The ca\u00adr costs\u00a0{span} today."])
    assert span in found.text
    assert not found.is_partly_copied
    assert "\u00ad" not in found.text


@pytest.mark.parametrize("space", ["\u00a0", "\u202f"])
@pytest.mark.parametrize(
    ("line", "plain", "expected"),
    [
        ("It has %d~MB.", "Ha %d MB.", "Ha %d~MB."),
        ("Here are {n}~dogs.", "Ecco {n} cani.", "Ecco {n}~cani."),
        ("I see 20~dogs and 5 cats.", "Vedo 20 cani e 5 gatti.", "Vedo 20~cani e 5 gatti."),
        ("Page~5 of 9", "Pagina 5 di 9", "Pagina~5 di 9"),
        ("10~000 dogs, 10 cats", "10 000 cani, 10 gatti", "10~000 cani, 10 gatti"),
        ("«~The dog.~»", "« Il cane. »", "«~Il cane.~»"),
        ("Call Mr.~Smith today", "Chiama Mr. Smith oggi", "Chiama Mr.~Smith oggi"),
        # The first of two, as in the line.
        ("5~dogs, 5 cats and 5", "5 cani, 5 gatti e 5", "5~cani, 5 gatti e 5"),
        # The neighbours stand together no more, or one of them is not there.
        ("I~see the dog.", "Vedo il cane.", "Vedo il cane."),
        ("The dog is~big.", "Il cane è grande.", "Il cane è grande."),
        ("It has %d~MB.", "Ha disegnato %d.", "Ha disegnato %d."),
        ("The station is big: 5~km", "车站很大 5公里", "车站很大 5公里"),
    ],
)
def test_a_fixed_space_comes_back_beside_what_the_translation_has_too(
    space: str, line: str, plain: str, expected: str
) -> None:
    given = SourceText(line.replace("~", space))
    assert with_fixed_spaces(given, copied(given.text, plain)).text == expected.replace("~", space)
    assert with_fixed_spaces(SourceText(line.replace("~", " ")), copied(line, plain)).text == plain


@pytest.mark.long
@pytest.mark.parametrize("protects", [False, True])
def test_a_translated_line_has_the_fixed_spaces_of_its_numbers_and_placeholders(
    trained: Translator, protects: bool
) -> None:
    given = replace(trained, protects_spans=protects)
    lines = ["The dog has {n}~cats.", "The room is 20~€.", "The dog is~big."]
    fixed, plain = ([line.replace("~", space) for line in lines] for space in ("\u00a0", " "))
    of_fixed, of_plain = ([one.text for one in given.translate(each)] for each in (fixed, plain))
    assert [text.replace("\u00a0", " ") for text in of_fixed] == of_plain
    assert ["{n}\u00a0" in of_fixed[0], "20\u00a0€" in of_fixed[1], "\u00a0" in of_fixed[2]] == [True, True, False]


def test_an_address_with_a_hidden_hyphen_comes_back_without_it(trained: Translator) -> None:
    given = replace(trained, protects_spans=True)
    [found] = given.translate(["Write to anna@exam\u00adple.com."])
    assert "anna@example.com" in found.text
    assert not found.is_partly_copied


def html(page: str, model: ModelTranslator) -> str:
    return translate_document(read_document(page.encode(), format_named("html")), model).data.decode()


def test_a_page_is_translated_as_it_is_seen_and_its_own_spaces_stay(trained: Translator) -> None:
    model = ModelTranslator.of(trained)
    plain = html("<p>The <b>station</b> is <i>big</i>.</p>", model)
    assert "<b>stazione</b>" in plain
    for page in (
        "<p>The <b>sta&shy;tion</b>&nbsp;is <i>big</i>.</p>",
        "<p>The&#8203; <b>station</b> is <i>b&#8203;ig</i>.&#xfeff;</p>",
        "<p>The <b>sta\u2060tion</b>&#x202f;is&ensp;<i>bi&zwj;g</i>.</p>",
    ):
        assert html(page, model) == plain
    outside = "<p>&nbsp;</p>\u00a0<!--\u00ad--><p>{}</p>"
    assert html(outside.format(PLAIN), model) == outside.format(TARGET)


def docx(run: str) -> bytes:
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    types = "http://schemas.openxmlformats.org/package/2006"
    part = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    files = {
        "[Content_Types].xml": f'<Types xmlns="{types}/content-types"><Override PartName="/word/document.xml" ContentType="{part}"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{types}/relationships"><Relationship Id="r1" Type="{relation}" Target="word/document.xml"/></Relationships>',
        "word/document.xml": f'<w:document xmlns:w="{word}"><w:body><w:p><w:r>{run}</w:r></w:p></w:body></w:document>',
    }
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return stream.getvalue()


@pytest.mark.parametrize(
    "run",
    [
        "<w:t>The sta</w:t><w:softHyphen/><w:t>tion is big.</w:t>",
        "<w:t>The\u00a0sta\u200btion is big.</w:t>",
    ],
)
def test_a_word_document_with_soft_hyphens_is_translated(trained: Translator, run: str) -> None:
    document = read_document(docx(run), format_named("docx"))
    found = translate_document(document, ModelTranslator.of(trained)).data
    with zipfile.ZipFile(io.BytesIO(found)) as archive:
        assert f">{TARGET}</w:t>" in archive.read("word/document.xml").decode()


@pytest.fixture(scope="module")
def client(trained: Translator) -> Iterator[TestClient]:
    with served(small_runs(trained)) as (client, _):
        yield client


@pytest.mark.long
@pytest.mark.parametrize("text", CHANGED[::4])
def test_a_server_translates_the_text_that_is_seen(client: TestClient, text: str) -> None:
    values = {"q": text, "source": "en", "target": "it"}
    assert client.post("/translate", json=values).json()["translatedText"] == TARGET


def test_a_server_translates_html_as_it_is_seen(client: TestClient) -> None:
    values = {"q": "The sta&shy;tion&nbsp;is <b>big</b>.", "source": "en", "target": "it"}
    answer = client.post("/translate", json={**values, "format": "html"})
    assert answer.json()["translatedText"] == "La stazione è <b>grande</b>."


def explaining(given: Translator) -> ExplainingEngine:
    assert isinstance(given.engine, ExplainingEngine)
    return given.engine


def test_scores_of_given_translations_are_those_of_the_text_that_is_seen(
    trained: Translator,
) -> None:
    plain, *changed = pair_likelihoods(trained, [(text, TARGET) for text in (PLAIN, *CHANGED)])
    for one in changed:
        assert one.num_tokens == plain.num_tokens
        assert one.log_probability == pytest.approx(plain.log_probability, abs=1e-4)
    losses = [
        validate(trained, [SentencePair(text, TARGET)], scores=()).loss for text in (PLAIN, CHANGED[0], CHANGED[-1])
    ]
    assert losses == pytest.approx([losses[0]] * 3, abs=1e-4)


def test_the_next_token_is_that_of_the_text_that_is_seen(trained: Translator) -> None:
    expected = next_token_probabilities(trained, PLAIN, "La stazione")
    for text in CHANGED[::5]:
        found = next_token_probabilities(trained, text, "La stazione")
        assert found.tolist() == pytest.approx(expected.tolist(), abs=1e-6)


def test_what_a_model_of_words_cannot_write_goes_from_the_beginning_of_a_translation() -> None:
    given = translator(tokenizer_of_words())
    prefixes = ["uno due", "uno\u00a0d\u00adue"]
    plain, changed = given.translate([WORDS[2]] * 2, prefixes=prefixes)
    assert changed.text == plain.text
    assert plain.text.startswith("uno due")


@pytest.mark.long
def test_terms_of_a_glossary_are_found_in_the_text_that_is_seen(trained: Translator) -> None:
    for entry in ({"the station": "il\u00a0cane"}, {"the\u00a0sta\u00adtion": "il cane"}):
        given = trained.with_glossary(Glossary.of(entry))
        [plain, changed] = given.translate([PLAIN, "The\u00a0sta\u200btion is big."])
        assert plain.text == changed.text
        assert [term.is_applied for term in changed.terms] == [True]


def test_aligned_words_are_those_of_the_given_lines(trained: Translator) -> None:
    aligner = PairAligner(trained.towards(None).pipeline, explaining(trained), 2000)
    changed = "\u200b The\u00a0sta\u00adtion \u2060 is big."
    plain, shifted = aligner.align([(PLAIN, TARGET), (changed, TARGET)])
    kept = [1, 2, 4, 5]  # the words 0 and 3 are only invisible characters
    assert {(kept[one.source], one.target) for one in plain.links} == {*shifted.links}


def test_aligned_places_are_those_of_the_given_text(trained: Translator) -> None:
    aligner = TextAligner(trained.towards(None).pipeline, explaining(trained), 2000)
    changed = "The\u00a0sta\u00adtion\u200b is big."
    links, plain_links = aligner.align([(changed, TARGET), (PLAIN, TARGET)])
    seen = [
        {(text[slice(*one.source)].replace("\u00ad", "").strip("\u200b"), one.target) for one in each}
        for text, each in ((changed, links), (PLAIN, plain_links))
    ]
    assert seen[0] == seen[1]
    assert ("station", (3, 11)) in seen[1]


def test_tokens_are_aligned_by_their_given_places_in_a_language_without_spaces() -> None:
    given = translator(tokenizer_of_words())
    languages: dict[str, Any] = {"source_language": "zh", "target_language": "ja"}
    data = FilesData(source="files", corpora=({"path": "a.tsv"},), **languages)  # type: ignore[arg-type]
    aligner = TextAligner(replace(given.pipeline, data=data), explaining(given), 2000)
    target = " ".join(WORDS[:2])
    [links] = aligner.align([("uno\u3000d\u200bue", target)])
    [plain] = aligner.align([("uno due", target)])
    places = {(0, 3): (0, 3), (3, 7): (3, 8)}
    assert {(places[one.source], one.target) for one in plain} == {*links}
