"""Timed training updates: the loop and the batches of `tfm train`, with wrappers and hooks that measure them."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from transformer_cli.acceleration.accelerate import num_compiled_graphs
from transformer_cli.acceleration.compilation import planned_compilation
from transformer_cli.acceleration.recorded_passes import RecordedPasses
from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.config import Config
from transformer_cli.config.loading import override_settings
from transformer_cli.data.preparation import PreparedData
from transformer_cli.data.updates import Batch, Updates
from transformer_cli.extensions.benchmark.flop import work_of_batch
from transformer_cli.extensions.benchmark.measuring import Observed, Stopwatch, Timed, mark_nothing
from transformer_cli.model import LossSums, Transformer
from transformer_cli.process.device import prepare_machine
from transformer_cli.training.batch_size import with_fitting_batches
from transformer_cli.training.callbacks import Callback, Callbacks
from transformer_cli.training.loop import Progress, run_loop
from transformer_cli.training.process_group import ALONE
from transformer_cli.training.run import TrainingSession, num_steps_of, updates_of
from transformer_cli.training.step import StepReport

PHASES = ("waiting for data", "forward", "output and loss", "backward", "optimizer", "other")
"""The phases of an update, in their order.

"forward" ends with the decoder. "output and loss" has the output layer too, and on a CPU also their gradients. The
optimizer's contains the clipping of the gradient.
"""
DATA, FORWARD, LOSS, BACKWARD, OPTIMIZER, OTHER = PHASES
REPLAY = "replay of CUDA graphs"
PHASES_OF_REPLAYS = (DATA, REPLAY, OPTIMIZER, OTHER)
"""With `runtime.cuda_graphs`: forward and backward pass are started as a whole."""
NEVER = 10**9
MOST_ROUNDS_OF_PREPARATION = 10


@dataclass(slots=True)
class TimedUpdate(Timed):
    """One update: its size and its time."""

    num_batches: int = 0
    num_tokens: int = 0  # of source and target
    num_cells: int = 0  # the same with padding
    num_sentences: int = 0
    largest_batch: int = 0  # positions on its longer side, as training.batch_tokens counts them
    num_halvings: int = 0

    def add(self, batch: Batch, *, num_cells: int | None = None) -> None:
        """Count a batch of this update; `num_cells` are all its positions on both sides, if it is padded further."""
        self.work += work_of_batch(batch)
        self.num_batches += 1
        self.num_tokens += batch.num_source_tokens + batch.num_target_tokens
        own_cells = batch.source_ids.numel() + batch.target_ids.numel()
        self.num_cells += own_cells if num_cells is None else num_cells
        self.num_sentences += len(batch.target_ids)
        self.largest_batch = max(self.largest_batch, batch.num_cells)


class Trainee:
    """A model that is trained for a benchmark: as `tfm train` does it, but nothing is validated or saved.

    Args:
        config: of the experiment; its limits and intervals are not used.
        data: the prepared corpus.
        folder: an empty folder; nothing is written into it.

    Raises:
        ConfigError: the config asks for a device that this machine does not have.
        TryAgainError: memory is too small for the model.
    """

    def __init__(self, config: Config, data: PreparedData, folder: Path) -> None:
        self.machine = prepare_machine(config.runtime)
        self.num_threads = torch.get_num_threads()
        self.cells_of_largest_batch = 0
        endless = {"max_steps": NEVER, "max_epochs": None, "patience": None}
        rare = {"save_every": NEVER, "validate_every": NEVER}
        if config.training.batch_tokens == "auto":
            config = with_fitting_batches(config, data, self.machine)
        updates = updates_of(config, data, Progress(), self.machine, ALONE)
        limits = config.training
        compilation = planned_compilation(
            config, self.machine.device, lambda: num_steps_of(limits, updates)
        )
        training = config.training.model_copy(update=endless | rare)
        self.config = config.model_copy(update={"training": training})
        place = RunFolder(folder)
        self.session = TrainingSession.open(
            place, self.config, data, self.machine, ALONE, compilation=compilation
        )
        self.progress = self.session.progress
        self._data, self._folder = data, folder

    @contextmanager
    def changed(self, overrides: Sequence[str]) -> Iterator["Trainee"]:
        """A model that is trained with other settings, until the end of the block; its shapes are prepared."""
        other = Trainee(override_settings(self.config, overrides), self._data, self._folder)
        try:
            other.prepare_shapes()
            yield other
        finally:
            other.close()

    def prepare_shapes(self) -> None:
        """Train until no batch needs a compilation or a recording any more, because these take long.

        Only if layers or the loss are compiled, or with `runtime.cuda_graphs`.
        """
        if not (self._is_compiled or self.config.runtime.cuda_graphs):
            return
        for _ in range(MOST_ROUNDS_OF_PREPARATION):
            before = self._num_prepared()
            self.train(0.0, at_least=20)
            if self._num_prepared() == before:
                return

    def _num_prepared(self) -> tuple[int, int]:
        """How many functions are compiled, and how many shapes of batches are recorded."""
        recorded = self.session.experiment.worker.recorded
        return (
            num_compiled_graphs() if self._is_compiled else 0,
            0 if recorded is None else recorded.num_recordings,
        )

    @property
    def _is_compiled(self) -> bool:
        return self.session.compilation.layers or self.session.compilation.loss

    def close(self) -> None:
        """Stop the thread that prepares batches."""
        self.session.experiment.updates.__exit__()

    def train(
        self, seconds: float, *, at_least: int = 1, at_most: int | None = None, phases: bool = False
    ) -> list[TimedUpdate]:
        """Train on, from where the last call ended.

        Args:
            seconds: stop after this time.
            at_least: but not before this number of updates.
            at_most: stop after this number in any case.
            phases: whether to measure the phases too, which may slow the updates on a GPU.
        """
        torch.set_num_threads(self.num_threads)
        stopwatch = Stopwatch(self.machine.device)
        mark = stopwatch.mark if phases else mark_nothing
        timed: list[TimedUpdate] = []
        experiment = self.session.experiment
        recorded = experiment.worker.recorded

        def next_updates() -> list[Batch]:
            mark(OTHER)
            batches = next(experiment.updates)
            mark(DATA)
            timed.append(TimedUpdate())
            for batch in batches:
                shape = None if recorded is None else recorded.shape_of(batch)
                cells = None if shape is None else 2 * shape.num_pairs * shape.length
                timed[-1].add(batch, num_cells=cells)
            return batches

        def objective(model: Transformer, batch: Batch) -> LossSums:
            mark(OTHER)
            sums = experiment.objective(model, batch)
            mark(LOSS)
            return sums

        def replayed(batches: Iterable[Batch], *, num_target_tokens: int) -> list[LossSums]:
            assert recorded is not None
            mark(OTHER)
            sums = recorded.sum_gradients(batches, num_target_tokens=num_target_tokens)
            mark(REPLAY)
            return sums

        updates = cast(Updates, Observed(experiment.updates, next_one=next_updates))
        watched = replace(experiment, updates=updates)
        names: tuple[str, ...] = PHASES
        marked: AbstractContextManager[None] = nullcontext()
        if recorded is not None:
            # No hook runs in a replay, and one that runs while a pass is recorded would be recorded too.
            names = PHASES_OF_REPLAYS
            passes = cast(RecordedPasses, Observed(recorded, sum_gradients=replayed))
            watched = replace(watched, worker=replace(experiment.worker, recorded=passes))
            marked = _optimizer_marked(stopwatch) if phases else marked
        elif phases:
            watched = replace(watched, objective=objective)
            marked = _phases_marked(experiment.model, stopwatch)
        with marked, self.session.compiling():
            self.progress = run_loop(
                watched,
                self.progress,
                self.session.meter,
                validate=lambda *_: None,
                save=lambda *_: None,
                callbacks=Callbacks([_Limit(stopwatch, timed, seconds, at_least, at_most)]),
            )
        for update, lap in zip(timed, stopwatch.laps(), strict=True):
            update.phases = {name: lap.get(name, 0.0) for name in names}
            update.seconds = sum(lap.values())
        self.cells_of_largest_batch = max(
            self.cells_of_largest_batch, *(update.largest_batch for update in timed)
        )
        return timed


class _Limit(Callback):
    """Ends each lap with its update, and the training after the given time."""

    def __init__(
        self,
        stopwatch: Stopwatch,
        timed: list[TimedUpdate],
        seconds: float,
        at_least: int,
        at_most: int | None,
    ) -> None:
        self._stopwatch, self._timed = stopwatch, timed
        self._at_least, self._at_most = at_least, at_most
        self._ends_at = time.perf_counter() + seconds
        self._cpu_started_at = time.process_time()

    def on_step(self, step: int, report: StepReport) -> None:
        self._stopwatch.end_lap(OTHER)
        cpu_now = time.process_time()
        self._timed[-1].cpu_seconds = cpu_now - self._cpu_started_at
        self._timed[-1].num_halvings = report.num_halvings
        self._cpu_started_at = cpu_now

    def should_stop(self) -> bool:
        num_done = len(self._timed)
        is_late = time.perf_counter() >= self._ends_at and num_done >= self._at_least
        return is_late or num_done == self._at_most


@contextmanager
def _phases_marked(model: Transformer, stopwatch: Stopwatch) -> Iterator[None]:
    """Mark the phases by hooks of PyTorch; they are removed at the end.

    After the last parameter has its gradient, the backward pass has ended, so each parameter marks it.
    """

    def marks(phase: str) -> Callable[..., None]:
        return lambda *_: stopwatch.mark(phase)

    with ExitStack() as hooks:
        hooks.callback(model.decoder.register_forward_hook(marks(FORWARD)).remove)
        for parameter in model.parameters():
            if parameter.requires_grad:
                handle = parameter.register_post_accumulate_grad_hook(marks(BACKWARD))
                hooks.callback(handle.remove)
        hooks.enter_context(_optimizer_marked(stopwatch))
        yield


@contextmanager
def _optimizer_marked(stopwatch: Stopwatch) -> Iterator[None]:
    hook = register_optimizer_step_post_hook(lambda *_: stopwatch.mark(OPTIMIZER))
    try:
        yield
    finally:
        hook.remove()
