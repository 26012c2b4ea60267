"""Optimizers, learning-rate curves, and the optimizer's state by parameter name."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from transformer_cli.config import TrainingConfig
from transformer_cli.errors import DataError

DEFAULT_PEAK = 7e-4
DEFAULT_WEIGHT_DECAY = 0.01


def learning_rate(step: int, training: TrainingConfig, *, d_model: int) -> float:
    """The learning rate of update `step`, which counts from 1: a pure function of the step.

    Source: Vaswani et al. 2017, equation 3 (noam); Loshchilov and Hutter 2017, equation 5 (cosine).
    """
    warmup_steps = training.warmup_steps
    if training.schedule == "noam":
        factor = 1.0 if training.noam_factor is None else training.noam_factor
        return factor * d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)
    peak = DEFAULT_PEAK if training.learning_rate is None else training.learning_rate
    if step < warmup_steps:
        return peak * step / warmup_steps
    if training.schedule == "inverse_sqrt":
        return float(peak * (max(warmup_steps, 1) / step) ** 0.5)
    if training.schedule == "cosine":
        assert training.max_steps is not None
        done = (step - warmup_steps) / max(training.max_steps - warmup_steps, 1)
        return float(peak * 0.5 * (1 + torch.cos(torch.tensor(min(done, 1.0) * torch.pi)).item()))
    return peak


def build_optimizer(model: nn.Module, training: TrainingConfig) -> torch.optim.Adam:
    """Adam or AdamW over all parameters; weight decay touches matrices only."""
    parameters = list(model.parameters())
    settings: dict[str, Any] = {
        "lr": 0.0,
        "betas": training.betas,
        "eps": training.epsilon,
        "fused": True,
    }
    if training.optimizer == "adam":
        return torch.optim.Adam(parameters, **settings)
    decay = DEFAULT_WEIGHT_DECAY if training.weight_decay is None else training.weight_decay
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, **settings)


def set_learning_rate(optimizer: torch.optim.Optimizer, value: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = value


def optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Adam's moments and step counts, named `<parameter>.<moment>`; empty before the first update."""
    return {
        f"{name}.{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizer(
    model: nn.Module, optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]
) -> None:
    """Put back what `optimizer_tensors` gave.

    Raises:
        DataError: the tensors are not those of this model's parameters.
    """
    known = dict(model.named_parameters())
    for full_name, tensor in tensors.items():
        name, _, key = full_name.rpartition(".")
        parameter = known.get(name)
        if parameter is None or (key != "step" and tensor.shape != parameter.shape):
            raise DataError(f"optimizer.safetensors: {full_name} does not belong to this model")
        # A fused Adam keeps its step counts beside the parameters.
        optimizer.state[parameter][key] = tensor.to(parameter.device, copy=True)
