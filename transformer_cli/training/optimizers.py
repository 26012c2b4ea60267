"""Optimizers behind one adapter: build, step only on a finite gradient, save and restore; learning-rate schedules; the moving average of the weights."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from transformer_cli.acceleration.optimizers import MOMENTUM, BatchedMuon, step, without_tracer
from transformer_cli.checkpoint.run_folder import RAW, Checkpoint, StateValues
from transformer_cli.config import TrainingConfig
from transformer_cli.config.schema import DEFAULT_PLATEAU_FACTOR
from transformer_cli.model import Transformer
from transformer_cli.process.errors import DataError
from transformer_cli.text import Tokenizer
from transformer_cli.training.process_group import is_sharded, own_part, sharded_like

DEFAULT_WEIGHT_DECAY = {"adamw": 0.01, "adafactor": 0.0, "muon": 0.01}
STEP, MOMENTS = "step", ("exp_avg", "exp_avg_sq")
"""Adam's state of one parameter, in PyTorch's names: the number of updates, and two moments."""
ROWS, COLUMNS, VARIANCE = "row_var", "col_var", "variance"
"""Adafactor's second moments: mean squares of the rows and columns of a matrix, or of each number of a vector."""


_NEVER_ZERO = 1e-6
"""Is added to a norm by which something is divided, as `clip_grads_with_norm_` does it."""


class Optimizer:
    """The optimizer that a config asks for, over all parameters of a model that lies on its device already.

    Training uses only what is public here, so another optimizer changes only this file, the config, and the numbers that
    `checkpoint/run_folder.py: NEVER_NEGATIVE` names. Parameters that need no gradient stay as they are and have no state.

    Args:
        model: on its device.
        training: names the optimizer and its settings.
        precision: of matrix products; in float16, gradients are scaled.
    """

    def __init__(self, model: nn.Module, training: TrainingConfig, precision: torch.dtype = torch.float32) -> None:
        self._parameters = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
        self.torch_optimizers = _build(self._parameters, training)
        owners = {
            id(parameter): one
            for one in self.torch_optimizers
            for group in one.param_groups
            for parameter in group["params"]
        }
        self._owners = {name: owners[id(one)] for name, one in self._parameters.items()}
        """The name of each parameter, and the optimizer that changes it."""
        devices = {parameter.device for parameter in self._parameters.values()}
        self.decides_on_device = all(
            _heeds_found_inf(type(one), device) for one in self.torch_optimizers for device in devices
        )
        self._clips_in_update = all(_divides_gradients(one, self._parameters.values()) for one in self.torch_optimizers)
        self._clip_divisor: Tensor | None = None  # (), of the gradients, in the next update
        is_scaled = precision == torch.float16
        self.scale = GradientScale(next(model.parameters()).device) if is_scaled else None

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next update."""
        return float(self.torch_optimizers[0].param_groups[0]["lr"])

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        for one in self.torch_optimizers:
            for group in one.param_groups:
                group["lr"] = value

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for parameter in self._parameters.values():
            parameter.grad = None

    def measure_and_clip(self, max_norm: float | None) -> Tensor:
        """The norm of the gradient over all parameters, (); a longer gradient is scaled down to `max_norm`.

        For Adam on CUDA this only notes the divisor. `step_if` divides by it within the update, so the gradients are
        read and written once less.

        Args:
            max_norm: None: the gradient stays as it is.

        Source: Pascanu et al. 2013, section 3.2.
        """
        parameters = self._parameters.values()
        norm = nn.utils.get_total_norm([one.grad for one in parameters if one.grad is not None])
        self._clip_divisor = None
        if max_norm is not None and self._clips_in_update:
            self._clip_divisor = ((norm + _NEVER_ZERO) / max_norm).clamp(min=1.0)
        elif max_norm is not None:
            nn.utils.clip_grads_with_norm_(parameters, max_norm, norm)
        return norm

    def step_if(self, is_finite: Tensor) -> None:
        """Update the weights, or leave weights, moments and step counts as they are.

        With Adafactor the CPU waits for the device, because its kernels cannot skip an update. (It also reads norms of
        the weights itself.)

        Args:
            is_finite: () bool, whether the gradient has neither NaN nor infinity.
        """
        if self.decides_on_device:
            for one in self.torch_optimizers:
                # These optimizers skip the update if `found_inf` is 1 (made for gradient scalers), so the CPU
                # does not wait for the device.
                fused: Any = one
                fused.grad_scale = self._clip_divisor
                fused.found_inf = (~is_finite).to(torch.float32)
                step(one)
        elif bool(is_finite):
            for one in self.torch_optimizers:
                step(one)

    def state(self) -> dict[str, Tensor]:
        """Moments and step counts, named `<parameter>.<moment>`.

        Before the first update that is not skipped, some optimizers have none: then they are zeros, with which it begins.
        """
        found = {id(p): values for one in self.torch_optimizers for p, values in one.state.items()}
        state = {
            f"{name}.{key}": value
            for name, parameter in self._parameters.items()
            for key, value in found.get(id(parameter), {}).items()
        }
        missing = {name: one for name, one in self.expected_state().items() if name not in state}
        return state | {name: torch.zeros_like(one) for name, one in missing.items()}

    def expected_state(self) -> dict[str, Tensor]:
        """Tensors with the names, shapes and types that `state` has, also before the first update; the values are arbitrary."""
        expected: dict[str, Tensor] = {}
        for name, one in self._parameters.items():
            owner, parameter = self._owners[name], one.detach()
            if isinstance(owner, torch.optim.Muon):
                values = {MOMENTUM: parameter}
            elif not isinstance(owner, torch.optim.Adafactor):
                values = {STEP: torch.zeros(()), **dict.fromkeys(MOMENTS, parameter)}
            elif parameter.ndim < 2:
                values = {STEP: torch.zeros(()), VARIANCE: parameter}
            else:
                values = {STEP: torch.zeros(()), ROWS: parameter[..., :1], COLUMNS: parameter[..., :1, :]}
            expected |= {f"{name}.{key}": value for key, value in values.items()}
        return expected

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Put back what `state` gave.

        Raises:
            DataError: a tensor does not belong to a parameter of this model.
        """
        expected = self.expected_state()
        for full_name, tensor in state.items():
            if full_name not in expected or tensor.shape != expected[full_name].shape:
                raise DataError(f"optimizer.safetensors: {full_name} does not belong to this model")
            name, _, key = full_name.rpartition(".")
            parameter, owner = self._parameters[name], self._owners[name]
            # Fused Adam keeps its step counts on the device of the parameters, Adafactor on the CPU.
            is_on_cpu = key == STEP and isinstance(owner, torch.optim.Adafactor)
            device = torch.device("cpu") if is_on_cpu else parameter.device
            owner.state[parameter][key] = tensor.to(device, copy=True)


