"""Sentence patterns of comparison, and of the perfect with already, never, just and yet."""

from __future__ import annotations

from functools import cache, partial

from transformer_cli.phrasebook.grammar.adverbials import Both, inside, of_named_place
from transformer_cli.phrasebook.grammar.clauses import (
    VerbPhrase,
    finished,
    joined_words,
    question,
    statement,
)
from transformer_cli.phrasebook.grammar.draw import DeadEndError, Draw
from transformer_cli.phrasebook.grammar.noun_phrases import NounPhrase, noun_phrase
from transformer_cli.phrasebook.grammar.people import SELF, STRESSED, person_subject
from transformer_cli.phrasebook.patterns.pattern import Pattern
from transformer_cli.phrasebook.patterns.simple_sentences.being import described_things
from transformer_cli.phrasebook.patterns.simple_sentences.full_verbs import (
    transitive_verbs,
    with_object,
)
from transformer_cli.phrasebook.words.italian import adjective_forms, definite_article
from transformer_cli.phrasebook.words.lexicon import (
    BE,
    Adjective,
    Adverb,
    Noun,
    Verb,
    adjectives,
    adjectives_for,
    count_nouns,
    nouns,
    objects_of,
    verbs,
    verbs_with,
)

ALREADY = Adverb("already:adverb", "already", "già", "aspect")
NEVER = Adverb("never:adverb", "never", "mai", "aspect")
JUST = Adverb("just:adverb", "just", "appena", "aspect")
EVER = Adverb("ever:adverb", "ever", "mai", "question")
YET = Adverb("yet:adverb", "", "ancora", "aspect")
ALWAYS = Adverb("always:adverb", "always", "sempre", "aspect")


@cache
def comparable(noun: Noun) -> tuple[Adjective, ...]:
    """The adjectives that suit the noun and have a comparative."""
    return tuple(x for x in adjectives_for(noun, predicative=True) if x.is_comparable)


_KEPT: dict[tuple[str, ...], tuple[Adjective, ...]] = {}


def _kept(pool: tuple[Adjective, ...]) -> tuple[Adjective, ...]:
    """The same tuple for equal contents, because `RandomDraw` caches by the id of the tuple."""
    return _KEPT.setdefault(tuple(x.lemma for x in pool), pool)


def _two_alike(draw: Draw) -> tuple[NounPhrase, NounPhrase, Adjective]:
    """Two things of the same class ("my car", "your bus"), and an adjective for both."""
    noun = draw.pick(described_things())
    pool = rivals(noun)
    if not pool:
        raise DeadEndError
    other = draw.pick(pool)
    first = noun_phrase(draw, noun, ("the", "the", "this", "my"), with_adjective=(False,))
    second = noun_phrase(draw, other, ("the", "the", "that", "my"), with_adjective=(False,))
    shared = tuple(x for x in comparable(noun) if x in comparable(other))
    return first, second, draw.pick(_kept(shared))


RIVALRIES = (
    "vehicle",
    "animal",
    "building",
    "furniture",
    "clothing",
    "fruit",
    "reading",
    "show",
    "town",
    "room",
)


@cache
def rivals(noun: Noun) -> tuple[Noun, ...]:
    """The nouns with which a noun can be compared."""
    shared = next((name for name in RIVALRIES if name in noun.classes), None)
    if shared is None:
        return ()
    return tuple(x for x in nouns(shared) if x is not noun)


def things_compared(draw: Draw, *, asks: bool = False) -> Both:
    """ "The train is faster than the bus", "Il treno è più veloce dell'autobus"."""
    first, second, adjective = _two_alike(draw)
    italian = adjective_forms(adjective.italian)[first.form]
    phrase = VerbPhrase(
        BE, f"{adjective.comparative} than {second.english}", f"più {italian} {second.after('di')}"
    )
    tense = "present"
    if asks:
        return finished(draw, *question(first, phrase, tense), "?")
    return finished(
        draw, *statement(first, phrase, tense, negative=draw.choose((True, False, False)))
    )


