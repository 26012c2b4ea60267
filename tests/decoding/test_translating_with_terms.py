"""The promise of a glossary: with any model and any terms, the target terms stand in the translations."""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_cli.config import DecodingConfig, SequencesData, TokenizerConfig
from transformer_cli.decoding import Glossary, Translation, Translator
from transformer_cli.decoding.details import UnknownReplacement
from transformer_cli.decoding.ensemble import combine_translators
from transformer_cli.decoding.glossary import (
    AppliedTerm,
    GlossaryEntry,
    RequiredTerm,
    RequiredTerms,
    applied_terms,
    word_sequence,
)
from transformer_cli.decoding.loading import load_translator
from transformer_cli.decoding.pytorch_engine import PyTorchEngine
from transformer_cli.decoding.translation import GlossaryUse
from transformer_cli.process.errors import DataError, UsageError
from transformer_cli.text.tokenizer import Tokenizer, train_tokenizer

from .small_translators import WORDS, random_model, tokenizer_of_words, translator

DOCS_RUN = Path(__file__).parents[2] / "docs/run"
TEXTS = [
    "Der Hund läuft über die Straße; das Haus ist groß.",
    "Die Haustür war offen, und l'acqua (kalt) kostet 5 €.",
    "Ein Mann steht vor dem Haus, ein Hund liegt davor.",
]
SIGNS = ["私は猫が好きです。", "猫は東京タワーの前にいる。", "私の家は大きい。"]
SUBWORDS = {
    "bpe": train_tokenizer(TEXTS, TokenizerConfig(kind="bpe", vocab_size=330)),
    "unigram": train_tokenizer(TEXTS, TokenizerConfig(kind="unigram", vocab_size=330)),
    "bpe of characters": train_tokenizer(SIGNS, TokenizerConfig(kind="bpe", vocab_size=300)),
    "words": train_tokenizer(TEXTS, TokenizerConfig()),
}
TRANSLATORS = {
    kind: translator(tokenizer, model=random_model(tokenizer, max_length=200)) for kind, tokenizer in SUBWORDS.items()
}
each_tokenizer = pytest.mark.parametrize("kind", SUBWORDS)

target_words = st.sampled_from(
    [
        "Haus",
        "Haustür",
        "Hund",
        "über",
        "C++",
        "猫",
        "東京タワー",
        "l'acqua",
        "Xylophon",
        "5 €",
        "…",
        "(kalt)",
        "10:30",
        "ab c",
    ]
)
targets = st.lists(target_words, min_size=1, max_size=2).map(" ".join)
source_words = st.sampled_from(["dog", "house", "front door", "cold", "five"])
glossaries = st.dictionaries(source_words, targets, max_size=3)
# A line of terms alone needs no model.
sources = st.lists(source_words, min_size=1, max_size=4).map(lambda words: " ".join(["the", *words]))


@pytest.mark.heavy
@each_tokenizer
@settings(max_examples=8)
@given(
    terms=glossaries,
    lines=st.lists(sources, min_size=1, max_size=3),
    beam_size=st.integers(1, 3),
    max_length=st.none() | st.integers(1, 6),
    allow_unknown=st.booleans(),
)
def test_all_target_terms_stand_in_the_translations(
    kind: str,
    terms: dict[str, str],
    lines: list[str],
    beam_size: int,
    max_length: int | None,
    allow_unknown: bool,
) -> None:
    decoding = DecodingConfig(
        beam_size=beam_size,
        num_best=beam_size,
        max_length=max_length,
        allow_unknown=allow_unknown,
    )
    plain = TRANSLATORS[kind]
    with_terms = Translator(plain.pipeline, plain.engine, decoding).with_glossary(Glossary.of(terms))
    for translation in with_terms.translate(lines):
        assert all(term.is_applied for term in translation.terms)
        for target in terms.values():
            number = sum(term.target == target for term in translation.terms)
            assert occurrences(target, translation.text) >= number
            assert all(occurrences(target, each.text) >= number for each in translation.alternatives)


def occurrences(target: str, text: str) -> int:
    """How often words stand in a text; a simpler way than that of the code under test."""
    words, wanted = word_sequence(text), word_sequence(target)
    places = [i for i in range(len(words)) if matches(words[i : i + len(wanted)], wanted, i)]
    return sum(1 for i, place in enumerate(places) if not i or place - places[i - 1] >= len(wanted))


