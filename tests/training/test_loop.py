"""The training loop: its intervals, its end, and that it continues exactly where it stopped."""

import copy
from functools import cache

import pytest
import torch

from transformer_cli.config import TrainingConfig
from transformer_cli.training.callbacks import Meter
from transformer_cli.training.loop import Experiment, Progress
from transformer_cli.training.optimizers import learning_rate

from .tiny_world import MACHINE, World, assert_equal, experiment, run, settings, tensors_of, train

pytestmark = pytest.mark.long


def test_each_cadence_is_kept_and_everything_happens_once_more_at_the_end() -> None:
    world = World(values=lambda step: step)  # it gets worse, so that only the first is the best
    progress = run(experiment(settings()), world)
    assert progress.step == 9
    assert world.without_steps() == [
        "report 3",
        "validate 4",
        "save 4",
        "save 5",
        "report 6",
        "validate 8",
        "report 9",
        "save 9",
        "validate 9",
        "save 9",
    ]
    assert [call for call in world.calls if call.startswith("step")] == [f"step {step}" for step in range(1, 10)]


def test_what_is_saved_knows_of_the_validation_before_it() -> None:
    world = World()
    run(experiment(settings()), world)
    saved = [(p.step, p.validated_at) for p, _ in world.saved]
    assert saved == [(4, 4), (5, 4), (8, 8), (9, 8), (9, 9)]
    assert world.saved[-1][0].best_goodness == (-1.0,), "of a loss, the lowest is the best"


def test_a_save_that_is_due_comes_before_the_validation() -> None:
    """Whoever is killed in a long validation has lost nothing; a new best is saved once more."""
    world = World(values=lambda step: abs(step - 6))
    run(experiment(settings(validate_every=3, save_every=3)), world)
    assert world.without_steps() == [
        "report 3",
        "save 3",
        "validate 3",
        "save 3",
        "report 6",
        "save 6",
        "validate 6",
        "save 6",
        "report 9",
        "save 9",
        "validate 9",
        "save 9",
    ]
    world = World(values=lambda step: step)
    run(experiment(settings(validate_every=3, save_every=3)), world)
    assert world.without_steps()[4:7] == ["report 6", "save 6", "validate 6"], "no new best"


def test_of_equal_scores_the_lower_loss_is_among_the_best() -> None:
    """BLEU is 0.00 for a while, and the loss falls."""
    world = World(values=lambda step: 0.0, losses=lambda step: abs(step - 6))
    progress = run(experiment(settings(validate_every=3, save_every=100)), world)
    assert world.without_steps() == [
        "report 3",
        "validate 3",
        "save 3",
        "report 6",
        "validate 6",
        "save 6",
        "report 9",
        "save 9",
        "validate 9",
        "save 9",
    ]
    assert (progress.best_goodness, progress.best_losses) == ((0.0,), (0.0,))


def test_epochs_end_a_run_too() -> None:
    progress = run(experiment(settings(max_epochs=2)), World())
    assert (progress.step, progress.position) == (4, (2, 0))


def test_the_learning_rate_follows_the_step() -> None:
    training = settings(log_every=1)
    world = World()
    run(experiment(training), world)
    for report in world.reports:
        assert report.learning_rate == learning_rate(report.step, training, d_model=8)


def test_a_report_is_the_mean_over_the_tokens_since_the_last() -> None:
    often, seldom = World(), World()
    one = experiment(settings(log_every=1))
    run(one, often)
    run(experiment(settings(log_every=3)), seldom)
    with experiment(settings()).updates as updates:
        num_tokens = [sum(batch.num_target_tokens for batch in next(updates)) for _ in range(9)]
    for index, report in enumerate(seldom.reports):
        steps = slice(3 * index, 3 * index + 3)
        sums = [r.loss * n for r, n in zip(often.reports, num_tokens, strict=True)][steps]
        assert report.loss == pytest.approx(sum(sums) / sum(num_tokens[steps]), rel=1e-12)
        assert report.objective > report.loss * 0.5
        assert report.gradient_norm == often.reports[3 * index + 2].gradient_norm
        assert report.target_tokens_per_second > 0


def test_the_speed_is_that_of_this_process() -> None:
    """The speed does not count steps that were trained before the resume."""
    one, world, meter = experiment(settings(max_steps=3)), World(), Meter(MACHINE.device)
    meter.num_target_tokens_seen = meter.num_source_tokens_seen = 10**12
    train(one, Progress(), meter, world)
    assert 0 < world.reports[0].target_tokens_per_second < 10**9
    assert 0 < world.reports[0].source_tokens_per_second < 10**9


