"""Sentence patterns with "be": what someone or something is like, and where."""

from __future__ import annotations

from functools import cache, partial

from transformer_cli.phrasebook.grammar.adverbials import (
    NOTHING,
    Both,
    at_place,
    beside,
    inside,
    when,
)
from transformer_cli.phrasebook.grammar.clauses import (
    VerbPhrase,
    finished,
    italian_predicate,
    joined_words,
    question,
    statement,
)
from transformer_cli.phrasebook.grammar.draw import DeadEndError, Draw
from transformer_cli.phrasebook.grammar.noun_phrases import (
    SUBJECT_DETERMINERS,
    NounPhrase,
    noun_phrase,
)
from transformer_cli.phrasebook.grammar.people import HE, SHE, THEY, YOU, named, person_subject
from transformer_cli.phrasebook.patterns.pattern import Pattern, in_tenses
from transformer_cli.phrasebook.words.italian import adjective_forms
from transformer_cli.phrasebook.words.lexicon import (
    BE,
    NOUNS,
    Adjective,
    Noun,
    adjectives,
    adjectives_for,
    adverbs,
    names,
    nouns,
)

THERE_IS = {
    ("present", False): ("there is", "is there", "c'è"),
    ("present", True): ("there are", "are there", "ci sono"),
    ("past", False): ("there was", "was there", "c'era"),
    ("past", True): ("there were", "were there", "c'erano"),
    ("future", False): ("there will be", "will there be", "ci sarà"),
    ("future", True): ("there will be", "will there be", "ci saranno"),
}
PLEASANT = frozenset({"beautiful", "good", "kind", "nice", "intelligent", "elegant", "happy"})
PLEASANT |= {"patient", "rich", "famous", "interesting", "important", "useful", "comfortable"}
PLEASANT |= {"easy", "fresh", "modern", "clean", "cheap", "strong", "quiet", "sweet", "fast"}
BE_TENSES = ("present", "present", "present", "past", "future")


@cache
def described_things() -> tuple[Noun, ...]:
    """The nouns, except people, that an adjective can describe."""
    return tuple(x for x in NOUNS if "person" not in x.classes and adjectives_for(x))


@cache
def passing_adjectives(noun: Noun) -> tuple[Adjective, ...]:
    """The adjectives for a quality that can change: open or expensive, but not red or French."""
    return tuple(
        adjective
        for adjective in adjectives_for(noun, predicative=True)
        if adjective.is_comparable
        or adjective.position == "pred"
        or adjective.classes & {"openable", "warm", "vessel"}
    )


def thing_subject(draw: Draw) -> tuple[Noun, NounPhrase]:
    """A noun that an adjective can describe, and its phrase as subject: "these cars"."""
    noun = draw.pick(described_things())
    return noun, noun_phrase(
        draw, noun, ("the", "the", "the", "this", "that", "my", "many-the"), with_adjective=(False,)
    )


def adjective_phrase(draw: Draw, adjective: Adjective, form: str) -> Both:
    """The adjective after "be", sometimes with an adverb of degree: "very tired"."""
    italian = adjective_forms(adjective.italian)[form]
    if adjective.is_comparable and draw.choose((True, False, False)):
        degree = draw.pick(adverbs("degree"))
        if degree.english == "a bit" and adjective.english in PLEASANT:
            raise DeadEndError  # nobody says "a bit beautiful"
        return f"{degree.english} {adjective.english}", f"{degree.italian} {italian}"
    return adjective.english, italian


@cache
def personal_adjectives(tense: str) -> tuple[Adjective, ...]:
    """The adjectives for people; nobody "will be tall tomorrow"."""
    lasting = {"young", "tall", "short", "old"} if tense == "future" else set()
    return tuple(x for x in adjectives("person", "grown") if x.english not in lasting)


def person_is(draw: Draw, tense: str, *, asks: bool = False) -> Both:
    """ "Anna is very tired"."""
    subject = person_subject(draw)
    adjective = draw.pick(personal_adjectives(tense))
    complement = adjective_phrase(draw, adjective, subject.form)
    return be_sentence(draw, subject, complement, tense, asks=asks)


def person_is_often(draw: Draw) -> Both:
    """ "I am always tired", "Sono sempre stanco"."""
    subject = person_subject(draw)
    adjective = draw.pick(personal_adjectives("future"))
    italian = adjective_forms(adjective.italian)[subject.form]
    adverb = draw.pick(adverbs("frequency", "leading"))
    phrase = VerbPhrase(BE, adjective.english, italian, adverb=adverb)
    return finished(draw, *statement(subject, phrase, "present"))


def thing_is(draw: Draw, tense: str, *, asks: bool = False) -> Both:
    """ "These shoes are too expensive"."""
    noun, subject = thing_subject(draw)
    pool = (
        adjectives_for(noun, predicative=True) if tense == "present" else passing_adjectives(noun)
    )
    adjective = draw.pick(pool)
    complement = adjective_phrase(draw, adjective, subject.form)
    return be_sentence(draw, subject, complement, tense, asks=asks)


