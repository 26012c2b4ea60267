"""Initial values of parameters, and that deep stacks learn with them."""

import math
import statistics
from typing import Any

import pytest
import torch

from transformer_cli.config import ModelConfig
from transformer_cli.model.loss import SmoothedLabels, sum_loss
from transformer_cli.model.transformer import Transformer

CHANCE = math.log(16)
SIZES: dict[str, Any] = {
    "d_model": 64,
    "num_heads": 4,
    "d_ff": 128,
    "encoder_layers": 2,
    "decoder_layers": 3,
}


def matrices(init: str, **settings: Any) -> dict[str, torch.Tensor]:
    torch.manual_seed(1)
    model = Transformer(ModelConfig(**SIZES, init=init, **settings), 200, 300)
    return {name: tensor for name, tensor in model.named_parameters() if tensor.dim() == 2}


def assert_uniform_within(tensor: torch.Tensor, bound: float) -> None:
    assert tensor.abs().max().item() <= bound
    assert tensor.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)


def test_xavier_is_uniform_for_everything_with_two_dimensions() -> None:
    found = matrices("xavier", positions="learned", tie_embeddings="none")
    assert {"source_embedding.weight", "target_positions.weight", "output.weight"} <= set(found)
    for tensor in found.values():
        assert_uniform_within(tensor, math.sqrt(6 / sum(tensor.shape)))


def test_small_divides_the_last_matrix_of_each_sub_layer_by_the_root_of_their_number() -> None:
    for name, tensor in matrices("small").items():
        bound = math.sqrt(6 / sum(tensor.shape))
        if name.endswith(("attention.output.weight", "feed_forward.down.weight")):
            bound /= math.sqrt(2 * 2 if name.startswith("encoder") else 3 * 3)
        assert_uniform_within(tensor, bound)


def test_pytorch_leaves_what_modules_start_with() -> None:
    found = matrices("pytorch", tie_embeddings="none")
    assert found["source_embedding.weight"].std().item() == pytest.approx(1.0, rel=0.05)
    assert_uniform_within(found["output.weight"], 1 / math.sqrt(64))
    assert_uniform_within(found["encoder.layers.0.feed_forward.up.weight"], 1 / math.sqrt(64))


def test_the_same_seed_gives_the_same_weights() -> None:
    first, second = matrices("xavier"), matrices("xavier")
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.heavy
def test_eighteen_layers_with_post_norm_learn_from_small() -> None:
    losses = losses_of_a_deep_stack("small", "post")
    assert statistics.fmean(losses[-10:]) < CHANCE - 0.2
    assert max(losses) == max(losses[:3])


@pytest.mark.heavy
def test_eighteen_layers_with_post_norm_stay_at_chance_from_xavier() -> None:
    assert statistics.fmean(losses_of_a_deep_stack("xavier", "post")[-10:]) > CHANCE - 0.1


@pytest.mark.slow
@pytest.mark.parametrize("norm_placement", ["pre", "post", "residual_of_normed"])
def test_eighteen_layers_train_on_without_divergence(norm_placement: str) -> None:
    losses = losses_of_a_deep_stack("small", norm_placement, num_steps=300)
    hundreds = [statistics.fmean(losses[i : i + 100]) for i in (0, 100, 200)]
    assert hundreds == sorted(hundreds, reverse=True)
    assert hundreds[-1] < CHANCE - 0.3


def losses_of_a_deep_stack(init: str, norm_placement: str, num_steps: int = 50) -> list[float]:
    """Losses per token of 18 + 18 layers that learn to copy."""
    torch.manual_seed(1)
    config = ModelConfig(
        d_model=32,
        num_heads=2,
        d_ff=64,
        encoder_layers=18,
        decoder_layers=18,
        norm_placement=norm_placement,
        init=init,
        dropout=0.0,
    )
    model = Transformer(config, 20, 20)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), fused=True)
    losses = []
    for step in range(num_steps):
        optimizer.param_groups[0]["lr"] = 3e-3 * min(1.0, (step + 1) / 20)
        ids = torch.randint(4, 20, (16, 6))
        decoder_input_ids = torch.cat([torch.full((16, 1), 2), ids[:, :-1]], dim=1)
        logits = model(ids, torch.ones_like(ids, dtype=torch.bool), decoder_input_ids)
        loss = sum_loss(logits, ids, SmoothedLabels(1)).objective / ids.numel()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
