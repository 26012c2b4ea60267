"""The whole model against the formulas, against PyTorch's own, and what must not matter to it."""

import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from transformer_cli.config import ModelConfig, load_config
from transformer_cli.errors import ConfigError, DataError
from transformer_cli.model.dropout import Dropout
from transformer_cli.model.transformer import Transformer

from . import naive
from .samples import (
    PAD_ID,
    SMALL,
    SOURCE_VOCAB_SIZE,
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


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-5)])
@pytest.mark.parametrize("name", REFERENCES)
def test_each_reference_equals_its_formulas(name: str, dtype: torch.dtype, tolerance: float) -> None:
    torch.manual_seed(1)
    model = model_of(reference(name, REFERENCES[name]), dtype)
    batch = sample()
    assert_same(results(model, batch), naive_results(model, batch), tolerance)


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


def test_the_base_model_of_the_paper_has_65_million_parameters() -> None:
    base = ModelConfig(preset="base", tie_embeddings="all", norm_placement="post")
    assert round(num_parameters(base, 37_000, 37_000) / 1e6) in range(63, 67)


@settings(max_examples=100, deadline=None)
@given(config=model_configs(), seed=st.integers(0, 2**31), lengths=st.permutations([0, 2, 3, 5]))
def test_any_combination_of_settings_equals_its_formulas(
    config: ModelConfig, seed: int, lengths: list[int]
) -> None:
    torch.manual_seed(seed)
    model = model_of(config)
    batch = sample(tuple(lengths[:2]), (4, 2))
    batch = batch._replace(source_ids=batch.source_ids % TARGET_VOCAB_SIZE)
    assert_same(results(model, batch), naive_results(model, batch), 1e-9)


@settings(max_examples=25, deadline=None)
@given(config=model_configs(), seed=st.integers(0, 2**31), position=st.integers(1, 5))
def test_a_target_token_does_not_change_the_logits_before_it(
    config: ModelConfig, seed: int, position: int
) -> None:
    torch.manual_seed(seed)
    model, batch = model_of(config), sample()
    source_ids = batch.source_ids % TARGET_VOCAB_SIZE
    other_ids = batch.decoder_input_ids.clone()
    other_ids[:, position] = (other_ids[:, position] + 1) % TARGET_VOCAB_SIZE
    before = model(source_ids, batch.source_mask, batch.decoder_input_ids)
    after = model(source_ids, batch.source_mask, other_ids)
    torch.testing.assert_close(after[:, :position], before[:, :position], rtol=0, atol=1e-12)
    assert not torch.equal(after[:, position:], before[:, position:])


@settings(max_examples=25, deadline=None)
@given(config=model_configs(), seed=st.integers(0, 2**31), num_pads=st.integers(1, 6))
def test_padding_and_batch_mates_do_not_change_a_sentence(
    config: ModelConfig, seed: int, num_pads: int
) -> None:
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
        alone = model(
            source_ids[row, :length], batch.source_mask[row, :length], batch.decoder_input_ids[row]
        )
        torch.testing.assert_close(padded[row, :3], alone, rtol=0, atol=1e-9)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_the_layers_equal_those_of_pytorch(norm_first: bool, activation: str) -> None:
    torch.manual_seed(1)
    model = small_model(
        norm_placement="pre" if norm_first else "post", final_norm=True, activation=activation
    )
    theirs = nn.Transformer(
        d_model=12, nhead=2, num_encoder_layers=2, num_decoder_layers=2, dim_feedforward=10,
        activation=activation, norm_first=norm_first, batch_first=True, dtype=torch.float64,
    ).eval()  # fmt: skip
    theirs.load_state_dict(in_names_of_pytorch(model))
    batch = sample()
    x, y = model.embed_source(batch.source_ids), model.embed_target(batch.decoder_input_ids)
    decoded = theirs(
        x, y,
        tgt_mask=torch.ones(6, 6, dtype=torch.bool).triu(1),
        src_key_padding_mask=~batch.source_mask,
        memory_key_padding_mask=~batch.source_mask,
    )  # fmt: skip
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


