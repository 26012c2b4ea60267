"""Where a model looks: the attention weights of one pass, for pictures."""

import sys
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from transformer_cli.model.attention import MultiHeadAttention
from transformer_cli.model.transformer import Transformer


def attention_maps(
    model: Transformer, source_ids: Tensor, source_mask: Tensor, decoder_input_ids: Tensor
) -> dict[str, Tensor]:
    """The weights of every attention, by its name, with dropout off.

    Args:
        source_ids: (B, S) int64.
        source_mask: (B, S) bool, True where there is a token.
        decoder_input_ids: (B, T) int64.

    Returns:
        For instance "decoder.layers.0.cross_attention": (B, H, T, S). A row belongs to the position
        that asks and sums to 1 over the positions that are asked.
    """
    maps: dict[str, Tensor] = {}

    def keep_weights_of(name: str) -> Any:
        def keep(attention: nn.Module, inputs: tuple[Any, ...]) -> None:
            assert isinstance(attention, MultiHeadAttention)
            maps[name] = attention.weights(*inputs)

        return keep

    was_training = model.training
    with ExitStack() as undo:
        undo.callback(model.train, was_training)
        for name, module in model.named_modules():
            if isinstance(module, MultiHeadAttention):
                undo.callback(module.register_forward_pre_hook(keep_weights_of(name)).remove)
        if "torch._dynamo" in sys.modules:  # compiled layers would not see the hooks
            undo.enter_context(torch.compiler.set_stance("force_eager"))
        undo.enter_context(torch.no_grad())
        model.eval()(source_ids, source_mask, decoder_input_ids)
    return maps
