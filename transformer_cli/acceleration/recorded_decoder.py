"""The steps of a search on a GPU, as recordings: the CPU starts all kernels of the decoder with one call.

A step of a search has few rows, so its kernels are short, and the GPU waits for the CPU, which starts them one by one (on an H100, 2 ms
for the 120 kernels of the base model). A replay repeats the same kernels at the same addresses. So all that a step reads lies in
tensors that stay where they are: the keys and values so far, those of the source, the last tokens, and the position. Attention reads
them up to a rounded length; a mask hides what is not there yet.
"""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transformer_cli.acceleration.accelerate import DecoderStateOnGpu, TransformerOnGpu
from transformer_cli.acceleration.cpu_training import (
    fused_mask,
    is_known_to_have_tokens,
    product_dtype,
    with_tokens_in_all,
)
from transformer_cli.acceleration.recorded_passes import Record, Work, recorder_on, rounded_up
from transformer_cli.model.layers import SSRU, LayerCache, LearnedPositions, Rotation, at_least_float32
from transformer_cli.model.transformer import DecoderState, Transformer

MOST_ROWS = 512
"""With more rows the kernels take longer than the CPU needs to start them."""
USES_BEFORE_RECORDING = 8
"""A recording takes as long as ten steps, so a shape is recorded when it has been used so often."""
MOST_RECORDINGS = 256
LEAST_LENGTH = 32


class StepShape(NamedTuple):
    """The sizes of one recording."""

    num_rows: int
    source_length: int
    target_length: int


class RecordedSteps:
    """Recorded steps of the decoder of one model, in eval mode, for searches in any number of threads.

    Args:
        model: its weights do not change.
        recorder_on: makes what records a step on a device; by default CUDA graphs do.
    """

    def __init__(self, model: TransformerOnGpu, recorder_on: Callable[[torch.device], Record] = recorder_on) -> None:
        self._model = model
        self._recorder_on = recorder_on
        self._thread_local = threading.local()

    def start(self, memory: Tensor, source_mask: Tensor | None) -> DecoderState:
        """See `Transformer.start_decoding`; a search ends before the next one of its thread starts."""
        has_tokens = source_mask is None or is_known_to_have_tokens(source_mask)
        if not has_tokens or memory.size(1) == 0:  # too rare for a recording
            return self._model.start_decoding(memory, source_mask)
        buffers: _Buffers | None = getattr(self._thread_local, "buffers", None)
        if buffers is None:
            recorder_on = partial(self._recorder_on, memory.device)
            buffers = self._thread_local.buffers = _Buffers(self._model, recorder_on)
        return _RecordedState(self._model, memory, source_mask, buffers)


class _RecordedState(DecoderStateOnGpu):
    """Computes the first token as ever; then it moves into the buffers, as soon as there are few enough rows."""

    def __init__(self, model: Transformer, memory: Tensor, source_mask: Tensor | None, buffers: "_Buffers") -> None:
        super().__init__(model, memory, source_mask)
        self._source_length = memory.size(1)
        self._buffers = buffers
        self._is_inside = False

    def advance(self, last_ids: Tensor) -> Tensor:
        """See `DecoderState.advance`; the scores are valid until the next call."""
        if not self._is_inside:
            if self._length == 0 or len(last_ids) > MOST_ROWS:
                return super().advance(last_ids)
            self._move_in(len(last_ids))
        positions = self._model.target_positions
        if isinstance(positions, LearnedPositions) and self._length >= len(positions.weight):
            return super().advance(last_ids)  # raises the error of a text that is too long
        found = self._buffers.step(last_ids, self._source_length, self._length)
        self._length += 1
        return found

    def select(self, rows: Tensor, *, keeps_sources: bool = False) -> None:
        """See `DecoderState.select`."""
        if self._is_inside:
            self._buffers.select(rows, keeps_sources=keeps_sources)
        else:
            super().select(rows, keeps_sources=keeps_sources)

    def _move_in(self, num_rows: int) -> None:
        self._buffers.take(self._caches, self._is_source, num_rows, self._source_length, self._length)
        self._caches.clear()
        self._is_inside = True