def _heeds_found_inf(kind: type[torch.optim.Optimizer], device: torch.device) -> bool:
    """Whether an optimizer changes nothing if `found_inf` is 1; fused kernels of a device are tested on one number.

    PyTorch's kernel for Apple GPUs accepts `found_inf` and ignores it. Adafactor has no such kernel.
    """
    if kind is BatchedMuon:
        return True
    if device.type == "meta" or not issubclass(kind, torch.optim.Adam):
        return False
    parameter = nn.Parameter(torch.ones(1, device=device))
    parameter.grad = torch.ones_like(parameter)
    optimizer: Any = kind([parameter], lr=1.0, fused=True)
    optimizer.grad_scale, optimizer.found_inf = None, torch.ones((), device=device)
    step(optimizer)
    state = optimizer.state[parameter]
    return parameter.item() == 1.0 and not any(state[name].any() for name in (STEP, *MOMENTS))


def _divides_gradients(optimizer: torch.optim.Optimizer, parameters: Iterable[Tensor]) -> bool:
    """Whether an optimizer divides whole gradients by its `grad_scale`: PyTorch's fused kernel of Adam on CUDA does."""
    is_adam = isinstance(optimizer, torch.optim.Adam)
    return is_adam and all(one.is_cuda and not is_sharded(one) for one in parameters)


def _build(parameters: Mapping[str, nn.Parameter], training: TrainingConfig) -> tuple[torch.optim.Optimizer, ...]:
    """PyTorch's optimizers, two for muon; weight decay applies to matrices only."""
    without_tracer()
    adams: dict[str, Any] = {"lr": 0.0, "betas": training.betas, "eps": training.epsilon, "fused": True}
    if training.optimizer == "adam":
        return (torch.optim.Adam(parameters.values(), **adams),)
    decay = training.weight_decay
    decay = DEFAULT_WEIGHT_DECAY[training.optimizer] if decay is None else decay
    if training.optimizer == "adamw":
        return (torch.optim.AdamW(_groups(parameters.values(), decay), **adams),)
    if training.optimizer == "adafactor":
        return (torch.optim.Adafactor(_groups(parameters.values(), decay), lr=0.0),)
    hidden = [p for name, p in parameters.items() if _is_hidden_matrix(name, p)]
    others = [p for name, p in parameters.items() if not _is_hidden_matrix(name, p)]
    built: list[torch.optim.Optimizer] = []
    if hidden:
        built += [BatchedMuon(hidden, weight_decay=decay)]
    if others:
        built += [torch.optim.AdamW(_groups(others, decay), **adams)]
    return tuple(built)


