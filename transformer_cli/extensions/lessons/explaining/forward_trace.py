"""A real forward pass, observed by hooks: attention weights, masks, positions, and the shape of every tensor."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from transformer_cli.acceleration import plain_class
from transformer_cli.acceleration.cpu_training import Mask, visible_of
from transformer_cli.extensions.lessons.explaining.explanation import (
    AttentionWeights,
    Masks,
    Numbers,
    Positions,
    TensorShapes,
)
from transformer_cli.model import Transformer
from transformer_cli.model.layers import MultiHeadAttention, NoPositions, at_least_float32

FORWARD = "forward"
"""The operation of a module that was called."""


class AttentionCall(NamedTuple):
    """What one attention module did in the forward pass; of the only sentence of the batch."""

    weights: Tensor
    """(H, Q, C) float32 at least, before dropout; each row sums to 1."""
    visible: Tensor
    """(Q, C) bool: what the mask allows."""


@dataclass(slots=True)
class ForwardTrace:
    """What the hooks saw; all tensors are on the CPU."""

    log_probs: Tensor
    """(T, V) float32 at least: of the next token at each target position."""
    attention: dict[str, AttentionCall] = field(default_factory=dict)
    """By the path of the module, such as encoder.layers.0.self_attention."""
    shapes: list[TensorShapes] = field(default_factory=list)
    """In the order in which the modules began."""
    added_positions: dict[str, Tensor] = field(default_factory=dict)
    """(positions, D) for source_positions and target_positions: their output minus their input."""

    @property
    def has_decoder_attention(self) -> bool:
        """Whether the decoder reads the target with self-attention; else it has SSRUs."""
        return "decoder.layers.0.self_attention" in self.attention

    def weights_of(self, kind: str) -> Tensor:
        """(layers, H, Q, C): of all modules whose path matches encoder.self_attention, decoder.cross_attention and so on."""
        stack, _, name = kind.partition(".")
        calls = [
            call.weights
            for path, call in self.attention.items()
            if path.startswith(f"{stack}.") and path.endswith(f".{name}")
        ]
        return torch.stack(calls)

    def mask_of(self, kind: str) -> Tensor:
        """(Q, C) bool: the mask of the first layer; all layers have the same one."""
        stack, _, name = kind.partition(".")
        return self.attention[f"{stack}.layers.0.{name}"].visible


def trace_forward(model: Transformer, source_ids: Tensor, decoder_input_ids: Tensor) -> ForwardTrace:
    """Run `model(source_ids, None, decoder_input_ids)` once, and observe it.

    The hooks are on a copy of the modules that shares the weights, so that other threads may use the model meanwhile.
    The caller sets inference mode and the precision.

    Args:
        model: in eval mode, because dropout would change the numbers.
        source_ids: (1, S) int64.
        decoder_input_ids: (1, T) int64.
    """
    if model.training:
        raise ValueError("the model is in training mode; call model.eval() first")
    observed = _with_shared_weights(model)
    trace = ForwardTrace(torch.empty(0))
    with _hooks_on(observed, model, trace), _LookUps(observed, trace):
        logits = observed(source_ids, None, decoder_input_ids)
    trace.log_probs = at_least_float32(logits[0]).log_softmax(-1).cpu()
    return trace


def _with_shared_weights(model: Transformer) -> Transformer:
    """A copy of the modules; their parameters and buffers are those of the model."""
    tensors = [*model.parameters(), *model.buffers()]
    return copy.deepcopy(model, {id(tensor): tensor for tensor in tensors})


@contextmanager
def _hooks_on(observed: nn.Module, model: nn.Module, trace: ForwardTrace) -> Iterator[None]:
    """Hooks on a copy of a model; the model itself computes what a fused kernel does not show: attention weights."""
    handles: list[Any] = []
    for name, module in observed.named_modules():
        if isinstance(module, nn.ModuleList | nn.Identity | NoPositions):
            continue  # an Identity stands where this config has no norm
        handles += _shape_hooks(name, module, trace)
        if isinstance(module, MultiHeadAttention):
            note = _attention_hook(name, model.get_submodule(name), trace)
            handles.append(module.register_forward_pre_hook(note))
        if name.endswith("_positions"):
            handles.append(module.register_forward_hook(_positions_hook(name, trace)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _attention_hook(name: str, original: nn.Module, trace: ForwardTrace) -> Callable[..., None]:
    assert isinstance(original, MultiHeadAttention)

    def note(module: nn.Module, args: Any) -> None:
        x, context, mask, *rotation = args
        weights = at_least_float32(original.weights(x, context, mask, *rotation))[0]  # (H, Q, C)
        trace.attention[name] = AttentionCall(weights.cpu(), _visible(mask, weights).cpu())

    return note


def _visible(mask: Tensor | Mask | None, weights: Tensor) -> Tensor:
    """(Q, C) bool: what the mask of the only sentence allows to all heads."""
    shape = weights.shape[1:]
    visible = visible_of(mask)
    if visible is None:
        return torch.ones(shape, dtype=torch.bool)
    return visible.reshape(visible.shape[-2:]).expand(shape)


def _positions_hook(name: str, trace: ForwardTrace) -> Callable[..., None]:
    def note(module: nn.Module, args: Any, output: Tensor) -> None:
        trace.added_positions[name] = (output - args[0])[0].float().cpu()

    return note


def _shape_hooks(name: str, module: nn.Module, trace: ForwardTrace) -> list[Any]:
    """Two hooks: the first one keeps the place in the order, the second one knows the output."""
    places: list[int] = []
    kind, parameters = plain_class(module).__name__, _parameter_shapes(module)

    def begin(module: nn.Module, args: Any) -> None:
        places.append(len(trace.shapes))
        trace.shapes.append(TensorShapes(name, kind, FORWARD, _shapes_of(args), (), parameters))

    def end(module: nn.Module, args: Any, output: Any) -> None:
        place = places.pop()
        trace.shapes[place] = replace(trace.shapes[place], output=tuple(output.shape))

    return [module.register_forward_pre_hook(begin), module.register_forward_hook(end)]


class _LookUps(TorchFunctionMode):
    """Notes look-ups in the table of a module that is not called: a tied table is the weight of the output."""

    def __init__(self, model: nn.Module, trace: ForwardTrace) -> None:
        super().__init__()
        self._trace = trace
        self._owners = {
            id(module.weight): (name, module)
            for name, module in model.named_modules()
            if isinstance(module, nn.Linear | nn.Embedding)
        }

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Called in place of each function of PyTorch; calls it."""
        output = func(*args, **(kwargs or {}))
        if func is F.embedding:
            self._note(func.__name__, args, tuple(output.shape))
        return output

    def _note(self, operation: str, args: Any, shape: tuple[int, ...]) -> None:
        owned = [(self._owners[id(one)], one) for one in args if id(one) in self._owners]
        for (name, module), weight in owned:
            inputs = _shapes_of(one for one in args if one is not weight)
            kind, parameters = plain_class(module).__name__, _parameter_shapes(module)
            self._trace.shapes.append(TensorShapes(name, kind, operation, inputs[:1], shape, parameters))


