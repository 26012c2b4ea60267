"""Sentences that were checked by hand: the grammar must make exactly these translations."""

from pathlib import Path

import pytest

from transformer_cli.phrasebook.lookup import translations_of
from transformer_cli.phrasebook.patterns.all_patterns import PATTERNS

CHECKED = [
    tuple(line.split("\t"))
    for line in (Path(__file__).parent / "checked.tsv").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]


def test_hundreds_of_sentences_were_checked() -> None:
    assert len(CHECKED) >= 300
    assert len({row[0] for row in CHECKED}) == len(CHECKED)


@pytest.mark.parametrize(("english", "italian", "pattern"), CHECKED)
def test_the_grammar_makes_the_checked_sentence(english: str, italian: str, pattern: str) -> None:
    assert translations_of(english, pattern) == {pattern: {italian}}


def test_a_wrong_sentence_is_not_made() -> None:
    pattern = "thing_is.present"
    assert translations_of("The red car are old.", pattern) == {}
    assert translations_of("The soup is tired.", pattern) == {}


def test_an_ambiguous_sentence_has_both_translations() -> None:
    italian = {"Dove sono gli occhiali?", "Dove sono i bicchieri?"}
    assert translations_of("Where are the glasses?", "where_is") == {"where_is": italian}


def test_an_unknown_pattern_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no sentence pattern 'nonsense'"):
        translations_of("I am hungry.", "nonsense")


def test_pattern_names_are_distinct() -> None:
    assert len({pattern.name for pattern in PATTERNS}) == len(PATTERNS)
