"""The formula of the FLOP equals what PyTorch counts on the real model."""

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from transformer_cli.config import ModelConfig
from transformer_cli.data.encoded import TokenPair
from transformer_cli.data.updates import Batch, collate
from transformer_cli.extensions.benchmark.measuring.model_flop import (
    Work,
    forward_flop,
    padded_work,
    work_of,
)
from transformer_cli.extensions.benchmark.measuring.training_flop import (
    backward_flop,
    training_flop,
)
from transformer_cli.model import Transformer
from transformer_cli.training.initial_weights import freeze

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
FROZEN: list[tuple[str, ...]] = [
    ("encoder",),
    ("decoder",),
    ("embeddings",),
    ("output",),
    ("encoder", "embeddings"),
    ("encoder", "decoder", "embeddings"),
    ("encoder.layers.0", "embeddings"),
    ("embeddings", "encoder.layers", "decoder.layers.0", "decoder.layers.1.cross_attention.key"),
    ("embeddings", "encoder", "decoder.layers.0.self_attention_norm", "decoder.layers.0.self_attention.query"),
    ("embeddings", "decoder", "encoder.layers.0.self_attention", "encoder.layers.1.feed_forward.up.weight"),
]  # fmt: skip


def batch() -> Batch:
    lengths = (5, 3), (2, 4), (1, 1)
    pairs = [TokenPair([4] * source, [5] * target) for source, target in lengths]
    return collate(pairs, sos_id=2, pad_id=1)


def counted_by_pytorch(model: Transformer, padded: Batch) -> tuple[int, int]:
    """The FLOP of the forward and of the backward pass."""
    arguments = padded.source_ids, padded.source_mask, padded.decoder_input_ids
    with FlopCounterMode(display=False) as forward:
        logits = model(*arguments)
    with FlopCounterMode(display=False) as backward:
        logits.sum().backward()
    return forward.get_total_flops(), backward.get_total_flops()


@pytest.mark.parametrize("changes", CONFIGS.values(), ids=CONFIGS)
def test_the_formula_equals_the_count_of_pytorch(changes: dict[str, Any]) -> None:
    config = ModelConfig.model_validate(SIZES | changes)
    model, padded = Transformer(config, SOURCE_SIZE, TARGET_SIZE), batch()
    forward, backward = counted_by_pytorch(model, padded)
    work = padded_work(padded)
    assert forward_flop(config, TARGET_SIZE, work) == forward
    assert training_flop(model, work) == forward + backward == 3 * forward


@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("changes", [{}, {"tie_embeddings": "none"}, CONFIGS["all"]])
@pytest.mark.parametrize("frozen", FROZEN)
def test_frozen_parts_need_no_products_in_the_backward_pass(
    frozen: tuple[str, ...], changes: dict[str, Any], placement: str
) -> None:
    config = ModelConfig.model_validate(SIZES | changes | {"norm_placement": placement})
    model = Transformer(config, SOURCE_SIZE, TARGET_SIZE)
    freeze(model, frozen)
    _, backward = counted_by_pytorch(model, batch())
    assert backward_flop(model, padded_work(batch())) == backward


def test_r_drop_needs_the_products_of_two_predictions() -> None:
    model = Transformer(ModelConfig.model_validate(SIZES), SOURCE_SIZE, TARGET_SIZE)
    work = work_of(batch())
    assert training_flop(model, work, num_predictions=2) == 2 * training_flop(model, work)


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