def _parameter_shapes(module: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(one.shape) for name, one in module.named_parameters(recurse=False)}


def _shapes_of(values: Any) -> tuple[tuple[int, ...], ...]:
    plain = (visible_of(one) if isinstance(one, Mask) else one for one in values)
    return tuple(tuple(value.shape) for value in plain if isinstance(value, Tensor))


_ENCODER, _DECODER = "encoder.self_attention", "decoder.self_attention"
_CROSS = "decoder.cross_attention"


def attention_of(trace: ForwardTrace, model: Transformer) -> AttentionWeights:
    """The attention weights of all layers and heads."""
    encoder, cross = (Numbers(trace.weights_of(kind).numpy()) for kind in (_ENCODER, _CROSS))
    has_decoder = trace.has_decoder_attention
    decoder = Numbers(trace.weights_of(_DECODER).numpy()) if has_decoder else None
    return AttentionWeights(encoder, decoder, cross, model.config.aligning_layer)


def masks_of(trace: ForwardTrace) -> Masks:
    """Which position may read which."""
    encoder, cross = (Numbers(trace.mask_of(kind).float().numpy()) for kind in (_ENCODER, _CROSS))
    has_decoder = trace.has_decoder_attention
    decoder = Numbers(trace.mask_of(_DECODER).float().numpy()) if has_decoder else None
    return Masks(encoder, decoder, cross)


def positions_of(trace: ForwardTrace, model: Transformer, num_source: int, num_target: int) -> Positions:
    """What tells the model the order of S source and T target tokens."""
    kind = model.config.positions
    if kind == "none":
        return Positions(kind, "none", None, None)
    if kind == "rotary":
        source, target = (Numbers(_rotation(model, length).numpy(), -1.0, 1.0) for length in (num_source, num_target))
        return Positions(kind, "angles", source, target)
    added = (trace.added_positions[f"{side}_positions"].numpy() for side in ("source", "target"))
    source, target = map(Numbers.of, added)
    return Positions(kind, "added", source, target)


def _rotation(model: Transformer, length: int) -> Tensor:
    """(length, K): the sines, then the cosines, of the angles by which queries and keys are rotated."""
    like = torch.empty(1, length, model.config.d_model, dtype=next(model.parameters()).dtype)
    rotation = model.rotation(like)
    assert rotation is not None
    return torch.cat(list(rotation), dim=-1).float()
