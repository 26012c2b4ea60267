"""The PyTorch engine: batches of token ids through a `Transformer` and a search."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer_cli.acceleration.accelerate import TransformerOnGpu, accelerate, with_cast_layers
from transformer_cli.acceleration.cpu_training import is_known_to_have_tokens, with_tokens_in_all
from transformer_cli.acceleration.losses import sum_loss_in_parts
from transformer_cli.acceleration.native_search import Following, NativeSearch, Rules, Shortlisted
from transformer_cli.acceleration.prepared_transformer import PreparedTransformer
from transformer_cli.acceleration.recorded_decoder import RecordedSteps
from transformer_cli.checkpoint.trained_files import TrainedModel
from transformer_cli.config import Config, DecodingConfig
from transformer_cli.decoding.engine import (
    TEXT_SETTINGS,
    Explanation,
    Hypothesis,
    LengthLimits,
    Request,
    SpecialIds,
    TokenIds,
    length_batches,
    length_limits,
    max_logits,
    unknown_settings,
)
from transformer_cli.decoding.search import (
    AttendingScorer,
    beam_search,
    constrained_search,
    diverse_beam_search,
    greedy_search,
    sample_search,
)
from transformer_cli.decoding.search.beam import (
    BannedTokens,
    BeamObserver,
    CoveragePenalty,
    ForcedPrefix,
    Hypotheses,
    MinimalLengths,
    NoRepeatedNgrams,
    SearchHook,
    UnwantedSentences,
    WholeCharacters,
    penalties_up_to,
)
from transformer_cli.decoding.search.constrained import (
    beam_groups,
    room_for_terms,
    term_states,
)
from transformer_cli.decoding.shortlist import Shortlist, load_shortlist, shortlist_path
from transformer_cli.model import SmoothedLabels
from transformer_cli.model.layers import DecoderLayer, aligning_weights, at_least_float32
from transformer_cli.model.loss import sum_loss
from transformer_cli.model.transformer import DecoderState, Transformer
from transformer_cli.process import plain_form
from transformer_cli.process.device import Machine, prepare_machine, to_device
from transformer_cli.process.errors import ConfigError
from transformer_cli.text import SequenceFormat, Tokenizer
from transformer_cli.text.token_ids import WordEdges, pad_ids
from transformer_cli.text.tokenizer_file import BytePieces

# What the search in one call of a kernel does, and what a search among a shortlist does. A setting that is not listed
# takes the general search with the whole vocabulary; `shortlist` itself is followed or left out here.
_KNOWN_TO_KERNEL = TEXT_SETTINGS | {
    "beam_size",
    "length_penalty",
    "length_normalization",
    "num_best",
    "no_repeat_ngram_size",
    "max_length",
    "max_length_ratio",
    "min_length",
    "min_length_ratio",
    "allow_unknown",
    "batch_tokens",
    "shortlist",
    "mbr",
    "rescore",  # the last two choose among what was found
}
_KNOWN_TO_SHORTLIST = _KNOWN_TO_KERNEL | {"diversity"}


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
    continuing_ids: Callable[[], tuple[int, ...]] = tuple
    """Returns the target tokens that continue a word, which never follow the prefix of a request; only prefixes need them."""
    word_edges: Callable[[], WordEdges] | None = None
    """Returns the word edges of the target tokens, which only terms need; None if each token is a whole word or mark."""
    translating: PreparedTransformer | None = None
    """The same model, prepared for translation; None: the modules translate. See `prepared`."""
    records_steps: bool = False
    """Whether `prepared` lets an NVIDIA GPU repeat recorded steps of a search."""
    recorded: RecordedSteps | None = None
    """The recorded steps; None: the CPU starts each kernel."""
    native_search: NativeSearch | None = None
    """The search of `translating` in one call, greedy or with a beam; None: Python goes from step to step."""
    observer: BeamObserver | None = None
    """Is told about each step of a beam search, also with a beam of one; None: nobody is."""
    shortlist: Shortlist | None = None
    """The target tokens among which a prepared model chooses; None: the whole vocabulary."""
    unwanted: Callable[[], Collection[Request]] | None = None
    """See `interruptible`; None: all requests are searched to their end."""
    others: tuple[Transformer, ...] = ()
    """Of an ensemble: its models after `model`."""

    def prepared(self) -> "PyTorchEngine":
        """This engine for a model whose weights will not change: it translates faster."""
        if plain_form.IS_PLAIN:
            return self
        precision = self.machine.precision
        is_float32 = all(one.dtype == torch.float32 for one in self.model.parameters())
        if self.machine.device.type != "cpu" or precision == torch.float16:
            model = self.model
            if is_float32 and precision != torch.float32:
                model = with_cast_layers(model, precision)
            if self.records_steps and isinstance(model, TransformerOnGpu):
                return replace(self, model=model, recorded=RecordedSteps(model))
            return replace(self, model=model)
        if not is_float32:
            return self
        quantised = self.machine.is_quantised
        translating = PreparedTransformer(self.model, precision, is_quantised=quantised)
        # Its kernels read weights of 8 bits only.
        native_search = NativeSearch.of(translating) if quantised else None
        return replace(self, translating=translating, native_search=native_search)

    def for_validation(self) -> "PyTorchEngine":
        """This engine while its weights stay as they are: on a GPU, they are cast once and not in each step of a search.

        On a CPU a validation computes with the modules that are trained. Hooks of the model are those of its copy, too.
        """
        return self if self.machine.device.type == "cpu" else self.prepared()

    def describe(self) -> str:
        """Library, device and precision in a few words."""
        described = f"PyTorch on {self.machine.describe()}"
        if self.machine.is_quantised and self.translating and self.translating.kernels:
            described += f" with kernels in C ({self.translating.kernels.level})"
        return described

    def interruptible(self, unwanted: Callable[[], Collection[Request]]) -> "PyTorchEngine":
        """See `InterruptibleEngine.interruptible`."""
        return replace(self, unwanted=unwanted)

    def max_sentences(self, options: DecodingConfig) -> int:
        """See `InterruptibleEngine.max_sentences`."""
        logits_per_sentence = options.num_hypotheses * self.model.output.out_features
        return max(1, max_logits(self.machine.device.type) // logits_per_sentence)

    def translate(self, requests: Sequence[Request], options: DecodingConfig) -> list[list[Hypothesis]]:
        """See `Engine.translate`."""
        plain = [index for index, request in enumerate(requests) if not request.terms]
        groups = [(options, plain)]
        if len(plain) < len(requests):
            groups += beam_groups(requests, options)
        lengths = [len(request.ids) for request in requests]
        found: list[list[Hypothesis]] = [[] for _ in requests]
        for group_options, indices in groups:
            batches = length_batches(
                indices,
                lengths.__getitem__,
                max_tokens=options.batch_tokens,
                max_items=self.max_sentences(group_options) if len(indices) > 1 else None,
            )
            for batch in batches:
                batch_requests = [requests[index] for index in batch]
                lists = self._hypotheses_of(batch_requests, group_options)
                for index, request, hypotheses in zip(batch, batch_requests, lists, strict=True):
                    if request.terms and not hypotheses:
                        # The model wants to end before all terms stand there, so they may stand behind this end.
                        [hypotheses] = self._hypotheses_of([request], group_options, goes_past_end=True)
                    found[index] = hypotheses
        return found

    def negative_log_likelihood(
        self, sources: Sequence[TokenIds], targets: Sequence[TokenIds], *, batch_tokens: int
    ) -> float:
        """See `Engine.negative_log_likelihood`."""
        total = 0.0
        most = max_logits(self.machine.device.type) // self.model.output.out_features
        lengths = [max(map(len, pair)) for pair in zip(sources, targets, strict=True)]
        batches = length_batches(range(len(lengths)), lengths.__getitem__, max_tokens=min(batch_tokens, most))
        pad_id = self.special_ids.pad_id
        with self._inference():
            for batch in batches:
                source_ids, source_mask = self._padded([sources[index] for index in batch])
                target_ids, is_real = pad_ids([targets[index] for index in batch], pad_id)
                inputs = self.sequence_format.decoder_inputs(
                    target_ids, is_real, sos_id=self.special_ids.sos_id, pad_id=pad_id
                )
                logits = self._logits(source_ids, source_mask, self._on_device(inputs))
                ids = self._on_device(target_ids)
                sum_of = sum_loss if plain_form.IS_PLAIN else sum_loss_in_parts
                sums = sum_of(logits, ids, SmoothedLabels(pad_id))
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
        """See `ExplainingEngine.explain`; by teacher forcing: the model reads the targets, and predicts all positions at once."""
        pairs = [(request.ids, target) for request, target in zip(requests, targets, strict=True)]
        most = max_logits(self.machine.device.type) // self.model.output.out_features
        lengths = [max(1, *map(len, pair)) for pair in pairs]
        batches = length_batches(range(len(pairs)), lengths.__getitem__, max_tokens=min(batch_tokens, most))
        pad_id, sos_id = self.special_ids.pad_id, self.special_ids.sos_id
        special = (pad_id, self.special_ids.eos_id, *self.special_ids.tag_ids)
        explanations: dict[int, Explanation] = {}
        with self._inference():
            for batch in batches:
                padded_sources, is_source = pad_ids([pairs[index][0] for index in batch], pad_id)
                padded_targets, is_target = pad_ids([pairs[index][1] for index in batch], pad_id)
                inputs = self.sequence_format.decoder_inputs(padded_targets, is_target, sos_id=sos_id, pad_id=pad_id)
                source_ids, source_mask, decoder_input_ids, target_ids = map(
                    self._on_device, (padded_sources, is_source, inputs, padded_targets)
                )
                log_probs, attention = self._predicted(source_ids, source_mask, decoder_input_ids)
                target_log_probs = log_probs.gather(-1, target_ids.unsqueeze(-1)).squeeze(-1)  # (B, T)
                best = log_probs.topk(min(num_best, log_probs.size(-1)), dim=-1)  # (B, T, K)
                # For each target token, the source token with the largest weight, a token of the text if there is one: a weight
                # is at most 1, so a special token with 2 less is chosen only if there is no other token.
                is_special = torch.isin(source_ids, torch.tensor(special, device=source_ids.device))  # (B, S)
                aligned = (attention - 2.0 * is_special.unsqueeze(1)).argmax(-1)  # (B, T)
                tensors = target_log_probs.float(), attention.float(), aligned, best.indices, best.values.float()
                rows = zip(*(one.cpu().numpy() for one in tensors), strict=True)
                for index, row in zip(batch, rows, strict=True):
                    source, target = pairs[index]
                    probabilities, weights, places, best_ids, best_log_probs = (
                        one[: len(target)].copy() for one in row
                    )
                    explanations[index] = Explanation(
                        token_log_probs=probabilities,
                        attention=weights[:, : len(source)],
                        alignment=tuple(places.tolist()),
                        best_ids=best_ids,
                        best_log_probs=best_log_probs,
                    )
        return [explanations[index] for index in range(len(pairs))]

    def cross_attention(self, source: TokenIds, target: TokenIds) -> Tensor:
        """The weights with which all decoder layers read a source while they read a target, (layers, H, T, S)."""
        pad_id = self.special_ids.pad_id
        (source_ids, source_mask), (target_ids, is_real) = pad_ids([source], pad_id), pad_ids([target], pad_id)
        inputs = self.sequence_format.decoder_inputs(target_ids, is_real, sos_id=self.special_ids.sos_id, pad_id=pad_id)
        tensors = map(self._on_device, (source_ids, source_mask, inputs))
        return cross_attention(self.model, *tensors)[:, 0]

    @contextmanager
    def _inference(self) -> Iterator[None]:
        """Without gradients, in the machine's precision; a model in training mode is refused."""
        if any(model.training for model in (self.model, *self.others)):
            raise ValueError("the model is in training mode; call model.eval() before translating")
        with torch.inference_mode(), self.machine.autocast():
            yield

    def _hypotheses_of(
        self, requests: Sequence[Request], options: DecodingConfig, *, goes_past_end: bool = False
    ) -> list[list[Hypothesis]]:
        """The hypotheses of one batch, for each request; `goes_past_end` is explained at `TermStates`."""
        fits_kernel = self.native_search is not None and self._fits_kernel(requests, options)
        if self.shortlist is not None and not fits_kernel and self._fits_shortlist(requests, options):
            with self._inference():
                ids, engine = self._restricted(requests)
            index_hypotheses = engine._hypotheses_of(requests, options)
            return [[one._replace(ids=tuple(ids[[*one.ids]].tolist())) for one in each] for each in index_hypotheses]
        configs = [model.config for model in (self.model, *self.others)]
        # The largest number of tokens that all models can write; None if there is no limit.
        most = min((config.max_length for config in configs if config.positions == "learned"), default=None)
        # No translation contains these. A search for terms bans [UNK] itself, where it stands for no term.
        banned_ids = [self.special_ids.pad_id, self.special_ids.sos_id, *self.special_ids.tag_ids]
        if not (options.allow_unknown or any(request.terms for request in requests)):
            banned_ids.append(self.special_ids.unk_id)
        if self.sequence_format.has_end:
            limits = [
                length_limits(len(request.ids), options, prefix_length=len(request.prefix), most=most)
                for request in requests
            ]
        else:  # the length is fixed
            change = self.sequence_format.length_change
            limits = [LengthLimits(0, len(request.ids) + change) for request in requests]
            banned_ids.append(self.special_ids.eos_id)
        with self._inference():
            if fits_kernel:
                return self._natively_found(requests, options, limits, banned_ids)
            found = self._search(requests, options, limits, banned_ids, most=most, goes_past_end=goes_past_end)
        rows = zip(*(field.tolist() for field in (found.ids, found.lengths, found.scores)), strict=True)
        return [  # without padding
            [
                Hypothesis(tuple(ids[:length]), score)
                for ids, length, score in zip(*request_row, strict=True)
                if score > -torch.inf
            ]
            for request_row in rows
        ]

    def _search(
        self,
        requests: Sequence[Request],
        options: DecodingConfig,
        limits: Sequence[LengthLimits],
        banned_ids: Sequence[int],
        *,
        most: int | None,
        goes_past_end: bool,
    ) -> Hypotheses:
        """The search of one batch, step by step; `most` is the largest number of tokens that the models can write."""
        source_ids, source_mask = self._padded([request.ids for request in requests])
        has_coverage = options.coverage_penalty > 0.0
        scorer = self.started(source_ids, source_mask, with_attention=has_coverage)
        max_lengths = self._on_device([limit.largest for limit in limits])
        states, hook_options = None, options
        if any(request.terms for request in requests):
            no_edges = WordEdges.none(self.model.output.out_features)
            states = term_states(
                requests,
                self.word_edges() if self.word_edges else no_edges,
                self.machine.device,
                has_bytes=self.byte_pieces is not None,
                goes_past_end=goes_past_end,
            )
            room = room_for_terms(requests, states, most=most)
            max_lengths = max_lengths.maximum(room)
            hook_options = options.model_copy(update={"no_repeat_ngram_size": None})  # a term may repeat n-grams
        hooks = [BannedTokens(banned_ids), *self._hooks(requests, hook_options, max_lengths)]
        if not goes_past_end and any(limit.smallest > 1 for limit in limits):
            min_lengths = self._on_device([limit.smallest for limit in limits])
            hooks.append(MinimalLengths(min_lengths, self.special_ids.eos_id))
        if has_coverage:
            eos_id = self.special_ids.eos_id
            penalty = CoveragePenalty(scorer.attention, source_mask, max_lengths, eos_id, options)
            hooks.append(penalty)
        search: Callable[..., Hypotheses] = greedy_search if options.beam_size == 1 else beam_search
        if states is not None:
            search = partial(constrained_search, states=states)
        elif options.sampling is not None:
            seeds = self._on_device([request.seed for request in requests])
            search = partial(sample_search, seeds=seeds)
        elif options.diversity is not None:
            search = diverse_beam_search
        elif self.observer is not None:
            search = partial(beam_search, observer=self.observer)
        return search(scorer, special_ids=self.special_ids, max_lengths=max_lengths, options=options, hooks=hooks)

    def _fits_shortlist(self, requests: Sequence[Request], options: DecodingConfig) -> bool:
        """Whether the shortlist is used; if not, the search is the one without a shortlist."""
        if self.translating is None or self.observer is not None:
            return False
        is_free = all(request.is_free for request in requests)
        return is_free and not unknown_settings(options, _KNOWN_TO_SHORTLIST)

    def _restricted(self, requests: Sequence[Request]) -> tuple[NDArray[np.int64], "PyTorchEngine"]:
        """The ids of the shortlist, sorted, and an engine that sees their indices in it instead of them."""
        assert self.shortlist is not None
        assert self.translating is not None
        ids, is_allowed = self.shortlist.restriction([request.ids for request in requests])
        # The special tokens are in every shortlist. A tag is in none: no translation has one.
        special = SpecialIds(*np.searchsorted(ids, self.special_ids[:4]).tolist())
        pieces = self.byte_pieces
        if pieces is not None:
            pieces = BytePieces(pieces.next_states[:, ids], pieces.is_allowed[..., ids])
        engine = replace(
            self,
            shortlist=None,
            special_ids=special,
            byte_pieces=pieces,
            translating=self.translating.restricted(torch.from_numpy(ids), torch.from_numpy(is_allowed)),
        )
        return ids, engine

    def _fits_kernel(self, requests: Sequence[Request], options: DecodingConfig) -> bool:
        """Whether the kernel for whole searches does the same as the search step by step, and sooner."""
        search = self.native_search
        if search is None or self.translating is None or self.observer is not None:
            return False
        is_free = all(request.is_free for request in requests)
        if not is_free or unknown_settings(options, _KNOWN_TO_KERNEL):
            return False
        return search.is_worth_it([len(request.ids) for request in requests], options.beam_size)

    def _natively_found(
        self,
        requests: Sequence[Request],
        options: DecodingConfig,
        limits: Sequence[LengthLimits],
        banned_ids: Sequence[int],
    ) -> list[list[Hypothesis]]:
        """The hypotheses of a search in one call of a kernel."""
        assert self.native_search is not None
        special = self.special_ids
        rules = Rules(special.sos_id, special.eos_id, banned_ids, self.byte_pieces)
        longest = max(1, *(limit.largest for limit in limits))
        following = Following(
            penalties_up_to(longest, options.length_normalization, options.length_penalty),
            options.beam_size,
            options.num_best,
            options.no_repeat_ngram_size or 0,
        )
        shortlist, of = None, self.shortlist
        if of is not None:
            shortlist = Shortlisted(of.starts, of.translations, of.always, of.best, of.copies)
        found = self.native_search.translate(
            [request.ids for request in requests],
            limits,
            rules,
            following,
            shortlist=shortlist,
            unwanted=self._is_unwanted(requests),
        )
        return [[Hypothesis(*one) for one in each] for each in found]

    def _is_unwanted(self, requests: Sequence[Request]) -> Callable[[], NDArray[np.bool_]] | None:
        """Which of the requests nobody needs any more; None: nobody asks."""
        unwanted = self.unwanted
        if unwanted is None:
            return None

        def is_unwanted() -> NDArray[np.bool_]:
            gone = frozenset(unwanted())
            return np.array([request in gone for request in requests])

        return is_unwanted

    def started(self, source_ids: Tensor, source_mask: Tensor | None, *, with_attention: bool) -> AttendingScorer:
        """The scorer at the beginning of a search, one row for each source."""
        # A source without tokens is too rare for a prepared form.
        has_tokens = source_mask is None or is_known_to_have_tokens(source_mask)
        if self.translating is not None and has_tokens and not with_attention:
            memory = self.translating.encode(source_ids, source_mask)  # (B, S, D)
            return cast(AttendingScorer, self.translating.start_decoding(memory, source_mask))
        if self.recorded is not None and not with_attention:
            return self.recorded.start(self.model.encode(source_ids, source_mask), source_mask)
        return started_search(self.model, source_ids, source_mask, with_attention=with_attention)

    def _logits(self, source_ids: Tensor, source_mask: Tensor | None, decoder_input_ids: Tensor) -> Tensor:
        """(B, T, V): the scores of all next tokens of given targets."""
        return self.model(source_ids, source_mask, decoder_input_ids)

    def _predicted(self, source_ids: Tensor, source_mask: Tensor, decoder_input_ids: Tensor) -> tuple[Tensor, Tensor]:
        """(B, T, V) log-probabilities of given targets, and (B, T, S) attention weights."""
        logits, attention = logits_and_attention(self.model, source_ids, source_mask, decoder_input_ids)
        return at_least_float32(logits).log_softmax(-1), attention

    def _hooks(self, requests: Sequence[Request], options: DecodingConfig, max_lengths: Tensor) -> list[SearchHook]:
        """New hooks for one search: the options, whole characters, prefixes, and requests that nobody needs any more."""
        hooks: list[SearchHook] = []
        if options.no_repeat_ngram_size is not None:
            prefix_lengths = self._on_device([len(request.prefix) for request in requests])
            hooks.append(NoRepeatedNgrams(options.no_repeat_ngram_size, prefix_lengths))
        if self.byte_pieces is not None:
            hooks.append(WholeCharacters(self.byte_pieces, max_lengths, looks_at_rows=max_lengths.device.type == "cpu"))
        if any(request.prefix for request in requests):
            prefixes = [request.prefix for request in requests]
            device = self.machine.device
            hooks.append(ForcedPrefix(prefixes, continuing_ids=self.continuing_ids(), device=device))
        if self.unwanted is not None:
            hooks.append(UnwantedSentences(requests, self.unwanted, self.machine.device))
        return hooks

    def _padded(self, sequences: Sequence[TokenIds]) -> tuple[Tensor, Tensor | None]:
        """(B, L) int64 ids and (B, L) bool, True for a token, on the device; None if there is no padding."""
        lengths = {*map(len, sequences)}
        if len(lengths) == 1 and 0 not in lengths:
            return self._on_device(sequences), None
        ids, is_real = pad_ids(sequences, self.special_ids.pad_id)
        mask = self._on_device(is_real)
        return self._on_device(ids), with_tokens_in_all(mask) if is_real.any(1).all() else mask

    def _on_device(self, numbers: Sequence[int] | Sequence[TokenIds] | NDArray[Any]) -> Tensor:
        return to_device(torch.as_tensor(numbers), self.machine.device)


