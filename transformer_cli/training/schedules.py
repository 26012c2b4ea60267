"""Learning-rate schedules: the learning rate is a pure function of the step."""

import torch

from transformer_cli.config import TrainingConfig

DEFAULT_PEAK = 7e-4


def learning_rate(step: int, training: TrainingConfig, *, d_model: int) -> float:
    """The learning rate of update `step`, which counts from 1.

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
        # Rounded to float32, so that runs of older versions can be resumed.
        return float(peak * 0.5 * (1 + torch.cos(torch.tensor(min(done, 1.0) * torch.pi)).item()))
    return peak
