"""A whole training run: from a config, or from its last checkpoint, to a trained model in a folder."""

import json
import logging
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from transformer_cli.acceleration.native_kernels import kernel_level
from transformer_cli.checkpoint import Checkpoint, Checkpoints, tokenizers_of
from transformer_cli.checkpoint.run_folder import CONFIG_FILE, IMPORTED, RUNS, RunFolder
from transformer_cli.config import Config, load_stored_config, to_yaml
from transformer_cli.data.preparation import PreparedData, prepare_data, take_over
from transformer_cli.data.sources.corpus import is_streaming
from transformer_cli.data.streaming import require_shareable
from transformer_cli.decoding.loading import load_translator
from transformer_cli.evaluation.metrics import metric_of
from transformer_cli.evaluation.synthetic_tasks import summary_lines
from transformer_cli.process.device import (
    Machine,
    environment,
    prepare_machine,
    require_cuda_graphs,
    require_training_precision,
    return_freed_memory,
)
from transformer_cli.process.errors import (
    ConfigError,
    InterruptedBySignal,
    MissingInputError,
    TryAgainError,
)
from transformer_cli.process.messages import log_to_file
from transformer_cli.process.signals import SignalRequests, signals_as_requests
from transformer_cli.process.torchrun import Launch, read_launch
from transformer_cli.storage import RunLock, replace_file
from transformer_cli.training.advice import Alarms, Announcer, TimeLimit, Watchdog
from transformer_cli.training.averaging import average_at_end
from transformer_cli.training.batch_size import (
    require_memory_for_training,
    with_fitting_batches,
    with_recorded_batches,
)
from transformer_cli.training.callbacks import Callback, Callbacks, recorders
from transformer_cli.training.config_changes import (
    accept_changes,
    refuse_passed_limits,
    with_recorded_cleaning,
)
from transformer_cli.training.initial_weights import (
    INIT_FROM,
    InitialModel,
    checked_origin,
    load_initial_model,
)
from transformer_cli.training.joining import (
    data_of_main,
    joined,
    place_on_device,
    require_same_settings,
    with_accumulated,
)
from transformer_cli.training.process_group import Processes
from transformer_cli.training.progress import Progress, is_finished, limits_reached
from transformer_cli.training.session import TrainingSession

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
    """The settings that ended the run, such as training.max_steps=1500, or that ended this call only, such as
    training.max_minutes=60; empty if a callback ended it."""
    example: str
    """A source sentence of the validation split, for trying out the model."""


def train(
    config: Config,
    *,
    callbacks: Callback | Iterable[Callback] = (),
    from_scratch: bool = False,
    accept_data_change: bool = False,
    runs_folder: Path = RUNS,
) -> TrainedRun:
    """Train a model, or continue the run of the same name; at the end, save a checkpoint.

    The run is kept in the folder runs/NAME of the current folder, where NAME is `config.name`: config,
    prepared data, log, metrics, event files for TensorBoard, and checkpoints. The first SIGINT (Ctrl-C),
    SIGTERM or SIGHUP saves and ends the training; a second one ends the process at once. SIGUSR1 saves, and the
    training goes on. A process can run only one training at a time, and its current folder must not change meanwhile.

    Several processes of torchrun train one model together; rank 0 writes the run folder, and all call the callbacks.

    Args:
        config: from `load_config`.
        callbacks: your own code, called while it trains.
        from_scratch: rename an earlier run's files, and start at step 0.
        accept_data_change: continue although the corpus or its cleaning has changed.
        runs_folder: another folder instead of runs/; commands find runs there only by their paths.

    Raises:
        ConfigError: a setting has changed, so that this would be another experiment; the precision is for
            translations only; or the device has no CUDA graphs, which the config asks for.
        DataError: the corpus cannot be used, or has changed.
        TryAgainError: this run, or this process, trains already; the disk is full, or memory too small.
        UsageError: a score of `validation.scores` needs a package that is not installed.
        TrainingStoppedError: too many updates in a row had a gradient that is not finite; or the training
            ended, and its loss is not finite or far above that of guessing. Checkpoints were saved.
        InterruptedBySignal: a signal asked to stop; the state is saved.
    """
    if not isinstance(config, Config):
        raise TypeError(
            f"config: {config!r} is no Config; load_config makes one of a file or a name"
        )
    callbacks, launch = _checked(callbacks), read_launch()
    time_limit = TimeLimit(config.training.max_minutes, is_decisive=launch.rank == 0)
    machine = _checked_machine(config, launch)
    # Before the corpus is read: with any vocabulary, the model is at least this large.
    require_memory_for_training(config, (1, 1), machine.device)
    folder, here = RunFolder(runs_folder / config.name), Path.cwd()
    folder.require_own_files()
    with _one_training(), joined(launch, machine.device) as processes, _writing(folder, processes):
        session = open_run(
            folder, config, machine, processes,
            from_scratch=from_scratch, accept_data_change=accept_data_change,
        )  # fmt: skip
        was_finished = is_finished(session.progress, config.training)
        if not was_finished:
            _train_in(session, folder, (*callbacks, time_limit))
        limits = _limits_reached(session, time_limit)
        if processes.is_main:
            _end(session, folder, limits, was_finished=was_finished)
    return TrainedRun(
        folder=here / folder.path,
        step=session.progress.step,
        was_finished=was_finished,
        limits_reached=tuple(limits),
        example=session.data.validation[0].source,
    )


