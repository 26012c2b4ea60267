"""Parts of the model as kernels for training on a CPU: same results, fewer passes over memory, gradients by hand.

Each has a plain form, which all other devices, compiled layers and evaluation use, and which its test compares it with.
"""

import torch
from torch import Tensor


def trains_on_cpu(x: Tensor) -> bool:
    """Whether the kernels of this folder serve this tensor."""
    return x.device.type == "cpu" and torch.is_grad_enabled() and not torch.compiler.is_compiling()
