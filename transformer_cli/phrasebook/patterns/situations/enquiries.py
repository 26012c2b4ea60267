"""Sentence patterns of everyday enquiries: where, who, why, how many, who knows."""

from __future__ import annotations

from functools import cache, partial

from transformer_cli.phrasebook.grammar.adverbials import NOTHING, Both, at_time, inside
from transformer_cli.phrasebook.grammar.clauses import (
    VerbPhrase,
    finished,
    italian_predicate,
    joined_words,
    question,
    statement,
)
from transformer_cli.phrasebook.grammar.draw import DeadEndError, Draw
from transformer_cli.phrasebook.grammar.noun_phrases import NounPhrase, noun_phrase
from transformer_cli.phrasebook.grammar.people import (
    HE,
    PRONOUNS,
    SELF,
    SHE,
    THEY,
    YOU,
    named_outright,
    person_subject,
)
from transformer_cli.phrasebook.patterns.complex_sentences.conjunctions import mood, some_act
from transformer_cli.phrasebook.patterns.pattern import Pattern, in_tenses
from transformer_cli.phrasebook.patterns.simple_sentences.being import (
    adjective_phrase,
    personal_adjectives,
)
from transformer_cli.phrasebook.patterns.simple_sentences.full_verbs import (
    object_phrase,
    with_object,
)
from transformer_cli.phrasebook.patterns.simple_sentences.imperatives import ADDRESSES
from transformer_cli.phrasebook.patterns.simple_sentences.object_pronouns import (
    DIRECT,
    verbs_for_people,
)
from transformer_cli.phrasebook.patterns.situations.travel import PLEASE
from transformer_cli.phrasebook.words.italian import adjective_forms
from transformer_cli.phrasebook.words.italian_verbs import present
from transformer_cli.phrasebook.words.lexicon import (
    BE,
    HAVE,
    Noun,
    Verb,
    count_nouns,
    names,
    nouns,
    the_verb,
    verbs,
)

ME, US = PRONOUNS[0], PRONOUNS[4]
SOUGHT = frozenset(
    {
        "comprare",
        "prendere",
        "mangiare",
        "bere",
        "trovare",
        "affittare",
        "parcheggiare",
        "prenotare",
    }
)


def _kept_verbs(infinitives: frozenset[str]) -> tuple[Verb, ...]:
    return tuple(verb for verb in verbs("transitive") if verb.italian in infinitives)


@cache
def _sought() -> tuple[Verb, ...]:
    return _kept_verbs(SOUGHT)


def where_can(draw: Draw) -> Both:
    """ "Where can I buy a ticket?", "Dove posso comprare un biglietto?"."""
    subject = draw.choose((ME, ME, US))
    verb = draw.pick(_sought())
    phrase = with_object(verb, object_phrase(draw, verb, ("a", "a", "the", "this", "bare")))
    lead = draw.choose((NOTHING, NOTHING, ("excuse me,", "scusi,")))
    english, italian = question(subject, phrase, "can")
    return finished(
        draw,
        joined_words(lead[0], "where", english),
        joined_words(lead[1], "dove", italian),
        "?",
    )


def _whereabouts(draw: Draw) -> tuple[NounPhrase, Both]:
    """A subject, and the clause "where the station is", "dov'è la stazione"."""
    pool = nouns("building", "public-place", "room", "thing", "family", "pet", "known")
    subject = noun_phrase(draw, draw.pick(pool), ("the", "the", "my"))
    verb = "is" if subject.english_person == 2 else "are"
    place = "dov'è" if subject.person == 2 else "dove sono"
    return subject, (f"where {subject.english} {verb}", f"{place} {subject.italian}")


def knows_where(draw: Draw, *, asks: bool = False) -> Both:
    """ "I don't know where the key is", "Non so dov'è la chiave"; "Do you know where ...?"."""
    subject = person_subject(draw)
    if asks and subject.person in {0, 3}:
        raise DeadEndError
    _, clause = _whereabouts(draw)
    phrase = VerbPhrase(the_verb("sapere", "know"), *clause)
    if asks:
        return finished(draw, *question(subject, phrase, "present"), "?")
    return finished(
        draw, *statement(subject, phrase, "present", negative=draw.choose((True, True, False)))
    )


def tell_me_where(draw: Draw) -> Both:
    """ "Can you tell me where the station is, please?", "Mi può dire dov'è la stazione, ...?"."""
    _, clause = _whereabouts(draw)
    if "your " in clause[0]:
        raise DeadEndError
    title = draw.choose((PLEASE, *((f", {x}", f", {y}") for x, y in ADDRESSES)))
    english, italian = f"can you tell me {clause[0]}", f"mi può dire {clause[1]}"
    return finished(draw, english + title[0], italian + title[1], "?")


