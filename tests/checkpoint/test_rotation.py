"""Which checkpoints are kept: the rule itself, and the folder during random sequences of events (A13)."""

import math
import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from transformer_cli.checkpoint.checkpoints import Checkpoints
from transformer_cli.checkpoint.run_folder import Retention, Scored, Snapshot, list_checkpoints, ranking_key
from transformer_cli.config import TrainingConfig
from transformer_cli.process.errors import TfmError

from ..faults import FailingFileSystem
from .snapshots import newest_step, saved, snapshot


@pytest.mark.parametrize(
    ("settings", "num_kept_best", "num_regular"),
    [
        ({}, 1, 0),
        ({"average_last": 5}, 1, 5),
        ({"average_last": 5, "average_of": "best"}, 5, 0),
        ({"average_last": 5, "average_of": "best", "keep_best": 7}, 7, 0),
    ],
)
def test_what_an_average_needs_is_kept(settings: dict[str, Any], num_kept_best: int, num_regular: int) -> None:
    training = TrainingConfig(max_steps=10, batch_tokens=100, save_every=3, **settings)
    assert Retention.of(training) == Retention(
        keep_last=training.keep_last,
        keep_best=num_kept_best,
        metric=training.best_metric,
        num_regular=num_regular,
        save_every=3,
    )


@pytest.mark.parametrize(
    ("retention", "scores", "kept"),
    [
        (Retention(1, 1, "bleu"), [1, 2, 3], {3}),
        (Retention(1, 1, "bleu"), [3, 2, 1], {1, 3}),
        (Retention(2, 1, "bleu"), [3, 2, 1, 0], {1, 3, 4}),
        (Retention(1, 2, "bleu"), [1, 5, 4, 3, 2], {2, 3, 5}),
        (Retention(1, 1, "loss"), [3, 1, 2], {2, 3}),
        (Retention(1, 1, "bleu"), [2, 2, 2, 1], {1, 4}),
        (Retention(1, 1, "bleu"), [None, None, None], {3}),
        (Retention(2, 3, "bleu"), [None, 1, None, None], {2, 3, 4}),
        (Retention(9, 9, "bleu"), [1, 2], {1, 2}),
    ],
)
def test_the_newest_and_the_best_stay(retention: Retention, scores: list[float | None], kept: set[int]) -> None:
    checkpoints = [Scored(step, score) for step, score in enumerate(scores, start=1)]
    assert {checkpoint.step for checkpoint in checkpoints} - retention.superfluous(checkpoints) == kept


def best_first(checkpoints: Sequence[Scored], metric: str) -> list[int]:
    """The steps that have a score, sorted by `ranking_key`."""
    keys = (ranking_key(one, metric) for one in checkpoints)
    return [step for *_, step in sorted(key for key in keys if key is not None)]


def test_among_equal_scores_the_earliest_is_the_best() -> None:
    assert best_first([Scored(3, 2.0), Scored(1, 2.0), Scored(2, 2.0)], "bleu") == [1, 2, 3]
    assert best_first([Scored(3, 2.0), Scored(1, 2.0), Scored(2, 2.0)], "cer") == [1, 2, 3]


def test_among_equal_scores_the_lowest_loss_is_the_best() -> None:
    checkpoints = [Scored(1, 0.0, 5.0), Scored(2, 0.0, 3.0), Scored(3, 0.0, 4.0), Scored(4, 0.0)]
    assert best_first(checkpoints, "bleu") == [2, 3, 1, 4], "one without a loss comes last"
    assert best_first([Scored(1, 9.0, 1.0), Scored(2, 8.0, 2.0)], "bleu") == [1, 2]


def with_loss(step: int, loss: float | None) -> Snapshot:
    plain = snapshot(step)
    validation = {"step": step, "value": 0.0, "loss": loss}
    return replace(plain, state={**plain.state, "validation": validation})


