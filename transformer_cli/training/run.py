"""A whole training run: from a config, or from its last checkpoint, to a trained model in a folder.

`train` prepares a `TrainingSession` (`prepare_session`): the data, and a model with its newest checkpoint or its initial weights.
The session trains in the loop (loop.py), which calls its validations and saves.
"""

from __future__ import annotations

import json
import logging
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from transformer_cli.acceleration import accelerate
from transformer_cli.acceleration.accelerate import (
    Compilation,
    code_was_changed,
    compilation_errors_explained,
    compile_layers,
    differs_from_plain,
    planned_compilation,
)
from transformer_cli.acceleration.native_kernels import kernel_level
from transformer_cli.acceleration.recorded_passes import are_recorded
from transformer_cli.checkpoint.checkpoints import Checkpoints, portable_files
from transformer_cli.checkpoint.limits import Counts, is_finished, limits_reached
from transformer_cli.checkpoint.run_folder import IMPORTED, RUNS, Checkpoint, Retention, RunFolder, Snapshot, goodness
from transformer_cli.checkpoint.trained_files import seen_lengths_of, tokenizers_of
from transformer_cli.config import Config, SequencesData, to_yaml
from transformer_cli.data.pairs import SentencePair
from transformer_cli.data.preparation import (
    PreparedData,
    fingerprint_digest,
    lengths_seen_in,
    prepare_data,
    validation_pairs,
)
from transformer_cli.data.sources.corpus import is_streaming
from transformer_cli.data.sources.given import Given, config_of_given, named_splits, write_given
from transformer_cli.data.streaming import require_shareable
from transformer_cli.data.updates import Share, num_steps_of, open_updates
from transformer_cli.decoding import Translator
from transformer_cli.decoding.engine import Engine
from transformer_cli.decoding.loading import build_translator
from transformer_cli.decoding.pytorch_engine import PyTorchEngine
from transformer_cli.evaluation import validate
from transformer_cli.evaluation.metrics import metric_of
from transformer_cli.evaluation.validation import summary_lines
from transformer_cli.model import Transformer
from transformer_cli.process import plain_form
from transformer_cli.process.device import (
    Machine,
    environment,
    prepare_machine,
    require_cuda_graphs,
    require_training_precision,
    return_freed_memory,
)
from transformer_cli.process.errors import ConfigError, DataError, InterruptedBySignal, MissingInputError, TryAgainError
from transformer_cli.process.messages import for_shell, log_to_file
from transformer_cli.process.signals import SignalRequests
from transformer_cli.process.torchrun import Launch, read_launch
from transformer_cli.storage import KnownFolder, RunLock, remove, replace_file
from transformer_cli.text.seen_words import read_seen_words, write_seen_words
from transformer_cli.text.sentences import SEEN_LENGTHS, UNKNOWN_LENGTHS, SeenLengths
from transformer_cli.training.advice import (
    Alarms,
    Announcer,
    Plan,
    TimeLimit,
    Watchdog,
    first_recorded_loss,
    limit_of_watchdog,
)
from transformer_cli.training.averaging import average_at_end
from transformer_cli.training.batch_size import with_fitting_batches
from transformer_cli.training.callbacks import Callback, Callbacks, Meter, SignalsObeyed, recorders
from transformer_cli.training.config_changes import accepted_config
from transformer_cli.training.initial_weights import (
    INIT_FROM,
    InitialModel,
    checked_origin,
    load_initial_model,
    new_model,
    require_memory_for_training,
)
from transformer_cli.training.joining import (
    SharedEngine,
    StoppedError,
    data_of_main,
    joined_processes,
    place_on_device,
    require_same_settings,
)
from transformer_cli.training.loop import (
    Experiment,
    Progress,
    Validated,
    build_objective,
    build_runner,
    checked_validation,
    micro_batches_of_an_update,
    run_loop,
)
from transformer_cli.training.optimizers import (
    GRADIENT_SCALE,
    MovingAverage,
    Optimizer,
    restore_tensors,
    tensors_to_save,
)
from transformer_cli.training.process_group import ALONE, Processes, gathered, shard, whole_copy

