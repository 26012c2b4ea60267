"""[UNK] in a translation is replaced: with an engine that copies, each line must come out as it went in."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transformer_cli.decoding import Request, Translator
from transformer_cli.decoding.details import UnknownReplacement
from transformer_cli.decoding.translation import Link

from .test_details import copier, tokenizer_of, units_of_characters

COPIER = copier(tokenizer_of("wordlevel"))
lines = st.lists(
    st.sampled_from([*" (?'-\u00a0§😀", "Il", "gatto", "l'", "acqua", "è", "Zut", "zot", "你好", "10:30"]),
    max_size=20,
).map("".join)


def replacing(dictionary: dict[str, str] | None = None) -> Translator:
    pipeline = replace(COPIER.pipeline, replacement=UnknownReplacement(dictionary or {}))
    return replace(COPIER, pipeline=pipeline)


@given(line=lines)
@example(line="Zut il gatto (zot) l'Zot. § dorme")
def test_what_is_unknown_is_copied_and_the_words_are_still_linked(line: str) -> None:
    [translation] = replacing().translate([line], with_details=True)
    normalised = COPIER.pipeline.normalize_source(line)
    assert "".join(translation.text.split()) == "".join(normalised.split())
    assert translation.details is not None
    of_source, of_target = units_of_characters(normalised), units_of_characters(translation.text)
    expected = {Link(x, y) for x, y in zip(of_source, of_target, strict=True)}
    assert {*translation.details.links} == expected


def test_without_the_wish_it_stays() -> None:
    assert [one.text for one in COPIER.translate(["Il Zut"])] == ["Il [UNK]"]


def test_lines_that_differ_in_unknown_words_only_get_their_own_words() -> None:
    given = ["Il Zut dorme", "Il zot dorme", "Il Zut dorme"]
    assert [one.text for one in replacing().translate(given)] == given


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Il zut dorme", "Il cat nap dorme"),
        ("Il Zut dorme", "Il Cat nap dorme"),
        ("Zot zot (zut)", "Zot zot (cat nap)"),
        ("Il gatto", "Il gatto"),
    ],
)
def test_the_entry_of_a_dictionary_stands_in_its_place_with_the_capital_of_the_word(line: str, expected: str) -> None:
    dictionary = {"zut": "cat nap", "gatto": "known words are not looked up"}
    [translation] = replacing(dictionary).translate([line], with_details=True)
    assert translation.text == expected
    assert translation.details is not None
    targets = [link.target for link in translation.details.links]
    assert targets == [*range(len(expected.split()))]


def test_an_unknown_word_that_points_at_the_end_of_the_source_stays() -> None:
    pipeline = COPIER.pipeline
    unknown, end = pipeline.target_tokenizer.unk_id, pipeline.target_tokenizer.eos_id
    words = UnknownReplacement().words
    [hypothesis] = COPIER.engine.translate([Request((unknown, unknown, end))], COPIER.decoding)[0]
    [explanation] = COPIER.engine.explain(  # type: ignore[attr-defined]
        [Request(hypothesis.ids)], [hypothesis.ids], batch_tokens=9
    )
    explained = hypothesis._replace(explanation=explanation)
    found = words("Zut", (unknown, end), explained, pipeline.source_tokenizer)
    assert found == [" Zut", " [UNK]"]
