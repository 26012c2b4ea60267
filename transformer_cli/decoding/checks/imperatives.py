"""Verbs of imperatives that a translation loses: *De tous les commentaires* for *Hide all comments*."""

import re

from transformer_cli.text.lazy_patterns import lazy_pattern

# Of programs and recipes. Many are nouns, too, so a determiner, a number or a name must follow them.
IMPERATIVES = {
    "en": "accept add adjust allow answer archive arrange ask attach avoid bake beat block boil book bring browse buy call cancel "
    "capture change charge check chop choose clean clear click close collapse collect combine compare complete confirm connect "
    "continue convert cook copy cover create crop cut decrease delete deny disable discard display double download drag drain "
    "drop duplicate edit empty enable enlarge enter erase exit expand export fill filter find finish fold follow forget format fry "
    "grate grill group heat hide highlight import include increase insert install invite join keep leave like limit link load lock "
    "lower mark melt merge mix move mute open paste pause peel pick pin place play pour press preview print protect publish pull "
    "push rate read rearrange receive refresh reject reload remove rename replace reply report resize restart restore retry "
    "review roast rotate save scan schedule search season select send serve set share shift show shuffle simmer skip slice sort "
    "split spread start stir stop store submit swap swipe switch synchronize tag tap test toggle touch track translate transfer "
    "trim turn type undo unlock unmute unpin update upload use verify view visit wash watch whisk wipe write zoom"
}
_BEHIND_IMPERATIVE = lazy_pattern(
    r"\w+ (?:(?:all|the|this|these|that|those|an?|my|your|his|her|our|their|its|it|them|me|us|him|every|each|some|any|more|both"
    r"|\d+)\b|[A-Z]\w)"
)
# What no verb stands before: prepositions and articles. "Il faut" has one.
_VERBLESS_BEGINNING = {
    "es": r"(?:a|al|ante|bajo|con|de|del|desde|en|entre|hasta|hacia|para|por|sin|sobre|el|la|los|las|una?|unos|unas|hay)\b",
    "fr": r"(?:\u00e0|aux?|avec|chez|dans|des?|du|en|entre|malgr\u00e9|par|pour|sans|sous|sur|vers|les?|la|une?|il y a|ces?|cette)(?![\w-])"
    r"|[dl]['\u2019](?!est\b)",
    "it": r"(?:ad?|al|allo|alla|ai|agli|alle|con|di|da|del|dello|della|dei|degli|delle|in|nel|nella|nei|nelle|per|tra|fra|senza|sotto"
    r"|su|sul|sulla|il|lo|la|i|gli|le|una?|uno|c'\u00e8|ci sono)(?![\w-])|(?:l|un|dell|nell|sull|all)['\u2019]",
    "pt": r"(?:a|ao|aos|as|\u00e0s?|com|de|d[aoe]s?|desde|em|n[ao]s?|entre|para|por|pel[ao]s?|sem|sob|sobre|os?|uma?|h\u00e1)\b",
}


def lacks_imperative(source: str, translation: str, there: str) -> bool:
    """Whether a translation begins with a preposition or an article, where its source is an imperative.

    Args:
        source: the text, whose first word is one of `IMPERATIVES`.
        translation: of it.
        there: the language of the translation, as in `_VERBLESS_BEGINNING`.
    """
    pattern = _VERBLESS_BEGINNING.get(there)
    is_imperative = _BEHIND_IMPERATIVE.match(source.lstrip()) is not None
    return is_imperative and pattern is not None and re.match(pattern, translation, re.IGNORECASE) is not None
