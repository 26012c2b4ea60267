"""Sentence patterns of small talk: the hour, the day, the weather, names, languages, pastimes."""

from __future__ import annotations

from functools import partial

from transformer_cli.data.phrasebook.adverbials import (
    NOTHING,
    at_place,
    clock,
    in_month,
    in_named_place,
    inside,
    sometimes_when,
    when,
)
from transformer_cli.data.phrasebook.clauses import (
    VerbPhrase,
    finished,
    joined_words,
    question,
    statement,
)
from transformer_cli.data.phrasebook.draw import DeadEndError, Draw
from transformer_cli.data.phrasebook.italian import definite_article
from transformer_cli.data.phrasebook.italian_verbs import REFLEXIVE_CLITICS, present
from transformer_cli.data.phrasebook.lexicon import adverbs, names, nouns, the_verb
from transformer_cli.data.phrasebook.noun_phrases import (
    ENGLISH_POSSESSIVES,
    noun_phrase,
    person_subject,
)
from transformer_cli.data.phrasebook.pattern import Pattern
from transformer_cli.data.phrasebook.patterns_liking import italian_number

Both = tuple[str, str]

WEATHER = (
    ("it is {} hot", "fa {} caldo"),
    ("it is {} cold", "fa {} freddo"),
    ("it was {} hot", "faceva {} caldo"),
    ("it was {} cold", "faceva {} freddo"),
    ("it will be {} hot", "farà {} caldo"),
    ("it will be {} cold", "farà {} freddo"),
    ("the weather is {} nice", "il tempo è {} bello"),
    ("the weather is {} bad", "il tempo è {} brutto"),
    ("the weather was {} nice", "il tempo era {} bello"),
    ("the weather was {} bad", "il tempo era {} brutto"),
    ("it is {} windy", "c'è {} vento"),
    ("it is {} foggy", "c'è {} nebbia"),
)
FALLING = (
    ("it is raining", "sta piovendo", "now"),
    ("it is snowing", "sta nevicando", "now"),
    ("it rained", "ha piovuto", "past"),
    ("it snowed", "ha nevicato", "past"),
    ("it will rain", "pioverà", "future"),
    ("it will snow", "nevicherà", "future"),
    ("it often rains", "piove spesso", "month"),
    ("it often snows", "nevica spesso", "month"),
    ("it never rains", "non piove mai", "month"),
    ("it always rains", "piove sempre", "month"),
)
ENGLISH_ORDINALS = (
    "second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
    "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth twenty-first "
    "twenty-second twenty-third twenty-fourth twenty-fifth twenty-sixth twenty-seventh "
    "twenty-eighth"
).split()
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
    english, italian, is_one = clock(draw)
    if was:
        lead = "era l'" if is_one else "erano le "
    else:
        lead = "è l'" if is_one else "sono le "
    return finished(draw, f"it {'was' if was else 'is'} {english}", lead + italian)


def weekday(draw: Draw) -> Both:
    """ "Tomorrow is Tuesday", "Domani è martedì"."""
    day = draw.pick(adverbs("weekday"))
    lead = draw.choose(
        (("today is", "oggi è"), ("tomorrow is", "domani è"), ("yesterday was", "ieri era"))
    )
    return finished(draw, f"{lead[0]} {day.english}", f"{lead[1]} {day.italian}")


def date(draw: Draw) -> Both:
    """ "Today is the third of May", "Oggi è il tre maggio"."""
    day = draw.choose(tuple(range(1, 29)))
    month = draw.pick(adverbs("month"))
    lead = draw.choose((("today is", "oggi è"), ("tomorrow is", "domani è"), ("my birthday is", "il mio compleanno è")))
    ordinal = "first" if day == 1 else ENGLISH_ORDINALS[day - 2]
    number = "primo" if day == 1 else italian_number(day)
    article = definite_article(number, "ms")
    on = "on " if lead[0].startswith("my") else ""
    return finished(
        draw,
        f"{lead[0]} {on}the {ordinal} of {month.english}",
        f"{lead[1]} {article}{number} {month.italian}",
    )