class _Buffers:
    """What a step reads and writes, at fixed addresses, and the recordings of one thread."""

    def __init__(self, model: TransformerOnGpu, new_recorder: Callable[[], Record]) -> None:
        self._model = model
        self._new_recorder = new_recorder
        self._record = new_recorder()
        self._steps: dict[StepShape, Work] = {}
        self._uses: dict[StepShape, int] = {}
        self._size = StepShape(0, 0, 0)
        self._num_rows = 0

    def take(
        self, caches: list[LayerCache], is_source: Tensor | None, num_rows: int, source_length: int, length: int
    ) -> None:
        """Copy what the decoder layers have kept for these rows; `length` tokens have been read."""
        like = caches[0].source[0]
        self._make_room(num_rows, source_length, length + 1, like)
        for layer, cache in enumerate(caches):
            sources = self._sources[2 * layer : 2 * layer + 2, :num_rows, :, :source_length]
            sources[0].copy_(cache.source[0])
            sources[1].copy_(cache.source[1])
            if cache.state is not None:
                self._states[layer, :num_rows] = cache.state
            else:
                self._targets[2 * layer, :num_rows, :, :length] = cache.keys[:, :, :length]
                self._targets[2 * layer + 1, :num_rows, :, :length] = cache.values[:, :, :length]
        self._is_source[:num_rows, :source_length] = True if is_source is None else is_source
        self._is_source[:num_rows, source_length:] = False
        self._rows.copy_(self._identity)
        self._num_rows = num_rows
        self._position.fill_(length)

    def select(self, rows: Tensor, *, keeps_sources: bool) -> None:
        """New row i is old row `rows[i]`; keys and values of the target move at the beginning of the next step."""
        num_rows = len(rows)
        self._make_room(num_rows, 0, 0, self._sources)
        chosen = self._rows[rows]
        if _rounded(num_rows) < _rounded(self._num_rows):  # the next step sees fewer rows, and not all that are chosen
            for kept in (self._targets, self._states):
                kept[:, :num_rows] = kept.index_select(1, chosen)
            self._rows.copy_(self._identity)
        else:
            self._rows.zero_()
            self._rows[:num_rows] = chosen
        self._num_rows = num_rows
        if not keeps_sources:
            self._sources[:, :num_rows] = self._sources[:, rows]
            self._is_source[:num_rows] = self._is_source[rows]

    def step(self, last_ids: Tensor, source_length: int, target_length: int) -> Tensor:
        """Append a token to each row; `target_length` tokens stand before it. Returns (R, V) log-probabilities."""
        num_rows = len(last_ids)
        self._make_room(num_rows, source_length, target_length + 1, self._sources)
        shape = StepShape(
            _rounded(num_rows),
            max(LEAST_LENGTH, rounded_up(source_length)),
            max(LEAST_LENGTH, 1 << target_length.bit_length()),
        )
        self._ids[:num_rows] = last_ids
        repeat = self._steps.get(shape)
        if repeat is None:
            repeat = self._first_steps(shape)
        repeat()
        return self._scores[:num_rows]

    def _first_steps(self, shape: StepShape) -> Work:
        """The step of a shape that is not recorded yet; it is recorded if it has been used often enough."""

        def work() -> None:
            self._compute(shape)

        self._uses[shape] = self._uses.get(shape, 0) + 1
        if self._uses[shape] < USES_BEFORE_RECORDING or len(self._steps) >= MOST_RECORDINGS:
            return work
        changed = (self._targets, self._states, self._position, self._rows)
        before = [one.clone() for one in changed]
        self._steps[shape] = self._record(work)  # runs it once
        for one, old in zip(changed, before, strict=True):
            one.copy_(old)
        return self._steps[shape]

    def _compute(self, shape: StepShape) -> None:
        """One step of the decoder for the first rows, with tensors of fixed sizes only."""
        model, num_rows = self._model, shape.num_rows
        rows, position = self._rows[:num_rows], self._position
        targets = self._targets[:, :num_rows, :, : shape.target_length]
        if targets.numel():
            targets.copy_(targets.index_select(1, rows))
        states = self._states[:, :num_rows]
        if states.numel():
            states.copy_(states.index_select(1, rows))
        x = model.embed_target_at(self._ids[:num_rows, None], self._positions, position)
        rotation = self._rotation and Rotation(*(one[position] for one in self._rotation))
        is_past = self._numbers[: shape.target_length] <= position
        target_mask = fused_mask(is_past[None, None, None], product_dtype(x), reads_any=True)
        is_source = with_tokens_in_all(self._is_source[:num_rows, : shape.source_length])
        source_mask = model.mask_of_sources(is_source, x)
        sources = self._sources[:, :num_rows, :, : shape.source_length]
        for number, layer in enumerate(model.decoder.layers):
            two = slice(2 * number, 2 * number + 2)
            keys, values = targets[two] if targets.numel() else (None, None)
            state = states[number] if states.numel() else None
            cache: Any = _Cache(keys, values, state, position)
            x = layer.forward(x, tuple(sources[two]), target_mask, source_mask, rotation, cache=cache)
        logits = model.output(model.decoder.norm(x[:, 0]))
        self._scores[:num_rows] = at_least_float32(logits).log_softmax(-1)
        rows.copy_(self._identity[:num_rows])
        position.add_(1)

    def _make_room(self, num_rows: int, source_length: int, target_length: int, like: Tensor) -> None:
        """Let the buffers have at least these sizes; larger ones lie elsewhere, so all recordings are forgotten.

        Args:
            like: keys or values, (..., G, length, K), with their device and precision.
        """
        needed = StepShape(num_rows, source_length, target_length)
        if all(have >= want for have, want in zip(self._size, needed, strict=True)):
            return
        old, had = self._size, self.__dict__.copy()
        self._size = size = StepShape(
            *(
                max(have, least, 1 << (want - 1).bit_length() if want else 0)
                for have, want, least in zip(old, needed, (32, 64, 64), strict=True)
            )
        )
        if self._steps:
            self._steps.clear()
            # The memory of recordings goes with the last of them, and PyTorch does not let a new one use its number.
            self._record = self._new_recorder()
        model, device = self._model, like.device
        num_layers, has_ssru = len(model.decoder.layers), model.config.decoder_layer == "ssru"
        heads, width = like.size(-3), like.size(-1)
        dtype = like.dtype
        num_caches = 0 if has_ssru else 2 * num_layers
        self._targets = like.new_zeros(num_caches, size.num_rows, heads, size.target_length, width)
        self._sources = like.new_zeros(2 * num_layers, size.num_rows, heads, size.source_length, width)
        self._states = torch.zeros(
            num_layers if has_ssru else 0,
            size.num_rows,
            model.config.d_model,
            device=device,
            dtype=torch.promote_types(dtype, torch.float32),
        )
        self._is_source = torch.zeros(size.num_rows, size.source_length, dtype=torch.bool, device=device)
        self._is_source[:, 0] = True  # each row reads something, also one that no search has used
        self._ids = torch.zeros(size.num_rows, dtype=torch.int64, device=device)
        self._identity = torch.arange(size.num_rows, device=device)
        self._rows, self._numbers = self._identity.clone(), torch.arange(size.target_length, device=device)
        self._position = torch.zeros(1, dtype=torch.int64, device=device)
        scores = torch.promote_types(dtype, torch.float32)
        self._scores = torch.zeros(size.num_rows, model.output.out_features, device=device, dtype=scores)
        self._positions = model.table_of_positions(size.target_length)
        x = like.new_zeros(1, size.target_length, 0)
        self._rotation = model.rotation(x)
        if old.num_rows:
            for name in ("_targets", "_sources", "_states", "_is_source", "_rows", "_position"):
                into, what = getattr(self, name), had[name]
                into[tuple(map(slice, what.shape))] = what


def _rounded(num_rows: int) -> int:
    return 1 << (num_rows - 1).bit_length()


class _Cache(NamedTuple):
    """A `LayerCache` whose newest position stands in a tensor."""

    keys: Tensor | None
    values: Tensor | None
    state: Tensor | None
    position: Tensor

    def stepped(self, ssru: SSRU, x: Tensor) -> Tensor:
        """See `LayerCache.stepped`."""
        assert self.state is not None
        found, state = ssru.step(x, self.state)
        self.state.copy_(state)
        return found

    def extend_target(self, newest: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """See `LayerCache.extend_target`; returns all positions of the buffer, of which a mask hides the later ones."""
        assert self.keys is not None
        assert self.values is not None
        self.keys.index_copy_(2, self.position, newest[0].to(self.keys.dtype))
        self.values.index_copy_(2, self.position, newest[1].to(self.values.dtype))
        return self.keys, self.values
