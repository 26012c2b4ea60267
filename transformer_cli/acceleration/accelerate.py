"""The seam: modules and losses of the plain model are replaced by faster twins, once, when a run or an engine opens.

A twin is a subclass with the same parameters and another `forward`, so a module becomes its twin when its class changes:
parameters, their names and hooks stay. The plain form is the oracle of the tests of its twin.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import nn

from transformer_cli.acceleration.compiled_losses import (
    compiled_sum_loss,
    compiled_symmetric_divergence,
)
from transformer_cli.acceleration.cpu_losses import likelihood_loss_on_cpu, r_drop_loss_on_cpu
from transformer_cli.acceleration.cpu_training import (
    AttentionOnCpu,
    DropoutOnCpu,
    LayerNormOnCpu,
    LinearOnCpu,
    TransformerOnCpu,
)
from transformer_cli.acceleration.gpu_attention import FusedAttention, TransformerOnGpu
from transformer_cli.acceleration.losses_in_parts import (
    sum_loss_in_parts,
    symmetric_divergence_in_parts,
)
from transformer_cli.model.attention import MultiHeadAttention
from transformer_cli.model.loss import LossSums, likelihood_loss
from transformer_cli.model.transformer import Transformer

Twins = dict[type[nn.Module], type[nn.Module]]

TWINS_ON_CPU: Twins = {
    Transformer: TransformerOnCpu,
    MultiHeadAttention: AttentionOnCpu,
    nn.Linear: LinearOnCpu,
    nn.LayerNorm: LayerNormOnCpu,
    nn.Dropout: DropoutOnCpu,
}
"""What trains faster on a CPU. (`PyTorchEngine.prepared` makes a model that translates faster.)"""
TWINS_ON_GPU: Twins = {Transformer: TransformerOnGpu, MultiHeadAttention: FusedAttention}
_PLAIN = {twin: plain for twins in (TWINS_ON_CPU, TWINS_ON_GPU) for plain, twin in twins.items()}


def accelerate(model: Transformer, device: torch.device) -> Transformer:
    """The same model, whose modules are the twins for a device; modules without a twin stay as they are.

    Args:
        model: changed in place; its parameters may still lie on another device.
        device: where the model will compute.
    """
    twins = TWINS_ON_CPU if device.type == "cpu" else TWINS_ON_GPU
    for module in model.modules():
        plain = plain_class(module)
        if plain in TWINS_ON_CPU:
            module.__class__ = twins.get(plain, plain)
    return model


def plain_class(module: nn.Module) -> type[nn.Module]:
    """The class of which a module is the twin, or its own class."""
    return _PLAIN.get(type(module), type(module))


def accelerated_loss(
    loss: Callable[..., LossSums], device: torch.device, *, is_compiled: bool = False
) -> Callable[..., LossSums]:
    """The twin of `likelihood_loss` or `r_drop_loss` for a device.

    Args:
        loss: the plain form.
        device: of the model.
        is_compiled: whether torch.compile makes kernels for the loss; a CPU has its own in any case.
    """
    if device.type == "cpu":
        return likelihood_loss_on_cpu if loss is likelihood_loss else r_drop_loss_on_cpu
    sum_loss = compiled_sum_loss if is_compiled else sum_loss_in_parts
    if loss is likelihood_loss:
        return partial(loss, sum_loss=sum_loss)
    divergence = compiled_symmetric_divergence if is_compiled else symmetric_divergence_in_parts
    return partial(loss, sum_loss=sum_loss, divergence=divergence)
