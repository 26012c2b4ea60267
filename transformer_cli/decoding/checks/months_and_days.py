"""The months and days of the week of two texts: whether a translation names those of its source.

Languages that are not in the table are never compared.
"""

import re
from collections import Counter
from functools import cache
from itertools import islice
from typing import NamedTuple

from transformer_cli.config import Direction
from transformer_cli.text.languages import primary_language
from transformer_cli.text.normalization import without_accents

# January to December, and Monday to Sunday. Behind | stand other words that may say the same.
NAMES = {
    "de": "januar/jänner|jän februar|feber märz april mai juni|juno juli|julei august september oktober november dezember "
    "montag dienstag mittwoch donnerstag freitag samstag/sonnabend|sabbat sonntag",
    "en": "january february march april may june july august september october november december "
    "monday tuesday|tues wednesday thursday|thurs friday saturday|sabbath sunday",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre/setiembre octubre noviembre diciembre "
    "lunes martes miércoles jueves viernes sábado|sabat domingo",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre "
    "lundi mardi mercredi jeudi vendredi samedi|sabbat dimanche|dominical",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre "
    "lunedì martedì mercoledì giovedì venerdì sabato|sabat domenica|domenic",
    "nl": "januari februari maart|mrt april mei juni juli augustus september oktober november december "
    "maandag dinsdag woensdag donderdag vrijdag zaterdag|sabbat zondag",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro "
    "segunda-feira|segunda terça-feira|terça quarta-feira|quarta quinta-feira|quinta sexta-feira|sexta sábado|sabat domingo",
}
"""Of each language that is known; doubts.py asks of a text with none of these words no more."""
_NUM_MONTHS, _NUM_ITEMS = 12, 19
# Yesterday, today and tomorrow: a day may be called so.
_NEAR_DAYS = {
    "de": "gestern|heute|morgen",
    "en": "yesterday|today|tomorrow",
    "es": "ayer|hoy|mañana",
    "fr": "hier|aujourd|demain",
    "it": "ieri|oggi|domani",
    "nl": "gisteren|vandaag|morgen",
    "pt": "ontem|hoje|amanhã",
}
# In English, what stands before a time and hardly before a person.
_BEFORE_TIME = r"\b(?:in|on|since|until|till|during|last|next|every|early|late)"
_BESIDE_NUMBER = r"\d(?:st|nd|rd|th|º|\.)?(?: of| de)? {0}\b|\b{0},? \d"
# Words that say something else, too, and where they surely are a month or a day of the week: a verb, an adjective, a name, a planet.
_SURE = {
    "en": {
        **{
            name.casefold(): rf"(?:(?i:{_BEFORE_TIME})|\b(?:[Oo]f|[Bb]y|[Tt]his)) {name}\b|{_BESIDE_NUMBER.format(name)}"
            for name in ("May", "March")
        },
        **{
            name.casefold(): rf"\b{name}\b|(?:{_BEFORE_TIME} |\d ){name.casefold()}\b"
            for name in ("April", "June", "August")
        },
    },
    "es": {name: rf"\b{name}" for name in ("domingo", "julio", "mayo")},
    "fr": {"mars": r"\bmars\b"},
    "it": {"domenica": r"\bdomenica\b"},
    "nl": {"augustus": r"\baugustus\b"},
    "pt": {name: rf"\b{name}" for name in ("domingo", "janeiro")},
}
_LONGEST_WHOLE = 4  # letters: such a word is not looked for inside of others; mai is in maison
_WITH_COMPOUNDS = ("de", "nl")
_SHORTEST_BEGINNING = 4  # letters, where a compound begins with the word: Junitag; Mais is none
_MAY_ABBREVIATE = re.compile(r"\b[^\W\d_]{3,4}(?=\. |,? ?\d)|(?<=\d )[^\W\d_]{3,4}\b")
_NUMBER = re.compile(r"\d+")
_WITH_CAPITALS = ("de", "en")
_WITH_GENDERS = ("es", "it", "pt")  # la domenica; and in Spanish los lunes, but los sábados
_VOWELS = "aeiou"
_MOST_STAND_INS = 4


