"""Twins for GPUs in a lower precision: few casts, joined projections, and the numbers of the plain model.

They run on the CPU here. "Lower" is float64, so that a wrong weight cannot hide behind rounding.
"""

import copy
import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_cli.acceleration import accelerate
from transformer_cli.acceleration.accelerate import attend_fused, with_cast_layers
from transformer_cli.acceleration.cast_weights import FeedForwardOnGpu, LinearOnGpu
from transformer_cli.acceleration.cpu_training import (
    fused_mask,
    is_known_to_have_tokens,
    with_tokens_in_all,
)
from transformer_cli.config import TrainingConfig
from transformer_cli.data.encoded import TokenPair
from transformer_cli.data.updates import Batch, collate
from transformer_cli.model import Transformer
from transformer_cli.model.layers import padding_mask, scaled_dot_product_attention
from transformer_cli.training.loop import build_objective

from ..model.samples import Sample, sample, small_model

GPU = torch.device("meta")  # any device but a CPU; the parameters stay on the CPU
VARIANTS: list[dict[str, Any]] = [
    {},
    {"num_kv_heads": 1, "qk_norm": True, "positions": "rotary"},
    {"attention_bias": False, "norm_placement": "post", "activation": "swiglu"},
    {"norm": "rmsnorm", "feed_forward_bias": False, "tie_embeddings": "target-output"},
    {"norm": "std_layernorm", "embedding_norm": True},
]


@pytest.fixture
def wider(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products are computed in float64, of weights in float32."""
    for name, module in list(sys.modules.items()):
        if name.startswith("transformer_cli") and hasattr(module, "product_dtype"):
            monkeypatch.setattr(module, "product_dtype", lambda _: torch.float64)


def decoded(model: Transformer, batch: Sample) -> dict[str, Tensor]:
    """What the output layer reads, and the gradients of everything before it."""
    model.zero_grad()
    x = model.decoder_output(*batch[:3])
    (x.double().sin().sum()).backward()
    found = {name: one.grad.double() for name, one in model.named_parameters() if one.grad is not None}
    return {"x": x.detach().double(), **found}


@pytest.mark.long
@pytest.mark.usefixtures("wider")
@pytest.mark.parametrize("settings", VARIANTS, ids=str)
def test_cast_and_joined_weights_give_the_numbers_and_gradients_of_the_plain_model(
    settings: dict[str, Any],
) -> None:
    torch.manual_seed(1)
    model, batch = small_model(torch.float32, **settings), sample()
    twin = accelerate(copy.deepcopy(model), GPU)
    found, expected = decoded(twin, batch), decoded(model.double(), batch)
    assert found.keys() == expected.keys()
    for name, wanted in expected.items():
        torch.testing.assert_close(found[name], wanted, rtol=1e-5, atol=1e-5, msg=name)
    assert all(one.grad is None or one.grad.dtype == torch.float32 for one in twin.parameters())
    assert not any("cast" in key for one in twin.modules() for key in one.__dict__)


@pytest.mark.usefixtures("wider")
def test_frozen_weights_get_no_gradient_and_all_others_their_own() -> None:
    torch.manual_seed(1)
    model, batch = small_model(torch.float32), sample()
    frozen = (
        model.encoder.layers[0].requires_grad_(False),
        model.decoder.layers[1].self_attention.key.requires_grad_(False),
    )
    twin = accelerate(copy.deepcopy(model), GPU)
    found, expected = decoded(twin, batch), decoded(model.double(), batch)
    assert found.keys() == expected.keys()
    assert len(list(frozen[0].parameters())) > 10
    for name, wanted in expected.items():
        torch.testing.assert_close(found[name], wanted, rtol=1e-5, atol=1e-5, msg=name)


class Names(TorchDispatchMode):
    """Counts operations by their names."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counts: dict[str, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        self.counts[name] = self.counts.get(name, 0) + 1
        return func(*args, **(kwargs or {}))


@pytest.mark.long
def test_in_bfloat16_a_layer_has_one_cast_and_its_activations_stay_narrow() -> None:
    """But for the output layer and the first embedding, which autocast and the twin of the model cast."""
    model, batch = accelerate(small_model(torch.float32), GPU).train(), sample()
    model.decoder_output(*batch[:3])  # the first pass of a process makes the table of positions
    seen: list[torch.dtype] = []
    for layer in (*model.encoder.layers, *model.decoder.layers):
        layer.register_forward_hook(lambda module, given, x: seen.append(x.dtype))
    with Names() as names, torch.autocast("cpu", dtype=torch.bfloat16):
        model.decoder_output(*batch[:3])
    num_layers = len(seen)
    assert seen == [torch.bfloat16] * num_layers == [torch.bfloat16] * 4
    assert names.counts["_foreach_copy_"] == num_layers
    # Two embeddings, and the weight and bias of two final norms.
    assert names.counts["_to_copy"] <= 2 + 4
    # Encoder layer: 1 for queries, keys and values, the output, 1 of the network; a decoder layer 3 more.
    assert names.counts["addmm"] == 2 * 3 + 2 * 6
    assert names.counts["_addmm_activation"] == num_layers
    assert "relu" not in names.counts


@pytest.mark.long
@pytest.mark.parametrize(
    "settings",
    [{"activation": "gelu"}, {"activation": "reglu"}, {"feed_forward_bias": False}],
    ids=str,
)
def test_only_a_relu_with_a_bias_is_written_by_its_product(
    settings: dict[str, Any],
) -> None:
    model, batch = accelerate(small_model(torch.float32, **settings), GPU).train(), sample()
    with Names() as names, torch.autocast("cpu", dtype=torch.bfloat16):
        model.decoder_output(*batch[:3])
    assert "_addmm_activation" not in names.counts


def test_a_product_with_its_relu_has_the_gradients_of_both() -> None:
    torch.manual_seed(1)
    plain = small_model().encoder.layers[0].feed_forward.train()
    twin = copy.deepcopy(plain)
    twin.__class__ = FeedForwardOnGpu
    x = torch.randn(3, 5, plain.up.in_features, dtype=torch.float64, requires_grad=True)
    gradients = []
    for one in (plain, twin):
        y = one(x)
        parameters = list(one.parameters())
        gradients.append([y, *torch.autograd.grad(y.sin().sum(), [x, *parameters])])
    for found, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(found, expected)


def test_a_model_for_translation_has_cast_norms_and_joined_weights_in_one_memory() -> None:
    model = accelerate(small_model(torch.float32), GPU)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    translating = with_cast_layers(model, torch.bfloat16)
    attention: Any = translating.decoder.layers[0].self_attention
    weight, _ = attention.cast_of_all
    assert weight.dtype == torch.bfloat16
    for part in (attention.query, attention.key, attention.value):
        assert part.weight.untyped_storage().data_ptr() == weight.untyped_storage().data_ptr()
    norm: Any = translating.decoder.norm
    assert norm.cast[0].dtype == torch.bfloat16
    after = model.state_dict()
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())
    assert all(one.dtype == torch.float32 for one in model.parameters())


