"""At each step of a search the CPU looks at the device once, and a batch is copied without waiting."""

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_cli.config import DecodingConfig, ModelConfig
from transformer_cli.decoding.search import beam_search, greedy_search
from transformer_cli.decoding.search.hooks import BannedTokens
from transformer_cli.model.transformer import Transformer

from ..chains import SPECIAL_IDS

WAITING = {"aten::_local_scalar_dense", "aten::equal", "aten::nonzero", "aten::is_nonzero"}
# At the start, to cut the result to its longest hypothesis, and, on a CPU only, to make the mask of the source.
NUM_WAITS_OF_A_SEARCH = 4


class Waits(TorchDispatchMode):
    """Counts the operations for which the CPU waits until a GPU has finished."""

    def __init__(self) -> None:
        super().__init__()
        self.num_waits = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.num_waits += func.name() in WAITING
        return func(*args, **(kwargs or {}))


def waits(beam_size: int, num_steps: int) -> int:
    """The waits of a search that ends after `num_steps` tokens."""
    torch.manual_seed(1)
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 16, "encoder_layers": 1, "decoder_layers": 2}
    model = Transformer(ModelConfig.model_validate(sizes), 9, 300).eval()
    source_ids = torch.randint(4, 9, (3, 5))
    mask = torch.ones(3, 5, dtype=torch.bool)
    mask[1, 3:] = False
    options = DecodingConfig(beam_size=beam_size)
    search = greedy_search if beam_size == 1 else beam_search
    with torch.no_grad(), Waits() as counted:
        scorer = model.start_decoding(model.encode(source_ids, mask), mask)
        max_lengths = torch.full((3,), num_steps)
        never_ends = [BannedTokens([0, 1, 2, 3])]
        found = search(scorer, SPECIAL_IDS, max_lengths, options, never_ends)
    assert found.ids.shape[-1] == num_steps
    return counted.num_waits


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_search_waits_for_the_device_once_in_each_step(beam_size: int) -> None:
    assert waits(beam_size, 12) - waits(beam_size, 6) == 6
    assert waits(beam_size, 6) <= 6 + NUM_WAITS_OF_A_SEARCH
