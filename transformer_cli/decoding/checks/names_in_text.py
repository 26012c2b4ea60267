"""The names of two texts, such as Anna and Rome: whether a translation lacks one of its source.

Languages that are not in the table are never compared.
"""

import re
from functools import cache

from transformer_cli.config import Direction
from transformer_cli.decoding.checks.months_and_days import NAMES
from transformer_cli.decoding.checks.numbers_in_text import word_list
from transformer_cli.text.languages import frequent_words, primary_language
from transformer_cli.text.lazy_patterns import lazy_pattern
from transformer_cli.text.normalization import without_accents

# In these languages hardly anything but names begins with a capital inside a sentence. Words that do so, and that another one of
# these languages writes small or says with other words: titles, relatives, peoples, feasts.
_OTHERS = {
    "en": "mr mrs ms miss dr sir madam mom mum dad mother father grandma grandpa aunt uncle god lord internet net web earth sun moon "
    "christmas easter halloween thanksgiving english french german dutch greek swiss danish czech arab arabic thai hebrew "
    "jew jews hindu muslim muslims sikh olympic olympics west east north south congress senate parliament state bible koran",
    "es": "dios señor señora don doña navidad internet tierra estado",
    "fr": "dieu seigneur monsieur madame mademoiselle noël pâques internet terre état europe occident",
    "it": "dio signore signora natale pasqua internet terra stato lei ella voi suo sua vostro vostra",
    "nl": "god heer kerstmis pasen internet aarde",
    "pt": "deus senhor senhora natal internet terra estado",
}
# Peoples and languages: Canadians, Japanese, Spanish, Celtic, Israelis.
_PEOPLE = lazy_pattern(r"\w+(?:[ae]an|[ei]ans|ian|cans?|ese|ish|ic|[aeq]i)s?")
STAND_INS = ("Anna", "Marco", "Maria", "Laura", "Paolo", "Sara", "Peter", "Martin", "Boston", "Tokyo", "John")
"""Names that many languages spell alike: protected_spans.py puts them in the places of placeholders, and looks itself whether they came back."""
# None of them is a word that often begins a label, such as Mark, May, Will and Hope.
_FIRST_NAMES = word_list(
    "adam alan albert alex alice amy andrea andrew angela ann anna anne anthony antonio barbara ben bill bob brian carl carlo carol caroline "
    "catherine charles charlie charlotte chris christine claire dan daniel david david diana dick donald ed edward elizabeth ellen emily emma "
    "eric eva frank fred gary george giovanni hannah harry heinz helen henry jack jacques james jane jean jeff jenny jim joan joe john jose "
    "joseph juan judy julia julie karen karl kate kevin larry laura lisa louis lucy luis luke marco margaret maria marie martha martin mary "
    "matthew mike nancy nick oliver paolo patricia paul peter philip pierre richard rick robert roger ron ruth sally sam sandra sara sarah "
    "sophie stefan steve steven susan ted tim tom tony walter william"
)
_WORD = lazy_pattern(r"[^\W\d_]+")
_BEGINS_SENTENCE = lazy_pattern(
    r"(?:\A|[.!?:;\u2026|\u2014\n])[\s\"'\u00ab\u00bb\u201c\u201d\u2018\u2019(\[\u00bf\u00a1\u2013*-]*\Z|[\"\u00ab\u201c(]\s*\Z"
)
# What stands behind the name of a place or the like in English, and before it, in small letters, in other languages: the Eiffel Tower.
_KINDS = word_list(
    "academy account act address administration agreement airline airport area army association avenue award bank basin bay beach "
    "board bond brand bridge building canal canyon castle cathedral center centre championship channel church city clan club coast "
    "code college committee community company conference council county court cup day desert directory district dollar dynasty "
    "effect empire error event falls family festival file forest foundation fund garden gate government group gulf hall harbor "
    "harbour highway hill hospital hotel house industry institute island key kingdom lake language law league library line lock "
    "manager market medal men method ministry model mountain movement museum nation network ocean office palace park party "
    "peninsula people period port press printer prize project province railway range region republic revolution river road school "
    "sea series service settings show square stadium state station store strait street style system test theater theatre theory "
    "tower town treaty tribe tunnel union university valley village wall war web zone zoo"
)
_TITLE = r"[^\W\d_a-zß-öø-ÿ][a-zß-öø-ÿ]{2,}"
_FULL_NAME = lazy_pattern(rf"(?<![\w'\u2019.-])((?:{_TITLE} ){{1,2}})({_TITLE})(?![\w-]|['\u2019](?!s\b)| [A-Z]| of )")
_MOST_MARKS = 20  # between the end of a sentence and the next word
_SHORTEST = 3  # letters
_SHORTEST_BEGINNING = 4  # letters that two spellings of a name share