@pytest.mark.parametrize("has_bias", [True, False])
def test_an_odd_number_of_outputs_gets_aligned_rows_and_the_same_numbers(has_bias: bool) -> None:
    torch.manual_seed(1)
    plain = nn.Linear(6, 9, bias=has_bias)
    twin = LinearOnGpu(6, 9, bias=has_bias)
    twin.load_state_dict(plain.state_dict())
    x = torch.randn(3, 4, 6, dtype=torch.bfloat16)
    found = []
    for layer in (plain, twin):
        given = x.clone().requires_grad_()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            made = layer(given)
        made.float().sin().sum().backward()
        found.append([made.detach(), given.grad, *(one.grad for one in layer.parameters())])
    for ours, theirs in zip(found[1], found[0], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=2e-2, atol=2e-2)
    assert made.stride()[:2] == (4 * 16, 16)


def test_the_loss_of_an_odd_vocabulary_is_the_plain_one() -> None:
    torch.manual_seed(1)
    plain, batch = small_model(torch.float32), sample()
    one = Batch(*batch, num_source_tokens=12, num_target_tokens=12, pad_id=1)
    objective = build_objective(TrainingConfig(max_steps=1, batch_sentences=2), 9, GPU)
    losses = []
    for model in (plain, accelerate(copy.deepcopy(plain), GPU)):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            losses.append(objective(model, one).objective)
        losses[-1].backward()
    torch.testing.assert_close(losses[1], losses[0], rtol=2e-2, atol=0)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 30])
def test_rows_of_a_bias_are_aligned_so_that_no_layer_copies_it(size: int) -> None:
    visible = torch.rand(3, 1, 1, size) > 0.3
    mask = fused_mask(visible, torch.float32)
    assert mask.bias is not None
    assert mask.bias.shape == visible.shape
    assert all(stride % 8 == 0 for stride in mask.bias.stride()[:-1])
    assert torch.equal(mask.bias == 0.0, visible)