def _groups(parameters: Iterable[nn.Parameter], decay: float) -> list[dict[str, Any]]:
    """The parameter groups of matrices, with weight decay, and of vectors, without."""
    listed = list(parameters)
    matrices, vectors = ([p for p in listed if (p.ndim >= 2) is is_matrix] for is_matrix in (True, False))
    return [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]


def _is_hidden_matrix(name: str, parameter: Tensor) -> bool:
    """Whether a parameter is a matrix inside a layer: no embedding, no output table, no vector.

    Source: Jordan et al. 2024, https://kellerjordan.github.io/posts/muon.
    """
    return parameter.ndim == 2 and name.startswith(("encoder.layers.", "decoder.layers."))


# The embedding of [SOS] that stays zero (`model.start_embedding`).


def clear_start(model: Transformer) -> None:
    """Set the gradient of the embedding of [SOS] to zero, so that an embedding of zeros stays as it is."""
    gradient = start_table(model).grad
    if gradient is not None:
        gradient[Tokenizer.sos_id] = 0.0


def start_table(model: Transformer) -> Tensor:
    """The table from which the decoder takes the embedding of [SOS], (V, D)."""
    return (model.target_embedding or model.output).weight


# The scale of gradients in float16.


GRADIENT_SCALE = "gradient_scale"
"""Its part of `state.json`."""
LEAST = 1.0
"""While the scale is above this, a gradient that is not finite may be the fault of the scale."""
_SCALE, _TRACKER = "scale", "_growth_tracker"


class GradientScale:
    """A factor of the loss, and so of all gradients in float16; before an update they are divided by it again.

    The scale begins at 65,536. If a gradient is not finite, the update is skipped and the scale is halved; 2,000
    updates in a row without that double it. The other precisions, which have the range of float32, need no scale.
    All numbers stay on the device, so the CPU does not wait for them.

    Args:
        device: of the model.

    Source: Micikevicius et al. 2018, "Mixed Precision Training", section 3.2; `torch.amp.GradScaler`.
    """

    def __init__(self, device: torch.device) -> None:
        self._scaler = torch.amp.GradScaler(device.type)

    def scaled(self, loss: Tensor) -> Tensor:
        """The loss, (), times the scale."""
        return self._scaler.scale(loss)

    def unscale(self, optimizers: Iterable[torch.optim.Optimizer]) -> None:
        """Divide the gradients by the scale, in place: once in an update, when they are sums over all processes."""
        for one in optimizers:
            self._scaler.unscale_(one)

    def adapt(self, is_finite: Tensor) -> Tensor:
        """Halve or raise the scale for the next update, after `unscale` has seen the gradients of this one.

        Args:
            is_finite: () bool, of the gradient of this update.

        Returns:
            () bool, whether this update is skipped, and with a smaller scale it may not be.
        """
        scale = self._scaler.scale(torch.ones((), device=is_finite.device))
        self._scaler.update()
        return ~is_finite & (scale > LEAST)

    def value(self) -> float:
        """The scale of the next update; the CPU waits for it."""
        return self._scaler.get_scale()

    def to_json(self) -> dict[str, float]:
        """The numbers that a checkpoint keeps."""
        state = self._scaler.state_dict()
        return {"scale": state[_SCALE], "growth_tracker": state[_TRACKER]}

    def restore(self, values: StateValues) -> None:
        """Put back what `to_json` gave; nothing, if the run was in another precision until now.

        Args:
            values: of `state.json`. Checkpoints without this part are of runs that did not scale.

        Raises:
            DataError: a value is missing, or cannot be that of a scale.
        """
        if GRADIENT_SCALE not in values.values:
            return
        part = values.part(GRADIENT_SCALE)
        scale, tracker = part.number("scale"), part.count("growth_tracker")
        if not 0.0 < scale < float("inf"):
            raise part.refusal("scale", f"is {scale} instead of a positive number")
        state = self._scaler.state_dict()
        self._scaler.load_state_dict({**state, _SCALE: scale, _TRACKER: tracker})


# Learning-rate schedules: the learning rate is a pure function of the step and, for plateau, of the number of drops.


