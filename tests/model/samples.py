"""Small models in which every weight has an effect, and batches with padding, for these tests."""

from typing import Any, NamedTuple

import torch
from hypothesis import strategies as st
from torch import Tensor

from transformer_cli.config import ModelConfig
from transformer_cli.model.loss import SmoothedLabels, sum_loss
from transformer_cli.model.transformer import Transformer

from . import naive

SOURCE_VOCAB_SIZE, TARGET_VOCAB_SIZE, PAD_ID = 11, 9, 1
SMALL: dict[str, Any] = {
    "d_model": 12,
    "num_heads": 2,
    "d_ff": 10,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "max_length": 16,
}


class Sample(NamedTuple):
    """A batch whose sentences end at different places."""

    source_ids: Tensor
    source_mask: Tensor
    decoder_input_ids: Tensor
    target_ids: Tensor


def sample(source_lengths: tuple[int, ...] = (5, 3, 4), target_lengths: tuple[int, ...] = (4, 6, 2)) -> Sample:
    """Random ids, padded on the right."""
    source_mask = torch.arange(max(source_lengths)) < torch.tensor(source_lengths)[:, None]
    target_mask = torch.arange(max(target_lengths)) < torch.tensor(target_lengths)[:, None]
    source_ids, decoder_input_ids, target_ids = (
        torch.randint(2, vocab_size, mask.shape).where(mask, PAD_ID)
        for vocab_size, mask in (
            (SOURCE_VOCAB_SIZE, source_mask),
            (TARGET_VOCAB_SIZE, target_mask),
            (TARGET_VOCAB_SIZE, target_mask),
        )
    )
    return Sample(source_ids, source_mask, decoder_input_ids, target_ids)


def model_of(config: ModelConfig, dtype: torch.dtype = torch.float64) -> Transformer:
    """A model in evaluation mode; no weight is 0 or 1, so a test notices a weight that is not used."""
    is_one_vocabulary = config.tie_embeddings == "all"
    source_vocab_size = TARGET_VOCAB_SIZE if is_one_vocabulary else SOURCE_VOCAB_SIZE
    model = Transformer(config, source_vocab_size, TARGET_VOCAB_SIZE).to(dtype).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            scale, centre = (0.4, 0.0) if parameter.dim() > 1 else (0.2, 0.5)
            parameter.copy_(torch.randn_like(parameter) * scale + centre)
    return model


def small_model(dtype: torch.dtype = torch.float64, **settings: Any) -> Transformer:
    """`SMALL` with other settings."""
    return model_of(ModelConfig(**{**SMALL, **settings}), dtype)


def results(model: Transformer, batch: Sample, label_smoothing: float = 0.1) -> dict[str, Tensor]:
    """Logits, both losses and every gradient of the model."""
    model.zero_grad()
    logits = model(*batch[:3])
    labels = SmoothedLabels.of(logits.size(-1), PAD_ID, label_smoothing, "vocabulary")
    sums = sum_loss(logits, batch.target_ids, labels)
    sums.objective.backward()
    gradients = {f"gradient of {name}": tensor.grad for name, tensor in model.named_parameters()}
    return {"logits": logits, "objective": sums[0], "likelihood": sums[1], **gradients}


def naive_results(model: Transformer, batch: Sample, label_smoothing: float = 0.1) -> dict[str, Tensor]:
    """The same from the formulas, in float64."""
    weights = {name: tensor.detach().double().requires_grad_() for name, tensor in model.state_dict().items()}
    logits = naive.logits(weights, model.config.model_dump(), *batch[:3])
    sums = naive.loss(logits, batch.target_ids, pad_id=PAD_ID, label_smoothing=label_smoothing)
    gradients = torch.autograd.grad(sums[0], list(weights.values()), materialize_grads=True)
    named = {f"gradient of {name}": tensor for name, tensor in zip(weights, gradients, strict=True)}
    return {"logits": logits, "objective": sums[0], "likelihood": sums[1], **named}


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor], tolerance: float) -> None:
    """Logits entry by entry; losses relative to themselves, a gradient to its largest entry."""
    assert found.keys() == expected.keys()
    for name, wanted in expected.items():
        error = (found[name].double() - wanted).abs().max().item()
        size = 1.0 if name == "logits" else max(wanted.abs().max().item(), 1.0)
        assert error <= tolerance * size, f"{name}: off by {error:.1e}, of {size:.1e}"


@st.composite
def model_configs(draw: st.DrawFn) -> ModelConfig:
    """Any combination of settings, in small sizes."""
    num_heads, num_kv_heads = draw(st.sampled_from([(1, None), (2, None), (2, 1), (4, 2), (4, None)]))
    head_dim = draw(st.sampled_from([None, 2, 4]))
    return ModelConfig(
        d_model=num_heads * draw(st.sampled_from([2, 4])),
        num_heads=num_heads,
        head_dim=head_dim,
        num_kv_heads=num_kv_heads,
        d_ff=draw(st.sampled_from([3, 8])),
        encoder_layers=draw(st.integers(1, 2)),
        decoder_layers=draw(st.integers(1, 2)),
        decoder_layer=draw(st.sampled_from(["attention", "attention", "ssru"])),
        max_length=16,
        norm=draw(st.sampled_from(["layernorm", "rmsnorm", "std_layernorm", "scalar_std_layernorm"])),
        norm_eps=draw(st.sampled_from([1e-5, 1e-3])),
        norm_placement=draw(st.sampled_from(["pre", "post", "residual_of_normed"])),
        final_norm=draw(st.sampled_from([None, True, False])),
        embedding_norm=draw(st.booleans()),
        activation=draw(st.sampled_from(["relu", "gelu", "silu", "swiglu", "geglu", "reglu"])),
        attention_bias=draw(st.booleans()),
        feed_forward_bias=draw(st.booleans()),
        positions=draw(
            st.sampled_from(
                [
                    "sinusoidal",
                    "sinusoidal_halves",
                    "sinusoidal_marian",
                    "learned",
                    "rotary",
                    "none",
                ]
            )
        ),
        scale_embeddings=draw(st.booleans()),
        tie_embeddings=draw(st.sampled_from(["none", "target-output", "all"])),
        qk_norm=draw(st.booleans()),
        output_bias=draw(st.booleans()),
        init=draw(st.sampled_from(["xavier", "pytorch", "small"])),
    )