def people_compared(draw: Draw, *, asks: bool = False) -> Both:
    """ "Anna is taller than my brother", "Anna è più alta di mio fratello"."""
    first = person_subject(draw)
    if asks and first.person in {0, 3}:
        raise DeadEndError
    second = _measure(draw, first)
    adjective = draw.pick(_personal())
    italian = adjective_forms(adjective.italian)[first.form]
    kind = draw.choose(("more", "more", "more", "as"))
    if kind == "more":
        words = (
            f"{adjective.comparative} than {second.english}",
            f"più {italian} {second.after('di')}",
        )
    else:
        words = f"as {adjective.english} as {second.english}", f"{italian} come {second.italian}"
    phrase = VerbPhrase(BE, *words)
    if asks:
        return finished(draw, *question(first, phrase, "present"), "?")
    negative = draw.choose((True, False, False, False))
    tense = draw.choose(("present", "present", "present", "past"))
    return finished(draw, *statement(first, phrase, tense, negative=negative))


def _measure(draw: Draw, first: NounPhrase) -> NounPhrase:
    """The second person of a comparison: "my brother", "me"."""
    if draw.choose((True, False, False)):
        english, italian, person = draw.choose(STRESSED)
        if person in SELF[first.person]:
            raise DeadEndError
        return NounPhrase(draw.expect(english), italian, "ms", False, person, person)
    second = person_subject(draw)
    if not second.bare or second.person in {3, 4}:
        raise DeadEndError
    return second


@cache
def _personal() -> tuple[Adjective, ...]:
    return tuple(x for x in adjectives("person", "grown") if x.is_comparable)


def as_as(draw: Draw) -> Both:
    """ "This bag is as heavy as that suitcase", "Questa borsa è pesante come quella valigia"."""
    first, second, adjective = _two_alike(draw)
    italian = adjective_forms(adjective.italian)[first.form]
    phrase = VerbPhrase(
        BE, f"as {adjective.english} as {second.english}", f"{italian} come {second.italian}"
    )
    return finished(draw, *statement(first, phrase, "present", negative=draw.choose((True, False))))


def most(draw: Draw) -> Both:
    """ "This is the most expensive car", "Questa è la macchina più cara"."""
    noun = draw.pick(described_things())
    pool = comparable(noun)
    if not pool or noun.number != "count":
        raise DeadEndError
    adjective = draw.pick(pool)
    if adjective.position == "pred":
        raise DeadEndError
    is_plural = "pair" in noun.classes or draw.choose((True, False, False))
    form = noun.plural_form if is_plural else noun.form
    italian_noun = noun.italian[is_plural]
    words = f"{italian_noun} più {adjective_forms(adjective.italian)[form]}"
    pointer = adjective_forms("questo")[form]
    place = ("", "")
    if draw.choose((True, False)):
        is_local = bool(noun.classes & {"building", "sight", "outdoors", "town"})
        in_the_world = not is_local or draw.choose((True, False, False))
        place = ("in the world", "del mondo") if in_the_world else of_named_place(draw)
    return finished(
        draw,
        joined_words(
            "these are" if is_plural else "this is",
            "the",
            adjective.superlative,
            noun.english[is_plural],
            place[0],
        ),
        joined_words(
            pointer,
            "sono" if is_plural else "è",
            definite_article(italian_noun, form) + words,
            place[1],
        ),
    )


def _done(draw: Draw) -> VerbPhrase:
    """An action that can be finished: "eat the apple", "leave"."""
    turn = draw.choose(("object", "object", "reflexive", "plain"))
    if turn == "reflexive":
        return VerbPhrase(draw.pick(verbs("reflexive")))
    if turn == "plain":
        return VerbPhrase(draw.pick(_finished_verbs()))
    verb = draw.pick(transitive_verbs("must"))
    noun = draw.pick(objects_of(verb))
    return with_object(verb, noun_phrase(draw, noun, ("the", "the", "this", "my")))


