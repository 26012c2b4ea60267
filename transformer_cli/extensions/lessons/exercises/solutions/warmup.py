"""The learning rate: it rises during the warm-up, and falls after it.

Paper: section 5.3, equation 3. In tfm: `training/optimizers.py`.
"""


def learning_rate(step: int, d_model: int, warmup_steps: int) -> float:
    """The learning rate of one update.

        rate = d_model^(-0.5) * min(step^(-0.5), step * warmup_steps^(-1.5))

    Args:
        step: the number of the update; the first update is 1.
        d_model: the width of the model.
        warmup_steps: the number of updates during which the rate rises.

    Returns:
        The rate.
    """
    return float(d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))
