"""Sentence patterns that begin with a question word."""

from __future__ import annotations

from transformer_cli.phrasebook.grammar.adverbials import (
    NOTHING,
    Both,
    sometimes_when,
    to_place,
    when,
)
from transformer_cli.phrasebook.grammar.clauses import (
    VerbPhrase,
    english_verb,
    finished,
    italian_predicate,
    joined_words,
    question,
)
from transformer_cli.phrasebook.grammar.draw import DeadEndError, Draw
from transformer_cli.phrasebook.grammar.noun_phrases import NounPhrase, noun_phrase
from transformer_cli.phrasebook.grammar.people import HE, person_subject
from transformer_cli.phrasebook.patterns.pattern import Pattern, in_tenses
from transformer_cli.phrasebook.patterns.simple_sentences.full_verbs import (
    active_verbs,
    object_phrase,
    transitive_verbs,
    with_object,
)
from transformer_cli.phrasebook.words.italian import adjective_forms
from transformer_cli.phrasebook.words.lexicon import (
    Verb,
    nouns,
    objects_of,
    the_verb,
    verbs,
    verbs_with,
)


def _asked_person(draw: Draw) -> NounPhrase:
    subject = person_subject(draw)
    if subject.person in {0, 3}:
        raise DeadEndError
    return subject


def _wh(
    draw: Draw, word: Both, subject: NounPhrase, phrase: VerbPhrase, tense: str
) -> tuple[str, str]:
    """A question with a question word; the Italian subject follows the verb."""
    english = f"{word[0]} {question(subject, phrase, tense)[0]}"
    italian = joined_words(
        asking(word[1], italian_predicate(subject, phrase, tense)), subject.italian
    )
    return english, italian


def asking(word: str, predicate: str) -> str:
    """The Italian question word and the verb: "dove vai", "dov'è", "com'era"."""
    if word in {"dove", "come"} and predicate[0] in "eè":
        return f"{word[:-1]}'{predicate}"
    return f"{word} {predicate}"


def what(draw: Draw, tense: str) -> Both:
    """ "What are you reading?", "Cosa stai leggendo?"."""
    subject = _asked_person(draw)
    verb = draw.pick(_things(tense))
    phrase = VerbPhrase(verb, verb.particle if verb.splits else "")
    words = _wh(draw, ("what", "cosa"), subject, phrase, tense)
    time = sometimes_when(draw, tense, phrase.verb)
    return finished(draw, joined_words(words[0], time[0]), joined_words(words[1], time[1]), "?")


_THINGS: dict[str, tuple[Verb, ...]] = {}


def _things(tense: str) -> tuple[Verb, ...]:
    """The verbs whose object can be asked for with "what"."""
    if tense not in _THINGS:
        _THINGS[tense] = tuple(
            verb
            for verb in transitive_verbs(tense)
            if not verb.objects & {"person", "device", "family"} and "stative" not in verb.flags
        )
    return _THINGS[tense]


def who_does(draw: Draw, tense: str) -> Both:
    """ "Who wrote this letter?", "Chi ha scritto questa lettera?"."""
    verb = draw.pick(transitive_verbs(tense))
    phrase = with_object(verb, object_phrase(draw, verb))
    auxiliary, main = english_verb(verb, tense, HE.english_person, False)
    english = joined_words("who", auxiliary, main, phrase.english)
    italian = f"chi {italian_predicate(HE, phrase, tense)}"
    return finished(draw, english, italian, "?")


def whom(draw: Draw, tense: str) -> Both:
    """ "Who did you meet yesterday?", "Chi hai incontrato ieri?"."""
    subject = _asked_person(draw)
    if subject.person == 2:
        raise DeadEndError  # "Chi ha visto?" can also mean "Who saw?"
    pool = tuple(
        x for x in transitive_verbs(tense) if "person" in x.objects and "stative" not in x.flags
    )
    phrase = VerbPhrase(draw.pick(_cached(pool)))
    words = _wh(draw, ("who", "chi"), subject, phrase, tense)
    time = sometimes_when(draw, tense, phrase.verb)
    return finished(draw, joined_words(words[0], time[0]), joined_words(words[1], time[1]), "?")


