"""Lines whose translation lacks a month or a day of the week: the model reads another one, and the right one is put in its place."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from transformer_cli.decoding.checks.doubts import DATES, UNSURE, doubts_about, without_unseen_words
from transformer_cli.decoding.checks.months_and_days import stand_ins
from transformer_cli.decoding.translation import SourceText, Translation, with_alternatives

if TYPE_CHECKING:  # it calls this module
    from transformer_cli.decoding.translator import Translator


def with_dates_in_place(
    translator: "Translator", lines: Sequence[SourceText], translations: list[Translation]
) -> list[Translation]:
    """The translations; those that lack a month or a day of the week are made again, from the line with another one.

    A model may know June and not July. A translation counts only if it has no doubt then; of several, the most probable one.
    """
    languages = translator.languages
    tries = [
        (place, each)
        for place, (line, found) in enumerate(zip(lines, translations, strict=True))
        if DATES in found.doubts and not (line.prefix or found.terms)
        for each in stand_ins(line.text, found.text, languages)
    ]
    if not tries:
        return translations
    decoding = translator.decoding.model_copy(update={"repair": False})  # which would try stand-ins for stand-ins
    plain = replace(translator, decoding=decoding, reports_lines=False, only_green=False)
    again = plain.translate_window([lines[place]._replace(text=each.text) for place, each in tries])
    best: dict[int, Translation] = {}
    for (place, each), found in zip(tries, again, strict=True):
        text = each.restored(found.text)
        if text is None or found.is_untranslated or found.is_partly_copied:
            continue
        before = translations[place]
        doubts = (*doubts_about(before.source, text, languages), *(each for each in before.doubts if each == UNSURE))
        whole = replace(found, source=before.source, doubts=doubts, is_repaired=True, pieces=())
        whole = translator.with_doubts_of_line(with_alternatives(whole, [(text, found.score)]))
        if set(without_unseen_words(whole.doubts)) <= {UNSURE} and (
            place not in best or whole.score > best[place].score
        ):
            best[place] = whole
    return [best.get(place, found) for place, found in enumerate(translations)]
