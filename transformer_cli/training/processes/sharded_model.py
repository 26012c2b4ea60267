"""A model that is sharded: each process holds a part of every weight, gradient and moment (FSDP2).

Weights are put together for one layer at a time, just before it is used, and gradients are added up and cut in parts
during the backward pass. A tensor of which each process holds a part is a `DTensor`. Its modules take two seconds to
import, so only the functions that need them import them.

Source: Zhao et al. 2023, "PyTorch FSDP"; `torch.distributed.fsdp.fully_shard`.
"""

import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from transformer_cli.model import Transformer
from transformer_cli.training.processes.process_group import Processes


def shard(model: Transformer, device: torch.device, processes: Processes) -> None:
    """Divide the parameters of a model among all processes, layer by layer; the model is changed in place.

    Each layer is moved to the device and cut there, before the next one is moved. So the device holds the parts
    of this process and one layer. The embeddings and the output belong to no layer and count as one.

    Args:
        model: on the CPU; the same weights in each process.
        device: the device that gets the parts of this process.
        processes: all of them take a part.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import (
        FSDPModule,
        fully_shard,
        register_fsdp_forward_method,
    )

    # The logits are such a view. The warning is about changes in place, and no objective changes logits in place.
    warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view", UserWarning)
    mesh = init_device_mesh(device.type, (processes.size,))
    for part in (*model.encoder.layers, *model.decoder.layers, model):
        fully_shard(part, mesh=mesh)
    register_fsdp_forward_method(model, "decoded")  # what objectives call
    for module in model.modules():
        if isinstance(module, FSDPModule):
            # A sum: the objective is divided already.
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)


def sharded_like(tensors: Mapping[str, Tensor], like: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """This process' part of whole tensors; each is divided as the tensor of the same name in `like`.

    Args:
        tensors: the same in each process.
        like: tensors of a model or optimizer, sharded or not; one that is not sharded stays whole.
    """
    return {name: _sharded_like(tensor, like.get(name)) for name, tensor in tensors.items()}


def _sharded_like(tensor: Tensor, like: Tensor | None) -> Tensor:
    if like is None or not is_sharded(like):
        return tensor
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(like, DTensor)
    on_device = tensor.to(like.device)
    return distribute_tensor(on_device, like.device_mesh, like.placements, src_data_rank=None)


def is_sharded(tensor: Tensor) -> bool:
    """Whether each process holds a part of the tensor (a `DTensor`)."""
    return hasattr(tensor, "full_tensor")


def own_part(tensor: Tensor) -> Tensor:
    """The part of a tensor that this process holds: all of it, unless it is sharded."""
    parts: Any = tensor
    return parts.to_local() if is_sharded(tensor) else tensor


def whole(tensor: Tensor) -> Tensor:
    """The tensor put together from the parts of all processes; all of them call this."""
    parts: Any = tensor
    return parts.full_tensor() if is_sharded(tensor) else tensor


def gathered(tensors: Mapping[str, Tensor], processes: Processes) -> dict[str, Tensor]:
    """The whole tensors on the CPU of rank 0, one after the other; tensors that are not sharded stay where they are.

    The other processes get names with empty tensors.
    """
    return {name: _gathered(tensor, processes) for name, tensor in tensors.items()}


def _gathered(tensor: Tensor, processes: Processes) -> Tensor:
    if not is_sharded(tensor):
        return tensor
    together = whole(tensor)
    return together.cpu() if processes.is_main else together.new_empty(0)


def whole_copy(model: Transformer, device: torch.device) -> Transformer:
    """A model with all weights in each process, in eval mode, for a validation.

    The device holds all weights once, beside the parts: they are put together one after the other.
    """
    output = model.output.weight.size(0)
    source = model.source_embedding.num_embeddings if model.source_embedding else output
    copy = Transformer(model.config, source, output).to(device)
    weights = copy.state_dict()
    for name, tensor in model.state_dict().items():
        weights[name].copy_(whole(tensor))
    return copy.eval()