_POOLS: dict[tuple[str, ...], tuple[Verb, ...]] = {}


def _cached(pool: tuple[Verb, ...]) -> tuple[Verb, ...]:
    return _POOLS.setdefault(tuple(verb.lemma for verb in pool), pool)


def where(draw: Draw, tense: str) -> Both:
    """ "Where do you work?", "Dove lavori?"; "Where did you buy the shoes?"."""
    subject = _asked_person(draw)
    kind = draw.choose(("plain", "object", "go", "live"))
    if kind == "object" and subject.bare:
        raise DeadEndError
    if kind == "object":
        verb = draw.pick(_bought())
        phrase = with_object(
            verb, noun_phrase(draw, draw.pick(objects_of(verb)), ("the", "this", "that", "my"))
        )
    elif kind == "live":
        phrase = VerbPhrase(the_verb("abitare", "live"))
    elif kind == "go":
        phrase = VerbPhrase(the_verb("andare", "go"))
    else:
        phrase = VerbPhrase(draw.pick(verbs_with("anywhere", "intransitive")))
    words = _wh(draw, ("where", "dove"), subject, phrase, tense)
    return finished(draw, *words, "?")


def _bought() -> tuple[Verb, ...]:
    names = {"comprare", "vendere", "trovare", "perdere", "parcheggiare", "vedere", "incontrare"}
    return _cached(tuple(verb for verb in verbs("transitive") if verb.italian in names))


def why(draw: Draw, tense: str) -> Both:
    """ "Why are you crying?", "Perché stai piangendo?"."""
    subject = _asked_person(draw)
    if draw.choose((True, False)):
        phrase = VerbPhrase(draw.pick(verbs("intransitive", "reflexive")))
    else:
        verb = draw.pick(transitive_verbs(tense))
        phrase = with_object(verb, object_phrase(draw, verb))
    words = _wh(draw, ("why", "perché"), subject, phrase, tense)
    time = sometimes_when(draw, tense, phrase.verb)
    if time == NOTHING and subject.bare:
        # A subject that is not a pronoun stands before the verb: Perché Anna vende la casa?
        words = (
            words[0],
            joined_words("perché", subject.italian, italian_predicate(subject, phrase, tense)),
        )
    elif subject.bare:
        raise DeadEndError
    return finished(draw, joined_words(words[0], time[0]), joined_words(words[1], time[1]), "?")


def when_question(draw: Draw, tense: str) -> Both:
    """ "When will the train arrive?", "Quando arriverà il treno?"."""
    verb = draw.pick(_moving())
    if draw.choose((True, False)):
        subject = _asked_person(draw)
    else:
        subject = noun_phrase(draw, draw.pick(nouns("public", "water")), ("the", "the", "my"))
        if verb.italian not in {"arrivare", "partire"}:
            raise DeadEndError
    words = _wh(
        draw,
        draw.choose((("when", "quando"), ("what time", "a che ora"))),
        subject,
        VerbPhrase(verb),
        tense,
    )
    return finished(draw, *words, "?")


def _moving() -> tuple[Verb, ...]:
    names = {
        "arrivare",
        "partire",
        "tornare",
        "uscire",
        "alzarsi",
        "svegliarsi",
        "pranzare",
        "cenare",
    }
    frames = ("idiom", "motion", "reflexive", "intransitive")
    return _cached(tuple(verb for verb in verbs(*frames) if verb.italian in names))


def how_go(draw: Draw, tense: str) -> Both:
    """ "How do you go to work?", "Come vai al lavoro?"."""
    subject = _asked_person(draw)
    if subject.bare:
        raise DeadEndError
    place = to_place(draw)
    phrase = VerbPhrase(draw.pick(verbs("motion")), *place)
    return finished(draw, *_wh(draw, ("how", "come"), subject, phrase, tense), "?")


