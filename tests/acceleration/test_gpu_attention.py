"""Masks are made once in a forward pass, and a fused kernel gets no bias where it needs none."""

from importlib import import_module
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from transformer_cli.acceleration import accelerate
from transformer_cli.acceleration.masks import Mask
from transformer_cli.model import Transformer

from ..model.samples import sample, small_model

GPU = torch.device("meta")  # any device but a CPU; the parameters stay on the CPU


def fused_model(*arguments: Any) -> Transformer:
    return accelerate(small_model(*arguments), GPU)


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
    module = import_module(
        "transformer_cli.acceleration.accelerate"
    )  # not the function of its name
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


def test_without_padding_every_attention_may_be_the_flash_kernel(
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
            model(batch.source_ids, mask, batch.decoder_input_ids)
            for mask in (batch.source_mask, None)
        )
        assert torch.equal(with_mask, without)


@pytest.mark.gpu
def test_on_a_gpu_the_flash_kernel_accepts_a_batch_without_padding() -> None:
    model, batch = fused_model(torch.bfloat16).cuda(), sample((8, 8), (8, 8))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
        logits = model(batch.source_ids.cuda(), None, batch.decoder_input_ids.cuda())
    assert logits.isfinite().all()
