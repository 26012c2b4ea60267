"""One update: sums are divided once, and NaN or infinity never reaches the weights."""

import copy
from typing import Any

import pytest
import torch
from torch import nn

from transformer_cli.acceleration import accelerate
from transformer_cli.config import ModelConfig, TrainingConfig
from transformer_cli.data.encoded import TokenPair
from transformer_cli.data.updates import Batch, collate
from transformer_cli.model.transformer import Transformer
from transformer_cli.process.device import Machine
from transformer_cli.process.errors import TryAgainError
from transformer_cli.training.loop import (
    StepReport,
    UpdateRunner,
    build_objective,
)
from transformer_cli.training.optimizers import Optimizer

MACHINE = Machine(torch.device("cpu"), torch.float32)
PAD, SOS, EOS = 1, 2, 3
PAIRS = [
    TokenPair([4, 5, EOS], [6, EOS]),
    TokenPair([7, EOS], [4, 4, 5, 6, EOS]),
    TokenPair([4, EOS], [5, 6, EOS]),
    TokenPair([8, 8, 8, 4, EOS], [EOS]),
]


def model_and_optimizer(dropout: float = 0.0) -> tuple[Transformer, Optimizer]:
    torch.manual_seed(0)
    config = ModelConfig(d_model=16, num_heads=2, d_ff=32, encoder_layers=1, decoder_layers=1, dropout=dropout)
    model = accelerate(Transformer(config, 9, 9), MACHINE.device).double()
    training = TrainingConfig(max_steps=1, batch_sentences=4)
    optimizer = Optimizer(model, training)
    optimizer.learning_rate = 0.01
    return model, optimizer


def batch(pairs: list[TokenPair]) -> Batch:
    return collate(pairs, sos_id=SOS, pad_id=PAD)


def step(
    model: Transformer,
    optimizer: Optimizer,
    batches: list[Batch],
    runner: UpdateRunner | None = None,
    **settings: Any,
) -> StepReport:
    settings = {"label_smoothing": 0.1, "clip_norm": None} | settings
    training = TrainingConfig(max_steps=1, batch_sentences=4, **settings)
    return (runner or UpdateRunner(MACHINE)).run(
        model,
        optimizer,
        build_objective(training, 9, MACHINE.device),
        batches,
        seed=1,
        clip_norm=training.clip_norm,
    )


def test_an_accumulated_step_equals_one_large_batch() -> None:
    (model, optimizer), (twin, twin_optimizer) = model_and_optimizer(), model_and_optimizer()
    whole = step(model, optimizer, [batch(PAIRS)])
    parts = step(twin, twin_optimizer, [batch(PAIRS[:1]), batch(PAIRS[1:])])
    assert whole.num_target_tokens == parts.num_target_tokens == 11
    assert float(whole.gradient_norm) == pytest.approx(float(parts.gradient_norm), rel=1e-12)
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-10, atol=1e-14)


def test_a_mean_of_means_would_be_another_step() -> None:
    """The negative control: the test above notices the usual mistake."""
    model, _ = model_and_optimizer()
    gradients = []
    for batches in ([batch(PAIRS)], [batch(PAIRS[:1]), batch(PAIRS[1:])]):
        model.zero_grad()
        for one in batches:
            logits = model(one.source_ids, one.source_mask, one.decoder_input_ids)
            mean = nn.functional.cross_entropy(logits.flatten(0, 1), one.target_ids.flatten(), ignore_index=PAD)
            (mean / len(batches)).backward()
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters()]))  # type: ignore[union-attr]
    assert not torch.allclose(*gradients, rtol=1e-3)


