"""Where the weights of a model lie in the files of another program, so that they can be read back from there.

Other programs join matrices (queries, keys and values), transpose them, and lengthen tables. No value is changed, so each
of our tensors is found by comparing values.
"""

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

from torch import Tensor

from transformer_cli.process.errors import DataError


class Place(NamedTuple):
    """The place of one of our tensors."""

    tensor: str
    """The name of the other program's tensor."""
    first_row: int
    """Our tensor begins at this row of it."""
    is_transposed: bool
    """Whether our tensor is the transposed one."""


class StoredWeights(NamedTuple):
    """The places of a model's tensors."""

    places: dict[str, Place]
    """By our names."""
    rest: dict[str, Tensor]
    """Our tensors that lie nowhere in the files."""


def find_places(state: Mapping[str, Tensor], stored: Mapping[str, Tensor]) -> StoredWeights:
    """Find each tensor of a model among those of another program.

    Args:
        state: the model's `state_dict`.
        stored: the tensors in the files of the other program.
    """
    found = StoredWeights({}, {})
    for name, ours in state.items():
        places = (_place(ours, theirs, tensor) for theirs, tensor in stored.items())
        place = next((one for one in places if one is not None), None)
        if place is None:
            found.rest[name] = ours
        else:
            found.places[name] = place
    return found


def read_back(
    weights: StoredWeights, stored: Mapping[str, Tensor], expected: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """The `state_dict` of a model from the files of another program.

    Args:
        weights: what `find_places` found.
        stored: the tensors in the files of the other program.
        expected: tensors with the names and the shapes of the model, on any device.

    Raises:
        DataError: a tensor is missing, or has another shape.
    """
    state = {}
    for name, wanted in expected.items():
        ours = weights.rest.get(name)
        if name in weights.places:
            tensor, first_row, is_transposed = weights.places[name]
            theirs = stored.get(tensor)
            if theirs is None:
                raise DataError(f"the weights have no tensor {tensor}, in which {name} should be")
            theirs = theirs.T if is_transposed and theirs.dim() == 2 else theirs
            ours = theirs[first_row : first_row + len(wanted)] if wanted.dim() else theirs
        if ours is None:
            raise DataError(f"the weights do not have {name}")
        if ours.shape != wanted.shape:
            shapes = f"{list(ours.shape)} instead of {list(wanted.shape)}"
            raise DataError(f"the weights: {name} has the shape {shapes}")
        state[name] = ours.contiguous().clone()
    return state


def digest(state: Mapping[str, Tensor]) -> str:
    """The SHA-256 of the names, shapes and values of a model's tensors."""
    found = hashlib.sha256()
    for name in sorted(state):
        tensor = state[name].detach().cpu().contiguous()
        found.update(f"{name} {list(tensor.shape)} {tensor.dtype}\n".encode())
        found.update(tensor.numpy().tobytes())
    return found.hexdigest()


def _place(ours: Tensor, name: str, theirs: Tensor) -> Place | None:
    if theirs.dtype != ours.dtype or theirs.dim() != ours.dim():
        return None
    for is_transposed in (False, True) if ours.dim() == 2 else (False,):
        first_row = _first_row(ours, theirs.T if is_transposed else theirs)
        if first_row is not None:
            return Place(name, first_row, is_transposed)
    return None


def _first_row(ours: Tensor, theirs: Tensor) -> int | None:
    """The row of `theirs` at which `ours` begins; joined matrices begin at multiples of their length."""
    if ours.dim() == 0:
        return 0 if bool(ours == theirs) else None
    num_rows = len(ours)
    if ours.shape[1:] != theirs.shape[1:] or not 0 < num_rows <= len(theirs):
        return None
    for row in range(0, len(theirs) - num_rows + 1, num_rows):
        # Most matrices differ in their first row already.
        if theirs[row].equal(ours[0]) and theirs[row : row + num_rows].equal(ours):
            return row
    return None
