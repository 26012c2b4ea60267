"""The settings of the machine: device, precision and threads."""

from typing import Annotated, Literal

from pydantic import Field

from transformer_cli.config.section import Positive, Section, Switch


class RuntimeConfig(Section):
    """Device, precision and threads."""

    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """auto: a CUDA device if there is one, else an Apple GPU (mps), else the CPU."""
    precision: Literal["auto", "float32", "bfloat16", "float16", "int8"] = "auto"
    """Precision of matrix products and activations; weights and optimizer stay float32. auto: bfloat16 if the hardware is fast at it, else float16 on NVIDIA cards that are fast at that (Volta, Turing), else float32. In float16 a factor that training adapts keeps gradients in range. int8, for translations on a CPU only: inputs and weights of linear layers are rounded to 8 bits, the rest is float32."""
    threads: Annotated[int, Field(strict=True, ge=1, le=1024)] | None = None
    """CPU threads; absent: PyTorch's default."""
    workers: Annotated[int, Field(strict=True, ge=1, le=1024)] | None = None
    """Processes that encode the training pairs (text to ids) while the data are prepared; the result does not depend on it. absent: one for each 250,000 pairs, at most one for each CPU; one where the system is not Linux."""
    compile: Switch = False
    """Compile each layer, and on a GPU the loss, with torch.compile; worthwhile for long runs on a GPU."""
    cuda_graphs: Switch = False
    """Record the forward and backward pass of each shape of batch as a CUDA graph, and replay it: for small models on an NVIDIA GPU, which otherwise waits for the CPU to start each kernel. Batches are padded to few shapes, so dropout draws other masks than without this setting. Not for model.layer_dropout, runtime.sharding: full or training.batch_tokens: auto."""
    sharding: Literal["none", "full"] = "none"
    """How several processes (torchrun) hold the model. none: each holds all of it. full: each holds a part of all weights, gradients and moments (FSDP2), for a training that does not fit into the memory of one GPU; all weights are put together on each GPU for a validation, so they must fit there. training.batch_tokens must then be a number."""
    stuck_after_seconds: Positive | None = None
    """A watchdog ends the training if no step, batch of a validation or save has ended for this time. It prints the stack of each thread and exits with code 75, so a scheduler can start the run again. Choose a longer time than the longest step, batch or save takes; absent: no watchdog."""