def matches(words: list[str], wanted: list[str], place: int) -> bool:
    """Whether these are the words; the first letter of a text may be a capital."""
    same = words == wanted
    return (
        same
        or (place == 0 and "".join(words) == "".join(wanted).capitalize() and len(wanted) == 1)
        or (place == 0 and words[1:] == wanted[1:] and words[0] == wanted[0][:1].upper() + wanted[0][1:])
    )


@pytest.mark.long
@each_tokenizer
def test_lines_without_terms_are_translated_as_without_a_glossary(kind: str) -> None:
    plain = TRANSLATORS[kind]
    lines = ["five", "cold five", "front", ""]
    expected = list(plain.translate(lines))
    assert list(plain.with_glossary(Glossary.of({"dog": "Hund"})).translate(lines)) == expected


def required(kind: str, *entries: GlossaryEntry, text: str, max_length: int = 40) -> list[RequiredTerm]:
    terms = RequiredTerms(
        Glossary(entries),
        SUBWORDS[kind],
        normalize_source=str.strip,
        normalize_target=str.strip,
        max_length=max_length,
    )
    return [*terms.find(text)]


def test_a_term_has_its_forms_and_those_with_a_capital_letter_at_the_beginning() -> None:
    tokenizer = SUBWORDS["words"]
    [term] = required("words", GlossaryEntry("on", "vor", ("ein Hund",)), text="on")
    assert term.forms == ("vor", "ein Hund")
    assert term.first_forms == ("Ein Hund",)  # "Vor" is not in the vocabulary
    assert term.term is not None
    assert [tokenizer.decode(form) for form in term.term.forms] == ["vor", "ein Hund"]
    [exact] = required("words", GlossaryEntry("on", "ein Hund", (), True), text="on")
    assert exact.first_forms == ()


def test_a_term_that_is_not_in_the_vocabulary_stands_in_the_place_of_an_unknown_word() -> None:
    [term] = required("words", GlossaryEntry("on", "großes Xylophon", ("Hund",)), text="on")
    assert term.is_slot
    assert term.term is not None
    assert term.term.forms == ((Tokenizer.unk_id,),)
    tokenizer = SUBWORDS["words"]
    ids = [
        *tokenizer.encode("Der"),
        Tokenizer.unk_id,
        *tokenizer.encode("(kalt)"),
        Tokenizer.unk_id,
    ]
    assert tokenizer.decode(ids, [" großes Xylophon", " l' C++"]) == "Der großes Xylophon(kalt) l' C++"
    assert tokenizer.decode(ids, [" x"]) == "Der x(kalt) [UNK]"


def test_two_unknown_terms_come_in_the_order_of_the_source() -> None:
    terms = {"dog": "Xylophon", "house": "Yacht"}
    plain = TRANSLATORS["words"]
    for line in ("dog house", "house dog"):
        [translation] = plain.with_glossary(Glossary.of(terms)).translate([line])
        order = [word for word in word_sequence(translation.text) if word in terms.values()]
        assert order == [terms[word] for word in line.split()]
        assert "[UNK]" not in translation.text


def test_terms_without_room_are_left_out_and_told(caplog: pytest.LogCaptureFixture) -> None:
    entry = GlossaryEntry("dog", "Hund Hund Hund")
    terms = required("words", entry, text="dog dog dog", max_length=7)
    assert [each.term is not None for each in terms] == [True, True, False]
    use = GlossaryUse()
    text = "Hund Hund Hund, Hund Hund Hund"
    applied = applied_terms(text, terms)
    assert applied == (
        AppliedTerm("dog", entry.target, True),
        AppliedTerm("dog", entry.target, True),
        AppliedTerm("dog", entry.target, False),
    )
    with caplog.at_level(logging.INFO):
        use.add(Translation("", "", 0.0, ()))
        use.add(Translation("dog dog dog", text, 0.0, (), terms=applied))
        use.report()
    assert caplog.messages == [
        "line 2: the translation does not contain Hund Hund Hund, which the glossary gives for dog",
        "glossary: terms found: 3, in 1 of 2 lines; 1 missing in the translations",
    ]
    caplog.clear()
    with caplog.at_level(logging.INFO):
        GlossaryUse(num_lines=2).report()
    assert caplog.messages == ["glossary: no term was found"]