def test_clipping_limits_the_norm_and_reports_what_it_was() -> None:
    model, optimizer = model_and_optimizer()
    unclipped = step(*model_and_optimizer(), [batch(PAIRS)])
    report = step(model, optimizer, [batch(PAIRS)], clip_norm=1e-3)
    assert float(report.gradient_norm) == pytest.approx(float(unclipped.gradient_norm))
    norm = torch.cat([p.grad.flatten() for p in model.parameters()]).norm()  # type: ignore[union-attr]
    assert float(norm) == pytest.approx(1e-3, rel=1e-2)


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_a_step_that_is_not_finite_changes_neither_weights_nor_moments(poison: float) -> None:
    model, optimizer = model_and_optimizer()
    step(model, optimizer, [batch(PAIRS)])
    weights = copy.deepcopy(model.state_dict())
    moments = {name: value.clone() for name, value in optimizer.state().items()}
    handle = model.output.weight.register_hook(lambda gradient: gradient * poison)
    report = step(model, optimizer, [batch(PAIRS)], clip_norm=1.0)
    handle.remove()
    assert not bool(report.is_finite)
    assert all(torch.equal(weights[name], value) for name, value in model.state_dict().items())
    after = optimizer.state()
    assert all(torch.equal(moments[name], value) for name, value in after.items())


def test_the_step_after_a_skipped_one_is_as_if_nothing_had_happened() -> None:
    (model, optimizer), (twin, twin_optimizer) = model_and_optimizer(), model_and_optimizer()
    for one, its_optimizer, is_poisoned in (
        (model, optimizer, True),
        (twin, twin_optimizer, False),
    ):
        step(one, its_optimizer, [batch(PAIRS)])
        if is_poisoned:
            handle = one.output.weight.register_hook(lambda gradient: gradient * float("nan"))
            step(one, its_optimizer, [batch(PAIRS)])
            handle.remove()
        report = step(one, its_optimizer, [batch(PAIRS)])
        assert bool(report.is_finite)
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_what_is_minimised_and_what_is_reported_are_two_numbers() -> None:
    smoothed = step(*model_and_optimizer(), [batch(PAIRS)], label_smoothing=0.3)
    plain = step(*model_and_optimizer(), [batch(PAIRS)], label_smoothing=0.0)
    assert float(plain.objective) == pytest.approx(float(plain.negative_log_likelihood))
    assert float(smoothed.objective) != pytest.approx(float(smoothed.negative_log_likelihood), rel=1e-3)
    assert float(smoothed.negative_log_likelihood) == pytest.approx(float(plain.negative_log_likelihood))


KINDS_OF_EXHAUSTION = {
    "a GPU": torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    "the CPU": RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory"),
    "Python": MemoryError(),
}


def with_memory_for(model: Transformer, max_sentences: int, error: Exception) -> list[int]:
    """Let the model run out of memory for larger batches; returns the sizes of all its calls."""
    sizes: list[int] = []

    def refuse(module: nn.Module, arguments: tuple[torch.Tensor, ...]) -> None:
        sizes.append(len(arguments[0]))
        if len(arguments[0]) > max_sentences:
            raise error

    model.encoder.register_forward_pre_hook(refuse)
    return sizes


def _without_memory(*_: object) -> None:
    raise MemoryError


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS_OF_EXHAUSTION)
@pytest.mark.parametrize(("max_sentences", "num_halvings"), [(4, 0), (3, 1), (2, 1), (1, 2)])
def test_an_update_that_memory_cannot_hold_is_done_in_parts_and_is_the_same(
    kind: str, max_sentences: int, num_halvings: int
) -> None:
    """D10."""
    (model, optimizer), (twin, twin_optimizer) = model_and_optimizer(), model_and_optimizer()
    micro_batches = [batch(PAIRS), batch(PAIRS[:1])]
    whole = step(twin, twin_optimizer, micro_batches)
    with_memory_for(model, max_sentences, KINDS_OF_EXHAUSTION[kind])
    parts = step(model, optimizer, micro_batches)
    assert parts.num_halvings == num_halvings
    for name in ("objective", "negative_log_likelihood", "gradient_norm"):
        assert float(getattr(parts, name)) == pytest.approx(float(getattr(whole, name)), rel=1e-12)
    for name in ("num_source_tokens", "num_target_tokens"):
        assert getattr(parts, name) == getattr(whole, name)
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-10, atol=1e-14)
        torch.testing.assert_close(ours, theirs, rtol=1e-7, atol=1e-10)


