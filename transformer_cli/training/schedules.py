"""Learning-rate schedules: the learning rate is a pure function of the step and, for plateau, of the number of drops."""

import torch

from transformer_cli.config import TrainingConfig
from transformer_cli.config.training import DEFAULT_PLATEAU_FACTOR


def learning_rate(
    step: int, training: TrainingConfig, *, d_model: int, num_drops: int = 0
) -> float:
    """The learning rate of update `step`, which counts from 1.

    Args:
        step: the number of the update.
        training: schedule, peak and warm-up.
        d_model: the width of the model, for noam.
        num_drops: how often best_metric has stopped improving, for plateau (`Progress.plateau_drops`).

    Source: Vaswani et al. 2017, equation 3 (noam); Loshchilov and Hutter 2017, equation 5 (cosine); Hu et al.
    2024, section 4.2, and Hagele et al. 2024, section 3 (warmup_stable_decay, with a linear decay).
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
            return float(
                lowest + (peak - lowest) * 0.5 * (1 + torch.cos(torch.tensor(angle)).item())
            )
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