def is_full_name(label: str) -> bool:
    """Whether a label is a first name and another one, such as the speaker in "Bill Parker: Hello."; Tom's House and Paul Street are none."""
    words = label.split()
    return (
        len(words) == 2
        and words[0].casefold() in _FIRST_NAMES
        and words[1].isalpha()
        and _KINDS.isdisjoint((words[1].casefold(), words[1].casefold().removesuffix("s")))
    )


def is_first_name(word: str) -> bool:
    """Whether a word is a frequent first name: the label "Marco:" is a speaker."""
    return word.casefold() in _FIRST_NAMES


def lost_names(source: str, translation: str, languages: Direction) -> list[str]:
    """The names of a source that its translation lacks; none where it has as many other names.

    Only words that surely are a name count: alone between small words, not at the beginning of a sentence, no day, month or people, and
    no stand-in for a placeholder; and family names behind a first name that the translation has.
    """
    here, there = map(primary_language, languages)
    if here not in _OTHERS or there not in _OTHERS:
        return []
    names, families = _sure_names(source, here), _family_names(source, translation, here)
    said = _beginnings(translation) if names or families else set()
    missing, lost = (
        [name for name in dict.fromkeys(each) if _plain(name)[:_SHORTEST_BEGINNING] not in said]
        for each in (names, families)
    )
    if not (missing or lost):
        return []
    read, words, frequent = _beginnings(source), set(_WORD.findall(_plain(source))), frequent_words(there)
    full_name = _FULL_NAME.match(source)
    starts_with_name = full_name is not None and full_name[1].split()[0] in translation
    new, inside = set(), set()
    for match in _WORD.finditer(translation):
        word = _plain(match[0])
        is_short = len(word) < _SHORTEST_BEGINNING
        if not match[0][0].isupper() or (word in words if is_short else word[:_SHORTEST_BEGINNING] in read):
            continue
        begins = _begins_sentence(translation, match.start())
        is_small = is_short or match[0].casefold() in frequent
        if not (begins and is_small):
            new.add(word)
        if not (begins and (is_small or not starts_with_name)):  # "Salut" is no family name
            inside.add(word)
    found = missing if len(missing) > len(new) else []
    return [*found, *(name for name in lost if name not in found)] if len(lost) > len(inside) else found


def _plain(text: str) -> str:
    return without_accents(text.casefold())


def _beginnings(text: str) -> set[str]:
    """How the words of a text begin, in small letters and without accents."""
    return {word[:size] for word in _WORD.findall(_plain(text)) for size in (_SHORTEST, _SHORTEST_BEGINNING)}


def _begins_sentence(text: str, place: int) -> bool:
    return _BEGINS_SENTENCE.search(text, max(0, place - _MOST_MARKS), place) is not None


def _family_names(source: str, translation: str, language: str) -> list[str]:
    """The last words of names such as Maria Keller, whose first words the translation has.

    A title, of which most words have a capital letter, tells names only by a translation that has no other words than it.
    """
    matches = [*_FULL_NAME.finditer(source)]
    if not matches:
        return []
    read, said = _WORD.findall(source), {*_WORD.findall(translation)}
    num_large = sum(word[0].isupper() and len(word) >= _SHORTEST for word in read)
    end = source.rstrip()[-1]
    is_title = 2 * num_large > len(read) + 2 or not (end in ".!?" or any(map(str.islower, read)))
    if is_title and end != "," and not said.issubset(read):  # Dear Maria Keller,
        return []
    return [
        last
        for first, last in (match.groups() for match in matches)
        if not said.isdisjoint(first.split())
        and _KINDS.isdisjoint((last.casefold(), last.casefold().removesuffix("s")))
        and not any(_is_no_name(word, language) for word in (*first.split(), last))
    ]


def _is_no_name(word: str, language: str) -> bool:
    """Whether a word is a title, a day, a month, a people or the like."""
    name, others = word.casefold(), _others(language)
    return bool(name in others or name.removesuffix("s") in others or _PEOPLE.fullmatch(name))


@cache
def _others(language: str) -> frozenset[str]:
    return frozenset([*_OTHERS[language].split(), *re.split(r"[ /|]", NAMES[language])])


def _sure_names(text: str, language: str) -> list[str]:
    matches = [*_WORD.finditer(text)]
    is_large = [each[0][0].isupper() for each in matches]
    found = []
    for place, match in enumerate(matches):
        word, beside = match[0], [*is_large[max(place - 1, 0) : place], *is_large[place + 1 : place + 2]]
        if not (word.istitle() and len(word) >= _SHORTEST) or any(beside) or word in STAND_INS:
            continue
        if not (_is_no_name(word, language) or _begins_sentence(text, match.start())):
            found.append(word)
    return found
