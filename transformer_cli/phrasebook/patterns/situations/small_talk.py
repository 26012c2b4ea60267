"""Sentence patterns of small talk: time of day, date, names, greetings."""

from __future__ import annotations

from functools import partial

from transformer_cli.phrasebook.grammar.adverbials import (
    NOTHING,
    Both,
    clock,
    in_month,
    when,
)
from transformer_cli.phrasebook.grammar.clauses import (
    VerbPhrase,
    finished,
    joined_words,
    question,
    statement,
)
from transformer_cli.phrasebook.grammar.draw import DeadEndError, Draw
from transformer_cli.phrasebook.grammar.noun_phrases import ENGLISH_POSSESSIVES, noun_phrase
from transformer_cli.phrasebook.grammar.people import person_subject
from transformer_cli.phrasebook.patterns.pattern import Pattern, in_tenses
from transformer_cli.phrasebook.words.italian import definite_article
from transformer_cli.phrasebook.words.italian_verbs import REFLEXIVE_CLITICS, present
from transformer_cli.phrasebook.words.lexicon import adverbs, names, nouns, the_verb
from transformer_cli.phrasebook.words.number_words import italian_number

ENGLISH_ORDINALS = [
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
    "twentieth",
    "twenty-first",
    "twenty-second",
    "twenty-third",
    "twenty-fourth",
    "twenty-fifth",
    "twenty-sixth",
    "twenty-seventh",
    "twenty-eighth",
]
GREETINGS = (
    ("good morning", "buongiorno"),
    ("good evening", "buonasera"),
    ("good night", "buonanotte"),
    ("goodbye", "arrivederci"),
    ("hello", "ciao"),
    ("thank you", "grazie"),
    ("see you tomorrow", "a domani"),
    ("see you soon", "a presto"),
    ("have a good trip", "buon viaggio"),
    ("enjoy your meal", "buon appetito"),
    ("happy birthday", "buon compleanno"),
    ("good luck", "buona fortuna"),
)
ADDRESSES = (("sir", "signore"), ("madam", "signora"))


def hour(draw: Draw, *, was: bool = False) -> Both:
    """ "It is half past two", "Sono le due e mezza"."""
    english, italian, is_one = clock(draw, is_sharp=True)
    now, then = ("è l'", "era l'") if is_one else ("sono le ", "erano le ")
    lead = then if was else now
    return finished(draw, f"it {'was' if was else 'is'} {english}", lead + italian)


def weekday(draw: Draw) -> Both:
    """ "Tomorrow is Tuesday", "Domani è martedì"."""
    day = draw.pick(adverbs("weekday"))
    lead = draw.choose(
        (("today is", "oggi è"), ("tomorrow is", "domani è"), ("yesterday was", "ieri era"))
    )
    english, italian = f"{lead[0]} {day.english}", f"{lead[1]} {day.italian}"
    if draw.choose((True, True, False)):
        words, number, month = _day_of_month(draw)
        english, italian = f"{english}, {words}", f"{italian} {number} {month}"
    return finished(draw, english, italian)


def _day_of_month(draw: Draw) -> tuple[str, str, str]:
    """ "the third of May", "tre", "maggio"."""
    day = draw.choose(tuple(range(1, 29)))
    month = draw.pick(adverbs("month"))
    ordinal = "first" if day == 1 else ENGLISH_ORDINALS[day - 2]
    number = "primo" if day == 1 else italian_number(day)
    return draw.expect(f"the {ordinal} of {month.english}"), number, month.italian


def date(draw: Draw) -> Both:
    """ "Today is the third of May", "Oggi è il tre maggio"."""
    words, number, month = _day_of_month(draw)
    lead = draw.choose(
        (
            ("today is", "oggi è"),
            ("tomorrow is", "domani è"),
            ("my birthday is", "il mio compleanno è"),
        )
    )
    article = definite_article(number, "ms")
    on = "on " if lead[0].startswith("my") else ""
    return finished(
        draw,
        f"{lead[0]} {on}{words}",
        f"{lead[1]} {article}{number} {month}",
    )