def how_many(draw: Draw, tense: str) -> Both:
    """ "How many apples did you buy?", "Quante mele hai comprato?"."""
    subject = _asked_person(draw)
    verb = draw.pick(_countable(tense))
    noun = draw.pick(objects_of(verb))
    if noun.number not in {"count", "mass"} or "family" in noun.classes:
        raise DeadEndError
    is_count = noun.number == "count"
    form = noun.plural_form if is_count else noun.form
    how = adjective_forms("quanto")[form]
    word = (
        f"how {'many' if is_count else 'much'} {noun.english[is_count]}",
        f"{how} {noun.italian[is_count]}",
    )
    return finished(draw, *_wh(draw, word, subject, VerbPhrase(verb), tense), "?")


def _countable(tense: str) -> tuple[Verb, ...]:
    names = {"mangiare", "bere", "comprare", "vendere", "leggere", "scrivere", "vedere", "trovare"}
    names |= {"ordinare", "ricevere", "invitare", "perdere", "tagliare", "avere"}
    return _cached(
        tuple(x for x in transitive_verbs(tense) if x.italian in names and "stative" not in x.flags)
    )


def which(draw: Draw, tense: str) -> Both:
    """ "Which dress did you choose?", "Quale vestito hai scelto?"."""
    subject = _asked_person(draw)
    verb = draw.pick(active_verbs(tense))
    noun = draw.pick(objects_of(verb))
    if noun.number != "count" or noun.classes & {"family", "person"} or verb.splits:
        raise DeadEndError
    is_plural = "pair" in noun.classes or draw.choose((True, False, False))
    word = (
        f"which {noun.english[is_plural]}",
        f"{'quali' if is_plural else 'quale'} {noun.italian[is_plural]}",
    )
    return finished(draw, *_wh(draw, word, subject, VerbPhrase(verb), tense), "?")


def how_often(draw: Draw) -> Both:
    """ "How often do you play the piano?", "Ogni quanto suoni il pianoforte?"."""
    subject = _asked_person(draw)
    if subject.bare:
        raise DeadEndError
    if draw.choose((True, False)):
        phrase = VerbPhrase(draw.pick(verbs("intransitive")))
    else:
        verb = draw.pick(verbs_with("pastime", "transitive"))
        phrase = with_object(verb, object_phrase(draw, verb))
    word = ("how often", "ogni quanto")
    return finished(draw, *_wh(draw, word, subject, phrase, "present"), "?")


def what_happened(draw: Draw) -> Both:
    """ "What did she do yesterday?", "Cosa ha fatto ieri?"."""
    subject = _asked_person(draw)
    tense = draw.choose(("past", "future", "present", "want", "progressive"))
    time = when(draw, tense) if draw.choose((True, True, False)) else NOTHING
    phrase = VerbPhrase(the_verb("fare", "do"))
    words = _wh(draw, ("what", "cosa"), subject, phrase, tense)
    return finished(draw, joined_words(words[0], time[0]), joined_words(words[1], time[1]), "?")


PATTERNS = (
    *in_tenses(
        "what",
        what,
        {"present": 20, "progressive": 30, "past": 40, "future": 25, "want": 20, "would_like": 20},
    ),
    *in_tenses(
        "who_does",
        who_does,
        {"present": 25, "progressive": 25, "past": 40, "future": 25, "want": 15},
    ),
    *in_tenses("whom", whom, {"present": 80, "past": 80, "future": 70}),
    *in_tenses("where", where, {"present": 30, "past": 40, "future": 25}),
    *in_tenses("why", why, {"present": 20, "progressive": 30, "past": 40, "want": 26}),
    *in_tenses("when", when_question, {"present": 35, "past": 35, "future": 35}),
    *in_tenses("how_go", how_go, {"present": 60, "past": 45, "future": 50}),
    *in_tenses("how_many", how_many, {"present": 35, "past": 40, "future": 22, "want": 22}),
    *in_tenses("which", which, {"past": 40, "future": 26, "want": 25, "present": 32}),
    Pattern("how_often", how_often, 45),
    Pattern("what_doing", what_happened, 30),
)
