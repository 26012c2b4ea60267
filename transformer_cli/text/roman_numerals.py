"""Roman numerals: the numbers of chapters, acts and kings, which stay in a translation, and the words that look like them."""

import re

from transformer_cli.text.lazy_patterns import lazy_pattern

_VALUE = r"(?=[CILVX])C{0,3}(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,4})"
_NUMERAL = lazy_pattern(_VALUE)
NOT_INSIDE_WORD = r"(?<![\w.'\u2019&/@#$%\\+*~^=<>{}|:-])"
ROMAN = (
    r"(?:[CILVX]{1,8}(?:[\u2013-][CILVX]{1,8})?|[ivx]{2,6})(?![\w&/@#$%\\+*~^=<>{}|-]|['\u2019](?!s(?!\w))|\.[\w-]|:\S)"
)
"""What may be a Roman numeral behind `NOT_INSIDE_WORD`, or two with a dash between them; `is_roman_numeral` tells whether it is one."""
_MAY_BE_ROMAN = lazy_pattern(NOT_INSIDE_WORD + ROMAN)
# Before their numerals; of English, German, French, Spanish, Italian and Portuguese.
_COUNTED = frozenset(
    re.findall(
        r"\w+",
        "chapter chapters part parts act acts scene scenes book books volume volumes vol canto psalm section sections article articles phase stage"
        " class type grade level category group figure fig plate table appendix annex lesson unit episode season schedule round title tome series"
        " kapitel teil akt szene band buch abschnitt artikel stufe klasse typ abbildung abb tabelle anhang lektion folge staffel"
        " chapitre partie acte sc\u00e8ne livre sc\u00e9nario le\u00e7on titre saison planche tableau annexe niveau cat\u00e9gorie groupe \u00e9pisode"
        " cap\u00edtulo parte acto escena libro tomo secci\u00f3n art\u00edculo figura cuadro anexo lecci\u00f3n t\u00edtulo temporada"
        " capitolo atto scena sezione articolo tavola allegato lezione titolo stagione episodio ato cena livro se\u00e7\u00e3o artigo",
    )
)
_WORD_BEFORE = lazy_pattern(r"([^\W\d_]+)\.?[ \u00a0]\Z")
_WORD_BEHIND = lazy_pattern(r"[ \u00a0]([^\W\d_]+)")
_END = lazy_pattern(r"\s*(?:[,;:!?)\]\"\u00bb\u201d]|\.(?!\w)|[\u2013\u2014-]\s|\Z)")
_JOINING = frozenset(["of", "and", "or", "to"])
_NEAR = 30  # characters


def is_roman_numeral(text: str, start: int, end: int) -> bool:
    """Whether text[start:end], which `ROMAN` has found, is a number: in Chapter V, Elizabeth II, but not the pronoun of "I am here"."""
    found = text[start:end]
    if not all(_NUMERAL.fullmatch(part.upper()) for part in re.split("[\u2013-]", found)):
        return False
    before, behind = text[max(0, start - _NEAR) : start], text[end : end + _NEAR]
    word_before = match[1] if (match := _WORD_BEFORE.search(before)) else ""
    word_behind = match[1] if (match := _WORD_BEHIND.match(behind)) else ""
    if word_before.casefold() in _COUNTED:
        is_of_title = word_before[0].isupper() and (_END.match(behind) is not None or word_behind in _JOINING)
        return found != "I" or is_of_title
    if len(found) == 1 or found.islower() or not set(found) <= set("IVX\u2013-"):
        return False
    if word_before.casefold() == "war":
        return False  # many languages write a word there: la Seconde Guerre mondiale
    if word_before == "":
        return not word_behind.islower()  # "II est ici", where I stands for l
    return word_before[0].isupper() or not text.isupper()


def roman_numerals(text: str) -> list[tuple[int, int]]:
    """Where the Roman numerals of a text begin and end."""
    return [match.span() for match in _MAY_BE_ROMAN.finditer(text) if is_roman_numeral(text, *match.span())]


def with_roman_numerals_of(text: str, changed: str) -> str:
    """A text of the same length whose Roman numerals are written as in another one, such as Chapter V for Chapter v."""
    if len(text) == len(changed):
        for start, end in roman_numerals(text):
            changed = changed[:start] + text[start:end] + changed[end:]
    return changed
