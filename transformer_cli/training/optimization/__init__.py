"""From gradients to new weights: optimizers and learning-rate schedules."""