logger = logging.getLogger(__name__)

# PyTorch's random numbers and the log belong to the process, so it trains one model at a time.
_one_at_a_time = threading.Lock()


CODE_WAS_CHANGED = (
    "the code in transformer_cli/model was changed: the faster forms of it, which know nothing of the change, compute other "
    f"numbers. Parts of the training and of later translations use them; start each command with {plain_form.SWITCH}=1, and "
    "all uses the changed code"
)


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
    num_validation_pairs: int


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
    callbacks, splits = _checked_arguments(config, data, languages, callbacks)
    launch = read_launch()
    # Rank 0 decides for all processes, and says why the training ended. The time starts here.
    max_minutes = config.training.max_minutes if launch.rank == 0 else None
    time_limit = None if max_minutes is None else TimeLimit(max_minutes)
    machine = checked_machine(config, launch)
    folder, here = RunFolder(Path(runs_folder) / config.name), Path.cwd()
    if folder.path.exists():
        folder.require_own_files()
    connected = nullcontext(ALONE) if launch.is_alone else joined_processes(launch, machine.device)
    with _one_training(), connected as processes, _writing(folder, processes):
        if splits is not None:
            may_change = from_scratch or accept_data_change
            config = _with_given(config, splits, languages, folder, processes, may_change)
        session = prepare_session(
            folder, config, machine, processes, from_scratch=from_scratch, accept_data_change=accept_data_change
        )
        was_finished = is_finished(session.progress, config.training)
        if not was_finished:
            _train_session(session, folder, [*callbacks, *([time_limit] if time_limit else [])])
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
        num_validation_pairs=len(session.data.validation),
    )


# The steps of `train`, in its order; then what prepares the session, and the session itself.


def _checked_arguments(
    config: Config, data: Given | None, languages: tuple[str, str] | None, callbacks: Callback | Iterable[Callback]
) -> tuple[list[Callback], dict[str, Given] | None]:
    """The callbacks, and the splits of the data; checked before the work begins, so that a mistake does not end a long training."""
    if not isinstance(config, Config):
        raise TypeError(f"config: {config!r} is no Config; load_config makes one of a file or a name")
    checked = [callbacks] if isinstance(callbacks, Callback) else list(callbacks)
    if wrong := [one for one in checked if not isinstance(one, Callback)]:
        raise TypeError(f"callbacks: {wrong[0]!r} is no instance of a subclass of Callback")
    splits = None if data is None else named_splits(data)
    if languages is not None and splits is None:
        raise TypeError("languages: those of `data`, which is not given")
    if isinstance(languages, str) or (languages is not None and len(languages) != 2):
        raise TypeError(f'languages: {languages!r}; two codes are expected, such as ("de", "en")')
    return checked, splits


def checked_machine(config: Config, launch: Launch) -> Machine:
    """The machine of this process; what would fail later is refused now.

    That is a precision that cannot train, CUDA graphs without a GPU, a score whose package is missing, too little memory.
    """
    require_training_precision(config.runtime)
    for name in config.validation.scores:
        metric_of(name)
    # Before `training.batch_tokens: auto` becomes a number, and before CUDA starts.
    may_record = torch.version.cuda is not None or config.runtime.cuda_graphs is True
    machine = prepare_machine(config.runtime, records=may_record and are_recorded(config, torch.device("cuda")))
    require_cuda_graphs(config.runtime, machine)
    if not (launch.is_alone and config.runtime.sharding == "none"):
        machine = place_on_device(machine, launch, config.runtime)
    # Before the corpus is read: with any vocabulary, the model is at least this large.
    require_memory_for_training(config, (1, 1), machine.device, launch)
    return machine


def _with_given(
    config: Config,
    splits: dict[str, Given],
    languages: tuple[str, str] | None,
    folder: RunFolder,
    processes: Processes,
    may_change: bool,
) -> Config:
    """The config that reads the data sets of the caller, which the main process writes into the run folder."""
    config = config_of_given(config, splits, folder.given_folder, languages)
    if processes.is_main:
        languages = config.data.source_language, config.data.target_language
        may_change |= Checkpoints(folder.path).newest_valid() is None
        write_given(splits, languages, folder.given_folder, may_change=may_change)
    processes.any_of(False)  # the others read the files when they are there
    return config


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
        except (ConfigError, DataError, MissingInputError):
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


