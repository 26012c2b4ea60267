"""Parts of the model that are replaced: each is gone inside the block, and back after it."""

import pytest
import torch
from torch import Tensor

from transformer_cli.acceleration import accelerate
from transformer_cli.config import ModelConfig
from transformer_cli.extensions.lessons.ablations.replaced_parts import REPLACEMENTS, replaced
from transformer_cli.model.attention import MultiHeadAttention
from transformer_cli.model.layers import EncoderLayer
from transformer_cli.model.transformer import Transformer

CONFIG = ModelConfig(
    d_model=16, num_heads=2, d_ff=32, encoder_layers=2, decoder_layers=2, dropout=0.0
)
SOURCE = torch.tensor([[3, 4, 5, 6]])
TARGET = torch.tensor([[1, 7, 8, 9]])


def model() -> Transformer:
    torch.manual_seed(1)
    return accelerate(Transformer(CONFIG, 12, 12), torch.device("cpu")).eval()  # as in a run


def logits(one: Transformer, source: Tensor = SOURCE, target: Tensor = TARGET) -> Tensor:
    found: Tensor = one(source, None, target).detach()
    return found


@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
def test_without_the_causal_mask_a_position_reads_later_tokens(training: bool) -> None:
    one, later = model(), TARGET.clone()
    later[0, -1] = 2
    with torch.set_grad_enabled(training):  # on a CPU, training has a kernel of its own
        assert torch.equal(logits(one)[:, :-1], logits(one, target=later)[:, :-1])
        with replaced("causal mask"):
            assert not torch.allclose(logits(one)[:, 0], logits(one, target=later)[:, 0])


def test_without_the_causal_mask_padding_of_the_source_stays_hidden() -> None:
    one, mask = model(), torch.tensor([[True, True, True, False]])
    other = SOURCE.clone()
    other[0, -1] = 2
    with replaced("causal mask"):
        torch.testing.assert_close(one(SOURCE, mask, TARGET), one(other, mask, TARGET))


def test_without_scaling_the_weights_are_the_softmax_of_plain_products() -> None:
    torch.manual_seed(1)
    attention, x = MultiHeadAttention(CONFIG), torch.randn(2, 5, 16)
    queries, keys = (
        part(x).unflatten(-1, (2, 8)).transpose(1, 2) for part in (attention.query, attention.key)
    )
    with replaced("scaling"):
        found = attention.weights(x, x, None)
    torch.testing.assert_close(found, (queries @ keys.mT).softmax(-1))


def test_without_residual_connections_a_layer_is_its_sublayers_one_after_the_other() -> None:
    torch.manual_seed(1)
    with replaced("residual connections"):
        layer, x = EncoderLayer(CONFIG).eval(), torch.randn(2, 5, 16)
        found = layer(x, None)
    normed = layer.self_attention_norm(x)
    attended = layer.self_attention(normed, normed, None)
    torch.testing.assert_close(found, layer.feed_forward(layer.feed_forward_norm(attended)))


def test_without_cross_attention_the_source_changes_nothing() -> None:
    one, other = model(), SOURCE.flip(1)
    assert not torch.allclose(logits(one), logits(one, source=other))
    with replaced("cross-attention"):
        assert torch.equal(logits(one), logits(one, source=other))


def fail_without(part: str, before: Tensor) -> None:
    with replaced(part):
        assert not torch.allclose(logits(model()), before)
        raise KeyboardInterrupt


@pytest.mark.parametrize("part", REPLACEMENTS)
def test_a_replaced_part_comes_back_after_an_error(part: str) -> None:
    before = logits(model())
    with pytest.raises(KeyboardInterrupt):
        fail_without(part, before)
    assert torch.equal(logits(model()), before)


@pytest.mark.parametrize("part", REPLACEMENTS)
def test_a_replaced_part_changes_no_parameter(part: str) -> None:
    names = {name: value.shape for name, value in model().state_dict().items()}
    with replaced(part):
        assert {name: value.shape for name, value in model().state_dict().items()} == names
