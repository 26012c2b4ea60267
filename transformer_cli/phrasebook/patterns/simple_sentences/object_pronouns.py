"""Sentence patterns with object pronouns, which Italian puts before the verb (clitics)."""

from __future__ import annotations

from functools import cache, partial

from transformer_cli.phrasebook.grammar.adverbials import Both, sometimes_when
from transformer_cli.phrasebook.grammar.clauses import (
    VerbPhrase,
    finished,
    italian_predicate,
    joined_words,
    question,
    statement,
)
from transformer_cli.phrasebook.grammar.draw import DeadEndError, Draw
from transformer_cli.phrasebook.grammar.noun_phrases import NounPhrase, noun_phrase
from transformer_cli.phrasebook.grammar.people import SELF, STRESSED, person_subject, told_apart
from transformer_cli.phrasebook.patterns.pattern import Pattern, in_tenses
from transformer_cli.phrasebook.patterns.simple_sentences.full_verbs import transitive_verbs
from transformer_cli.phrasebook.patterns.simple_sentences.liking import to_whom
from transformer_cli.phrasebook.words.italian import adjective_forms
from transformer_cli.phrasebook.words.lexicon import (
    BE,
    Adjective,
    Noun,
    Verb,
    adjectives_for,
    nouns,
    objects_of,
    the_verb,
    verbs,
)

# English, Italian clitic, person, form of the participle ("" where it need not agree)
DIRECT = (
    ("me", "mi", 0, ""),
    ("you", "ti", 1, ""),
    ("him", "lo", 2, "ms"),
    ("her", "la", 2, "fs"),
    ("us", "ci", 3, ""),
    ("them", "li", 5, "mp"),
)
INDIRECT = (
    ("me", "mi", 0),
    ("you", "ti", 1),
    ("him", "gli", 2),
    ("her", "le", 2),
    ("us", "ci", 3),
    ("them", "gli", 5),
)
CLITIC_FOR = {"ms": "lo", "fs": "la", "mp": "li", "fp": "le"}


@cache
def verbs_for_people(tense: str) -> tuple[Verb, ...]:
    """The verbs whose object can be a person."""
    wanted = {"person", "family"}
    return tuple(verb for verb in transitive_verbs(tense) if verb.objects & wanted)


def _different(subject: NounPhrase, person: int) -> None:
    if person in SELF[subject.person]:
        raise DeadEndError


def sees_you(draw: Draw, tense: str, *, asks: bool = False) -> Both:
    """ "We saw her yesterday", "L'abbiamo vista ieri"."""
    subject = person_subject(draw)
    english, clitic, person, form = draw.choose(DIRECT)
    _different(subject, person)
    phrase = VerbPhrase(draw.pick(verbs_for_people(tense)), english, "", clitic, form)
    time = sometimes_when(draw, tense, phrase.verb)
    if asks:
        if subject.person in {0, 3}:
            raise DeadEndError
        words = question(subject, phrase, tense)
    else:
        words = statement(subject, phrase, tense, negative=draw.choose((True, False, False)))
    mark = "?" if asks else "."
    return finished(draw, joined_words(words[0], time[0]), joined_words(words[1], time[1]), mark)


def gives_you(draw: Draw, tense: str, *, asks: bool = False) -> Both:
    """ "She gave him the book", "Gli ha dato il libro"."""
    subject = person_subject(draw)
    english, clitic, person = draw.choose(INDIRECT)
    _different(subject, person)
    verb = draw.pick(verbs("giving", "telling"))
    thing = noun_phrase(draw, draw.pick(objects_of(verb)), ("the", "the", "a", "this", "my"))
    if verb.base in {"explain", "describe"}:
        words = f"{thing.english} to {english}"
    else:
        words = f"{english} {thing.english}"
    phrase = VerbPhrase(verb, words, thing.italian, clitic)
    time = sometimes_when(draw, tense, phrase.verb)
    if asks:
        if subject.person in {0, 3}:
            raise DeadEndError
        sentence = question(subject, phrase, tense)
    else:
        sentence = statement(subject, phrase, tense, negative=draw.choose((True, False, False)))
    mark = "?" if asks else "."
    return finished(
        draw, joined_words(sentence[0], time[0]), joined_words(sentence[1], time[1]), mark
    )


