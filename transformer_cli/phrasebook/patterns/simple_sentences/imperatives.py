"""Sentence patterns with an imperative: tu for a friend, Lei with "please", noi, voi."""

from __future__ import annotations

from functools import cache, partial

from transformer_cli.phrasebook.grammar.adverbials import Both, inside, to_place
from transformer_cli.phrasebook.grammar.clauses import finished, joined_words
from transformer_cli.phrasebook.grammar.draw import DeadEndError, Draw
from transformer_cli.phrasebook.grammar.noun_phrases import NounPhrase, noun_phrase
from transformer_cli.phrasebook.patterns.pattern import Pattern
from transformer_cli.phrasebook.patterns.simple_sentences.full_verbs import (
    object_phrase,
    transitive_verbs,
)
from transformer_cli.phrasebook.patterns.simple_sentences.object_pronouns import (
    CLITIC_FOR,
    INDIRECT,
)
from transformer_cli.phrasebook.words.italian_verbs import (
    imperative,
    infinitive_with,
    is_reflexive,
    plain_infinitive,
)
from transformer_cli.phrasebook.words.lexicon import (
    Verb,
    names,
    nouns,
    objects_of,
    verbs,
    verbs_with,
    verbs_without,
)

TU, LEI, NOI, VOI = 1, 2, 3, 4
REFLEXIVE_CLITIC = {TU: "ti", LEI: "si", NOI: "ci", VOI: "vi"}
PLEASE = (", please", ", per favore")
ADDRESSES = (("sir", "signore"), ("madam", "signora"))
GROUPS = (("children", "bambini"), ("boys", "ragazzi"), ("girls", "ragazze"))
WELCOME = ("sleep", "work", "swim", "run", "dance", "walk", "eat", "study", "sing", "cook")
# Nobody gives such commands: these things happen to people.
UNCOMMANDED = frozenset({"find", "receive", "get", "win", "meet", "see", "hear", "understand"})
UNWELCOME = (*WELCOME, "laugh", "cry", "smoke", "shout")
SHORT_IMPERATIVES = frozenset({"fa'", "va'", "da'", "di'", "sta'"})


def glued(verb: str, clitic: str) -> str:
    """An imperative that ends in a pronoun: alzati, dammi, compralo."""
    if verb in SHORT_IMPERATIVES:
        doubled = "" if clitic == "gli" else clitic[0]
        return verb[:-1] + doubled + clitic
    return verb + clitic


def command(infinitive: str, person: int, clitic: str = "") -> str:
    """The Italian imperative, with an object pronoun or, for a reflexive verb, its own pronoun."""
    if is_reflexive(infinitive):
        clitic = REFLEXIVE_CLITIC[person]
    verb = imperative(plain_infinitive(infinitive), person)
    if not clitic:
        return verb
    return f"{clitic} {verb}" if person == LEI else glued(verb, clitic)


def prohibition(infinitive: str, person: int, clitic: str = "") -> str:
    """The negative imperative: "non apra", "non aprite"; for tu the infinitive, "non aprire"."""
    if person != TU:
        return f"non {command(infinitive, person, clitic)}"
    if is_reflexive(infinitive):
        clitic = REFLEXIVE_CLITIC[TU]
    return f"non {infinitive_with(plain_infinitive(infinitive), clitic)}"


@cache
def commanded_verbs() -> tuple[Verb, ...]:
    """The transitive verbs that make sense as an imperative."""
    return tuple(verb for verb in transitive_verbs("must") if verb.base not in UNCOMMANDED)


@cache
def _to_order(negative: bool) -> tuple[Verb, ...]:
    """The transitive verbs for orders to a friend; negative ones add "Don't forget the keys!"."""
    mishaps = verbs_with("mishap", "transitive") if negative else ()
    return commanded_verbs() + mishaps


def _object(draw: Draw, verb: Verb, person: int) -> NounPhrase:
    phrase = object_phrase(draw, verb, ("the", "the", "this", "that", "my", "a"))
    # "your" is tuo here, but would have to be suo for Lei and vostro for voi.
    if phrase.english.startswith("some ") or (person != TU and phrase.english.startswith("your ")):
        raise DeadEndError
    return phrase


