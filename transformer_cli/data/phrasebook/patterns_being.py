"""Sentence patterns with "be": how, what and where someone or something is."""

from __future__ import annotations

from functools import cache, partial

from transformer_cli.data.phrasebook.adverbials import (
    NOTHING,
    at_place,
    beside,
    inside,
    when,
)
from transformer_cli.data.phrasebook.clauses import (
    VerbPhrase,
    finished,
    italian_predicate,
    joined_words,
    question,
    statement,
)
from transformer_cli.data.phrasebook.draw import DeadEndError, Draw
from transformer_cli.data.phrasebook.english import indefinite_article
from transformer_cli.data.phrasebook.italian import adjective_forms
from transformer_cli.data.phrasebook.lexicon import (
    NOUNS,
    Adjective,
    Noun,
    adjectives,
    adjectives_for,
    adverbs,
    names,
    nouns,
    the_verb,
)
from transformer_cli.data.phrasebook.noun_phrases import (
    HE,
    SHE,
    SUBJECT_DETERMINERS,
    THEY,
    YOU,
    NounPhrase,
    named,
    noun_phrase,
    person_subject,
)
from transformer_cli.data.phrasebook.pattern import Pattern

Both = tuple[str, str]

BE = the_verb("essere", "be")
THERE_IS = {
    ("present", False): ("there is", "is there", "c'è"),
    ("present", True): ("there are", "are there", "ci sono"),
    ("past", False): ("there was", "was there", "c'era"),
    ("past", True): ("there were", "were there", "c'erano"),
    ("future", False): ("there will be", "will there be", "ci sarà"),
    ("future", True): ("there will be", "will there be", "ci saranno"),
}
BE_TENSES = ("present", "present", "present", "past", "future")


@cache
def described_things() -> tuple[Noun, ...]:
    """The nouns, other than people, that some adjective goes with."""
    return tuple(x for x in NOUNS if "person" not in x.classes and adjectives_for(x))


@cache
def passing_adjectives(noun: Noun) -> tuple[Adjective, ...]:
    """The adjectives for what may change: not red or French, but open or expensive."""
    return tuple(
        adjective
        for adjective in adjectives_for(noun, predicative=True)
        if adjective.is_comparable
        or adjective.position == "pred"
        or adjective.classes & {"openable", "warm", "vessel"}
    )


def thing_subject(draw: Draw) -> tuple[Noun, NounPhrase]:
    """Something that can be described: "these cars"."""
    noun = draw.pick(described_things())
    return noun, noun_phrase(
        draw, noun, ("the", "the", "the", "this", "that", "my", "many-the"), with_adjective=(False,)
    )


def adjective_phrase(
    draw: Draw, adjective: Adjective, form: str
) -> Both:
    """The adjective after "be", sometimes with a word of degree: "very tired"."""
    italian = adjective_forms(adjective.italian)[form]
    if adjective.is_comparable and draw.choose((True, False, False)):
        degree = draw.pick(adverbs("degree"))
        return f"{degree.english} {adjective.english}", f"{degree.italian} {italian}"
    return adjective.english, italian


def person_is(draw: Draw, tense: str, *, asks: bool = False) -> Both:
    """ "Anna is very tired"."""
    subject = person_subject(draw)
    adjective = draw.pick(adjectives("person", "grown"))
    complement = adjective_phrase(draw, adjective, subject.form)
    return _be_sentence(draw, subject, complement, tense, asks=asks)


def thing_is(draw: Draw, tense: str, *, asks: bool = False) -> Both:
    """ "These shoes are too expensive"."""
    noun, subject = thing_subject(draw)
    pool = adjectives_for(noun, predicative=True) if tense == "present" else passing_adjectives(noun)
    adjective = draw.pick(pool)
    complement = adjective_phrase(draw, adjective, subject.form)
    return _be_sentence(draw, subject, complement, tense, asks=asks)


def _be_sentence(
    draw: Draw, subject: NounPhrase, complement: Both, tense: str, *, asks: bool
) -> Both:
    phrase = VerbPhrase(BE, *complement)
    time = when(draw, tense) if tense != "present" and draw.choose((True, False, False)) else NOTHING
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
    return _be_sentence(draw, person_subject(draw), at_place(draw), tense, asks=asks)


