"""Pictures show what the model does, and taking them changes nothing."""

import pytest
import torch

from transformer_cli.model.attention_maps import attention_maps

from .samples import sample, small_model


@pytest.mark.parametrize(
    "settings", [{}, {"positions": "rotary", "num_kv_heads": 1, "qk_norm": True}]
)
def test_maps_are_the_weights_that_the_layers_use(settings: dict[str, object]) -> None:
    torch.manual_seed(1)
    model, batch = small_model(**settings), sample()
    maps = attention_maps(model, *batch[:3])
    assert list(maps) == [
        "encoder.layers.0.self_attention",
        "encoder.layers.1.self_attention",
        "decoder.layers.0.self_attention",
        "decoder.layers.0.cross_attention",
        "decoder.layers.1.self_attention",
        "decoder.layers.1.cross_attention",
    ]
    seen = {}
    name = "decoder.layers.1.cross_attention"
    attention = model.get_submodule(name)
    attention.register_forward_hook(
        lambda _, inputs, output: seen.update(inputs=inputs, output=output)
    )
    model(*batch[:3])
    _, values = attention.keys_and_values(seen["inputs"][1])
    values = values.repeat_interleave(2 // values.size(1), dim=1)
    gathered = (maps[name] @ values).transpose(1, 2).flatten(2)
    torch.testing.assert_close(attention.output(gathered), seen["output"])


def test_rows_ask_and_columns_are_asked() -> None:
    torch.manual_seed(1)
    model, batch = small_model(attention_dropout=0.5), sample()
    maps = attention_maps(model.train(), *batch[:3])
    cross = maps["decoder.layers.0.cross_attention"]
    assert cross.shape == (3, 2, 6, 5)
    assert torch.equal(cross > 0, batch.source_mask[:, None, None, :].expand_as(cross))
    to_target = maps["decoder.layers.0.self_attention"]
    assert torch.equal(to_target, to_target.tril())
    for weights in maps.values():
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))


def test_taking_maps_leaves_mode_hooks_and_random_state_as_they_were() -> None:
    torch.manual_seed(1)
    model, batch = small_model(dropout=0.5), sample()
    state = torch.get_rng_state()
    first = attention_maps(model.train(), *batch[:3])
    assert model.training
    assert torch.equal(torch.get_rng_state(), state)
    assert not any(module._forward_pre_hooks for module in model.modules())
    second = attention_maps(model.eval(), *batch[:3])
    assert not model.training
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # PyTorch about itself
def test_compiled_layers_show_their_weights_too() -> None:
    torch.manual_seed(1)
    model, batch = small_model(), sample()
    expected = attention_maps(model, *batch[:3])
    for layer in (*model.encoder.layers, *model.decoder.layers):
        layer.compile(backend="eager")
    model(*batch[:3])
    found = attention_maps(model, *batch[:3])
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in found)