def be_sentence(
    draw: Draw,
    subject: NounPhrase,
    complement: Both,
    tense: str,
    *,
    asks: bool,
    is_fixed: bool = False,
) -> Both:
    """Subject, "be", complement, perhaps a time; `is_fixed`: the fact does not change with time."""
    phrase = VerbPhrase(BE, *complement)
    may_pass = tense != "present" and not is_fixed
    time = when(draw, tense) if may_pass and draw.choose((True, False, False)) else NOTHING
    if asks:
        if subject.person in {0, 3}:
            raise DeadEndError
        words = question(subject, phrase, tense)
    else:
        negative = draw.choose((True, False, False))
        words = statement(subject, phrase, tense, negative=negative)
    mark = "?" if asks else "."
    return finished(draw, joined_words(words[0], time[0]), joined_words(words[1], time[1]), mark)


def person_is_at(draw: Draw, tense: str, *, asks: bool = False) -> Both:
    """ "We were at home yesterday"."""
    return be_sentence(draw, person_subject(draw), at_place(draw), tense, asks=asks)


def thing_is_at(draw: Draw, tense: str, *, asks: bool = False) -> Both:
    """ "The red cars are in front of the station", "My keys are on the table"."""
    subject, place, is_fixed = located(draw, SUBJECT_DETERMINERS)
    return be_sentence(draw, subject, place, tense, asks=asks, is_fixed=is_fixed)


def located(draw: Draw, determiners: tuple[str, ...]) -> tuple[NounPhrase, Both, bool]:
    """A thing, a likely place for it, and whether the thing cannot move."""
    kind = draw.choose(("thing", "thing", "vehicle", "vehicle", "building", "animal", "furniture"))
    if kind == "thing":
        subject = noun_phrase(draw, draw.pick(nouns("thing", "clothing")), determiners)
        is_inside = draw.choose((True, True, False))
        return subject, inside(draw) if is_inside else beside(draw, "furniture"), False
    subject = noun_phrase(draw, draw.pick(nouns(kind)), determiners)
    if kind == "furniture":
        return subject, beside(draw, "furniture", "opening"), True
    if kind == "building":
        return subject, beside(draw, "building", "outdoors", "nature"), True
    return subject, beside(draw, "building", "outdoors", "tall", "drivable"), False


def there_is(draw: Draw, *, asks: bool = False) -> Both:
    """ "There are three books on the table", "Is there a bank near the station?"."""
    subject, place, _ = located(draw, ("a", "a", "a", "number", "many", "another"))
    tense = draw.choose(BE_TENSES)
    english_forms = THERE_IS[tense, subject.english_person == 5]
    italian_verb = THERE_IS[tense, subject.form[1] == "p"][2]
    english = joined_words(english_forms[1 if asks else 0], subject.english, place[0])
    italian = joined_words(italian_verb, subject.italian, place[1])
    return finished(draw, english, italian, "?" if asks else ".")


def where_is(draw: Draw, tense: str) -> Both:
    """ "Where are my keys?", "Dove sono le mie chiavi?"."""
    pool = nouns("thing", "clothing", "building", "vehicle", "pet", "family", "known", "outdoors")
    subject = noun_phrase(draw, draw.pick(pool), ("the", "the", "my"))
    phrase = VerbPhrase(BE)
    english = f"where {question(subject, phrase, tense)[0]}"
    verb = italian_predicate(subject, phrase, tense)
    lead = "dov'" if verb[0] in "eè" else "dove "
    return finished(draw, english, f"{lead}{verb} {subject.italian}", "?")


def where_are_you(draw: Draw, tense: str) -> Both:
    """ "Where is he?", "Dov'è?"."""
    subject = draw.choose((YOU, HE, SHE, THEY, None)) or named(draw.pick(names("person")))
    draw.expect(subject.english)
    phrase = VerbPhrase(BE)
    if tense == "present":
        time = when(draw, "progressive") if draw.choose((True, False)) else NOTHING
    else:
        time = when(draw, tense)
    english = joined_words("where", question(subject, phrase, tense)[0], time[0])
    verb = italian_predicate(subject, phrase, tense)
    lead = "dov'" if verb[0] in "eè" else "dove "
    return finished(draw, english, joined_words(lead + verb, subject.italian, time[1]), "?")


PATTERNS = (
    Pattern("person_is_often", person_is_often, 40),
    *in_tenses("person_is", person_is, {"present": 160, "past": 80, "future": 40}, asks=True),
    *in_tenses("thing_is", thing_is, {"present": 200, "past": 100, "future": 50}, asks=True),
    *in_tenses("person_is_at", person_is_at, {"present": 80, "past": 40, "future": 20}, asks=True),
    *in_tenses("thing_is_at", thing_is_at, {"present": 160, "past": 80, "future": 40}, asks=True),
    Pattern("there_is", there_is, 120),
    Pattern("there_is.question", partial(there_is, asks=True), 50),
    Pattern("where_is", partial(where_is, tense="present"), 80),
    Pattern("where_was", partial(where_is, tense="past"), 20),
    Pattern("where_are_you", partial(where_are_you, tense="present"), 40),
    Pattern("where_were_you", partial(where_are_you, tense="past"), 20),
)
