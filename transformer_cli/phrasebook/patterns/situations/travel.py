"""Sentence patterns for travellers: tickets, hotel, restaurant and shops."""

from __future__ import annotations

from functools import partial

from transformer_cli.phrasebook.grammar.adverbials import NOTHING, Both, when
from transformer_cli.phrasebook.grammar.clauses import (
    VerbPhrase,
    finished,
    italian_predicate,
    joined_words,
    question,
    statement,
)
from transformer_cli.phrasebook.grammar.draw import DeadEndError, Draw
from transformer_cli.phrasebook.grammar.noun_phrases import NUMBERS, NounPhrase, noun_phrase
from transformer_cli.phrasebook.grammar.people import THEY, person_subject
from transformer_cli.phrasebook.patterns.pattern import Pattern
from transformer_cli.phrasebook.words.italian import preposition_before
from transformer_cli.phrasebook.words.lexicon import names, nouns, the_verb
from transformer_cli.phrasebook.words.number_words import english_number, italian_number

COST = the_verb("costare", "cost")
SOLD = ("clothing", "ware", "priced", "menu", "instrument", "jewel")
Measure = tuple[str, str, str, tuple[str, ...]]
MEASURES: tuple[Measure, ...] = (
    ("a kilo of", "un chilo di", "ms", ("ware",)),
    ("half a kilo of", "mezzo chilo di", "ms", ("ware",)),
    ("two kilos of", "due chili di", "mp", ("ware",)),
    ("a bottle of", "una bottiglia di", "fs", ("drink",)),
    ("two bottles of", "due bottiglie di", "fp", ("drink",)),
    ("a glass of", "un bicchiere di", "ms", ("drink",)),
    ("three glasses of", "tre bicchieri di", "mp", ("drink",)),
)
FOOD_PRICES = tuple(range(2, 13))
PRICES = tuple(range(15, 90, 5))
PLEASE = (", please", ", per favore")
ROOMS = (("single", "singola"), ("double", "doppia"))
ADDRESSES = (("sir", "signore"), ("madam", "signora"))
MEALS = (("breakfast", "colazione"), ("lunch", "pranzo"), ("dinner", "cena"))


def quantity(draw: Draw, measures: tuple[Measure, ...] = MEASURES) -> NounPhrase:
    """ "two kilos of apples", "due chili di mele"."""
    english, italian, form, classes = draw.choose(measures)
    draw.expect(english)
    noun = draw.pick(nouns(*classes))
    is_drink = "drink" in noun.classes
    if is_drink != ("drink" in classes) or noun.classes & {"cup", "vessel"}:
        raise DeadEndError
    if not is_drink and noun.classes & {"menu", "poured"}:
        raise DeadEndError  # nobody says "a kilo of pizzas" or "a kilo of oil"
    is_plural = noun.number == "count" and not is_drink
    return NounPhrase(
        f"{english} {noun.english[is_plural]}", of_it(italian, noun.italian[is_plural]), form
    )


def of_it(measure: str, noun: str) -> str:
    """ "un bicchiere di vino", "un bicchiere d'acqua"."""
    return measure.removesuffix("di") + preposition_before("di", noun) + noun


def _ordered(draw: Draw) -> NounPhrase:
    if draw.choose((True, False, False)):
        return quantity(draw)
    return noun_phrase(draw, draw.pick(nouns("menu")), ("a", "a", "number"))


def would_like(draw: Draw, *, is_polite: bool) -> Both:
    """ "I would like a coffee and a cake, please"."""
    phrase = _ordered(draw)
    english, italian = phrase.english, phrase.italian
    if draw.choose((True, False, False)):
        other = _ordered(draw)
        english, italian = f"{english} and {other.english}", f"{italian} e {other.italian}"
    lead = draw.choose((("I would like", "vorrei"), ("we would like", "vorremmo")))
    tail = PLEASE if is_polite else NOTHING
    return finished(draw, f"{lead[0]} {english}{tail[0]}", f"{lead[1]} {italian}{tail[1]}")


