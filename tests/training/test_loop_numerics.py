"""What the loop does with numbers that are not finite or jump (D1, D2, D4, D5, D6)."""

import math
from collections.abc import Callable, Iterator
from typing import Any

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


def test_a_loss_spike_is_clipped_told_and_its_batch_not_repeated(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """D4: a batch whose loss is a thousandfold moves the weights no further than any other."""
    training = settings(log_every=1, clip_norm=0.5, validate_every=100)
    ends, positions = {}, {}
    for name in ("calm", "spike"):
        one = experiment(training)
        steps = iter(range(2, 100))  # the model is called twice for each update

        def spike(*call: Any, steps: Iterator[int] = steps, name: str = name) -> torch.Tensor:
            is_due = name == "spike" and next(steps) // 2 == 5
            return call[-1] * 1000.0 if is_due else call[-1]

        one.model.register_forward_hook(spike)
        states: dict[int, dict[str, torch.Tensor]] = {}
        world = World(watch=lambda call, step, s=states, o=one: s.update({step: tensors_of(o)}))
        positions[name] = run(one, world).position
        ends[name] = world.reports, states
    reports, states = ends["spike"]
    assert reports[4].loss > 100 * reports[3].loss
    assert reports[4].gradient_norm > 100 * reports[3].gradient_norm
    weights = list(experiment(training).model.state_dict())
    moved = [
        max(float((of_kind[5][name] - of_kind[4][name]).abs().max()) for name in weights)
        for of_kind in (states, ends["calm"][1])
    ]
    assert moved[0] < 2 * moved[1], "clipped: of the size of any other update"
    assert positions["spike"] == positions["calm"], "every batch was consumed once"
    assert reports[8].loss < 2 * ends["calm"][0][8].loss
    assert caplog.text.count("step 5: the training loss has jumped") == 1
