"""The whole model equals its formulas, PyTorch's layers, and itself in other batches."""

import re
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from transformer_cli.config import ModelConfig, load_config
from transformer_cli.model.transformer import Transformer

from .samples import (
    TARGET_VOCAB_SIZE,
    assert_same,
    model_configs,
    model_of,
    naive_results,
    results,
    sample,
    small_model,
)

SMALLER = ["d_model=16", "d_ff=24", "num_heads=4", "encoder_layers=2"]
REFERENCES = {
    "tutorial-prenorm": [*SMALLER, "decoder_layers=2"],
    "tutorial-prenorm-2023": [*SMALLER, "decoder_layers=2"],
    "annotated-resnorm": [*SMALLER, "decoder_layers=2"],
    "notebook-postnorm": [*SMALLER, "decoder_layers=2"],
    "scaled-postnorm": [*SMALLER, "decoder_layers=2"],
    "rms-silu": [*SMALLER, "head_dim=6"],
}


def reference(name: str, overrides: list[str]) -> ModelConfig:
    return load_config(f"reference/{name}.yaml", [f"model.{setting}" for setting in overrides]).model


def num_parameters(config: ModelConfig, source_vocab_size: int, target_vocab_size: int) -> int:
    with torch.device("meta"):
        model = Transformer(config, source_vocab_size, target_vocab_size)
    return sum(parameter.numel() for parameter in model.parameters())


def test_the_reference_configs_are_those_tested_here() -> None:
    folder = Path(__file__).parents[2] / "configs" / "reference"
    assert {path.stem for path in folder.glob("*.yaml")} == set(REFERENCES)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "dtype", "tolerance"),
    [*((name, torch.float64, 1e-9) for name in REFERENCES), ("rms-silu", torch.float32, 1e-5)],
)
def test_each_reference_equals_its_formulas(name: str, dtype: torch.dtype, tolerance: float) -> None:
    torch.manual_seed(1)
    model = model_of(reference(name, REFERENCES[name]), dtype)
    batch = sample()
    assert_same(results(model, batch), naive_results(model, batch), tolerance)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "overrides", "vocab_sizes", "expected"),
    [
        ("tutorial-prenorm", [], (15_698, 22_463), 75_169_791),
        ("tutorial-prenorm-2023", [], (15_698, 22_463), 75_165_631),
        ("annotated-resnorm", ["encoder_layers=2", "decoder_layers=2"], (11, 11), 14_731_787),
        ("annotated-resnorm", [], (11, 11), 44_157_451),
        ("notebook-postnorm", [], (10, 10), 44_153_866),
        ("scaled-postnorm", [], (32_000, 32_000), 93_322_496),
        ("rms-silu", [], (256, 256), 1_279_872),
    ],
)
def test_each_reference_has_its_published_number_of_parameters(
    name: str, overrides: list[str], vocab_sizes: tuple[int, int], expected: int
) -> None:
    assert num_parameters(reference(name, overrides), *vocab_sizes) == expected


def test_the_base_model_of_the_paper_has_two_million_parameters_less_here() -> None:
    """The paper's table 3 says 65 million; its vocabulary is "about 37,000" entries, so ours are counted."""
    base = ModelConfig(preset="base", tie_embeddings="all", norm_placement="post")
    table, attention, feed_forward = (
        37_000 * 512,
        4 * (512 * 512 + 512),
        2 * 512 * 2048 + 512 + 2048,
    )
    encoder = 6 * (attention + feed_forward + 2 * 2 * 512)
    decoder = 6 * (2 * attention + feed_forward + 3 * 2 * 512)
    assert num_parameters(base, 37_000, 37_000) == table + 37_000 + encoder + decoder == 63_119_496


@pytest.mark.heavy
@settings(max_examples=30)
@given(config=model_configs(), seed=st.integers(0, 2**31), lengths=st.permutations([0, 2, 3, 5]))
def test_any_combination_of_settings_equals_its_formulas(config: ModelConfig, seed: int, lengths: list[int]) -> None:
    torch.manual_seed(seed)
    model = model_of(config)
    batch = sample(tuple(lengths[:2]), (4, 2))
    batch = batch._replace(source_ids=batch.source_ids % TARGET_VOCAB_SIZE)
    assert_same(results(model, batch), naive_results(model, batch), 1e-9)