def says_that_person(draw: Draw) -> Both:
    """ "I know that you are tired", "So che sei stanco"; "He says that she is ill"."""
    subject, other = person_subject(draw), person_subject(draw)
    if other.english == subject.english and subject.person in {0, 1, 3}:
        raise DeadEndError
    if not other.bare and other.person in {2, 5} and other.english != subject.english:
        other = named_outright(other)
    verb = the_verb(*draw.choose((("dire", "say"), ("sapere", "know"))))
    tense = draw.choose(("present", "present", "past"))
    if draw.choose((True, False)):
        inner = mood(draw, other, tense)
    else:
        adjective = draw.pick(personal_adjectives(tense))
        quality = VerbPhrase(BE, *adjective_phrase(draw, adjective, other.form))
        inner = statement(other, quality, tense, negative=draw.choose((True, False, False)))
    draw.expect(inner[0])
    that = draw.choose(("that ", "that ", ""))
    phrase = VerbPhrase(verb, f"{that}{inner[0]}", f"che {inner[1]}")
    return finished(draw, *statement(subject, phrase, "present"))


def who_is(draw: Draw) -> Both:
    """ "Who is that man?", "Chi è quell'uomo?"."""
    noun = draw.pick(nouns("grown", "young", "job", "known"))
    phrase = noun_phrase(draw, noun, ("that", "this", "the"))
    verb = "is" if phrase.english_person == 2 else "are"
    italian = "è" if phrase.person == 2 else "sono"
    return finished(draw, f"who {verb} {phrase.english}", f"chi {italian} {phrase.italian}", "?")


def why_is(draw: Draw, tense: str) -> Both:
    """ "Why are you sad?", "Perché sei triste?"; "Why is the shop closed?"."""
    subject = draw.choose((YOU, YOU, HE, SHE, THEY, None)) or person_subject(draw)
    if subject.person in {0, 3}:
        raise DeadEndError
    draw.expect(subject.english)
    adjective = draw.pick(personal_adjectives(tense))
    quality = adjective_phrase(draw, adjective, subject.form)
    english = question(subject, VerbPhrase(BE, *quality), tense)[0]
    italian = italian_predicate(subject, VerbPhrase(BE, *quality), tense)
    return finished(draw, f"why {english}", joined_words("perché", subject.italian, italian), "?")


def why_you(draw: Draw, tense: str) -> Both:
    """ "Why did you call me?", "Perché mi hai chiamato?"; "Why didn't you call me?"."""
    subject = draw.choose((YOU, YOU, HE, SHE, THEY))
    english, clitic, person, form = draw.choose(DIRECT)
    if person in SELF[subject.person]:
        raise DeadEndError
    phrase = VerbPhrase(draw.pick(verbs_for_people(tense)), english, "", clitic, form)
    negative = draw.choose((True, False))
    words = question(subject, phrase, tense)[0]
    if negative:
        auxiliary, _, rest = words.partition(" ")
        words = f"{auxiliary}n't {rest}" if auxiliary in {"do", "does", "did"} else ""
    if not words:
        raise DeadEndError
    italian = italian_predicate(subject, phrase, tense, negative=negative)
    return finished(draw, f"why {words}", f"perché {italian}", "?")


@cache
def _owned() -> tuple[Noun, ...]:
    return count_nouns("several", "thing", "pet", "ownable", "clothing", "friendly", "room")


def how_many_have(draw: Draw) -> Both:
    """ "How many brothers do you have?", "Quanti fratelli hai?"."""
    subject = person_subject(draw)
    if subject.person in {0, 3}:
        raise DeadEndError
    noun = draw.pick(_owned())
    how = adjective_forms("quanto")[noun.plural_form]
    english = f"how many {noun.english[1]} {question(subject, VerbPhrase(HAVE), 'present')[0]}"
    italian = joined_words(how, noun.italian[1], present("avere", subject.person), subject.italian)
    return finished(draw, english, italian, "?")