def thing_is_at(draw: Draw, tense: str, *, asks: bool = False) -> Both:
    """ "The red cars are in front of the station", "My keys are on the table"."""
    subject, place = located(draw, SUBJECT_DETERMINERS)
    return _be_sentence(draw, subject, place, tense, asks=asks)


def located(draw: Draw, determiners: tuple[str, ...]) -> tuple[NounPhrase, Both]:
    """Something and a place where it may well be."""
    kind = draw.choose(("thing", "thing", "vehicle", "vehicle", "building", "animal", "furniture"))
    if kind == "thing":
        subject = noun_phrase(draw, draw.pick(nouns("thing", "clothing")), determiners)
        return subject, inside(draw) if draw.choose((True, True, False)) else beside(draw, "furniture")
    subject = noun_phrase(draw, draw.pick(nouns(kind)), determiners)
    if kind == "furniture":
        return subject, beside(draw, "furniture", "opening")
    if kind == "building":
        return subject, beside(draw, "building", "outdoors")
    return subject, beside(draw, "building", "outdoors", "tall", "drivable")


def there_is(draw: Draw, *, asks: bool = False) -> Both:
    """ "There are three books on the table", "Is there a bank near the station?"."""
    subject, place = located(draw, ("a", "a", "a", "number", "many", "another"))
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
    time = NOTHING if tense == "present" else when(draw, tense)
    english = joined_words("where", question(subject, phrase, tense)[0], time[0])
    verb = italian_predicate(subject, phrase, tense)
    lead = "dov'" if verb[0] in "eè" else "dove "
    return finished(draw, english, joined_words(lead + verb, subject.italian, time[1]), "?")


def _job_for(draw: Draw, subject: NounPhrase) -> tuple[Noun, str]:
    """A job that fits the subject, and the Italian word in the form that the subject needs."""
    noun = draw.pick(nouns("job", "student"))
    is_epicene = "epicene" in noun.classes and subject.form[1] == "s"
    if noun.form[0] != subject.form[0] and not is_epicene:
        raise DeadEndError
    return noun, subject.form if is_epicene else noun.form


def person_is_job(draw: Draw, *, asks: bool = False) -> Both:
    """ "My aunt is a dentist", "Mia zia è una dentista"."""
    subject = person_subject(draw)
    noun, form = _job_for(draw, subject)
    tense = draw.choose(("present", "present", "past"))
    if subject.form[1] == "p":
        complement = (noun.english[1], noun.italian[1])
    else:
        article = "una " if form[0] == "f" else ""
        italian = noun.italian[0]
        if article and italian[0] in "aeiou":
            article = "un'"
        if not article:
            article = "uno " if italian.startswith(("st", "sc", "z")) else "un "
        complement = (indefinite_article(noun.english[0]) + noun.english[0], article + italian)
    return _be_sentence(draw, subject, complement, tense, asks=asks)


def this_is(draw: Draw) -> Both:
    """ "These are my brothers", "Questi sono i miei fratelli"."""
    pool = nouns("family", "known", "pet", "thing", "clothing", "room", "vehicle", "own")
    phrase = noun_phrase(draw, draw.pick(pool), ("the", "my", "my"))
    pointer = draw.choose(("this", "that"))
    is_many = phrase.english_person == 5
    english_pointer = {"this": ("this is", "these are"), "that": ("that is", "those are")}
    stem = adjective_forms("questo" if pointer == "this" else "quello")[phrase.form]
    verb = "sono" if phrase.form[1] == "p" else "è"
    if pointer == "that" and phrase.form == "mp":
        stem = "quelli"
    negative = draw.choose((True, False, False, False))
    english = joined_words(english_pointer[pointer][is_many], "not" if negative else "", phrase.english)
    return finished(draw, english, joined_words(stem, "non" if negative else "", verb, phrase.italian))


def from_city(draw: Draw, *, asks: bool = False) -> Both:
    """ "She is from Rome", "È di Roma"."""
    subject = person_subject(draw)
    city = draw.pick(names("city"))
    return _be_sentence(
        draw, subject, (f"from {city.english}", f"di {city.italian}"), "present", asks=asks
    )


