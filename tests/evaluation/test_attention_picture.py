"""The attention picture: the right weights, the right axes, dropout off."""

import pytest
import torch

from transformer_cli.config import ModelConfig
from transformer_cli.evaluation.attention_picture import cross_attention, draw_attention
from transformer_cli.model.transformer import Transformer

SOURCE = torch.tensor([[4, 5, 6, 3], [7, 3, 1, 1]])
MASK = SOURCE != 1
TARGET = torch.tensor([[2, 5, 6], [2, 8, 8]])


def model(**settings: object) -> Transformer:
    torch.manual_seed(0)
    small = {"d_model": 16, "num_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 2}
    return Transformer(ModelConfig.model_validate(small | settings), 9, 9)


def test_each_row_is_a_distribution_over_the_real_source_positions() -> None:
    weights = cross_attention(model(), SOURCE, MASK, TARGET)
    assert weights.shape == (2, 2, 2, 3, 4)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 2, 3))
    assert bool((weights[:, 1, :, :, 2:] == 0).all())


@pytest.mark.parametrize("settings", [{}, {"num_kv_heads": 1}, {"qk_norm": True}])
@torch.inference_mode()
def test_the_weights_are_those_that_make_the_output(settings: dict[str, object]) -> None:
    """Weights times values, then the output projection, give the output of the layer."""
    one = model(**settings).eval()
    inputs = {}
    attention = one.decoder.layers[0].cross_attention
    hook = attention.register_forward_hook(
        lambda module, args, output: inputs.update(args=args, output=output)
    )
    weights = cross_attention(one, SOURCE, MASK, TARGET)[0]  # (B, H, T, S)
    hook.remove()
    memory = inputs["args"][1]
    values = attention.keys_and_values(memory)[1]
    values = values.repeat_interleave(2 // values.size(1), dim=1)
    gathered = (weights @ values).transpose(1, 2).flatten(2)
    torch.testing.assert_close(attention.output(gathered), inputs["output"])


def test_dropout_is_off_and_the_mode_comes_back() -> None:
    noisy = model(dropout=0.9, attention_dropout=0.9)
    noisy.train()
    first, second = (cross_attention(noisy, SOURCE, MASK, TARGET) for _ in range(2))
    assert torch.equal(first, second)
    assert noisy.training


def test_the_source_runs_from_left_to_right_and_the_target_from_top_to_bottom() -> None:
    weights = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    figure = draw_attention(weights, [" the", " red", "$5"], [" il", " rosso"])
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["the", "red", r"\$5"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["il", "rosso"]
    assert axes.get_images()[0].get_array().tolist() == weights.tolist()
    assert axes.yaxis_inverted()
