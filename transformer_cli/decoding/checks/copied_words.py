"""Words of a label that its translation only copies, such as *Changes* in *Enregistre les Changes*, although the model knows a translation of them.

*Table* is a right copy in French, and *pain* is none, though both are French words. The model tells which: alone, as in "The pain.", it
translates a word that it knows otherwise. Only texts without the end of a sentence are asked, such as labels of programs: in sentences
copies are rarely wrong.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from transformer_cli.decoding.checks.doubts import LEAVES
from transformer_cli.decoding.engine import Request
from transformer_cli.decoding.translation import Translation
from transformer_cli.text.languages import frequent_words, is_plain, primary_language, small_words
from transformer_cli.text.sentences import ends_sentence
from transformer_cli.text.spans import find_spans, masked, span_texts

if TYPE_CHECKING:  # it calls this module
    from transformer_cli.decoding.translator import Translator

_WORD = re.compile(r"(?<![\w'\u2019-])[^\W\d_]{3,}(?![\w'\u2019-])")
_ANY_WORD = re.compile(r"[^\W\d_]+")
_ALONE = {"en": ("The {}.", "It is {}.", "a {}")}
"""Texts in which a word stands by itself, by language."""


def with_copied_words(translator: "Translator", translations: Sequence[Translation]) -> list[Translation]:
    """The translations, with a doubt about labels that leave words as they are which the model translates otherwise when they stand alone."""
    found = {place: words for place, each in enumerate(translations) if (words := [*_copies(translator, each)])}
    wrong = wrong_copies(translator, sorted({word.casefold() for words in found.values() for word in words}))
    named = list(translations)
    for place, words in found.items():
        each = named[place]
        if left := [word for word in words if word.casefold() in wrong]:
            doubts = [doubt for doubt in each.doubts if not doubt.startswith(LEAVES)]
            before = [doubt.removeprefix(f"{LEAVES}: ") for doubt in each.doubts if doubt.startswith(LEAVES)]
            said = dict.fromkeys([*(word for one in before for word in one.split(", ")), *left])
            named[place] = replace(each, doubts=(*doubts, f"{LEAVES}: {', '.join(said)}"))
    return named


def _copies(translator: "Translator", translation: Translation) -> Iterator[str]:
    """The content words of a label that stand in its translation, too, and that training has mostly read in small letters: no names."""
    source, pipeline = translation.source.strip(), translator.pipeline
    languages, seen = pipeline.languages, pipeline.seen_words
    if seen is None or translation.terms or translation.is_from_memory or translation.is_untranslated:
        return
    if ends_sentence(source) or primary_language(languages.source) not in _ALONE:
        return
    text, written_text = source, translation.text
    if not is_plain(source):
        spans = find_spans(source)
        text = masked(source, spans, "0")
        for span in span_texts(source, spans):
            written_text = written_text.replace(span, "0", 1)
    written = {word.casefold() for word in _ANY_WORD.findall(written_text)}
    left_out = frequent_words(primary_language(languages.source)) | small_words(primary_language(languages.target))
    words = [*_WORD.finditer(text)]
    is_heading = not any(word[0].islower() for word in words)
    for match in words:
        word = match[0]
        may_be_name = not (word.islower() or is_heading or match.start() == 0)
        if (
            word.casefold() in written - left_out
            and not may_be_name
            and word in seen
            and pipeline.is_mostly_small(word)
        ):
            yield word


def wrong_copies(translator: "Translator", words: Sequence[str]) -> frozenset[str]:
    """Those of some words of which no translation has a copy when they stand alone.

    Args:
        words: casefolded, of the source language.
    """
    pipeline = translator.pipeline
    options = translator.decoding.model_copy(update={"beam_size": 1, "num_best": 1})
    left = list(words)
    for text in _ALONE.get(primary_language(pipeline.languages.source), ()):
        if not left:
            break
        requests = [Request(pipeline.source_ids(pipeline.normalize_source(text.format(word)))) for word in left]
        answers = (
            pipeline.target_tokenizer.decode(found[0].ids) if found else ""
            for found in translator.search_with(requests, options)
        )
        said = ({word.casefold() for word in _ANY_WORD.findall(answer)} for answer in answers)
        left = [word for word, each in zip(left, said, strict=True) if word not in each]
    return frozenset(left)
