"""The trace of a forward pass: its shapes and weights are those of the model itself."""

import pytest
import torch
from torch import Tensor, nn

from transformer_cli.config import ModelConfig
from transformer_cli.extensions.benchmark.training import FORWARD
from transformer_cli.extensions.lessons.explaining.forward_trace import (
    ForwardTrace,
    attention_of,
    masks_of,
    positions_of,
    trace_forward,
)
from transformer_cli.model import Transformer
from transformer_cli.model.layers import MultiHeadAttention

SOURCE = torch.tensor([[4, 5, 6, 7, 3]])
INPUTS = torch.tensor([[2, 5, 6, 8]])
WIDTH, HEADS, FEED_FORWARD, VOCABULARY = 16, 4, 24, 9
VARIANTS: list[dict[str, object]] = [
    {},
    {"positions": "rotary", "num_kv_heads": 2, "qk_norm": True},
    {"positions": "learned", "norm_placement": "post", "tie_embeddings": "all"},
    {"positions": "none", "activation": "swiglu", "tie_embeddings": "target-output"},
    {"decoder_layer": "ssru"},
]
each_variant = pytest.mark.parametrize("variant", VARIANTS, ids=lambda one: ",".join(one) or "plain")


def model_of(variant: dict[str, object]) -> Transformer:
    torch.manual_seed(3)
    sizes = {"d_model": WIDTH, "num_heads": HEADS, "d_ff": FEED_FORWARD, "max_length": 12}
    layers = {"encoder_layers": 2, "decoder_layers": 3}
    config = ModelConfig.model_validate(sizes | layers | variant)
    return Transformer(config, VOCABULARY, VOCABULARY).eval()


@torch.inference_mode()
def traced(model: Transformer) -> ForwardTrace:
    return trace_forward(model, SOURCE, INPUTS)


def seen_by_hooks(
    model: Transformer,
) -> tuple[list[tuple[str, tuple[int, ...]]], dict[str, Tensor]]:
    """The output shape of each module that is called, and what enters the dropout behind each softmax."""
    shapes: list[tuple[str, tuple[int, ...]]] = []
    weights: dict[str, Tensor] = {}
    for name, module in model.named_modules():

        def note(_: nn.Module, args: tuple[Tensor, ...], output: Tensor, name: str = name) -> None:
            shapes.append((name, tuple(output.shape)))
            if name.endswith("attention.dropout"):
                weights[name.removesuffix(".dropout")] = args[0][0]

        module.register_forward_hook(note)
    with torch.inference_mode():
        model(SOURCE, None, INPUTS)
    return shapes, weights


@each_variant
def test_the_shapes_are_those_that_hooks_see_in_the_real_forward_pass(
    variant: dict[str, object],
) -> None:
    model = model_of(variant)
    trace = traced(model)
    called = [(one.name, one.output) for one in trace.shapes if one.operation == FORWARD]
    shapes, _ = seen_by_hooks(model)
    absent = {name for name, module in model.named_modules() if type(module).__name__ in ("Identity", "NoPositions")}
    # A hook runs when a module ends, and the trace has the order in which modules begin.
    assert sorted(called) == sorted(one for one in shapes if one[0] not in absent)
    assert not any(one.module == "Identity" for one in trace.shapes)
    assert called[0] == ("", (1, 4, VOCABULARY))


@pytest.mark.long
@each_variant
def test_every_weight_of_the_model_is_used_by_a_listed_module(variant: dict[str, object]) -> None:
    model = model_of(variant)
    listed = {f"{one.name}.{name}": shape for one in traced(model).shapes for name, shape in one.parameters.items()}
    assert listed == {name: tuple(one.shape) for name, one in model.named_parameters()}


@pytest.mark.long
@each_variant
def test_a_linear_map_has_the_shapes_of_its_weights(variant: dict[str, object]) -> None:
    linear = [one for one in traced(model_of(variant)).shapes if one.module == "Linear" and one.operation == "forward"]
    names = {one.name.rpartition(".")[2] for one in linear}
    assert {"query", "key", "value"} <= names
    for one in linear:
        width_out, width_in = one.parameters["weight"]
        assert one.inputs[0][-1] == width_in
        assert one.output == (*one.inputs[0][:-1], width_out)


