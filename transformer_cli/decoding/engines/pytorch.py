"""The PyTorch engine: batches of token ids through a `Transformer` and a search."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.engine import (
    Explanation,
    Hypothesis,
    Request,
    SpecialIds,
    TokenIds,
)
from transformer_cli.decoding.engines.teacher_forcing import TeacherForcing
from transformer_cli.decoding.engines.term_search import beam_groups, term_states
from transformer_cli.decoding.length_batches import MAX_LOGITS, length_batches
from transformer_cli.decoding.search import beam_search, constrained_search, greedy_search
from transformer_cli.decoding.search.forced_prefix import ForcedPrefix
from transformer_cli.decoding.search.hooks import BannedTokens, SearchHook, WholeCharacters
from transformer_cli.decoding.search.hypotheses import Hypotheses
from transformer_cli.decoding.search.term_states import TermStates
from transformer_cli.memory import to_device
from transformer_cli.model import Transformer, sum_loss
from transformer_cli.model.precision import at_least_float32
from transformer_cli.runtime import Machine
from transformer_cli.text import SequenceFormat
from transformer_cli.text.byte_pieces import BytePieces
from transformer_cli.text.padding import pad_ids
from transformer_cli.text.whole_words import WordEdges


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

    def translate(
        self, requests: Sequence[Request], options: DecodingConfig
    ) -> list[list[Hypothesis]]:
        """See `Engine.translate`."""
        found: list[list[Hypothesis]] = [[] for _ in requests]
        with self._inference():
            for of_group, indices in beam_groups(requests, options):
                logits_per_sentence = of_group.beam_size * self.model.output.out_features
                batches = length_batches(
                    indices,
                    lambda index: len(requests[index].ids),
                    max_tokens=options.batch_tokens,
                    max_items=max(1, MAX_LOGITS // logits_per_sentence),
                )
                for batch in batches:
                    of_batch = [requests[index] for index in batch]
                    hypotheses = list(_to_lists(self._search(of_batch, of_group)))
                    for index, of_sentence in zip(batch, hypotheses, strict=True):
                        found[index] = of_sentence
            for index, request in enumerate(requests):
                if request.terms and not found[index]:
                    # The model wants to end before it has room for the terms: they may stand behind its end.
                    [of_group, _] = beam_groups([request], options)[0]
                    [found[index]] = _to_lists(
                        self._search([request], of_group, goes_past_end=True)
                    )
        return found

    def negative_log_likelihood(
        self, sources: Sequence[TokenIds], targets: Sequence[TokenIds], *, batch_tokens: int
    ) -> float:
        """See `Engine.negative_log_likelihood`."""
        total = 0.0
        batches = length_batches(
            list(zip(sources, targets, strict=True)),
            lambda pair: max(map(len, pair)),
            max_tokens=min(batch_tokens, MAX_LOGITS // self.model.output.out_features),
        )
        pad_id = self.special_ids.pad_id
        with self._inference():
            for batch in batches:
                source_ids, source_mask = self._padded([source for source, _ in batch])
                target_ids, is_real = pad_ids([target for _, target in batch], pad_id)
                inputs = self.sequence_format.decoder_inputs(
                    target_ids, is_real, sos_id=self.special_ids.sos_id, pad_id=pad_id
                )
                logits = self.model(source_ids, source_mask, self._on_device(inputs))  # (B, T, V)
                targets_on_device = self._on_device(target_ids)
                sums = sum_loss(logits, targets_on_device, pad_id=pad_id, label_smoothing=0.0)
                total += sums.negative_log_likelihood.item()
        return total

    def next_token_probabilities(self, source: TokenIds, prefix: TokenIds) -> Tensor:
        """See `Engine.next_token_probabilities`."""
        with self._inference():
            source_ids, source_mask = self._padded([source])
            decoder_input_ids, _ = self._padded([(self.special_ids.sos_id, *prefix)])
            logits = self.model(source_ids, source_mask, decoder_input_ids)  # (1, T, V)
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
            self.model, self.special_ids, self.sequence_format, self.machine.device
        )
        sources = [request.ids for request in requests]
        with self._inference():
            return forcing.explain(sources, targets, batch_tokens=batch_tokens, num_best=num_best)

    @contextmanager
    def _inference(self) -> Iterator[None]:
        """Without gradients, in the machine's precision."""
        if self.model.training:
            raise ValueError("the model is in training mode; call model.eval() before translating")
        with torch.inference_mode(), self.machine.autocast():
            yield

    def _search(
        self, requests: Sequence[Request], options: DecodingConfig, *, goes_past_end: bool = False
    ) -> Hypotheses:
        sources = [request.ids for request in requests]
        source_ids, source_mask = self._padded(sources)
        memory = self.model.encode(source_ids, source_mask)  # (B, S, D)
        scorer = self.model.start_decoding(memory, source_mask)
        limits = [self._max_length(request, options) for request in requests]
        max_lengths = to_device(torch.tensor(limits), self.machine.device)
        if any(request.terms for request in requests):
            states = self._term_states(requests, goes_past_end=goes_past_end)
            max_lengths = self._with_room(max_lengths, requests, states)
            # A term may need [UNK], which the search itself bans elsewhere.
            with_unknown = options.model_copy(update={"allow_unknown": True})
            hooks = self._hooks(requests, with_unknown, max_lengths)
            return constrained_search(scorer, self.special_ids, max_lengths, options, hooks, states)
        search = greedy_search if options.beam_size == 1 else beam_search
        hooks = self._hooks(requests, options, max_lengths)
        return search(scorer, self.special_ids, max_lengths, options, hooks)

    def _term_states(self, requests: Sequence[Request], *, goes_past_end: bool) -> TermStates:
        edges = WordEdges.none(self.model.output.out_features)
        if self.word_edges is not None:
            edges = self.word_edges()
        has_bytes = self.byte_pieces is not None
        device = self.machine.device
        return term_states(
            requests, edges, device, has_bytes=has_bytes, goes_past_end=goes_past_end
        )

    def _with_room(
        self, max_lengths: Tensor, requests: Sequence[Request], states: TermStates
    ) -> Tensor:
        """(B,) int64: raised where the terms have no room, as far as the model can write."""
        prefixes = torch.tensor([len(request.prefix) for request in requests])
        # [EOS] needs room, too.
        needed = prefixes.to(max_lengths.device) + states.num_needed + states.reserve + 1
        config = self.model.config
        if config.positions == "learned":
            needed = needed.clamp(max=config.max_length)
        return max_lengths.maximum(needed)

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
        if self.byte_pieces is not None:
            hooks.append(WholeCharacters(self.byte_pieces, max_lengths))
        if any(request.prefix for request in requests):
            prefixes = [request.prefix for request in requests]
            device = self.machine.device
            hooks.append(ForcedPrefix(prefixes, continuing_ids=self.continuing_ids, device=device))
        return hooks

    def _max_length(self, request: Request, options: DecodingConfig) -> int:
        """The largest number of tokens of a translation; without [EOS], the exact number."""
        source_length = len(request.ids)
        fixed_length = self.sequence_format.fixed_length(source_length)
        if fixed_length is not None:
            return fixed_length
        limit = (options.max_length or 2 * source_length + 20) + len(request.prefix)
        config = self.model.config
        return min(limit, config.max_length) if config.positions == "learned" else limit

    def _padded(self, sequences: Sequence[TokenIds]) -> tuple[Tensor, Tensor | None]:
        """(B, L) int64 ids and (B, L) bool, True for a token, on the device; None if there is no padding."""
        ids, is_real = pad_ids(sequences, self.special_ids.pad_id)
        has_padding = not is_real.size or not is_real.all()
        return self._on_device(ids), self._on_device(is_real) if has_padding else None

    def _on_device(self, array: NDArray[Any]) -> Tensor:
        return to_device(torch.from_numpy(array), self.machine.device)


def _to_lists(hypotheses: Hypotheses) -> Iterator[list[Hypothesis]]:
    """The hypotheses of each sentence, without padding."""
    fields = (hypotheses.ids, hypotheses.lengths, hypotheses.scores)
    for of_sentence in zip(*(field.tolist() for field in fields), strict=True):
        yield [
            Hypothesis(tuple(ids[:length]), score)
            for ids, length, score in zip(*of_sentence, strict=True)
            if score > -torch.inf
        ]