@pytest.mark.long
@settings(max_examples=25)
@given(config=model_configs(), seed=st.integers(0, 2**31), position=st.integers(1, 5))
def test_a_target_token_does_not_change_the_logits_before_it(config: ModelConfig, seed: int, position: int) -> None:
    torch.manual_seed(seed)
    model, batch = model_of(config), sample()
    source_ids = batch.source_ids % TARGET_VOCAB_SIZE
    other_ids = batch.decoder_input_ids.clone()
    other_ids[:, position] = (other_ids[:, position] + 1) % TARGET_VOCAB_SIZE
    before = model(source_ids, batch.source_mask, batch.decoder_input_ids)
    after = model(source_ids, batch.source_mask, other_ids)
    torch.testing.assert_close(after[:, :position], before[:, :position], rtol=0, atol=1e-12)
    assert not torch.equal(after[:, position:], before[:, position:])


@pytest.mark.long
@settings(max_examples=25)
@given(config=model_configs(), seed=st.integers(0, 2**31), num_pads=st.integers(1, 6))
def test_padding_and_batch_mates_do_not_change_a_sentence(config: ModelConfig, seed: int, num_pads: int) -> None:
    torch.manual_seed(seed)
    model, batch = model_of(config), sample((4, 2, 3), (3, 3, 3))
    source_ids = batch.source_ids % TARGET_VOCAB_SIZE
    pads = torch.randint(0, TARGET_VOCAB_SIZE, (3, num_pads))
    padded = model(
        torch.cat([source_ids, pads], 1),
        torch.cat([batch.source_mask, torch.zeros(3, num_pads, dtype=torch.bool)], 1),
        torch.cat([batch.decoder_input_ids, pads], 1),
    )
    for i, length in enumerate((4, 2, 3)):
        row = slice(i, i + 1)
        alone = model(source_ids[row, :length], batch.source_mask[row, :length], batch.decoder_input_ids[row])
        torch.testing.assert_close(padded[row, :3], alone, rtol=0, atol=1e-9)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_the_layers_equal_those_of_pytorch(norm_first: bool, activation: str) -> None:
    torch.manual_seed(1)
    model = small_model(norm_placement="pre" if norm_first else "post", final_norm=True, activation=activation)
    theirs = nn.Transformer(
        d_model=12,
        nhead=2,
        num_encoder_layers=2,
        num_decoder_layers=2,
        dim_feedforward=10,
        activation=activation,
        norm_first=norm_first,
        batch_first=True,
        dtype=torch.float64,
    ).eval()
    theirs.load_state_dict(in_names_of_pytorch(model))
    batch = sample()
    x, y = model.embed_source(batch.source_ids), model.embed_target(batch.decoder_input_ids)
    decoded = theirs(
        x,
        y,
        tgt_mask=torch.ones(6, 6, dtype=torch.bool).triu(1),
        src_key_padding_mask=~batch.source_mask,
        memory_key_padding_mask=~batch.source_mask,
    )
    torch.testing.assert_close(model.output(decoded), model(*batch[:3]), rtol=0, atol=1e-9)


def in_names_of_pytorch(model: Transformer) -> dict[str, Tensor]:
    norms = {
        "encoder": {"self_attention_norm": "norm1", "feed_forward_norm": "norm2"},
        "decoder": {
            "self_attention_norm": "norm1",
            "cross_attention_norm": "norm2",
            "feed_forward_norm": "norm3",
        },
    }
    state = {}
    ours = model.state_dict()
    for name, tensor in ours.items():
        stack = name.split(".")[0]
        if stack not in norms or re.search(r"attention\.(key|value)\.", name):
            continue
        if match := re.search(r"attention\.query\.", name):
            parts = (name.replace(match[0], f"attention.{part}.") for part in ("query", "key", "value"))
            tensor = torch.cat([ours[part] for part in parts])
        for old, new in norms[stack].items():
            name = name.replace(old, new)
        name = re.sub(r"attention\.query\.(weight|bias)", r"attention.in_proj_\1", name)
        name = name.replace("attention.output", "attention.out_proj")
        name = name.replace("self_attention", "self_attn").replace("cross_attention", "multihead_attn")
        name = name.replace("feed_forward.up", "linear1").replace("feed_forward.down", "linear2")
        state[name] = tensor
    return state
