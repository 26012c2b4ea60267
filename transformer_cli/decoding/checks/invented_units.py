"""Units that a translation invents: *30 ans* for *The value is 30*, because most numbers that a model has read are ages, hours and amounts."""

import re

from transformer_cli.config import Direction
from transformer_cli.decoding.checks.numbers_in_text import cardinals
from transformer_cli.text.languages import primary_language
from transformer_cli.text.lazy_patterns import lazy_pattern

# Names of units in de, en, es, fr, it, nl and pt.
_NAMES = {
    "age": "ans? ann[ée]es? years? old jahren? jaar años? ann[io] anos?",
    "hour": r"heures? h hours? o['\u2019]clock uhr stunden? uur uren horas? ore",
    "minute": "minut(?:es?|en?|os?|i) min",
    "second": "second[ei] seconds? sekunden? seconden segundos?",
    "day": "jours? journ[ée]es? days? tagen? dagen d[ií]as? giorni",
    "week": "semaines? weeks? wochen? weken semanas? settimane",
    "month": "mois months? monaten? maanden mes(?:es|i) m[eê]s",
    "money": "euros? dollars? francs? livres? yens? pounds? cents? dólar(?:es)? dollari pfund libras? sterline",
}
_ANY_NAME = "|".join(f"(?P<{kind}>{names.replace(' ', '|')})" for kind, names in _NAMES.items())
_VALUE_WITH_UNIT = lazy_pattern(
    rf"(?<![\w.,:-])(\d+(?:[.,]\d+)*|[^\W\d_]+(?:-[^\W\d_]+)*)[ \u00a0\u202f]?(?:{_ANY_NAME})(?!\w)", re.IGNORECASE
)
# No sign of a unit, no digits, and no word that may be one, such as "people".
_BEHIND_BARE_NUMBER = lazy_pattern(
    r"(?!\s?[%\u2030\u00b0$\u00a3\u00a5\u20a0-\u20cf'\u2032\u2033\"/\u2013\u2014-]\s?\w?)"
    r"(?:\s+(?:to|and|or)\s+\d+)?(?:\W*\Z|[,;:.!?)\]]|\s+(?:is|was|are|were|in|on|by|but|now|when|if|because|then|yesterday|instead)\b)"
)
_CURRENCY = lazy_pattern(r"[$\u00a3\u00a5\u20a0-\u20cf]\s?\Z")
# "She is 40", "at the age of 25": of a person, a bare number is an age.
_PERSON = lazy_pattern(
    r"\b(?i:i|you|he|she|we|they|who|\w+body|i['\u2019]m|(?:you|we|they)['\u2019]re|s?he['\u2019]s|mom|dad"
    r"|(?:wo)?man|boy|girl|son|daughter|brother|sister|wife|husband|(?:grand)?(?:father|mother|child)|aunt|uncle|cousin|friend)\b"
    r"|(?:\A|[^.:]\s)(?!It|Th|Here|What|Which|One|Each)[A-Z]\w+ (?:is|was|turns|turned|will be)\b"
)
_BEFORE_AGE = lazy_pattern(
    r"(?:\b(?i:am|is|are|was|were|be|been|turn(?:s|ed|ing)?|at|by|before|after|until|than|past|about|on|to|age(?: of)?|aged)"
    r"|['\u2019](?:m|s|re))(?: (?i:only|just|now|almost|nearly|about|still|over|already|not|going on|at|least))*\s+\Z"
)
_AGE = lazy_pattern(r"\b(?i:aged?|old(?:er)?|young(?:er)?|retire\w*|live to)\b")
# "At 6", "until 10" and "open from 9 to 5": hours.
_BEFORE_HOUR = lazy_pattern(
    r"\b(?i:at|by|until|till|before|after|around|about|since|past|it(?: i|['\u2019])s)(?: (?i:about|around|nearly|exactly))?\s+\Z"
)
_FROM_OR_TO = lazy_pattern(r"\b(?i:from|to|between|and|or)\s+\Z")
_OF_DAY = lazy_pattern(
    r"\b(?i:open\w*|clos\w+|work\w*|wait\w*|sle(?:ep|pt)\w*|stud(?:y|ied)\w*|school|shop|store|morning|afternoon|evening|night"
    r"|to(?:night|day|morrow)|breakfast|lunch|dinner|[ap]\.?m)\b"
)


def has_invented_unit(source: str, translation: str, languages: Direction) -> bool:
    """Whether a number that stands alone in an English source has the name of a unit behind it in its translation.

    An age of a person and an hour may be meant where the source says only the number.

    Args:
        source: the text; of another language than English, nothing is said.
        translation: of it.
        languages: of both.
    """
    if primary_language(languages.source) != "en":
        return False
    for found in _VALUE_WITH_UNIT.finditer(translation):
        number = _digits(found[1], primary_language(languages.target))
        kind = found.lastgroup
        if number is None or kind is None or _names_of(kind).search(source):
            continue
        for match in re.finditer(rf"(?<![\w.,:]){re.escape(number)}(?!\w|[.,:]\d)", source):
            before = source[: match.start()]
            is_bare = _BEHIND_BARE_NUMBER.match(source, match.end()) and not _CURRENCY.search(before)
            if is_bare and not _may_be_meant(kind, before, source):
                return True
    return False


def _digits(written: str, language: str) -> str | None:
    """A number in digits; None for another word."""
    if written[0].isdigit():
        return written
    value = cardinals(language).get(written.casefold())
    return None if value is None else str(value)


def _names_of(kind: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W\d_])(?:{_NAMES[kind].replace(' ', '|')})(?![^\W\d_])", re.IGNORECASE)


def _may_be_meant(kind: str, before: str, source: str) -> bool:
    """Whether a bare number of a source may be an age or an hour.

    Args:
        kind: of the unit.
        before: what stands before the number.
        source: all of it.
    """
    if kind == "age":
        return bool(_AGE.search(source) or (_PERSON.search(source) and _BEFORE_AGE.search(before)))
    if kind == "hour":
        return bool(_BEFORE_HOUR.search(before) or (_FROM_OR_TO.search(before) and _OF_DAY.search(source)))
    return False