def test_a_target_term_counts_as_whole_words_only() -> None:
    [term] = required("bpe", GlossaryEntry("house", "Haus"), text="house")
    for text, is_applied in (
        ("das Haus.", True),
        ("Haustür", False),
        ("Haus-Tür", True),
        ("haus", False),
    ):
        assert [each.is_applied for each in applied_terms(text, [term])] == [is_applied]


@pytest.mark.parametrize(("source", "target"), [("\u200b", "x"), ("x", "\u200b")])
def test_a_term_that_nobody_can_see_is_refused(source: str, target: str) -> None:
    with pytest.raises(DataError, match=r"terms\.tsv:3: the (source|target) term has no visible"):
        required("bpe", GlossaryEntry(source, target, place="terms.tsv:3"), text="x")


def test_a_model_of_symbols_takes_no_glossary() -> None:
    tokenizer = tokenizer_of_words()
    symbols = translator(tokenizer, data=SequencesData(source="sequences", task="copy"))
    with pytest.raises(UsageError, match="the model of task copy translates no language"):
        symbols.with_glossary(Glossary.of({"1": "2"}))


@pytest.mark.long
@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
def test_a_prefix_and_the_terms_have_room_together(positions: str) -> None:
    tokenizer = tokenizer_of_words()
    model = random_model(tokenizer, positions=positions)
    with torch.no_grad():
        model.output.bias[Tokenizer.eos_id] = 50.0  # the model wants to end at once
    short = translator(tokenizer, model=model, max_length=1)
    terms = Glossary.of({"uno": "otto sette", "due": "sei"})
    [translation] = short.with_glossary(terms).translate(["uno due uno"], prefixes=["tre tre"])
    assert translation.text.startswith("tre tre")
    assert [term.is_applied for term in translation.terms] == [True] * 3
    assert {*WORDS} >= {*translation.text.split()}


def prepared(plain: Translator) -> Translator:
    engine = plain.engine
    assert isinstance(engine, PyTorchEngine)
    in_float32 = replace(engine, model=engine.model.float())
    return replace(plain, engine=in_float32.prepared())


@pytest.mark.long
@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize(
    "changed",
    [prepared, lambda plain: combine_translators([plain, plain], ["one", "the same"])],
    ids=["prepared", "ensemble"],
)
def test_other_forms_of_the_engine_find_the_same_translations(
    changed: Callable[[Translator], Translator], beam_size: int
) -> None:
    tokenizer = tokenizer_of_words()
    terms = Glossary.of({"uno": "otto sette", "due": "sei", "tre": "Xylophon"})
    lines = ["uno due tre", "due due", "quattro", "tre uno cinque sei"]
    plain = translator(tokenizer, model=random_model(tokenizer), beam_size=beam_size)
    expected = list(plain.with_glossary(terms).translate(lines))
    assert all(term.is_applied for each in expected for term in each.terms)
    other = changed(translator(tokenizer, model=random_model(tokenizer), beam_size=beam_size))
    found = list(other.with_glossary(terms).translate(lines))
    assert [each.text for each in found] == [each.text for each in expected]
    assert [each.terms for each in found] == [each.terms for each in expected]
    scores = [each.score for each in expected]
    assert [each.score for each in found] == pytest.approx(scores, rel=1e-4, abs=1e-5)


def speaking_unknown(**decoding: object) -> Translator:
    """A model that nearly always writes [UNK], and a pipeline that replaces it by words of the source."""
    tokenizer = tokenizer_of_words()
    model = random_model(tokenizer)
    with torch.no_grad():
        model.output.bias[Tokenizer.unk_id] = 50.0
    plain = translator(tokenizer, model=model, max_length=4, **decoding)
    return replace(plain, pipeline=replace(plain.pipeline, replacement=UnknownReplacement()))


def test_terms_in_the_place_of_unknown_words_come_before_words_of_the_source() -> None:
    terms = Glossary.of({"due": "Xylophon (kalt)", "tre": "sette"})
    lines = ["uno Zut due", "Zut Zut", "Zut tre Zut"]
    for with_details in (False, True):
        translations = speaking_unknown().with_glossary(terms).translate(lines, with_details=with_details)
        slot, none, known = [each.text for each in translations]
        assert slot.count("Xylophon (kalt)") == 1
        assert "Zut" not in slot
        assert "Zut" in none
        assert "sette" in known.split()
        assert "[UNK]" not in slot + none + known


