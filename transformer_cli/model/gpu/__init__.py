"""Losses for GPUs: functions that torch.compile turns into few kernels (`runtime.compile`); same results, fewer passes over the logits."""