def occasion_time(draw: Draw, tense: str, *, asks: bool = False) -> Both:
    """ "The concert is on Friday", "Il concerto è venerdì"."""
    occasion = noun_phrase(
        draw, draw.pick(nouns("occasion")), ("the", "the", "my", "this"), plurals=(False,)
    )
    time = (
        in_month(draw)
        if draw.choose((True, False, False))
        else when(draw, "future" if tense != "past" else "past")
    )
    phrase = VerbPhrase(the_verb("essere", "be"), *time)
    make = question if asks else statement
    return finished(draw, *make(occasion, phrase, tense), "?" if asks else ".")


def is_called(draw: Draw) -> Both:
    """ "My name is Anna", "Mi chiamo Anna"; "My brother's name is Marco"."""
    name = draw.pick(names("person"))
    if draw.choose((True, False)):
        person = draw.choose((0, 1, 2, 2))
        owner = draw.choose(("his", "her")) if person == 2 else ENGLISH_POSSESSIVES[person]
        if person == 2 and (owner == "her") != (name.form == "fs"):
            raise DeadEndError
        verb = f"{REFLEXIVE_CLITICS[person]} {present('chiamare', person)}"
        english, italian = f"{owner} name is {name.english}", f"{verb} {name.italian}"
        if person == 0 and draw.choose((True, False)):
            city = draw.pick(names("city"))
            english += f" and I am from {city.english}"
            italian += f" e sono di {city.italian}"
        return finished(draw, english, italian)
    noun = draw.pick(nouns("family", "pet", "friendly"))
    phrase = noun_phrase(draw, noun, ("my",), plurals=(False,), with_adjective=(False,))
    if "pet" not in noun.classes and phrase.form != name.form:
        raise DeadEndError
    return finished(
        draw,
        f"{phrase.english}'s name is {name.english}",
        f"{phrase.italian} si chiama {name.italian}",
    )


def what_name(draw: Draw) -> Both:
    """ "What is your sister's name?", "Come si chiama tua sorella?"."""
    phrase = noun_phrase(
        draw,
        draw.pick(nouns("family", "pet", "friendly")),
        ("my",),
        plurals=(False,),
        with_adjective=(False,),
    )
    return finished(
        draw, f"what is {phrase.english}'s name", f"come si chiama {phrase.italian}", "?"
    )


def how_are(draw: Draw) -> Both:
    """ "How is your mother?", "Come sta tua madre?"."""
    subject = person_subject(draw)
    if subject.person in {0, 3}:
        raise DeadEndError
    english = question(subject, VerbPhrase(the_verb("essere", "be")), "present")[0]
    return finished(
        draw,
        f"how {english}",
        joined_words("come", present("stare", subject.person), subject.italian),
        "?",
    )


def greeting(draw: Draw) -> Both:
    """ "Good morning, Anna!", "Buongiorno, Anna!"."""
    english, italian = draw.choose(GREETINGS)
    draw.expect(english)
    address = NOTHING
    turn = draw.choose(("none", "name", "name", "name", "polite"))
    if turn == "name":
        name = draw.pick(names("person"))
        address = f", {name.english}", f", {name.italian}"
    elif turn == "polite" and english not in {"hello", "see you soon", "see you tomorrow"}:
        title = draw.choose(ADDRESSES)
        address = f", {title[0]}", f", {title[1]}"
    return finished(draw, english + address[0], italian + address[1], "!")


PATTERNS = (
    Pattern("hour", hour, 25),
    Pattern("hour.past", partial(hour, was=True), 20),
    Pattern("weekday", weekday, 30),
    Pattern("date", date, 20),
    *in_tenses(
        "occasion_time", occasion_time, {"present": 25, "past": 20, "future": 20}, asks=True
    ),
    Pattern("is_called", is_called, 30),
    Pattern("what_name", what_name, 15),
    Pattern("how_are", how_are, 35),
    Pattern("greeting", greeting, 20),
)
