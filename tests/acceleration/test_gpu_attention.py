"""Masks are made once in a forward pass, and a fused kernel gets no bias where it needs none."""

import copy
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from transformer_cli.acceleration import accelerate
from transformer_cli.acceleration.cpu_training import Mask
from transformer_cli.model import Transformer

from ..model.samples import Sample, sample, small_model

GPU = torch.device("meta")  # any device but a CPU; the parameters stay on the CPU


def fused_model(*arguments: Any, **settings: Any) -> Transformer:
    return accelerate(small_model(*arguments, **settings), GPU)


@pytest.fixture
def fused_calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The settings of each call of the fused kernel, on every device."""
    calls: list[dict[str, Any]] = []
    kernel = F.scaled_dot_product_attention

    def noting(*inputs: Tensor, attn_mask: Tensor | None = None, **settings: Any) -> Tensor:
        calls.append({"attn_mask": attn_mask, "is_causal": False} | settings)
        return kernel(*inputs, attn_mask=attn_mask, **settings)

    monkeypatch.setattr(F, "scaled_dot_product_attention", noting)
    return calls


def test_each_bias_is_built_once_and_the_decoder_needs_none(
    fused_calls: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[Mask] = []
    module = import_module("transformer_cli.acceleration.accelerate")  # not the function of its name
    build = module.fused_mask
    monkeypatch.setattr(
        module,
        "fused_mask",
        lambda *given, **known: built.append(build(*given, **known)) or built[-1],
    )
    model, batch = fused_model(), sample()  # two layers on each side
    model(*batch[:3])
    of_encoder, of_decoder = fused_calls[:2], fused_calls[2:]
    assert len(built) == 2  # one for the encoder, one for cross-attention
    assert all(call["attn_mask"] is built[0].bias for call in of_encoder)
    assert [call["is_causal"] for call in of_decoder] == [True, False, True, False]
    assert [call["attn_mask"] is None for call in of_decoder] == [True, False, True, False]
    assert all(call["attn_mask"] is built[1].bias for call in of_decoder[1::2])


def test_without_padding_no_attention_has_a_mask(
    fused_calls: list[dict[str, Any]],
) -> None:
    model, batch = fused_model(), sample((4, 4), (3, 3))
    model(batch.source_ids, None, batch.decoder_input_ids)
    assert [call["attn_mask"] for call in fused_calls] == 6 * [None]
    assert [call["is_causal"] for call in fused_calls] == [False, False, True, False, True, False]


def test_fused_kernels_give_the_logits_of_the_plain_model() -> None:
    torch.manual_seed(1)
    model, batch = small_model(), sample()
    expected = model(*batch[:3])
    accelerate(model, GPU)
    torch.testing.assert_close(model(*batch[:3]), expected, rtol=0, atol=1e-10)


def test_no_mask_is_bit_for_bit_a_mask_that_hides_nothing() -> None:
    """So a batch without padding has the numbers that it had before masks were left out."""
    torch.manual_seed(1)
    for dtype in (torch.float32, torch.bfloat16):
        model, batch = small_model(dtype), sample((4, 4), (3, 5))
        with_mask, without = (
            model(batch.source_ids, mask, batch.decoder_input_ids) for mask in (batch.source_mask, None)
        )
        assert torch.equal(with_mask, without)


@pytest.mark.gpu
@pytest.mark.parametrize("lengths", [(8, 8), (8, 5)])
def test_on_a_gpu_the_memory_efficient_kernel_accepts_every_attention(
    lengths: tuple[int, int],
) -> None:
    # The kernel needs heads whose width is a multiple of 8.
    model, batch = fused_model(torch.bfloat16, d_model=16, num_heads=2).cuda(), sample(lengths, (8, 8))
    mask = None if lengths == (8, 8) else batch.source_mask.cuda()
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION):
        logits = model(batch.source_ids.cuda(), mask, batch.decoder_input_ids.cuda())
    assert logits.isfinite().all()


@pytest.mark.long
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_with_real_sizes_a_padded_batch_in_bfloat16_trains_and_is_searched_as_in_float32(
    device: str,
) -> None:
    """Heads of 64 and sources of 30 tokens, for which a GPU takes its own kernels."""
    torch.manual_seed(1)
    sizes = {"d_model": 128, "num_heads": 2, "d_ff": 64, "max_length": 64, "dropout": 0.0}
    plain = small_model(torch.float32, **sizes)
    plain.load_state_dict({name: 0.2 * one for name, one in plain.state_dict().items()})
    batch = sample((30, 21, 9), (17, 30, 12))
    wanted = [*_trained(plain, batch, torch.float32)]
    twin = accelerate(copy.deepcopy(plain), GPU if device == "cpu" else torch.device(device))
    on_device = Sample(*(one.to(device) for one in batch))
    found = [*_trained(twin.to(device), on_device, torch.bfloat16)]
    for ours, theirs in zip(found, wanted, strict=True):
        ours = ours.float().cpu()
        assert (ours - theirs).norm() < 0.05 * theirs.norm()


def _trained(model: Transformer, batch: Sample, precision: torch.dtype) -> Iterator[Tensor]:
    """The output of the decoder, a gradient, and the scores after ten steps of a search."""
    model.zero_grad()
    ids, mask, inputs = batch[:3]
    with torch.autocast(ids.device.type, dtype=precision, enabled=precision != torch.float32):
        x = model.decoder_output(ids, mask, inputs)
        x.square().sum().backward()
        yield x.detach()
        gradient = model.encoder.get_parameter("layers.0.feed_forward.up.weight").grad
        assert gradient is not None
        yield gradient
        with torch.inference_mode():
            state = model.start_decoding(model.encode(ids, mask), mask)
            for step in range(10):
                scores = state.advance(inputs[:, step])
        yield scores
