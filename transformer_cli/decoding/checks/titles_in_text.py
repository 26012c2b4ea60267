"""The titles of persons, such as Mrs and Dr, before their names: whether a translation lacks one of its source.

Languages that are not in the table are never compared.
"""

import re
from collections import Counter
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from transformer_cli.config import Direction
from transformer_cli.decoding.checks.numbers_in_text import word_list
from transformer_cli.text.languages import primary_language
from transformer_cli.text.lazy_patterns import lazy_pattern

# Titles of men, of women, and of scholars, who may be either.
TITLES = {
    "de": ("herr herrn", "frau fräulein frl", "dr doktor prof professor professorin"),
    "en": ("mr", "mrs ms miss", "dr doctor prof professor"),
    "es": ("sr señor", "sra srta señora señorita", "dr dra doctor doctora prof profa profesor profesora"),
    "fr": ("M monsieur", "mme mlle madame mademoiselle", "dr docteur prof professeur professeure"),
    "it": (
        "sig signor",
        "sigra signa sigrina signora signorina",
        "dr dott dottssa dottor dottoressa prof profssa professor professoressa",
    ),
    "nl": ("meneer mijnheer dhr heer", "mevrouw mevr mw juffrouw mej", "dr dokter doctor prof professor"),
    "pt": ("sr senhor", "sra srta senhora senhorita", "dr dra doutor doutora prof profa professor professora"),
}
# What a translation may say, too; words of the last group stand for several persons.
_OTHERS = {
    "de": ("", "dame miss", "arzt ärztin kollege kollegin kollegen", "herren damen eheleute ehepaar familie"),
    "en": ("mister sir lord gentleman", "madam lady", "doc teacher physician", "messrs gentlemen ladies doctors"),
    "es": ("don caballero", "doña dama miss", "médico médica maestro maestra", "señores señoras señoritas doctores"),
    "fr": ("mr m sieur maître", "dame miss", "pr médecin maîtresse", "messieurs mesdames mm mmes docteurs"),
    "it": (
        "signore don",
        "donna dama miss",
        "dottore professore onorevole medico collega",
        "signori onorevoli colleghi colleghe dottori",
    ),
    "nl": ("mr", "dame miss juf", "arts leraar", "heren dames echtpaar familie"),
    "pt": ("dom", "dona menina miss", "médico médica", "senhores senhoras senhoritas doutores"),
}
_WITH_CAPITAL = ("de", "en")  # "I miss Tom" has no title
# A woman, or his wife, as in "einer älteren Frau Brot verkaufen".
_NO_TITLE = lazy_pattern(
    r"\b(?:(?:[mdsk]?ein|ihr|un?ser|eue?r|dies|jed)(?:e[mnrs]?)?|d(?:ie|er|en|em)|[a-zäöüß]+e[mnr]|(?:eine|die|jede|keine) \w+e) $",
    re.IGNORECASE,
)
_AND = frozenset(["and", "und", "et", "e", "y", "en"])
# Mr President; a translation may have an office in place of a title.
_OFFICE = lazy_pattern(
    r"(?:pr[eäé]sid|comm?is+[aá]r|commission|kommiss|comissá|minist|premier|prim[eoa]|chair|speaker|se[ck]ret|s[eé]cr[eé]t|ambas|embaix|"
    r"botschaft|[ck]hance|cancel|chancel|\w*kanzl|kansel|voorzit|dire[ck]t|direttr|r?apport|relat|vice|mediat|rappres|abgeordn|deput|"
    r"diputad)\w*|onorevol[ei]|on|d[ií][eo]u?s?|god|gott|j[eéè]s[uú]s?|jezus|ges[uù]"
)
_LONGEST_SENTENCE = 25  # words; longer ones name a person again in other ways
_ENDING = lazy_pattern(r"\b(sig|dott|prof)\.\s?(?=(?:ra|na|rina|ssa)\b)", re.IGNORECASE)  # sig.ra
_WORD = lazy_pattern(r"[^\W\d_]+")


class _Words(NamedTuple):
    men: frozenset[str]
    women: frozenset[str]
    scholars: frozenset[str]
    several: frozenset[str] = frozenset()


@cache
def title_words(language: str) -> frozenset[str]:
    """The words of titles of a language, in small letters; none of one that is not known."""
    return word_list(" ".join(TITLES.get(language, ())).casefold())


def lacks_title(source: str, translation: str, languages: Direction) -> bool:
    """Whether a translation has fewer titles of men, of women, or of scholars than stand before a name in its source.

    The title of a scholar, or one for several persons, may stand for any other; more titles may be there.
    """
    here, there = map(primary_language, languages)
    if here not in TITLES or there not in TITLES:
        return False
    read = Counter(_titles_before_names(source, here))
    if not read:
        return False
    words = _all_words(here, there)
    written = [_key(word) for word in _WORD.findall(_ENDING.sub(r"\1", translation))]
    men, women, scholars, several = (sum(map(each.__contains__, written)) for each in words)
    num_others = scholars + sum(_OFFICE.fullmatch(word) is not None for word in written)
    return not several and max(0, read[0] - men) + max(0, read[1] - women) + read[2] > num_others


@cache
def _all_words(here: str, there: str) -> _Words:
    # English titles, as in "Mr Bean", and those of the source may stay.
    groups = zip((*TITLES[there], ""), _OTHERS[there], (*TITLES[here], ""), (*TITLES["en"], ""), strict=True)
    return _Words(*(frozenset(" ".join(each).split()) for each in groups))


def _titles_before_names(text: str, language: str) -> list[int]:
    """0 for each title of a man, 1 for each of a woman, and 2 for each of a scholar, if it surely stands before a name."""
    groups = [each.split() for each in TITLES[language]]
    text = _ENDING.sub(r"\1", text)
    matches = [*_WORD.finditer(text)]
    if len(matches) > _LONGEST_SENTENCE:
        return []
    words = [_key(each[0]) for each in matches]
    found = []
    for place, (title, name) in enumerate(pairwise(matches)):
        kind = next((kind for kind, group in enumerate(groups) if words[place] in group), None)
        if (
            kind is None
            or not name[0][0].isupper()
            or text[title.end() : name.start()] not in (" ", ". ", ".", "\u00a0")
        ):
            continue
        before = words[max(0, place - 2) : place]
        is_title = title[0][0].isupper() or language not in _WITH_CAPITAL
        is_pair = len(before) > 1 and before[1] in _AND and any(before[0] in group for group in groups)
        is_no_title = language == "de" and _NO_TITLE.search(text, max(0, title.start() - 40), title.start())
        is_name = (
            text[name.end() : name.end() + 1] != "-"
            and words[place + 1] not in title_words(language)
            and not _OFFICE.fullmatch(words[place + 1])
        )
        if is_title and not title[0][1:].isupper() and is_name and not (is_pair or is_no_title):
            found.append(kind)
    return found


def _key(word: str) -> str:
    """A word in small letters; M, for Monsieur, stays as it is."""
    return word.casefold() if len(word) > 1 else word