class Attended(NamedTuple):
    """What one layer of the decoder makes of its input, and the weights of its cross-attention."""

    x: Tensor
    """(B, T, D): the output of the layer."""
    weights: Tensor
    """(B, H, T, S): row t holds the weights with which position t read the source; they sum to 1."""


def attended_layers(
    model: Transformer, decoder_input_ids: Tensor, memory: Tensor, source_mask: Tensor | None
) -> Iterator[Attended]:
    """Run the decoder layer by layer; the model itself is not changed, so several threads may do this.

    Args:
        model: in eval mode, because dropout would change the numbers.
        decoder_input_ids: (B, T) int64, as in `Transformer.forward`.
        memory: (B, S, D), the output of the encoder.
        source_mask: (B, S) bool; None: there is no padding.
    """
    if model.training:
        raise ValueError("the model is in training mode; call model.eval() first")
    x = model.embed_target(decoder_input_ids)
    target_mask, source_mask = model.mask_of_targets(x), model.mask_of_sources(source_mask, x)
    rotation = model.rotation(x)
    for layer in model.decoder.layers:
        assert isinstance(layer, DecoderLayer)
        weights: list[Tensor] = []
        x = layer.forward(x, memory, target_mask, source_mask, rotation, observe=weights.append)
        yield Attended(x, weights[0])


