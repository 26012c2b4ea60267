"""A text sentence by sentence: places, words, probabilities and links, for pages that show how it is translated."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from transformer_cli.config import DecodingConfig, SequencesData
from transformer_cli.decoding import (
    Engine,
    ExplainingEngine,
    LineDetails,
    TokenIds,
    Translation,
    Translator,
)
from transformer_cli.decoding.details import (
    Span,
    details_of,
    linked_words,
    places_as_given,
    places_of_parts,
    spans_in_line,
    word_spans,
    words_at,
)
from transformer_cli.decoding.protected_spans import HIDDEN
from transformer_cli.decoding.text_pipeline import TextPipeline
from transformer_cli.decoding.translation import Estimate, Link
from transformer_cli.extensions.serving.texts import fields_of
from transformer_cli.process.errors import DataError, UsageError
from transformer_cli.text.normalization import with_plain_spaces
from transformer_cli.text.sentences import (
    Sentence,
    TextRange,
    gap_between,
    split_sentences,
    text_ranges,
)
from transformer_cli.text.spans import find_spans, masked
from transformer_cli.text.tokenizer import Tokenizer

# Han, kana, Thai, Lao, Myanmar and Khmer.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)


class UnspacedWords(NamedTuple):
    """The words of a sentence and of its translation, and the links between them."""

    source: list[Span]
    target: list[Span]
    links: tuple[Link, ...]


def unspaced_words(pipeline: TextPipeline, source: str, explained: Translation) -> UnspacedWords | None:
    """The words of both texts; None if white space shows them, or if the places of the tokens are not known.

    Args:
        pipeline: of the direction.
        source: the sentence.
        explained: its translation with details.
    """
    details, target = explained.details, explained.text
    if details is None or not (_UNSPACED.search(source) or _UNSPACED.search(target)):
        return None
    prepared = pipeline.prepare(source)
    places = places_as_given(source, prepared.read)
    if places is None or len(prepared.parts) != len(details.parts):
        return None
    source_spans = [
        [
            (places[start], places[end - 1] + 1) if end > start >= 0 else (start, end)
            for start, end in spans_in_line(part.request.ids, part.text, place, pipeline.source_tokenizer)
        ]
        for part, place in zip(prepared.parts, places_of_parts(prepared), strict=True)
    ]
    target_spans = _target_spans(pipeline, target, [part.target_ids for part in details.parts])
    if target_spans is None:
        return None
    source_words = _words(source, (span for spans in source_spans for span in spans))
    target_words = _words(target, (span for spans in target_spans for span in spans))
    links = [
        link
        for part, sources, targets in zip(details.parts, source_spans, target_spans, strict=True)
        for link in linked_words(
            part.explanation.attention,
            words_at(sources, source_words),
            words_at(targets, target_words),
        )
    ]
    return UnspacedWords(source_words, target_words, tuple(dict.fromkeys(links)))


def _target_spans(pipeline: TextPipeline, text: str, parts: Sequence[Sequence[int]]) -> list[list[Span]] | None:
    """For each part, the places of its tokens in the translation; None if a part does not stand there."""
    tokenizer, place = pipeline.target_tokenizer, 0
    found = []
    for ids in parts:
        part_text = tokenizer.decode(list(ids))
        start = text.find(part_text, place)
        if start < 0:
            return None
        place = start + len(part_text)
        spans = tokenizer.decoded_spans(list(ids))
        # A token behind the text, such as [EOS], stands nowhere.
        found.append([(start + first, start + end) if start + first < place else (-2, -1) for first, end in spans])
    return found


def _words(text: str, tokens: Iterable[Span]) -> list[Span]:
    """The words of a text; one with signs of such a script is cut where a token begins or ends."""
    cuts = sorted({place for span in tokens for place in span})
    words: list[Span] = []
    for start, end in word_spans(text):
        if not _UNSPACED.search(text, start, end):
            words.append((start, end))
            continue
        inner = [place for place in cuts if start < place < end]
        words += zip([start, *inner], [*inner, end], strict=True)
    return words


class DetailedSentence(NamedTuple):
    """The translation of one sentence."""

    source: str
    target: str
    probabilities: tuple[float, ...]
    """Of each word of the target: the smallest probability of its tokens. Empty if they are not known."""
    confidence: float | None
    """The geometric mean of the probabilities of all tokens; None if the model has translated nothing."""
    links: tuple[Link, ...]
    words: UnspacedWords | None = None
    """The words, if white space does not show them."""
    is_untranslated: bool = False
    """Whether the sentence, or a clause of it, stays as it is, because the model loses text of it."""
    doubts: tuple[str, ...] = ()
    """What its text shows to be wrong; see `decoding.doubts`."""
    estimate: Estimate | None = None
    """How far it can be trusted, if the run has a calibration."""
    pivot: str | None = None
    """Of two models in a row: what the second one has read."""

    def as_json(self, start: int, target_start: int) -> dict[str, Any]:
        """Plain values; `start` and `target_start` are the places of the sentence in both texts."""
        target_words: dict[str, Any] = {"words": word_spans(self.target) if self.words is None else self.words.target}
        if self.probabilities:
            target_words["probabilities"] = [round(each, 4) for each in self.probabilities]
        return {
            "source": {
                **_place(start, self.source),
                "words": word_spans(self.source) if self.words is None else self.words.source,
            },
            "target": {**_place(target_start, self.target), **target_words},
            "confidence": None if self.confidence is None else round(self.confidence, 4),
            "links": self.links,
            **({"untranslated": True} if self.is_untranslated else {}),
            **({"doubts": list(self.doubts)} if self.doubts else {}),
            **fields_of(self.estimate),
            **({} if self.pivot is None else {"pivot": self.pivot}),
        }

    @property
    def num_bytes(self) -> int:
        """About the memory that it takes in a cache."""
        return 400 + 4 * (len(self.source) + len(self.target)) + 100 * len(self.links)


def detailed_sentences(translator: Translator, texts: Sequence[str]) -> list[DetailedSentence]:
    """The translations of sentences, in order, each as `tfm translate` translates a line with this sentence.

    Args:
        texts: without line breaks.
    """
    # With details the model reads whole lines, so marks around a text and capitals could come out in another form.
    translations = list(translator.translate(texts))
    explained = _explained_lines(translator, texts, translations)
    return [
        detailed_sentence(translator.pipeline, text, translation.text, explained_line)._replace(
            is_untranslated=translation.is_untranslated,
            doubts=translation.doubts,
            estimate=translation.estimate,
            pivot=None if translation.pivot is None else translation.pivot.text,
        )
        for text, translation, explained_line in zip(texts, translations, explained, strict=True)
    ]


def _explained_lines(
    translator: Translator, texts: Sequence[str], translations: Sequence[Translation]
) -> list[Translation]:
    """Translations with details; of two models, the tokens are those of the second, and links go through the pivot."""
    if translator.before is None:
        return list(translator.translate(texts, with_details=True))
    pivots = [each.pivot.text if each.pivot is not None else "" for each in translations]
    first = translator.before.translate(texts, with_details=True)
    second = replace(translator, before=None).translate(pivots, with_details=True)
    return [
        replace(two, details=_details_through(one, pivot, two), pivot=one)
        for one, pivot, two in zip(first, pivots, second, strict=True)
    ]


def _details_through(first: Translation, pivot: str, second: Translation) -> LineDetails | None:
    """The details of the second translation, with links from the words of the first source; none if the pivot differs."""
    if first.details is None or second.details is None:
        return None
    links: dict[Link, None] = {}
    if len(first.text.split()) == len(pivot.split()):
        for other in second.details.links:
            for one in first.details.links:
                if one.target == other.source:
                    links[Link(one.source, other.target)] = None
    return replace(second.details, links=tuple(links))


def detailed_sentence(pipeline: TextPipeline, source: str, target: str, explained: Translation) -> DetailedSentence:
    """A translated sentence with its words.

    Args:
        source: as it was given.
        target: its translation.
        explained: a translation of it with details; the words of its text are those of `target`, or nothing is told.
    """
    details = explained.details
    if details is None or not details.parts:
        return DetailedSentence(source, target, (), None, ())
    confidence = details.confidence
    num_words = len(target.split())
    if num_words != len(explained.text.split()):
        return DetailedSentence(source, target, (), confidence, ())
    # The words of a source that another model has read are not those of this pipeline.
    has_places = target == explained.text and explained.pivot is None
    found = unspaced_words(pipeline, source, explained) if has_places else None
    links = details.links if found is None else found.links
    spans = word_spans(explained.text) if found is None else found.target
    probabilities = _word_probabilities(pipeline, explained.text, spans, details)
    return DetailedSentence(source, target, probabilities, confidence, links, found)


def _word_probabilities(
    pipeline: TextPipeline, text: str, words: Sequence[Span], details: LineDetails
) -> tuple[float, ...]:
    """For each word of a translation, the smallest probability of its tokens; empty if a token cannot be found."""
    smallest = [1.0] * len(words)
    found = _target_spans(pipeline, text, [part.target_ids for part in details.parts])
    for part, spans in zip(details.parts, found or (), strict=found is not None):
        probabilities = part.explanation.token_probs.tolist()
        for probability, token_words in zip(probabilities, words_at(spans, words), strict=True):
            for word in token_words:
                smallest[word] = min(smallest[word], probability)
    return () if found is None else tuple(smallest)


def _place(start: int, text: str) -> dict[str, Any]:
    return {"start": start, "end": start + len(text), "text": text}


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


class PlacedSentences(NamedTuple):
    """A text as sentences and everything between them."""

    sentences: list[PlacedSentence]
    after: str
    """What follows the last sentence."""


def placed_sentences(translator: Translator, text: str) -> PlacedSentences:
    """The sentences that a translator of one direction translates one by one; all other characters stay.

    Args:
        text: may have several lines.
    """
    # Sentences are those of the source, which the first of two models reads.
    pipeline = (translator.before or translator).pipeline
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
                    before = gap_between(_as_read(pipeline, sentence.gap), *translator.languages)
                    start += len(sentence.gap)
                sentences.append(PlacedSentence(start, sentence.text, before))
                start, before = start + len(sentence.text), ""
            done = start
        line_start += len(line) + 1
    return PlacedSentences(sentences, text[done:])


def _as_read(pipeline: TextPipeline, gap: str) -> str:
    return with_plain_spaces(gap) if pipeline.removes_invisible else gap


def _ranges(line: str, *, keeps_layout: bool) -> Iterator[TextRange]:
    """The ranges of a line that are translated, without white space around them."""
    if keeps_layout:
        yield from text_ranges(line, masked(line, find_spans(line), HIDDEN))
    elif line.strip():
        start = len(line) - len(line.lstrip())
        yield TextRange(start, len(line.rstrip()))


def _sentences(pipeline: TextPipeline, text: str) -> list[Sentence]:
    if not pipeline.splits_sentences:
        return [Sentence(text, "")]
    return split_sentences(text, pipeline.languages.source)


@dataclass(frozen=True, slots=True)
class SentenceAlternative:
    """One of the best translations of a sentence."""

    score: float
    """Log-probability / length penalty."""
    details: DetailedSentence

    def as_json(self) -> dict[str, Any]:
        """Plain values, in the form of a target in the stream of a text."""
        values = self.details.as_json(0, 0)
        target = {name: values["target"][name] for name in ("text", "words")}
        if self.details.probabilities:
            target["probabilities"] = values["target"]["probabilities"]
        return {**target, "score": round(self.score, 4), "links": values["links"]}


def sentence_alternatives(
    translator: Translator, sentence: str, prefix: str, *, num_alternatives: int
) -> list[SentenceAlternative]:
    """The best translations of a sentence, best first, all different.

    Args:
        translator: of one direction.
        sentence: the source, without line breaks.
        prefix: whole words with which each translation begins, or nothing.
        num_alternatives: how many translations are told beside the best one; no more than the beam has.

    Raises:
        UsageError: the settings ask for another search than beam search.
        DataError: the model cannot write the prefix.
    """
    if translator.before is not None:
        return _alternatives_of_pivot(translator, sentence, prefix, num_alternatives)
    decoding = _decoding(translator.decoding, num_alternatives)
    pipeline = replace(translator.pipeline, splits_sentences=False)
    searching = replace(translator, pipeline=pipeline, decoding=decoding)
    [translation] = searching.translate([sentence], prefixes=[prefix])
    explained = _explained(searching, sentence, prefix)
    return [
        SentenceAlternative(one.score, explained.get(one.text) or DetailedSentence(sentence, one.text, (), None, ()))
        for one in translation.alternatives
    ]


def _alternatives_of_pivot(
    translator: Translator, sentence: str, prefix: str, num_alternatives: int
) -> list[SentenceAlternative]:
    """What the second of two models can make of what the first one has written; without links to the words of the source."""
    pivot = pivot_of(translator, sentence)
    found = sentence_alternatives(replace(translator, before=None), pivot, prefix, num_alternatives=num_alternatives)
    return [replace(each, details=each.details._replace(source=sentence, links=(), words=None)) for each in found]


def pivot_of(translator: Translator, sentence: str) -> str:
    """What the last model of a translator reads for a sentence: of two models, the translation of the first one."""
    if translator.before is None:
        return sentence
    [first] = translator.before.translate([sentence])
    return first.text


def _decoding(decoding: DecodingConfig, num_alternatives: int) -> DecodingConfig:
    if decoding.diversity or decoding.mbr or decoding.rescore or decoding.sampling:
        raise UsageError(
            "this server gives no other translations, because of its settings",
            hint="leave out decoding.diversity, decoding.mbr, decoding.rescore and decoding.sampling",
        )
    if not num_alternatives:
        return decoding
    # A wider beam could find another best translation than the one that the client has.
    beam_size = decoding.beam_size if decoding.beam_size > 1 else num_alternatives + 1
    num_best = min(num_alternatives + 1, beam_size)
    return decoding.model_copy(update={"num_best": num_best, "beam_size": beam_size})


def _explained(translator: Translator, sentence: str, prefix: str) -> Mapping[str, DetailedSentence]:
    """The hypotheses of the search by their texts; none for a sentence that the model reads in parts."""
    pipeline, engine, decoding = translator.pipeline, translator.engine, translator.decoding
    prepared = pipeline.prepare(sentence, prefix)
    if len(prepared.parts) != 1 or not isinstance(engine, ExplainingEngine):
        return {}
    # The engine of a server has these hypotheses in its cache.
    [request], [found] = prepared.requests, engine.translate(prepared.requests, decoding)
    targets = [hypothesis.ids for hypothesis in found]
    explanations = engine.explain([request] * len(found), targets, batch_tokens=decoding.batch_tokens)
    sentences: dict[str, DetailedSentence] = {}
    for hypothesis, explanation in zip(found, explanations, strict=True):
        explained = {request: hypothesis._replace(explanation=explanation)}
        details = details_of(pipeline, prepared, explained)
        translation = replace(pipeline.restore(prepared, [[hypothesis]]), details=details)
        one = detailed_sentence(pipeline, sentence, translation.text, translation)
        sentences.setdefault(translation.text, one)
    return sentences


if TYPE_CHECKING:
    from torch import Tensor


# A word of more tokens than this is left out.
_MAX_TOKENS = 16
# First tokens that are less probable than this make no likely word.
_MIN_PROBABILITY = 1e-4


class LikelyWord(NamedTuple):
    """A word or a mark that could follow the beginning of a translation."""

    text: str
    """With the space before it, if there is one."""
    prefix: str
    """The beginning of the translation with this word."""
    probability: float
    """The product over the tokens of the word."""


@dataclass(frozen=True, slots=True)
class _Source:
    """What the model is asked about one source."""

    engine: Engine
    tokenizer: "Tokenizer"
    """Of the target."""
    source_ids: TokenIds
    continuing_ids: frozenset[int]
    check: Callable[[], None]

    def next_probabilities(self, prefix: TokenIds) -> "Tensor":
        """(V,) probabilities of the token that follows the beginning of a target."""
        self.check()
        return self.engine.next_token_probabilities(self.source_ids, prefix)

    def word_after(self, prefix: TokenIds, first: int, probability: float) -> tuple[TokenIds, float] | None:
        """The most probable word that begins with a token, and its probability; None if it does not end.

        A space alone, as French has it before a question mark, or a part of a character is no word yet.
        """
        word: TokenIds = (first,)
        while len(word) <= _MAX_TOKENS:
            best_probability, best = self.next_probabilities((*prefix, *word)).max(0)
            is_word = self.tokenizer.has_whole_characters(word) and self.tokenizer.decode(word).strip()
            if is_word and int(best) not in self.continuing_ids:
                return word, probability
            if int(best) == self.tokenizer.eos_id:
                return None
            word, probability = (*word, int(best)), probability * float(best_probability)
        return None


def likely_words(
    translator: Translator,
    sentence: str,
    prefix: str,
    *,
    num_words: int,
    check: Callable[[], None],
) -> list[LikelyWord]:
    """The words that most probably follow the beginning of a translation, the most probable one first.

    A word of several tokens is completed by the most probable tokens. A translation can end at this place, too, so the
    probabilities of all words together are below 1.

    Args:
        translator: of one direction.
        sentence: the source, one sentence.
        prefix: the beginning of the translation: whole words and marks, or nothing.
        num_words: at most this many are told.
        check: called before each step; raises an exception if nobody waits for the words any more.

    Raises:
        DataError: the sentence is too long for the model, or the model cannot write the prefix.
    """
    pipeline = translator.pipeline
    tokenizer = pipeline.target_tokenizer
    source_ids = source_ids_of(translator, pivot_of(translator, sentence))
    before = pipeline.prefix_ids(prefix)
    specials = [tokenizer.unk_id, tokenizer.pad_id, tokenizer.sos_id, tokenizer.eos_id]
    excluded = frozenset([*specials, *tokenizer.tag_ids])
    continuing = frozenset(tokenizer.continuing_ids)
    source = _Source(translator.engine, tokenizer, source_ids, continuing, check)
    written = tokenizer.decode(before)
    found: dict[str, LikelyWord] = {}
    first_probabilities = source.next_probabilities(before)
    most = min(4 * num_words, len(first_probabilities))
    best = first_probabilities.topk(most)
    for token, probability in zip(best.indices.tolist(), best.values.tolist(), strict=True):
        if len(found) == num_words or probability < _MIN_PROBABILITY:
            break
        if token in excluded or (before and token in continuing):
            continue
        word = source.word_after(before, token, probability)
        if word is None:
            continue
        text = tokenizer.decode([*before, *word[0]])
        word_text = text[len(written) :]
        shown = word_text.strip()
        if text.startswith(written) and shown and (shown not in found or word[1] > found[shown].probability):
            found[shown] = LikelyWord(word_text, text, word[1])
    return sorted(found.values(), key=lambda each: -each.probability)


def source_ids_of(translator: Translator, sentence: str) -> TokenIds:
    """The token ids of one sentence.

    Raises:
        DataError: it is blank, or the model cannot read it as a whole.
    """
    requests = replace(translator.pipeline, splits_sentences=False).prepare(sentence).requests
    if len(requests) != 1:
        raise DataError(
            "the sentence is blank or too long for the model",
            hint="give one sentence that the model can read as a whole",
        )
    return requests[0].ids
