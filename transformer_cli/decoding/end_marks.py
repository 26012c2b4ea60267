"""Texts such as "good morning": a model that has read only whole sentences gets them with a capital letter and an end mark."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from transformer_cli.decoding.translation import SourceText, Translation, with_alternatives
from transformer_cli.text.languages import has_spaces, primary_language
from transformer_cli.text.normalization import has_letter
from transformer_cli.text.sentences import as_inner_part
from transformer_cli.text.spans import has_span_sign
from transformer_cli.text.tokenizer import Tokenizer

if TYPE_CHECKING:  # it calls this module
    from transformer_cli.decoding.line_form import LineForm
    from transformer_cli.decoding.text_pipeline import TextPipeline
    from transformer_cli.decoding.translator import Translator

_WORD = re.compile(r"[^\W\d_]+")
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
# One or two words are a noun more often than anything else. Source languages whose article is the same for all nouns; and articles
# that a translation begins with then.
_ARTICLE = {"en": "the"}
_ARTICLES_OF_TARGET = {
    "de": "der |die |das ",
    "es": "el |la |los |las ",
    "fr": "le |la |les |l'|l\u2019",
    "it": "il |lo |la |i |gli |le |l'|l\u2019",
    "nl": "de |het ",
    "pt": "o |a |os |as ",
}
_MOST_WORDS_OF_NOUN = 2
_PAUSES = (",", ";", ":")
# Of the score: how much surer the model must be of another form than of the text as it stands.
_FOR_END_MARK, _FOR_CAPITAL, _FOR_ARTICLE = 0.2, -0.1, 0.5


class SentenceReading(NamedTuple):
    """A text in the form in which a model reads it, and by how much it must be surer of that one."""

    text: SourceText
    margin: float
    has_article: bool = False


def translated_as_sentences(
    translator: "Translator", texts: Sequence[SourceText], form: "LineForm"
) -> list[Translation]:
    """The translations of texts; those that are not written as a sentence are read as one, if the model is surer then.

    One without an end mark is read with a full stop or a question mark, one with a comma in its place with a full stop, one that
    begins with a small letter with a capital, and one or two words with an article. What this adds to a translation is taken away again: it begins with a small letter where the text does,
    as that of a cell of a table or of the second half of a sentence should.

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
    found = ((place, sentence_readings(text, translator.pipeline)) for place, text in enumerate(texts))
    readings = {place: [SentenceReading(texts[place], 0.0), *others] for place, others in found if others}
    if not readings:
        return translator.translate_texts(texts)
    decoding = translator.decoding.model_copy(update={"repair": False, "num_best": 1})
    plain = replace(translator, decoding=decoding, estimates=False)
    answers = iter(plain.translate_texts([one.text for each in readings.values() for one in each]))
    target = primary_language(translator.pipeline.languages.target)
    chosen = {
        place: max(each, key=lambda one: _sureness(one, texts[place].text, next(answers), target))
        for place, each in readings.items()
    }
    read = [chosen[place].text if place in chosen else text for place, text in enumerate(texts)]
    translations = translator.translate_texts(read)
    for place, reading in chosen.items():
        translations[place] = _as_written(translations[place], texts[place].text, reading, translator.pipeline)
    return translations


