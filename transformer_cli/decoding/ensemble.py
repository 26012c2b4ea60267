"""Ensembles: several models with one target vocabulary, and the mean of their probabilities."""

import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from itertools import takewhile

import torch
from torch import Tensor

from transformer_cli.decoding.engine import TokenIds
from transformer_cli.decoding.pytorch_engine import (
    PyTorchEngine,
    logits_and_attention,
    started_search,
)
from transformer_cli.decoding.search import AttendingScorer
from transformer_cli.decoding.text_pipeline import TextPipeline
from transformer_cli.decoding.translator import Translator
from transformer_cli.model import Transformer
from transformer_cli.model.layers import at_least_float32
from transformer_cli.process.device import to_device
from transformer_cli.process.errors import UsageError
from transformer_cli.text import SequenceFormat, Tokenizer
from transformer_cli.text.seen_words import SeenWords
from transformer_cli.text.sentences import SeenLengths
from transformer_cli.text.token_ids import pad_ids
from transformer_cli.text.tokenizer_file import SentencePieceLayout


@dataclass(frozen=True, slots=True)
class SourceReading:
    """Token ids of one tokenizer to those of another one, for the same text."""

    given: Tokenizer
    """Of the ids that come in; it can encode every text, and so gives every text back."""
    own: Tokenizer
    """Of the model that reads."""
    max_length: int
    """The largest number of tokens that the model can read, [EOS] and tags included."""

    def ids(self, given_ids: TokenIds) -> TokenIds:
        """The ids of the same text, with the same tags before it, and with [EOS] if it has one."""
        is_tag = self.given.tag_ids.__contains__
        names = self.given.tokens(takewhile(is_tag, given_ids))
        tags = [self.own.tag_id(name) for name in names]
        end = [self.own.eos_id] if given_ids[-1:] == (self.given.eos_id,) else []
        most = max(0, self.max_length - len(tags) - len(end))
        return (*tags, *self.own.encode(self.given.decode(given_ids))[:most], *end)

    def batch(self, source_ids: Tensor, source_mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """The same for padded sources.

        Args:
            source_ids: (B, S) int64.
            source_mask: (B, S) bool, True for a token; None: all are tokens.

        Returns:
            (B, S') int64 and (B, S') bool, on the device of `source_ids`.
        """
        mask = torch.ones_like(source_ids, dtype=torch.bool) if source_mask is None else source_mask
        rows = zip(source_ids.tolist(), mask.sum(1).tolist(), strict=True)
        read = [self.ids(tuple(row[:num_tokens])) for row, num_tokens in rows]
        ids, is_real = map(torch.from_numpy, pad_ids(read, self.own.pad_id))
        return to_device(ids, source_ids.device), to_device(is_real, source_ids.device)


def read_by_all(
    readings: Sequence[SourceReading | None], source_ids: Tensor, source_mask: Tensor | None
) -> list[tuple[Tensor, Tensor | None]]:
    """The sources as each model of an ensemble reads them: None stands for a model that reads the given ids."""
    return [(source_ids, source_mask) if one is None else one.batch(source_ids, source_mask) for one in readings]


def mean_log_probs(log_probs: Sequence[Tensor]) -> Tensor:
    """The logarithm of the mean probability, of the shape of each of the given log-probabilities.

    Source: the ensembles of fairseq, and of Sockeye in its default mode, `linear`.
    """
    return reduce(torch.logaddexp, log_probs) - math.log(len(log_probs))


class MeanScorer:
    """A `Scorer` whose probabilities are the mean of those of several scorers."""

    def __init__(self, scorers: Sequence[AttendingScorer], attending: Sequence[AttendingScorer]) -> None:
        """
        Args:
            scorers: of all models.
            attending: those of them that read the same source tokens, so that their weights have a mean.
        """
        self._scorers = scorers
        self._attending = attending

    def advance(self, last_ids: Tensor) -> Tensor:
        """(R,) int64 to (R, V): see `Scorer.advance`."""
        return mean_log_probs([at_least_float32(scorer.advance(last_ids)) for scorer in self._scorers])

    def attention(self) -> Tensor:
        """(R, S): the mean of the weights; see `AttendingScorer.attention`."""
        return torch.stack([scorer.attention() for scorer in self._attending]).mean(0)

    def select(self, rows: Tensor, *, keeps_sources: bool = False) -> None:
        """The rows of all scorers move alike."""
        for scorer in self._scorers:
            scorer.select(rows, keeps_sources=keeps_sources)


@dataclass(frozen=True, slots=True)
class EnsembleEngine(PyTorchEngine):
    """An `Engine` with several models: the probability of a token is the mean of the probabilities of all models.

    All models predict tokens of the same vocabulary. Sources are given as token ids of the first model, which is `model`.
    Attention is the mean over the models that read these ids.
    """

    readings: tuple[SourceReading | None, ...] = ()
    """For each of `models`, how it reads a source; None: it reads the given ids, as the first model does."""

    @classmethod
    def of(cls, engines: Sequence[PyTorchEngine], readings: Sequence[SourceReading | None]) -> "EnsembleEngine":
        """The ensemble of the models of engines that are otherwise alike.

        Args:
            readings: one for each engine.
        """
        first = replace(engines[0], others=tuple(engine.model for engine in engines[1:]))
        shared = {field.name: getattr(first, field.name) for field in fields(PyTorchEngine)}
        return cls(**shared, readings=tuple(readings))

    @property
    def models(self) -> tuple[Transformer, ...]:
        """All models of the ensemble."""
        return (self.model, *self.others)

    def started(self, source_ids: Tensor, source_mask: Tensor | None, *, with_attention: bool) -> AttendingScorer:
        """The scorer of all models at the beginning of a search."""
        read = read_by_all(self.readings, source_ids, source_mask)
        scorers = [
            started_search(model, *source, with_attention=with_attention and reading is None)
            for model, source, reading in zip(self.models, read, self.readings, strict=True)
        ]
        pairs = zip(scorers, self.readings, strict=True)
        return MeanScorer(scorers, [scorer for scorer, reading in pairs if reading is None])

    def _logits(self, source_ids: Tensor, source_mask: Tensor | None, decoder_input_ids: Tensor) -> Tensor:
        read = read_by_all(self.readings, source_ids, source_mask)
        all_logits = (model(*source, decoder_input_ids) for model, source in zip(self.models, read, strict=True))
        return mean_log_probs([at_least_float32(one).log_softmax(-1) for one in all_logits])

    def _predicted(self, source_ids: Tensor, source_mask: Tensor, decoder_input_ids: Tensor) -> tuple[Tensor, Tensor]:
        """The means over the models; only models that read the given ids have attention on them."""
        read = read_by_all(self.readings, source_ids, source_mask)
        log_probs, attention = [], []
        for model, source, reading in zip(self.models, read, self.readings, strict=True):
            logits, weights = logits_and_attention(model, *source, decoder_input_ids)
            log_probs.append(at_least_float32(logits).log_softmax(-1))
            if reading is None:
                attention.append(weights)
        return mean_log_probs(log_probs), torch.stack(attention).mean(0)


def combine_translators(translators: Sequence[Translator], names: Sequence[str]) -> Translator:
    """The translator of an ensemble: the probability of a token is the mean of the probabilities of all models.

    Args:
        translators: of single models, on one device. The first one gives the settings of decoding; if it is the only
            one, it is returned.
        names: the name of each, for messages.

    Raises:
        UsageError: two of them differ in their vocabularies, languages or formats; the message says in which.
    """
    first, *others = translators
    if not others:
        return first
    for name, other in zip(names[1:], others, strict=True):
        for difference in _differences(first.pipeline, other.pipeline):
            raise UsageError(
                f"{names[0]} and {name} cannot form an ensemble: {difference}",
                hint="an ensemble needs runs with the same target vocabulary and languages, such as runs on the same corpus "
                "files that differ only in seed; if only the source vocabularies differ, name a run first whose source "
                "tokenizer is tokenizer.kind bpe or unigram",
            )
    engines = [each.engine for each in translators if isinstance(each.engine, PyTorchEngine)]
    if len(engines) < len(translators):
        raise UsageError("an ensemble needs models that run with PyTorch")
    max_length = min(each.pipeline.max_length for each in translators)
    readings = [_reading(first.pipeline, each.pipeline, max_length) for each in translators]
    pipeline = replace(
        first.pipeline,
        max_length=max_length,
        also_read_by=tuple(one.own for one in readings if one is not None),
        seen=_seen_by_all([each.pipeline.seen for each in translators]),
        seen_words=_words_seen_by_all([each.pipeline.seen_words for each in translators]),
        qualities={},  # a calibration is about one model
    )
    return replace(first, pipeline=pipeline, engine=EnsembleEngine.of(engines, readings))


def _reading(first: TextPipeline, other: TextPipeline, max_length: int) -> SourceReading | None:
    """How a model reads the source tokens of the first one; None if both have the same tokens."""
    given, own = first.source_tokenizer, other.source_tokenizer
    is_same = given is own or given.to_file() == own.to_file()
    return None if is_same else SourceReading(given, own, max_length)


def _seen_by_all(seen: Sequence[SeenLengths]) -> SeenLengths:
    """The lengths that every model of an ensemble knows, as far as they are recorded."""
    longest = [each.longest for each in seen if each.longest is not None]
    ratios = [each.smallest_ratio for each in seen if each.smallest_ratio is not None]
    return SeenLengths(min(longest, default=None), min(ratios, default=None))


def _words_seen_by_all(seen: Sequence[Container[str] | None]) -> SeenWords | None:
    """The words that every model of an ensemble knows; None if those of one are not known."""
    known = [each for each in seen if isinstance(each, SeenWords)]
    return reduce(SeenWords.common, known) if len(known) == len(seen) else None


def _gives_back_every_text(tokenizer: Tokenizer) -> bool:
    """Whether a text can be made again from its tokens: not from those that stand for several texts, such as [UNK]."""
    layout = tokenizer.parts.layout
    return layout.kind != "WordLevel" and not isinstance(layout, SentencePieceLayout)


def _differences(first: TextPipeline, other: TextPipeline) -> Iterator[str]:
    """What differs between two models, and how."""
    tokenizers = [("target", first.target_tokenizer, other.target_tokenizer)]
    if not _gives_back_every_text(first.source_tokenizer):
        tokenizers.append(("source", first.source_tokenizer, other.source_tokenizer))
    for side, one, two in tokenizers:
        if one.to_file() != two.to_file():
            yield f"the {side} vocabularies differ: {_difference(one, two)}"
    compared = (
        ("languages", _directions(first), _directions(other)),
        ("formats of sequences", _format(first), _format(other)),
        ("rules of normalisation", _normalization(first), _normalization(other)),
    )
    for what, first_value, other_value in compared:
        if first_value != other_value:
            yield f"the {what} differ: {first_value}, and {other_value}"


def _difference(one: Tokenizer, two: Tokenizer) -> str:
    if one.vocab_size != two.vocab_size:
        return f"{one.vocab_size:,} and {two.vocab_size:,} tokens"
    for index, (first_entry, second_entry) in enumerate(zip(one.entries, two.entries, strict=True)):
        if first_entry != second_entry:
            return f"token {index} is {first_entry!r} and {second_entry!r}"
    return "the same tokens, but text is split into them by other rules"


def _directions(pipeline: TextPipeline) -> str:
    return ", ".join(map(str, pipeline.data.directions))


def _format(pipeline: TextPipeline) -> str:
    sequence_format = SequenceFormat.of(pipeline.data)
    end = "with [EOS]" if sequence_format.has_end else "without [EOS]"
    shift = "shifted" if sequence_format.is_shifted else "not shifted"
    return f"{end}, {shift}, length change {sequence_format.length_change}"


def _normalization(pipeline: TextPipeline) -> str:
    rules = pipeline.data.cleaning
    return (
        f"normalize_unicode {rules.normalize_unicode}, remove_control_characters {rules.remove_control_characters}, "
        f"normalize_invisible {rules.normalize_invisible is not False}"
    )