def test_the_loss_in_the_state_decides_which_of_equal_checkpoints_is_kept_and_linked(
    tmp_path: Path,
) -> None:
    """BLEU 0.00 twice: the later checkpoint, with the lower loss, is the better one."""
    checkpoints = Checkpoints(tmp_path, Retention(1, 1, "bleu"))
    for step, loss in ((10, 7.0), (20, 5.0), (30, 6.0), (40, None)):
        checkpoints.save(with_loss(step, loss), 0.0)
    assert checkpoints.best().step == 20  # type: ignore[union-attr]
    assert (tmp_path / "checkpoints/best").readlink() == Path("step-00000020")
    assert {found.step for found in list_checkpoints(tmp_path / "checkpoints").whole} == {20, 40}


def test_the_loss_of_an_earlier_validation_is_not_that_of_a_checkpoint(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, Retention(9, 1, "bleu"))
    checkpoints.save(with_loss(10, 7.0), 0.0)
    stale = with_loss(10, 1.0)
    checkpoints.save(replace(stale, step=20), 0.0)
    assert checkpoints.best().step == 10  # type: ignore[union-attr]


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, None])
def test_a_score_that_is_not_finite_is_never_the_best(tmp_path: Path, score: float | None) -> None:
    checkpoints = Checkpoints(tmp_path, Retention(metric="bleu"))
    checkpoints.save(snapshot(10), 1.0)
    checkpoints.save(snapshot(20), score)
    assert checkpoints.best().step == 10  # type: ignore[union-attr]


def test_another_metric_makes_earlier_scores_void(tmp_path: Path) -> None:
    Checkpoints(tmp_path, Retention(9, 1, "loss")).save(snapshot(10), 0.1)
    checkpoints = Checkpoints(tmp_path, Retention(1, 1, "bleu"))
    checkpoints.save(snapshot(20), 30.0)
    checkpoints.save(snapshot(30), 20.0)
    assert checkpoints.best().step == 20  # type: ignore[union-attr]
    assert {found.step for found in list_checkpoints(tmp_path / "checkpoints").whole} == {20, 30}


def test_checkpoints_of_another_run_are_not_deleted(tmp_path: Path) -> None:
    saved(tmp_path / "other", 5, 6)
    checkpoints = Checkpoints(tmp_path / "run", Retention(1, 1))
    checkpoints.save(snapshot(10))
    for folder in (tmp_path / "other" / "checkpoints").glob("step-*"):
        folder.rename(tmp_path / "run" / "checkpoints" / folder.name)
    checkpoints.save(snapshot(20))
    checkpoints.save(snapshot(30))
    found = {checkpoint.step for checkpoint in list_checkpoints(tmp_path / "run" / "checkpoints").whole}
    assert found == {5, 6, 30}


def test_nothing_is_deleted_for_the_sake_of_a_damaged_checkpoint(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, Retention(9, 1, "bleu"))
    checkpoints.save(snapshot(10), 2.0)
    checkpoints.save(snapshot(20), 3.0)
    path = tmp_path / "checkpoints" / "step-00000020" / "config.yaml"
    path.write_bytes(bytes(path.stat().st_size))
    Checkpoints(tmp_path, Retention(1, 1, "bleu")).save(snapshot(30), 1.0)
    assert Checkpoints(tmp_path).best().step == 10  # type: ignore[union-attr]


scores = st.one_of(st.none(), st.sampled_from([0.0, 1.0, 2.0, 3.0, math.nan, math.inf, -1e300]))


