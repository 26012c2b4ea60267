"""The numbers of one update: computed by hand, in any batches, and in low precision (D1, D7-D9)."""

import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from transformer_cli.acceleration.accelerate import attend_fused
from transformer_cli.config import ModelConfig, TrainingConfig
from transformer_cli.data.encoded import TokenPair
from transformer_cli.data.updates import Batch, collate
from transformer_cli.model.layers import scaled_dot_product_attention
from transformer_cli.model.loss import SmoothedLabels, sum_loss
from transformer_cli.model.transformer import Transformer
from transformer_cli.process.device import Machine
from transformer_cli.training.callbacks import StepReport
from transformer_cli.training.loop import UpdateRunner, build_objective
from transformer_cli.training.optimizers import Optimizer

PAD, SOS, EOS = 1, 2, 3
VOCAB_SIZE = 9
TRAINING = TrainingConfig(max_steps=1, batch_sentences=4, label_smoothing=0.1, clip_norm=None)
sides = st.lists(st.integers(4, VOCAB_SIZE - 1), max_size=5).map(lambda ids: [*ids, EOS])
pairs = st.builds(TokenPair, sides, sides)


def model_of(**changes: Any) -> Transformer:
    torch.manual_seed(0)
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1}
    config = ModelConfig.model_validate({**sizes, "dropout": 0.0, **changes})
    return Transformer(config, VOCAB_SIZE, VOCAB_SIZE)


def batch_of(some: list[TokenPair]) -> Batch:
    return collate(some, sos_id=SOS, pad_id=PAD)


def step(
    model: nn.Module, batches: list[Batch], precision: torch.dtype = torch.float32
) -> tuple[StepReport, Optimizer]:
    optimizer = Optimizer(model, TRAINING)
    machine = Machine(torch.device("cpu"), precision)
    return UpdateRunner(machine).run(
        model,
        optimizer,
        build_objective(TRAINING, VOCAB_SIZE, machine.device),
        batches,
        seed=1,
        clip_norm=None,
    ), optimizer


@pytest.mark.long
@settings(max_examples=12)
@given(some=st.lists(pairs, min_size=1, max_size=8), data=st.data())
def test_however_pairs_are_put_into_batches_the_update_is_the_same(some: list[TokenPair], data: st.DataObject) -> None:
    """D7: loss and gradient are the same for one batch, for single pairs and for any parts; padding adds nothing."""
    cuts = sorted(data.draw(st.sets(st.integers(1, 7))))
    edges = [0, *(cut for cut in cuts if cut < len(some)), len(some)]
    parts = [some[start:end] for start, end in itertools.pairwise(edges)]
    found = []
    for groups in ([some], [[pair] for pair in some], parts):
        model = model_of().double()
        report, _ = step(model, [batch_of(group) for group in groups])
        gradient = torch.cat([p.grad.flatten() for p in model.parameters()])  # type: ignore[union-attr]
        found.append((report, gradient))
    (whole, expected), *others = found
    assert whole.num_target_tokens == sum(len(pair.target_ids) for pair in some)
    for report, gradient in others:
        for name in ("objective", "negative_log_likelihood", "gradient_norm"):
            ours, theirs = (float(getattr(one, name)) for one in (report, whole))
            assert ours == pytest.approx(theirs, rel=1e-12)
        torch.testing.assert_close(gradient, expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1, 0.5])
def test_the_smoothed_loss_is_what_pencil_and_paper_say(label_smoothing: float) -> None:
    """D8: minus the sum over symbols of q log p, where q is 1 - e + e / V for the truth and e / V else."""
    logits = [[[0.5, -1.0, 2.0, 0.25], [1.5, 0.0, -0.5, 3.0]]]
    truths = [2, 0]
    expected = 0.0
    for row, truth in zip(logits[0], truths, strict=True):
        total = sum(math.exp(value) for value in row)
        for symbol, value in enumerate(row):
            share = label_smoothing / 4 + (1.0 - label_smoothing) * (symbol == truth)
            expected -= share * math.log(math.exp(value) / total)
    found = sum_loss(
        torch.tensor(logits, dtype=torch.float64),
        torch.tensor([truths]),
        SmoothedLabels.of(4, PAD, label_smoothing, "vocabulary"),
    )
    assert found.objective.item() == pytest.approx(expected, rel=1e-14)


