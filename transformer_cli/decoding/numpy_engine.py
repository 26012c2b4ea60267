"""The engine of the first sentences: a model in NumPy, because the import of PyTorch takes longer than their translation.

It finds what the PyTorch engine finds, up to rounding, and leaves to that engine whatever is not plain search for few sentences.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_cli.checkpoint.run_folder import MODEL_FILE
from transformer_cli.checkpoint.trained_files import TrainedFiles
from transformer_cli.config import Config, DecodingConfig, ModelConfig
from transformer_cli.decoding.engine import (
    TEXT_SETTINGS,
    ExplainingEngine,
    Explanation,
    Hypothesis,
    LengthLimits,
    Request,
    SpecialIds,
    TokenIds,
    length_limits,
    length_penalty,
    unknown_settings,
)
from transformer_cli.decoding.loading import once
from transformer_cli.text import SequenceFormat
from transformer_cli.text.tokenizer_file import BETWEEN_CHARACTERS, BytePieces

Array = NDArray[np.float32]
Weights = Mapping[str, Array]
"""The tensors of a model by the names that they have in PyTorch; a linear layer has (outputs, inputs)."""

MAX_MODEL_BYTES = 256_000_000
"""A larger model is left to PyTorch: reading and multiplying its weights takes as long as the import."""
MAX_TOKENS = 200
"""Source tokens of one call; more of them are translated sooner by PyTorch, whose import then pays."""
_MAX_WORK = 5_000_000_000
"""Source tokens of one call times the bytes of the model. With a beam of 5, a token takes about 0.2 ms for each megabyte."""

# With another setting of decoding, PyTorch translates.
_KNOWN = TEXT_SETTINGS | {
    "beam_size",
    "length_penalty",
    "length_normalization",
    "num_best",
    "max_length",
    "max_length_ratio",
    "min_length",
    "min_length_ratio",
    "allow_unknown",
    "batch_tokens",
}


@dataclass(frozen=True, slots=True, eq=False)
class NumpyEngine:
    """An `ExplainingEngine` that searches by itself for few plain requests; PyTorch does all else."""

    config: ModelConfig
    weights: Weights
    special_ids: SpecialIds
    byte_pieces: BytePieces | None
    """The bytes of the target tokens; None if each of them consists of whole characters."""
    pytorch: Callable[[], ExplainingEngine]
    """The PyTorch engine of the same model; it is built at the first call, and threads may call at the same time."""
    max_tokens: int = MAX_TOKENS
    """Source tokens of one call that this engine translates by itself."""

    def describe(self) -> str:
        """Library, device and precision in a few words."""
        return "NumPy for the first sentences, then PyTorch"

    def translate(self, requests: Sequence[Request], options: DecodingConfig) -> list[list[Hypothesis]]:
        """See `Engine.translate`."""
        if not self._searches_itself(requests, options):
            return self.pytorch().translate(requests, options)
        with np.errstate(all="ignore"):  # weights that overflow give what they give in PyTorch
            return [self._search(request.ids, options) for request in requests]

    def negative_log_likelihood(
        self, sources: Sequence[TokenIds], targets: Sequence[TokenIds], *, batch_tokens: int
    ) -> float:
        """See `Engine.negative_log_likelihood`; PyTorch computes it."""
        engine = self.pytorch()
        return engine.negative_log_likelihood(sources, targets, batch_tokens=batch_tokens)

    def next_token_probabilities(self, source: TokenIds, prefix: TokenIds) -> Any:
        """See `Engine.next_token_probabilities`; PyTorch computes it."""
        return self.pytorch().next_token_probabilities(source, prefix)

    def explain(
        self,
        requests: Sequence[Request],
        targets: Sequence[TokenIds],
        *,
        batch_tokens: int,
        num_best: int = 0,
    ) -> list[Explanation]:
        """See `ExplainingEngine.explain`."""
        pairs = [(one.ids, target) for one, target in zip(requests, targets, strict=True)]
        num_tokens = sum(len(source) + len(target) for source, target in pairs)
        if num_tokens > self.max_tokens or not all(source for source, _ in pairs):
            engine = self.pytorch()
            return engine.explain(requests, targets, batch_tokens=batch_tokens, num_best=num_best)
        with np.errstate(all="ignore"):
            return [self._explained(source, target, num_best) for source, target in pairs]

    def _searches_itself(self, requests: Sequence[Request], options: DecodingConfig) -> bool:
        """Whether this engine does by itself what is asked, sooner than PyTorch is imported."""
        if sum(len(request.ids) for request in requests) > self.max_tokens:
            return False
        return all(one.is_free for one in requests) and not unknown_settings(options, _KNOWN)

    def _explained(self, source: TokenIds, target: TokenIds, num_best: int) -> Explanation:
        """The model reads the target token by token."""
        special = self.special_ids
        state = _State(self.config, self.weights, source)
        steps = [state.advance([last])[0] for last in (special.sos_id, *target[:-1])]
        log_probs = np.stack(steps)[: len(target)]  # (T, V)
        attention = np.stack(state.aligning)[: len(target)]  # (T, S)
        is_special = np.isin(source, [special.pad_id, special.eos_id, *special.tag_ids])
        best_ids = np.argsort(-log_probs, axis=-1, kind="stable")[:, :num_best]
        return Explanation(
            token_log_probs=log_probs[np.arange(len(target)), list(target)],
            attention=attention,
            # A weight is at most 1, so a special token with 2 less is chosen only if there is no other token.
            alignment=tuple((attention - 2.0 * is_special).argmax(-1).tolist()),
            best_ids=best_ids,
            best_log_probs=np.take_along_axis(log_probs, best_ids, axis=-1),
        )

    def _search(self, source: TokenIds, options: DecodingConfig) -> list[Hypothesis]:
        """The best hypotheses of one source, best first."""
        limits = length_limits(len(source), options)
        state = _State(self.config, self.weights, source)
        special = self.special_ids
        banned = [special.pad_id, special.sos_id, *special.tag_ids]
        if not options.allow_unknown:
            banned.append(special.unk_id)
        bans = _Bans(banned, special.eos_id, limits, self.byte_pieces)
        beam = _Beam(options, limits.largest)
        last_ids = [special.sos_id]
        while True:
            scores = bans.applied(state.advance(last_ids), last_ids)
            beam.extend(scores, special.eos_id)
            rows = beam.open_rows()
            if not rows:
                return beam.finished[: options.num_best]
            parents, last_ids = [row.parent for row in rows], [row.ids[-1] for row in rows]
            state.select(parents)
            bans.select(parents)


class _Row(NamedTuple):
    """A hypothesis in the beam that has not ended."""

    parent: int
    """The row of the step before that it continues."""
    ids: TokenIds
    total: np.float32
    """Its log-probability."""


class _Beam:
    """The beam of one sentence, by the rules of `decoding.search.beam.Beams`, which explains them."""

    def __init__(self, options: DecodingConfig, max_length: int) -> None:
        self._options = options
        self._max_length = max_length
        self._rows = [_Row(0, (), np.float32(0.0))]
        self.finished: list[Hypothesis] = []
        """The best ones, best first."""

    def extend(self, log_probs: Array, eos_id: int) -> None:
        """Replace each open hypothesis by its continuations, (rows, V), and keep the best of open and finished ones."""
        size = self._options.beam_size
        totals = np.array([row.total for row in self._rows])[:, None] + log_probs
        length = len(self._rows[0].ids) + 1
        penalty = self._penalty(length)
        finished, opened = list(self.finished), []
        for number, index in enumerate(_largest(totals.ravel(), size).tolist()):
            parent, token = divmod(index, totals.shape[1])
            total = totals[parent, token]
            score = float(total / penalty)
            # It is in the beam if fewer than W are better: finished ones, and the candidates before it.
            num_better = number + sum(one.score >= score for one in self.finished)
            if score == -np.inf or num_better >= size:
                break
            ids = (*self._rows[parent].ids, token)
            if token == eos_id or length >= self._max_length:
                finished.append(Hypothesis(ids, score))
            else:
                opened.append(_Row(parent, ids, total))
        self.finished = sorted(finished, key=lambda one: -one.score)[:size]
        self._rows = opened

    def open_rows(self) -> list[_Row]:
        """The hypotheses to be continued; none if no one can become one of the `num_best` best."""
        num_best = self._options.num_best
        if self._rows and len(self.finished) >= num_best:
            best_possible = max(row.total for row in self._rows) / self._penalty(self._max_length)
            if best_possible <= np.float32(self.finished[num_best - 1].score):
                self._rows = []
        return self._rows

    def _penalty(self, length: int) -> np.float32:
        options = self._options
        return np.float32(length_penalty(length, options.length_normalization, options.length_penalty))


def _largest(numbers: Array, count: int) -> NDArray[np.int64]:
    """The indices of the `count` largest numbers, largest first; of equal ones, the first one comes first."""
    count = min(count, len(numbers))
    smallest = np.partition(numbers, len(numbers) - count)[len(numbers) - count]
    [indices] = np.nonzero(numbers >= smallest)
    return indices[np.argsort(-numbers[indices], kind="stable")[:count]]


class _Bans:
    """The tokens that a search never chooses: special ones, [EOS] that comes too early, and bytes that break a character."""

    def __init__(
        self,
        banned_ids: Sequence[int],
        eos_id: int,
        limits: LengthLimits,
        pieces: BytePieces | None,
    ) -> None:
        self._banned_ids = list(banned_ids)
        self._eos_id = eos_id
        self._limits = limits
        self._pieces = pieces
        self._length = 0
        self._states = np.array([BETWEEN_CHARACTERS])  # (rows,)

    def applied(self, scores: Array, last_ids: Sequence[int]) -> Array:
        """(rows, V) with -inf for banned tokens."""
        self._length += 1
        scores[:, self._banned_ids] = -np.inf
        if self._length < self._limits.smallest:
            scores[:, self._eos_id] = -np.inf
        if self._pieces is not None:
            next_states, is_allowed = self._pieces.next_states, self._pieces.is_allowed
            self._states = np.maximum(next_states[self._states, list(last_ids)], 0)
            num_left = min(self._limits.largest - self._length, is_allowed.shape[1] - 1)
            scores[~is_allowed[self._states, num_left]] = -np.inf
        return scores

    def select(self, rows: Sequence[int]) -> None:
        """The states of the hypotheses move with their rows."""
        self._states = self._states[list(rows)]


class _State:
    """Decoding one token at a time for the rows of one sentence, with the keys and values of all tokens so far."""

    def __init__(self, config: ModelConfig, weights: Weights, source: TokenIds) -> None:
        self._config = config
        self._weights = weights
        memory = self._encoded(source)
        names = [f"decoder.layers.{number}" for number in range(config.decoder_layers)]
        self._sources = {name: self._keys_and_values(f"{name}.cross_attention", memory[None]) for name in names}
        none = np.zeros((1, config.num_heads, 0, config.head_width), np.float32)
        self._targets = dict.fromkeys(names, (none, none))
        self._length = 0
        self.aligning: list[Array] = []
        """For each step, the weights (S,) with which the first row has read the source to align words."""

    def advance(self, last_ids: Sequence[int]) -> Array:
        """Append one token to each row; (rows, V) log-probabilities of the next token."""
        x = self._embedded(last_ids, "target", self._length)[:, None]  # (rows, 1, D)
        self._length += 1
        for name, source in self._sources.items():
            x = self._sublayer(x, f"{name}.self_attention", self._read_target)
            x = self._sublayer(x, f"{name}.cross_attention", self._read, source)
            x = self._sublayer(x, f"{name}.feed_forward", self._feed_forward)
        logits = self._linear(self._final_norm(x[:, 0], "decoder"), "output")
        logits -= logits.max(-1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(-1, keepdims=True))

    def select(self, rows: Sequence[int]) -> None:
        """New row i is old row `rows[i]`."""
        chosen = list(rows)
        self._targets = {name: (keys[chosen], values[chosen]) for name, (keys, values) in self._targets.items()}

    def _encoded(self, source: TokenIds) -> Array:
        """(S, D): the output of the encoder."""
        x = self._embedded(source, "source")[None]
        for number in range(self._config.encoder_layers):
            name = f"encoder.layers.{number}"
            x = self._sublayer(x, f"{name}.self_attention", self._read_itself)
            x = self._sublayer(x, f"{name}.feed_forward", self._feed_forward)
        encoded: Array = self._final_norm(x, "encoder")[0]
        return encoded

    def _embedded(self, ids: Sequence[int], side: str, first_position: int | None = None) -> Array:
        """(n, D): embeddings of the tokens, with their positions, or all with the position `first_position`."""
        table = self._weights.get(f"{side}_embedding.weight", self._weights["output.weight"])
        x = table[list(ids)]
        if self._config.scale_embeddings:
            x = x * np.float32(math.sqrt(self._config.d_model))
        positions = np.arange(len(ids)) if first_position is None else np.array([first_position])
        width, kind = self._config.d_model, self._config.positions
        divisor = max(width - 2, 1) if kind == "sinusoidal_marian" else width
        angles = positions[:, None] * 10_000.0 ** (-np.arange(0, width, 2) / divisor)
        # The paper interleaves sines and cosines; the other kinds have all sines first.
        axis = -1 if kind == "sinusoidal" else -2
        waves = np.stack([np.sin(angles), np.cos(angles)], axis).reshape(len(positions), -1)
        return x + waves.astype(np.float32)

    def _sublayer(self, x: Array, name: str, layer: Callable[..., Array], *given: Any) -> Array:
        """A residual connection with its norm before or behind it."""
        if self._config.norm_placement == "pre":
            return x + layer(self._norm(x, f"{name}_norm"), name, *given)
        return self._norm(x + layer(x, name, *given), f"{name}_norm")

    def _read_itself(self, x: Array, name: str) -> Array:
        return self._read(x, name, self._keys_and_values(name, x))

    def _read_target(self, x: Array, name: str) -> Array:
        layer = name.removesuffix(".self_attention")
        pairs = zip(self._targets[layer], self._keys_and_values(name, x), strict=True)
        keys, values = (np.concatenate(pair, axis=2) for pair in pairs)
        self._targets[layer] = keys, values
        return self._read(x, name, (keys, values))

    def _read(self, x: Array, name: str, context: tuple[Array, Array]) -> Array:
        """Multi-head attention of x (n, Q, D) to keys and values, (n or 1, H, C, K)."""
        keys, values = context
        queries = self._heads(self._linear(x, f"{name}.query"))
        scores = queries / np.float32(math.sqrt(self._config.head_width)) @ keys.swapaxes(2, 3)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        if name == f"decoder.layers.{self._config.aligning_layer}.cross_attention":
            head = self._config.alignment_head
            head_weights = weights[0, :, 0]  # (H, C)
            self.aligning.append(head_weights[head] if isinstance(head, int) else head_weights.mean(0))
        joined = (weights @ values).swapaxes(1, 2).reshape(*x.shape[:2], -1)
        return self._linear(joined, f"{name}.output")

    def _keys_and_values(self, name: str, context: Array) -> tuple[Array, Array]:
        """(n, H, C, K) each, of a context (n, C, D)."""
        keys = self._heads(self._linear(context, f"{name}.key"))
        return keys, self._heads(self._linear(context, f"{name}.value"))

    def _heads(self, x: Array) -> Array:
        """(n, L, H * K) to (n, H, L, K)."""
        split = x.reshape(*x.shape[:2], self._config.num_heads, self._config.head_width)
        return split.swapaxes(1, 2)

    def _feed_forward(self, x: Array, name: str) -> Array:
        hidden: Array = np.maximum(self._linear(x, f"{name}.up"), 0.0)
        return self._linear(hidden, f"{name}.down")

    def _linear(self, x: Array, name: str) -> Array:
        y: Array = x @ self._weights[f"{name}.weight"].T
        bias = self._weights.get(f"{name}.bias")
        return y if bias is None else y + bias

    def _final_norm(self, x: Array, name: str) -> Array:
        return self._norm(x, f"{name}.norm") if self._config.has_final_norm else x

    def _norm(self, x: Array, name: str) -> Array:
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt(np.square(x).mean(-1, keepdims=True) + np.float32(self._config.norm_eps))
        return x * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def load_numpy_engine(
    files: TrainedFiles, config: Config, pytorch: Callable[[Weights], ExplainingEngine]
) -> NumpyEngine | None:
    """The engine of a checkpoint, or None if PyTorch shall translate from the first sentence on.

    Args:
        files: of the checkpoint.
        config: with the settings of decoding and of the machine.
        pytorch: builds the PyTorch engine of the same weights, which needs no file: the checkpoint may be gone by then.
    """
    manifest = files.checkpoint.manifest
    num_bytes = sum(file.size for file in manifest.files if file.name == MODEL_FILE)
    if num_bytes > MAX_MODEL_BYTES or not _can_compute(config):
        return None
    weights = _tensors(files.checkpoint.file(MODEL_FILE, max_bytes=num_bytes))
    shapes = _shapes(config.model, *(one.vocab_size for one in files.tokenizers))
    is_sound = all(np.isfinite(array).all() for array in weights.values())
    if not is_sound or {name: array.shape for name, array in weights.items()} != shapes:
        return None  # PyTorch says what is wrong
    tokenizer = files.target_tokenizer
    special = SpecialIds.of(tokenizer)
    build = once(partial(pytorch, weights))
    max_tokens = min(MAX_TOKENS, _MAX_WORK // num_bytes)
    return NumpyEngine(config.model, weights, special, tokenizer.byte_pieces, build, max_tokens)


def _can_compute(config: Config) -> bool:
    """Whether the model has only parts that are written here, and the machine is left to `tfm`."""
    model, runtime, sequences = config.model, config.runtime, SequenceFormat.of(config.data)
    return (
        runtime.device in ("auto", "cpu")
        and runtime.precision in ("auto", "float32")
        and config.decoding.shortlist is None
        and sequences.has_end
        and sequences.is_shifted
        and model.norm == "layernorm"
        and model.norm_placement in ("pre", "post")
        and model.activation == "relu"
        and model.positions in ("sinusoidal", "sinusoidal_halves", "sinusoidal_marian")
        and model.decoder_layer == "attention"
        and model.num_kv_heads in (None, model.num_heads)
        and not (model.embedding_norm or model.qk_norm)
    )


def _tensors(content: bytes) -> dict[str, Array]:
    """The tensors of a safetensors file in float32 or bfloat16, as float32; none if it has others, or is no such file."""
    start = 8 + int.from_bytes(content[:8], "little")
    try:
        header = json.loads(content[8:start])
        header.pop("__metadata__", None)
        tensors = {}
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            stored = content[start + begin : start + end]
            if entry["dtype"] == "BF16":  # the upper half of a float32
                numbers = (np.frombuffer(stored, "<u2").astype("<u4") << 16).view("<f4")
            elif entry["dtype"] == "F32":
                numbers = np.frombuffer(stored, "<f4")
            else:
                return {}
            tensors[name] = numbers.reshape(entry["shape"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    return tensors


def _shapes(model: ModelConfig, num_sources: int, num_targets: int) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor by its name."""
    width, inner, shapes = model.d_model, model.num_heads * model.head_width, _Shapes()
    kinds = {"encoder": ("self",), "decoder": ("self", "cross")}
    layers = {"encoder": model.encoder_layers, "decoder": model.decoder_layers}
    for layer in [f"{stack}.layers.{n}" for stack in kinds for n in range(layers[stack])]:
        for attention in [f"{layer}.{kind}_attention" for kind in kinds[layer.partition(".")[0]]]:
            for part in ("query", "key", "value"):
                shapes.add_linear(f"{attention}.{part}", inner, width, model.attention_bias)
            shapes.add_linear(f"{attention}.output", width, inner, model.attention_bias)
            shapes.add_norm(f"{attention}_norm", width)
        has_bias = model.feed_forward_bias
        shapes.add_linear(f"{layer}.feed_forward.up", model.d_ff, width, has_bias)
        shapes.add_linear(f"{layer}.feed_forward.down", width, model.d_ff, has_bias)
        shapes.add_norm(f"{layer}.feed_forward_norm", width)
    if model.has_final_norm:
        shapes.add_norm("encoder.norm", width)
        shapes.add_norm("decoder.norm", width)
    if model.tie_embeddings != "all":
        shapes.add_linear("source_embedding", num_sources, width, has_bias=False)
    if model.tie_embeddings == "none":
        shapes.add_linear("target_embedding", num_targets, width, has_bias=False)
    shapes.add_linear("output", num_targets, width, model.output_bias)
    return shapes


class _Shapes(dict[str, tuple[int, ...]]):
    """Shapes by the names of tensors."""

    def add_linear(self, name: str, outputs: int, inputs: int, has_bias: bool) -> None:
        self[f"{name}.weight"] = (outputs, inputs)
        if has_bias:
            self[f"{name}.bias"] = (outputs,)

    def add_norm(self, name: str, width: int) -> None:
        self[f"{name}.weight"] = self[f"{name}.bias"] = (width,)
