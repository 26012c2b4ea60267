"""The names of two texts, such as Anna and Rome: whether a translation lacks one of its source.

Languages that are not in the table are never compared.
"""

import re

from transformer_cli.config import Direction
from transformer_cli.decoding.checks.months_and_days import NAMES, without_accents
from transformer_cli.text.languages import frequent_words, primary_language

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
    missing = [name for name in dict.fromkeys(_sure_names(source, here)) if not _begins_a_word(name, translation)]
    if not missing:
        return []
    frequent = frequent_words(there)
    new = {
        word
        for match in _WORD.finditer(translation)
        if (word := match[0])[0].isupper()
        and not _begins_a_word(word, source, is_whole=len(word) < _SHORTEST_BEGINNING)
        and not (
            (len(word) < _SHORTEST_BEGINNING or word.casefold() in frequent)
            and _BEGINS_SENTENCE.search(translation, 0, match.start())
        )
    }
    return missing if len(missing) > len(new) else []


def _begins_a_word(name: str, text: str, *, is_whole: bool = False) -> bool:
    """Whether a text has a word that begins as a name does, or is the name, in small letters too, and with other accents."""
    beginning = without_accents(name)[:_SHORTEST_BEGINNING]
    end = r"(?![^\W\d_])" if is_whole else ""
    return re.search(rf"(?<![^\W\d_]){beginning}{end}", without_accents(text)) is not None


def _sure_names(text: str, language: str) -> list[str]:
    matches = [*_WORD.finditer(text)]
    is_large = [each[0][0].isupper() for each in matches]
    found = []
    for place, match in enumerate(matches):
        word, beside = match[0], [*is_large[max(place - 1, 0) : place], *is_large[place + 1 : place + 2]]
        if not (word.istitle() and len(word) >= _SHORTEST) or any(beside) or word in STAND_INS:
            continue
        name = word.casefold()
        is_other = {name, name.removesuffix("s")} & {*_OTHERS[language].split(), *re.split(r"[ /|]", NAMES[language])}
        if not (is_other or _PEOPLE.fullmatch(name) or _BEGINS_SENTENCE.search(text, 0, match.start())):
            found.append(word)
    return found
