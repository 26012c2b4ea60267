"""LayerDrop: whole layers are skipped in training, and only there."""

import pytest
import torch

from transformer_cli.config import ModelConfig
from transformer_cli.model.transformer import Transformer

SIZES = {"d_model": 16, "num_heads": 2, "d_ff": 32, "encoder_layers": 3, "decoder_layers": 3}
SOURCE, TARGET = torch.tensor([[4, 5, 6, 3]]), torch.tensor([[2, 5, 6]])


def model(share: float, **settings: float) -> Transformer:
    torch.manual_seed(0)
    config = ModelConfig.model_validate({**SIZES, "dropout": 0.0, "layer_dropout": share, **settings})
    return Transformer(config, 9, 9).double()


def layers(one: Transformer) -> list[torch.nn.Module]:
    return [*one.encoder.layers, *one.decoder.layers]


def logits(one: Transformer, seed: int = 1) -> torch.Tensor:
    torch.manual_seed(seed)
    return one(SOURCE, None, TARGET)


def test_evaluation_uses_all_layers() -> None:
    assert torch.equal(logits(model(0.9).eval()), logits(model(0.0).eval()))


def test_a_skipped_layer_is_the_identity_and_the_seed_decides_which_are_skipped() -> None:
    one = model(0.5).train()
    torch.manual_seed(1)
    is_skipped = [float(torch.rand(())) < 0.5 for _ in range(6)]
    assert 0 < sum(is_skipped) < 6
    whole = model(0.0).train()
    for stack, skips in ((whole.encoder, is_skipped[:3]), (whole.decoder, is_skipped[3:])):
        kept = [layer for layer, is_out in zip(stack.layers, skips, strict=True) if not is_out]
        stack.layers = torch.nn.ModuleList(kept)
    assert torch.equal(logits(one), logits(whole))


@pytest.mark.long
def test_the_share_of_skipped_layers_is_the_given_one() -> None:
    one, calls = model(0.25).train(), []
    for layer in layers(one):
        layer.register_forward_hook(lambda *_: calls.append(1))
    for seed in range(200):
        logits(one, seed)
    assert 1 - len(calls) / 1200 == pytest.approx(0.25, abs=0.05)


def test_parameters_of_skipped_layers_get_a_gradient_of_zeros() -> None:
    one = model(0.5).train()
    ran: list[torch.nn.Module] = []
    for layer in layers(one):
        layer.register_forward_hook(lambda module, *_: ran.append(module))
    logits(one).square().sum().backward()
    assert 0 < len(ran) < 6
    for layer in layers(one):
        gradients = [parameter.grad for parameter in layer.parameters()]
        assert all(gradient is not None for gradient in gradients)
        is_zero = all(not bool(gradient.any()) for gradient in gradients if gradient is not None)
        assert is_zero is (layer not in ran)


def test_frozen_parameters_of_a_skipped_layer_get_no_gradient() -> None:
    one = model(0.99).train()
    one.encoder.layers[0].requires_grad_(False)
    logits(one).square().sum().backward()
    assert [parameter.grad for parameter in one.encoder.layers[0].parameters()] == [None] * len(
        list(one.encoder.layers[0].parameters())
    )


def test_without_it_no_random_number_is_drawn() -> None:
    one = model(0.0).train()
    torch.manual_seed(3)
    before = torch.get_rng_state()
    one(SOURCE, None, TARGET)
    assert torch.equal(torch.get_rng_state(), before)


def test_without_any_layer_of_the_decoder_the_encoder_gets_a_gradient_of_zeros() -> None:
    """Then nothing reads the output of the encoder."""
    one = model(0.9999).train()
    logits(one).square().sum().backward()
    for name, parameter in one.encoder.named_parameters():
        assert parameter.grad is not None, name
        assert not parameter.grad.any()