def test_the_word_alignment_knows_the_words_of_a_term_in_place_of_an_unknown_word() -> None:
    plain = speaking_unknown().with_glossary(Glossary.of({"due": "Xylophon kalt"}))
    [translation] = plain.translate(["uno due"], with_details=True)
    assert translation.details is not None
    targets = {link.target for link in translation.details.links}
    assert targets == {*range(len(translation.text.split()))}


@pytest.mark.long
def test_terms_are_found_in_the_spelling_of_the_line() -> None:
    """A word that the model reads in another spelling is still the source term."""
    terms = Glossary((GlossaryEntry("UNO", "sei", (), True), GlossaryEntry("Dué", "otto")))
    plain = translator(tokenizer_of_words(), beam_size=2).with_glossary(terms)
    [translation] = plain.translate(["tre UNO uno dué"])
    assert [(term.source, term.is_applied) for term in translation.terms] == [("UNO", True), ("dué", True)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("line", "num_terms"),
    [
        ("  - uno due", 2),
        ("uno    due     tre", 2),
        ("UNO DUE TRE QUATTRO", 2),
        ("> uno. Due due!", 3),
        ("1. tre", 0),
    ],
)
def test_the_layout_and_the_terms_are_kept_together(line: str, num_terms: int) -> None:
    terms = {"uno": "Hund", "due": "Co. Ltd."}
    plain = TRANSLATORS["bpe"]
    assert plain.decoding.keep_layout
    [translation] = plain.with_glossary(Glossary.of(terms)).translate([line])
    assert [term.is_applied for term in translation.terms] == [True] * num_terms
    for term in translation.terms:
        target = term.target.upper() if line.isupper() else term.target
        assert occurrences(target, translation.text) >= 1
    indent = len(line) - len(line.lstrip(" ->"))
    assert translation.text.startswith(line[:indent])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sampling": {}}, "draws translations at random"),
        ({"sampling": {}, "mbr": {}}, "draws translations at random"),
        ({"diversity": {}}, "diverse beam search"),
        ({"beam_size": 6, "mbr": {}}, r"decoding\.mbr"),
    ],
)
def test_other_searches_take_no_glossary_however_it_is_set(settings: dict[str, object], message: str) -> None:
    terms = Glossary.of({"uno": "due"})
    plain = translator(tokenizer_of_words(), **settings)
    with pytest.raises(UsageError, match=message):
        plain.with_glossary(terms)
    later = replace(translator(tokenizer_of_words()).with_glossary(terms), decoding=plain.decoding)
    with pytest.raises(UsageError, match=message):
        later.translate(["uno"])


def test_the_full_stop_of_a_term_stays_at_the_end_of_a_heading() -> None:
    model = random_model(SUBWORDS["bpe"], max_length=200)
    with torch.no_grad():
        model.output.bias[Tokenizer.eos_id] = 50.0  # the model wants to end with the term
    plain = translator(SUBWORDS["bpe"], model=model)
    [translation] = plain.with_glossary(Glossary.of({"due": "Co. Ltd."})).translate(["due"])
    assert translation.text.endswith("Co. Ltd.")
    assert translation.terms == (AppliedTerm("due", "Co. Ltd.", True),)


@pytest.mark.long
@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("dog", "cagnolino"),
        ("Dog", "Cagnolino"),
        ("DOG", "CAGNOLINO"),
        ("  dog, big!", "  cagnolino, enorme!"),
        ("<b>dog</b> 3", "<b>cagnolino</b> 3"),
    ],
)
def test_a_line_of_terms_alone_needs_no_model(line: str, written: str) -> None:
    """The model of docs/run does not know the word dog by itself, and lines of such words stay as they are."""
    terms = {"dog": "cagnolino", "big": "enorme"}
    of = load_translator(DOCS_RUN).with_glossary(Glossary.of(terms))
    [found, other] = of.translate([line, "The house is here."])
    assert (found.text, found.score, found.doubts) == (written, 0.0, ())
    assert found.terms
    assert all(term.is_applied for term in found.terms)
    assert other.text == "La casa è qui."


@pytest.mark.long
def test_a_sentence_with_a_term_does_not_stay_as_it_is_because_the_model_guesses_other_words() -> None:
    of = load_translator(DOCS_RUN).with_glossary(Glossary.of({"dog": "cagnolino"}))
    [found] = of.translate(["The <b>dog</b> is big."])
    assert [term.is_applied for term in found.terms] == [True]
    assert "cagnolino" in found.text
    assert found.doubts
