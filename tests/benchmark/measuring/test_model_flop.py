"""The formula of the FLOP equals what PyTorch counts on the real model."""

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from transformer_cli.benchmark.measuring.model_flop import (
    Work,
    forward_flop,
    padded_work,
    training_flop,
    work_of,
)
from transformer_cli.config import ModelConfig
from transformer_cli.data.batches.batch import Batch, collate
from transformer_cli.data.batches.encoded import TokenPair
from transformer_cli.model import Transformer, attention, projection

SOURCE_SIZE, TARGET_SIZE = 11, 13
SIZES: dict[str, Any] = {
    "d_model": 24, "num_heads": 4, "d_ff": 20, "encoder_layers": 2, "decoder_layers": 3,
}  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "default": {},
    "gated": {"activation": "swiglu"},
    "grouped queries": {"num_kv_heads": 2},
    "one head of keys and values": {"num_kv_heads": 1},
    "tied": {"tie_embeddings": "target-output"},
    "not tied": {"tie_embeddings": "none"},
    "rotary": {"positions": "rotary"},
    "wide heads": {"head_dim": 10},
    "all": {"activation": "geglu", "num_kv_heads": 2, "head_dim": 8, "positions": "rotary"},
}


def batch() -> Batch:
    lengths = (5, 3), (2, 4), (1, 1)
    pairs = [TokenPair([4] * source, [5] * target) for source, target in lengths]
    return collate(pairs, sos_id=2, pad_id=1)


@pytest.mark.parametrize("changes", CONFIGS.values(), ids=CONFIGS)
def test_the_formula_equals_the_count_of_pytorch(
    changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The kernels for CPUs write products into given tensors, and these PyTorch does not count.
    for module in (attention, projection):
        monkeypatch.setattr(module, "trains_on_cpu", lambda x: False)
    config = ModelConfig.model_validate(SIZES | changes)
    model, padded = Transformer(config, SOURCE_SIZE, TARGET_SIZE), batch()
    arguments = padded.source_ids, padded.source_mask, padded.decoder_input_ids
    with FlopCounterMode(display=False) as forward:
        logits = model(*arguments)
    with FlopCounterMode(display=False) as backward:
        logits.sum().backward()
    work = padded_work(padded)
    assert forward_flop(config, TARGET_SIZE, work) == forward.get_total_flops()
    both = forward.get_total_flops() + backward.get_total_flops()
    assert training_flop(config, TARGET_SIZE, work) == both


def test_real_work_leaves_out_padding_and_pairs_that_the_causal_mask_hides() -> None:
    assert work_of(batch()) == Work(
        source_tokens=5 + 2 + 1,
        target_tokens=3 + 4 + 1,
        source_pairs=25 + 4 + 1,
        target_pairs=6 + 10 + 1,
        cross_pairs=15 + 8 + 1,
    )


def test_the_base_model_needs_the_flop_of_the_published_arithmetic() -> None:
    """Per target token at 30 tokens a sentence: 60.82 M multiplications, and the attention."""
    config = ModelConfig(preset="base", d_model=512)
    work = Work(30, 30, 900, 900, 900)
    without_pairs = forward_flop(config, 32_768, Work(30, 30)) / 30
    assert without_pairs == pytest.approx(2 * 60.82e6, rel=1e-3)
    attention = 18 * 2 * 2 * 30 * 512
    assert forward_flop(config, 32_768, work) / 30 == pytest.approx(without_pairs + attention)


def test_no_random_number_is_drawn_and_no_weight_is_needed() -> None:
    before = torch.get_rng_state()
    forward_flop(ModelConfig(preset="big"), 32_768, Work(1, 1))
    assert torch.equal(before, torch.get_rng_state())