def order_plainly(draw: Draw) -> Both:
    """ "Two beers and a salad, please"."""
    phrase, other = _ordered(draw), _ordered(draw)
    return finished(
        draw,
        f"{phrase.english} and {other.english}{PLEASE[0]}",
        f"{phrase.italian} e {other.italian}{PLEASE[1]}",
    )


def can_i_have(draw: Draw) -> Both:
    """ "Can I have the bill, please?", "Posso avere il conto, per favore?"."""
    noun = draw.pick(nouns("menu", "tableware", "payable", "travel", "ingredient"))
    phrase = noun_phrase(draw, noun, ("a", "the", "another"))
    lead = draw.choose((("can I have", "posso avere"), ("can we have", "possiamo avere")))
    return finished(
        draw,
        f"{lead[0]} {phrase.english}{PLEASE[0]}",
        f"{lead[1]} {phrase.italian}{PLEASE[1]}",
        "?",
    )


def do_you_have(draw: Draw) -> Both:
    """ "Do you have a map, sir?", "Ha una mappa, signore?"."""
    noun = draw.pick(nouns("thing", "clothing", "ware"))
    phrase = noun_phrase(draw, noun, ("a",))
    address = draw.choose((("sir", "signore"), ("madam", "signora")))
    return finished(
        draw,
        f"do you have {phrase.english}, {address[0]}",
        f"ha {phrase.italian}, {address[1]}",
        "?",
    )


def how_much(draw: Draw) -> Both:
    """ "How much do these shoes cost?", "Quanto costano queste scarpe?"."""
    phrase = noun_phrase(draw, draw.pick(nouns(*SOLD)), ("the", "this", "that"))
    english = f"how much {question(phrase, VerbPhrase(COST), 'present')[0]}"
    verb = italian_predicate(phrase, VerbPhrase(COST), "present")
    return finished(draw, english, f"quanto {verb} {phrase.italian}", "?")


def costs(draw: Draw) -> Both:
    """ "The jacket costs eighty euros", "La giacca costa ottanta euro"."""
    noun = draw.pick(nouns(*SOLD))
    phrase = noun_phrase(draw, noun, ("the", "this", "that", "my"))
    is_food = bool(noun.classes & {"ware", "menu"})
    price = draw.choose(FOOD_PRICES if is_food else PRICES)
    draw.expect(english_number(price))
    words = statement(
        phrase,
        VerbPhrase(COST, f"{english_number(price)} euros", f"{italian_number(price)} euro"),
        "past" if phrase.english_person == 2 and draw.choose((True, False, False)) else "present",
    )
    return finished(draw, *words)


def ticket(draw: Draw) -> Both:
    """ "Two tickets to Rome, please"."""
    number = draw.choose((("a", "un"), *NUMBERS[:5]))
    is_plural = number[0] != "a"
    city = draw.pick(names("city"))
    lead = draw.choose((NOTHING, ("I would like", "vorrei"), ("we would like", "vorremmo")))
    english = joined_words(
        lead[0], number[0], "tickets" if is_plural else "ticket", f"to {city.english}"
    )
    italian = joined_words(
        lead[1], number[1], "biglietti" if is_plural else "biglietto", f"per {city.italian}"
    )
    return finished(draw, english + PLEASE[0], italian + PLEASE[1])


def room(draw: Draw) -> Both:
    """ "I would like a double room for two nights", "Vorrei una camera doppia per due notti"."""
    size = draw.choose(ROOMS)
    nights = draw.choose((("one", "una"), *NUMBERS[:9]))
    night = ("night", "notte") if nights[0] == "one" else ("nights", "notti")
    lead = draw.choose(
        (
            ("I would like", "vorrei"),
            ("we would like", "vorremmo"),
            ("we need", "abbiamo bisogno di"),
            ("I need", "ho bisogno di"),
            ("I booked", "ho prenotato"),
            ("we booked", "abbiamo prenotato"),
        )
    )
    tail = PLEASE if "like" in lead[0] and draw.choose((True, False)) else NOTHING
    return finished(
        draw,
        f"{lead[0]} a {size[0]} room for {nights[0]} {night[0]}{tail[0]}",
        f"{lead[1]} una camera {size[1]} per {nights[1]} {night[1]}{tail[1]}",
    )


