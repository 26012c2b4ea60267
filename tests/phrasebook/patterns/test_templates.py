"""Sentence patterns that are read from a table: slots, alternatives and what they refer to."""

import re

import pytest

from transformer_cli.phrasebook.grammar.draw import DeadEndError, RandomDraw
from transformer_cli.phrasebook.grammar.noun_phrases import OBJECT_DETERMINERS
from transformer_cli.phrasebook.patterns.situations.templates import (
    CHOICE,
    FILLERS,
    PACKAGE,
    PATTERNS,
    SLOT,
    Template,
    build_from,
)
from transformer_cli.phrasebook.words.lexicon import NAMES, NOUNS
from transformer_cli.phrasebook.words.word_tables import read_table

ROWS = read_table("sentence_templates.tsv", columns=4, package=PACKAGE)
CLASSES = {name for noun in NOUNS for name in noun.classes}
DETERMINERS = {*OBJECT_DETERMINERS, "every"}


def built(english: str, italian: str) -> set[tuple[str, str]]:
    """What a template gives in many draws."""
    draw = RandomDraw(1, is_training=False)
    found = set()
    for _ in range(400):
        draw.start("test")
        try:
            found.add(build_from(draw, template=Template(english, italian)))
        except DeadEndError:
            continue
    return found


def test_alternatives_are_chosen_in_both_languages_at_once() -> None:
    assert built("[I am|we are] late.", "[sono|siamo] in ritardo.") == {
        ("I am late.", "Sono in ritardo."),
        ("I'm late.", "Sono in ritardo."),
        ("We are late.", "Siamo in ritardo."),
        ("We're late.", "Siamo in ritardo."),
    }


def test_brackets_with_a_name_make_one_choice() -> None:
    assert built("[1=can I|I must] pay[1=?|.]", "[1=posso|devo] pagare[1=?|.]") == {
        ("Can I pay?", "Posso pagare?"),
        ("I must pay.", "Devo pagare."),
    }


def test_an_adjective_agrees_and_a_preposition_joins_the_article() -> None:
    found = built("the {p^:part=the} of {o:gadget=the} is broken.", "{p} {o/di} è {p~rotto}.")
    assert ("The battery of the phone is broken.", "La batteria del telefono è rotta.") in found
    assert ("The screen of the phone is broken.", "Lo schermo del telefono è rotto.") in found


def test_a_verb_has_the_person_of_its_slot() -> None:
    found = built("{s:#subject} {s!be} here.", "{s} {s!essere} qui.")
    assert {("We are here.", "Siamo qui."), ("She is here.", "È qui.")} <= found


def test_your_is_not_said_to_a_stranger() -> None:
    found = built("please keep {n:kept=my}.", "per favore, tenga {n}.")
    assert found
    assert not any("your" in english for english, _ in found)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_of_the_table_is_well_formed(row: tuple[str, ...]) -> None:
    _, _, english, italian = row
    brackets = [
        [(match[1], len(match[2].split("|"))) for match in CHOICE.finditer(text)]
        for text in (english, italian)
    ]
    named = [{name: size for name, size in side if name} for side in brackets]
    unnamed = [[size for name, size in side if not name] for side in brackets]
    assert named[1].items() <= named[0].items()
    assert unnamed[1] in ([], unnamed[0])  # [of|for] may be one word in Italian
    for match in SLOT.finditer(english):
        assert_known(match[3] or "")


def assert_known(filler: str) -> None:
    """Each class, determiner and name of a filler exists."""
    if filler.startswith("#"):
        assert filler[1:] in FILLERS
    elif filler.startswith("@"):
        assert set(filler[1:].split("+")) <= {name.kind for name in NAMES}
    elif filler:
        classes, _, rest = filler.removeprefix(">").partition("=")
        assert set(classes.split("+")) <= CLASSES
        assert filler.startswith(">") or set(rest.split(" ")[0].split(",")) <= DETERMINERS


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_no_bracket_or_brace_is_left_in_a_sentence(pattern: object) -> None:
    draw = RandomDraw(1, is_training=True)
    num_built = 0
    for _ in range(60):
        draw.start(pattern.name)  # type: ignore[attr-defined]
        try:
            words = " ".join(pattern.build(draw))  # type: ignore[attr-defined]
        except DeadEndError:
            continue
        num_built += 1
        assert not re.search(r"[][{}|=~^]", words), words
    assert num_built >= 5
