"""The names of two texts, such as Anna and Rome: whether a translation lacks one of its source.

Languages that are not in the table are never compared.
"""

import re

from transformer_cli.config import Direction
from transformer_cli.decoding.checks.months_and_days import NAMES
from transformer_cli.text.languages import frequent_words, primary_language
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
_PEOPLE = re.compile(r"\w+(?:[ae]an|[ei]ans|ian|cans?|ese|ish|ic|[aeq]i)s?")
STAND_INS = ("Anna", "Marco", "Maria", "Laura", "Paolo", "Sara", "Peter", "Martin", "Boston", "Tokyo", "John")
"""Names that many languages spell alike: protected_spans.py puts them in the places of placeholders, and looks itself whether they came back."""
_WORD = re.compile(r"[^\W\d_]+")
_BEGINS_SENTENCE = re.compile(
    r"(?:\A|[.!?:;\u2026|\u2014\n])[\s\"'\u00ab\u00bb\u201c\u201d\u2018\u2019(\[\u00bf\u00a1\u2013*-]*\Z|[\"\u00ab\u201c(]\s*\Z"
)
_MOST_MARKS = 20  # between the end of a sentence and the next word
_SHORTEST = 3  # letters
_SHORTEST_BEGINNING = 4  # letters that two spellings of a name share


def lost_names(source: str, translation: str, languages: Direction) -> list[str]:
    """The names of a source that its translation lacks; none where it has as many other names.

    Only words that surely are a name count: alone between small words, not at the beginning of a sentence, no day, month or people, and
    no stand-in for a placeholder.
    """
    here, there = map(primary_language, languages)
    if here not in _OTHERS or there not in _OTHERS:
        return []
    names = _sure_names(source, here)
    said = _beginnings(translation) if names else set()
    missing = [name for name in dict.fromkeys(names) if _plain(name)[:_SHORTEST_BEGINNING] not in said]
    if not missing:
        return []
    read, words, frequent = _beginnings(source), set(_WORD.findall(_plain(source))), frequent_words(there)
    new = set()
    for match in _WORD.finditer(translation):
        word = _plain(match[0])
        is_short = len(word) < _SHORTEST_BEGINNING
        if not match[0][0].isupper() or (word in words if is_short else word[:_SHORTEST_BEGINNING] in read):
            continue
        if not ((is_short or match[0].casefold() in frequent) and _begins_sentence(translation, match.start())):
            new.add(word)
    return missing if len(missing) > len(new) else []


def _plain(text: str) -> str:
    return without_accents(text.casefold())


def _beginnings(text: str) -> set[str]:
    """How the words of a text begin, in small letters and without accents."""
    return {word[:size] for word in _WORD.findall(_plain(text)) for size in (_SHORTEST, _SHORTEST_BEGINNING)}


def _begins_sentence(text: str, place: int) -> bool:
    return _BEGINS_SENTENCE.search(text, max(0, place - _MOST_MARKS), place) is not None


def _sure_names(text: str, language: str) -> list[str]:
    matches = [*_WORD.finditer(text)]
    is_large = [each[0][0].isupper() for each in matches]
    others = {*_OTHERS[language].split(), *re.split(r"[ /|]", NAMES[language])}
    found = []
    for place, match in enumerate(matches):
        word, beside = match[0], [*is_large[max(place - 1, 0) : place], *is_large[place + 1 : place + 2]]
        if not (word.istitle() and len(word) >= _SHORTEST) or any(beside) or word in STAND_INS:
            continue
        name = word.casefold()
        is_other = name in others or name.removesuffix("s") in others or _PEOPLE.fullmatch(name)
        if not (is_other or _begins_sentence(text, match.start())):
            found.append(word)
    return found