def _with_object(verb: Verb, phrase: NounPhrase) -> str:
    return joined_words(verb.base, verb.particle, phrase.english)


def order_someone(draw: Draw, *, person: int, negative: bool) -> Both:
    """ "Open the window!", "Apri la finestra!"; with "please", "Apra la finestra, per favore."."""
    pool = _to_order(negative) if person == TU else verbs_with("asked", "transitive")
    verb = draw.pick(pool)
    phrase = _object(draw, verb, person)
    make = prohibition if negative else command
    italian = f"{make(verb.italian, person)} {phrase.italian}"
    english = ("do not " if negative else "") + _with_object(verb, phrase)
    return _addressed(draw, person, english, italian)


def _addressed(draw: Draw, person: int, english: str, italian: str) -> Both:
    """The order, addressed to a person: "please" stands for Lei, "children," for voi."""
    if person == LEI:
        if draw.choose((True, False, False)):
            return finished(draw, f"please {english}", f"per favore, {italian}")
        title = draw.choose((("", ""), ("", ""), *((f", {x}", f", {y}") for x, y in ADDRESSES)))
        return finished(draw, english + PLEASE[0] + title[0], italian + PLEASE[1] + title[1])
    if person == VOI:
        group = draw.choose(GROUPS)
        return finished(draw, f"{group[0]}, {english}", f"{group[1]}, {italian}", "!")
    if person == TU and draw.choose((True, False, False)):
        name = draw.pick(names("person"))
        return finished(draw, f"{name.english}, {english}", f"{name.italian}, {italian}", "!")
    return finished(draw, english, italian, "!")


def do_something(draw: Draw, *, person: int, negative: bool) -> Both:
    """ "Don't run!", "Get up, please."."""
    verb = draw.pick(_plain_commands(negative))
    make = prohibition if negative else command
    english = joined_words("do not" if negative else "", verb.base, verb.particle)
    return _addressed(draw, person, english, make(verb.italian, person))


@cache
def _plain_commands(negative: bool) -> tuple[Verb, ...]:
    """The verbs without object that make sense as an order, or (negative) as a prohibition."""
    if negative:
        plain = tuple(verb for verb in verbs("intransitive") if verb.base in UNWELCOME)
        return verbs("reflexive") + plain
    plain = tuple(verb for verb in verbs("intransitive") if verb.base in WELCOME)
    return verbs_without("mishap", "reflexive") + plain


def give_me(draw: Draw, *, person: int) -> Both:
    """ "Give me the book!", "Dammi il libro!"; "Show us the photo, please."."""
    verb = draw.pick(verbs("giving"))
    noun = draw.pick(objects_of(verb))
    phrase = noun_phrase(draw, noun, ("the", "the", "a", "this", "my"))
    if phrase.english.startswith("my "):
        raise DeadEndError
    english, clitic, owner = draw.choose(INDIRECT)
    if owner == TU:
        raise DeadEndError
    words = f"{verb.base} {english} {phrase.english}"
    return _addressed(
        draw, person, words, f"{command(verb.italian, person, clitic)} {phrase.italian}"
    )


def do_it(draw: Draw, *, person: int, negative: bool) -> Both:
    """ "Here is the book. Read it!", "Ecco il libro. Leggilo!"."""
    verb = draw.pick(verbs_with("asked", "transitive"))
    noun = draw.pick(objects_of(verb))
    if noun.classes & {"person", "animal"}:
        raise DeadEndError
    phrase = noun_phrase(draw, noun, ("the", "my"), with_adjective=(False,))
    pronoun = "them" if phrase.english_person == 5 else "it"
    words = f"{pronoun} {verb.particle}" if verb.splits else joined_words(verb.particle, pronoun)
    verb_words = joined_words("do not" if negative else "", verb.base, words)
    is_many = phrase.english_person == 5
    lead = ("here are", "ecco") if is_many else ("here is", "ecco")
    make = prohibition if negative else command
    italian = make(verb.italian, person, CLITIC_FOR[phrase.form])
    english = f"{lead[0]} {phrase.english}. {verb_words[0].upper()}{verb_words[1:]}"
    return finished(
        draw, english, f"{lead[1]} {phrase.italian}. {italian[0].upper()}{italian[1:]}", "!"
    )


