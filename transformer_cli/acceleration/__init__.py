"""The model and the losses, faster: twins for CPUs and GPUs, kernels in C, compiled layers, recorded passes.

`model/` knows nothing of this folder. `accelerate` puts the twins in place.
"""

from transformer_cli.acceleration.accelerate import accelerate as accelerate
from transformer_cli.acceleration.accelerate import accelerated_loss as accelerated_loss
from transformer_cli.acceleration.accelerate import plain_class as plain_class
