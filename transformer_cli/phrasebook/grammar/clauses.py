"""Clauses in both languages: subject and verb phrase in every tense, as statement or question."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from transformer_cli.phrasebook.grammar.draw import DeadEndError, Draw
from transformer_cli.phrasebook.grammar.noun_phrases import NounPhrase
from transformer_cli.phrasebook.words import english, italian_verbs
from transformer_cli.phrasebook.words.lexicon import Adverb, Verb

ENGLISH_MODALS = {
    "future": ("will", ""),
    "can": ("can", ""),
    "must": ("must", ""),
    "should": ("should", ""),
    "would_like": ("would", "like to "),
}
# After these, as after "not", English needs "any" instead of "some".
NEGATIVE_ADVERBS = frozenset({"never", "rarely"})
POSITIVE_WORDS = ("some", "a bit", "a little", "already")
SEMI_MODALS = {"have_to": "have", "want": "want"}
ITALIAN_MODALS = {
    "can": "potere",
    "skill": "sapere",
    "must": "dovere",
    "have_to": "dovere",
    "want": "volere",
}


@dataclass(frozen=True, slots=True)
class VerbPhrase:
    """A verb with its complements.

    english, italian: the complements, which follow the verb.
    clitic: an Italian object pronoun; `agrees`: the form in which the participle agrees with it.
    adverb: an adverb of frequency, which stands beside the verb.
    """

    verb: Verb
    english: str = ""
    italian: str = ""
    clitic: str = ""
    agrees: str = ""
    adverb: Adverb | None = None


def and_then(italian: str) -> str:
    """The words with the conjunction "e" before them; it becomes "ed" before another e."""
    return f"{'ed' if italian[0] in 'eEè' else 'e'} {italian}"


def joined_words(*parts: str) -> str:
    """The parts that are not empty, with spaces between."""
    return " ".join(part for part in parts if part)


@cache
def _is_be(verb: Verb) -> bool:
    return verb.base == "be"


@cache
def _be(tense: str, person: int) -> str:
    table = english.PERSON_BE_PAST if tense in {"past", "was_doing"} else english.PERSON_BE_PRESENT
    return table[person]


@cache
def english_verb(verb: Verb, tense: str, person: int, needs_auxiliary: bool) -> tuple[str, str]:
    """The auxiliary (or "") and the rest of the English verb.

    Args:
        person: 0 to 5, as in `NounPhrase`.
        needs_auxiliary: true in a negation or a question ("does not eat").
    """
    particle = "" if verb.splits or not verb.particle else " " + verb.particle
    base = verb.base + particle
    is_he = person == 2
    if tense in {"skill", "can"}:
        tense = "can"
    if tense in ENGLISH_MODALS:
        auxiliary, lead = ENGLISH_MODALS[tense]
        return auxiliary, lead + base
    if tense in {"progressive", "was_doing"}:
        return _be(tense, person), english.ing_form(verb.base) + particle
    if tense == "going_to":
        return _be(tense, person), "going to " + base
    if tense == "perfect":
        return "has" if is_he else "have", verb.participle + particle
    if _is_be(verb) and tense in {"present", "past"}:
        return _be(tense, person), ""
    return _simple_english(verb, tense, is_he, needs_auxiliary)


def _simple_english(verb: Verb, tense: str, is_he: bool, needs_auxiliary: bool) -> tuple[str, str]:
    particle = "" if verb.splits or not verb.particle else " " + verb.particle
    finite, rest = verb.base, particle
    if _is_be(verb) and tense == "future":
        return "will", "be"
    if tense in SEMI_MODALS:
        finite, rest = SEMI_MODALS[tense], f" to {verb.base}{particle}"
    if tense == "used_to":
        ending = "use" if needs_auxiliary else "used"
        return "did" if needs_auxiliary else "", f"{ending} to {verb.base}{particle}"
    if tense == "past":
        return ("did", finite + rest) if needs_auxiliary else ("", verb.past + rest)
    if needs_auxiliary:
        return "does" if is_he else "do", finite + rest
    return "", (english.third_person(finite) if is_he else finite) + rest


def _refuse_positive_words(english_words: str) -> None:
    """Nobody says "some" or "a bit" where the sentence is negative: any, not at all."""
    if any(f" {english_words}".find(f" {words} ") >= 0 for words in POSITIVE_WORDS):
        raise DeadEndError


def english_statement(
    subject: NounPhrase, phrase: VerbPhrase, tense: str, *, negative: bool = False
) -> str:
    """ "Anna is not eating the apple"."""
    if negative and subject.english.startswith("every "):
        raise DeadEndError
    if negative or (phrase.adverb and phrase.adverb.english in NEGATIVE_ADVERBS):
        _refuse_positive_words(phrase.english)
    auxiliary, main = english_verb(phrase.verb, tense, subject.english_person, negative)
    adverb = phrase.adverb.english if phrase.adverb else ""
    if negative:
        auxiliary = "cannot" if auxiliary == "can" else auxiliary + " not"
    return joined_words(subject.english, auxiliary, adverb, main, phrase.english)


def english_question(subject: NounPhrase, phrase: VerbPhrase, tense: str) -> str:
    """ "is Anna eating the apple"; a question word may stand before it."""
    auxiliary, main = english_verb(phrase.verb, tense, subject.english_person, True)
    adverb = phrase.adverb.english if phrase.adverb else ""
    return joined_words(auxiliary, subject.english, adverb, main, phrase.english)


LEXICAL_TENSES = frozenset({"present", "past", "used_to", "was_doing", "future", "going_to"})


def _is_rare(verb: Verb, tense: str, person: int) -> bool:
    """Whether the phrasebook leaves the Italian form out: the voi form of most verbs."""
    has_own_form = tense in LEXICAL_TENSES and (tense != "past" or "stative" in verb.flags)
    return person == 4 and has_own_form and verb.italian not in {"essere", "avere"}


@cache
def _finite(verb: Verb, tense: str, person: int, participle_form: str) -> tuple[str, str]:
    """The Italian finite verb, and the participle or gerund after it."""
    infinitive = italian_verbs.plain_infinitive(verb.italian)
    if tense == "progressive" and "plain" not in verb.flags:
        return italian_verbs.present("stare", person), italian_verbs.gerund(infinitive)
    if tense == "past" and "stative" in verb.flags:
        tense = "used_to"
    if tense in {"past", "perfect"}:
        auxiliary = italian_verbs.present(verb.auxiliary, person)
        return auxiliary, italian_verbs.participle(infinitive, participle_form)
    if tense in {"used_to", "was_doing"}:
        return italian_verbs.imperfect(infinitive, person), ""
    if tense in {"future", "going_to"}:
        return italian_verbs.future(infinitive, person), ""
    return italian_verbs.present(infinitive, person), ""


def _modal(tense: str, person: int) -> str:
    if tense == "should":
        return italian_verbs.conditional("dovere", person)
    if tense == "would_like":
        return italian_verbs.conditional("volere", person)
    return italian_verbs.present(ITALIAN_MODALS[tense], person)


def italian_predicate(
    subject: NounPhrase, phrase: VerbPhrase, tense: str, *, negative: bool = False
) -> str:
    """ "non sta mangiando la mela": the clause without its subject."""
    verb, person = phrase.verb, subject.person
    if _is_rare(verb, tense, person):
        raise DeadEndError
    clitic = phrase.clitic
    if italian_verbs.is_reflexive(verb.italian):
        clitic = italian_verbs.REFLEXIVE_CLITICS[person]
    if tense in ITALIAN_MODALS or tense in {"should", "would_like"}:
        finite = _modal(tense, person)
        # An object pronoun stands before the modal verb (lo voglio vedere), a reflexive pronoun
        # at the end of the infinitive (voglio alzarmi).
        glued, clitic = ("", clitic) if phrase.clitic else (clitic, "")
        rest = italian_verbs.infinitive_with(italian_verbs.plain_infinitive(verb.italian), glued)
    else:
        form = subject.form if verb.auxiliary == "essere" else phrase.agrees or "ms"
        finite, rest = _finite(verb, tense, person, form)
    if clitic:
        finite = italian_verbs.before_verb(clitic, finite) + finite
    lead = adverb = ""
    if phrase.adverb:
        is_leading = phrase.adverb.kind == "leading"
        lead, adverb = (phrase.adverb.italian, "") if is_leading else ("", phrase.adverb.italian)
        negative = negative or adverb == "mai"
    return joined_words(lead, "non" if negative else "", finite, adverb, rest, phrase.italian)


def italian_statement(
    subject: NounPhrase, phrase: VerbPhrase, tense: str, *, negative: bool = False
) -> str:
    """ "Anna non sta mangiando la mela"; a pronoun as subject is left out."""
    return joined_words(
        subject.italian, italian_predicate(subject, phrase, tense, negative=negative)
    )


def statement(
    subject: NounPhrase, phrase: VerbPhrase, tense: str, *, negative: bool = False
) -> tuple[str, str]:
    """The clause in English and in Italian, in the order of a statement."""
    return (
        english_statement(subject, phrase, tense, negative=negative),
        italian_statement(subject, phrase, tense, negative=negative),
    )


def question(subject: NounPhrase, phrase: VerbPhrase, tense: str) -> tuple[str, str]:
    """The clause in English and in Italian, in the order of a yes/no question."""
    return english_question(subject, phrase, tense), italian_statement(subject, phrase, tense)


def finished(
    draw: Draw, english_words: str, italian_words: str, mark: str = "."
) -> tuple[str, str]:
    """The two sentences with capital letter, final mark and, sometimes, English contractions."""
    short = english.contracted(english_words)
    if short != english_words and draw.choose((True, True, False)):
        english_words = short
    return _capital(english_words) + mark, _capital(italian_words) + mark


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]
