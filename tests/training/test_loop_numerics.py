"""The training loop with NaN, infinity and sudden large values (D1, D2, D4, D5, D6)."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from transformer_cli.config import TrainingConfig
from transformer_cli.data.encoded import TokenPair
from transformer_cli.process.errors import TrainingStoppedError
from transformer_cli.training.loop import Experiment, Progress
from transformer_cli.training.optimizers import learning_rate

from .tiny_world import PAIRS, World, assert_equal, experiment, run, settings, tensors_of


def poisoned(one: Experiment, is_bad: Callable[[int], bool]) -> Experiment:
    """Set the gradients of some steps, counted from 1, to NaN."""
    step = 0

    def spoil(gradient: torch.Tensor) -> torch.Tensor:
        return gradient * math.nan if is_bad(step) else gradient

    def count(*_: object) -> None:
        nonlocal step
        step += 1

    one.optimizer.torch_optimizers[0].register_step_post_hook(count)
    next(one.model.parameters()).register_hook(lambda g: spoil(g))
    step = 1
    return one


@pytest.mark.long
def test_a_bad_step_counts_but_changes_nothing() -> None:
    """D1: weights and moments stay bit for bit; the batch is consumed, the rate follows the step."""
    training = settings(log_every=1)
    one = poisoned(experiment(training), lambda step: step == 5)
    states: dict[int, dict[str, torch.Tensor]] = {}
    world = World(watch=lambda name, step: states.update({step: tensors_of(one)}))
    progress = run(one, world)
    assert_equal(states[4], states[5])
    assert not torch.equal(states[5]["output.weight"], states[6]["output.weight"])
    assert [report.num_skipped for report in world.reports] == [0] * 4 + [1] * 5
    healthy = run(experiment(training), World())
    assert (progress.step, progress.position) == (healthy.step, healthy.position)
    assert world.reports[5].learning_rate == learning_rate(6, training, d_model=8)


@pytest.mark.long
def test_too_many_bad_steps_in_a_row_end_it_without_a_save() -> None:
    """D2: the last checkpoint has a valid state; the message says where to look."""
    one = poisoned(experiment(settings(max_skipped_in_a_row=3)), lambda step: step >= 5)
    world = World()
    with pytest.raises(TrainingStoppedError, match=r"step 7: the last 3 updates") as stopped:
        run(one, world)
    assert "learning_rate" in str(stopped.value)
    assert [p.step for p, _ in world.saved] == [4, 5]
    assert all(torch.isfinite(value).all() for value in tensors_of(one).values())


def test_an_update_without_a_target_token_changes_no_weight() -> None:
    """D6: sequences without an end symbol can be empty."""
    pairs = [*PAIRS[:1], *(TokenPair([4, 5, 6], []) for _ in range(2))]
    one = experiment(settings(batch_sentences=1, accumulate=1, max_steps=6, log_every=1), pairs=pairs)
    states = [tensors_of(one)]
    world = World(watch=lambda name, step: name == "step" and states.append(tensors_of(one)))
    run(one, world)
    for before, after, report in zip(states, states[1:], world.reports, strict=False):
        if math.isfinite(report.loss):
            assert not torch.equal(before["output.weight"], after["output.weight"])
        else:
            assert_equal(before, after)
    finite = sorted(math.isfinite(report.loss) for report in world.reports)
    assert finite == [False] * 4 + [True] * 2


@pytest.mark.long
def test_a_score_that_is_not_a_number_is_never_the_best() -> None:
    """D5."""
    world = World(values=lambda step: math.nan if step < 8 else 3.0)
    progress = run(experiment(settings(save_every=100)), world)
    assert progress.best_goodness == (-3.0,)
    saved = [(p.step, p.validated_at) for p, _ in world.saved]
    assert saved == [(8, 8), (9, 8), (9, 9)], "at 8 for the best, at 9 before and after the last"


def test_a_score_that_is_never_a_number_ends_the_run_when_patience_does() -> None:
    world = World(values=lambda step: math.nan)
    progress = run(experiment(settings(validate_every=2, patience=3)), world)
    assert (progress.step, progress.best_goodness) == (6, ())


def trained_with_spike(
    training: TrainingConfig, spiked_step: int
) -> tuple[World, Progress, dict[int, dict[str, torch.Tensor]]]:
    """Multiply what the output layer reads in one update by 1,000, so its loss and its gradients grow too."""
    one, num_calls = experiment(training), iter(range(2, 100))  # two calls of the model per update

    def spike(*call: Any) -> torch.Tensor:
        return call[-1] * (1000.0 if next(num_calls) // 2 == spiked_step else 1.0)

    one.model.decoder.register_forward_hook(spike)
    states: dict[int, dict[str, torch.Tensor]] = {}
    world = World(watch=lambda call, step: states.update({step: tensors_of(one)}))
    return world, run(one, world), states


@pytest.mark.long
def test_a_loss_spike_is_clipped_told_and_its_batch_not_repeated(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """D4."""
    training = settings(log_every=1, clip_norm=0.5, validate_every=100)
    calm, progress_of_calm, _ = trained_with_spike(training, 99)
    assert caplog.text == ""
    world, progress, states = trained_with_spike(training, 5)
    assert caplog.text.count("step 5: the training loss has jumped") == 1
    assert world.reports[4].loss > 100 * world.reports[3].loss
    assert world.reports[4].gradient_norm > 100 * world.reports[3].gradient_norm
    assert progress.position == progress_of_calm.position, "every batch was consumed once"
    assert world.reports[8].loss < 2 * calm.reports[8].loss, "it goes on as if nothing had been"
    largest = 5 * (1 - training.betas[1]) * 0.5**2  # of five clipped gradients
    assert largest_second_moment(states[5]) <= largest
    unclipped = settings(log_every=1, clip_norm=None, validate_every=100)
    _, _, states = trained_with_spike(unclipped, 5)
    assert largest_second_moment(states[5]) > 100 * largest, "the negative control"


def largest_second_moment(state: dict[str, torch.Tensor]) -> float:
    return max(float(value.max()) for name, value in state.items() if name.endswith("exp_avg_sq"))


@pytest.mark.long
def test_a_skipped_update_lowers_no_reported_loss() -> None:
    """The mean loss counts only tokens of updates that were not skipped; without any, there is no mean."""
    losses = []
    for bad_steps in ((), (2,), (1, 2, 3)):
        one = poisoned(experiment(settings(max_steps=3, log_every=3)), bad_steps.__contains__)
        world = World()
        run(one, world)
        losses += [report.loss for report in world.reports]
    clean, one_skipped, all_skipped = losses
    assert one_skipped == pytest.approx(clean, rel=0.1)  # with skipped tokens: two thirds of it
    assert math.isnan(all_skipped)