def test_a_source_that_is_known_to_have_tokens_spares_the_zeros_and_no_other() -> None:
    model: Any = accelerate(small_model(torch.float32), GPU)
    batch = sample()
    x = model.embed_source(batch.source_ids)
    assert model.mask_of_sources(batch.source_mask, x).reads_any is not None
    noted = with_tokens_in_all(batch.source_mask.clone())
    assert model.mask_of_sources(noted, x).reads_any is None
    assert not is_known_to_have_tokens(noted[:1]), "what is computed from it is not noted"


def test_chosen_rows_of_a_search_keep_the_note() -> None:
    model = accelerate(small_model(torch.float32), GPU)
    batch = sample()
    noted = with_tokens_in_all(batch.source_mask.clone())
    state: Any = model.start_decoding(model.encode(batch.source_ids, noted), noted)
    state.select(torch.tensor([2, 0, 0]))
    assert state._source_mask.reads_any is None
    assert torch.equal(state._source_mask.visible[:, 0, 0], batch.source_mask[[2, 0, 0]])


def test_a_batch_knows_whether_each_source_has_a_token() -> None:
    pairs = [TokenPair([5, 3], [6, 3]), TokenPair([3], [3])]
    batch = collate(pairs, sos_id=2, pad_id=1)
    assert batch.sources_have_tokens
    assert all(half.sources_have_tokens for half in batch.halves())
    empty = collate([TokenPair([5, 3], [6, 3]), TokenPair([], [3])], sos_id=2, pad_id=1)
    assert not empty.sources_have_tokens


@pytest.mark.parametrize("has_empty_source", [False, True])
def test_an_empty_source_gives_zeros_in_training_too(has_empty_source: bool) -> None:
    torch.manual_seed(1)
    source = [] if has_empty_source else [5, 3]
    pairs = [TokenPair([5, 6, 7, 3], [6, 3]), TokenPair(source, [3])]
    batch = collate(pairs, sos_id=2, pad_id=1)
    plain = small_model()
    objective = build_objective(TrainingConfig(max_steps=1, batch_sentences=2), 9, GPU)
    expected = objective(plain, batch)
    found = objective(accelerate(copy.deepcopy(plain), GPU), batch)
    torch.testing.assert_close(found.objective, expected.objective, rtol=1e-10, atol=0)


def test_the_fused_form_of_a_noted_mask_is_the_plain_form() -> None:
    torch.manual_seed(1)
    visible = padding_mask(torch.tensor([[True, True, False], [True, True, True]]))
    assert visible is not None
    queries, keys, values = (torch.randn(2, 2, 3, 4, dtype=torch.float64) for _ in range(3))
    mask = fused_mask(visible, torch.float64, reads_any=True)
    found = attend_fused(queries, keys, values, mask, nn.Dropout(0.0))
    expected = scaled_dot_product_attention(queries, keys, values, visible, nn.Dropout(0.0))
    torch.testing.assert_close(found, expected)


@pytest.mark.usefixtures("wider")
def test_with_several_processes_gradients_are_sent_while_the_backward_pass_runs() -> None:
    """Each layer casts by itself, so its gradients are complete when its backward pass is."""
    model, batch = accelerate(small_model(torch.float32), GPU), sample()
    order: list[str] = []
    for name, parameter in model.named_parameters():
        parameter.register_post_accumulate_grad_hook(lambda _, name=name: order.append(name))
    decoded(model, batch)
    layers = [name.split(".")[0] + name.split(".")[2] for name in order if ".layers." in name]
    assert list(dict.fromkeys(layers)) == ["decoder1", "decoder0", "encoder1", "encoder0"]


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_activations_stay_narrow_behind_every_norm(placement: str) -> None:
    """Of a post-norm model, too, whose layers end with a norm; and without gradients."""
    model, batch = accelerate(small_model(torch.float32, norm_placement=placement), GPU), sample()
    for is_training in (True, False):
        with torch.set_grad_enabled(is_training), torch.autocast("cpu", dtype=torch.bfloat16):
            memory = model.encode(batch.source_ids, batch.source_mask)
            decoded = model.decoder_output(*batch[:3])
        assert (memory.dtype, decoded.dtype) == (torch.bfloat16, torch.bfloat16)
