"""Sentence patterns for full verbs: each frame (verbs.tsv) in each tense, stated and asked."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from transformer_cli.phrasebook.grammar.adverbials import (
    NOTHING,
    Both,
    at_place,
    lively_places,
    sometimes_when,
    to_place,
    to_place_by_means,
)
from transformer_cli.phrasebook.grammar.clauses import (
    VerbPhrase,
    finished,
    joined_words,
    question,
    statement,
)
from transformer_cli.phrasebook.grammar.draw import DeadEndError, Draw
from transformer_cli.phrasebook.grammar.noun_phrases import (
    OBJECT_DETERMINERS,
    NounPhrase,
    noun_phrase,
)
from transformer_cli.phrasebook.grammar.people import (
    HE,
    SHE,
    THEY,
    YOU,
    companion,
    person_object,
    person_subject,
)
from transformer_cli.phrasebook.patterns.pattern import Pattern
from transformer_cli.phrasebook.words.lexicon import (
    Verb,
    adverbs,
    objects_of,
    places,
    verbs,
    verbs_with,
    verbs_without,
)

TENSES = (
    ("present", 8),
    ("progressive", 6),
    ("past", 9),
    ("perfect", 3),
    ("used_to", 3),
    ("was_doing", 2),
    ("future", 6),
    ("going_to", 3),
    ("can", 3),
    ("must", 3),
    ("have_to", 3),
    ("want", 4),
    ("should", 3),
    ("would_like", 2),
)
NEVER_DENIED = frozenset({"have_to", "would_like", "was_doing", "must"})
NEVER_HABITUAL = frozenset({"telling", "giving", "prepositional"})
NEVER_ASKED = frozenset({"used_to", "was_doing", "going_to"})


IMPERFECTS = frozenset({"used_to", "was_doing"})
PURPOSEFUL = frozenset({"going_to", "can", "must", "have_to", "want", "should", "would_like"})


@cache
def active_verbs(tense: str) -> tuple[Verb, ...]:
    """The transitive verbs for actions, not for feelings or knowledge."""
    return tuple(
        verb
        for verb in transitive_verbs(tense)
        if "stative" not in verb.flags and (tense != "present" or verb.base != verb.past)
    )


def looks_past(verb: Verb, tense: str, subject: NounPhrase) -> bool:
    """Whether the English present looks like a past tense: "I read the book"."""
    return tense == "present" and verb.base == verb.past and subject.english_person != 2


@cache
def transitive_verbs(tense: str) -> tuple[Verb, ...]:
    """The transitive verbs that make sense in a tense."""
    barred = set()
    if tense in {"progressive", "was_doing"}:
        barred = {"stative", "sudden", "mishap"}
    elif tense in PURPOSEFUL or tense in {"future", "perfect"}:
        barred = {"stative"} if tense in {"future", "perfect"} else {"stative", "mishap"}
    if tense == "can":
        barred.add("skill")
    pool = verbs_with("routine", "transitive") if tense in IMPERFECTS else verbs("transitive")
    return tuple(verb for verb in pool if not verb.flags & barred)


def object_phrase(
    draw: Draw, verb: Verb, determiners: tuple[str, ...] = OBJECT_DETERMINERS
) -> NounPhrase:
    """A noun phrase that makes sense as the object of the verb."""
    noun = draw.pick(objects_of(verb))
    if "whole" in verb.flags:
        determiners = ("the", "the", "this", "that", "my")
    elif "person" in noun.classes:
        determiners = ("the", "the", "a", "this", "my")
    return noun_phrase(draw, noun, determiners)


def with_object(verb: Verb, phrase: NounPhrase) -> VerbPhrase:
    """The verb and its object; a particle stands before the noun ("turn on the light")."""
    words = f"{verb.particle} {phrase.english}" if verb.splits else phrase.english
    return VerbPhrase(verb, words, phrase.italian)


def transitive(draw: Draw, tense: str) -> VerbPhrase:
    """A verb with its object: "eat the red apple"."""
    verb = draw.pick(transitive_verbs(tense))
    return with_object(verb, object_phrase(draw, verb))


def intransitive(draw: Draw, tense: str) -> VerbPhrase:
    """A verb without object, sometimes with a place: "work at the bank"."""
    pool = verbs_without("skill", "intransitive") if tense == "can" else verbs("intransitive")
    pool = verbs_with("routine", "intransitive") if tense in IMPERFECTS else pool
    verb = draw.pick(pool)
    english, italian = NOTHING
    if "anywhere" in verb.flags and draw.choose((True, True, False)):
        english, italian = at_place(draw, places() if verb.base == "work" else lively_places())
    return VerbPhrase(verb, english, italian)


def motion(draw: Draw, tense: str) -> VerbPhrase:
    """Going somewhere: "go back to the station", "go to Rome by train"."""
    verb = draw.pick(verbs("motion"))
    if draw.choose((True, False, False)):
        english, italian = to_place_by_means(draw)
    else:
        english, italian = to_place(draw)
    if verb.base == "come" and english == "abroad":
        raise DeadEndError
    return VerbPhrase(verb, english, italian)


@cache
def _reflexive_verbs(tense: str) -> tuple[Verb, ...]:
    if tense in IMPERFECTS:
        return verbs_with("routine", "reflexive")
    return verbs_without("mishap", "reflexive") if tense in PURPOSEFUL else verbs("reflexive")


def reflexive(draw: Draw, tense: str) -> VerbPhrase:
    """A reflexive Italian verb: "get up"."""
    pool = _reflexive_verbs(tense)
    return VerbPhrase(draw.pick(pool))


def skilled(draw: Draw, tense: str) -> VerbPhrase:
    """A skill that must be learnt: "swim", "play the piano"."""
    verb = draw.pick(verbs_with("skill", "transitive", "intransitive"))
    return with_object(verb, object_phrase(draw, verb)) if verb.objects else VerbPhrase(verb)


def prepositional(draw: Draw, tense: str) -> VerbPhrase:
    """A verb whose object takes a preposition in Italian: "answer the question"."""
    verb = draw.pick(verbs("prepositional"))
    phrase = object_phrase(draw, verb, ("the", "the", "this", "that", "my", "a"))
    if "some " in phrase.english:
        raise DeadEndError
    preposition = next(iter(verb.flags & {"di", "a", "con"}))
    return VerbPhrase(verb, phrase.english, phrase.after(preposition))


def giving(draw: Draw, tense: str) -> VerbPhrase:
    """Giving something to someone: "show the photo to Anna"."""
    pool = verbs_with("routine", "giving") if tense in IMPERFECTS else verbs("giving")
    verb = draw.pick(pool)
    phrase = noun_phrase(draw, draw.pick(objects_of(verb)), ("the", "the", "a", "this", "my"))
    recipient = person_object(draw)
    return VerbPhrase(
        verb,
        f"{phrase.english} to {recipient.english}",
        f"{phrase.italian} {recipient.after('a')}",
    )


def telling(draw: Draw, tense: str) -> VerbPhrase:
    """Saying something to someone: "explain the problem to Anna"."""
    pool = verbs_with("routine", "telling") if tense in IMPERFECTS else verbs("telling")
    verb = draw.pick(pool)
    phrase = noun_phrase(draw, draw.pick(objects_of(verb)), ("the", "the", "a", "this", "my"))
    recipient = person_object(draw)
    if verb.base == "tell":
        english = f"{recipient.english} {phrase.english}"
    else:
        english = f"{phrase.english} to {recipient.english}"
    return VerbPhrase(verb, english, f"{phrase.italian} {recipient.after('a')}")


Frame = Callable[[Draw, str], VerbPhrase]


def stated(draw: Draw, tense: str, frame: Frame) -> Both:
    """A statement, sometimes negative, sometimes with an adverbial of time."""
    subject = person_subject(draw)
    phrase = _accompanied(draw, subject, frame(draw, tense))
    draw.expect(phrase.english)
    time = sometimes_when(draw, tense, phrase.verb)
    negative = tense not in NEVER_DENIED and draw.choose((True, False, False, False))
    if not negative and looks_past(phrase.verb, tense, subject) and not time[0]:
        raise DeadEndError
    english, italian = statement(subject, phrase, tense, negative=negative)
    if time[0] and draw.choose((True, False, False)):
        return finished(draw, joined_words(time[0], english), joined_words(time[1], italian))
    return finished(draw, joined_words(english, time[0]), joined_words(italian, time[1]))


def _accompanied(draw: Draw, subject: NounPhrase, phrase: VerbPhrase) -> VerbPhrase:
    """The verb phrase; after a verb of motion or an intransitive one, sometimes "with us"."""
    is_shared = phrase.verb.frame in {"motion", "intransitive"}
    if not is_shared or draw.choose((True, False, False)) is False:
        return phrase
    english, italian = companion(draw, subject)
    return VerbPhrase(
        phrase.verb, joined_words(phrase.english, english), joined_words(phrase.italian, italian)
    )


def asked(draw: Draw, tense: str, frame: Frame) -> Both:
    """A yes/no question."""
    subject = person_subject(draw)
    if subject.person in {0, 3}:
        subject = draw.choose((YOU, HE, SHE, THEY))
        draw.expect(subject.english)
    phrase = _accompanied(draw, subject, frame(draw, tense))
    draw.expect(phrase.english)
    english, italian = question(subject, phrase, tense)
    time = sometimes_when(draw, tense, phrase.verb)
    return finished(draw, joined_words(english, time[0]), joined_words(italian, time[1]), "?")


def frequent(draw: Draw, frame: Frame) -> Both:
    """A habit with an adverb of frequency: "She often eats fish"."""
    subject = person_subject(draw)
    phrase = frame(draw, "present")
    adverb = draw.pick(adverbs("frequency", "leading"))
    phrase = VerbPhrase(phrase.verb, phrase.english, phrase.italian, adverb=adverb)
    english, italian = statement(subject, phrase, "present")
    time = draw.pick(adverbs("habit")) if draw.choose((True, False, False, False)) else None
    if time is None or time.english.startswith(("every", "once", "twice")):
        return finished(draw, english, italian)
    return finished(draw, f"{english} {time.english}", f"{italian} {time.italian}")


FRAMES: tuple[tuple[str, Frame, float], ...] = (
    ("transitive", transitive, 3),
    ("intransitive", intransitive, 1),
    ("motion", motion, 1.4),
    ("reflexive", reflexive, 0.7),
    ("giving", giving, 1),
    ("telling", telling, 0.6),
    ("prepositional", prepositional, 0.8),
)


def _patterns() -> tuple[Pattern, ...]:
    patterns = []
    for name, frame, share in FRAMES:
        for tense, weight in TENSES:
            if name in NEVER_HABITUAL and tense in IMPERFECTS:
                continue
            build = partial(stated, tense=tense, frame=frame)
            patterns.append(Pattern(f"{name}.{tense}", build, round(weight * share * 10)))
            if tense not in NEVER_ASKED:
                asking = partial(asked, tense=tense, frame=frame)
                patterns.append(
                    Pattern(f"{name}.{tense}.question", asking, max(18, round(weight * share * 3)))
                )
        patterns.append(
            Pattern(f"{name}.frequency", partial(frequent, frame=frame), round(share * 50))
        )
    know_how = partial(stated, tense="skill", frame=skilled)
    patterns.append(Pattern("skilled", know_how, 40))
    asking = partial(asked, tense="skill", frame=skilled)
    patterns.append(Pattern("skilled.question", asking, 25))
    return tuple(patterns)


PATTERNS = _patterns()