def has_other_months_or_days(source: str, translation: str, languages: Direction) -> bool:
    """Whether a month or a day of the week is missing or added in a translation; said only of words that surely are one.

    A month may be a number in the other text, and each may be abbreviated; a name such as April may stay as it is. A day of the week
    may be missing where the other text says the day otherwise, and a month may be added where the source says a day.
    """
    here, there = map(primary_language, languages)
    if here not in NAMES or there not in NAMES:
        return False
    return bool(_missing(source, translation, here, there)) or bool(
        _missing(translation, source, there, here, is_added=True)
    )


def _missing(text: str, other: str, language: str, other_language: str, *, is_added: bool = False) -> dict[str, int]:
    """The months and days of the week of a text that another one does not say in its language: name, casefolded -> number.

    Args:
        text: of the language that is given first.
        other: of the other language.
        is_added: whether `other` is the source.
    """
    named = _named(text, language)
    if not named:
        return {}
    said = _plain(other)
    patterns = _known(other_language).patterns
    missing = {
        name: item
        for name, item in named.items()
        if patterns[item].search(said) is None
        and not _is_abbreviated(said, item, other_language)
        and not _is_number(text, other, item)
        and not _is_name(text, other, name, language)
    }
    if not missing:
        return {}
    found = {*_named(other, other_language).values()}
    has_month = any(item < _NUM_MONTHS for item in found.intersection(named.values()))
    has_day = any(item >= _NUM_MONTHS for item in found)
    is_near = re.search(rf"\b(?:{_plain(_NEAR_DAYS[other_language])})", said) is not None
    may_lack_day = not has_day and (has_month or is_near)
    may_lack_month = is_added and (has_day or is_near)
    return {
        name: item for name, item in missing.items() if not (may_lack_month if item < _NUM_MONTHS else may_lack_day)
    }


class StandIn(NamedTuple):
    """A text with other months and days of the week in the places of some of its own."""

    text: str
    language: str
    """Of the translation."""
    items: dict[int, int]
    """The numbers of those that stand in the text now -> of those that its translation gets."""

    def restored(self, translation: str) -> str | None:
        """The translation of the text, with the names of the first text; None unless each stand-in is there once."""
        items, pattern, _ = _known(self.language)
        found = [(match, items.get(match[1].casefold())) for match in pattern.finditer(translation)]
        matches = {item: match for match, item in found if item in self.items}
        if sorted(each for _, each in found if each in self.items) != sorted(self.items):
            return None
        for item, match in sorted(matches.items(), key=lambda each: -each[1].start()):
            name = _name(self.items[item], self.language)
            is_large = match.start() == 0 or self.language in _WITH_CAPITALS
            name = _capitalized(name) if is_large else name
            if match[0] != match[1]:
                return None  # in the plural
            translation = translation[: match.start()] + name + translation[match.end() :]
        return translation


def stand_ins(source: str, translation: str, languages: Direction) -> list[StandIn]:
    """The source with other months and days of the week in the places of those that its translation lacks, in some ways.

    In the language of the translation, the words beside a stand-in have the same forms: *d'avril* is no place for *mai*.
    """
    here, there = map(primary_language, languages)
    missing = _missing(source, translation, here, there)
    places = {item: [*re.finditer(rf"\b{name}\b", source, re.IGNORECASE)] for name, item in missing.items()}
    if any(len(matches) != 1 for matches in places.values()):
        return []
    taken = {*_named(source, here).values()}
    alike = [
        [other for other in range(_NUM_ITEMS) if other not in taken and _is_like(item, other, there)] for item in places
    ]
    # Two months get different ones.
    choices = [others[number:] for number, others in enumerate(alike)]
    result = []
    for chosen in islice(zip(*choices, strict=False), _MOST_STAND_INS):
        text = source
        for other, [match] in sorted(zip(chosen, places.values(), strict=True), key=lambda each: -each[1][0].start()):
            name = _name(other, here)
            name = _capitalized(name) if match[0][0].isupper() else name
            text = text[: match.start()] + name + text[match.end() :]
        result.append(StandIn(text, there, dict(zip(chosen, places, strict=True))))
    return result


