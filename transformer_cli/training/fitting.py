"""A model whose training cannot fit into memory is refused before anything is allocated."""

import math

import torch

from transformer_cli.config import Config
from transformer_cli.model import Transformer
from transformer_cli.process.memory import require_memory
from transformer_cli.process.torchrun import read_launch
from transformer_cli.training.optimizers import Optimizer

_LOWER = "lower model.d_model, model.d_ff, the number of layers or tokenizer.vocab_size, or use a machine with more memory"
_PARTS = "if a GPU can hold the weights alone, share the training among several: start a process for each with torchrun, and --set runtime.sharding=full"
_MORE_PARTS = "if a GPU can hold the weights alone, start more processes with torchrun, each with a GPU of its own"


def require_memory_for_training(
    config: Config, vocab_sizes: tuple[int, int], device: torch.device
) -> None:
    """Refuse a model whose training cannot fit into memory: parameters, gradients and the optimizer's state.

    Activations need further memory; how much depends on the batches, which can be cut. With
    `runtime.sharding: full`, each process holds a part of all these, and all weights during a validation. The
    processes of a machine share the memory of its CPU.

    Raises:
        TryAgainError: they do not fit; the message has the numbers, and nothing was allocated.
    """
    with torch.device("meta"):
        model = Transformer(config.model, *vocab_sizes)
    of_parameters = sum(parameter.nbytes for parameter in model.parameters())
    average = 0 if config.training.ema_decay is None else of_parameters
    with_average = " and the moving average" if average else ""
    needed = 2 * of_parameters + state_bytes(Optimizer(model, config.training)) + average
    launch, is_sharded = read_launch(), config.runtime.sharding == "full"
    is_sending = launch.size > 1 and not is_sharded
    needed += of_parameters * is_sending
    built, built_bytes = f"model: {of_parameters // 4:,} parameters", of_parameters
    trained = f"{built} with gradients and the state of {config.training.optimizer}{with_average}"
    trained += ", and the gradients that are sent" * is_sending
    # A recorded pass makes gradients of its own; while it is recorded, those of the update are kept aside.
    needed += 2 * of_parameters * config.runtime.cuda_graphs
    trained += ", and the gradients of a recorded pass" * config.runtime.cuda_graphs
    if is_sharded:
        # The average, too, is made on the CPU, and then cut.
        built, built_bytes = built + with_average, of_parameters + average
        trained += f", cut into {launch.size} parts, and all weights for a validation"
        needed = math.ceil(needed / launch.size) + of_parameters
    # The model is built on the CPU.
    places = (torch.device("cpu"), built_bytes, built), (device, needed, trained)
    for place, num_bytes, what in places:
        hint = _LOWER
        if place.type == "cuda":
            hint = f"{_MORE_PARTS if is_sharded else _PARTS}; or {_LOWER}"
        elif launch.local_size > 1:
            num_bytes *= launch.local_size
            what += f", for all {launch.local_size} processes on this machine"
            hint = f"start fewer processes on this machine; or {_LOWER}"
        require_memory(num_bytes, place, what, hint=hint)


def state_bytes(optimizer: Optimizer) -> int:
    """The bytes of the state that an optimizer will have after its first update."""
    return sum(tensor.nbytes for tensor in optimizer.expected_state().values())
