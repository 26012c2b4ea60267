"""A session expects exactly the optimizer tensors that a checkpoint has."""

import pytest
import torch

from transformer_cli.config import ModelConfig, TrainingConfig
from transformer_cli.model.transformer import Transformer
from transformer_cli.training.optimizer import build_optimizer, optimizer_tensors
from transformer_cli.training.session import _expected_optimizer_tensors


@pytest.mark.parametrize("tying", ["none", "target-output", "all"])
@pytest.mark.parametrize("kind", ["adam", "adamw"])
def test_the_optimizer_has_exactly_the_tensors_that_are_expected(kind: str, tying: str) -> None:
    config = ModelConfig(
        d_model=8, num_heads=2, d_ff=16, encoder_layers=1, decoder_layers=1, tie_embeddings=tying
    )  # type: ignore[arg-type]
    model = Transformer(config, 9, 9)
    training = TrainingConfig(max_steps=1, batch_tokens=1, optimizer=kind)  # type: ignore[arg-type]
    optimizer = build_optimizer(model, training)
    ids = torch.tensor([[4, 3]])
    model(ids, torch.ones_like(ids, dtype=torch.bool), ids).sum().backward()
    optimizer.step()
    found, expected = optimizer_tensors(model, optimizer), _expected_optimizer_tensors(model)
    assert {name: (tensor.shape, tensor.dtype) for name, tensor in found.items()} == {
        name: (tensor.shape, tensor.dtype) for name, tensor in expected.items()
    }