def _limits_reached(session: TrainingSession, time_limit: TimeLimit) -> list[str]:
    training = session.config.training
    limits = limits_reached(session.progress, training)
    if time_limit.is_reached and not is_finished(session.progress, training):
        limits.append(f"training.max_minutes={training.max_minutes:g}")
    return limits


def _end(
    session: TrainingSession, folder: RunFolder, limits: Sequence[str], *, was_finished: bool
) -> None:
    is_done = is_finished(session.progress, session.config.training)
    if is_done:
        if average_at_end(session) and was_finished:
            record_run(folder, session)
        make_translator = partial(load_translator, folder.path)
        for line in summary_lines(session.config, folder.metrics_file, make_translator):
            logger.info("%s", line, extra={"is_no_record": was_finished})
    if not was_finished:
        how = f"stopped by {', '.join(limits) or 'a callback'}"
        if is_done:
            early = [limit for limit in limits if not limit.startswith("training.max_steps")]
            how = f"finished by {', '.join(early)}" if early else "finished"
        step = session.progress.step
        logger.info("%s after %d step%s: %s", how, step, "" if step == 1 else "s", folder.path)


def _checked_machine(config: Config, launch: Launch) -> Machine:
    """The machine of this process; what would fail later is refused now.

    That is a precision that cannot train, CUDA graphs without a GPU, a score whose package is missing.
    """
    require_training_precision(config.runtime)
    for name in config.validation.scores:
        metric_of(name)
    machine = prepare_machine(config.runtime)
    require_cuda_graphs(config.runtime, machine)
    return place_on_device(machine, launch, config.runtime)


def _checked(callbacks: Callback | Iterable[Callback]) -> tuple[Callback, ...]:
    """Check the callbacks before the work begins, so that a mistake does not end a long training."""
    found = (callbacks,) if isinstance(callbacks, Callback) else tuple(callbacks)
    if wrong := [one for one in found if not isinstance(one, Callback)]:
        raise TypeError(f"callbacks: {wrong[0]!r} is no instance of a subclass of Callback")
    return found


@contextmanager
def _writing(folder: RunFolder, processes: Processes) -> Iterator[None]:
    """Rank 0 locks the run folder and writes the log; a new folder of a start that is refused is removed."""
    if not processes.is_main:
        yield
        return
    is_new = not folder.path.exists()
    with RunLock(folder.path, instead="give another name: --set name=..."):
        try:
            with log_to_file(folder.log_file):
                yield
        except (ConfigError, MissingInputError):
            if is_new:
                folder.remove_if_only_logged()
            raise


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


def _train_in(session: TrainingSession, folder: RunFolder, callbacks: Iterable[Callback]) -> None:
    config, processes = session.config, session.experiment.worker.processes
    with signals_as_requests() as request:
        own = Watchdog(config.runtime.stuck_after_seconds), _SignalsObeyed(request)
        alarms = Alarms(session.data.target_tokenizer.vocab_size)
        planned = with_accumulated(config, session.progress)
        records = (
            [
                Announcer(planned, session.data, session.experiment.machine),
                *recorders(config, folder),
            ]
            if processes.is_main
            else []
        )
        progress = session.run(Callbacks([*own, *callbacks, *records, alarms]))
    received: list[int] = processes.gathered(request.signal_number or 0)
    if any(received) and not is_finished(progress, config.training):
        what = f"stopped and saved at step {progress.step}" if progress.step else "stopped before the first step"  # fmt: skip
        raise InterruptedBySignal(max(received), f"{what}{_who_received(received)}")
    if is_finished(progress, config.training):
        alarms.require_convergence(progress.step)


def _who_received(received: Sequence[int]) -> str:
    """With several processes, one that received the signal by which they end; nothing with one process.

    Args:
        received: the number of the signal of each rank, or 0.
    """
    if len(received) == 1:
        return ""
    number = max(received)
    return f", because rank {received.index(number)} received {signal.Signals(number).name}"


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


# Opening a run: its newest checkpoint or its initial weights, its data, and its records on disk.


def open_run(
    folder: RunFolder,
    config: Config,
    machine: Machine,
    processes: Processes,
    *,
    from_scratch: bool,
    accept_data_change: bool,
) -> TrainingSession:
    """The session of a run that starts or goes on; rank 0 writes the files of the run.

    Raises:
        ConfigError: a setting has changed, so that this would be another experiment; or the processes have
            different settings.
        DataError: the corpus cannot be used, or has changed.
    """
    require_same_settings(config, processes, from_scratch=from_scratch)
    # Before the earlier checkpoints are moved away: without the other run, this one cannot start again.
    initial = load_initial_model(config, folder.path) if from_scratch else None
    if processes.is_main:
        Checkpoints(folder.path).sweep()
        if from_scratch:
            _set_aside(folder)
    try:
        return _opened(folder, config, machine, processes, initial, accept_data_change)
    except BaseException:
        if processes.is_main and from_scratch:  # the earlier run is put back
            Checkpoints(folder.path).sweep()
        raise


