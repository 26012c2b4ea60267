"""What the loop does with numbers that are not finite (D1, D2, D5, D6)."""

import math
from collections.abc import Callable

import pytest
import torch

from transformer_cli.data.batching import TokenPair
from transformer_cli.errors import TrainingStoppedError
from transformer_cli.training.loop import Experiment
from transformer_cli.training.optimizer import learning_rate

from .tiny_world import PAIRS, World, assert_equal, experiment, run, settings, tensors_of


def poisoned(one: Experiment, is_bad: Callable[[int], bool]) -> Experiment:
    """The gradients of some steps, counted from 1, are not numbers."""
    step = 0

    def spoil(gradient: torch.Tensor) -> torch.Tensor:
        return gradient * math.nan if is_bad(step) else gradient

    def count(*_: object) -> None:
        nonlocal step
        step += 1

    one.optimizer.register_step_post_hook(count)
    next(one.model.parameters()).register_hook(lambda g: spoil(g))
    step = 1
    return one


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


def test_too_many_bad_steps_in_a_row_end_it_without_a_save() -> None:
    """D2: a sane state was saved before; the message says where to look."""
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
    one = experiment(
        settings(batch_sentences=1, accumulate=1, max_steps=6, log_every=1), pairs=pairs
    )
    states = [tensors_of(one)]
    world = World(watch=lambda name, step: name == "tick" and states.append(tensors_of(one)))
    run(one, world)
    for before, after, report in zip(states, states[1:], world.reports, strict=False):
        if report.loss:
            assert not torch.equal(before["output.weight"], after["output.weight"])
        else:
            assert_equal(before, after)
    assert sorted(bool(report.loss) for report in world.reports) == [False] * 4 + [True] * 2


def test_a_score_that_is_not_a_number_is_never_the_best() -> None:
    """D5."""
    world = World(values=lambda step: math.nan if step < 8 else 3.0)
    progress = run(experiment(settings(save_every=100)), world)
    assert progress.best_goodness == (-3.0,)
    assert [p.step for p, _ in world.saved] == [8, 9], "at 8 for the best, at 9 for the end"


def test_a_score_that_is_never_a_number_ends_the_run_when_patience_does() -> None:
    world = World(values=lambda step: math.nan)
    progress = run(experiment(settings(validate_every=2, patience=3)), world)
    assert (progress.step, progress.best_goodness) == (6, ())