def test_dropout_stands_where_the_formulas_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dropout, "forward", lambda self, x: x * (1 + self.share))
    shares = {"dropout": 0.1, "attention_dropout": 0.2, "ff_dropout": 0.3, "embedding_dropout": 0.4}
    for placement in ("pre", "post", "residual_of_normed"):
        torch.manual_seed(1)
        model, batch = small_model(norm_placement=placement, **shares), sample()
        weights = model.state_dict()
        described = {**model.config.model_dump(), "dropout_multiplies": True}
        expected = naive.logits(weights, described, *batch[:3])
        torch.testing.assert_close(model(*batch[:3]), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "share", ["dropout", "attention_dropout", "ff_dropout", "embedding_dropout"]
)
def test_each_dropout_acts_alone_and_only_while_training(share: str) -> None:
    none = dict.fromkeys(("dropout", "attention_dropout", "ff_dropout", "embedding_dropout"), 0.0)
    torch.manual_seed(1)
    model, batch = small_model(**{**none, share: 0.5}), sample()
    assert torch.equal(model(*batch[:3]), model(*batch[:3]))
    model.train()
    assert not torch.equal(model(*batch[:3]), model(*batch[:3]))


def test_without_any_dropout_training_and_evaluation_are_the_same() -> None:
    torch.manual_seed(1)
    model, batch = small_model(dropout=0.0), sample()
    assert torch.equal(model.train()(*batch[:3]), model.eval()(*batch[:3]))


def test_parameter_names_are_those_that_weights_travel_by() -> None:
    names = set(small_model(qk_norm=True, activation="swiglu", positions="learned", tie_embeddings="none").state_dict())
    attention = {f"{part}.{kind}" for part in ("query", "key", "value", "output") for kind in ("weight", "bias")}
    attention |= {"query_norm.weight", "key_norm.weight"}
    feed_forward = {f"{part}.{kind}" for part in ("up", "gate", "down") for kind in ("weight", "bias")}
    expected = {"output.weight", "output.bias"}
    for side, stack in (("source", "encoder"), ("target", "decoder")):
        expected |= {f"{side}_embedding.weight", f"{side}_positions.weight"}
        expected |= {f"{stack}.norm.weight", f"{stack}.norm.bias"}
        attentions = ["self_attention"] if stack == "encoder" else ["self_attention", "cross_attention"]
        for i in range(2):
            layer = f"{stack}.layers.{i}"
            for name in attentions:
                expected |= {f"{layer}.{name}.{part}" for part in attention}
            expected |= {f"{layer}.feed_forward.{part}" for part in feed_forward}
            for name in (*attentions, "feed_forward"):
                expected |= {f"{layer}.{name}_norm.weight", f"{layer}.{name}_norm.bias"}
    assert names == expected


@pytest.mark.parametrize(
    ("tied", "absent"),
    [
        ("none", set()),
        ("target-output", {"target_embedding.weight"}),
        ("all", {"source_embedding.weight", "target_embedding.weight"}),
    ],
)
def test_a_tied_table_is_one_parameter_under_one_name(tied: str, absent: set[str]) -> None:
    model = small_model(tie_embeddings=tied)
    tables = {"source_embedding.weight", "target_embedding.weight", "output.weight"}
    assert tables - set(model.state_dict()) == absent
    assert set(model.state_dict()) == {name for name, _ in model.named_parameters()}
    assert set(model.state_dict()) == set(small_model(tie_embeddings=tied).state_dict())


def test_weights_load_strictly_into_another_model() -> None:
    torch.manual_seed(1)
    model, other, batch = small_model(), small_model(), sample()
    assert not torch.equal(other(*batch[:3]), model(*batch[:3]))
    other.load_state_dict(model.state_dict(), strict=True)
    assert torch.equal(other(*batch[:3]), model(*batch[:3]))
    state = model.state_dict()
    del state["output.bias"]
    with pytest.raises(RuntimeError, match=r"output\.bias"):
        other.load_state_dict(state)


def test_a_tied_table_may_come_under_any_of_its_names_but_not_with_two_contents() -> None:
    model, other = small_model(tie_embeddings="all"), small_model(tie_embeddings="all")
    state = dict(model.state_dict())
    table = state["output.weight"]
    other.load_state_dict({**state, "source_embedding.weight": table, "target_embedding.weight": table})
    assert torch.equal(other.output.weight, table)
    del state["output.weight"]
    other.load_state_dict({**state, "source_embedding.weight": table + 1})
    assert torch.equal(other.output.weight, table + 1)
    with pytest.raises(RuntimeError, match=r"target_embedding\.weight"):
        other.load_state_dict({**model.state_dict(), "target_embedding.weight": table + 1})


