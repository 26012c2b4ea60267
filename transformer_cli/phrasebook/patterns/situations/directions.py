"""Sentence patterns for finding the way: directions, distances, trains and opening hours."""

from __future__ import annotations

from functools import partial

from transformer_cli.phrasebook.grammar.adverbials import NOTHING, Both, at_time, when
from transformer_cli.phrasebook.grammar.clauses import (
    VerbPhrase,
    finished,
    joined_words,
    question,
    statement,
)
from transformer_cli.phrasebook.grammar.draw import DeadEndError, Draw
from transformer_cli.phrasebook.grammar.noun_phrases import NounPhrase, noun_phrase
from transformer_cli.phrasebook.patterns.pattern import Pattern
from transformer_cli.phrasebook.patterns.situations.travel import PLEASE
from transformer_cli.phrasebook.words.italian import adjective_forms
from transformer_cli.phrasebook.words.lexicon import BE, count_nouns, names, nouns, the_verb

TURNS = (
    ("turn left", "giri a sinistra"),
    ("turn right", "giri a destra"),
    ("go straight on", "vada sempre dritto"),
    ("stop", "si fermi"),
    ("cross the street", "attraversi la strada"),
)
ORDINALS = (
    ("first", "primo"),
    ("second", "secondo"),
    ("third", "terzo"),
    ("fourth", "quarto"),
    ("last", "ultimo"),
)


def excuse_me(draw: Draw) -> Both:
    """ "Excuse me, where is the station?", "Scusi, dov'è la stazione?"."""
    phrase = noun_phrase(
        draw,
        draw.pick(count_nouns("building", "public-place", "sight", "room")),
        ("the",),
        plurals=(False,),
    )
    return finished(
        draw, f"excuse me, where is {phrase.english}", f"scusi, dov'è {phrase.italian}", "?"
    )


def is_there_near(draw: Draw) -> Both:
    """ "Is there a pharmacy near here?", "C'è una farmacia qui vicino?"."""
    phrase = noun_phrase(
        draw, draw.pick(count_nouns("public-place", "sight")), ("a",), plurals=(False,)
    )
    lead = draw.choose((NOTHING, ("excuse me,", "scusi,")))
    return finished(
        draw,
        joined_words(lead[0], "is there", phrase.english, "near here"),
        joined_words(lead[1], "c'è", phrase.italian, "qui vicino"),
        "?",
    )


def directions(draw: Draw) -> Both:
    """ "Turn left after the church, please", "Giri a sinistra dopo la chiesa, per favore"."""
    turn = draw.choose(TURNS)
    noun = draw.pick(count_nouns("building", "public-place", "sight"))
    phrase = noun_phrase(draw, noun, ("the",), plurals=(False,))
    where = draw.choose((("after", "dopo"), ("before", "prima di"), ("in front of", "davanti a")))
    if where[0] == "in front of" and turn[0] == "go straight on":
        raise DeadEndError
    preposition = where[1].split()
    behind = (
        phrase.after(preposition[-1]) if len(preposition) > 1 else f"{where[1]} {phrase.italian}"
    )
    lead = f"{preposition[0]} {behind}" if len(preposition) > 1 else behind
    return finished(
        draw, f"{turn[0]} {where[0]} {phrase.english}{PLEASE[0]}", f"{turn[1]} {lead}{PLEASE[1]}"
    )


def on_the_left(draw: Draw, *, asks: bool = False) -> Both:
    """ "The bank is on the left", "La banca è a sinistra"; "Is the bank near here?"."""
    phrase = noun_phrase(
        draw,
        draw.pick(count_nouns("building", "room", "opening", "public-place")),
        ("the", "the", "my"),
    )
    side = draw.choose(
        (
            ("on the left", "a sinistra"),
            ("on the right", "a destra"),
            ("near here", "qui vicino"),
            ("far from here", "lontano da qui"),
        )
    )
    if side[0].startswith("far"):
        side = side[0], side[1].replace("lontano", adjective_forms("lontano")[phrase.form])
    if asks:
        return finished(draw, *question(phrase, VerbPhrase(BE, *side), "present"), "?")
    return finished(draw, *statement(phrase, VerbPhrase(BE, *side), "present"))