def _train_session(session: TrainingSession, folder: RunFolder, callbacks: Iterable[Callback]) -> None:
    """Train until the end or a request to stop, with the callbacks of the caller and those of every training; raises as `train`."""
    config, processes = session.config, session.experiment.runner.processes
    with SignalRequests() as request:
        own: list[Callback] = [SignalsObeyed(request)]
        limit = limit_of_watchdog(config.runtime, session.experiment.machine, processes.size)
        if limit is not None:
            own.append(Watchdog(limit))
        goes_on = session.progress.step > 0
        began_at = processes.from_main(lambda: first_recorded_loss(folder)) if goes_on else None
        alarms = Alarms.of(config, session.data, first_loss=began_at)
        records: list[Callback] = []
        if processes.is_main:
            # The plan counts the micro-batches of all processes.
            accumulate = session.progress.num_micro_batches or config.training.accumulate
            training_of_all = config.training.model_copy(update={"accumulate": accumulate})
            planned = config.model_copy(update={"training": training_of_all})
            order, num_validated = session.experiment.updates.producer.order, len(session.validation_pairs)
            plan_for = partial(Plan.of, planned, session.data, order, num_validated)
            announcer = Announcer(planned, plan_for, session.experiment.machine)
            records = [announcer, *recorders(config, folder)]
        progress = session.run(Callbacks([*own, *callbacks, *records, alarms]))
    received: list[int] = processes.gathered(request.signal_number or 0)
    if any(received) and not is_finished(progress, config.training):
        what = f"stopped and saved at step {progress.step}" if progress.step else "stopped before the first step"
        raise InterruptedBySignal(max(received), f"{what}{who_received(received)}")
    if is_finished(progress, config.training):
        alarms.require_convergence(progress.step)


def who_received(received: Sequence[int]) -> str:
    """With several processes, the one whose signal ends them; `received` has the number of the signal of each rank, or 0."""
    if len(received) == 1:
        return ""
    number = max(received)
    return f", because rank {received.index(number)} received {signal.Signals(number).name}"


def _end(session: TrainingSession, folder: RunFolder, limits: Sequence[str], *, was_finished: bool) -> None:
    """Average the checkpoints of a run that is done, say how good it is, and say why the training has ended."""
    config, tokenizers, translator = session.config, session.data.tokenizers, None
    is_done = is_finished(session.progress, config.training)
    averages = config.training.average_last is not None
    if is_done:
        if averages and average_at_end(session) and was_finished:
            record_run(folder, session)
        if isinstance(config.data, SequencesData):
            best = session.checkpoints.best() or session.checkpoints.newest_valid()
            assert best is not None, "a run that is done has saved"
            model = new_model(config, tokenizers)
            model.load_state_dict(best.model(model.state_dict()))
            machine = session.experiment.machine
            translator = build_translator(model.eval(), *tokenizers, config, machine)
        for line in summary_lines(config, folder.metrics_file, translator):
            logger.info("%s", line, extra={"is_no_record": was_finished})
    if not was_finished:
        how = f"stopped by {', '.join(limits) or 'a callback'}"
        if is_done:
            early = [limit for limit in limits if not limit.startswith("training.max_steps")]
            how = f"finished by {', '.join(early)}" if early else "finished"
        step = session.progress.step
        best = session.checkpoints.best() if is_done and not averages else None
        which = ""
        if best is not None and best.step < step:
            which = f"; tfm translate uses step {best.step}, the best one"
        steps = f"{step} step{'' if step == 1 else 's'}"
        logger.info("%s after %s: %s%s", how, steps, folder.path, which)