def test_one_table_for_two_vocabularies_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"one vocabulary, found 11 source and 9 target") as caught:
        Transformer(ModelConfig(**SMALL, tie_embeddings="all"), SOURCE_VOCAB_SIZE, TARGET_VOCAB_SIZE)
    assert "tokenizer.shared" in str(caught.value.hint)


def test_learned_positions_end_and_the_others_go_on() -> None:
    batch = sample((17,), (3,))
    with pytest.raises(DataError, match="17 tokens, but this model has learned only 16") as caught:
        small_model(positions="learned")(*batch[:3])
    assert "model.max_length" in str(caught.value.hint)
    for positions in ("sinusoidal", "sinusoidal_halves", "rotary", "none"):
        assert small_model(positions=positions)(*batch[:3]).isfinite().all()


@pytest.mark.parametrize("norm", ["layernorm", "rmsnorm", "std_layernorm", "scalar_std_layernorm"])
@pytest.mark.parametrize("placement", ["pre", "post", "residual_of_normed"])
def test_a_sentence_without_tokens_makes_no_nan_in_logits_or_gradients(norm: str, placement: str) -> None:
    torch.manual_seed(1)
    model = small_model(norm=norm, norm_placement=placement, attention_bias=False)
    batch = sample((0, 3), (4, 4))
    assert all(tensor.isfinite().all() for tensor in results(model, batch).values())
    nothing = sample((0, 0), (4, 4))._replace(
        source_ids=torch.full((2, 3), PAD_ID), source_mask=torch.zeros(2, 3, dtype=torch.bool)
    )
    assert all(tensor.isfinite().all() for tensor in results(model, nothing).values())


@pytest.mark.parametrize("norm", ["layernorm", "rmsnorm", "std_layernorm", "scalar_std_layernorm"])
def test_under_bfloat16_autocast_logits_are_float32_and_close(norm: str) -> None:
    torch.manual_seed(1)
    model = Transformer(ModelConfig(**SMALL, norm=norm, dropout=0.0), SOURCE_VOCAB_SIZE, TARGET_VOCAB_SIZE)
    batch = sample((5, 0, 4), (4, 6, 2))
    exact = model(*batch[:3])
    with torch.autocast("cpu", torch.bfloat16):
        found = results(model, batch)
    assert found["logits"].dtype == torch.float32
    assert not torch.equal(found["logits"], exact)
    torch.testing.assert_close(found["logits"], exact, rtol=0, atol=0.1)
    assert all(tensor.isfinite().all() for tensor in found.values())


def test_a_model_of_bfloat16_weights_runs() -> None:
    torch.manual_seed(1)
    for settings_ in ({"positions": "rotary", "qk_norm": True}, {"norm": "rmsnorm"}, {"norm": "std_layernorm"}):
        found = results(small_model(torch.bfloat16, **settings_), sample((5, 0, 4), (4, 6, 2)))
        assert all(tensor.isfinite().all() for tensor in found.values())


def test_logits_have_one_row_per_target_position() -> None:
    assert small_model()(*sample()[:3]).shape == (3, 6, TARGET_VOCAB_SIZE)


def test_embeddings_are_scaled_by_the_root_of_the_width_or_not() -> None:
    settings_: dict[str, Any] = {"positions": "none", "tie_embeddings": "none"}
    for is_scaled, factor in ((True, math.sqrt(12)), (False, 1.0)):
        model = small_model(scale_embeddings=is_scaled, **settings_)
        ids = torch.tensor([[3, 7]])
        expected = model.state_dict()["source_embedding.weight"][ids] * factor
        torch.testing.assert_close(model.embed_source(ids), expected)


def test_the_reference_configs_are_those_tested_here() -> None:
    folder = Path(__file__).parents[2] / "configs" / "reference"
    assert {path.stem for path in folder.glob("*.yaml")} == set(REFERENCES)