def _opened(
    folder: RunFolder,
    config: Config,
    machine: Machine,
    processes: Processes,
    initial: InitialModel | None,
    accept_data_change: bool,
) -> TrainingSession:
    newest = Checkpoints(folder.path).newest_valid() if processes.is_main else None
    if newest is not None and IMPORTED in newest.state():
        raise _refusal_to_continue(folder, config)
    [has_begun] = processes.any_of(newest is not None)
    if has_begun:
        config = with_recorded_cleaning(config, _recorded_config(folder, newest))
    trains_on = newest is None or not is_finished(_progress_of(newest), config.training)
    if has_begun and folder.config_file.exists():
        before = load_stored_config(folder.config_file)
        config = with_recorded_batches(config, before)
        if newest is not None:
            changes = accept_changes(
                before, config, step=newest.step, accept_data_change=accept_data_change
            )
            refuse_passed_limits(before, config, _progress_of(newest))
            what = "changed since the last command" if trains_on else "not recorded, because the run is finished"  # fmt: skip
            for change in changes:
                logger.info("%s: %s", what, change, extra={"is_no_record": not trains_on})
    if not has_begun:
        if is_streaming(config.data):  # before the corpus is read
            num_batches = config.training.accumulate * processes.size
            require_shareable(config.data, num_batches, processes.size)
        initial = initial or load_initial_model(config, folder.path)
    origin = initial.origin if initial else checked_origin(newest)
    prepare = partial(_prepared_data, folder, config, newest, initial, accept_data_change)
    data = data_of_main(prepare, config, folder, processes)
    return_freed_memory()
    config = with_fitting_batches(config, data, machine, processes)
    session = TrainingSession.open(folder, config, data, machine, processes, initial=initial)
    session.origin = origin
    # Nothing was refused; but a command that trains nothing leaves the records of the updates as they are.
    if processes.is_main and (trains_on or not folder.config_file.exists()):
        record_run(folder, session)
    return session


def _recorded_config(folder: RunFolder, newest: Checkpoint | None) -> Config:
    """The config of a run that has a checkpoint; from the checkpoint if the file of the run was lost."""
    if folder.config_file.exists():
        return load_stored_config(folder.config_file)
    newest = (
        newest or Checkpoints(folder.path).newest_valid()
    )  # None: the main process looked for it
    assert newest is not None
    return load_stored_config(newest.folder / CONFIG_FILE)


def record_run(folder: RunFolder, session: TrainingSession) -> None:
    """Write the config and the environment of a run, which the main process does when its model changes."""
    machine, size = session.experiment.machine, session.experiment.worker.processes.size
    _describe(folder, session.data, machine, size, session.origin)
    # Last: a run has started when it has a config.
    replace_file(folder.config_file, to_yaml(session.config).encode())


def _refusal_to_continue(folder: RunFolder, config: Config) -> ConfigError:
    changes = f"--set name={config.name}-tuned --set training.init_from={config.name}"
    return ConfigError(
        f"{folder.path}: this run was imported, so its training cannot go on",
        hint=f"fine-tune it in a new run: tfm train --config {folder.config_file} {changes}",
    )


def _set_aside(folder: RunFolder) -> None:
    """Rename the files of an earlier run, so that a new one can start."""
    place = Checkpoints(folder.path).move_away(along=[path.name for path in folder.records()])
    if place is not None:
        logger.info("the earlier checkpoints are now in %s", place)


def _prepared_data(
    folder: RunFolder,
    config: Config,
    newest: Checkpoint | None,
    initial: InitialModel | None,
    accept_data_change: bool,
) -> PreparedData:
    """The data that the newest checkpoint was trained on, or newly prepared data."""
    tokenizers = initial.tokenizers if initial else None
    if newest is None:
        take_over(config, folder.data_folder, folder.path.parent)
    data = prepare_data(
        config,
        folder.data_folder,
        accept_change=accept_data_change,
        has_begun=newest is not None,
        is_finished=newest is not None and is_finished(_progress_of(newest), config.training),
        tokenizers=tokenizers_of(newest) if newest else tokenizers,
    )
    if newest is None or accept_data_change:
        for line in data.report.lines():
            logger.info("%s", line, extra={"is_table": True})
    return data


def _progress_of(checkpoint: Checkpoint) -> Progress:
    return Progress.from_json(checkpoint.training_state().part("progress"))


def _describe(
    folder: RunFolder,
    data: PreparedData,
    machine: Machine,
    num_processes: int,
    origin: Mapping[str, Any],
) -> None:
    described = environment(kernel_level()) | {
        "device": machine.describe(),
        "processes": num_processes,
        "data": dict(data.fingerprint),
    }
    described |= {INIT_FROM: dict(origin)} if origin else {}
    replace_file(folder.environment_file, json.dumps(described, indent=1).encode())
