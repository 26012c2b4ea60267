"""Abbreviations in capitals, such as AI and PDF: a translation that lacks one is made again from the line with a name in its place."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from transformer_cli.decoding.checks.doubts import MADE_UP, UNSEEN, UNSURE
from transformer_cli.decoding.protected_spans import StandIns, put_back
from transformer_cli.decoding.translation import SourceText, Translation, with_alternatives
from transformer_cli.text.languages import frequent_words, has_spaces, primary_language, small_words
from transformer_cli.text.lazy_patterns import lazy_pattern
from transformer_cli.text.spans import SpanKind

if TYPE_CHECKING:  # it calls this module
    from transformer_cli.decoding.text_pipeline import TextPipeline
    from transformer_cli.decoding.translator import Translator

# Not beside a sign of an address, a file or a name; the plural PDFs is one, too.
_ACRONYM = lazy_pattern(
    r"(?<![\w'\u2019.@/\\&#$%+=<>{}:-])[A-Z]{2,5}(?=s?(?![\w@/\\&#$%+=<>{}-]|['\u2019][a-rt-z]|\.\w))"
)
MAY_BE_ACRONYM = re.compile(r"[A-Z]{2}")
"""A text without this has no abbreviation in capitals."""
_ROMAN = lazy_pattern(r"[IVXLC]+")
_DOTS = lazy_pattern(r"(?<=(?<!\w)\w)\.(?=\w)|(?<=\.\w)\.")
_SHORT = 2  # letters: the tokens of a word of so few tell nothing
_WORDS = frozenset(("ok", "tv", "am", "pm"))  # which languages say in many ways
# What other languages write, and words for the same, as beginnings of words in small letters.
_EQUALS = [
    group.split()
    for group in (
        "ac clim air",
        "aids sida",
        "atm distribut guichet geldautomat bancomat cajero caixa dab",
        "ai ia ki",
        "cd dis platte",
        "ceo pdg dg direct président chef geschäfts amminist consejero",
        "cpr réanim massage wiederbeleb rianim reanim",
        "cpu process procesador",
        "dna adn dns",
        "eu ue",
        "faq frage question domande pregunta",
        "gdp pib bip",
        "gnp pnb",
        "gps navi géo",
        "hiv vih",
        "hr rh personal ressources risorse",
        "id identi pièce carte papiers ausweis documen carta carné papier",
        "imf fmi iwf",
        "iq qi ci",
        "irs fisc impôt finanzamt steuer hacienda",
        "mri irm mrt",
        "nato otan",
        "ngo ong",
        "pc ordi computer rechner",
        "pin code identif",
        "ram mémoire memor arbeitsspeicher",
        "sms texto messag nachricht mensaje",
        "uk royaume angleterre grande vereinigte regno reino",
        "ufo ovni",
        "un onu uno nations vereinte nazioni naciones",
        "us usa états etats amér amer verein stati estados",
        "usa us eua états etats amér amer verein stati estados",
        "vat tva iva mwst",
        "vcr magnét",
        "vip personnal",
        "who oms",
    )
]
_MOST_TRIED = 3  # names


def lost_acronyms(pipeline: "TextPipeline", translation: Translation) -> tuple[str, ...]:
    """The abbreviations of the source of a translation that it does not have, also not as in other languages: IA for AI.

    A word in capitals for emphasis is none: in small letters it is frequent, so that it is one token. In a text without small
    letters, nothing tells an abbreviation; and of terms of a glossary, which may be abbreviations, nothing is said.
    """
    source = translation.source
    if MAY_BE_ACRONYM.search(source) is None or translation.terms or translation.is_from_memory:
        return ()
    written = _DOTS.sub("", translation.text.casefold())  # A.D.N.
    found = dict.fromkeys(match[0] for match in acronyms_in(pipeline, source))
    return tuple(each for each in found if not any(_stands_in(form, written) for form in _forms(each.casefold())))


def acronyms_in(pipeline: "TextPipeline", source: str) -> Iterator[re.Match[str]]:
    """The abbreviations in capitals of a text."""
    language = primary_language(pipeline.languages.source)
    if source.upper() == source or not all(map(has_spaces, pipeline.languages)):
        return
    count, small = pipeline.source_tokenizer.encode, small_words(language) | frequent_words(language)
    for match in _ACRONYM.finditer(source):
        word = match[0].casefold()
        is_short = len(word) <= _SHORT
        if word in small | _WORDS or _ROMAN.fullmatch(match[0]):
            continue
        if is_short or len(count(f"x {word}")) > 1 + len(count("x")):
            yield match


def with_acronyms_in_place(
    translator: "Translator", lines: Sequence[SourceText], translations: list[Translation]
) -> list[Translation]:
    """The translations; those that lack an abbreviation are made again, from the line with a name in the place of each.

    A model that has never read PDF writes pieces of it, or nothing. Of several names, the most probable translation counts, if it has
    no more doubts than the one before.
    """
    pipeline = translator.pipeline
    lost = [
        (place, line.text)
        for place, (line, found) in enumerate(zip(lines, translations, strict=True))
        if not (line.prefix or found.is_untranslated) and lost_acronyms(pipeline, replace(found, source=line.text))
    ]
    if not lost:
        return translations
    stand_ins = StandIns.of(pipeline.source_tokenizer, pipeline.target_tokenizer)
    tries = [
        (place, *read)
        for place, text in lost
        for number in range(_MOST_TRIED)
        if (read := _with_names(text, [*acronyms_in(pipeline, text)], stand_ins, number))
    ]
    plain = replace(translator, reports_lines=False, only_green=False)
    again = plain.translate_window([lines[place]._replace(text=text) for place, text, _ in tries])
    best: dict[int, Translation] = {}
    for (place, _, names), found in zip(tries, again, strict=True):
        text = put_back(found.text, names)
        before = translator.with_doubts_of_line(translations[place])
        if text is None or found.is_untranslated or found.is_partly_copied:
            continue
        doubts = tuple(doubt for doubt in found.doubts if not doubt.startswith((UNSEEN, MADE_UP)))
        whole = replace(found, source=before.source, doubts=doubts, is_repaired=True, pieces=())
        whole = translator.with_doubts_of_line(with_alternatives(whole, [(text, found.score)]))
        is_doubtful = not {*_names_of(whole.doubts)} <= {UNSURE, UNSEEN, *_names_of(before.doubts)}
        if not is_doubtful and (place not in best or whole.score > best[place].score):
            best[place] = whole
    return [best.get(place, found) for place, found in enumerate(translations)]


def _names_of(doubts: Sequence[str]) -> list[str]:
    return [doubt.partition(":")[0] for doubt in doubts]


def _with_names(
    text: str, matches: Sequence[re.Match[str]], stand_ins: StandIns, number: int
) -> tuple[str, dict[str, str]] | None:
    """The text with a name for each abbreviation, and the abbreviation of each name; None if there are too few names."""
    forms = list(dict.fromkeys(match[0] for match in matches))
    names = stand_ins.choose([SpanKind.WORD] * len(forms), text, number)
    if None in names or len(forms) < len(matches):
        return None
    of_form = {form: name for form, name in zip(forms, names, strict=True) if name is not None}
    read, place = "", 0
    for match in matches:
        read += text[place : match.start()] + of_form[match[0]]
        place = match.end()
    return read + text[place:], {name: form for form, name in of_form.items()}


def _forms(acronym: str) -> Iterator[str]:
    """Patterns: the abbreviation itself, and the beginnings of words that may stand for it."""
    yield rf"{acronym}s?(?!\w)"
    for group in _EQUALS:
        if acronym in group:
            yield from (form for form in group if form != acronym)


def _stands_in(form: str, text: str) -> bool:
    return re.search(rf"(?<!\w){form}", text) is not None