class Lives(RuleBasedStateMachine):
    """A run that saves, fails, is restarted with other settings, and suffers damage."""

    @initialize(
        keep_last=st.integers(1, 3),
        keep_best=st.integers(1, 3),
        metric=st.sampled_from(["loss", "bleu"]),
    )
    def begin(self, keep_last: int, keep_best: int, metric: str) -> None:
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get("PYTEST_DEBUG_TEMPROOT"))
        self.run = Path(self.folder.name)
        self.retention = Retention(keep_last, keep_best, metric)
        self.checkpoints = Checkpoints(self.run, self.retention)
        self.step = 0
        self.scores: dict[int, float | None] = {}
        """Of what was acknowledged and not damaged since."""

    @rule(score=scores)
    def save(self, score: float | None) -> None:
        self.step += 1
        self.checkpoints.save(snapshot(self.step), score)
        self.scores[self.step] = score
        superfluous = self.retention.superfluous(self._scored())
        for step in superfluous:
            del self.scores[step]

    @rule(
        operation=st.sampled_from(["write", "flush", "rename", "remove_file", "any"]),
        number=st.integers(1, 40),
    )
    def fail_to_save(self, operation: str, number: int) -> None:
        self.step += 1
        failing = Checkpoints(self.run, self.retention, fs=FailingFileSystem(operation, number, 5))
        try:
            failing.save(snapshot(self.step), None)
        except TfmError:
            found = {checkpoint.step for checkpoint in list_checkpoints(self.run / "checkpoints").whole}
            self.scores = {step: score for step, score in self.scores.items() if step in found}
            if self.step in found:  # it had its name already when the failure came
                self.scores[self.step] = None
        else:
            self.scores[self.step] = None
            for step in self.retention.superfluous(self._scored()):
                del self.scores[step]

    @precondition(lambda self: len(self.scores) > 1)
    @rule(data=st.data())
    def damage(self, data: st.DataObject) -> None:
        step = data.draw(st.sampled_from(sorted(self.scores)))
        path = self.run / "checkpoints" / f"step-{step:08d}" / "state.json"
        path.write_bytes(path.read_bytes().replace(b"1", b"2").replace(b"step", b"stop"))
        del self.scores[step]
        self.checkpoints = Checkpoints(self.run, self.retention)

    @rule()
    def restart(self) -> None:
        self.checkpoints = Checkpoints(self.run, self.retention)
        self.checkpoints.sweep()

    @invariant()
    def the_newest_is_there(self) -> None:
        if self.scores:
            assert newest_step(self.run) == max(self.scores)

    @invariant()
    def the_best_is_there(self) -> None:
        best = best_first(self._scored(), self.retention.metric)
        found = Checkpoints(self.run).best()
        if best:
            assert found is not None
            assert found.step == best[0]

    def _scored(self) -> list[Scored]:
        return [
            Scored(step, score if score is not None and math.isfinite(score) else None)
            for step, score in self.scores.items()
        ]

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()


TestLives = Lives.TestCase
TestLives.pytestmark = [pytest.mark.long]
TestLives.settings = settings(
    max_examples=40,
    stateful_step_count=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


def with_equal_scores(run: Path) -> Checkpoints:
    """Three checkpoints of one score, of which the first has the smallest loss."""
    checkpoints = Checkpoints(run, Retention(keep_last=2, keep_best=1, metric="bleu"))
    for step, loss in ((10, 1.0), (20, 3.0), (30, 2.0)):
        state = {"step": step, "validation": {"step": step, "loss": loss}}
        checkpoints.save(replace(snapshot(step), state=state), 50.0)
    return checkpoints


def test_a_damaged_state_in_the_best_checkpoint_is_told_and_nothing_is_deleted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoints = with_equal_scores(tmp_path)
    best = checkpoints.best()
    assert best is not None
    assert best.step == 10
    state = best.folder / "state.json"
    state.write_bytes(state.read_bytes().replace(b'"loss": 1.0', b'"loss": 9.0'))
    assert "state.json" in list_checkpoints(tmp_path / "checkpoints").skipped["step-00000010"]
    checkpoints.save(snapshot(40), None)
    checkpoints.save(snapshot(50), None)
    (told,) = (record.getMessage() for record in caplog.records)  # once
    assert "a damaged checkpoint is not counted among those to keep" in told
    assert "step-00000010/state.json" in told
    assert best.folder.exists(), "a person can still examine it"
    again = checkpoints.best()
    assert again is not None
    assert again.step == 30, "of equal score, the one with the smaller loss"
