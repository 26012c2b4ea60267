"""Adverbials of time, place and direction in both languages."""

from __future__ import annotations

from functools import cache

from transformer_cli.phrasebook.grammar.draw import Draw
from transformer_cli.phrasebook.grammar.noun_phrases import (
    DEFINITE_DETERMINERS,
    NUMBERS,
    NounPhrase,
    noun_phrase,
)
from transformer_cli.phrasebook.words.lexicon import (
    Adverb,
    Noun,
    Verb,
    adverbs,
    count_nouns,
    names,
    nouns,
    places,
)

Both = tuple[str, str]

NOTHING: Both = ("", "")

ADVERB_KINDS = {
    "present": "habit",
    "used_to": "habit",
    "progressive": "now today",
    "past": "past today",
    "future": "future today",
    "going_to": "future",
    "want": "future today",
    "must": "future today",
    "have_to": "future",
    "can": "future",
    "should": "future",
    "would_like": "future",
    "was_doing": "",
    "perfect": "",
    "skill": "",
}
HOURS = (
    ("one", "una"),
    *NUMBERS[:9],
    ("eleven", "undici"),
    ("twelve", "dodici"),
)
MINUTES = (
    ("{}", "{}"),
    ("{}", "{}"),
    ("half past {}", "{} e mezza"),
    ("a quarter past {}", "{} e un quarto"),
    ("a quarter to {}", "{} meno un quarto"),
    ("ten past {}", "{} e dieci"),
    ("twenty past {}", "{} e venti"),
    ("ten to {}", "{} meno dieci"),
)
SPANS = (
    ("days", "giorni"),
    ("weeks", "settimane"),
    ("months", "mesi"),
    ("years", "anni"),
    ("hours", "ore"),
)
RELATIONS = (
    ("in front of", "davanti", "a"),
    ("behind", "", "dietro"),
    ("next to", "accanto", "a"),
    ("near", "vicino", "a"),
    ("opposite", "di fronte", "a"),
)


def clock(draw: Draw, *, is_sharp: bool = False) -> tuple[str, str, bool]:
    """A time of day without its preposition, and whether its Italian is singular (l'una).

    Args:
        is_sharp: whether a full hour always has "o'clock".
    """
    hour = draw.choose(HOURS)
    english_minutes, italian_minutes = draw.choose(MINUTES)
    english = english_minutes.format(hour[0])
    if english == hour[0] and (is_sharp or draw.choose((True, False))):
        english += " o'clock"
    return draw.expect(english), italian_minutes.format(hour[1]), hour[0] == "one"


def at_time(draw: Draw) -> Both:
    """ "at half past two", "alle due e mezza"."""
    english, italian, is_one = clock(draw)
    return f"at {english}", f"all'{italian}" if is_one else f"alle {italian}"


def _on_day(draw: Draw, tense: str) -> Both:
    day = draw.pick(adverbs("weekday"))
    if tense in {"present", "used_to"}:
        article = "la" if day.italian == "domenica" else "il"
        return draw.choose(
            (
                (f"on {day.english}s", f"{article} {day.italian}"),
                (f"every {day.english}", f"ogni {day.italian}"),
            )
        )
    last, following = (
        ("scorsa", "prossima") if day.italian == "domenica" else ("scorso", "prossimo")
    )
    plain = (f"on {day.english}", day.italian)
    if tense == "past":
        return draw.choose((plain, (f"last {day.english}", f"{day.italian} {last}")))
    return draw.choose((plain, (f"next {day.english}", f"{day.italian} {following}")))


def _span(draw: Draw, tense: str) -> Both:
    number = draw.choose(NUMBERS)
    span = draw.choose(SPANS)
    if tense == "past":
        return f"{number[0]} {span[0]} ago", f"{number[1]} {span[1]} fa"
    return f"in {number[0]} {span[0]}", f"tra {number[1]} {span[1]}"


def when(draw: Draw, tense: str) -> Both:
    """An adverbial of time that suits the tense; `NOTHING` if none does."""
    kind = ADVERB_KINDS[tense]
    if not kind:
        return NOTHING
    turn = (
        "adverb"
        if tense == "progressive"
        else draw.choose(("adverb",) * 8 + ("day",) * 4 + ("other",))
    )
    if turn == "day":
        english, italian = _on_day(draw, tense)
    elif turn == "other" and tense in {"past", "future"}:
        english, italian = _span(draw, tense)
    elif turn == "other":
        english, italian = at_time(draw)
    else:
        adverb = draw.pick(adverbs(*kind.split()))
        english, italian = adverb.english, adverb.italian
    return draw.expect(english), italian


def sometimes_when(draw: Draw, tense: str, verb: Verb) -> Both:
    """An adverbial of time, or `NOTHING`; always `NOTHING` for verbs such as know and love."""
    if "stative" in verb.flags:
        return NOTHING
    return when(draw, tense) if draw.choose((True, False)) else NOTHING


def in_month(draw: Draw) -> Both:
    """ "in May", "a maggio"."""
    month = draw.pick(adverbs("month"))
    if month.italian[0] == "a":
        return f"in {month.english}", f"ad {month.italian}"
    return f"in {month.english}", f"a {month.italian}"


