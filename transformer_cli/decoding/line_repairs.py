"""Repairs of whole lines: a line whose translation lost a number, a URL, a placeholder or a sign, and a doubtful one in an odd case, is translated again."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from transformer_cli.decoding.brackets import (
    MAY_BE_EMPTY,
    loses_any,
    with_empty_brackets,
    without_empty_brackets,
)
from transformer_cli.decoding.doubts import (
    NUMBERS,
    lost_marks,
    with_ampersands,
    with_words_for_ampersands,
    without_unseen_words,
)
from transformer_cli.decoding.protected_spans import Promise
from transformer_cli.decoding.signs import SIGN
from transformer_cli.decoding.signs_in_place import with_signs_in_place
from transformer_cli.decoding.translation import Line, Translation, with_alternatives
from transformer_cli.text.quotation_marks import plain_quotes
from transformer_cli.text.sentences import has_odd_case
from transformer_cli.text.spans import SpanKind, find_spans, has_span_sign

if TYPE_CHECKING:  # it calls this module
    from transformer_cli.decoding.translator import Translator

_BESIDE_WORDS = (SpanKind.WORD, SpanKind.TAG)


def with_lost_parts(
    translator: "Translator", lines: Sequence[Line], translations: list[Translation]
) -> list[Translation]:
    """The translations of lines; those that lost a number, a URL, a placeholder or a sign are made again, if that brings it back.

    Doubtful lines in an odd case, such as "The Dog Is Big", are made again from small letters.
    """
    places = [
        place
        for place, (line, found) in enumerate(zip(lines, translations, strict=True))
        if _may_lose_parts(line.given, found)
    ]
    if not places:
        return translations
    lines, found = [lines[place] for place in places], [translations[place] for place in places]
    if not translator.protects_spans:
        found = _with_lost_spans(translator, lines, found)
    found = _with_lost_ampersands(translator, lines, found)
    found = _with_lost_empty_brackets(translator, lines, found)
    found = _with_odd_case(translator, lines, found)
    found = with_signs_in_place(translator, lines, found)
    mended = dict(zip(places, found, strict=True))
    return [mended.get(place, translation) for place, translation in enumerate(translations)]


def _may_lose_parts(line: str, translation: Translation) -> bool:
    """Whether a line has something that one of the repairs here looks for; most lines have nothing."""
    return (
        NUMBERS in translation.doubts
        or has_odd_case(line)
        or has_span_sign(line)
        or SIGN.search(line) is not None
        or MAY_BE_EMPTY.search(line) is not None
    )


def _with_lost_spans(
    translator: "Translator", lines: Sequence[Line], translations: list[Translation]
) -> list[Translation]:
    """The translations; a line that loses a number, a URL or a placeholder is translated again, with protected spans.

    So is one that was left as it is and has a URL, a tag, an emoji or the like: the model may read the rest of it.
    """
    lost = [
        place
        for place, (line, translation) in enumerate(zip(lines, translations, strict=True))
        if not line.prefix
        and (
            loses_spans(line.given, translation)
            or (
                translation.is_untranslated
                and any(span.kind in _BESIDE_WORDS for span in find_spans(line.given))
            )
        )
    ]
    if not lost:
        return translations
    protecting = replace(translator, protects_spans=True, reports_lines=False, only_green=False)
    found = protecting.translate_window([lines[place] for place in lost])
    better = {
        place: replace(translation, is_repaired=True)
        for place, translation in zip(lost, found, strict=True)
        if not translation.is_partly_copied
        and not loses_spans(lines[place].given, translation)
        and not (
            translation.is_untranslated and not loses_spans(lines[place].given, translations[place])
        )
    }
    return [better.get(place, translation) for place, translation in enumerate(translations)]


def loses_spans(line: str, translation: Translation) -> bool:
    """Whether a translation has other numbers than its line, or does not hold its URLs, placeholders and tags."""
    if NUMBERS in translation.doubts:
        return True
    # Numbers have a check of their own, because some of them may become words.
    line, _ = plain_quotes(line)
    spans = [span for span in find_spans(line) if span.kind is not SpanKind.NUMBER]
    if not spans:
        return False
    return not Promise.of(line, spans).is_kept_by(plain_quotes(translation.text)[0])


def _with_lost_ampersands(
    translator: "Translator", lines: Sequence[Line], translations: list[Translation]
) -> list[Translation]:
    """The translations; a line that loses an & between words is translated again: the model reads "and" there.

    In the translation the sign stands in place of that word again, if it is clear which word that is.
    """
    source = translator.languages.source
    read = {
        place: words
        for place, (line, found) in enumerate(zip(lines, translations, strict=True))
        if "&" in line.given
        and not (line.prefix or found.terms)  # a term may have the sign
        and (words := with_words_for_ampersands(line.given, source)) != line.given
        and (found.is_untranslated or found.text.count("&") < line.given.count("&"))
    }
    if not read:
        return translations
    plain = replace(translator, reports_lines=False, only_green=False)
    again = plain.translate_window(
        [replace(lines[place], given=words) for place, words in read.items()]
    )
    mended = list(translations)
    for (place, words), found in zip(read.items(), again, strict=True):
        given = lines[place].given
        if found.is_untranslated or lost_marks(given, found.text, translator.languages.target):
            continue
        if not {*without_unseen_words(found.doubts)} <= {*translations[place].doubts}:
            continue
        texts = [
            (with_ampersands(text, given, words, translator.languages), score)
            for text, score in found.alternatives
        ]
        mended[place] = replace(with_alternatives(found, texts), source=given, is_repaired=True)
    return mended


def _with_lost_empty_brackets(
    translator: "Translator", lines: Sequence[Line], translations: list[Translation]
) -> list[Translation]:
    """The translations; a line that loses brackets around nothing, such as (...), is translated again without them.

    A model that has seen few brackets guesses a word for them, and the words around them get worse, too. They are put back
    where the lengths tell, so a person should look at their places.
    """
    read = {
        place: (rest, brackets)
        for place, (line, found) in enumerate(zip(lines, translations, strict=True))
        if MAY_BE_EMPTY.search(line.given) and not (line.prefix or found.terms)
        for rest, brackets in [without_empty_brackets(line.given)]
        if brackets
        and any(map(str.isalpha, rest))
        and (found.is_untranslated or loses_any(brackets, found.text))
    }
    if not read:
        return translations
    plain = replace(translator, reports_lines=False, only_green=False)
    again = plain.translate_window(
        [replace(lines[place], given=rest) for place, (rest, _) in read.items()]
    )
    mended = list(translations)
    for (place, (_, brackets)), found in zip(read.items(), again, strict=True):
        if not (found.is_untranslated or found.is_partly_copied):
            texts = [
                (with_empty_brackets(text, brackets), score) for text, score in found.alternatives
            ]
            complete = replace(found, source=lines[place].given, is_repaired=True)
            mended[place] = replace(with_alternatives(complete, texts), is_in_pieces=True)
    return mended


def _with_odd_case(
    translator: "Translator", lines: Sequence[Line], translations: list[Translation]
) -> list[Translation]:
    """The translations; a doubtful line such as "tHe DoG iS bIg" or "The Dog Is Big" is read again in small letters."""
    pipeline = translator.pipeline
    read = {
        place: small
        for place, (line, found) in enumerate(zip(lines, translations, strict=True))
        if has_odd_case(line.given)
        and not (line.prefix or found.terms)
        and (found.doubts or found.is_untranslated or pipeline.unseen_words(found))
        and not find_spans(line.given)
        and (small := pipeline.in_small_letters(line.given)) != line.given
    }
    if not read:
        return translations
    plain = replace(translator, reports_lines=False, only_green=False)
    again = plain.translate_window(
        [replace(lines[place], given=small) for place, small in read.items()]
    )
    mended = list(translations)
    for place, found in zip(read, again, strict=True):
        before = translator.with_doubts_of_line(translations[place])
        num_before = len(before.doubts) + before.is_untranslated
        if len(found.doubts) + found.is_untranslated < num_before and not found.is_untranslated:
            mended[place] = replace(found, source=lines[place].given, is_repaired=True)
    return mended