def test_a_run_that_stops_getting_better_is_ended() -> None:
    world = World(values=lambda step: 5.0)
    progress = run(experiment(settings(max_steps=99, validate_every=2, patience=2)), world)
    assert progress.step == 6, "the first was the best, two more were not better"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("step 3", ["report 3", "save 3"]),
        ("report 3", ["report 3", "save 3"]),
        ("step 4", ["report 3", "save 4"]),
        ("validate 4", ["report 3", "validate 4", "save 4"]),
        ("batch-1 4", ["report 3", "validate 4", "save 4"]),
        ("batch-2 4", ["report 3", "validate 4", "save 4"]),
        ("save 4", ["report 3", "validate 4", "save 4"]),
        ("save 5", ["report 3", "validate 4", "save 4", "save 5"]),
    ],
)
def test_a_request_to_stop_ends_after_one_save(call: str, expected: list[str]) -> None:
    world = World(watch=lambda name, step: f"{name} {step}" == call)
    progress = run(experiment(settings()), world)
    assert world.without_steps() == expected
    assert progress == world.saved[-1][0]


def test_a_validation_that_was_stopped_does_not_count_and_its_other_batches_are_left_out() -> None:
    world = World(watch=lambda name, step: (name, step) == ("batch-1", 4))
    progress = run(experiment(settings()), world)
    assert world.calls[-2:] == ["batch-1 4", "save 4"]
    assert (progress.step, progress.validated_at, progress.best_goodness) == (4, 0, ())


def test_a_callback_that_ends_a_validation_ends_the_training() -> None:
    """Also one that asks only once: the validation must not be left out."""

    class Once(World):
        def should_stop(self) -> bool:
            return False

        def should_stop_now(self) -> bool:
            return self.calls[-1] == "batch-2 4"

    world = Once()
    progress = run(experiment(settings()), world)
    assert world.without_steps() == ["report 3", "validate 4", "save 4"]
    assert (progress.step, progress.validated_at) == (4, 0)


def test_a_limit_of_time_does_not_end_a_validation() -> None:
    """A limit that is shorter than a validation would end each of them, and the run would never go on."""
    world = World(watch=lambda name, step: (name, step) == ("batch-1", 4), is_patient=True)
    progress = run(experiment(settings()), world)
    assert world.calls[-2:] == ["batch-2 4", "save 4"]
    assert (progress.step, progress.validated_at) == (4, 4)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("step 2", ["save 2", "report 3", "validate 4", "save 4", "save 5"]),
        ("report 3", ["report 3", "save 3", "validate 4", "save 4", "save 5"]),
        ("batch-1 4", ["report 3", "validate 4", "save 4", "save 4", "save 5"]),
    ],
)
def test_a_request_to_save_is_obeyed_at_once_and_training_goes_on(call: str, expected: list[str]) -> None:
    """Also between the batches of a validation, which goes on too."""
    plain, world = World(), World(wants_save_after=call)
    whole, other = experiment(settings()), experiment(settings())
    assert run(whole, plain) == run(other, world) == world.saved[-1][0]
    assert world.without_steps()[: len(expected)] == expected
    assert_equal(tensors_of(whole), tensors_of(other))


def test_a_request_before_the_first_step_saves_nothing() -> None:
    world = World(is_stopped=True)
    assert run(experiment(settings()), world) == Progress()
    assert world.calls == []


def resumed(training: TrainingConfig, cut: tuple[str, int]) -> tuple[Experiment, World]:
    """Stop after the call `cut`, save the state as JSON and tensors, and continue in a new experiment."""
    first, world = experiment(training), World(watch=lambda name, step: (name, step) == cut)
    run(first, world)
    progress, meter_state = world.saved[-1]
    progress = Progress.from_json(progress.to_json())
    second = experiment(training, tuple(progress.position))
    second.model.load_state_dict(copy.deepcopy(first.model.state_dict()))
    second.optimizer.restore(first.optimizer.state())
    meter = Meter(MACHINE.device)
    meter.restore(meter_state)
    rest = World()
    train(second, progress, meter, rest)
    rest.calls = world.calls[: -1 if world.calls[-1].startswith("save") else None] + rest.calls
    rest.reports = world.reports + rest.reports
    return second, rest


CLIPPED = settings(clip_norm=0.5)


@cache
def uncut() -> tuple[Experiment, World]:
    """A whole training, and its calls."""
    whole, world = experiment(CLIPPED), World()
    run(whole, world)
    return whole, world


CUTS = [*(("step", step) for step in range(1, 10)), ("batch-1", 4), ("batch-2", 8), ("batch-1", 9)]


@pytest.mark.parametrize("cut", CUTS)
def test_a_run_cut_anywhere_ends_bit_for_bit_alike(cut: tuple[str, int]) -> None:
    """C1, C2: dropout, label smoothing, warm-up, clipping and accumulation are all on."""
    whole, world = uncut()
    other, other_world = resumed(CLIPPED, cut)
    assert_equal(tensors_of(whole), tensors_of(other))
    fields = ("step", "epoch", "loss", "objective", "gradient_norm", "num_skipped")
    for name in fields:
        ours, theirs = ([getattr(r, name) for r in w.reports] for w in (world, other_world))
        assert ours == theirs, name
    assert world.saved[-1][0] == other_world.saved[-1][0]


def test_dropout_is_really_on_in_these_runs() -> None:
    """The negative control: another seed of the steps gives other weights."""
    one, other = experiment(settings()), experiment(settings())
    object.__setattr__(other, "seed", 8)
    run(one, World())
    run(other, World())
    assert not torch.equal(one.model.output.weight, other.model.output.weight)
