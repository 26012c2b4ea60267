"""Gradient scaling for float16: without it, small gradients become zero and large ones infinite."""

from collections.abc import Iterable

import torch
from torch import Tensor

from transformer_cli.checkpoint.state_values import StateValues

GRADIENT_SCALE = "gradient_scale"
"""Its part of `state.json`."""
LEAST = 1.0
"""While the scale is above this, a gradient that is not finite may be the fault of the scale."""
_SCALE, _TRACKER = "scale", "_growth_tracker"


class GradientScale:
    """A factor of the loss, and so of all gradients in float16; before an update they are divided by it again.

    The scale begins at 65,536. If a gradient is not finite, the update is skipped and the scale is halved; 2,000
    updates in a row without that double it. In the other precisions, which have the range of float32, this object is
    off: it does nothing and has no state. All numbers stay on the device, so the CPU does not wait for them.

    Args:
        device: of the model.
        precision: of matrix products; only float16 needs this.

    Source: Micikevicius et al. 2018, "Mixed Precision Training", section 3.2; `torch.amp.GradScaler`.
    """

    def __init__(self, device: torch.device, precision: torch.dtype) -> None:
        self.is_on = precision == torch.float16
        self._scaler = torch.amp.GradScaler(device.type, enabled=self.is_on)

    def scaled(self, loss: Tensor) -> Tensor:
        """The loss, (), times the scale."""
        return self._scaler.scale(loss)

    def unscale(self, optimizers: Iterable[torch.optim.Optimizer]) -> None:
        """Divide the gradients by the scale, in place: once in an update, when they are sums over all processes."""
        for one in optimizers:
            self._scaler.unscale_(one)

    def adapt(self, is_finite: Tensor) -> Tensor | None:
        """Halve or raise the scale for the next update, after `unscale` has seen the gradients of this one.

        Args:
            is_finite: () bool, of the gradient of this update.

        Returns:
            () bool, whether this update is skipped, and with a smaller scale it may not be; None if this is off.
        """
        if not self.is_on:
            return None
        scale = self._scaler.scale(torch.ones((), device=is_finite.device))
        self._scaler.update()
        return ~is_finite & (scale > LEAST)

    def value(self) -> float | None:
        """The scale of the next update; the CPU waits for it. None if this is off."""
        return self._scaler.get_scale() if self.is_on else None

    def to_json(self) -> dict[str, float]:
        """The numbers that a checkpoint keeps; empty if this is off."""
        state = self._scaler.state_dict()
        return {"scale": state[_SCALE], "growth_tracker": state[_TRACKER]} if state else {}

    def restore(self, values: StateValues) -> None:
        """Put back what `to_json` gave; nothing, if this is off, or if the run was in another precision until now.

        Args:
            values: of `state.json`. Checkpoints without this part are of runs that did not scale.

        Raises:
            DataError: a value is missing, or cannot be that of a scale.
        """
        if not self.is_on or GRADIENT_SCALE not in values.values:
            return
        part = values.part(GRADIENT_SCALE)
        scale, tracker = part.number("scale"), part.count("growth_tracker")
        if not 0.0 < scale < float("inf"):
            raise part.refusal("scale", f"is {scale} instead of a positive number")
        state = self._scaler.state_dict()
        self._scaler.load_state_dict({**state, _SCALE: scale, _TRACKER: tracker})
