"""Sentences that nobody says, or that lose their meaning in Italian: the grammar makes none of them."""

import re

import pytest

from transformer_cli.phrasebook import PhrasebookPair, generate_split
from transformer_cli.phrasebook.lookup import translations_of
from transformer_cli.phrasebook.words.lexicon import NOUNS, nouns

NUM_PAIRS = 20_000
MENU = "|".join(noun.english[0] for noun in nouns("menu"))
TONGUES = "|".join(noun.italian[0] for noun in nouns("tongue"))
THINGS = "|".join(
    form
    for noun in NOUNS
    if not noun.classes & {"person", "animal", "tongue"}
    for form in noun.english
)
COLOURS = "red|green|yellow|blue|white|black|brown|grey"
# A negative word, and the rest of its clause.
NEGATIVE = r"(\b(not|never|rarely|cannot)\b|n't\b)((?!\b(if|so|because|when|and|but|that)\b).)*"
WRONG_ENGLISH = {
    "some after a negative word": NEGATIVE + r"\bsome ",
    "a bit after a negative word": NEGATIVE + r"\ba bit ",
    "pay for the bill": r"\b(pay|pays|paying|paid) for (\w+ ){0,3}bills?\b",
    "tell a trip or a dream": r"\b(tell|tells|told|telling)\b.*\b(trips?|dreams?)\b",
    "take a coffee": rf"\b(take|takes|taking|took|taken) (a|an|the|this|that|my) (\w+ )?({MENU})\b",
    "take a photo, as if it were a thing": (
        r"\b(take|takes|taking|took|taken) (the|this|that|these|those|my|your|his|her|our|their) "
        r"(\w+ )?photos?\b"
    ),
    "finish a dictionary": r"\bfinish\w* (\w+ ){1,2}dictionar",
    "a person in an adverb's place": r"(^|\. )There (it|the weather)\b",
    "excuse me before a statement": r"^Excuse me, .*\.$",
    "a colour twice": rf"^\w+ ({COLOURS}) [\w ]+ (is|are) ({COLOURS})\b",
}
WRONG_ITALIAN = {
    "how often": r"\b[Qq]uanto spesso\b",
    "the perfect of hope": r"\bsperato\b",
    "the perfect of speaking a language": rf"\b(ho|hai|ha|abbiamo|avete|hanno) parlato ({TONGUES})\b",
    "into the shop instead of to it": (
        r"\b(va\w*|vado|and\w+|torn\w+|ven\w+|vien\w+) nel (negozio|castello|parcheggio)\b"
    ),
    "the progressive of come": r"\bst\w+ venendo\b",
    "the progressive of wear": r"\bst\w+ indossando\b",
    "di before water": r"\bdi acqua\b",
}


@pytest.fixture(scope="module")
def pairs() -> list[PhrasebookPair]:
    return list(generate_split("train", num_pairs=NUM_PAIRS, seed=3))


@pytest.mark.parametrize("fault", WRONG_ENGLISH)
def test_the_english_has_no_such_fault(pairs: list[PhrasebookPair], fault: str) -> None:
    wrong = re.compile(WRONG_ENGLISH[fault])
    assert [pair.source for pair in pairs if wrong.search(pair.source)] == []


@pytest.mark.parametrize("fault", WRONG_ITALIAN)
def test_the_italian_has_no_such_fault(pairs: list[PhrasebookPair], fault: str) -> None:
    wrong = re.compile(WRONG_ITALIAN[fault])
    assert [pair.target for pair in pairs if wrong.search(pair.target)] == []


def test_no_space_stands_before_a_final_mark(pairs: list[PhrasebookPair]) -> None:
    texts = [text for pair in pairs for text in (pair.source, pair.target)]
    assert [text for text in texts if re.search(r" [.?!,]|  ", text)] == []


def test_no_noun_lacks_its_article(pairs: list[PhrasebookPair]) -> None:
    """A determiner that the grammar does not know would leave the noun alone: "Train is late"."""
    countable = "|".join(noun.english[0] for noun in nouns("departure", "gadget", "timed"))
    alone = re.compile(rf"^({countable}) (is|was|has|had|starts)\b", re.IGNORECASE)
    assert [pair.source for pair in pairs if alone.search(pair.source)] == []


def test_a_person_after_a_thing_is_named_in_italian(pairs: list[PhrasebookPair]) -> None:
    """Without "lui", "L'appartamento non era vecchio perché non era arrabbiato" has one subject."""
    thing_first = re.compile(
        rf"^(The|This|That|These|Those|My|Your|His|Her|Our|Their) ({THINGS}) "
        r"(?!.*\b(of|that)\b).*\b(because|so|but|and) (he|she|they)\b"
    )
    linked = [pair for pair in pairs if pair.pattern.startswith(("side_by_side", "but_it"))]
    found = [pair for pair in linked if thing_first.search(pair.source)]
    assert len(found) >= 10
    # "mi piace" and its like have the person as a dative: "gli piace", "a lui piace".
    named = re.compile(r"\b(lui|lei|loro|gli|le)\b")
    assert [pair for pair in found if not named.search(pair.target)] == []


@pytest.mark.parametrize(
    ("english", "pattern", "italian"),
    [
        (
            "The flat was not old because he was not angry.",
            "side_by_side.past",
            "L'appartamento non era vecchio perché lui non era arrabbiato.",
        ),
        (
            "The shop is closed but she is hungry.",
            "side_by_side.present",
            "Il negozio è chiuso ma lei ha fame.",
        ),
        (
            "While he was cooking, Anna was reading.",
            "while_clause",
            "Mentre lui cucinava, Anna leggeva.",
        ),
        (
            "The jacket is black, but he bought it.",
            "but_it.past",
            "La giacca è nera, ma lui l'ha comprata.",
        ),
        (
            "Anna says that he worked.",
            "says_that.past",
            "Anna dice che lui ha lavorato.",
        ),
        ("They aren't coming to England.", "motion.progressive", "Non vengono in Inghilterra."),
        ("We go to the shop.", "motion.present", "Andiamo al negozio."),
        ("They hoped to rest.", "hope.past", "Speravano di riposarsi."),
        ("How often does she drive?", "how_often", "Ogni quanto guida?"),
        ("Your hands hurt a lot.", "hurts_a_lot", "Ti fanno molto male le mani."),
    ],
)
def test_the_italian_is_what_people_say(english: str, pattern: str, italian: str) -> None:
    assert translations_of(english, pattern) == {pattern: {italian}}