def occasion_time(draw: Draw, tense: str, *, asks: bool = False) -> Both:
    """ "The concert is on Friday", "Il concerto è venerdì"."""
    occasion = noun_phrase(
        draw, draw.pick(nouns("occasion")), ("the", "the", "my", "this"), plurals=(False,)
    )
    time = in_month(draw) if draw.choose((True, False, False)) else when(draw, "future" if tense != "past" else "past")
    phrase = VerbPhrase(the_verb("essere", "be"), *time)
    make = question if asks else statement
    return finished(draw, *make(occasion, phrase, tense), "?" if asks else ".")


def weather(draw: Draw) -> Both:
    """ "It is very hot today", "Fa molto caldo oggi"."""
    english, italian = draw.choose(WEATHER)
    degree = draw.choose(("", "very", "too")) if "windy" not in english and "foggy" not in english else ""
    english_words = english.replace("{} ", f"{degree} " if degree else "")
    italian_degree = {"": "", "very": "molto ", "too": "troppo "}[degree]
    italian_words = italian.replace("{} ", italian_degree)
    kind = "past" if "was" in english else "future" if "will" in english else "today"
    time = draw.pick(adverbs(kind)) if draw.choose((True, True, False)) else None
    place = in_named_place(draw) if draw.choose((True, False, False)) else NOTHING
    return finished(
        draw,
        joined_words(english_words, place[0], time.english if time else ""),
        joined_words(italian_words, place[1], time.italian if time else ""),
    )


def falling(draw: Draw) -> Both:
    """ "It will rain tomorrow", "Pioverà domani"."""
    english, italian, kind = draw.choose(FALLING)
    if kind == "month":
        time = in_month(draw)
    else:
        adverb = draw.pick(adverbs(kind))
        time = adverb.english, adverb.italian
    place = in_named_place(draw) if draw.choose((True, False)) else NOTHING
    return finished(
        draw, joined_words(english, place[0], time[0]), joined_words(italian, place[1], time[1])
    )


def is_called(draw: Draw) -> Both:
    """ "My name is Anna", "Mi chiamo Anna"; "My brother's name is Marco"."""
    name = draw.pick(names("person"))
    if draw.choose((True, False)):
        person = draw.choose((0, 1, 2, 2))
        owner = draw.choose(("his", "her")) if person == 2 else ENGLISH_POSSESSIVES[person]
        if person == 2 and (owner == "her") != (name.form == "fs"):
            raise DeadEndError
        verb = f"{REFLEXIVE_CLITICS[person]} {present('chiamare', person)}"
        return finished(draw, f"{owner} name is {name.english}", f"{verb} {name.italian}")
    noun = draw.pick(nouns("family", "pet", "friendly"))
    phrase = noun_phrase(draw, noun, ("my",), plurals=(False,), with_adjective=(False,))
    if "pet" not in noun.classes and phrase.form != name.form:
        raise DeadEndError
    return finished(draw, f"{phrase.english}'s name is {name.english}", f"{phrase.italian} si chiama {name.italian}")


def what_name(draw: Draw) -> Both:
    """ "What is your sister's name?", "Come si chiama tua sorella?"."""
    phrase = noun_phrase(
        draw, draw.pick(nouns("family", "pet", "friendly")), ("my",), plurals=(False,), with_adjective=(False,)
    )
    return finished(draw, f"what is {phrase.english}'s name", f"come si chiama {phrase.italian}", "?")