def sentence_readings(text: SourceText, pipeline: "TextPipeline") -> list[SentenceReading]:
    """The text as whole sentences are written: with a capital letter, an end mark, an article; nothing if it is written so, or has a prefix.

    A comma, a semicolon or a colon at the end gives way to a full stop: "When he came home," asks nothing.
    """
    given, language = text.text, primary_language(pipeline.languages.source)
    has_pause = given.endswith(_PAUSES) and _lacks_end_mark(given[:-1])
    if has_pause:  # "Dear Anna,": the caller puts the comma back
        given = given[:-1]
    begins_small, lacks_mark = _begins_small(given), _lacks_end_mark(given)
    if text.prefix or not (begins_small or lacks_mark):
        return []
    words = given.split()
    may_change_words = not has_span_sign(given)  # nothing inside a URL or the like changes
    begun = given
    if begins_small:
        is_small = given.islower() and may_change_words
        begun = pipeline.in_small_letters(given) if is_small else given[0].upper() + given[1:]
    asks = words[0].casefold().replace("\u2019", "'") in _ASKING.get(language, "").split()
    marks = [""] if not lacks_mark else ".?" if asks and not has_pause else "."
    margin = _FOR_CAPITAL if begins_small else _FOR_END_MARK
    readings = [SentenceReading(text._replace(text=f"{begun}{mark}"), margin) for mark in marks]
    seen = pipeline.seen_words or ()
    may_be_noun = lacks_mark and may_change_words and len(words) <= _MOST_WORDS_OF_NOUN
    if may_be_noun and language in _ARTICLE and all(word in seen for word in words):
        noun = pipeline.in_small_letters(f"{_ARTICLE[language]} {given}.")
        readings.append(SentenceReading(text._replace(text=noun), _FOR_ARTICLE, has_article=True))
    return readings


def _sureness(reading: SentenceReading, text: str, translation: Translation, target: str) -> float:
    """How sure the model is of a reading; where a capital letter was added, words that are only copied would look like names.

    The article that a reading has added says nothing alone: *Il.* for *The for.*
    """
    written, read = ({*_WORD.findall(each.casefold())} for each in (translation.text, reading.text.text))
    is_copied = reading.text.text != text and _begins_small(text) and written <= read
    said = f"{translation.text.rstrip(' .?!')} "
    is_article = reading.has_article and not _without_article(said, target).strip()
    return -math.inf if is_copied or is_article else translation.score - reading.margin


def _without_article(text: str, language: str) -> str:
    article = re.match(_ARTICLES_OF_TARGET.get(language, ""), text, re.IGNORECASE)
    return text[article.end() :] if article else text


def _as_written(
    translation: Translation, source: str, reading: SentenceReading, pipeline: "TextPipeline"
) -> Translation:
    """The translation of a text, without what its reading has added, and with a small letter where the text begins with one."""
    language, read = primary_language(pipeline.languages.target), reading.text.text
    has_added_mark = source[-1].isalnum() and not read[-1].isalnum()
    written = []
    for text, score in translation.alternatives:
        as_text = (text.rstrip("!").rstrip() or text) if has_added_mark else text
        # The article and the first letter may belong to a term of the glossary.
        if reading.has_article and not translation.terms:
            as_text = _without_article(as_text, language)
            as_text = as_text[:1].upper() + as_text[1:] if source[0].isupper() else as_text
        if not translation.terms and not _begins_with_name(as_text, source, pipeline.target_tokenizer):
            as_text = as_inner_part(as_text, source, target_language=language)
        # What the model cannot translate stays as it was given.
        written.append((source if text.rstrip(".?") == read.rstrip(".?") else as_text, score))
    return with_alternatives(replace(translation, source=source), written)


def _begins_with_name(translation: str, source: str, tokenizer: "Tokenizer") -> bool:
    """Whether a translation begins with a word of its source that training has mostly read with a capital letter.

    A frequent word has few tokens, and its token has a small number.
    """
    first = _WORD.match(translation)
    if first is None or first[0].lower() not in _WORD.findall(source.lower()):
        return False
    large, small = (tokenizer.encode(f"x {each}") for each in (first[0], first[0].lower()))
    return (len(large), *large) < (len(small), *small)


def _begins_small(text: str) -> bool:
    """Whether a text begins with a word in small letters; iPhone is none."""
    first = text.split(maxsplit=1)[0] if text[:1].islower() else ""
    return first.islower() and not has_span_sign(first)


def _lacks_end_mark(text: str) -> bool:
    """Whether a text ends with a word; one in capital letters may be an abbreviation."""
    return text[-1:].isalnum() and not text.isupper() and has_letter(text) and _ENDS_WITH_WORD.search(text) is not None