def _capitalized(name: str) -> str:
    return name[0].upper() + name[1:]


def _name(item: int, language: str) -> str:
    return re.split(r"[/|]", NAMES[language].split()[item])[0]


def _is_like(item: int, other: int, language: str) -> bool:
    """Whether two months, or two days of the week, have the same words beside them."""
    if (item < _NUM_MONTHS) != (other < _NUM_MONTHS):
        return False
    one, two = (_plain(_name(each, language)) for each in (item, other))
    is_same_end = one[-1] == two[-1] or item < _NUM_MONTHS or language not in _WITH_GENDERS
    return is_same_end and (one[0] in _VOWELS) == (two[0] in _VOWELS)


class _Known(NamedTuple):
    items: dict[str, int]
    """Name, casefolded -> its number: 0 to 11 for months, 12 to 18 for days of the week."""
    pattern: re.Pattern[str]
    """The names."""
    patterns: list[re.Pattern[str]]
    """For each number: what may say it in a text without accents."""


@cache
def _known(language: str) -> _Known:
    items: dict[str, int] = {}
    patterns = []
    for item, words in enumerate(NAMES[language].split()):
        names, _, others = words.partition("|")
        items.update(dict.fromkeys(names.split("/"), item))
        forms = [_plain(each) for each in (*names.split("/"), *others.split("/")) if each]
        patterns.append(re.compile("|".join(_as_part(each, language) for each in forms)))
    pattern = re.compile(rf"\b({'|'.join(items)})s?\b", re.IGNORECASE)
    return _Known(items, pattern, patterns)


def _as_part(form: str, language: str) -> str:
    """What finds a form in a text: also inside of other words, if it is long."""
    if len(form) > _LONGEST_WHOLE:
        return form
    is_beginning = language in _WITH_COMPOUNDS and len(form) >= _SHORTEST_BEGINNING
    return rf"\b{form}" if is_beginning else rf"\b{form}\b"


def _named(text: str, language: str) -> dict[str, int]:
    """The names that surely are months or days of the week, casefolded -> their numbers."""
    items, pattern, _ = _known(language)
    sure = _SURE.get(language, {})
    names = set()
    for match in pattern.finditer(text):
        name = match[1].casefold()
        item = items.get(name)  # None for APR\u0130L: casefolded, \u0130 is two signs
        if item is not None and (item >= _NUM_MONTHS or match[0] == match[1]):  # only days have a plural
            names.add(name)
    # Once for each name, as a text may have one very often; in the order of the table, so that no run differs.
    return {name: item for name, item in items.items() if name in names and re.search(sure.get(name, ""), text)}


def _is_abbreviated(said: str, item: int, language: str) -> bool:
    """Whether a text, without accents, has the beginning of a name with a full stop, or beside a number."""
    names = [_plain(name) for name, number in _known(language).items.items() if number == item]
    return any(name.startswith(word) for word in _MAY_ABBREVIATE.findall(said) for name in names)


def _is_name(text: str, other: str, name: str, language: str) -> bool:
    """Whether a name may be that of a person, a newspaper or the like, which stays as it is."""
    if re.search(rf"\b{name}\b", other, re.IGNORECASE) is None:
        return False
    time_pattern = rf"|{_BEFORE_TIME} {name}\b" if language == "en" else ""
    return re.search(rf"{_BESIDE_NUMBER.format(name)}{time_pattern}", text, re.IGNORECASE) is None


def _is_number(text: str, other: str, item: int) -> bool:
    """Whether a month is a number in another text, which the text does not have so often."""
    if item >= _NUM_MONTHS:
        return False
    here, there = (Counter(map(int, _NUMBER.findall(each))) for each in (text, other))
    return there[item + 1] > here[item + 1]


def _plain(text: str) -> str:
    return without_accents(text.casefold())
