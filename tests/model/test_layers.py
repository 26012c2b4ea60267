"""Layers under torch.compile, and the causal mask."""

import pytest
import torch

from transformer_cli.config import ModelConfig
from transformer_cli.model.layers import DecoderLayer, EncoderLayer, causal_mask, rotation_at

from .samples import SMALL, assert_same, results, sample, small_model

VARIANTS = [
    {},
    {"norm": "rmsnorm", "norm_placement": "post", "activation": "swiglu", "num_kv_heads": 1},
    {"norm": "scalar_std_layernorm", "norm_placement": "residual_of_normed", "positions": "rotary"},
    {"qk_norm": True, "activation": "gelu", "norm": "std_layernorm"},
]


@pytest.mark.heavy
@pytest.mark.parametrize(("settings", "share"), [*((each, 0.0) for each in VARIANTS), (VARIANTS[-1], 0.2)], ids=str)
def test_a_layer_compiles_to_one_graph(settings: dict[str, object], share: float) -> None:
    torch.manual_seed(1)
    shares = dict.fromkeys(("dropout", "attention_dropout", "ff_dropout"), share)
    config = ModelConfig(**{**SMALL, **settings, **shares})
    encoder, decoder = EncoderLayer(config), DecoderLayer(config)
    x, mask = torch.randn(2, 5, 12), torch.rand(2, 1, 1, 5) < 0.7
    rotation = rotation_at(0, 5, config.head_width, x) if config.positions == "rotary" else None
    torch.compiler.reset()
    for layer, inputs in (
        (encoder, (x, mask, rotation)),
        (decoder, (x, x, causal_mask(5, x.device), mask, rotation)),
    ):
        compiled = torch.compile(layer, fullgraph=True, backend="eager")
        found = compiled(*inputs)
        assert found.shape == x.shape
        if share == 0.0:
            torch.testing.assert_close(found, layer(*inputs))


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # a warning inside PyTorch
def test_compiled_layers_leave_logits_gradients_and_names_as_they_are() -> None:
    torch.manual_seed(1)
    model, batch = small_model(), sample()
    names, expected = list(model.state_dict()), results(model, batch)
    torch.compiler.reset()
    for layer in (*model.encoder.layers, *model.decoder.layers):
        layer.compile(backend="aot_eager", fullgraph=True)
    assert_same(results(model, batch), expected, 1e-12)
    assert list(model.state_dict()) == names


def test_a_position_sees_itself_and_the_past() -> None:
    mask = causal_mask(4)
    assert mask.dtype == torch.bool
    for asking in range(4):
        for asked in range(4):
            assert mask[asking, asked].item() == (asked <= asking)