def _it(phrase: NounPhrase) -> str:
    return "them" if phrase.english_person == 5 else "it"


def _thing_for(
    draw: Draw, verb: Verb, with_adjective: tuple[bool, ...] = (True, False, False)
) -> tuple[Noun, NounPhrase]:
    noun = draw.pick(objects_of(verb))
    if noun.classes & {"person", "animal"}:
        raise DeadEndError
    return noun, noun_phrase(draw, noun, ("the", "the", "my"), with_adjective=with_adjective)


def _with_pronoun(verb: Verb, phrase: NounPhrase) -> VerbPhrase:
    words = f"{_it(phrase)} {verb.particle}" if verb.splits else _it(phrase)
    return VerbPhrase(verb, words, "", CLITIC_FOR[phrase.form], phrase.form)


def where_is_it(draw: Draw) -> Both:
    """ "Where are the keys? I can't find them.", "Dove sono le chiavi? Non le trovo."."""
    verb = draw.pick(transitive_verbs("must"))
    _, phrase = _thing_for(draw, verb)
    subject = person_subject(draw)
    tense = draw.choose(("want", "must", "present", "past", "can"))
    second = statement(subject, _with_pronoun(verb, phrase), tense)
    is_many = phrase.english_person == 5
    italian = f"dove sono {phrase.italian}" if phrase.form[1] == "p" else f"dov'è {phrase.italian}"
    english = f"where {'are' if is_many else 'is'} {phrase.english}"
    return finished(draw, f"{english}? {capital(second[0])}", f"{italian}? {capital(second[1])}")


def capital(words: str) -> str:
    """The words with a capital first letter."""
    return words[0].upper() + words[1:]


def but_it(draw: Draw, tense: str) -> Both:
    """ "The car is old, but I bought it", "La macchina è vecchia, ma l'ho comprata"."""
    verb = draw.pick(transitive_verbs("must"))
    noun, phrase = _thing_for(draw, verb, with_adjective=(False,))
    if not adjectives_for(noun, predicative=True):
        raise DeadEndError
    adjective = draw.pick(adjectives_for(noun, predicative=True))
    quality = (adjective.english, adjective_forms(adjective.italian)[phrase.form])
    first = statement(phrase, VerbPhrase(BE, *quality), "present")
    second = statement(told_apart(person_subject(draw)), _with_pronoun(verb, phrase), tense)
    return finished(draw, f"{first[0]}, but {second[0]}", f"{first[1]}, ma {second[1]}")


def the_one(draw: Draw, tense: str) -> Both:
    """ "The ticket? We bought it yesterday.", "Il biglietto? L'abbiamo comprato ieri."."""
    verb = draw.pick(transitive_verbs("must"))
    _, phrase = _thing_for(draw, verb)
    subject = person_subject(draw)
    negative = draw.choose((True, False, False))
    second = statement(subject, _with_pronoun(verb, phrase), tense, negative=negative)
    time = sometimes_when(draw, tense, verb)
    english = joined_words(f"{phrase.english}? {capital(second[0])}", time[0])
    return finished(draw, english, joined_words(f"{phrase.italian}? {capital(second[1])}", time[1]))


FAULTS = frozenset(
    [
        "ugly",
        "expensive",
        "old",
        "cold",
        "small",
        "dirty",
        "uncomfortable",
        "slow",
        "strange",
        "sad",
        "noisy",
        "simple",
    ]
)
MERITS = frozenset(
    [
        "beautiful",
        "cheap",
        "new",
        "big",
        "good",
        "delicious",
        "fresh",
        "sweet",
        "modern",
        "fast",
        "famous",
        "elegant",
        "hot",
    ]
)


@cache
def _qualities(noun: Noun, qualities: frozenset[str]) -> tuple[Adjective, ...]:
    return tuple(x for x in adjectives_for(noun, predicative=True) if x.english in qualities)