@torch.inference_mode()
def cross_attention(model: Transformer, source_ids: Tensor, source_mask: Tensor, decoder_input_ids: Tensor) -> Tensor:
    """The cross-attention weights of all decoder layers.

    Args:
        model: in eval mode, because dropout would change the numbers.
        source_ids: (B, S) int64.
        source_mask: (B, S) bool.
        decoder_input_ids: (B, T) int64, begins with [SOS].

    Returns:
        (layers, B, H, T, S): the weight that each target position gives to each source position; the sum
        over S is 1.
    """
    memory = model.encode(source_ids, source_mask)
    layers = attended_layers(model, decoder_input_ids, memory, source_mask)
    return torch.stack([layer.weights for layer in layers])


def started_search(
    model: Transformer, source_ids: Tensor, source_mask: Tensor | None, *, with_attention: bool
) -> DecoderState:
    """The state of a decoder before its first token, one row for each source.

    Args:
        with_attention: whether the search asks for the attention of the layer that aligns best.
    """
    memory = model.encode(source_ids, source_mask)  # (B, S, D)
    layer = model.config.aligning_layer if with_attention else None
    return model.start_decoding(memory, source_mask, attended_layer=layer)


def logits_and_attention(
    model: Transformer, source_ids: Tensor, source_mask: Tensor | None, decoder_input_ids: Tensor
) -> tuple[Tensor, Tensor]:
    """(B, T, V) logits, and the (B, T, S) attention weights that align words."""
    memory = model.encode(source_ids, source_mask)  # (B, S, D)
    layers = attended_layers(model, decoder_input_ids, memory, source_mask)
    chosen = model.config.aligning_layer
    x = attention = memory  # the decoder has at least one layer, so both are replaced
    for number, layer in enumerate(layers):
        x = layer.x
        if number == chosen:
            attention = aligning_weights(layer.weights, model.config)
    return model.output(model.decoder.norm(x)), attention