def for_meal(draw: Draw, tense: str) -> Both:
    """ "We eat bread for breakfast", "Mangiamo del pane a colazione"."""
    subject = person_subject(draw)
    verb = the_verb(*draw.choose((("mangiare", "eat"), ("bere", "drink"))))
    phrase = noun_phrase(
        draw, draw.pick(nouns("food" if verb.base == "eat" else "drink")), ("a", "number")
    )
    meal = draw.choose(MEALS)
    words = VerbPhrase(verb, f"{phrase.english} for {meal[0]}", f"{phrase.italian} a {meal[1]}")
    return finished(draw, *statement(subject, words, tense))


def measured(draw: Draw, tense: str) -> Both:
    """ "She bought a kilo of apples", "Ha comprato un chilo di mele"."""
    subject = person_subject(draw)
    phrase = quantity(draw, MEASURES[:5])
    verb = the_verb("comprare", "buy")
    time = when(draw, tense) if draw.choose((True, False)) else NOTHING
    words = statement(subject, VerbPhrase(verb, phrase.english, phrase.italian), tense)
    return finished(draw, joined_words(words[0], time[0]), joined_words(words[1], time[1]))


def it_costs(draw: Draw) -> Both:
    """ "It costs twenty euros", "Costa venti euro"."""
    price = draw.choose((*range(2, 21), *PRICES))
    draw.expect(english_number(price))
    subject = draw.choose((NounPhrase("it", "", "ms"), THEY))
    lead = draw.choose((NOTHING, NOTHING, ("yes,", "sì,"), ("no,", "no,")))
    words = VerbPhrase(COST, f"{english_number(price)} euros", f"{italian_number(price)} euro")
    negative = lead[0] == "no," and draw.choose((True, False))
    english, italian = statement(subject, words, "present", negative=negative)
    return finished(draw, joined_words(lead[0], english), joined_words(lead[1], italian))


def one_please(draw: Draw) -> Both:
    """ "A bottle of milk, please", "Una bottiglia di latte, per favore"."""
    if draw.choose((True, False)):
        phrase = quantity(draw)
    else:
        pool = nouns("menu", "tableware", "ingredient", "ware", "payable", "travel")
        phrase = noun_phrase(draw, draw.pick(pool), ("a", "the", "another", "number"))
    if "your " in phrase.english:
        raise DeadEndError
    return finished(draw, phrase.english + PLEASE[0], phrase.italian + PLEASE[1])


def would_you_like(draw: Draw) -> Both:
    """ "Would you like a coffee, Anna?", "Vorresti un caffè, Anna?"; to a stranger, "Vorrebbe"."""
    phrase = noun_phrase(draw, draw.pick(nouns("menu", "drink", "food")), ("a", "another"))
    title = draw.choose((NOTHING, NOTHING, "name", *ADDRESSES))
    if isinstance(title, str):
        name = draw.pick(names("person"))
        title = name.english, name.italian
    verb = "vorrebbe" if title in ADDRESSES else "vorresti"
    tail = (f", {title[0]}", f", {title[1]}") if title[0] else NOTHING
    return finished(
        draw, f"would you like {phrase.english}{tail[0]}", f"{verb} {phrase.italian}{tail[1]}", "?"
    )


PATTERNS = (
    Pattern("would_like_thing", partial(would_like, is_polite=False), 40),
    Pattern("would_like_thing.please", partial(would_like, is_polite=True), 40),
    Pattern("order_plainly", order_plainly, 40),
    Pattern("can_i_have", can_i_have, 50),
    Pattern("do_you_have.sir", do_you_have, 40),
    Pattern("how_much", how_much, 60),
    Pattern("costs", costs, 60),
    Pattern("ticket", ticket, 15),
    Pattern("room", room, 20),
    Pattern("for_meal.present", partial(for_meal, tense="present"), 30),
    Pattern("for_meal.past", partial(for_meal, tense="past"), 30),
    Pattern("measured.past", partial(measured, tense="past"), 30),
    Pattern("it_costs", it_costs, 30),
    Pattern("one_please", one_please, 50),
    Pattern("would_you_like", would_you_like, 40),
    Pattern("measured.future", partial(measured, tense="future"), 20),
)