def go_somewhere(draw: Draw, *, person: int) -> Both:
    """ "Go to the station!", "Let's go home!"."""
    verb = draw.pick(verbs("motion"))
    place = to_place(draw)
    if person == NOI:
        return finished(
            draw,
            f"let us {verb.base} {joined_words(verb.particle, place[0])}",
            f"{command(verb.italian, NOI)} {place[1]}",
            "!",
        )
    return _addressed(
        draw,
        person,
        joined_words(verb.base, verb.particle, place[0]),
        f"{command(verb.italian, person)} {place[1]}",
    )


def let_us(draw: Draw) -> Both:
    """ "Let's buy the red car!", "Compriamo la macchina rossa!"."""
    verb = draw.pick(commanded_verbs())
    phrase = object_phrase(draw, verb, ("the", "a", "this", "that"))
    return finished(
        draw,
        f"let us {_with_object(verb, phrase)}",
        f"{command(verb.italian, NOI)} {phrase.italian}",
        "!",
    )


def put_it(draw: Draw, *, person: int) -> Both:
    """ "Put the keys on the table!", "Metti le chiavi sul tavolo!"."""
    noun = draw.pick(nouns("thing", "clothing"))
    phrase = noun_phrase(draw, noun, ("the", "the", "this", "my"))
    place = inside(draw)
    if person != TU and "your " in f"{phrase.english} {place[0]}":
        raise DeadEndError
    italian = f"{command('mettere', person)} {phrase.italian} {place[1]}"
    return _addressed(draw, person, f"put {phrase.english} {place[0]}", italian)


def be_good(draw: Draw) -> Both:
    """ "Don't be late!", "Be patient!"."""
    english, italian = draw.choose(
        (
            ("be patient", "sii paziente"),
            ("be kind", "sii gentile"),
            ("do not be afraid", "non avere paura"),
            ("do not be late", "non essere in ritardo"),
            ("do not be sad", "non essere triste"),
            ("be quiet", "sta' zitto"),
            ("listen to me", "ascoltami"),
            ("wait for me", "aspettami"),
            ("help me", "aiutami"),
            ("call me tomorrow", "chiamami domani"),
        )
    )
    name = draw.pick(names("person"))
    if italian.endswith("zitto") and name.form == "fs":
        italian = "sta' zitta"
    return finished(draw, f"{name.english}, {english}", f"{name.italian}, {italian}", "!")


PATTERNS = (
    Pattern("command.tu", partial(order_someone, person=TU, negative=False), 60),
    Pattern("command.lei", partial(order_someone, person=LEI, negative=False), 50),
    Pattern("command.voi", partial(order_someone, person=VOI, negative=False), 30),
    Pattern("forbid.tu", partial(order_someone, person=TU, negative=True), 50),
    Pattern("forbid.lei", partial(order_someone, person=LEI, negative=True), 30),
    Pattern("do.tu", partial(do_something, person=TU, negative=False), 40),
    Pattern("do.lei", partial(do_something, person=LEI, negative=False), 30),
    Pattern("do.voi", partial(do_something, person=VOI, negative=False), 25),
    Pattern("do_not.tu", partial(do_something, person=TU, negative=True), 20),
    Pattern("do_not.voi", partial(do_something, person=VOI, negative=True), 22),
    Pattern("give_me.tu", partial(give_me, person=TU), 40),
    Pattern("give_me.lei", partial(give_me, person=LEI), 30),
    Pattern("here_it_is", partial(do_it, person=TU, negative=False), 50),
    Pattern("here_it_is.forbid", partial(do_it, person=TU, negative=True), 25),
    Pattern("go.tu", partial(go_somewhere, person=TU), 20),
    Pattern("go.lei", partial(go_somewhere, person=LEI), 22),
    Pattern("go.noi", partial(go_somewhere, person=NOI), 30),
    Pattern("let_us", let_us, 50),
    Pattern("put.tu", partial(put_it, person=TU), 30),
    Pattern("put.lei", partial(put_it, person=LEI), 20),
    Pattern("be_good", be_good, 20),
)
