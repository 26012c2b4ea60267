"""Sentence patterns that join two short clauses, or put a time or an adverb before one."""

from __future__ import annotations

from transformer_cli.phrasebook.grammar.adverbials import Both, in_named_place, when
from transformer_cli.phrasebook.grammar.clauses import (
    VerbPhrase,
    and_then,
    english_statement,
    finished,
    italian_statement,
    joined_words,
    statement,
)
from transformer_cli.phrasebook.grammar.draw import DeadEndError, Draw
from transformer_cli.phrasebook.grammar.noun_phrases import NounPhrase
from transformer_cli.phrasebook.grammar.people import (
    PRONOUNS,
    SELF,
    YOU,
    named,
    named_outright,
    person_subject,
    told_apart,
)
from transformer_cli.phrasebook.patterns.complex_sentences.conjunctions import again, mood, some_act
from transformer_cli.phrasebook.patterns.complex_sentences.short_clauses import (
    impersonal_clause,
    personal_clause,
)
from transformer_cli.phrasebook.patterns.pattern import Pattern, in_tenses
from transformer_cli.phrasebook.patterns.simple_sentences.full_verbs import object_phrase
from transformer_cli.phrasebook.patterns.simple_sentences.imperatives import (
    TU,
    command,
    commanded_verbs,
    prohibition,
)
from transformer_cli.phrasebook.patterns.simple_sentences.object_pronouns import (
    DIRECT,
    verbs_for_people,
)
from transformer_cli.phrasebook.words.italian import adjective_forms
from transformer_cli.phrasebook.words.lexicon import BE, adverbs, names, the_verb

WITH_LEADS = (
    ("maybe", "forse"),
    ("perhaps", "forse"),
    ("unfortunately", "purtroppo"),
    ("unfortunately,", "purtroppo"),
)


def _lone_clause(draw: Draw, tense: str) -> Both:
    if draw.choose((True, True, False)):
        return personal_clause(draw, person_subject(draw), tense)
    return impersonal_clause(draw, tense)


def at_the_head(draw: Draw, tense: str) -> Both:
    """ "Tomorrow we will be in Rome", "Domani saremo a Roma"; "Today I am tired"."""
    if tense == "present":
        adverb = draw.pick(adverbs("today", "now"))
        time = draw.expect(adverb.english), adverb.italian
        clause = _lone_clause(draw, "progressive")
    else:
        time = when(draw, tense)
        clause = _lone_clause(draw, tense)
    comma = draw.choose(("", "", ","))
    return finished(draw, f"{time[0]}{comma} {clause[0]}", f"{time[1]} {clause[1]}")


def supposed(draw: Draw, tense: str) -> Both:
    """ "Maybe they are at home", "Forse sono a casa"; "Unfortunately the shop is closed"."""
    lead = draw.choose(WITH_LEADS)
    draw.expect(lead[0])
    clause = _lone_clause(draw, tense)
    return finished(draw, f"{lead[0]} {clause[0]}", f"{lead[1]} {clause[1]}")


def supposed_duty(draw: Draw) -> Both:
    """ "Unfortunately I have to work", "Purtroppo devo lavorare"."""
    lead = draw.choose(WITH_LEADS)
    draw.expect(lead[0])
    tense = draw.choose(("have_to", "have_to", "must", "can"))
    act = some_act(draw, tense)
    clause = statement(person_subject(draw), act, tense, negative=tense == "can")
    return finished(draw, f"{lead[0]} {clause[0]}", f"{lead[1]} {clause[1]}")


def childhood(draw: Draw) -> Both:
    """ "When I was a child, I used to live here", "Quando ero bambino, abitavo qui"."""
    subject = draw.choose((*PRONOUNS, None)) or named(draw.pick(names("person")))
    draw.expect(subject.english)
    is_many = subject.form[1] == "p"
    state = draw.choose(
        (
            ("children" if is_many else "a child", adjective_forms("bambino")[subject.form]),
            ("young", adjective_forms("giovane")[subject.form]),
        )
    )
    lead = statement(subject, VerbPhrase(BE, *state), "past")
    draw.expect(lead[0])
    silent = again(subject)
    if draw.choose((True, False, False)):
        act = VerbPhrase(the_verb("abitare", "live"), *in_named_place(draw))
        clause = statement(silent, act, draw.choose(("past", "used_to")))
    else:
        clause = statement(silent, some_act(draw, "used_to"), "used_to")
    if draw.choose((True, True, False)):
        return finished(draw, f"when {lead[0]}, {clause[0]}", f"quando {lead[1]}, {clause[1]}")
    return finished(draw, f"{clause[0]} when {lead[0]}", f"{clause[1]} quando {lead[1]}")


def _now(draw: Draw, tense: str) -> str:
    return draw.choose(("present", "progressive")) if tense == "present" else tense


def _is_same(first: NounPhrase, second: NounPhrase) -> bool:
    return (first.person, first.form) == (second.person, second.form)


def set_against(draw: Draw, tense: str) -> Both:
    """ "He is tired and I am working", "Lui è stanco e io sto lavorando"."""
    word = draw.choose((("and", "e"), ("but", "ma"), (", but", ", ma")))
    draw.expect(word[0])
    first, second = person_subject(draw), person_subject(draw)
    if _is_same(first, second) and not (first.bare and second.bare):
        raise DeadEndError
    if first.english == second.english:
        raise DeadEndError
    one = personal_clause(draw, named_outright(first), _now(draw, tense), may_like=False)
    draw.expect(one[0])
    two = personal_clause(draw, named_outright(second), _now(draw, tense), may_like=False)
    return _linked(draw, one, word, two)