@pytest.mark.long
@each_variant
def test_the_attention_is_what_the_model_computed(variant: dict[str, object]) -> None:
    model = model_of(variant)
    trace = traced(model)
    _, weights = seen_by_hooks(model)
    assert set(trace.attention) == set(weights)
    assert len(weights) == 2 + (3 if "decoder_layer" in variant else 2 * 3)
    for name, computed in weights.items():
        assert torch.equal(trace.attention[name].weights, computed), name


@pytest.mark.long
@each_variant
def test_rows_of_attention_sum_to_one_and_masked_cells_are_exactly_zero(
    variant: dict[str, object],
) -> None:
    trace = traced(model_of(variant))
    for name, (weights, visible) in trace.attention.items():
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
        assert (weights[:, ~visible] == 0.0).all()
        assert (weights[:, visible] > 0.0).all()
        is_causal = name.startswith("decoder") and name.endswith("self_attention")
        assert visible.sum() == (10 if is_causal else visible.numel())
    masks = masks_of(trace)
    if variant.get("decoder_layer") == "ssru":
        assert masks.decoder is None
        assert attention_of(trace, model_of(variant)).decoder is None
    else:
        assert masks.decoder is not None
        assert masks.decoder.values.tolist() == torch.ones(4, 4).tril().tolist()
    assert masks.encoder.values.shape == (5, 5)
    assert masks.cross.values.shape == (4, 5)


@pytest.mark.long
@each_variant
def test_the_log_probabilities_are_those_of_the_model(variant: dict[str, object]) -> None:
    model = model_of(variant)
    with torch.inference_mode():
        expected = model(SOURCE, None, INPUTS)[0].log_softmax(-1)
    assert torch.equal(traced(model).log_probs, expected)


def test_the_output_of_cross_attention_is_made_of_the_weights() -> None:
    model = model_of({})
    attention = model.decoder.layers[1].cross_attention
    assert isinstance(attention, MultiHeadAttention)
    weights = traced(model).attention["decoder.layers.1.cross_attention"].weights
    seen: list[tuple[Tensor, Tensor]] = []
    attention.register_forward_hook(lambda _, args, output: seen.append((args[1], output)))
    with torch.inference_mode():
        model(SOURCE, None, INPUTS)
        [(memory, output)] = seen
        _, values = attention.keys_and_values(memory)
        mixed = attention.output((weights @ values).transpose(1, 2).flatten(2))
    torch.testing.assert_close(mixed, output)


def test_the_model_keeps_no_hook_and_its_copy_shares_the_weights() -> None:
    model = model_of({})
    traced(model)
    assert not any(one._forward_hooks or one._forward_pre_hooks for one in model.modules())
    with torch.no_grad():
        before = traced(model).log_probs
        model.output.weight.mul_(2.0)
    assert not torch.equal(traced(model).log_probs, before)


def test_a_model_in_training_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="eval"):
        traced(model_of({}).train())


def test_sinusoids_are_shown_as_the_paper_defines_them() -> None:
    model = model_of({})
    positions = positions_of(traced(model), model, 5, 4)
    assert (positions.meaning, positions.source is None) == ("added", False)
    assert positions.source is not None
    for place in range(5):
        row = positions.source.values[place].tolist()
        assert row[0] == pytest.approx(float(torch.tensor(float(place)).sin()), abs=1e-5)
        assert row[1] == pytest.approx(float(torch.tensor(float(place)).cos()), abs=1e-5)


def test_learned_positions_are_shown_as_they_are_in_the_weights() -> None:
    model = model_of({"positions": "learned"})
    positions = positions_of(traced(model), model, 5, 4)
    assert positions.target is not None
    weights = model.target_positions.weight
    assert isinstance(weights, Tensor)
    torch.testing.assert_close(torch.from_numpy(positions.target.values), weights[:4].detach(), atol=1e-5, rtol=1e-5)


def test_rotary_positions_are_shown_as_sines_and_cosines() -> None:
    model = model_of({"positions": "rotary"})
    positions = positions_of(traced(model), model, 5, 4)
    assert positions.meaning == "angles"
    assert positions.source is not None
    width = WIDTH // HEADS
    assert positions.source.values.shape == (5, width)
    squares = positions.source.values[:, : width // 2] ** 2 + positions.source.values[:, width // 2 :] ** 2
    assert squares == pytest.approx(1.0, abs=1e-5)


def test_without_positions_none_are_shown() -> None:
    model = model_of({"positions": "none"})
    positions = positions_of(traced(model), model, 5, 4)
    assert (positions.meaning, positions.source, positions.target) == ("none", None, None)
