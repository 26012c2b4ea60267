"""The PyTorch engine: batches of token ids through a `Transformer` and a search."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer_cli.acceleration.losses_in_parts import sum_loss_in_parts
from transformer_cli.acceleration.prepared_transformer import PreparedTransformer
from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.engine import (
    Explanation,
    Hypothesis,
    Request,
    SpecialIds,
    TokenIds,
)
from transformer_cli.decoding.engines.search_start import started_search
from transformer_cli.decoding.engines.teacher_forcing import TeacherForcing
from transformer_cli.decoding.engines.term_search import (
    beam_groups,
    hypotheses_with_terms,
    room_for_terms,
    term_states,
    without_bans_of_terms,
)
from transformer_cli.decoding.length_batches import length_batches, max_logits
from transformer_cli.decoding.length_limits import LengthLimits, length_limits
from transformer_cli.decoding.search import (
    AttendingScorer,
    beam_search,
    constrained_search,
    diverse_beam_search,
    greedy_search,
    sample_search,
)
from transformer_cli.decoding.search.beam import BeamObserver
from transformer_cli.decoding.search.coverage import CoveragePenalty
from transformer_cli.decoding.search.forced_prefix import ForcedPrefix
from transformer_cli.decoding.search.hooks import (
    BannedTokens,
    MinimalLengths,
    SearchHook,
    WholeCharacters,
)
from transformer_cli.decoding.search.hypotheses import Hypotheses
from transformer_cli.decoding.search.repetition import NoRepeatedNgrams
from transformer_cli.decoding.search.unwanted_sentences import UnwantedSentences
from transformer_cli.model import SmoothedLabels, Transformer
from transformer_cli.model.precision import at_least_float32
from transformer_cli.process.device import Machine
from transformer_cli.process.memory import to_device
from transformer_cli.text import SequenceFormat
from transformer_cli.text.byte_pieces import BytePieces
from transformer_cli.text.padding import pad_ids
from transformer_cli.text.whole_words.word_edges import WordEdges


@dataclass(frozen=True, slots=True)
class PyTorchEngine:
    """An `Engine` with the weights of a model on a device.

    The model must be in eval mode: the engine never changes its mode, and each method raises ValueError for a
    model in training mode. Inference mode and autocast hold for the calling thread only, so that several
    threads may call one engine at the same time.
    """

    model: Transformer
    special_ids: SpecialIds
    sequence_format: SequenceFormat
    machine: Machine
    """The device of the model's weights, and the precision of matrix products."""
    byte_pieces: BytePieces | None = None
    """The bytes of the target tokens; None if each of them consists of whole characters."""
    continuing_ids: tuple[int, ...] = ()
    """The target tokens that continue a word: they never follow the prefix of a request."""
    word_edges: Callable[[], WordEdges] | None = None
    """Returns the word edges of the target tokens, which only terms need; None if each token is a whole word or mark."""
    translating: PreparedTransformer | None = None
    """The same model, prepared for translation; None: the modules translate. See `prepared`."""
    observer: BeamObserver | None = None
    """Is told about each step of a beam search, also with a beam of one; None: nobody is."""
    unwanted: Callable[[], Collection[Request]] | None = None
    """See `interruptible`; None: all requests are searched to their end."""

    def prepared(self) -> "PyTorchEngine":
        """This engine for a model whose weights will not change: on a CPU, it translates faster."""
        precision = self.machine.precision
        is_float32 = all(one.dtype == torch.float32 for one in self.model.parameters())
        if self.machine.device.type != "cpu" or not is_float32 or precision == torch.float16:
            return self
        quantised = self.machine.is_quantised
        translating = PreparedTransformer(self.model, precision, is_quantised=quantised)
        return replace(self, translating=translating)

    def interruptible(self, unwanted: Callable[[], Collection[Request]]) -> "PyTorchEngine":
        """See `InterruptibleEngine.interruptible`."""
        return replace(self, unwanted=unwanted)

    def max_sentences(self, options: DecodingConfig) -> int:
        """See `InterruptibleEngine.max_sentences`."""
        logits_per_sentence = options.num_hypotheses * self.model.output.out_features
        return max(1, max_logits(self.machine.device.type) // logits_per_sentence)

    @property
    def models(self) -> tuple[Transformer, ...]:
        """The models with which this engine translates: one, unless it is an ensemble."""
        return (self.model,)

    def translate(
        self, requests: Sequence[Request], options: DecodingConfig
    ) -> list[list[Hypothesis]]:
        """See `Engine.translate`."""
        found: list[list[Hypothesis]] = [[] for _ in requests]
        with self._inference():
            for of_group, indices in beam_groups(requests, options):
                batches = length_batches(
                    indices,
                    lambda index: len(requests[index].ids),
                    max_tokens=options.batch_tokens,
                    max_items=self.max_sentences(of_group),
                )
                for batch in batches:
                    of_batch = [requests[index] for index in batch]
                    hypotheses = hypotheses_with_terms(of_batch, of_group, self._search)
                    for index, of_sentence in zip(batch, hypotheses, strict=True):
                        found[index] = of_sentence
        return found

    def negative_log_likelihood(
        self, sources: Sequence[TokenIds], targets: Sequence[TokenIds], *, batch_tokens: int
    ) -> float:
        """See `Engine.negative_log_likelihood`."""
        total = 0.0
        most = max_logits(self.machine.device.type) // self.model.output.out_features
        batches = length_batches(
            list(zip(sources, targets, strict=True)),
            lambda pair: max(map(len, pair)),
            max_tokens=min(batch_tokens, most),
        )
        pad_id = self.special_ids.pad_id
        with self._inference():
            for batch in batches:
                source_ids, source_mask = self._padded([source for source, _ in batch])
                target_ids, is_real = pad_ids([target for _, target in batch], pad_id)
                inputs = self.sequence_format.decoder_inputs(
                    target_ids, is_real, sos_id=self.special_ids.sos_id, pad_id=pad_id
                )
                logits = self._logits(source_ids, source_mask, self._on_device(inputs))
                ids = self._on_device(target_ids)
                sums = sum_loss_in_parts(logits, ids, SmoothedLabels(pad_id))
                total += sums.negative_log_likelihood.item()
        return total

    def next_token_probabilities(self, source: TokenIds, prefix: TokenIds) -> Tensor:
        """See `Engine.next_token_probabilities`."""
        with self._inference():
            source_ids, source_mask = self._padded([source])
            decoder_input_ids, _ = self._padded([(self.special_ids.sos_id, *prefix)])
            logits = self._logits(source_ids, source_mask, decoder_input_ids)  # (1, T, V)
        return at_least_float32(logits[0, -1]).softmax(-1).cpu()

    def explain(
        self,
        requests: Sequence[Request],
        targets: Sequence[TokenIds],
        *,
        batch_tokens: int,
        num_best: int = 0,
    ) -> list[Explanation]:
        """See `ExplainingEngine.explain`."""
        forcing = TeacherForcing(
            self.models, self.special_ids, self.sequence_format, self.machine.device
        )
        sources = [request.ids for request in requests]
        with self._inference():
            return forcing.explain(sources, targets, batch_tokens=batch_tokens, num_best=num_best)

    @contextmanager
    def _inference(self) -> Iterator[None]:
        """Without gradients, in the machine's precision."""
        if any(model.training for model in self.models):
            raise ValueError("the model is in training mode; call model.eval() before translating")
        with torch.inference_mode(), self.machine.autocast():
            yield

    def _search(
        self, requests: Sequence[Request], options: DecodingConfig, *, goes_past_end: bool
    ) -> Hypotheses:
        source_ids, source_mask = self._padded([request.ids for request in requests])
        has_coverage = options.coverage_penalty > 0.0
        scorer = self._started(source_ids, source_mask, with_attention=has_coverage)
        limits = [self._length_limits(request, options) for request in requests]
        max_lengths = self._to_device([limit.largest for limit in limits])
        states, of_hooks = None, options
        if any(request.terms for request in requests):
            no_edges = WordEdges.none(self.model.output.out_features)
            states = term_states(
                requests,
                self.word_edges() if self.word_edges else no_edges,
                self.machine.device,
                has_bytes=self.byte_pieces is not None,
                goes_past_end=goes_past_end,
            )
            room = room_for_terms(requests, states, most=self._most_tokens)
            max_lengths = max_lengths.maximum(room)
            of_hooks = without_bans_of_terms(options)
        hooks = self._hooks(requests, of_hooks, max_lengths)
        if not goes_past_end and any(limit.smallest > 1 for limit in limits):
            min_lengths = self._to_device([limit.smallest for limit in limits])
            hooks.append(MinimalLengths(min_lengths, self.special_ids.eos_id))
        if has_coverage:
            facts = source_mask, max_lengths, self.special_ids.eos_id, options
            hooks.append(CoveragePenalty(scorer.attention, *facts))
        arguments = scorer, self.special_ids, max_lengths, options, hooks
        if states is not None:
            return constrained_search(*arguments, states)
        if options.sampling is not None:
            seeds = self._to_device([request.seed for request in requests])
            return sample_search(*arguments, seeds)
        if options.diversity is not None:
            return diverse_beam_search(*arguments)
        if self.observer is not None:
            return beam_search(*arguments, self.observer)
        search = greedy_search if options.beam_size == 1 else beam_search
        return search(*arguments)

    def _started(
        self, source_ids: Tensor, source_mask: Tensor | None, *, with_attention: bool
    ) -> AttendingScorer:
        """The scorer at the beginning of a search, one row for each source."""
        # A source without tokens is too rare for a prepared form.
        has_tokens = source_mask is None or bool(source_mask.any(1).all())
        if self.translating is not None and has_tokens and not with_attention:
            memory = self.translating.encode(source_ids, source_mask)  # (B, S, D)
            return cast(AttendingScorer, self.translating.start_decoding(memory, source_mask))
        return started_search(self.model, source_ids, source_mask, with_attention=with_attention)

    def _logits(
        self, source_ids: Tensor, source_mask: Tensor | None, decoder_input_ids: Tensor
    ) -> Tensor:
        """(B, T, V): the scores of all next tokens of given targets."""
        return self.model(source_ids, source_mask, decoder_input_ids)

    def _hooks(
        self, requests: Sequence[Request], options: DecodingConfig, max_lengths: Tensor
    ) -> list[SearchHook]:
        """New hooks for one search."""
        banned_ids = [self.special_ids.pad_id, self.special_ids.sos_id, *self.special_ids.tag_ids]
        if not options.allow_unknown:
            banned_ids.append(self.special_ids.unk_id)
        if not self.sequence_format.has_end:
            banned_ids.append(self.special_ids.eos_id)
        hooks: list[SearchHook] = [BannedTokens(banned_ids)]
        if options.no_repeat_ngram_size is not None:
            prefix_lengths = self._to_device([len(request.prefix) for request in requests])
            hooks.append(NoRepeatedNgrams(options.no_repeat_ngram_size, prefix_lengths))
        if self.byte_pieces is not None:
            hooks.append(WholeCharacters(self.byte_pieces, max_lengths))
        if any(request.prefix for request in requests):
            prefixes = [request.prefix for request in requests]
            device = self.machine.device
            hooks.append(ForcedPrefix(prefixes, continuing_ids=self.continuing_ids, device=device))
        if self.unwanted is not None:
            hooks.append(UnwantedSentences(requests, self.unwanted, self.machine.device))
        return hooks

    @property
    def _most_tokens(self) -> int | None:
        """The largest number of tokens that all models can write; None if there is no limit."""
        configs = [model.config for model in self.models]
        most = [config.max_length for config in configs if config.positions == "learned"]
        return min(most, default=None)

    def _length_limits(self, request: Request, options: DecodingConfig) -> LengthLimits:
        """The number of tokens of a translation; without [EOS], it is fixed."""
        fixed_length = self.sequence_format.fixed_length(len(request.ids))
        if fixed_length is not None:
            return LengthLimits(0, fixed_length)  # there is no [EOS] to ban
        return length_limits(
            len(request.ids),
            options,
            prefix_length=len(request.prefix),
            most=self._most_tokens,
        )

    def _padded(self, sequences: Sequence[TokenIds]) -> tuple[Tensor, Tensor | None]:
        """(B, L) int64 ids and (B, L) bool, True for a token, on the device; None if there is no padding."""
        ids, is_real = pad_ids(sequences, self.special_ids.pad_id)
        has_padding = not is_real.size or not is_real.all()
        return self._on_device(ids), self._on_device(is_real) if has_padding else None

    def _to_device(self, numbers: Sequence[int]) -> Tensor:
        return to_device(torch.tensor(numbers), self.machine.device)

    def _on_device(self, array: NDArray[Any]) -> Tensor:
        return to_device(torch.from_numpy(array), self.machine.device)