def test_a_loss_that_is_not_a_number_changes_neither_weights_nor_moments() -> None:
    """D1, for a loss that is NaN itself."""
    model = model_of()
    batch = batch_of([TokenPair([4, 5, EOS], [6, EOS])])
    _, optimizer = step(model, [batch])
    before = {name: value.clone() for name, value in model.state_dict().items()}
    moments = {name: value.clone() for name, value in optimizer.state().items()}
    model.decoder.register_forward_hook(lambda module, inputs, x: x / 0.0 * 0.0)
    machine = Machine(torch.device("cpu"), torch.float32)
    report = UpdateRunner(machine).run(
        model,
        optimizer,
        build_objective(TRAINING, VOCAB_SIZE, machine.device),
        [batch],
        seed=1,
        clip_norm=None,
    )
    assert math.isnan(float(report.objective))
    assert not bool(report.is_finite)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    after = optimizer.state()
    assert all(torch.equal(moments[name], value) for name, value in after.items())


VARIANTS: dict[str, dict[str, Any]] = {
    "as shipped": {},
    "rotary": {"positions": "rotary", "norm": "rmsnorm", "activation": "swiglu"},
    "post-norm": {"norm_placement": "post", "norm": "std_layernorm"},
    "few key heads": {"num_kv_heads": 1, "qk_norm": True},
}
LOW = [torch.bfloat16, torch.float16]


@pytest.mark.long
@pytest.mark.parametrize("precision", LOW, ids=str)
@pytest.mark.parametrize("name", VARIANTS)
def test_in_low_precision_no_mask_makes_a_number_overflow(name: str, precision: torch.dtype) -> None:
    """D9: also where a sentence has no token at all, and where scores are large."""
    model = model_of(**VARIANTS[name])
    with torch.no_grad():
        for layer in (*model.encoder.layers, *model.decoder.layers):
            for attention in (part for part in layer.modules() if hasattr(part, "query")):
                attention.query.weight.mul_(30.0)
                attention.key.weight.mul_(30.0)
    some = [TokenPair([4] * 12 + [EOS], [5] * 9 + [EOS]), TokenPair([], [6, EOS])]
    report, _ = step(model, [batch_of(some)], precision)
    assert math.isfinite(float(report.objective))
    assert bool(report.is_finite)
    for parameter_name, parameter in model.named_parameters():
        assert parameter.grad is None or torch.isfinite(parameter.grad).all(), parameter_name
        assert torch.isfinite(parameter).all(), parameter_name


@pytest.mark.parametrize("precision", LOW, ids=str)
@pytest.mark.parametrize("attend", [scaled_dot_product_attention, attend_fused])
def test_attention_over_nothing_and_over_large_scores_is_finite_in_low_precision(
    attend: Any, precision: torch.dtype
) -> None:
    """D9: fused attention adds the mask to the scores, so mask plus score must not overflow."""
    torch.manual_seed(1)
    queries, keys = (40 * torch.randn(1, 2, 3, 8).to(precision) for _ in range(2))
    values = torch.randn(1, 2, 3, 8).to(precision)
    visible = torch.tensor([[True, False, False], [True, True, False], [False] * 3])
    found = attend(queries, keys, values, visible[None, None], nn.Dropout(0.0))
    assert torch.isfinite(found).all()
    torch.testing.assert_close(found[:, :, 0], values[:, :, 0], rtol=0.02, atol=0.02)
    assert (found[:, :, 2] == 0).all()


def test_the_usual_mask_constant_would_overflow_in_float16() -> None:
    """The negative control: -1e9 becomes minus infinity in float16, and softmax of such a row is NaN."""
    scores = torch.zeros(3, dtype=torch.float16)
    assert torch.isnan((scores + torch.tensor(-1e9).to(torch.float16)).softmax(-1)).all()