def how_are(draw: Draw) -> Both:
    """ "How is your mother?", "Come sta tua madre?"."""
    subject = person_subject(draw)
    if subject.person in {0, 3}:
        raise DeadEndError
    english = question(subject, VerbPhrase(the_verb("essere", "be")), "present")[0]
    return finished(
        draw, f"how {english}", joined_words("come", present("stare", subject.person), subject.italian), "?"
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
        address = tuple(f", {word}" for word in draw.choose(ADDRESSES))
    return finished(draw, english + address[0], italian + address[1], "!")


def _with_subject(
    draw: Draw, verb_names: tuple[str, str], words: Both, tense: str, *, asks: bool
) -> Both:
    subject = person_subject(draw)
    if asks and subject.person in {0, 3}:
        raise DeadEndError
    phrase = VerbPhrase(the_verb(*verb_names), *words)
    time = sometimes_when(draw, tense, phrase.verb)
    if asks:
        sentence = question(subject, phrase, tense)
    else:
        sentence = statement(subject, phrase, tense, negative=draw.choose((True, False, False)))
    return finished(
        draw,
        joined_words(sentence[0], time[0]),
        joined_words(sentence[1], time[1]),
        "?" if asks else ".",
    )


def speaks(draw: Draw, tense: str, *, asks: bool = False) -> Both:
    """ "Do you speak English?", "Parli inglese?"."""
    tongue = draw.pick(nouns("tongue"))
    return _with_subject(
        draw, ("parlare", "speak"), (tongue.english[0], tongue.italian[0]), tense, asks=asks
    )


def speaks_politely(draw: Draw) -> Both:
    """ "Do you speak English, sir?", "Parla inglese, signore?"."""
    tongue = draw.pick(nouns("tongue"))
    address = draw.choose(ADDRESSES)
    return finished(
        draw, f"do you speak {tongue.english[0]}, {address[0]}", f"parla {tongue.italian[0]}, {address[1]}", "?"
    )


def studies(draw: Draw, tense: str, *, asks: bool = False) -> Both:
    """ "She studies history", "Studia storia"."""
    verb = draw.choose((("studiare", "study"), ("insegnare", "teach"), ("imparare", "learn")))
    noun = draw.pick(nouns("studied", "tongue") if verb[1] != "learn" else nouns("tongue"))
    italian = noun.italian[0]
    if verb[1] == "learn":
        italian = definite_article(italian, noun.form) + italian
    return _with_subject(draw, verb, (noun.english[0], italian), tense, asks=asks)


def plays(draw: Draw, tense: str, *, asks: bool = False) -> Both:
    """ "The boys play football", "I ragazzi giocano a calcio"."""
    sport = draw.pick(nouns("sport"))
    return _with_subject(
        draw, ("giocare", "play"), (sport.english[0], f"a {sport.italian[0]}"), tense, asks=asks
    )


def lives(draw: Draw, tense: str, *, asks: bool = False) -> Both:
    """ "They live in Rome", "Abitano a Roma"; "in a big house", "in una grande casa"."""
    if draw.choose((True, False)):
        place = in_named_place(draw)
    else:
        phrase = noun_phrase(
            draw, draw.pick(nouns("dwelling", "town")), ("a", "a", "this"), plurals=(False,)
        )
        place = f"in {phrase.english}", phrase.after("in")
    return _with_subject(draw, ("abitare", "live"), place, tense, asks=asks)


def puts(draw: Draw, tense: str, *, asks: bool = False) -> Both:
    """ "She put the keys on the table", "Ha messo le chiavi sul tavolo"."""
    thing = noun_phrase(draw, draw.pick(nouns("thing", "clothing")), ("the", "the", "my", "a"))
    place = inside(draw)
    words = f"{thing.english} {place[0]}", f"{thing.italian} {place[1]}"
    return _with_subject(draw, ("mettere", "put"), words, tense, asks=asks)


def washes(draw: Draw, tense: str) -> Both:
    """ "I wash my hands", "Mi lavo le mani"."""
    subject = person_subject(draw)
    noun = draw.choose((("hands", "le mani"), ("feet", "i piedi"), ("hair", "i capelli"), ("teeth", "i denti")))
    owner = ENGLISH_POSSESSIVES[subject.english_person]
    if subject.english_person == 2:
        owner = "his" if subject.form[0] == "m" else "her"
    phrase = VerbPhrase(the_verb("lavarsi", "wash"), f"{owner} {noun[0]}", noun[1])
    if noun[0] == "teeth":
        phrase = VerbPhrase(the_verb("lavarsi", "brush"), f"{owner} {noun[0]}", noun[1])
    time = sometimes_when(draw, tense, phrase.verb)
    words = statement(subject, phrase, tense, negative=draw.choose((True, False, False)))
    return finished(draw, joined_words(words[0], time[0]), joined_words(words[1], time[1]))


def feels(draw: Draw, tense: str) -> Both:
    """ "I don't feel well", "Non mi sento bene"."""
    manner = draw.choose((("well", "bene"), ("ill", "male"), ("better", "meglio")))
    return _with_subject(draw, ("sentirsi", "feel"), manner, tense, asks=False)


def leaves(draw: Draw, tense: str, *, asks: bool = False) -> Both:
    """ "She leaves for Rome", "Parte per Roma"; "arrives in", "goes out with"."""
    kind = draw.choose(("leave", "arrive", "go out", "stay"))
    if kind == "stay":
        return _with_subject(draw, ("rimanere", "stay"), at_place(draw), tense, asks=asks)
    if kind == "go out":
        friend = noun_phrase(draw, draw.pick(nouns("family", "friendly", "pet")), ("my",), with_adjective=(False,))
        words = f"with {friend.english}", f"con {friend.italian}"
        return _with_subject(draw, ("uscire", "go"), words, tense, asks=asks)
    name = draw.pick(names("city", "country"))
    if kind == "leave":
        article = "l'" if name.italian[0] in "AEIOU" else "la "
        place = name.italian if name.kind == "city" else article + name.italian
        return _with_subject(draw, ("partire", "leave"), (f"for {name.english}", f"per {place}"), tense, asks=asks)
    place = f"{'in' if name.kind == 'country' else 'a'} {name.italian}"
    return _with_subject(
        draw, ("arrivare", "arrive"), (f"in {name.english}", place), tense, asks=asks
    )


def _in(name: str, build: object, tenses: dict[str, int], *, asks: bool = False) -> list[Pattern]:
    patterns = []
    for tense, weight in tenses.items():
        stating = partial(build, tense=tense)  # type: ignore[call-overload]
        patterns.append(Pattern(f"{name}.{tense}", stating, weight))
        if asks:
            asking = partial(build, tense=tense, asks=True)  # type: ignore[call-overload]
            patterns.append(Pattern(f"{name}.{tense}.question", asking, max(2, weight // 3)))
    return patterns


PATTERNS = (
    Pattern("hour", hour, 25),
    Pattern("hour.past", partial(hour, was=True), 10),
    Pattern("weekday", weekday, 6),
    Pattern("date", date, 20),
    *_in("occasion_time", occasion_time, {"present": 25, "past": 20, "future": 20}, asks=True),
    Pattern("weather", weather, 50),
    Pattern("falling", falling, 30),
    Pattern("is_called", is_called, 30),
    Pattern("what_name", what_name, 15),
    Pattern("how_are", how_are, 20),
    Pattern("greeting", greeting, 20),
    *_in("speaks", speaks, {"present": 30, "want": 10, "past": 10, "skill": 10}, asks=True),
    Pattern("speaks.sir", speaks_politely, 4),
    *_in("studies", studies, {"present": 30, "past": 25, "want": 20, "future": 15}, asks=True),
    *_in("plays", plays, {"present": 30, "progressive": 15, "past": 25, "future": 15, "skill": 10}, asks=True),
    *_in("lives", lives, {"present": 40, "past": 25, "future": 15, "want": 15}, asks=True),
    *_in("puts", puts, {"past": 60, "future": 30, "present": 20, "must": 20}, asks=True),
    *_in("washes", washes, {"present": 15, "past": 20, "must": 10, "future": 10}),
    *_in("feels", feels, {"present": 12, "past": 8, "future": 8}),
    *_in("leaves", leaves, {"present": 30, "past": 50, "future": 40, "want": 25, "must": 15}, asks=True),
)
