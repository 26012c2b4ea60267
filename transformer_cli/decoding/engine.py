"""The interface of an engine: token ids and options in, hypotheses out; what engines share: batches, limits of lengths, and a check that two engines agree.

The translator knows only this interface, so that PyTorch, another library or several models together can
do the work.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar, runtime_checkable

from transformer_cli.config import DecodingConfig
from transformer_cli.process.errors import DataError
from transformer_cli.text import Tokenizer

if TYPE_CHECKING:  # a translation with another library waits neither for PyTorch nor for numpy
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

TokenIds = tuple[int, ...]


class SpecialIds(NamedTuple):
    """The ids of the special tokens of the target vocabulary."""

    unk_id: int
    pad_id: int
    sos_id: int
    eos_id: int
    tag_ids: Sequence[int] = ()
    """The tags of the target languages, which stand in sources only."""

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "SpecialIds":
        """The special tokens of a tokenizer."""
        return cls(
            unk_id=tokenizer.unk_id,
            pad_id=tokenizer.pad_id,
            sos_id=tokenizer.sos_id,
            eos_id=tokenizer.eos_id,
            tag_ids=tokenizer.tag_ids,
        )


class Term(NamedTuple):
    """Words that a translation must contain, in one of several forms."""

    forms: tuple[TokenIds, ...]
    """The token ids of each form; none is empty. One of the forms must stand in the translation."""
    first_forms: tuple[TokenIds, ...] = ()
    """Forms that count only as the first tokens of a translation, such as one with a capital letter."""

    @property
    def all_forms(self) -> tuple[TokenIds, ...]:
        """The forms of both kinds."""
        return (*self.forms, *self.first_forms)


class Request(NamedTuple):
    """What an engine translates: one sentence or a part of one, and what holds for this sentence alone."""

    ids: TokenIds
    """The token ids of the source, as in the training of the model: with [EOS] or without."""
    prefix: TokenIds = ()
    """The tokens with which each translation begins: whole words; a new word or a mark follows them."""
    terms: tuple[Term, ...] = ()
    """Terms that every hypothesis contains as whole words. A term that stands here twice stands twice in the
    translation, and so on. If a term contains [UNK], the translation has no other [UNK]."""
    seed: int = 0
    """Of the samples, from 0 to 2^63 - 1: requests with other seeds get other random numbers. 0 without sampling."""

    @property
    def is_free(self) -> bool:
        """Whether the source has tokens and nothing is demanded of its translation: no prefix, no terms, no samples."""
        return bool(self.ids) and self == Request(self.ids)


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """What a model computes about given target tokens after a given source: probabilities and attention."""

    token_log_probs: "NDArray[np.float32]"
    """(T,): entry i is log P(target token i | the source, the target tokens before it), in nats."""
    attention: "NDArray[np.float32]"
    """(T, S): row i holds the weights with which the model read the source when it predicted target token i,
    as a mean over the heads of one decoder layer, or with the head of `model.alignment_head`. Each row sums to 1."""
    alignment: tuple[int, ...]
    """T numbers: entry i is the index of the source token with the largest weight in row i, so target token i is
    aligned to source token `alignment[i]`. [EOS] and tags of the source are chosen only if it has nothing else."""
    best_ids: "NDArray[np.int64]"
    """(T, K): row i holds the K most probable tokens in the place of target token i, best first; K may be 0."""
    best_log_probs: "NDArray[np.float32]"
    """(T, K): their log-probabilities, in nats."""

    @property
    def token_probs(self) -> "NDArray[np.float32]":
        """(T,): the probabilities of the target tokens."""
        import numpy as np

        return np.exp(self.token_log_probs)

    @property
    def best_probs(self) -> "NDArray[np.float32]":
        """(T, K): the probabilities of `best_ids`."""
        import numpy as np

        return np.exp(self.best_log_probs)


class Hypothesis(NamedTuple):
    """One translation of one source, as token ids."""

    ids: TokenIds
    """Ends with [EOS], unless the search stopped at the maximal length."""
    score: float
    """Log-probability / length penalty."""
    explanation: Explanation | None = None
    """None unless it was asked for: see `ExplainingEngine`."""


def length_penalty(length: int, normalization: str, alpha: float) -> float:
    """The divisor of the log-probability of a hypothesis with `length` tokens; it never falls with the length.

    gnmt: ((5 + length) / 6) ^ alpha. average: length ^ alpha; no hypothesis is shorter than one token.

    Source: gnmt is in Wu et al. 2016, equation 14.
    """
    base = (5.0 + length) / 6.0 if normalization == "gnmt" else float(max(1, length))
    return base**alpha


def score_of_given(explanation: Explanation, options: DecodingConfig) -> float:
    """The score that a search with these options gives the target of an explanation."""
    log_probability = float(explanation.token_log_probs.sum(dtype="float64"))
    length = len(explanation.token_log_probs)
    score = log_probability / length_penalty(length, options.length_normalization, options.length_penalty)
    if not options.coverage_penalty:
        return score
    coverage = explanation.attention.sum(0, dtype="float64")
    # The smallest normal float32, as in the search: a weight that underflows to 0 does not forbid the translation.
    return score + options.coverage_penalty * sum(math.log(min(1.0, max(one, 2.0**-126))) for one in coverage.tolist())


def search_confidence(hypothesis: Hypothesis, options: DecodingConfig) -> float | None:
    """The geometric mean of the probabilities of the tokens of a hypothesis, 0 to 1, from its score.

    None where the score has more in it than probabilities: a coverage penalty, samples at a temperature.
    """
    if options.coverage_penalty or options.sampling is not None or not hypothesis.ids:
        return None
    length = len(hypothesis.ids)
    # What the score is multiplied with for the mean log-probability of the tokens.
    per_token = length_penalty(length, options.length_normalization, options.length_penalty) / length
    return math.exp(min(0.0, hypothesis.score * per_token))


# Settings of decoding. An engine or a fast form of a search lists those that it knows. So a setting that is new does
# not stay without effect there: the engine refuses it, or the general search follows it.


TEXT_SETTINGS = frozenset({"engine", "split_sentences", "keep_layout", "known_spellings", "keep_text", "repair"})
"""The settings that no search needs to know: they choose the engine, or the text pipeline does them with every engine."""


def unknown_settings(options: DecodingConfig, known: Collection[str]) -> list[str]:
    """The settings that differ from their defaults and are not among the `known` ones, in alphabetical order."""
    fields = sorted(type(options).model_fields.items())
    return [name for name, field in fields if name not in known and getattr(options, name) != field.default]


class Engine(Protocol):
    """A trained model that is ready to translate.

    An engine does not change after it is built, and several threads may call it at the same time.
    """

    def translate(self, requests: Sequence[Request], options: DecodingConfig) -> list[list[Hypothesis]]:
        """Translate sources; the engine makes batches of similar length by itself.

        Args:
            requests: the sources.
            options: the beam, the limits and the size of a batch.

        Returns:
            For each request, in their order, at most `options.num_best` hypotheses, best first, or samples in
            the order in which they were drawn. The list of a request is empty if the search found no possible
            translation.
        """

    def negative_log_likelihood(
        self, sources: Sequence[TokenIds], targets: Sequence[TokenIds], *, batch_tokens: int
    ) -> float:
        """How probable given targets are: -log P(target | source), summed over all targets, in nats.

        Args:
            sources: the token ids of each source, as in `Request.ids`.
            targets: one for each source, as the model was trained to predict them.
            batch_tokens: the largest number of tokens in a batch, padding included.
        """

    def next_token_probabilities(self, source: TokenIds, prefix: TokenIds) -> "Tensor":
        """(V,) probabilities of the token that follows the beginning of a target; they sum to 1.

        Args:
            source: the token ids of the source, as in `Request.ids`.
            prefix: the first tokens of the target, without [SOS].
        """


@runtime_checkable
class ExplainingEngine(Engine, Protocol):
    """An engine that can also say how probable given target tokens are, and what the model attended to."""

    def explain(
        self,
        requests: Sequence[Request],
        targets: Sequence[TokenIds],
        *,
        batch_tokens: int,
        num_best: int = 0,
    ) -> list[Explanation]:
        """Probabilities and attention for given targets, by teacher forcing: no search, all positions at once.

        The alignments are of target token i to source token j.

        Args:
            requests: the sources.
            targets: one for each source, such as `Hypothesis.ids`; [EOS] at the end gets a probability, too.
            batch_tokens: the largest number of tokens in a batch, padding included.
            num_best: K, the number of most probable tokens that are listed for each place.

        Returns:
            One for each pair, in their order.

        Source of the alignments: Garg et al. 2019, "Jointly Learning to Align and Translate with Transformer
        Models", section 4.2.
        """


@runtime_checkable
class LimitedEngine(Engine, Protocol):
    """An engine that follows only some of the settings of decoding."""

    def with_all_settings(self) -> Engine:
        """An engine of the same model that follows every setting."""


@runtime_checkable
class InterruptibleEngine(Engine, Protocol):
    """An engine whose search can stop for some of its sentences."""

    def interruptible(self, unwanted: Callable[[], Collection[Request]]) -> Engine:
        """The same engine for one call of `translate`: it asks at each step which requests nobody needs any more.

        The search of these requests ends, and they get an empty or unfinished list. The others get what they would have got.

        Args:
            unwanted: returns such requests; their number never falls.
        """

    def max_sentences(self, options: DecodingConfig) -> int:
        """The largest number of sentences that one search reads; more are searched one batch after the other."""


# Batches of sources of similar lengths.


# The largest number of logits of a batch. Each position has one logit per token of the vocabulary. A GPU gets few, large
# kernels, with 256 MiB of logits in float32. On a CPU, 16 MiB are enough for its speed, and memory stays small.
MAX_LOGITS = 2**26
MAX_LOGITS_ON_CPU = 2**22

Item = TypeVar("Item")
Watch = Callable[[int, int], object]
"""Gets the number of items that are done, and of all items."""
_watch: ContextVar[Watch | None] = ContextVar("_watch", default=None)


@contextmanager
def batches_watched(watch: Watch) -> Iterator[None]:
    """A block in which a function hears of each batch of this thread that is done; for progress bars."""
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)


def max_logits(device_type: str) -> int:
    """The largest number of logits of a batch on a device of this type, such as cpu or cuda."""
    return MAX_LOGITS_ON_CPU if device_type == "cpu" else MAX_LOGITS


def length_batches(
    items: Iterable[Item],
    length: Callable[[Item], int],
    *,
    max_tokens: int,
    max_items: int | None = None,
) -> Iterator[list[Item]]:
    """Sort items by length and cut them into batches, the longest items first.

    Args:
        items: anything that has a length.
        length: the number of tokens of an item.
        max_tokens: the largest number of tokens, with padding; a longer item is a batch of its own.
        max_items: the largest number of items in a batch; None: no limit.
    """
    batch: list[Item] = []
    longest, num_done = 0, 0
    in_order = sorted(items, key=length, reverse=True)
    tell = _watch.get() or (lambda num_done, num_all: None)
    for item in in_order:
        if batch and ((len(batch) + 1) * longest > max_tokens or len(batch) == max_items):
            yield batch
            num_done += len(batch)
            tell(num_done, len(in_order))
            batch = []
        longest = longest if batch else length(item)
        batch.append(item)
    if batch:
        yield batch
        tell(len(in_order), len(in_order))


# Limits of the length of a translation.


class LengthLimits(NamedTuple):
    """Numbers of tokens, [EOS] included; `smallest` is never above `largest`."""

    smallest: int
    largest: int


def length_limits(
    source_length: int,
    options: DecodingConfig,
    *,
    prefix_length: int = 0,
    most: int | None = None,
) -> LengthLimits:
    """The limits of the translation of one source.

    Args:
        source_length: the number of tokens of the source, as the model reads it.
        options: the limits of the config; a forced prefix does not count.
        prefix_length: the number of tokens of the forced prefix.
        most: the largest number of tokens that the model can decode; None: any number.
    """
    upper = [] if options.max_length is None else [options.max_length]
    if options.max_length_ratio is not None:
        upper.append(max(1, math.floor(options.max_length_ratio * source_length)))
    if not upper:
        upper.append(2 * source_length + 20)
    largest = min(upper) + prefix_length
    if most is not None:
        largest = min(largest, most)
    smallest = options.min_length or 1
    if options.min_length_ratio is not None:
        smallest = max(smallest, math.ceil(options.min_length_ratio * source_length))
    return LengthLimits(min(smallest + prefix_length, largest), largest)


# The check that two engines of the same model find the same translations.


TIE = 1e-3
"""Two tokens whose probabilities differ by less than this are equally good: rounding decides between them."""


def require_agreement(engine: Engine, reference: Engine, requests: Sequence[Request], *, what: str) -> None:
    """Check that greedy search finds the same tokens with both engines, in float32, up to the first tie.

    Args:
        engine: the one that is checked.
        reference: the one that is right.
        requests: sources that both translate.
        what: names the checked model in the message.

    Raises:
        DataError: a translation differs.
    """
    options = DecodingConfig(beam_size=1)
    found = engine.translate(requests, options)
    expected = reference.translate(requests, options)
    differing = [
        number
        for number, both in enumerate(zip(requests, found, expected, strict=True), 1)
        if not _agree(reference, *both)
    ]
    if differing:
        raise DataError(
            f"{what}: {len(differing)} of {len(requests)} greedy translations differ from those of PyTorch; "
            f"the first is number {differing[0]}",
            hint="set decoding.engine=torch, and report this model's config",
        )


def _agree(reference: Engine, request: Request, found: list[Hypothesis], expected: list[Hypothesis]) -> bool:
    if not found or not expected:
        return found == expected
    both = [*zip(found[0].ids, expected[0].ids, strict=False)]
    num_equal = len([*takewhile(lambda pair: pair[0] == pair[1], both)])
    if num_equal == len(both):
        return len(found[0].ids) == len(expected[0].ids)
    prefix = found[0].ids[:num_equal]
    probabilities = reference.next_token_probabilities(request.ids, prefix).tolist()
    first, second = (probabilities[token] for token in both[num_equal])
    return abs(first - second) < TIE