def there_is_no(draw: Draw, tense: str) -> Both:
    """ "There are no chairs in the kitchen", "Non ci sono sedie in cucina"."""
    noun = draw.pick(nouns("thing", "furniture", "drink", "food", "pet", "young"))
    is_many = noun.number in {"count", "plural"}
    if "cup" in noun.classes or noun.number == "plural>mass":
        raise DeadEndError
    is_many_in_italian = is_many or noun.number == "mass>plural"
    english = {"present": ("is", "are"), "past": ("was", "were")}[tense][is_many]
    italian = {"present": ("c'è", "ci sono"), "past": ("c'era", "c'erano")}[tense]
    place = inside(draw)
    first = f"there {english} no {noun.english[is_many]} {place[0]}"
    verb = italian[is_many_in_italian]
    return finished(draw, first, f"non {verb} {noun.italian[is_many]} {place[1]}")


def from_country(draw: Draw, *, asks: bool = False) -> Both:
    """ "I am from Italy", "Vengo dall'Italia"."""
    subject = person_subject(draw)
    if asks and subject.person in {0, 3}:
        raise DeadEndError
    country = draw.pick(names("country"))
    lead = "dall'" if country.italian[0] in "AEIOU" else "dalla "
    italian = f"{lead}{country.italian}"
    if asks:
        english = question(subject, VerbPhrase(BE, f"from {country.english}"), "present")[0]
    else:
        english = statement(subject, VerbPhrase(BE, f"from {country.english}"), "present")[0]
    coming = VerbPhrase(the_verb("venire", "come"), "", italian)
    mark = "?" if asks else "."
    return finished(draw, english, statement(subject, coming, "present")[1], mark)


def opening_hours(draw: Draw) -> Both:
    """ "What time does the museum open?", "A che ora apre il museo?"; "Does it open at ...?"."""
    pool = nouns("openable-place")
    phrase = noun_phrase(draw, draw.pick(pool), ("the", "this"), plurals=(False,))
    verb = the_verb(*draw.choose((("aprire", "open"), ("chiudere", "close"))))
    word = draw.choose((("what time", "a che ora"), ("when", "quando"), NOTHING))
    draw.expect(word[0])
    if word[0]:
        english = f"{word[0]} {question(phrase, VerbPhrase(verb), 'present')[0]}"
        italian = f"{word[1]} {italian_predicate(phrase, VerbPhrase(verb), 'present')}"
        return finished(draw, english, f"{italian} {phrase.italian}", "?")
    return finished(draw, *question(phrase, VerbPhrase(verb, *at_time(draw)), "present"), "?")


EVENTS = (("arrive", "arrivare"), ("leave", "partire"), ("call", "chiamare"), ("see", "vedere"))


def was_doing_when(draw: Draw) -> Both:
    """ "I was sleeping when you arrived", "Dormivo quando sei arrivato"."""
    first, second = person_subject(draw), person_subject(draw)
    if first.person == second.person:
        raise DeadEndError
    if second.person in {2, 5} and first.person in {2, 5}:
        second = named_outright(second)
    one = statement(first, some_act(draw, "was_doing"), "was_doing")
    draw.expect(one[0])
    base, infinitive = draw.choose(EVENTS)
    draw.expect("saw" if base == "see" else "left" if base == "leave" else base)
    act = VerbPhrase(the_verb(infinitive, base))
    if base in {"call", "see"}:
        english, clitic, _, form = DIRECT[first.person] if first.person != 5 else DIRECT[5]
        if first.form in {"fs", "fp"}:
            english, clitic = ("her", "la") if first.form == "fs" else ("them", "le")
            form = first.form
        act = VerbPhrase(act.verb, english, "", clitic, form)
    two = statement(second, act, "past")
    if draw.choose((True, False)):
        return finished(draw, f"{one[0]} when {two[0]}", f"{one[1]} quando {two[1]}")
    return finished(draw, f"when {two[0]}, {one[0]}", f"quando {two[1]}, {one[1]}")


PATTERNS = (
    Pattern("where_can", where_can, 50),
    Pattern("knows_where", knows_where, 80),
    Pattern("knows_where.question", partial(knows_where, asks=True), 40),
    Pattern("tell_me_where", tell_me_where, 50),
    Pattern("says_that_person", says_that_person, 60),
    Pattern("who_is", who_is, 30),
    *in_tenses("why_is", why_is, {"present": 30, "past": 20}),
    *in_tenses("why_you", why_you, {"present": 20, "past": 30}),
    Pattern("how_many_have", how_many_have, 40),
    *in_tenses("there_is_no", there_is_no, {"present": 40, "past": 20}),
    Pattern("from_country", from_country, 25),
    Pattern("from_country.question", partial(from_country, asks=True), 20),
    Pattern("opening_hours", opening_hours, 30),
    Pattern("was_doing_when", was_doing_when, 60),
)