def ordinal_street(draw: Draw) -> Both:
    """ "It is the second door on the right", "È la seconda porta a destra"."""
    order = draw.choose(ORDINALS)
    noun = draw.pick(count_nouns("road", "opening", "room", "building"))
    side = draw.choose((("left", "sinistra"), ("right", "destra")))
    bare = f"{adjective_forms(order[1])[noun.form]} {noun.italian[0]}"
    phrase = NounPhrase(noun.english[0], bare, noun.form, True)
    return finished(
        draw,
        f"it is the {order[0]} {noun.english[0]} on the {side[0]}",
        f"è {phrase.italian} a {side[1]}",
    )


def far_from(draw: Draw, *, asks: bool) -> Both:
    """ "The museum is far from the station", "Il museo è lontano dalla stazione"."""
    pool = count_nouns("building", "public-place", "sight", "nature")
    first = noun_phrase(draw, draw.pick(pool), ("the", "the", "my"), plurals=(False,))
    second = noun_phrase(draw, draw.pick(pool), ("the", "the", "this", "my"), plurals=(False,))
    far = adjective_forms("lontano")[first.form]
    phrase = VerbPhrase(BE, f"far from {second.english}", f"{far} {second.after('da')}")
    if asks:
        return finished(draw, *question(first, phrase, "present"), "?")
    negative = draw.choose((True, False, False))
    return finished(draw, *statement(first, phrase, "present", negative=negative))


def transport(draw: Draw, tense: str) -> Both:
    """ "The train from Rome arrives at half past two"."""
    vehicle = draw.pick(nouns("public", "water"))
    phrase = noun_phrase(
        draw, vehicle, ("the", "the", "this", "my"), plurals=(False,), with_adjective=(False,)
    )
    verb = the_verb(*draw.choose((("arrivare", "arrive"), ("partire", "leave"))))
    english, italian = phrase.english, phrase.italian
    if draw.choose((True, False)):
        city = draw.pick(names("city"))
        word = ("from", "da") if verb.base == "arrive" else ("to", "per")
        english += f" {word[0]} {city.english}"
        italian += f" {word[1]} {city.italian}"
    subject = NounPhrase(english, italian, phrase.form)
    time = at_time(draw) if tense == "present" or draw.choose((True, False)) else when(draw, tense)
    words = statement(subject, VerbPhrase(verb, *time), tense)
    return finished(draw, *words)


def opens(draw: Draw, tense: str) -> Both:
    """ "The bank opens at nine o'clock", "La banca apre alle nove"."""
    phrase = noun_phrase(
        draw,
        draw.pick(nouns("openable-place")),
        ("the", "this"),
        with_adjective=(False, False, True),
    )
    verb = the_verb(*draw.choose((("aprire", "open"), ("chiudere", "close"))))
    return finished(draw, *statement(phrase, VerbPhrase(verb, *at_time(draw)), tense))


PATTERNS = (
    Pattern("excuse_me", excuse_me, 40),
    Pattern("is_there_near", is_there_near, 30),
    Pattern("directions", directions, 30),
    Pattern("on_the_left", on_the_left, 30),
    Pattern("on_the_left.question", partial(on_the_left, asks=True), 25),
    Pattern("ordinal_place", ordinal_street, 20),
    Pattern("far_from", partial(far_from, asks=False), 30),
    Pattern("far_from.question", partial(far_from, asks=True), 15),
    Pattern("transport.present", partial(transport, tense="present"), 40),
    Pattern("transport.past", partial(transport, tense="past"), 25),
    Pattern("transport.future", partial(transport, tense="future"), 25),
    Pattern("opens.present", partial(opens, tense="present"), 40),
    Pattern("opens.future", partial(opens, tense="future"), 15),
)
