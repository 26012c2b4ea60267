"""Optimizers behind one adapter: build, step only on a finite gradient, save and restore the state."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from transformer_cli.config import TrainingConfig
from transformer_cli.errors import DataError

DEFAULT_WEIGHT_DECAY = 0.01
STEP, MOMENTS = "step", ("exp_avg", "exp_avg_sq")
"""Adam's state of one parameter, in PyTorch's names: the number of updates, and two moments."""


class Optimizer:
    """Adam or AdamW over all parameters of a model that lies on its device already.

    Training uses only these methods, so another optimizer changes only this file and the config.
    """

    def __init__(self, model: nn.Module, training: TrainingConfig) -> None:
        self._parameters = dict(model.named_parameters())
        self.torch_optimizer = _build(self._parameters, training)
        kind = type(self.torch_optimizer)
        devices = {parameter.device for parameter in model.parameters()}
        self.decides_on_device = all(_heeds_found_inf(kind, device) for device in devices)

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next update."""
        return float(self.torch_optimizer.param_groups[0]["lr"])

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        for group in self.torch_optimizer.param_groups:
            group["lr"] = value

    def zero_grad(self) -> None:
        """Forget all gradients."""
        self.torch_optimizer.zero_grad(set_to_none=True)

    def step_if(self, is_finite: Tensor) -> None:
        """Update the weights, or leave weights, moments and step counts as they are.

        Args:
            is_finite: () bool, whether the gradient has neither NaN nor infinity.
        """
        if self.decides_on_device:
            # Fused Adam skips the update if `found_inf` is 1 (made for gradient scalers), so the CPU
            # does not wait for the device.
            fused: Any = self.torch_optimizer
            fused.grad_scale = None
            fused.found_inf = (~is_finite).to(torch.float32)
            self.torch_optimizer.step()
        elif bool(is_finite):
            self.torch_optimizer.step()

    def state(self) -> dict[str, Tensor]:
        """Moments and step counts, named `<parameter>.<moment>`; empty before the first update."""
        return {
            f"{name}.{key}": value
            for name, parameter in self._parameters.items()
            for key, value in self.torch_optimizer.state.get(parameter, {}).items()
        }

    def expected_state(self) -> dict[str, Tensor]:
        """Tensors with the names, shapes and types that `state` has after the first update."""
        expected = {f"{name}.{STEP}": torch.zeros(()) for name in self._parameters}
        for name, parameter in self._parameters.items():
            expected |= {f"{name}.{moment}": parameter.detach() for moment in MOMENTS}
        return expected

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Put back what `state` gave.

        Raises:
            DataError: a tensor does not belong to a parameter of this model.
        """
        for full_name, tensor in state.items():
            name, _, key = full_name.rpartition(".")
            parameter = self._parameters.get(name)
            if parameter is None or (key != STEP and tensor.shape != parameter.shape):
                raise DataError(f"optimizer.safetensors: {full_name} does not belong to this model")
            # Fused Adam keeps its step counts on the device of the parameters.
            self.torch_optimizer.state[parameter][key] = tensor.to(parameter.device, copy=True)


def _heeds_found_inf(kind: type[torch.optim.Adam], device: torch.device) -> bool:
    """Whether the fused kernel of a device changes nothing if `found_inf` is 1; tested on one number.

    PyTorch's kernel for Apple GPUs accepts `found_inf` and ignores it.
    """
    if device.type == "meta":
        return False
    parameter = nn.Parameter(torch.ones(1, device=device))
    parameter.grad = torch.ones_like(parameter)
    optimizer: Any = kind([parameter], lr=1.0, fused=True)
    optimizer.grad_scale, optimizer.found_inf = None, torch.ones((), device=device)
    optimizer.step()
    state = optimizer.state[parameter]
    return parameter.item() == 1.0 and not any(state[name].any() for name in (STEP, *MOMENTS))


def _build(parameters: Mapping[str, nn.Parameter], training: TrainingConfig) -> torch.optim.Adam:
    """PyTorch's optimizer; weight decay applies to matrices only."""
    settings: dict[str, Any] = {
        "lr": 0.0,
        "betas": training.betas,
        "eps": training.epsilon,
        "fused": True,
    }
    if training.optimizer == "adam":
        return torch.optim.Adam(parameters.values(), **settings)
    decay = DEFAULT_WEIGHT_DECAY if training.weight_decay is None else training.weight_decay
    matrices = [p for p in parameters.values() if p.ndim >= 2]
    vectors = [p for p in parameters.values() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, **settings)