def prepare_session(
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
    if not processes.is_alone:
        require_same_settings(config, processes, from_scratch=from_scratch)
    # Before the earlier checkpoints are moved away: without the other run, this one cannot start again.
    initial = load_initial_model(config, folder.path) if from_scratch else None
    if processes.is_main and not folder.is_only_logged():
        Checkpoints(folder.path).sweep()
        if from_scratch:
            along = [path.name for path in folder.records()]
            if (moved_to := Checkpoints(folder.path).move_away(along)) is not None:
                logger.info("the earlier checkpoints are now in %s", moved_to)
    try:
        return _session_with_data(folder, config, machine, processes, initial, accept_data_change)
    except BaseException:
        if processes.is_main and from_scratch:  # the earlier run is put back
            Checkpoints(folder.path).sweep()
        raise


def _session_with_data(
    folder: RunFolder,
    config: Config,
    machine: Machine,
    processes: Processes,
    initial: InitialModel | None,
    accept_data_change: bool,
) -> TrainingSession:
    """The session of `prepare_session`, after an earlier run was moved away: settings compared, data prepared, records written."""
    newest = Checkpoints(folder.path).newest_valid() if processes.is_main else None
    if newest is not None and IMPORTED in newest.state():
        changes = f"--set name={config.name}-tuned --set training.init_from={config.name}"
        raise ConfigError(
            f"{folder.path}: this run was imported, so its training cannot go on",
            hint=f"fine-tune it in a new run: tfm train --config {for_shell(folder.config_file)} {changes}",
        )
    [has_begun] = processes.any_of(newest is not None)
    if has_begun:
        config = accepted_config(folder, config, newest, accept_data_change=accept_data_change)
    else:
        if is_streaming(config.data):  # before the corpus is read
            num_batches = config.training.accumulate * processes.size
            require_shareable(config.data, num_batches, processes.size)
        if initial is None and config.training.init_from is not None:
            initial = load_initial_model(config, folder.path)
    prepare = partial(_prepared_data, folder, config, newest, initial, accept_data_change)
    data = prepare() if processes.is_alone else data_of_main(prepare, config, folder, processes)
    return_freed_memory()
    if config.training.batch_tokens == "auto":
        config = with_fitting_batches(config, data, machine, processes)
    session = build_session(folder, config, data, machine, processes, initial=initial, newest=newest)
    # Nothing was refused; but a command that trains nothing leaves the records of the updates as they are.
    trains_on = not is_finished(session.progress, config.training)
    if processes.is_main and (trains_on or not folder.config_file.exists()):
        record_run(folder, session)
        _record_seen_words(folder, data, newest, initial)
    return session


def record_run(folder: RunFolder, session: TrainingSession) -> None:
    """Write the config and the environment of a run, which the main process does when its model changes."""
    described = environment(kernel_level()) | {
        "device": session.experiment.machine.describe(),
        "processes": session.experiment.runner.processes.size,
        "data": dict(session.data.fingerprint),
    }
    described |= {INIT_FROM: dict(session.origin)} if session.origin else {}
    replace_file(folder.environment_file, json.dumps(described, indent=1).encode())
    # Last: a run has started when it has a config.
    replace_file(folder.config_file, to_yaml(session.config).encode())


def _record_seen_words(
    folder: RunFolder, data: PreparedData, newest: Checkpoint | None, initial: InitialModel | None
) -> None:
    """Write which words the model sees in its training; no record if those of its updates until now are not known."""
    words, earlier = data.seen_words, None
    if newest is not None:
        # Without a record, an earlier version has trained this run, perhaps on other data than those of now.
        earlier = read_seen_words(folder.seen_words_file)
    elif initial is not None and (other := initial.trained.run) is not None:
        earlier = read_seen_words(other.seen_words_file)
    has_begun = newest is not None or initial is not None
    if words is not None and (earlier is not None or not has_begun):
        write_seen_words(folder.seen_words_file, words if earlier is None else words.joined(earlier))
    elif (newest is None or is_streaming(data.config.data)) and folder.seen_words_file.exists():
        # What lies there tells of other data: of a start without a checkpoint, or of those before the stream.
        remove([folder.seen_words_file])


def _prepared_data(
    folder: RunFolder, config: Config, newest: Checkpoint | None, initial: InitialModel | None, accept_data_change: bool
) -> PreparedData:
    """The data that the newest checkpoint was trained on, or newly prepared data."""
    tokenizers = tokenizers_of(newest) if newest else initial.trained.tokenizers if initial else None
    progress = None if newest is None else newest.training_state().part("progress")
    data = prepare_data(
        config,
        folder.data_folder,
        accept_change=accept_data_change,
        has_begun=newest is not None,
        is_finished=progress is not None and is_finished(Counts.of(progress), config.training),
        tokenizers=tokenizers,
        trained_on=folder.data_of_training() if newest else None,
        digest_of_training=newest.manifest.data_fingerprint if newest else "",
        runs=folder.path.parent if newest is None else None,
    )
    if newest is None or accept_data_change:
        for line in data.report.lines():
            logger.info("%s", line, extra={"is_table": True})
    return data


def build_session(
    folder: RunFolder,
    config: Config,
    data: PreparedData,
    machine: Machine,
    processes: Processes,
    *,
    initial: InitialModel | None = None,
    newest: Checkpoint | None = None,
) -> TrainingSession:
    """A session for data that are prepared: with random weights, those of `initial`, or those of the newest valid checkpoint.

    Raises:
        ConfigError: the processes cannot share out the batches of an update.
        StorageError: there are checkpoints, and none is valid.
        DataError: the newest checkpoint is not of this model.
        TryAgainError: there is no room on the disk for a checkpoint, or in memory for the model.
    """
    retention = Retention.of(config.training)
    checkpoints = Checkpoints(folder.path, retention, data_fingerprint=fingerprint_digest(data.fingerprint))
    checkpoints.found_folder = KnownFolder(folder.path)
    vocab_sizes = data.source_tokenizer.vocab_size, data.target_tokenizer.vocab_size
    require_memory_for_training(config, vocab_sizes, machine.device, read_launch())
    if not processes.is_alone:
        # A process that builds a model takes memory from the others, so it waits until all have checked theirs.
        processes.sums(0)
    model = new_model(config, data.tokenizers, initial)
    model, average = _on_device(model, config, machine, processes)
    optimizer = Optimizer(model, config.training, machine.precision)
    newest = checkpoints.newest_valid(newest)
    for name, reason in checkpoints.skipped.items():
        logger.warning("skipped %s: %s", name, reason)
    progress, meter = Progress(), Meter(machine.device)
    validation: dict[str, Any] = {}
    if newest is None:
        weights = sum(tensor.nbytes for tensor in model.state_dict().values())
        average_bytes = 0 if average is None else weights
        moment_bytes = sum(tensor.nbytes for tensor in optimizer.expected_state().values())
        checkpoints.require_space(weights + average_bytes + moment_bytes)
        count = sum(p.numel() for p in model.parameters())
        logger.info("model: %s parameters; %s", f"{count:,}", machine.describe())
    else:
        progress, validation = _restore(newest, model, optimizer, average, meter)
        if not is_finished(progress, config.training):
            logger.info("resuming %s at step %d; %s", folder.path, progress.step, machine.describe())
    num_batches = micro_batches_of_an_update(progress, config.training, processes.size)
    progress = replace(progress, num_micro_batches=num_batches)
    updates = open_updates(
        config,
        data.train,
        data.tokenizers,
        is_streamed=is_streaming(config.data),
        num_batches=num_batches or config.training.accumulate,
        position=progress.position,
        pin_memory=machine.device.type == "cuda",
        share=Share(processes.rank, processes.size),
    )
    compilation = planned_compilation(
        config, machine.device, lambda: max(0, num_steps_of(config.training, updates) - progress.step), processes.size
    )
    if compilation.reason and processes.is_main:
        logger.info("%s", compilation.reason)
    if (
        processes.is_main
        and not is_finished(progress, config.training)
        and code_was_changed()
        and differs_from_plain(config.model, machine.device)
    ):
        logger.warning("%s", CODE_WAS_CHANGED)
    if compilation.layers:
        compile_layers(model)
    objective = build_objective(config.training, vocab_sizes[1], machine.device, is_compiled=compilation.loss)
    runner = build_runner(config, model, optimizer, objective, machine, processes)
    if runner.recorded is not None and processes.is_main:
        logger.info("runtime.cuda_graphs: %s; the GPU repeats recorded passes", str(config.runtime.cuda_graphs).lower())
    experiment = Experiment(
        model=model,
        optimizer=optimizer,
        objective=objective,
        updates=updates,
        training=config.training,
        machine=machine,
        runner=runner,
        seed=config.seed,
        average=average,
    )
    return TrainingSession(
        config=config,
        data=data,
        experiment=experiment,
        progress=progress,
        meter=meter,
        checkpoints=checkpoints,
        validation_pairs=validation_pairs(config, data),
        validation=validation,
        origin=checked_origin(newest) if newest else dict(initial.origin) if initial else {},
        seen=all_seen_lengths(data, config, newest, initial),
        compilation=compilation,
        files=portable_files(config, *data.tokenizers),
    )


def all_seen_lengths(
    data: PreparedData, config: Config, newest: Checkpoint | None, initial: InitialModel | None
) -> SeenLengths:
    """The lengths of the texts of the training, with those that the model has seen before."""
    is_task = isinstance(config.data, SequencesData)  # whose sequences are no text
    seen = UNKNOWN_LENGTHS if is_task else lengths_seen_in(data.train)
    if newest is not None and SEEN_LENGTHS in newest.state():
        return seen.joined(seen_lengths_of(newest, config))
    if initial is not None:
        return seen.joined(seen_lengths_of(initial.trained.checkpoint, initial.trained.config))
    return seen


def _on_device(
    model: Transformer, config: Config, machine: Machine, processes: Processes
) -> tuple[Transformer, MovingAverage | None]:
    """A model and its moving average, accelerated, on a device; if they are sharded, the device gets a part of each.

    Sharding moves a model from the CPU to the device layer by layer, so the device never holds all of it.
    """
    device = machine.device
    accelerate(model, device)
    is_sharded = config.runtime.sharding == "full"
    if not is_sharded:
        model.to(device)
    decay = config.training.ema_decay
    average = None if decay is None else MovingAverage(model, decay)
    if is_sharded:
        for one in (model, *([average.model] if average else [])):
            shard(one, device, processes, machine.precision)
    return model, average


def _restore(
    newest: Checkpoint, model: Transformer, optimizer: Optimizer, average: MovingAverage | None, meter: Meter
) -> tuple[Progress, dict[str, Any]]:
    """Put a checkpoint into model, optimizer, average and meter; return the progress, and the last validation."""
    state = newest.training_state()
    progress = Progress.from_json(state.part("progress"))
    meter.restore(state.part("meter"))
    if optimizer.scale is not None:
        optimizer.scale.restore(state)
    restore_tensors(newest, model, optimizer, average)
    return progress, checked_validation(state.part("validation"), progress)


@dataclass
class TrainingSession:
    """Model, optimizer and data put together; it knows how to validate and how to save."""

    config: Config
    data: PreparedData
    experiment: Experiment
    progress: Progress
    meter: Meter
    checkpoints: Checkpoints
    validation_pairs: list[SentencePair]
    validation: dict[str, Any]  # the last one: its step and figures
    origin: dict[str, Any]  # of the initial weights; empty: random
    seen: SeenLengths
    """The lengths of the texts that the model has seen, with those of the run of its initial weights."""
    compilation: Compilation
    files: Mapping[str, bytes]
    """The config and the tokenizers, which are the same in each checkpoint."""
    callbacks: Callbacks = field(default_factory=Callbacks)

    def run(self, callbacks: Callbacks) -> Progress:
        """Train until the run is finished or a callback asks to stop; the state is saved then."""
        self.callbacks = callbacks
        num_steps = num_steps_of(self.config.training, self.experiment.updates)
        is_running = callbacks.running(self.progress.step, num_steps)
        with self.compiling(), is_running, self.experiment.updates:
            self.progress = run_loop(
                self.experiment,
                self.progress,
                self.meter,
                validate=self._validate,
                save=self._save,
                callbacks=callbacks,
            )
        return self.progress

    def compiling(self) -> AbstractContextManager[None]:
        """In the block, what is compiled is used; see `compilation_errors_explained`."""
        is_compiled = self.compilation.layers or self.compilation.loss
        return compilation_errors_explained() if is_compiled else nullcontext()

    def _validate(self, step: int, must_stop_now: Callable[[], bool]) -> Validated | None:
        settings, processes = self.config.validation, self.experiment.runner.processes
        average = self.experiment.average  # if there is one, it is validated and translates
        model = (average.model if average else self.experiment.model).eval()  # until a step
        if self.config.runtime.sharding == "full":
            model = whole_copy(model, self.experiment.machine.device)
        translator = self.translator(model)  # that of this process, for the callbacks
        return_freed_memory()  # decoding cannot use what training has freed in small pieces

        def ask(*_: Any) -> None:
            with torch.inference_mode(mode=False):  # a checkpoint may be written here
                if must_stop_now():
                    raise StoppedError

        asked_before_each_batch = model.encoder.register_forward_pre_hook(ask)
        engine: Engine = translator.engine
        if isinstance(engine, PyTorchEngine):
            engine = engine.for_validation()
        if not processes.is_alone:  # all share out the work
            engine = SharedEngine(engine, processes)
        shared = replace(translator, engine=engine)
        try:
            report = validate(shared, self.validation_pairs, scores=settings.scores, num_samples=settings.num_samples)
        except StoppedError:
            logger.info("step %d  validation: stopped; the resumed run repeats it", step)
            return None
        finally:
            asked_before_each_batch.remove()
        self.callbacks.call("on_validation", step, report, translator)
        return_freed_memory()
        metric = self.config.training.best_metric
        value = report.metric(metric)
        self.validation = {"step": step, "value": value} | report.as_json()
        return Validated(goodness(value, metric), report.loss)

    def translator(self, model: Transformer, beam_size: int | None = None) -> Translator:
        """A translator with a model of this run, as validations use it, or with another beam size."""
        decoding = self.config.decoding.best_of_beam(beam_size or self.config.validation.beam_size)
        # A validation compares models: a copied source or a repair would hide what a model writes. What stays on, such as
        # split_sentences, is the same for all models of a run.
        decoding = decoding.model_copy(update={"keep_text": False, "repair": False})
        data = self.config.data
        if data.cleaning.normalize_invisible is None:
            # A run of an earlier version was validated on sources with their invisible characters. With other sources it
            # might stop at another step or keep another checkpoint.
            cleaning = data.cleaning.model_copy(update={"normalize_invisible": False})
            data = data.model_copy(update={"cleaning": cleaning})
        config = self.config.model_copy(update={"data": data})
        machine = self.experiment.machine
        return build_translator(model, *self.data.tokenizers, config, machine, decoding=decoding)

    def _save(self, progress: Progress, meter: Meter) -> None:
        experiment, processes = self.experiment, self.experiment.runner.processes
        scale = experiment.optimizer.scale
        is_validated = self.validation.get("step") == progress.step
        model, optimizer = tensors_to_save(experiment.model, experiment.optimizer, experiment.average)
        if not processes.is_alone:
            progress = progress.known_to_all(processes)
            model, optimizer = gathered(model, processes), gathered(optimizer, processes)
        snapshot = Snapshot(
            step=progress.step,
            model=model,
            optimizer=optimizer,
            state={
                "progress": progress.to_json(),
                "meter": meter.to_json(),
                "validation": self.validation,
                SEEN_LENGTHS: self.seen._asdict(),
                **({GRADIENT_SCALE: scale.to_json()} if scale else {}),
                **({INIT_FROM: self.origin} if self.origin else {}),
            },
            files=self.files,
        )
        score = self.validation["value"] if is_validated else None
        if processes.is_alone:
            folder = self.checkpoints.save(snapshot, score)
        else:
            folder = Path(processes.from_main(lambda: str(self.checkpoints.save(snapshot, score))))
        self.callbacks.call("on_save", progress.step, folder)