def _italian_place(place: Noun, phrase: NounPhrase, is_bare: bool, is_goal: bool) -> str:
    _, preposition, *otherwise = place.place.split(":")
    if is_bare and preposition.endswith("-"):
        return f"{preposition[:-1]} {place.italian[0]}"
    if is_goal and phrase.is_definite and len(otherwise) == 2:
        preposition = otherwise[1]
    elif not is_bare and otherwise:
        preposition = otherwise[0]
    return phrase.after(preposition.removesuffix("-"))


def _place(
    draw: Draw, pool: tuple[Noun, ...], *, is_goal: bool = False
) -> tuple[Noun, NounPhrase, str]:
    place = draw.pick(pool)
    phrase = noun_phrase(
        draw, place, DEFINITE_DETERMINERS, with_adjective=(False, False, True), plurals=(False,)
    )
    is_bare = phrase.english == f"the {place.english[0]}"
    return place, phrase, _italian_place(place, phrase, is_bare, is_goal)


def in_named_place(draw: Draw) -> Both:
    """ "in Rome", "a Roma"; "in Italy", "in Italia"."""
    name = draw.pick(names("city", "country"))
    preposition = "in" if name.kind == "country" else "a"
    return draw.expect(f"in {name.english}"), f"{preposition} {name.italian}"


def of_named_place(draw: Draw) -> Both:
    """After a superlative: "in Rome", "di Roma"; "in Italy", "d'Italia"."""
    name = draw.pick(names("city", "country"))
    preposition = "di "
    if name.kind == "country":
        preposition = "d'" if name.italian[0] in "AEIOU" else "della "
    return draw.expect(f"in {name.english}"), preposition + name.italian


def at_place(draw: Draw, pool: tuple[Noun, ...] | None = None) -> Both:
    """Where someone is or something happens: "at the station", "here", "in Rome".

    Args:
        pool: the places to choose from; None means all.
    """
    turn = draw.choose(("place", "place", "place", "adverb", "name"))
    if turn == "adverb":
        adverb = draw.pick(adverbs("home"))
        return draw.expect(adverb.english), adverb.italian
    if turn == "name":
        return in_named_place(draw)
    place, phrase, italian = _place(draw, pool or places())
    preposition = place.place.split(":")[0]
    return draw.expect(f"{preposition} {phrase.english}"), italian


@cache
def lively_places() -> tuple[Noun, ...]:
    """Places where people do many different things."""
    return tuple(place for place in places() if "lively" in place.classes)


def to_place(draw: Draw) -> Both:
    """Where someone goes: "to the bank", "home", "to Rome"."""
    turn = draw.choose(("place", "place", "place", "adverb", "name"))
    if turn == "adverb":
        adverb = draw.pick(adverbs("homeward"))
        return draw.expect(adverb.english), adverb.italian
    if turn == "name":
        name = draw.pick(names("city", "country"))
        preposition = "in" if name.kind == "country" else "a"
        return draw.expect(f"to {name.english}"), f"{preposition} {name.italian}"
    _, phrase, italian = _place(draw, places(), is_goal=True)
    return draw.expect(f"to {phrase.english}"), italian


@cache
def _distant_places() -> tuple[Noun, ...]:
    return tuple(x for x in places() if x.classes & {"public-place", "town"})


@cache
def _means_on_land() -> tuple[Adverb, ...]:
    return tuple(x for x in adverbs("means") if x.english not in {"by plane", "by boat"})


def to_place_by_means(draw: Draw) -> Both:
    """Where someone goes, and how: "to Rome by train", "to the station on foot"."""
    if draw.choose((True, False)):
        name = draw.pick(names("city", "country"))
        preposition = "in" if name.kind == "country" else "a"
        means = draw.pick(adverbs("means"))
        return f"to {name.english} {means.english}", f"{preposition} {name.italian} {means.italian}"
    _, phrase, italian = _place(draw, _distant_places(), is_goal=True)
    means = draw.pick(_means_on_land())
    return f"to {phrase.english} {means.english}", f"{italian} {means.italian}"


def beside(draw: Draw, *landmarks: str) -> Both:
    """A position relative to a landmark: "in front of the station", "davanti alla stazione"."""
    english, lead, preposition = draw.choose(RELATIONS)
    draw.expect(english)
    noun = draw.pick(count_nouns(*landmarks))
    phrase = noun_phrase(
        draw, noun, DEFINITE_DETERMINERS, with_adjective=(False, False, True), plurals=(False,)
    )
    behind = phrase.after(preposition)
    return f"{english} {phrase.english}", f"{lead} {behind}" if lead else behind


def inside(draw: Draw) -> Both:
    """On a surface, under it, or in a container."""
    english, preposition, kind = draw.choose(
        (("on", "su", "surface"), ("under", "sotto", "surface"), ("in", "in", "container"))
    )
    draw.expect(english)
    phrase = noun_phrase(draw, draw.pick(nouns(kind)), DEFINITE_DETERMINERS, plurals=(False,))
    return f"{english} {phrase.english}", phrase.after(preposition)