def learning_rate(step: int, training: TrainingConfig, *, d_model: int, num_drops: int = 0) -> float:
    """The learning rate of update `step`, which counts from 1.

    Args:
        step: the number of the update.
        training: schedule, peak and warm-up.
        d_model: the width of the model, for noam.
        num_drops: how often best_metric has stopped improving, for plateau (`Progress.plateau_drops`).

    Source: Vaswani et al. 2017, equation 3 (noam); Loshchilov and Hutter 2017, equation 5 (cosine); Hu et al.
    2024, section 4.2, and Hägele et al. 2024, section 3 (warmup_stable_decay, with a linear decay).
    """
    warmup_steps = training.warmup_steps
    if training.schedule == "noam":
        factor = 1.0 if training.noam_factor is None else training.noam_factor
        return factor * d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)
    peak = training.peak_learning_rate
    if step < warmup_steps:
        return peak * step / warmup_steps
    lowest = training.min_learning_rate or 0.0
    match training.schedule:
        case "inverse_sqrt":
            return float(peak * (max(warmup_steps, 1) / step) ** 0.5)
        case "cosine":
            angle = _share_done(step, warmup_steps, training) * torch.pi
            # Rounded to float32, so that runs of older versions can be resumed.
            return float(lowest + (peak - lowest) * 0.5 * (1 + torch.cos(torch.tensor(angle)).item()))
        case "linear":
            return lowest + (peak - lowest) * (1 - _share_done(step, warmup_steps, training))
        case "warmup_stable_decay":
            first = last_stable_step(training)
            return lowest + (peak - lowest) * (1 - _share_done(step, first, training))
        case "plateau":
            factor = training.plateau_factor or DEFAULT_PLATEAU_FACTOR
            return max(lowest, peak * factor**num_drops)
        case "constant":
            return peak


def last_stable_step(training: TrainingConfig) -> int:
    """warmup_stable_decay: the last update at the peak; the steps after it depend on max_steps and decay_steps."""
    assert training.max_steps is not None
    assert training.decay_steps is not None
    return training.max_steps - training.decay_steps


def _share_done(step: int, first: int, training: TrainingConfig) -> float:
    """0 up to step `first`, 1 from max_steps on, and linear between them."""
    assert training.max_steps is not None
    return min(max((step - first) / max(training.max_steps - first, 1), 0.0), 1.0)


# The exponential moving average of the weights: validation and translation use it; training uses the raw weights.


class MovingAverage:
    """A second model, whose weights follow those of the trained one: average += (1 - d) (weights - average).

    The average begins as a copy of the first weights. The decay d of update t is min(`decay`, (1 + t) / (10 + t)), so
    the first weights soon have little influence. d depends on the step only, so only the average itself is saved.

    Args:
        model: the model that is trained, on its device and not compiled yet.
        decay: share of the average that each update keeps, such as 0.999.

    Source: Polyak and Juditsky 1992 (averaging); the warm-up of d is that of TensorFlow's ExponentialMovingAverage
    with `num_updates`.
    """

    def __init__(self, model: Transformer, decay: float) -> None:
        self.decay = decay
        self.model = copy.deepcopy(model).requires_grad_(False).eval()
        self._trained = model

    @torch.no_grad()
    def update(self, step: int, is_finite: Tensor) -> None:
        """Move the average towards the weights after update `step`; a skipped update does not move it.

        Args:
            step: the number of the update, from 1 on.
            is_finite: () bool, False if the update was skipped; on an accelerator the CPU does not wait for it.
        """
        share = 1 - min(self.decay, (1 + step) / (10 + step))
        weights, averages = (
            [own_part(parameter.detach()) for parameter in model.parameters()] for model in (self._trained, self.model)
        )
        if is_finite.device.type != "cpu":
            differences = torch._foreach_sub(weights, averages)
            torch._foreach_mul_(differences, share * is_finite)
            torch._foreach_add_(averages, list(differences))
        elif bool(is_finite):
            torch._foreach_lerp_(averages, weights, share)


def tensors_to_save(
    model: Transformer, optimizer: Optimizer, average: MovingAverage | None
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The tensors of model.safetensors, for translation, and those of optimizer.safetensors, for resuming.

    With a moving average, the model's file holds the average, and the raw weights are part of the
    optimizer's state.
    """
    if average is None:
        return model.state_dict(), optimizer.state()
    return average.model.state_dict(), optimizer.state() | _raw(model)


def restore_tensors(
    checkpoint: Checkpoint, model: Transformer, optimizer: Optimizer, average: MovingAverage | None
) -> None:
    """Load the tensors that `tensors_to_save` returned for a checkpoint.

    Raises:
        DataError: the tensors are not those of this model, optimizer and average.
    """
    weights, moments = model.state_dict(), optimizer.expected_state()
    translating = sharded_like(checkpoint.model(weights), weights)
    if average is None:
        model.load_state_dict(translating)
        optimizer.restore(sharded_like(checkpoint.optimizer(moments), moments))
        return
    average.model.load_state_dict(translating)
    expected = moments | _raw(model)
    state = sharded_like(checkpoint.optimizer(expected), expected)
    model.load_state_dict({name: state.pop(name + RAW) for name in model.state_dict()})
    optimizer.restore(state)


def _raw(model: Transformer) -> dict[str, Tensor]:
    return {name + RAW: tensor for name, tensor in model.state_dict().items()}