@cache
def _finished_verbs() -> tuple[Verb, ...]:
    wanted = {"arrivare", "partire", "pranzare", "cenare", "uscire", "mangiare"}
    return tuple(verb for verb in verbs("idiom", "intransitive") if verb.italian in wanted)


def already(draw: Draw, *, adverb: Adverb) -> Both:
    """ "I have already seen this film", "Ho già visto questo film"."""
    subject = person_subject(draw)
    phrase = _done(draw)
    phrase = VerbPhrase(phrase.verb, phrase.english, phrase.italian, adverb=adverb)
    return finished(draw, *statement(subject, phrase, "perfect"))


def not_yet(draw: Draw) -> Both:
    """ "She has not arrived yet", "Non è ancora arrivata"."""
    subject = person_subject(draw)
    phrase = _done(draw)
    phrase = VerbPhrase(phrase.verb, f"{phrase.english} yet".strip(), phrase.italian, adverb=YET)
    english, italian = statement(subject, phrase, "perfect", negative=True)
    return finished(draw, english, italian)


def have_you_already(draw: Draw) -> Both:
    """ "Have you already eaten the cake?", "Hai già mangiato la torta?"."""
    subject = person_subject(draw)
    if subject.person in {0, 3}:
        raise DeadEndError
    phrase = _done(draw)
    phrase = VerbPhrase(phrase.verb, phrase.english, phrase.italian, adverb=ALREADY)
    return finished(draw, *question(subject, phrase, "perfect"), "?")


def have_you_ever(draw: Draw) -> Both:
    """ "Have you ever seen a lion?", "Hai mai visto un leone?"."""
    subject = person_subject(draw)
    if subject.person in {0, 3}:
        raise DeadEndError
    verb = draw.pick(transitive_verbs("must"))
    phrase = with_object(verb, noun_phrase(draw, draw.pick(objects_of(verb)), ("a", "this", "the")))
    english, _ = question(subject, VerbPhrase(verb, phrase.english, adverb=EVER), "perfect")
    past = VerbPhrase(verb, "", phrase.italian, adverb=ALWAYS)
    italian = statement(subject, past, "perfect")[1].replace(" sempre ", " mai ", 1)
    return finished(draw, english, italian, "?")


def animal_does(draw: Draw, tense: str) -> Both:
    """ "The cat is sleeping under the table", "Il gatto sta dormendo sotto il tavolo"."""
    noun = draw.pick(nouns("animal"))
    subject = noun_phrase(draw, noun, ("the", "the", "this", "that", "my"))
    if "snake" in noun.english or "butterfly" in noun.english:
        raise DeadEndError
    verb = draw.pick(verbs_with("calm", "intransitive"))
    if verb.base == "swim":
        place = draw.choose((("in the lake", "nel lago"), ("in the river", "nel fiume")))
    elif verb.base == "sleep" and "pet" in noun.classes:
        place = inside(draw)
    else:
        green = noun_phrase(
            draw, draw.pick(count_nouns("green")), ("the", "the", "my", "this"), plurals=(False,)
        )
        place = f"in {green.english}", green.after("in")
    return finished(draw, *statement(subject, VerbPhrase(verb, *place), tense))


PATTERNS = (
    Pattern("things_compared", things_compared, 90),
    Pattern("things_compared.question", partial(things_compared, asks=True), 40),
    Pattern("people_compared", people_compared, 150),
    Pattern("people_compared.question", partial(people_compared, asks=True), 40),
    Pattern("as_as", as_as, 40),
    Pattern("most", most, 60),
    Pattern("already", partial(already, adverb=ALREADY), 60),
    Pattern("never_yet", partial(already, adverb=NEVER), 40),
    Pattern("just_now", partial(already, adverb=JUST), 40),
    Pattern("not_yet", not_yet, 60),
    Pattern("have_you_already", have_you_already, 40),
    Pattern("have_you_ever", have_you_ever, 30),
    Pattern("animal.present", partial(animal_does, tense="present"), 30),
    Pattern("animal.progressive", partial(animal_does, tense="progressive"), 40),
    Pattern("animal.past", partial(animal_does, tense="past"), 30),
)
