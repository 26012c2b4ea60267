"""A whole training run: from a config, or from its last checkpoint, to a trained model in a folder."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from transformer_cli.checkpoint.checkpoints import Checkpoints
from transformer_cli.checkpoint.run_folder import RUNS, RunFolder
from transformer_cli.checkpoint.trained_files import TrainedFiles, load_weights
from transformer_cli.config import Config
from transformer_cli.data.sources.given import Given, config_of_given, named_splits, write_given
from transformer_cli.decoding import Translator
from transformer_cli.decoding.loading import build_translator
from transformer_cli.evaluation.metrics import metric_of
from transformer_cli.evaluation.validation import summary_lines
from transformer_cli.process.device import (
    Machine,
    prepare_machine,
    require_cuda_graphs,
    require_training_precision,
)
from transformer_cli.process.errors import (
    ConfigError,
    InterruptedBySignal,
    MissingInputError,
    TryAgainError,
)
from transformer_cli.process.messages import log_to_file
from transformer_cli.process.signals import SignalRequests
from transformer_cli.process.torchrun import Launch, read_launch
from transformer_cli.storage import RunLock
from transformer_cli.training.advice import (
    Alarms,
    Announcer,
    Plan,
    TimeLimit,
    Watchdog,
    limit_of_watchdog,
)
from transformer_cli.training.averaging import average_at_end
from transformer_cli.training.callbacks import Callback, Callbacks, SignalsObeyed, recorders
from transformer_cli.training.initial_weights import (
    require_memory_for_training,
)
from transformer_cli.training.joining import (
    joined,
    place_on_device,
)
from transformer_cli.training.loop import (
    is_finished,
    limits_reached,
)
from transformer_cli.training.opening import open_run, record_run
from transformer_cli.training.process_group import ALONE, Processes
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
    data: Given | None = None,
    languages: tuple[str, str] | None = None,
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
        data: data sets of the library `datasets`, in place of the corpus of the config: a `DatasetDict` with the split
            train, and perhaps validation and test; or one `Dataset` or `IterableDataset`, from which validation
            and test pairs are drawn. Columns: `translation`, or those of the languages, or `source` and `target`, or
            two. The pairs are written to runs/NAME/given, so the run can go on without them.
        languages: of source and target in `data`, such as ("de", "en"); None: those of the config.
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
    # Before the work begins, so that a mistake does not end a long training.
    callbacks = (callbacks,) if isinstance(callbacks, Callback) else tuple(callbacks)
    if wrong := [one for one in callbacks if not isinstance(one, Callback)]:
        raise TypeError(f"callbacks: {wrong[0]!r} is no instance of a subclass of Callback")
    launch = read_launch()
    splits = None if data is None else named_splits(data)
    if languages is not None and splits is None:
        raise TypeError("languages: those of `data`, which is not given")
    if isinstance(languages, str) or (languages is not None and len(languages) != 2):
        raise TypeError(f'languages: {languages!r}; two codes are expected, such as ("de", "en")')
    # Rank 0 decides for all processes, and says why the training ended.
    max_minutes = config.training.max_minutes if launch.rank == 0 else None
    time_limit = None if max_minutes is None else TimeLimit(max_minutes)
    machine = _checked_machine(config, launch)
    # Before the corpus is read: with any vocabulary, the model is at least this large.
    require_memory_for_training(config, (1, 1), machine.device)
    folder, here = RunFolder(Path(runs_folder) / config.name), Path.cwd()
    folder.require_own_files()
    connected = nullcontext(ALONE) if launch.is_alone else joined(launch, machine.device)
    with _one_training(), connected as processes, _writing(folder, processes):
        if splits is not None:
            config = config_of_given(config, splits, folder.given_folder, languages)
            if processes.is_main:
                languages = config.data.source_language, config.data.target_language
                is_begun = Checkpoints(folder.path).newest_valid() is not None
                may_change = from_scratch or accept_data_change or not is_begun
                write_given(splits, languages, folder.given_folder, may_change=may_change)
            processes.any_of(False)  # the others read the files when they are there
        session = open_run(
            folder, config, machine, processes,
            from_scratch=from_scratch, accept_data_change=accept_data_change,
        )  # fmt: skip
        was_finished = is_finished(session.progress, config.training)
        if not was_finished:
            _train_in(session, folder, [*callbacks, *([time_limit] if time_limit else [])])
        reached = limits_reached(session.progress, config.training)
        limits = [f"{name}={value}" for name, value in reached.items()]
        is_ended = is_finished(session.progress, config.training)
        if time_limit is not None and time_limit.should_stop() and not is_ended:
            limits.append(f"training.max_minutes={max_minutes:g}")
        if processes.is_main:
            _end(session, folder, limits, was_finished=was_finished)
    return TrainedRun(
        folder=here / folder.path,
        step=session.progress.step,
        was_finished=was_finished,
        limits_reached=tuple(limits),
        example=session.data.validation[0].source,
    )


def _end(
    session: TrainingSession, folder: RunFolder, limits: Sequence[str], *, was_finished: bool
) -> None:
    is_done = is_finished(session.progress, session.config.training)
    if is_done:
        averages = session.config.training.average_last is not None
        if averages and average_at_end(session) and was_finished:
            record_run(folder, session)

        def best() -> Translator:
            found = session.checkpoints.best() or session.checkpoints.newest_valid()
            assert found is not None, "a run that is done has saved"
            config, tokenizers = session.config, session.data.tokenizers
            model = load_weights(TrainedFiles(config, *tokenizers, found)).model
            return build_translator(model, *tokenizers, config, session.experiment.machine)

        for line in summary_lines(session.config, folder.metrics_file, best):
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
    if config.runtime.cuda_graphs:
        require_cuda_graphs(config.runtime, machine)
    if launch.is_alone and config.runtime.sharding == "none":
        return machine
    return place_on_device(machine, launch, config.runtime)


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
    config, processes = session.config, session.experiment.runner.processes
    with SignalRequests() as request:
        own: list[Callback] = [SignalsObeyed(request)]
        limit = limit_of_watchdog(config.runtime, session.experiment.machine, processes.size)
        if limit is not None:
            own.append(Watchdog(limit))
        alarms = Alarms(session.data.target_tokenizer.vocab_size)
        records: list[Callback] = []
        if processes.is_main:
            # The plan counts the micro-batches of all processes.
            accumulate = session.progress.num_micro_batches or config.training.accumulate
            of_all = config.training.model_copy(update={"accumulate": accumulate})
            planned = config.model_copy(update={"training": of_all})
            order, num_validated = session.experiment.updates.order, len(session.validation_pairs)
            plan_for = partial(Plan.of, planned, session.data, order, num_validated)
            announcer = Announcer(planned, plan_for, session.experiment.machine)
            records = [announcer, *recorders(config, folder)]
        progress = session.run(Callbacks([*own, *callbacks, *records, alarms]))
    received: list[int] = processes.gathered(request.signal_number or 0)
    if any(received) and not is_finished(progress, config.training):
        what = f"stopped and saved at step {progress.step}" if progress.step else "stopped before the first step"  # fmt: skip
        raise InterruptedBySignal(max(received), f"{what}{_who_received(received)}")
    if is_finished(progress, config.training):
        alarms.require_convergence(progress.step)


def _who_received(received: Sequence[int]) -> str:
    """With several processes, the one whose signal ends them; `received` has the number of the signal of each rank, or 0."""
    if len(received) == 1:
        return ""
    number = max(received)
    return f", because rank {received.index(number)} received {signal.Signals(number).name}"
