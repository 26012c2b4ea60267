"""Texts without an end mark, such as "I love Paris": a model that has read only whole sentences gets them with one."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from transformer_cli.decoding.translation import SourceText, Translation, with_alternatives
from transformer_cli.text.languages import has_spaces, primary_language

if TYPE_CHECKING:  # it calls this module
    from transformer_cli.decoding.line_form import LineForm
    from transformer_cli.decoding.translator import Translator

_ENDS_WITH_WORD = re.compile(r"(?:\A|\s)[\w'\u2019-]*\w\Z")
# What a text may begin with that is a question.
_ASKING = {
    "de": "wer wen wem wessen was wann wo woher wohin warum weshalb wie wieso welche welcher welches",
    "en": "who whom whose what when where which why how is are am was were do does did can could will would shall should may must "
    "have has had isn't aren't wasn't weren't don't doesn't didn't can't couldn't won't wouldn't shouldn't haven't hasn't",
    "es": "quién quiénes qué cuándo dónde adónde cómo cuál cuáles cuánto cuánta cuántos cuántas por",
    "fr": "qui que qu'est-ce quoi quand où comment combien pourquoi quel quelle quels quelles est-ce",
    "it": "chi che cosa quando dove dov'è come quale quali quanto quanta quanti quante perché",
    "nl": "wie wat wanneer waar waarom hoe welk welke",
    "pt": "quem que quando onde aonde como qual quais quanto quanta quantos quantas por",
}
_CLEARLY_BETTER = 0.2  # of the score; what a model that was trained on such texts needs to read one otherwise


def translated_with_end_marks(
    translator: "Translator", texts: Sequence[SourceText], form: "LineForm"
) -> list[Translation]:
    """The translations of texts; those without an end mark are read with a full stop or a question mark, if the model is surer then.

    The caller takes the mark away that the translation has and the text has not (`with_final_mark_of`), but for an exclamation mark,
    which some headings have in their translations only.
    """
    if not texts:
        return []
    # A model without a record of its training was imported, and has mostly read texts of all kinds.
    is_recorded = translator.pipeline.seen_words is not None
    is_wanted = is_recorded and translator.repairs and form.keeps_layout
    if not is_wanted or not has_spaces(translator.pipeline.languages.source):
        return translator.translate_texts(texts)
    language = translator.pipeline.languages.source
    forms = {place: marked_forms(text, language) for place, text in enumerate(texts) if _lacks_end_mark(text)}
    if not forms:
        return translator.translate_texts(texts)
    decoding = translator.decoding.model_copy(update={"repair": False, "num_best": 1})
    plain = replace(translator, decoding=decoding, estimates=False)
    asked = [marked for of_text in forms.values() for marked in of_text]
    found = iter(plain.translate_texts([texts[place] for place in forms] + asked))
    limits = {place: next(found).score + _CLEARLY_BETTER for place in forms}
    read = list(texts)
    for place, of_text in forms.items():
        for marked in of_text:
            if (score := next(found).score) > limits[place]:
                read[place], limits[place] = marked, score
    return [
        each if text is one else _without_added_mark(replace(each, source=text.text))
        for each, text, one in zip(translator.translate_texts(read), texts, read, strict=True)
    ]


def _without_added_mark(translation: Translation) -> Translation:
    shortened = ((each.text.rstrip("!").rstrip() or each.text, each.score) for each in translation.alternatives)
    return with_alternatives(translation, shortened)


def _lacks_end_mark(text: SourceText) -> bool:
    """Whether a text ends with a word; one in capital letters may be an abbreviation."""
    given = text.text
    return (
        given[-1:].isalnum()
        and not (text.prefix or given.isupper())
        and any(map(str.isalpha, given))
        and _ENDS_WITH_WORD.search(given) is not None
    )


def marked_forms(text: SourceText, language: str) -> list[SourceText]:
    """The text with a full stop, and with a question mark if it begins with a word that asks in its language."""
    first = text.text.split(maxsplit=1)[0].casefold().replace("\u2019", "'")
    marks = ".?" if first in _ASKING.get(primary_language(language), "").split() else "."
    return [replace(text, text=f"{text.text}{mark}") for mark in marks]
