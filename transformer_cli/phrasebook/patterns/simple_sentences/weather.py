"""Sentence patterns about the weather, sometimes with a time and a place."""

from __future__ import annotations

from functools import cache, partial

from transformer_cli.phrasebook.grammar.adverbials import (
    NOTHING,
    Both,
    in_month,
    in_named_place,
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
from transformer_cli.phrasebook.grammar.noun_phrases import NounPhrase
from transformer_cli.phrasebook.patterns.pattern import Pattern
from transformer_cli.phrasebook.words.lexicon import BE, Adverb, adverbs, the_verb

IT = NounPhrase("it", "", "ms")
THE_WEATHER = NounPhrase("the weather", "tempo", "ms", is_definite=True)
FELT = (("hot", "caldo"), ("cold", "freddo"))
SEEN = (
    ("windy", "vento"),
    ("foggy", "nebbia"),
    ("sunny", "il sole"),
)
JUDGED = (("nice", "bello"), ("good", "bello"), ("bad", "brutto"))
THERE = {"present": "c'è", "past": "c'era", "future": "ci sarà"}
MADE = {"present": "fa", "past": "faceva", "future": "farà"}
DEGREES = (("", ""), ("", ""), ("very", "molto"), ("too", "troppo"), ("so", "così"))
HABITS = (
    ("it often {}", "{} spesso"),
    ("it never {}", "non {} mai"),
    ("it always {}", "{} sempre"),
    ("it rarely {}", "{} raramente"),
    ("it {} a lot", "{} molto"),
)
INDOORS = frozenset({"at home", "at work", "upstairs", "downstairs"})
TENSES = ("present", "past", "future")


@cache
def _outdoors() -> tuple[Adverb, ...]:
    return tuple(x for x in adverbs("home") if x.english not in INDOORS)


def weather_words(draw: Draw, tense: str, *, negative: bool = False, asks: bool = False) -> Both:
    """A clause about the weather: "it is very cold", "fa molto freddo".

    Args:
        tense: present, past or future.
    """
    kind = draw.choose(("felt", "felt", "seen", "judged", "falling", "falling"))
    if kind == "falling":
        return _falling_words(draw, tense, negative=negative, asks=asks)
    no = "non" if negative else ""
    english, italian = draw.choose({"felt": FELT, "seen": SEEN, "judged": JUDGED}[kind])
    draw.expect(english)
    degree = NOTHING if kind == "seen" else draw.choose(DEGREES)
    subject = THE_WEATHER if kind == "judged" else IT
    phrase = VerbPhrase(BE, joined_words(degree[0], english), joined_words(degree[1], italian))
    words = question(subject, phrase, tense)[0] if asks else ""
    words = words or statement(subject, phrase, tense, negative=negative)[0]
    if kind == "judged":
        return words, statement(subject, phrase, tense, negative=negative)[1]
    verb = THERE[tense] if kind == "seen" else MADE[tense]
    return words, joined_words(no, verb, degree[1], italian)


def _falling_words(draw: Draw, tense: str, *, negative: bool, asks: bool) -> Both:
    verb = the_verb(*draw.choose((("piovere", "rain"), ("nevicare", "snow"))))
    draw.expect(verb.base)
    turns = {
        "present": ("progressive",),
        "past": ("past", "past", "was_doing"),
        "future": ("future", "future", "going_to"),
    }
    turn = draw.choose(turns[tense])
    phrase = VerbPhrase(verb)
    return question(IT, phrase, turn) if asks else statement(IT, phrase, turn, negative=negative)


def _time(draw: Draw, tense: str) -> Both:
    if tense != "present":
        return when(draw, tense)
    adverb = draw.pick(adverbs("today", "now"))
    return draw.expect(adverb.english), adverb.italian


def _place(draw: Draw) -> Both:
    if draw.choose((True, True, False)):
        return in_named_place(draw)
    adverb = draw.pick(_outdoors())
    return draw.expect(adverb.english), adverb.italian


def _placed(draw: Draw, words: Both, time: Both, place: Both) -> Both:
    """The clause with time and place before or after it."""
    before, behind = draw.choose(
        ((NOTHING, (place, time)), (time, (place,)), (place, (time,)), (NOTHING, (time, place)))
    )
    if before[0] in {"here", "there"}:
        raise DeadEndError  # nobody says "There it is snowing now"
    english = joined_words(before[0], words[0], *(x[0] for x in behind))
    italian = joined_words(before[1], words[1], *(x[1] for x in behind))
    return english, italian


def weather(draw: Draw, *, asks: bool = False) -> Both:
    """ "Tomorrow it will rain in Rome", "Domani pioverà a Roma"; "Is it cold today?"."""
    tense = draw.choose(TENSES)
    negative = not asks and draw.choose((True, False, False, False))
    words = weather_words(draw, tense, negative=negative, asks=asks)
    time = _time(draw, tense) if draw.choose((True, True, False)) else NOTHING
    place = _place(draw) if draw.choose((True, False)) else NOTHING
    if asks:
        english = joined_words(words[0], place[0], time[0])
        return finished(draw, english, joined_words(words[1], place[1], time[1]), "?")
    return finished(draw, *_placed(draw, words, time, place))


def habitual_weather(draw: Draw) -> Both:
    """ "In winter it often snows in the mountains", "D'inverno nevica spesso in montagna"."""
    if draw.choose((True, False)):
        lead = draw.choose(HABITS)
        falls = draw.choose((("rains", "piove"), ("snows", "nevica")))
        words = lead[0].format(falls[0]), lead[1].format(falls[1])
    else:
        degree, felt = draw.choose(DEGREES), draw.choose(FELT)
        words = (
            joined_words("it is", degree[0], felt[0]),
            joined_words("fa", degree[1], felt[1]),
        )
    draw.expect(words[0])
    season = draw.choose((("in summer", "d'estate"), ("in winter", "d'inverno"), NOTHING))
    time = season if season[0] else in_month(draw)
    place = _place(draw) if draw.choose((True, False)) else NOTHING
    return finished(draw, *_placed(draw, words, time, place))


def what_weather(draw: Draw) -> Both:
    """ "What is the weather like in Rome?", "Che tempo fa a Roma?"."""
    tense = draw.choose(TENSES)
    english = {
        "present": "what is the weather like",
        "past": "what was the weather like",
        "future": "what will the weather be like",
    }[tense]
    time = _time(draw, tense) if draw.choose((True, False)) else NOTHING
    place = _place(draw) if draw.choose((True, True, False)) else NOTHING
    draw.expect(english)
    return finished(
        draw,
        joined_words(english, place[0], time[0]),
        joined_words("che tempo", MADE[tense], place[1], time[1]),
        "?",
    )


PATTERNS = (
    Pattern("weather", weather, 130),
    Pattern("weather.question", partial(weather, asks=True), 40),
    Pattern("weather.habit", habitual_weather, 40),
    Pattern("weather.what", what_weather, 25),
)
