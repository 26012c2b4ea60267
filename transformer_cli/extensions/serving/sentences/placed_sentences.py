"""The sentences of a text, their places in it, and what stands between them in the translation."""

from collections.abc import Iterator
from typing import NamedTuple

from transformer_cli.config import SequencesData
from transformer_cli.decoding import Translator
from transformer_cli.decoding.text_pipeline import TextPipeline
from transformer_cli.text.layout import TextRange, text_ranges
from transformer_cli.text.normalization import with_plain_spaces
from transformer_cli.text.sentences import Sentence, gap_between, split_sentences
from transformer_cli.text.spans import find_spans, masked

# In place of the characters of a protected span: neither a letter nor white space nor a mark of a layout.
_HIDDEN = "\ue000"


class PlacedSentence(NamedTuple):
    """A sentence of a text."""

    start: int
    """Its place in the text, in characters."""
    text: str
    before: str
    """What stands before its translation, and after that of the sentence before it."""

    @property
    def end(self) -> int:
        """The place of the character that follows it."""
        return self.start + len(self.text)


class PlacedText(NamedTuple):
    """A text as sentences and everything between them."""

    sentences: list[PlacedSentence]
    after: str
    """What follows the last sentence."""


def placed_sentences(translator: Translator, text: str) -> PlacedText:
    """The sentences that a translator of one direction translates one by one; all other characters stay.

    Args:
        text: may have several lines.
    """
    pipeline = translator.pipeline
    is_language = not isinstance(pipeline.data, SequencesData)
    keeps_layout = translator.decoding.keep_layout and is_language
    sentences: list[PlacedSentence] = []
    done, line_start = 0, 0
    for line in text.split("\n"):
        for text_range in _ranges(line, keeps_layout=keeps_layout):
            start = line_start + text_range.start
            before = text[done:start]
            for sentence in _sentences(pipeline, text[start : line_start + text_range.end]):
                if sentence.gap:
                    before = gap_between(_as_read(pipeline, sentence.gap), *pipeline.languages)
                    start += len(sentence.gap)
                sentences.append(PlacedSentence(start, sentence.text, before))
                start, before = start + len(sentence.text), ""
            done = start
        line_start += len(line) + 1
    return PlacedText(sentences, text[done:])


def _as_read(pipeline: TextPipeline, gap: str) -> str:
    return with_plain_spaces(gap) if pipeline.removes_invisible else gap


def _ranges(line: str, *, keeps_layout: bool) -> Iterator[TextRange]:
    """The ranges of a line that are translated, without white space around them."""
    if keeps_layout:
        yield from text_ranges(line, masked(line, find_spans(line), _HIDDEN))
    elif line.strip():
        start = len(line) - len(line.lstrip())
        yield TextRange(start, len(line.rstrip()))


def _sentences(pipeline: TextPipeline, text: str) -> list[Sentence]:
    if not pipeline.splits_sentences:
        return [Sentence(text, "")]
    return split_sentences(text, pipeline.languages.source)
