"""Parts of the model that an ablation replaces from outside, where the config has no such setting.

The code of the model knows nothing of this file. While `replaced` is active, a function of the model is another one,
in this process; the parameters keep their names and shapes.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from torch import Tensor

from transformer_cli.model import Transformer, layers
from transformer_cli.model.attention import MultiHeadAttention
from transformer_cli.model.layers import DecoderLayer, Function
from transformer_cli.model.positions import Rotation


class Replacement(NamedTuple):
    """An attribute of a module or a class, and what stands in its place."""

    owner: Any
    attribute: str
    value: Any


def nothing_hidden(model: Transformer, x: Tensor) -> None:
    """No causal mask: each position of the target reads all others, later ones too."""


def queries_without_scaling(
    attention: MultiHeadAttention, queries: Tensor, rotation: Rotation | None
) -> Tensor:
    """Queries (B, H, Q, K) times sqrt(K), which undoes the division of the scores by sqrt(K)."""
    scaled: Tensor = _queries(attention, queries, rotation)
    return scaled * math.sqrt(scaled.size(-1))


def without_residual(x: Tensor, sublayer: Function, norm: Function, dropout: Function) -> Tensor:
    """dropout(sublayer(norm(x))): the sub-layer replaces its input instead of adding to it."""
    return dropout(sublayer(norm(x)))


def sublayers_without_source(
    layer: DecoderLayer, x: Tensor, attend_to_target: Function, attend_to_source: Function
) -> Tensor:
    """The sub-layers of a decoder layer, of which cross-attention adds zeros: nothing of the source arrives."""

    def attend_in_vain(x: Tensor) -> Tensor:
        return attend_to_source(x) * 0.0

    found: Tensor = _apply_sublayers(layer, x, attend_to_target, attend_in_vain)
    return found


_queries: Callable[..., Any] = MultiHeadAttention._queries
_apply_sublayers: Callable[..., Any] = DecoderLayer._apply_sublayers

REPLACEMENTS = {
    "causal mask": Replacement(Transformer, "target_mask", nothing_hidden),
    "scaling": Replacement(MultiHeadAttention, "_queries", queries_without_scaling),
    "residual connections": Replacement(layers, "_PLACEMENTS", {"pre": without_residual}),
    "cross-attention": Replacement(DecoderLayer, "_apply_sublayers", sublayers_without_source),
}
"""By the name of the part that is taken away."""


@contextmanager
def replaced(part: str | None) -> Iterator[None]:
    """Inside the block, each model of this process is built and computed without this part; None: as usual."""
    if part is None:
        yield
        return
    owner, attribute, value = REPLACEMENTS[part]
    before = getattr(owner, attribute)
    setattr(owner, attribute, value)
    try:
        yield
    finally:
        setattr(owner, attribute, before)
