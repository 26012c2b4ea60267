"""English nouns, verbs, adjectives and articles."""

import pytest

from transformer_cli.phrasebook.words import english


@pytest.mark.parametrize(
    ("word", "article"),
    [("apple", "an "), ("car", "a "), ("hour", "an "), ("university", "a "), ("umbrella", "an ")],
)
def test_the_indefinite_article_follows_the_sound(word: str, article: str) -> None:
    assert english.indefinite_article(word) == article


@pytest.mark.parametrize(
    ("singular", "plural"),
    [
        ("car", "cars"),
        ("bus", "buses"),
        ("church", "churches"),
        ("city", "cities"),
        ("key", "keys"),
    ],
)
def test_regular_plurals_follow_the_spelling(singular: str, plural: str) -> None:
    assert english.plural_of(singular) == plural


@pytest.mark.parametrize(
    ("verb", "third_person", "ing", "past"),
    [
        ("call", "calls", "calling", "called"),
        ("love", "loves", "loving", "loved"),
        ("try", "tries", "trying", "tried"),
        ("play", "plays", "playing", "played"),
        ("stop", "stops", "stopping", "stopped"),
        ("watch", "watches", "watching", "watched"),
        ("travel", "travels", "travelling", "travelled"),
        ("open", "opens", "opening", "opened"),
        ("describe", "describes", "describing", "described"),
        ("prefer", "prefers", "preferring", "preferred"),
    ],
)
def test_regular_verbs_follow_the_spelling(
    verb: str, third_person: str, ing: str, past: str
) -> None:
    assert english.third_person(verb) == third_person
    assert english.ing_form(verb) == ing
    assert english.regular_past(verb) == past


def test_a_few_third_persons_and_ing_forms_are_special() -> None:
    assert english.third_person("have") == "has"
    assert english.third_person("go") == "goes"
    assert english.ing_form("see") == "seeing"


@pytest.mark.parametrize(
    ("adjective", "comparative", "superlative"),
    [
        ("big", "bigger", "biggest"),
        ("nice", "nicer", "nicest"),
        ("easy", "easier", "easiest"),
        ("grey", "greyer", "greyest"),
        ("simple", "simpler", "simplest"),
        ("expensive", "more expensive", "most expensive"),
        ("beautiful", "more beautiful", "most beautiful"),
    ],
)
def test_adjectives_are_compared_by_length(
    adjective: str, comparative: str, superlative: str
) -> None:
    assert english.comparative(adjective) == comparative
    assert english.superlative(adjective) == superlative


def test_contractions_leave_pairs_of_people_alone() -> None:
    assert english.contracted("I am not tired") == "I'm not tired"
    assert english.contracted("she does not know") == "she doesn't know"
    assert english.contracted("Anna and I am") == "Anna and I am"
