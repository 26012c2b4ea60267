"""A Marian model computed from its own files, in numpy: what an export and an import are compared with.

It knows only the names, shapes and settings of the format, and none of our modules: so a matrix that was transposed, or a row of a
table that was put in the wrong place, is noticed.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
_NORM_EPS = 1e-6
_HIDDEN = -99999999.0
BATCH = 32
"""Sentences that are computed together."""


@dataclass(slots=True)
class _State:
    """What decoding keeps of B sentences."""

    memory_keys: list[tuple[Array, Array]]
    """For each layer, keys and values of the source, (B, H, S, K)."""
    bias: Array
    """(B, 1, 1, S): 0 where there is a token, else `_HIDDEN`."""
    earlier: list[Any] = field(default_factory=list)
    """For each layer, the inputs of its self-attention so far, (B, T, D); or the cell of its SSRU, (B, D)."""
    position: int = 0


class _LargePairs(NamedTuple):
    """The neighbouring weights of a matrix, in int8, whose products may not fit into 16 bits together."""

    places: NDArray[np.intp]
    """Of the first weight in its column; the second one is behind it."""
    columns: NDArray[np.intp]
    first: Array
    second: Array
    scale: float
    """The matrix was multiplied with it before it was rounded."""

    @classmethod
    def of(cls, weight: NDArray[Any]) -> "_LargePairs":
        scale = 127.0 / max(float(np.abs(weight).max()), 1e-9)
        numbers = np.rint(weight * scale)
        first, second = numbers[0::2], numbers[1::2]
        pairs, columns = np.nonzero((first * second > 0) & (254.0 * np.abs(first + second) > 32767))
        return cls(2 * pairs, columns, first[pairs, columns], second[pairs, columns], scale)


class MarianModel:
    """A model with its tensors.

    Args:
        arrays: by their names in the archive; their type is that of all numbers.
        settings: of `special:model.yml`.
        scales: for each matrix that is multiplied in int8, what its left factor is multiplied with before it is rounded to
            whole numbers from -127 to 127; None: all products are exact.
    """

    def __init__(
        self,
        arrays: dict[str, NDArray[Any]],
        settings: dict[str, Any],
        scales: dict[str, float] | None = None,
    ) -> None:
        self._arrays, self._settings = arrays, settings
        self._scales = scales or {}
        self.largest: defaultdict[str, list[float]] = defaultdict(list)
        """For each matrix, the largest absolute value of each left factor that it was multiplied with."""
        self._large: dict[str, _LargePairs] = {}
        self._heads = int(settings["transformer-heads"])
        self._width = int(settings["dim-emb"])
        self._dtype = next(iter(arrays.values())).dtype
        self._has_ssru = settings.get("transformer-decoder-autoreg", "self-attention") == "rnn"

    def log_probs(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Array]:
        """For each pair the log-probabilities of every token at each place of the target, (T, V).

        Args:
            sources: ids of sentences, each with the end symbol.
            targets: the tokens that are given to the decoder, each behind those before it.
        """
        found: list[Array] = []
        for start in range(0, len(sources), BATCH):
            batch_targets = targets[start : start + BATCH]
            state = self._start(sources[start : start + BATCH])
            steps, last = [], None
            for place in range(max(map(len, batch_targets))):
                steps.append(self._step(state, last))
                last = np.array([ids[min(place, len(ids) - 1)] for ids in batch_targets])
            stacked = np.stack(steps, axis=1)
            found += [stacked[row, : len(ids)] for row, ids in enumerate(batch_targets)]
        return found

    def greedy(
        self,
        sources: Sequence[Sequence[int]],
        limits: Sequence[int],
        *,
        end: int,
        banned: Sequence[int],
    ) -> list[list[int]]:
        """The greedy translation of each source; it ends with `end`, or at its limit.

        Args:
            banned: tokens that no translation contains.
        """
        found: list[list[int]] = []
        for start in range(0, len(sources), BATCH):
            batch_limits = limits[start : start + BATCH]
            state = self._start(sources[start : start + BATCH])
            rows: list[list[int]] = [[] for _ in batch_limits]
            last = None
            for place in range(max(batch_limits)):
                scores = self._step(state, last)
                scores[:, list(banned)] = -np.inf
                last = scores.argmax(-1)
                for row, limit, token in zip(rows, batch_limits, last.tolist(), strict=True):
                    if place < limit and (not row or row[-1] != end):
                        row.append(token)
                if all(len(row) == limit or row[-1] == end for row, limit in zip(rows, batch_limits, strict=True)):
                    break
            found += rows
        return found

    # The encoder.

    def _start(self, sources: Sequence[Sequence[int]]) -> _State:
        length = max(map(len, sources))
        is_real = np.array([[place < len(ids) for place in range(length)] for ids in sources])
        ids = np.array([[*one, *([0] * (length - len(one)))] for one in sources])
        bias = np.where(is_real, 0.0, _HIDDEN).astype(self._dtype)[:, None, None, :]
        table = self._arrays["Wemb" if "Wemb" in self._arrays else "encoder_Wemb"]
        x = self._embedded(table[ids], 0, "encoder")
        for number in range(1, int(self._settings["enc-depth"]) + 1):
            layer = f"encoder_l{number}"
            x = self._sublayer(
                x,
                f"{layer}_self_Wo",
                lambda y, name=f"{layer}_self": self._attend(name, y, self._keys(name, y), bias),
            )
            x = self._feed_forward(x, layer)
        x = self._top(x, "encoder")
        depth = int(self._settings["dec-depth"])
        keys = [self._keys(f"decoder_l{number}_context", x) for number in range(1, depth + 1)]
        return _State(keys, bias, [None] * depth)

    # The decoder, one position at a time.

    def _step(self, state: _State, last: NDArray[Any] | None) -> Array:
        """(B, V): the log-probabilities of the next token; `last`: (B,) ids, None at the beginning."""
        num_rows = len(state.bias)
        tied = "Wemb" in self._arrays
        table = self._arrays["Wemb" if tied else "decoder_Wemb"]
        x = np.zeros((num_rows, 1, self._width), self._dtype) if last is None else table[last][:, None]
        x = self._embedded(x, state.position, "decoder")
        for index in range(len(state.memory_keys)):
            layer = f"decoder_l{index + 1}"
            if self._has_ssru:
                x = self._recurrent(x, layer, state, index)
            else:
                x = self._sublayer(
                    x,
                    f"{layer}_self_Wo",
                    lambda y, name=f"{layer}_self", at=index: self._attend_to_target(name, y, state, at),
                )
            x = self._sublayer(
                x,
                f"{layer}_context_Wo",
                lambda y, name=f"{layer}_context", at=index: self._attend(name, y, state.memory_keys[at], state.bias),
            )
            x = self._feed_forward(x, layer)
        x = self._top(x, "decoder")[:, 0]
        state.position += 1
        untied = "decoder_ff_logit_out_Wt"
        output = "Wemb" if tied else "decoder_Wemb"
        logits = self._product(x, untied if untied in self._arrays else output, is_table=True)
        if "decoder_ff_logit_out_b" in self._arrays:
            logits = logits + self._arrays["decoder_ff_logit_out_b"]
        logits -= logits.max(-1, keepdims=True)
        found: Array = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        return found

    def _attend_to_target(self, name: str, x: Array, state: _State, index: int) -> Array:
        before = state.earlier[index]
        state.earlier[index] = x if before is None else np.concatenate([before, x], axis=1)
        everything = np.zeros((1, 1, 1, 1), self._dtype)
        return self._attend(name, x, self._keys(name, state.earlier[index]), everything)

    def _recurrent(self, x: Array, layer: str, state: _State, index: int) -> Array:
        def cell(y: Array) -> Array:
            forget = _sigmoid(self._affine(y, f"{layer}_rnn_Wf", f"{layer}_rnn_bf"))
            added = (1.0 - forget) * self._product(y, f"{layer}_rnn_W")
            before = state.earlier[index]
            state.earlier[index] = added if before is None else forget * before + added
            found: Array = np.maximum(state.earlier[index], 0.0)
            return found

        return self._sublayer(x, f"{layer}_rnn", cell, after=f"{layer}_rnn_ffn")

    # Parts.

    def _embedded(self, x: Array, start: int, stack: str) -> Array:
        half = self._width // 2
        step = math.log(10000.0) / max(half - 1, 1)
        places = np.arange(start, start + x.shape[1])[:, None]
        angles = places * np.exp(-step * np.arange(half))
        signal = np.concatenate([np.sin(angles), np.cos(angles)], axis=-1).astype(self._dtype)
        added: Array = x * math.sqrt(self._width) + signal
        return self._operated(added, "postprocess-emb", "d", f"{stack}_emb", "_pre")

    def _sublayer(self, x: Array, name: str, function: Any, *, after: str | None = None) -> Array:
        """One sub-layer with what stands before and behind it."""
        y = function(self._operated(x, "preprocess", "", name, "_pre"))
        return self._operated(y, "postprocess", "dan", after or name, "", x)

    def _operated(
        self,
        x: Array,
        option: str,
        default: str,
        name: str,
        suffix: str = "",
        added: Array | None = None,
    ) -> Array:
        for letter in str(self._settings.get(f"transformer-{option}", default)):
            if letter == "n":
                scale, bias = (self._arrays[f"{name}_ln_{one}{suffix}"][0] for one in ("scale", "bias"))
                centred = x - x.mean(-1, keepdims=True)
                variance = (centred * centred).mean(-1, keepdims=True)
                x = scale * (centred / np.sqrt(variance + _NORM_EPS)) + bias
            elif letter == "r":
                mean = (x * x).mean(-1, keepdims=True)
                x = self._arrays[f"{name}_rms_scale{suffix}"][0] * (x / np.sqrt(mean + _NORM_EPS))
            elif letter == "a":
                assert added is not None
                x = x + added
        return x

    def _feed_forward(self, x: Array, layer: str) -> Array:
        def network(y: Array) -> Array:
            inner = self._affine(y, f"{layer}_ffn_W1", f"{layer}_ffn_b1")
            if self._settings.get("transformer-ffn-activation", "swish") == "relu":
                inner = np.maximum(inner, 0.0)
            else:
                inner = inner * _sigmoid(inner)
            return self._affine(inner, f"{layer}_ffn_W2", f"{layer}_ffn_b2")

        return self._sublayer(x, f"{layer}_ffn_ffn", network)

    def _top(self, x: Array, stack: str) -> Array:
        return self._operated(x, "postprocess-top", "", f"{stack}_top")

    def _affine(self, x: Array, matrix: str, bias: str) -> Array:
        found: Array = self._product(x, matrix) + self._arrays[bias]
        return found

    def _product(self, x: Array, matrix: str, *, is_table: bool = False) -> Array:
        self.largest[matrix].append(float(np.abs(x).max()))
        weight = self._arrays[matrix]
        if is_table:
            weight = weight.T
        scale = self._scales.get(matrix)
        if scale is None:
            exact: Array = x @ weight
            return exact
        numbers = np.clip(np.rint(x * scale), -127, 127)
        product = (numbers / scale).astype(self._dtype) @ weight
        return self._lost_in_sums(numbers, product, scale, matrix, weight)

    def _lost_in_sums(self, numbers: Array, product: Array, scale: float, matrix: str, weight: NDArray[Any]) -> Array:
        """The product without what these programs lose.

        They add 127 to the numbers, so that all are at least 0, and add two neighbouring products in 16 bits: a sum above 32,767 becomes
        32,767, and one below -32,768 becomes that. Only two large weights of the same sign beside each other can make such a sum.
        """
        if matrix not in self._large:
            self._large[matrix] = _LargePairs.of(weight)
        large = self._large[matrix]
        rows = numbers.reshape(-1, numbers.shape[-1]) + 127.0
        sums = rows[:, large.places] * large.first + rows[:, large.places + 1] * large.second
        lost = np.clip(sums, -32768, 32767) - sums
        if not lost.any():
            return product
        flat = product.reshape(len(rows), -1)
        for index in np.flatnonzero(lost.any(axis=0)):
            flat[:, large.columns[index]] += (lost[:, index] / (scale * large.scale)).astype(self._dtype)
        return product

    def _heads_of(self, x: Array) -> Array:
        num_rows, length, _ = x.shape
        return x.reshape(num_rows, length, self._heads, -1).transpose(0, 2, 1, 3)

    def _keys(self, name: str, x: Array) -> tuple[Array, Array]:
        keys = self._affine(x, f"{name}_Wk", f"{name}_bk")
        values = self._affine(x, f"{name}_Wv", f"{name}_bv")
        return self._heads_of(keys), self._heads_of(values)

    def _attend(self, name: str, x: Array, keys: tuple[Array, Array], bias: Array) -> Array:
        queries = self._heads_of(self._affine(x, f"{name}_Wq", f"{name}_bq"))
        scale = 1.0 / math.sqrt(queries.shape[-1])
        scores = scale * (queries @ keys[0].transpose(0, 1, 3, 2)) + bias
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        heads = (weights / weights.sum(-1, keepdims=True)) @ keys[1]
        joined = heads.transpose(0, 2, 1, 3).reshape(x.shape)
        return self._affine(joined, f"{name}_Wo", f"{name}_bo")


def _sigmoid(x: Array) -> Array:
    found: Array = 1.0 / (1.0 + np.exp(-x))
    return found
