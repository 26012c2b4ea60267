"""The loop: its cadences, how it ends, and that it goes on exactly where it stopped."""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from transformer_cli.config import ModelConfig, TrainingConfig
from transformer_cli.data.batching import Budget, PairList, TokenPair, Updates
from transformer_cli.data.order import EpochOrder
from transformer_cli.errors import TrainingStoppedError
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import Machine
from transformer_cli.training.loop import Experiment, Hooks, TrainingReport, train
from transformer_cli.training.optimizer import (
    build_optimizer,
    learning_rate,
    optimizer_tensors,
    restore_optimizer,
)
from transformer_cli.training.progress import Meter, Progress

MACHINE = Machine(torch.device("cpu"), torch.float32)
MODEL = ModelConfig(d_model=8, num_heads=2, d_ff=16, encoder_layers=1, decoder_layers=1)
EOS = 3
# 11 pairs of different lengths: 4 batches of 3 and so 2 updates of 2 batches per epoch.
PAIRS = [TokenPair([4 + i % 5, EOS], [*[4 + i % 3] * (1 + i % 4), EOS]) for i in range(11)]


def settings(**changes: Any) -> TrainingConfig:
    defaults: dict[str, Any] = {
        "max_steps": 9, "batch_sentences": 3, "accumulate": 2, "learning_rate": 1e-2,
        "warmup_steps": 4, "log_every": 3, "validate_every": 4, "save_every": 5, "best_metric": "loss",
    }  # fmt: skip
    return TrainingConfig(**defaults | changes)


def experiment(
    training: TrainingConfig, position: tuple[int, int] = (0, 0), pairs: list[TokenPair] = PAIRS
) -> Experiment:
    torch.manual_seed(0)
    model = Transformer(MODEL, 9, 9)
    known = PairList(pairs)
    budget = Budget(sentences=training.batch_sentences)
    order = EpochOrder(known.lengths, known.corpus_sizes, [1.0], budget, 7)
    updates = Updates(known, order, accumulate=training.accumulate, position=position)
    return Experiment(model, build_optimizer(model, training), updates, training, MACHINE, 7)


@dataclass
class World:
    """Takes the hooks' calls and writes them down; where `watch` says so, it asks to stop."""

    values: Callable[[int], float] = lambda step: 10.0 - step
    watch: Callable[[str, int], bool | None] = lambda call, step: False
    calls: list[str] = field(default_factory=list)
    reports: list[TrainingReport] = field(default_factory=list)
    saved: list[tuple[Progress, dict[str, float]]] = field(default_factory=list)
    is_stopped: bool = False

    def note(self, call: str, step: int) -> None:
        self.calls.append(f"{call} {step}")
        self.is_stopped |= bool(self.watch(call, step))

    def hooks(self) -> Hooks:
        def report(figures: TrainingReport) -> None:
            self.reports.append(figures)
            self.note("report", figures.step)

        def validate(step: int) -> float:
            self.note("validate", step)
            return self.values(step)

        def save(progress: Progress, meter: Meter) -> None:
            self.saved.append((progress, meter.to_json()))
            self.note("save", progress.step)

        def tick(step: int) -> None:
            self.note("tick", step)

        return Hooks(tick, report, validate, save, lambda: self.is_stopped)

    def without_ticks(self) -> list[str]:
        return [call for call in self.calls if not call.startswith("tick")]


def run(one: Experiment, world: World, progress: Progress | None = None) -> Progress:
    with one.updates:
        return train(one, progress or Progress(), Meter(MACHINE.device), world.hooks())


def tensors_of(one: Experiment) -> dict[str, torch.Tensor]:
    moments = optimizer_tensors(one.model, one.optimizer)
    return {name: value.clone() for name, value in (one.model.state_dict() | moments).items()}


def assert_equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    assert [name for name, value in one.items() if not torch.equal(value, other[name])] == []


def test_each_cadence_is_kept_and_everything_happens_once_more_at_the_end() -> None:
    world = World(values=lambda step: step)  # it gets worse, so that only the first is the best
    progress = run(experiment(settings()), world)
    assert progress.step == 9
    assert world.without_ticks() == [
        "report 3", "validate 4", "save 4", "save 5", "report 6", "validate 8", "report 9",
        "validate 9", "save 9",
    ]  # fmt: skip
    assert [call for call in world.calls if call.startswith("tick")] == [
        f"tick {step}" for step in range(1, 10)
    ]


def test_what_is_saved_knows_of_the_validation_before_it() -> None:
    world = World()
    run(experiment(settings()), world)
    assert [(p.step, p.validated_at) for p, _ in world.saved] == [(4, 4), (5, 4), (8, 8), (9, 9)]
    assert world.saved[-1][0].best_goodness == (-1.0,), "of a loss, the lowest is the best"


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


def test_a_run_that_stops_getting_better_is_ended() -> None:
    world = World(values=lambda step: 5.0)
    progress = run(experiment(settings(max_steps=99, validate_every=2, patience=2)), world)
    assert progress.step == 6, "the first was the best, two more were not better"


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


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("tick 3", ["report 3", "save 3"]),
        ("report 3", ["report 3", "save 3"]),
        ("tick 4", ["report 3", "save 4"]),
        ("validate 4", ["report 3", "validate 4", "save 4"]),
        ("save 4", ["report 3", "validate 4", "save 4"]),
        ("save 5", ["report 3", "validate 4", "save 4", "save 5"]),
    ],
)
def test_a_request_to_stop_ends_after_one_save(call: str, expected: list[str]) -> None:
    world = World(watch=lambda name, step: f"{name} {step}" == call)
    progress = run(experiment(settings()), world)
    assert world.without_ticks() == expected
    assert progress == world.saved[-1][0]


def test_a_request_before_the_first_step_saves_nothing() -> None:
    world = World(is_stopped=True)
    assert run(experiment(settings()), world) == Progress()
    assert world.calls == []


def resumed(training: TrainingConfig, cut: int) -> tuple[Experiment, World]:
    """Stopped after step `cut`, put on paper, and continued by another experiment."""
    first, world = (
        experiment(training),
        World(watch=lambda name, step: (name, step) == ("tick", cut)),
    )
    run(first, world)
    progress, meter_state = world.saved[-1]
    progress = Progress.from_json(progress.to_json())
    second = experiment(training, tuple(progress.position))
    second.model.load_state_dict(copy.deepcopy(first.model.state_dict()))
    restore_optimizer(
        second.model, second.optimizer, optimizer_tensors(first.model, first.optimizer)
    )
    meter = Meter(MACHINE.device)
    meter.restore(meter_state)
    rest = World()
    with second.updates:
        train(second, progress, meter, rest.hooks())
    rest.calls = world.calls[: -1 if world.calls[-1].startswith("save") else None] + rest.calls
    rest.reports = world.reports + rest.reports
    return second, rest


@pytest.mark.parametrize("cut", range(1, 9))
def test_a_run_cut_after_any_step_ends_bit_for_bit_alike(cut: int) -> None:
    """C1, C2: dropout, label smoothing, warm-up, clipping and accumulation are all on."""
    training = settings(clip_norm=0.5)
    whole, world = experiment(training), World()
    run(whole, world)
    other, other_world = resumed(training, cut)
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
    with pytest.raises(
        TrainingStoppedError, match=r"step 7: the last 3 updates"
    ) as stopped:
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
