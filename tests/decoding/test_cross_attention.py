"""Cross-attention weights beside the output of the decoder: the same output, from any thread."""

import pytest
import torch

from transformer_cli.config import ModelConfig
from transformer_cli.decoding.pytorch_engine import attended_layers
from transformer_cli.model.transformer import Transformer

SOURCE = torch.tensor([[4, 5, 6, 3], [7, 3, 1, 1]])
MASK = SOURCE != 1
TARGET = torch.tensor([[2, 5, 6], [2, 8, 8]])


@pytest.mark.parametrize("settings", [{}, {"positions": "rotary"}, {"norm_placement": "post"}])
@torch.inference_mode()
def test_the_last_layer_gives_the_logits_of_the_model(settings: dict[str, object]) -> None:
    torch.manual_seed(0)
    small = {"d_model": 16, "num_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 3}
    model = Transformer(ModelConfig.model_validate(small | settings), 9, 9).eval()
    memory = model.encode(SOURCE, MASK)
    layers = list(attended_layers(model, TARGET, memory, MASK))
    assert len(layers) == 3
    logits = model.output(model.decoder.norm(layers[-1].x))
    torch.testing.assert_close(logits, model(SOURCE, MASK, TARGET))


def test_a_deep_decoder_aligns_with_its_penultimate_layer_and_a_shallow_one_with_its_last() -> None:
    configs = [ModelConfig(decoder_layers=number) for number in (1, 2, 3, 6, 12)]
    assert [config.aligning_layer for config in configs] == [0, 1, 2, 4, 10]


def test_guided_alignment_names_the_layer_that_aligns() -> None:
    assert ModelConfig(decoder_layers=6, alignment_head=0).aligning_layer == 5
    assert ModelConfig(decoder_layers=6, alignment_head="mean", alignment_layer=2).aligning_layer == 2
