"""Sentence patterns of daily life: speaking, studying, playing, living, washing, leaving."""

from __future__ import annotations

from functools import cache

from transformer_cli.phrasebook.grammar.adverbials import (
    NOTHING,
    Both,
    at_place,
    at_time,
    in_named_place,
    inside,
    sometimes_when,
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
from transformer_cli.phrasebook.patterns.simple_sentences.full_verbs import looks_past
from transformer_cli.phrasebook.patterns.situations.small_talk import ADDRESSES
from transformer_cli.phrasebook.words.italian import definite_article
from transformer_cli.phrasebook.words.lexicon import Verb, adverbs, names, nouns, the_verb, verbs


def with_subject(
    draw: Draw, verb_names: tuple[str, str], words: Both, tense: str, *, asks: bool
) -> Both:
    subject = person_subject(draw)
    if asks and subject.person in {0, 3}:
        raise DeadEndError
    phrase = VerbPhrase(the_verb(*verb_names), *words)
    time = sometimes_when(draw, tense, phrase.verb)
    if words[0].startswith("at ") and time[0].startswith(("at ", "in ")):
        raise DeadEndError  # a sentence has one time of day
    if words[0].startswith("at ") and time[0].endswith("ago"):
        raise DeadEndError  # nobody says "at two o'clock a year ago"
    if asks:
        sentence = question(subject, phrase, tense)
    elif looks_past(phrase.verb, tense, subject) and not time[0]:
        raise DeadEndError
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
    english, italian = tongue.english[0], tongue.italian[0]
    article = definite_article(italian, tongue.form)
    words = draw.choose(
        (
            (english, italian),
            (english, italian),
            (f"{english} well", f"bene {article}{italian}"),
            (f"a little {english}", f"un po' di {italian}"),
        )
    )
    return with_subject(draw, ("parlare", "speak"), words, tense, asks=asks)


def speaks_politely(draw: Draw) -> Both:
    """ "Do you speak English, sir?", "Parla inglese, signore?"."""
    tongue = draw.pick(nouns("tongue"))
    address = draw.choose(ADDRESSES)
    lead = draw.choose((NOTHING, ("excuse me,", "scusi,"), ("good morning,", "buongiorno,")))
    draw.expect(lead[0])
    return finished(
        draw,
        joined_words(lead[0], f"do you speak {tongue.english[0]}, {address[0]}"),
        joined_words(lead[1], f"parla {tongue.italian[0]}, {address[1]}"),
        "?",
    )


def studies(draw: Draw, tense: str, *, asks: bool = False) -> Both:
    """ "She studies history", "Studia storia"."""
    verb = draw.choose((("studiare", "study"), ("insegnare", "teach"), ("imparare", "learn")))
    noun = draw.pick(nouns("studied", "tongue") if verb[1] != "learn" else nouns("tongue"))
    italian = noun.italian[0]
    if verb[1] == "learn":
        italian = definite_article(italian, noun.form) + italian
    return with_subject(draw, verb, (noun.english[0], italian), tense, asks=asks)


def plays(draw: Draw, tense: str, *, asks: bool = False) -> Both:
    """ "The boys play football", "I ragazzi giocano a calcio"."""
    sport = draw.pick(nouns("sport"))
    return with_subject(
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
    return with_subject(draw, ("abitare", "live"), place, tense, asks=asks)


def puts(draw: Draw, tense: str, *, asks: bool = False) -> Both:
    """ "She put the keys on the table", "Ha messo le chiavi sul tavolo"."""
    thing = noun_phrase(draw, draw.pick(nouns("thing", "clothing")), ("the", "the", "my", "a"))
    place = inside(draw)
    words = f"{thing.english} {place[0]}", f"{thing.italian} {place[1]}"
    return with_subject(draw, ("mettere", "put"), words, tense, asks=asks)


def washes(draw: Draw, tense: str) -> Both:
    """ "I wash my hands", "Mi lavo le mani"."""
    subject = person_subject(draw)
    noun = draw.choose(
        (("hands", "le mani"), ("feet", "i piedi"), ("hair", "i capelli"), ("teeth", "i denti"))
    )
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
    return with_subject(draw, ("sentirsi", "feel"), manner, tense, asks=False)


def leaves(draw: Draw, tense: str, *, asks: bool = False) -> Both:
    """ "She leaves for Rome", "Parte per Roma"; "arrives in", "goes out with", "leaves at two"."""
    kind = draw.choose(("leave", "leave at", "arrive", "go out", "stay"))
    if kind == "leave at":
        return with_subject(draw, ("partire", "leave"), at_time(draw), tense, asks=asks)
    if kind == "stay":
        return with_subject(draw, ("rimanere", "stay"), at_place(draw), tense, asks=asks)
    if kind == "go out":
        friend = noun_phrase(
            draw, draw.pick(nouns("family", "friendly", "pet")), ("my",), with_adjective=(False,)
        )
        words = f"with {friend.english}", f"con {friend.italian}"
        return with_subject(draw, ("uscire", "go"), words, tense, asks=asks)
    name = draw.pick(names("city", "country"))
    if kind == "leave":
        article = "l'" if name.italian[0] in "AEIOU" else "la "
        place = name.italian if name.kind == "city" else article + name.italian
        return with_subject(
            draw, ("partire", "leave"), (f"for {name.english}", f"per {place}"), tense, asks=asks
        )
    place = f"{'in' if name.kind == 'country' else 'a'} {name.italian}"
    return with_subject(
        draw, ("arrivare", "arrive"), (f"in {name.english}", place), tense, asks=asks
    )


PACED = frozenset({"camminare", "correre", "mangiare", "guidare", "nuotare", "lavorare", "leggere"})
SKILLED = frozenset({"dormire", "nuotare", "cucinare", "cantare", "guidare", "ballare", "sciare"})
LASTING = frozenset(
    {"lavorare", "dormire", "mangiare", "studiare", "fumare", "viaggiare", "leggere"}
)
DONE_SO = {"slowly": PACED, "quickly": PACED, "well": SKILLED, "badly": SKILLED}


@cache
def _done_so(adverb: str) -> tuple[Verb, ...]:
    """The verbs that make sense with an adverb of manner or quantity."""
    wanted = DONE_SO.get(adverb, LASTING)
    return tuple(verb for verb in verbs("intransitive") if verb.italian in wanted)


def does_so(draw: Draw, tense: str, *, asks: bool = False) -> Both:
    """ "She drives slowly", "Guida lentamente"; "I work too much", "Lavoro troppo"."""
    adverb = draw.pick(adverbs("manner", "quantity"))
    verb = draw.pick(_done_so(adverb.english))
    names_of_verb = (verb.italian, verb.base)
    return with_subject(draw, names_of_verb, (adverb.english, adverb.italian), tense, asks=asks)


PATTERNS = (
    *in_tenses(
        "does_so", does_so, {"present": 50, "past": 40, "future": 20, "must": 15}, asks=True
    ),
    *in_tenses("speaks", speaks, {"present": 30, "want": 16, "skill": 20}, asks=True),
    Pattern("speaks.sir", speaks_politely, 30),
    *in_tenses(
        "studies", studies, {"present": 30, "past": 25, "want": 20, "future": 15}, asks=True
    ),
    *in_tenses(
        "plays",
        plays,
        {"present": 30, "progressive": 15, "past": 25, "future": 15, "skill": 16, "used_to": 20},
        asks=True,
    ),
    *in_tenses("lives", lives, {"present": 40, "past": 25, "future": 15, "want": 15}, asks=True),
    *in_tenses("puts", puts, {"past": 60, "future": 30, "present": 20, "must": 20}, asks=True),
    *in_tenses("washes", washes, {"present": 15, "past": 20, "must": 16, "future": 16}),
    *in_tenses("feels", feels, {"present": 20, "past": 16, "future": 16}),
    *in_tenses(
        "leaves",
        leaves,
        {"present": 40, "past": 60, "future": 50, "want": 30, "must": 25, "have_to": 35},
        asks=True,
    ),
)
