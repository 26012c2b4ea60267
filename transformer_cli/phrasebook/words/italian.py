"""The forms of Italian nouns, adjectives, articles and prepositions.

A `form` is gender and number in two letters: "ms", "fs", "mp" or "fp" (masculine singular, ...).
"""

from __future__ import annotations

from functools import cache

VOWELS = frozenset("aeiouàèéìòù")
FORMS = ("ms", "fs", "mp", "fp")

JOINED_PREPOSITIONS = {
    "di": ("del ", "dello ", "dell'", "della ", "dei ", "degli ", "delle "),
    "a": ("al ", "allo ", "all'", "alla ", "ai ", "agli ", "alle "),
    "da": ("dal ", "dallo ", "dall'", "dalla ", "dai ", "dagli ", "dalle "),
    "in": ("nel ", "nello ", "nell'", "nella ", "nei ", "negli ", "nelle "),
    "su": ("sul ", "sullo ", "sull'", "sulla ", "sui ", "sugli ", "sulle "),
}
ARTICLES = ("il ", "lo ", "l'", "la ", "i ", "gli ", "le ")
PLURALS_IN_CHI = frozenset({"antico", "fico"})  # other words in -ico make -ici
ELIDING_DI = ("acqua", "olio")  # un bicchiere d'acqua, but un chilo di uova
MASCULINE_IN_CI = frozenset({"stomaco"})


@cache
def starts_with_vowel(word: str) -> bool:
    """Whether the word begins with a vowel: an article before it loses its own."""
    return word[0].lower() in VOWELS


@cache
def needs_lo(word: str) -> bool:
    """Whether a masculine word takes lo and uno: s with a consonant, z, gn, ps, pn, x, y."""
    lower = word.lower()
    if lower[0] == "s" and len(lower) > 1:
        return lower[1] not in VOWELS
    return lower[0] in "zxy" or lower[:2] in {"gn", "ps", "pn"}


@cache
def definite_article(word: str, form: str) -> str:
    """The article before a word, with its space or apostrophe: "il ", "lo ", "l'", ..."""
    if form == "fp":
        return "le "
    if form == "mp":
        return "gli " if starts_with_vowel(word) or needs_lo(word) else "i "
    if starts_with_vowel(word):
        return "l'"
    if form == "fs":
        return "la "
    return "lo " if needs_lo(word) else "il "


@cache
def indefinite_article(word: str, form: str) -> str:
    """The article before a singular word, with its space or apostrophe: "un ", "uno ", ..."""
    if form == "fs":
        return "un'" if starts_with_vowel(word) else "una "
    return "uno " if needs_lo(word) else "un "


@cache
def joined(preposition: str, word: str, form: str) -> str:
    """A preposition with the definite article before a word: "della ", "con il "."""
    article = definite_article(word, form)
    if preposition in JOINED_PREPOSITIONS:
        return JOINED_PREPOSITIONS[preposition][ARTICLES.index(article)]
    return f"{preposition} {article}"


@cache
def like_the_article(stem: str, word: str, form: str) -> str:
    """quello and bello before a noun: they take the endings of the definite article.

    Args:
        stem: "que" or "be".
    """
    endings = ("l ", "llo ", "ll'", "lla ", "i ", "gli ", "lle ")
    return stem + endings[ARTICLES.index(definite_article(word, form))]


@cache
def plural_of(noun: str, gender: str) -> str:
    """The regular plural of a noun; irregular ones stand in the tables."""
    last = noun[-1]
    if last not in "aeo" or noun.endswith("ie") or (last == "o" and gender == "f"):
        return noun
    if last == "o":
        return _plural_in_i(noun)
    if last == "e":
        return noun[:-1] + "i"
    if gender == "m":
        return noun[:-1] + ("hi" if noun[-2] in "cg" else "i")
    return _feminine_plural(noun)


def _plural_in_i(word: str) -> str:
    if word.endswith("io"):
        return word[:-1]
    if (word.endswith("ico") and word not in PLURALS_IN_CHI) or word in MASCULINE_IN_CI:
        return word[:-1] + "i"
    if word[-2] in "cg":
        return word[:-1] + "hi"
    return word[:-1] + "i"


def _feminine_plural(word: str) -> str:
    if word[-2] in "cg":
        return word[:-1] + "he"
    if word.endswith(("cia", "gia")) and word[-4] not in VOWELS:
        return word[:-2] + "e"
    return word[:-1] + "e"


@cache
def adjective_forms(adjective: str) -> dict[str, str]:
    """The four forms of an adjective; a trailing "=" marks one that never changes."""
    if adjective.endswith("="):
        return dict.fromkeys(FORMS, adjective[:-1])
    if adjective.endswith("e"):
        plural = adjective[:-1] + "i"
        return {"ms": adjective, "fs": adjective, "mp": plural, "fp": plural}
    feminine = adjective[:-1] + "a"
    plurals = {"mp": _plural_in_i(adjective), "fp": _feminine_plural(feminine)}
    return {"ms": adjective, "fs": feminine, **plurals}


@cache
def adjective_before(adjective: str, noun: str, form: str) -> str:
    """An adjective that stands before its noun, with its space or apostrophe."""
    if adjective == "bello":
        return like_the_article("be", noun, form)
    if adjective == "buono" and form == "ms":
        return "buono " if needs_lo(noun) else "buon "
    return adjective_forms(adjective)[form] + " "


@cache
def this_before(word: str, form: str) -> str:
    """questo before a noun, with its space or apostrophe."""
    if form[1] == "s" and starts_with_vowel(word):
        return "quest'"
    return adjective_forms("questo")[form] + " "


@cache
def preposition_before(preposition: str, word: str) -> str:
    """A preposition without article, with its space or apostrophe: a becomes ad before another a."""
    if preposition == "di" and word.startswith(ELIDING_DI):
        return "d'"
    return "ad " if preposition == "a" and word[0] in "aA" else preposition + " "
