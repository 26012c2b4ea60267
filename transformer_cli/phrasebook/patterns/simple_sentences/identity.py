"""Sentence patterns that identify a person or a thing: job, origin, owner, this and that."""

from __future__ import annotations

from functools import partial

from transformer_cli.phrasebook.grammar.adverbials import Both
from transformer_cli.phrasebook.grammar.clauses import (
    VerbPhrase,
    finished,
    italian_predicate,
    joined_words,
    question,
    statement,
)
from transformer_cli.phrasebook.grammar.draw import DeadEndError, Draw
from transformer_cli.phrasebook.grammar.noun_phrases import NounPhrase, determined, noun_phrase
from transformer_cli.phrasebook.grammar.people import named, person_subject
from transformer_cli.phrasebook.patterns.pattern import Pattern
from transformer_cli.phrasebook.patterns.simple_sentences.being import be_sentence
from transformer_cli.phrasebook.words.english import indefinite_article
from transformer_cli.phrasebook.words.italian import adjective_forms
from transformer_cli.phrasebook.words.lexicon import BE, Noun, adjectives_for, names, nouns


def _job_for(draw: Draw, subject: NounPhrase) -> tuple[Noun, str]:
    """A job that suits the gender of the subject, and the Italian form of its noun."""
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
    return be_sentence(draw, subject, complement, tense, asks=asks)


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
    english = joined_words(
        english_pointer[pointer][is_many], "not" if negative else "", phrase.english
    )
    return finished(
        draw, english, joined_words(stem, "non" if negative else "", verb, phrase.italian)
    )


def from_city(draw: Draw, *, asks: bool = False) -> Both:
    """ "She is from Rome", "È di Roma"."""
    subject = person_subject(draw)
    city = draw.pick(names("city"))
    return be_sentence(
        draw, subject, (f"from {city.english}", f"di {city.italian}"), "present", asks=asks
    )


def where_from(draw: Draw) -> Both:
    """ "Where are you from?", "Di dove sei?"."""
    subject = person_subject(draw)
    if subject.person in {0, 3}:
        raise DeadEndError
    english = f"where {question(subject, VerbPhrase(BE), 'present')[0]} from"
    verb = italian_predicate(subject, VerbPhrase(BE), "present")
    return finished(
        draw,
        english,
        joined_words("di dov'è" if verb == "è" else f"di dove {verb}", subject.italian),
        "?",
    )


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
    return be_sentence(draw, phrase, complement, "present", asks=draw.choose((True, False, False)))


def is_mine(draw: Draw) -> Both:
    """ "These shoes are not mine", "Queste scarpe non sono mie"."""
    pool = nouns("clothing", "vehicle", "thing", "pet")
    phrase = noun_phrase(draw, draw.pick(pool), ("the", "this", "that"))
    english, italian = draw.choose((("mine", "mio"), ("yours", "tuo"), ("ours", "nostro")))
    irregular = {"mio": "miei", "tuo": "tuoi"}
    owner = adjective_forms(italian)[phrase.form]
    if phrase.form == "mp":
        owner = irregular.get(italian, owner)
    return be_sentence(draw, phrase, (english, owner), "present", asks=False)


def whose(draw: Draw) -> Both:
    """ "Whose shoes are these?", "Di chi sono queste scarpe?"."""
    pool = nouns("clothing", "vehicle", "thing", "pet")
    noun = draw.pick(pool)
    is_plural = noun.number == "count" and ("pair" in noun.classes or draw.choose((True, False)))
    phrase = determined(draw, draw.choose(("this", "that")), noun, is_plural)
    pointer, _, words = phrase.english.partition(" ")
    is_many = phrase.english_person == 5
    verb = "sono" if phrase.form[1] == "p" else "è"
    english = f"whose {words} {'are' if is_many else 'is'} {pointer}"
    return finished(draw, english, f"di chi {verb} {phrase.italian}", "?")


def owner_named(draw: Draw) -> Both:
    """ "Anna's car is red", "La macchina di Anna è rossa"."""
    name = draw.pick(names("person"))
    noun = draw.pick(nouns("clothing", "vehicle", "pet", "dwelling", "thing"))
    pool = adjectives_for(noun, predicative=True)
    if not pool or noun.number not in {"count", "plural"}:
        raise DeadEndError
    adjective = draw.pick(pool)
    is_plural = noun.number == "count" and (
        "pair" in noun.classes or draw.choose((True, False, False))
    )
    phrase = determined(draw, "the", noun, is_plural)
    owned = NounPhrase(
        f"{name.english}'s {phrase.english.removeprefix('the ')}",
        f"{phrase.bare} {named(name).after('di')}",
        phrase.form,
        True,
        phrase.person,
        phrase.english_person,
    )
    italian = adjective_forms(adjective.italian)[phrase.form]
    tense = draw.choose(("present", "present", "past"))
    words = VerbPhrase(BE, adjective.english, italian)
    return finished(
        draw, *statement(owned, words, tense, negative=draw.choose((True, False, False)))
    )


PATTERNS = (
    Pattern("owner_named", owner_named, 70),
    Pattern("job", person_is_job, 60),
    Pattern("job.question", partial(person_is_job, asks=True), 20),
    Pattern("this_is", this_is, 80),
    Pattern("from_city", from_city, 20),
    Pattern("from_city.question", partial(from_city, asks=True), 20),
    Pattern("where_from", where_from, 25),
    Pattern("what_colour", what_colour, 30),
    Pattern("belongs_to", belongs_to, 50),
    Pattern("is_mine", is_mine, 40),
    Pattern("whose", whose, 40),
)