def _linked(draw: Draw, one: Both, word: Both, two: Both) -> Both:
    """Two clauses with a conjunction between them; `word` may begin with a comma."""
    english = f"{one[0]} {word[0]} {two[0]}".replace(" ,", ",")
    behind = and_then(two[1]) if word[1] == "e" else f"{word[1]} {two[1]}"
    return finished(draw, english, f"{one[1]} {behind}".replace(" ,", ","))


def side_by_side(draw: Draw, tense: str) -> Both:
    """ "I am hungry but the shop is closed", "Ho fame ma il negozio è chiuso"."""
    word = draw.choose(
        (("and", "e"), ("but", "ma"), (", but", ", ma"), ("because", "perché"), ("so", "quindi"))
    )
    draw.expect(word[0])
    subject = person_subject(draw)
    kind = draw.choose(("thing", "thing", "same", "thing_first"))
    if kind == "thing_first":
        subject = told_apart(subject)
    one = personal_clause(draw, subject, _now(draw, tense))
    draw.expect(one[0])
    if kind == "same":
        return _linked(draw, one, word, personal_clause(draw, again(subject), _now(draw, tense)))
    two = impersonal_clause(draw, tense)
    if kind == "thing_first":
        one, two = two, one
    return _linked(draw, one, word, two)


def someone_else(draw: Draw, tense: str) -> Both:
    """ "I am happy because she is here", "Sono felice perché lei è qui"."""
    word = draw.choose((("because", "perché"), ("when", "quando"), ("if", "se")))
    now = "present" if word[0] == "if" else tense
    draw.expect(word[0])
    first, second = person_subject(draw), person_subject(draw)
    if _is_same(first, second) or ("I" in second.english.split() and first.person == 0):
        raise DeadEndError
    second = told_apart(second)
    is_reversed = word[0] != "because" and draw.choose((True, False))
    if is_reversed:
        first = told_apart(first)
    kind = "future" if word[0] == "if" else tense
    if word[0] == "when" and tense == "past":
        raise DeadEndError  # one of the two Italian verbs would have to be in the imperfect
    if word[0] == "when" and tense == "future":
        raise DeadEndError  # the English would need a present: when she arrives
    one = personal_clause(draw, first, kind, may_like=False)
    draw.expect(one[0])
    two = personal_clause(draw, second, now, may_like=False)
    if is_reversed:
        return finished(draw, f"{word[0]} {two[0]}, {one[0]}", f"{word[1]} {two[1]}, {one[1]}")
    return _linked(draw, one, word, two)


def when_future(draw: Draw) -> Both:
    """ "When I go home, I will rest", "Quando andrò a casa, mi riposerò"."""
    subject = person_subject(draw)
    if draw.choose((True, False, False)):
        city = draw.pick(names("city"))
        place = draw.expect(f"in {city.english}"), f"a {city.italian}"
        act = VerbPhrase(the_verb("arrivare", "arrive"), *place)
    else:
        act = some_act(draw, "future")
    lead = (
        english_statement(subject, act, "present"),
        italian_statement(subject, act, "future"),
    )
    draw.expect(lead[0])
    silent = again(subject)
    if draw.choose((True, True, False)):
        behind = personal_clause(draw, silent, "future")
    else:
        english, clitic, person, form = draw.choose(DIRECT)
        if person in SELF[subject.person]:
            raise DeadEndError
        verb = draw.pick(verbs_for_people("future"))
        behind = statement(silent, VerbPhrase(verb, english, "", clitic, form), "future")
    return finished(draw, f"when {lead[0]}, {behind[0]}", f"quando {lead[1]}, {behind[1]}")


def if_you(draw: Draw) -> Both:
    """ "If you are hungry, eat a sandwich!", "Se hai fame, mangia un panino!"."""
    state = mood(draw, YOU, "present")
    draw.expect(state[0])
    verb = draw.pick(commanded_verbs())
    thing = object_phrase(draw, verb, ("the", "a", "this", "that"))
    negative = draw.choose((True, False, False))
    make = prohibition if negative else command
    order = joined_words("do not" if negative else "", verb.base, verb.particle, thing.english)
    return finished(
        draw,
        f"if {state[0]}, {order}",
        f"se {state[1]}, {make(verb.italian, TU)} {thing.italian}",
        "!",
    )


PATTERNS = (
    Pattern("when_future", when_future, 60),
    Pattern("if_you", if_you, 40),
    *in_tenses("at_the_head", at_the_head, {"present": 70, "past": 90, "future": 90}),
    *in_tenses("supposed", supposed, {"present": 40, "past": 30, "future": 40}),
    Pattern("supposed.must", supposed_duty, 30),
    Pattern("childhood", childhood, 50),
    *in_tenses("set_against", set_against, {"present": 60, "past": 60, "future": 40}),
    *in_tenses("side_by_side", side_by_side, {"present": 90, "past": 90, "future": 60}),
    *in_tenses("someone_else", someone_else, {"present": 90, "past": 50, "future": 60}),
)
