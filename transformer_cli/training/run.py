"""A whole training run: from a config, or from its last checkpoint, to a trained model in a folder."""

import json
import logging
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from transformer_cli.checkpoint import Checkpoint, Checkpoints, Retention, load_tokenizers
from transformer_cli.checkpoint.run_folder import RUNS, RunFolder
from transformer_cli.config import Config, load_config, to_yaml
from transformer_cli.data.preparation import PreparedData, prepare_data
from transformer_cli.errors import InterruptedBySignal, TryAgainError
from transformer_cli.evaluation.exercises import summary_lines
from transformer_cli.inference import load_translator
from transformer_cli.messages import log_to_file
from transformer_cli.runtime import environment, prepare_machine
from transformer_cli.signals import SignalRequests, signals_as_requests
from transformer_cli.storage import RunLock, replace_file
from transformer_cli.training.alarms import Alarms
from transformer_cli.training.callbacks import Callback, Callbacks
from transformer_cli.training.config_changes import accept_changes
from transformer_cli.training.fitting import require_memory_for_training
from transformer_cli.training.plan import Announcer
from transformer_cli.training.progress import Progress, is_finished, limits_reached
from transformer_cli.training.recorders import Recorder
from transformer_cli.training.session import TrainingSession
from transformer_cli.training.watchdog import Watchdog

logger = logging.getLogger(__name__)

# PyTorch's random numbers and the log belong to the process, so it trains one model at a time.
_one_at_a_time = threading.Lock()


@dataclass(frozen=True, slots=True)
class TrainedRun:
    """What `train` has done."""

    folder: Path
    """The path of runs/NAME: `load_translator(run.folder)` translates with it."""
    step: int
    """The number of updates of the run."""
    was_finished: bool
    """Whether the run was finished already, so that this call trained nothing."""
    limits_reached: tuple[str, ...]
    """The settings that ended the run, such as training.max_steps=1500; none if a callback ended it."""
    example: str
    """A source sentence of the validation split, for trying out the model."""


def train(
    config: Config,
    *,
    callbacks: Callback | Iterable[Callback] = (),
    from_scratch: bool = False,
    accept_data_change: bool = False,
) -> TrainedRun:
    """Train a model, or continue the run of the same name; at the end, save a checkpoint.

    The run is kept in the folder runs/NAME of the current folder, where NAME is `config.name`: config,
    prepared data, log, metrics, event files for TensorBoard, and checkpoints. The first SIGINT (Ctrl-C),
    SIGTERM or SIGHUP saves and ends the training; a second one ends the process at once. SIGUSR1 saves, and the
    training goes on. A process can run only one training at a time, and its current folder must not change meanwhile.

    Args:
        config: from `load_config`.
        callbacks: your own code, called while it trains.
        from_scratch: rename an earlier run's files, and start at step 0.
        accept_data_change: continue although the corpus or its cleaning has changed.

    Raises:
        ConfigError: a setting has changed, so that this would be another experiment.
        DataError: the corpus cannot be used, or has changed.
        TryAgainError: another process trains this run, this process trains another, the disk is full, or
            memory is too small for the model.
        TrainingStoppedError: too many updates in a row had a gradient that is not finite; or the training
            ended, and its loss is not finite or far above that of guessing. Checkpoints were saved.
        InterruptedBySignal: a signal asked to stop; the state is saved.
    """
    callbacks = _checked(callbacks)
    machine = prepare_machine(config.runtime)
    # Before the corpus is read: with any vocabulary, the model is at least this large.
    require_memory_for_training(config.model, (1, 1), machine.device)
    folder, here = RunFolder(RUNS / config.name), Path.cwd()
    folder.require_own_files()
    with _one_training(), RunLock(folder.path), log_to_file(folder.log_file):
        data = _prepared_data(folder, config, from_scratch, accept_data_change)
        replace_file(folder.config_file, to_yaml(config).encode())
        described = environment() | {"device": machine.describe(), "data": dict(data.fingerprint)}
        replace_file(folder.environment_file, json.dumps(described, indent=1).encode())
        session = TrainingSession.open(folder, config, data, machine)
        was_finished = is_finished(session.progress, config.training)
        if not was_finished:
            _train_in(session, folder, callbacks)
        is_done = is_finished(session.progress, config.training)
        if is_done:
            make_translator = partial(load_translator, folder.path)
            for line in summary_lines(config, folder.metrics_file, make_translator):
                logger.info("%s", line)
        if not was_finished:
            how = "finished" if is_done else "stopped by a callback"
            logger.info("%s after %d steps: %s", how, session.progress.step, folder.path)
    return TrainedRun(
        folder=here / folder.path,
        step=session.progress.step,
        was_finished=was_finished,
        limits_reached=tuple(limits_reached(session.progress, config.training)),
        example=data.validation[0].source,
    )