def test_gradients_of_the_attempt_that_failed_are_forgotten() -> None:
    """The attempt fails at the second batch, after the first batch has added its gradients."""
    (model, optimizer), (twin, twin_optimizer) = model_and_optimizer(), model_and_optimizer()
    micro_batches = [batch(PAIRS[:2]), batch(PAIRS)]
    step(twin, twin_optimizer, micro_batches)
    sizes = with_memory_for(model, 2, MemoryError())
    step(model, optimizer, micro_batches)
    assert sizes == [2, 4, 1, 1, 2, 2]
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-10, atol=1e-14)


def test_the_size_that_fits_is_remembered_so_no_later_update_fails_first() -> None:
    model, optimizer = model_and_optimizer()
    runner = UpdateRunner(MACHINE)
    sizes = with_memory_for(model, 2, MemoryError())
    halvings = [step(model, optimizer, [batch(PAIRS)], runner).num_halvings for _ in range(3)]
    assert sizes == [4, 2, 2, 2, 2, 2, 2]
    assert halvings == [1, 1, 1]
    assert runner.max_cells == 2 * 5
    assert step(model, optimizer, [batch(PAIRS[:1])], runner).num_halvings == 0  # a small one
    assert sizes[7:] == [1]


def test_a_long_sentence_that_fitted_alone_does_not_stop_later_updates() -> None:
    model, optimizer = model_and_optimizer()
    runner = UpdateRunner(MACHINE, max_cells=3)
    sizes = with_memory_for(model, 4, MemoryError())
    assert step(model, optimizer, [batch(PAIRS)], runner).num_halvings == 2
    assert sizes == [1, 1, 1, 1]
    assert runner.max_cells == 3


@pytest.mark.parametrize(("dropout", "is_the_same"), [(0.0, True), (0.5, False)])
def test_an_update_in_parts_is_the_whole_one_unless_there_is_dropout(dropout: float, is_the_same: bool) -> None:
    norms = []
    for max_cells in (None, 10):
        model, optimizer = model_and_optimizer(dropout)
        runner = UpdateRunner(MACHINE, max_cells=max_cells)
        norms.append(float(step(model, optimizer, [batch(PAIRS)], runner).gradient_norm))
    assert (norms[1] == pytest.approx(norms[0], rel=1e-12)) == is_the_same


def test_the_seed_of_an_update_alone_decides_its_dropout() -> None:
    norms = []
    for seed_before in (5, 6):
        model, optimizer = model_and_optimizer(dropout=0.5)
        torch.manual_seed(seed_before)
        norms.append(float(step(model, optimizer, [batch(PAIRS)]).gradient_norm))
    assert norms[0] == norms[1]


def test_memory_that_cannot_hold_one_sentence_ends_it_cleanly() -> None:
    model, optimizer = model_and_optimizer()
    before = copy.deepcopy(model.state_dict())
    sizes = with_memory_for(model, 0, MemoryError())
    with pytest.raises(TryAgainError, match=r"single sentence(.|\n)*lower training\.batch_tokens"):
        step(model, optimizer, [batch(PAIRS)])
    assert sizes == [4, 2, 1]
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_memory_that_cannot_hold_the_step_of_the_optimizer_does_not_start_the_update_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some weights may have changed already."""
    model, optimizer = model_and_optimizer()
    sizes = with_memory_for(model, 4, MemoryError())

    monkeypatch.setattr(Optimizer, "step_if", _without_memory)
    with pytest.raises(MemoryError):
        step(model, optimizer, [batch(PAIRS)])
    assert sizes == [4]


def test_an_update_after_one_that_failed_in_its_step_may_be_done_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    model, optimizer = model_and_optimizer()
    runner = UpdateRunner(MACHINE)
    with monkeypatch.context() as patched:
        patched.setattr(Optimizer, "step_if", _without_memory)
        with pytest.raises(MemoryError):
            step(model, optimizer, [batch(PAIRS)], runner)
    sizes = with_memory_for(model, 2, MemoryError())
    assert step(model, optimizer, [batch(PAIRS)], runner).num_halvings == 1
    assert sizes == [4, 2, 2]


def test_another_error_of_the_model_is_not_taken_for_lack_of_memory() -> None:
    model, optimizer = model_and_optimizer()
    sizes = with_memory_for(model, 0, RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    with pytest.raises(RuntimeError, match="mat1"):
        step(model, optimizer, [batch(PAIRS)])
    assert sizes == [4]