def open_pytorch_engine(trained: TrainedModel, config: Config, *, alone: bool) -> PyTorchEngine:
    """The engine that translates with the model of a checkpoint.

    Args:
        trained: the model, with its tokenizers.
        config: with the settings of decoding and of the machine.
        alone: whether the engine translates; if not, it is one of an ensemble, or only explains translations.
    """
    machine = prepare_machine(config.runtime, records=alone and config.runtime.cuda_graphs is not False)
    if plain_form.IS_PLAIN and (machine.is_quantised or config.decoding.shortlist is not None):
        setting = "runtime.precision: int8" if machine.is_quantised else "decoding.shortlist"
        raise ConfigError(
            f"{setting} has no plain form, which the environment variable {plain_form.SWITCH} asks for",
            hint=f"leave the setting out, or start the command without {plain_form.SWITCH}",
        )
    if machine.device.type != "cpu":  # the twins for CPUs are only for training
        accelerate(trained.model, machine.device)
    engine = engine_of(trained.model, trained.target_tokenizer, config, machine)
    if not alone:
        return engine
    engine = engine.prepared()
    if config.decoding.shortlist is not None:
        if engine.translating is None:
            raise ConfigError(
                "decoding.shortlist is for translation on a CPU, in float32, bfloat16 or int8",
                hint="leave out decoding.shortlist, or set runtime.device=cpu",
            )
        path = shortlist_path(trained.folder)
        found = load_shortlist(path, config.decoding.shortlist, trained.tokenizers)
        engine = replace(engine, shortlist=found)
    return engine


def engine_of(model: Transformer, target_tokenizer: Tokenizer, config: Config, machine: Machine) -> PyTorchEngine:
    """The engine of a model in memory, which is moved to the device of the machine."""
    return PyTorchEngine(
        model.to(machine.device),
        SpecialIds.of(target_tokenizer),
        SequenceFormat.of(config.data),
        machine,
        byte_pieces=target_tokenizer.byte_pieces,
        continuing_ids=lambda: target_tokenizer.continuing_ids,
        word_edges=lambda: target_tokenizer.word_edges,
        records_steps=config.runtime.cuda_graphs is not False and machine.device.type == "cuda",
    )
