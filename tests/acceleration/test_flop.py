"""The FLOP of some work equal what PyTorch counts on the real model and a real batch."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from transformer_cli.acceleration.flop import Work, flop_counter, work_of_batch
from transformer_cli.config import ModelConfig
from transformer_cli.data.encoded import TokenPair
from transformer_cli.data.updates import Batch, collate
from transformer_cli.model import Transformer
from transformer_cli.training.initial_weights import freeze

SOURCE_SIZE, TARGET_SIZE = 11, 13
SIZES: dict[str, Any] = {
    "d_model": 24,
    "num_heads": 4,
    "d_ff": 20,
    "encoder_layers": 1,
    "decoder_layers": 2,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "default": {},
    "one head of keys and values": {"num_kv_heads": 1},
    "tied": {"tie_embeddings": "target-output"},
    "SSRU": {"decoder_layer": "ssru"},
    "not tied": {"tie_embeddings": "none"},
    "all": {"activation": "geglu", "num_kv_heads": 2, "head_dim": 8, "positions": "rotary"},
}
FROZEN: list[tuple[str, ...]] = [
    ("encoder",),
    ("encoder", "decoder", "embeddings"),
    ("embeddings", "encoder.layers", "decoder.layers.0", "decoder.layers.1.cross_attention.key"),
    ("embeddings", "encoder", "decoder.layers.0.self_attention_norm", "decoder.layers.0.self_attention.query"),
    ("embeddings", "decoder", "encoder.layers.0.self_attention", "output"),
]


def batch() -> Batch:
    lengths = (5, 3), (2, 4), (1, 1)
    pairs = [TokenPair([4] * source, [5] * target) for source, target in lengths]
    return collate(pairs, sos_id=2, pad_id=1)


def padded_work(padded: Batch) -> Work:
    """The work with padding, and with all pairs of the decoder, as attention without a fused kernel computes it."""
    (num, source), target = padded.source_ids.shape, padded.target_ids.size(1)
    return np.array([num * source, num * target, num * source**2, num * target**2, num * source * target])


def counted_by_pytorch(model: Transformer, padded: Batch) -> tuple[int, int]:
    """The FLOP of the forward and of the backward pass."""
    arguments = padded.source_ids, padded.source_mask, padded.decoder_input_ids
    with FlopCounterMode(display=False) as forward:
        logits = model(*arguments)
    with FlopCounterMode(display=False) as backward:
        logits.sum().backward()
    return forward.get_total_flops(), backward.get_total_flops()


@pytest.mark.heavy
@pytest.mark.parametrize("changes", CONFIGS.values(), ids=CONFIGS)
def test_the_flop_of_a_batch_are_those_that_pytorch_counts(changes: dict[str, Any]) -> None:
    config = ModelConfig.model_validate(SIZES | changes)
    model, padded = Transformer(config, SOURCE_SIZE, TARGET_SIZE), batch()
    forward, backward = counted_by_pytorch(model, padded)
    work = padded_work(padded)
    assert flop_counter(model, trains=False)(work) == forward
    assert flop_counter(model, trains=True)(work) == forward + backward == 3 * forward


@pytest.mark.heavy
@pytest.mark.parametrize("frozen", FROZEN)
def test_frozen_parts_need_no_products_in_the_backward_pass(frozen: tuple[str, ...]) -> None:
    config = ModelConfig.model_validate(SIZES | {"norm_placement": "post"})
    model = Transformer(config, SOURCE_SIZE, TARGET_SIZE)
    freeze(model, frozen)
    both = sum(counted_by_pytorch(model, batch()))
    assert flop_counter(model, trains=True)(padded_work(batch())) == both


def test_real_work_leaves_out_padding_and_pairs_that_the_causal_mask_hides() -> None:
    assert work_of_batch(batch()).tolist() == [
        5 + 2 + 1,
        3 + 4 + 1,
        25 + 4 + 1,
        6 + 10 + 1,
        15 + 8 + 1,
    ]


@pytest.mark.long
def test_the_base_model_needs_the_flop_of_the_published_arithmetic() -> None:
    """Per target token at 30 tokens a sentence: 60.82 M multiplications, and the attention."""
    with torch.device("meta"):
        model = Transformer(ModelConfig(preset="base", d_model=512), 11, 32_768)
    flop = flop_counter(model, trains=False)
    assert flop(np.array([30, 30, 0, 0, 0])) / 30 == pytest.approx(2 * 60.82e6, rel=1e-3)
    assert flop(np.array([0, 0, 900, 900, 900])) / 30 == 18 * 2 * 2 * 30 * 512


@pytest.mark.long
def test_no_random_number_is_drawn() -> None:
    model = Transformer(ModelConfig.model_validate(SIZES), SOURCE_SIZE, TARGET_SIZE)
    before = torch.get_rng_state()
    flop_counter(model, trains=True)
    assert torch.equal(before, torch.get_rng_state())