def _checked(callbacks: Callback | Iterable[Callback]) -> tuple[Callback, ...]:
    """Check the callbacks before the work begins, so that a mistake does not end a long training."""
    found = (callbacks,) if isinstance(callbacks, Callback) else tuple(callbacks)
    if wrong := [one for one in found if not isinstance(one, Callback)]:
        raise TypeError(f"callbacks: {wrong[0]!r} is no instance of a subclass of Callback")
    return found


@contextmanager
def _one_training() -> Iterator[None]:
    if not _one_at_a_time.acquire(blocking=False):
        raise TryAgainError(
            "this process is training already; its random numbers serve one training at a time",
            hint="train one run after the other, or each in a process of its own",
        )
    try:
        yield
    finally:
        _one_at_a_time.release()


def _prepared_data(
    folder: RunFolder, config: Config, from_scratch: bool, accept_data_change: bool
) -> PreparedData:
    """The data that the newest checkpoint was trained on, or newly prepared data."""
    checkpoints = Checkpoints(folder.path, Retention.of(config.training))
    checkpoints.sweep()
    if from_scratch:
        place = checkpoints.move_away(along=[path.name for path in folder.records()])
        if place is not None:
            logger.info("the earlier checkpoints are now in %s", place)
    newest = checkpoints.newest_valid()
    if newest is not None and folder.config_file.exists():
        before = load_config(folder.config_file)
        for change in accept_changes(before, config, accept_data_change=accept_data_change):
            logger.info("changed since the run began: %s", change)
    data = prepare_data(
        config,
        folder.data_folder,
        accept_change=accept_data_change,
        has_begun=newest is not None,
        is_finished=newest is not None and is_finished(_progress_of(newest), config.training),
        tokenizers=load_tokenizers(newest) if newest else None,
    )
    if newest is None or accept_data_change:
        for line in data.report.lines():
            logger.info("%s", line, extra={"is_table": True})
    return data


def _progress_of(checkpoint: Checkpoint) -> Progress:
    return Progress.from_json(checkpoint.training_state().part("progress"))


def _train_in(session: TrainingSession, folder: RunFolder, callbacks: Iterable[Callback]) -> None:
    config = session.config
    with signals_as_requests() as request:
        own = Watchdog(config.runtime.stuck_after_seconds), _SignalsObeyed(request)
        alarms = Alarms(session.data.target_tokenizer.vocab_size)
        told = Announcer(config, session.data), Recorder(folder), alarms
        progress = session.run(Callbacks([*own, *callbacks, *told]))
    if request.signal_number is not None and not is_finished(progress, config.training):
        what = f"stopped and saved at step {progress.step}" if progress.step else "stopped before the first step"  # fmt: skip
        raise InterruptedBySignal(request.signal_number, what)
    if is_finished(progress, config.training):
        alarms.require_convergence(progress.step)


@dataclass
class _SignalsObeyed(Callback):
    """Ends the training after the step, or the batch of a validation, in which a signal came; or saves there."""

    requests: SignalRequests

    def should_stop(self) -> bool:
        return self.requests.signal_number is not None

    should_stop_now = should_stop

    def should_save(self) -> bool:
        return self.requests.wants_save

    def on_save(self, step: int, folder: Path) -> None:
        self.requests.wants_save = False
