"""Codes and names of languages beyond those of `languages`: from the Common Locale Data Repository of Unicode, by babel."""

import re
from functools import cache

from transformer_cli.text.languages import (
    LANGUAGE_OF_SCRIPT,
    language_in,
    name_of_language,
    primary_language,
    script_of,
)

# Script -> further languages that are written in it, with names of other languages in them; the main one is known.
_LOCALES = {
    "LATIN": "en fr de es it pt nl pl cs hu ro tr id vi sw sv fi",
    "CYRILLIC": "ru uk bg sr be mk kk ky mn tg",
    "ARABIC": "ar fa ur ps sd ug ckb",
    "DEVANAGARI": "hi mr ne",
    "BENGALI": "bn as",
    "ETHIOPIC": "am ti",
    "HEBREW": "he yi",
    "CJK": "zh zh_Hant ja yue",
}
_CODE = re.compile(r"([a-z]{2,3})([-_](?:[A-Z][a-z]{3}|[A-Z]{2}|x[-_][a-z0-9]{1,8}))*")
# Words of names of columns that are codes of languages, too.
_NO_CODES = frozenset(
    ("tok", "src", "trg", "tgt", "ref", "raw", "hyp", "txt", "key", "nr", "no", "id")
)
# A name of a language has a word for language behind or before it.
_MAX_WORDS = 3


def code_of_language(text: str) -> str | None:
    """The code, if the text is one, such as xmf, km or pt-BR; None if it is not one of a language that is known."""
    found = _CODE.fullmatch(text.strip())
    if found is None or found[1] in _NO_CODES:
        return None
    return text.strip() if found[1] in _names("en") else None


def named_language(title: str) -> str | None:
    """The language that a title of a column says, as a code or as a name in one of many languages."""
    found = language_in(title) or code_of_language(title)
    if found is not None or not title.strip():
        return found
    # Not \w: the vowel signs of Khmer and Hindi are marks and no letters.
    words = [word for word in re.split(r"[\s_/()\[\].,:;-]+", title.casefold()) if word]
    if not 1 <= len(words) <= _MAX_WORDS:
        return None
    codes = {
        code
        for name in dict.fromkeys((title.strip().casefold(), *words, *map(_chinese_name, words)))
        for locale in _locales(name)
        if (code := _codes(locale).get(name)) is not None
    }
    return codes.pop() if len(codes) == 1 else None


def name_of(code: str) -> str:
    """The English name of a language, or the code where no name is known."""
    name = name_of_language(code)
    return _names("en").get(primary_language(code), code) if name == code else name


def _chinese_name(name: str) -> str:
    """The name of a language with the sign for spoken language, such as 英语, in place of the one for writing, 英文."""
    return f"{name[:-1]}语" if name.endswith("文") else name


def _locales(name: str) -> list[str]:
    script = script_of(name)
    return _LOCALES.get(script, LANGUAGE_OF_SCRIPT.get(script, "")).split()


@cache
def _names(locale: str) -> dict[str, str]:
    """Code -> name, in one language."""
    from babel import Locale, UnknownLocaleError

    try:
        return {code: str(name) for code, name in Locale.parse(locale).languages.items()}
    except UnknownLocaleError:  # a script whose language has no names there
        return {}


@cache
def _codes(locale: str) -> dict[str, str]:
    """Name without capitals -> code; regional forms, such as Brazilian Portuguese, count for their language."""
    return {name.casefold(): code.split("_")[0] for code, name in reversed(_names(locale).items())}
