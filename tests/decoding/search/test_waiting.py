"""At each step of a search the CPU looks at the device once, and a batch is copied without waiting."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_cli.config import DecodingConfig, ModelConfig
from transformer_cli.decoding.search import (
    beam_search,
    diverse_beam_search,
    greedy_search,
    sample_search,
)
from transformer_cli.decoding.search.beam import (
    BannedTokens,
    CoveragePenalty,
    Hypotheses,
    MinimalLengths,
    NoRepeatedNgrams,
    Scorer,
    SearchHook,
    WholeCharacters,
)
from transformer_cli.model.transformer import Transformer
from transformer_cli.text.tokenizer_file import BytePieces

from ..chains import SPECIAL_IDS

WAITING = {"aten::_local_scalar_dense", "aten::equal", "aten::nonzero", "aten::is_nonzero"}
# At the start, of a search, of the coverage penalty and of whole characters, to cut the result to its longest hypothesis, and, on a CPU only,
# to make the mask of the source.
NUM_WAITS_OF_A_SEARCH = 6
PIECES = BytePieces.of([bytes([number % 256]) for number in range(300)])
assert PIECES is not None
SEARCHES: dict[str, dict[str, Any]] = {
    "greedy": {"beam_size": 1},
    "beam": {"beam_size": 4},
    "coverage": {"beam_size": 4, "coverage_penalty": 0.2},
    "diverse": {"beam_size": 4, "diversity": {"groups": 2}},
    "sampling": {"num_best": 2, "sampling": {}},
    "filtered sampling": {"sampling": {"top_k": 50, "top_p": 0.9, "min_p": 0.01}},
}


class Waits(TorchDispatchMode):
    """Counts the operations for which the CPU waits until a GPU has finished."""

    def __init__(self) -> None:
        super().__init__()
        self.num_waits = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.num_waits += func.name() in WAITING
        return func(*args, **(kwargs or {}))


def waits(settings: dict[str, Any], num_steps: int) -> int:
    """The waits of a search with all hooks that ends after `num_steps` tokens."""
    torch.manual_seed(1)
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 16, "encoder_layers": 1, "decoder_layers": 2}
    model = Transformer(ModelConfig.model_validate(sizes), 9, 300).eval()
    source_ids = torch.randint(4, 9, (3, 5))
    mask = torch.ones(3, 5, dtype=torch.bool)
    mask[1, 3:] = False
    options = DecodingConfig.model_validate(settings)
    with torch.no_grad(), Waits() as counted:
        scorer = model.start_decoding(model.encode(source_ids, mask), mask, attended_layer=1)
        max_lengths = torch.full((3,), num_steps)
        hooks: list[SearchHook] = [
            BannedTokens([0, 1, 2, 3]),  # so it never ends
            MinimalLengths(max_lengths, 2),
            NoRepeatedNgrams(2, torch.zeros_like(max_lengths)),
            WholeCharacters(PIECES, max_lengths, looks_at_rows=False),
        ]
        if options.coverage_penalty:
            hooks.append(CoveragePenalty(scorer.attention, mask, max_lengths, 2, options))
        found = _search(scorer, max_lengths, options, hooks)
    assert found.ids.shape[-1] == num_steps
    return counted.num_waits


def _search(scorer: Scorer, max_lengths: torch.Tensor, options: DecodingConfig, hooks: list[SearchHook]) -> Hypotheses:
    search: Callable[..., Hypotheses] = greedy_search if options.beam_size == 1 else beam_search
    if options.sampling is not None:
        search = partial(sample_search, seeds=torch.arange(3))
    elif options.diversity is not None:
        search = diverse_beam_search
    return search(scorer, special_ids=SPECIAL_IDS, max_lengths=max_lengths, options=options, hooks=hooks)


@pytest.mark.long
@pytest.mark.parametrize("settings", SEARCHES.values(), ids=SEARCHES.keys())
def test_a_search_waits_for_the_device_once_in_each_step(settings: dict[str, Any]) -> None:
    num_groups = settings.get("diversity", {}).get("groups", 1)
    assert waits(settings, 12) - waits(settings, 6) == 6 * num_groups
    assert waits(settings, 6) <= 6 * num_groups + NUM_WAITS_OF_A_SEARCH + num_groups - 1