def likes_it(draw: Draw, *, negative: bool) -> Both:
    """ "The soup is cold, but I like it", "La zuppa è fredda, ma mi piace"."""
    pool = nouns("food", "drink", "clothing", "vehicle", "dwelling", "town", "show", "tale")
    noun = draw.pick(pool)
    adjective = draw.pick(_qualities(noun, MERITS if negative else FAULTS))
    phrase = noun_phrase(draw, noun, ("the", "this", "my"), with_adjective=(False,))
    quality = (adjective.english, adjective_forms(adjective.italian)[phrase.form])
    first = statement(phrase, VerbPhrase(BE, *quality), "present")
    subject = person_subject(draw)
    liking = VerbPhrase(the_verb("piacere", "like"), _it(phrase))
    second = statement(subject, liking, "present", negative=negative)[0]
    dative, clitic = to_whom(subject)
    verb = "piacciono" if phrase.form[1] == "p" else "piace"
    liked = joined_words(dative, "non" if negative else "", clitic, verb)
    return finished(draw, f"{first[0]}, but {second}", f"{first[1]}, ma {liked}")


def for_you(draw: Draw) -> Both:
    """ "This present is for her", "Questo regalo è per lei"."""
    pool = nouns("thing", "clothing", "food", "cup", "dwelling")
    phrase = noun_phrase(draw, draw.pick(pool), ("the", "this", "that"))
    english, italian, _ = draw.choose(STRESSED)
    words = statement(
        phrase,
        VerbPhrase(BE, f"for {english}", f"per {italian}"),
        "present",
        negative=draw.choose((True, False, False)),
    )
    return finished(draw, *words)


@cache
def _done_together() -> tuple[Verb, ...]:
    return tuple(verb for verb in verbs("intransitive") if verb.base not in {"sleep", "cry"})


def with_you(draw: Draw, tense: str, *, asks: bool = False) -> Both:
    """ "They work with me", "Lavorano con me"."""
    subject = person_subject(draw)
    english, italian, person = draw.choose(STRESSED)
    _different(subject, person)
    verb = draw.pick(_done_together())
    phrase = VerbPhrase(verb, f"with {english}", f"con {italian}")
    if asks:
        if subject.person in {0, 3}:
            raise DeadEndError
        words = question(subject, phrase, tense)
    else:
        words = statement(subject, phrase, tense, negative=draw.choose((True, False, False)))
    time = sometimes_when(draw, tense, phrase.verb)
    mark = "?" if asks else "."
    return finished(draw, joined_words(words[0], time[0]), joined_words(words[1], time[1]), mark)


def knows_it(draw: Draw) -> Both:
    """ "I don't know", "Non lo so"."""
    subject = person_subject(draw)
    know = the_verb("sapere", "know")
    negative = draw.choose((True, True, False))
    english = statement(
        subject, VerbPhrase(know, "" if negative else "it"), "present", negative=negative
    )[0]
    predicate = italian_predicate(
        subject, VerbPhrase(know, clitic="lo"), "present", negative=negative
    )
    return finished(draw, english, joined_words(subject.italian, predicate))


ALL = {
    "present": 50,
    "progressive": 30,
    "past": 70,
    "future": 40,
    "want": 30,
    "can": 20,
    "must": 20,
}

PATTERNS = (
    *in_tenses("sees_you", sees_you, ALL, asks=True),
    *in_tenses("gives_you", gives_you, ALL, asks=True),
    *in_tenses("but_it", but_it, {"past": 50, "want": 30, "future": 30}, asks=False),
    *in_tenses("the_one", the_one, {"past": 60, "present": 40, "future": 40}, asks=False),
    *in_tenses("with_you", with_you, {"present": 30, "past": 30, "future": 20}, asks=True),
    Pattern("where_is_it", where_is_it, 60),
    Pattern("likes_it", partial(likes_it, negative=False), 40),
    Pattern("dislikes_it", partial(likes_it, negative=True), 30),
    Pattern("for_you", for_you, 40),
    Pattern("knows_it", knows_it, 20),
)
