"""Sentence patterns that end in a relative clause."""

from __future__ import annotations

from transformer_cli.phrasebook.grammar.adverbials import Both
from transformer_cli.phrasebook.grammar.clauses import VerbPhrase, finished, statement
from transformer_cli.phrasebook.grammar.draw import DeadEndError, Draw
from transformer_cli.phrasebook.grammar.noun_phrases import NounPhrase, noun_phrase
from transformer_cli.phrasebook.grammar.people import HE, THEY, person_subject
from transformer_cli.phrasebook.patterns.complex_sentences.conjunctions import some_act
from transformer_cli.phrasebook.patterns.pattern import in_tenses
from transformer_cli.phrasebook.patterns.simple_sentences.full_verbs import active_verbs, looks_past
from transformer_cli.phrasebook.words.italian import adjective_forms
from transformer_cli.phrasebook.words.lexicon import nouns, objects_of, the_verb


def knows_someone(draw: Draw, tense: str) -> Both:
    """ "I know a man who works in Rome", "Conosco un uomo che lavora a Roma"."""
    subject = person_subject(draw)
    noun = draw.pick(nouns("grown", "young", "job", "known"))
    someone = noun_phrase(draw, noun, ("a", "a", "the", "that"))
    silent = THEY if someone.english_person == 5 else HE
    inner = NounPhrase("", "", someone.form, False, someone.person, silent.english_person)
    clause = statement(inner, some_act(draw, tense), tense)
    know = VerbPhrase(
        the_verb("conoscere", "know"),
        f"{someone.english} who {clause[0]}",
        f"{someone.italian} che {clause[1]}",
    )
    negative = someone.italian[:2] != "un" and draw.choose((True, False, False))
    return finished(draw, *statement(subject, know, "present", negative=negative))


def this_is_what(draw: Draw, tense: str) -> Both:
    """ "This is the book that I bought", "Questo è il libro che ho comprato"."""
    verb = draw.pick(active_verbs(tense))
    noun = draw.pick(objects_of(verb))
    if "family" in noun.classes or verb.splits:
        raise DeadEndError
    thing = noun_phrase(draw, noun, ("the",))
    subject = person_subject(draw)
    if looks_past(verb, tense, subject):
        raise DeadEndError
    clause = statement(subject, VerbPhrase(verb), tense)
    is_many = thing.english_person == 5
    pointer = draw.choose((("this is", "these are", "questo"), ("that is", "those are", "quello")))
    stem = adjective_forms(pointer[2])[thing.form]
    if pointer[2] == "quello" and thing.form == "mp":
        stem = "quelli"
    verb_form = "sono" if thing.form[1] == "p" else "è"
    that = draw.choose(("that ", "that ", ""))
    return finished(
        draw,
        f"{pointer[is_many]} {thing.english} {that}{clause[0]}",
        f"{stem} {verb_form} {thing.italian} che {clause[1]}",
    )


PATTERNS = (
    *in_tenses("knows_someone", knows_someone, {"present": 30, "progressive": 20, "past": 25}),
    *in_tenses("this_is_what", this_is_what, {"past": 50, "progressive": 20, "want": 25}),
)