def where_from(draw: Draw) -> Both:
    """ "Where are you from?", "Di dove sei?"."""
    subject = person_subject(draw)
    if subject.person in {0, 3}:
        raise DeadEndError
    english = f"where {question(subject, VerbPhrase(BE), 'present')[0]} from"
    verb = italian_predicate(subject, VerbPhrase(BE), "present")
    return finished(draw, english, joined_words("di dov'è" if verb == "è" else f"di dove {verb}", subject.italian), "?")


def what_colour(draw: Draw) -> Both:
    """ "What colour are your shoes?", "Di che colore sono le tue scarpe?"."""
    pool = nouns("clothing", "vehicle", "furniture", "opening", "thing")
    phrase = noun_phrase(draw, draw.pick(pool), ("the", "my", "my"), with_adjective=(False,))
    is_many = phrase.english_person == 5
    verb = "sono" if phrase.form[1] == "p" else "è"
    english = f"what colour {'are' if is_many else 'is'} {phrase.english}"
    return finished(draw, english, f"di che colore {verb} {phrase.italian}", "?")


def belongs_to(draw: Draw) -> Both:
    """ "The red car is Anna's", "La macchina rossa è di Anna"."""
    pool = nouns("clothing", "vehicle", "thing", "pet")
    phrase = noun_phrase(draw, draw.pick(pool), ("the", "the", "this", "that"))
    name = draw.pick(names("person"))
    complement = (f"{name.english}'s", named(name).after("di"))
    return _be_sentence(draw, phrase, complement, "present", asks=draw.choose((True, False, False)))


def is_mine(draw: Draw) -> Both:
    """ "These shoes are not mine", "Queste scarpe non sono mie"."""
    pool = nouns("clothing", "vehicle", "thing", "pet")
    phrase = noun_phrase(draw, draw.pick(pool), ("the", "this", "that"))
    english, italian = draw.choose((("mine", "mio"), ("yours", "tuo"), ("ours", "nostro")))
    irregular = {"mio": "miei", "tuo": "tuoi"}
    owner = adjective_forms(italian)[phrase.form]
    if phrase.form == "mp":
        owner = irregular.get(italian, owner)
    return _be_sentence(draw, phrase, (english, owner), "present", asks=False)


def whose(draw: Draw) -> Both:
    """ "Whose shoes are these?", "Di chi sono queste scarpe?"."""
    pool = nouns("clothing", "vehicle", "thing", "pet")
    phrase = noun_phrase(draw, draw.pick(pool), ("this", "that"))
    pointer, _, words = phrase.english.partition(" ")
    is_many = phrase.english_person == 5
    verb = "sono" if phrase.form[1] == "p" else "è"
    english = f"whose {words} {'are' if is_many else 'is'} {pointer}"
    return finished(draw, english, f"di chi {verb} {phrase.italian}", "?")


def _in_tenses(name: str, build: object, weight: int) -> list[Pattern]:
    patterns = []
    for tense, share in (("present", 4), ("past", 2), ("future", 1)):
        stating = partial(build, tense=tense)  # type: ignore[call-overload]
        patterns.append(Pattern(f"{name}.{tense}", stating, weight * share))
        asking = partial(build, tense=tense, asks=True)  # type: ignore[call-overload]
        patterns.append(Pattern(f"{name}.{tense}.question", asking, weight * share // 3))
    return patterns


PATTERNS = (
    *_in_tenses("person_is", person_is, 40),
    *_in_tenses("thing_is", thing_is, 50),
    *_in_tenses("person_is_at", person_is_at, 20),
    *_in_tenses("thing_is_at", thing_is_at, 40),
    Pattern("there_is", there_is, 120),
    Pattern("there_is.question", partial(there_is, asks=True), 50),
    Pattern("where_is", partial(where_is, tense="present"), 80),
    Pattern("where_was", partial(where_is, tense="past"), 20),
    Pattern("where_are_you", partial(where_are_you, tense="present"), 5),
    Pattern("where_were_you", partial(where_are_you, tense="past"), 20),
    Pattern("job", person_is_job, 60),
    Pattern("job.question", partial(person_is_job, asks=True), 20),
    Pattern("this_is", this_is, 80),
    Pattern("from_city", from_city, 20),
    Pattern("from_city.question", partial(from_city, asks=True), 10),
    Pattern("where_from", where_from, 10),
    Pattern("what_colour", what_colour, 30),
    Pattern("belongs_to", belongs_to, 50),
    Pattern("is_mine", is_mine, 40),
    Pattern("whose", whose, 40),
)
