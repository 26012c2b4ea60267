"""Opening a run: its newest checkpoint or its initial weights, its data, and its records on disk; the result is a `TrainingSession`."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from functools import partial
from typing import Any

from transformer_cli.acceleration import accelerate
from transformer_cli.acceleration.accelerate import compile_layers
from transformer_cli.acceleration.compilation import Compilation, planned_compilation
from transformer_cli.acceleration.native_kernels import kernel_level
from transformer_cli.checkpoint import (
    Checkpoint,
    Retention,
    tokenizers_of,
)
from transformer_cli.checkpoint.checkpoints import Checkpoints
from transformer_cli.checkpoint.run_folder import IMPORTED, RunFolder
from transformer_cli.checkpoint.trained_files import seen_lengths_of
from transformer_cli.config import Config, to_yaml
from transformer_cli.data.encoded import lengths_seen_in
from transformer_cli.data.order import UpdateSize
from transformer_cli.data.pairs import SentencePair
from transformer_cli.data.preparation import PreparedData, prepare_data, take_over
from transformer_cli.data.selection import pairs_to_validate
from transformer_cli.data.sources.corpus import is_streaming
from transformer_cli.data.streaming import StreamedUpdates, require_shareable
from transformer_cli.data.updates import Share, Updates, training_pairs
from transformer_cli.model import Transformer
from transformer_cli.process.device import (
    Machine,
    environment,
    return_freed_memory,
)
from transformer_cli.process.errors import (
    ConfigError,
)
from transformer_cli.storage import remove, replace_file
from transformer_cli.text import SequenceFormat
from transformer_cli.text.seen_words import read_seen_words, write_seen_words
from transformer_cli.text.sentences import SEEN_LENGTHS, SeenLengths
from transformer_cli.training.batch_size import with_fitting_batches
from transformer_cli.training.callbacks import Meter
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
    data_of_main,
    require_same_settings,
)
from transformer_cli.training.loop import (
    Experiment,
    Progress,
    checked_validation,
    is_finished,
    micro_batches_of_an_update,
)
from transformer_cli.training.optimizers import (
    MovingAverage,
    Optimizer,
    restore_tensors,
    tensors_to_save,
)
from transformer_cli.training.process_group import Processes, shard
from transformer_cli.training.session import TrainingSession, num_steps_of
from transformer_cli.training.step import build_objective, build_runner

logger = logging.getLogger(__name__)


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
    if not processes.is_alone:
        require_same_settings(config, processes, from_scratch=from_scratch)
    # Before the earlier checkpoints are moved away: without the other run, this one cannot start again.
    initial = load_initial_model(config, folder.path) if from_scratch else None
    if processes.is_main:
        Checkpoints(folder.path).sweep()
        if from_scratch:
            along = [path.name for path in folder.records()]
            if (place := Checkpoints(folder.path).move_away(along)) is not None:
                logger.info("the earlier checkpoints are now in %s", place)
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
        changes = f"--set name={config.name}-tuned --set training.init_from={config.name}"
        raise ConfigError(
            f"{folder.path}: this run was imported, so its training cannot go on",
            hint=f"fine-tune it in a new run: tfm train --config {folder.config_file} {changes}",
        )
    [has_begun] = processes.any_of(newest is not None)
    origin: dict[str, Any] = {}
    if has_begun:
        config = accepted_config(folder, config, newest, accept_data_change=accept_data_change)
    else:
        if is_streaming(config.data):  # before the corpus is read
            num_batches = config.training.accumulate * processes.size
            require_shareable(config.data, num_batches, processes.size)
        if initial is None and config.training.init_from is not None:
            initial = load_initial_model(config, folder.path)
    if newest is not None:
        origin = checked_origin(newest)
    elif initial is not None:
        origin = initial.origin
    prepare = partial(_prepared_data, folder, config, newest, initial, accept_data_change)
    data = prepare() if processes.is_alone else data_of_main(prepare, config, folder, processes)
    return_freed_memory()
    if config.training.batch_tokens == "auto":
        config = with_fitting_batches(config, data, machine, processes)
    session = open_session(folder, config, data, machine, processes, initial=initial)
    session.origin = origin
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
    elif initial is not None:
        earlier = initial.trained.seen_words
    has_begun = newest is not None or initial is not None
    if words is not None and (earlier is not None or not has_begun):
        write_seen_words(
            folder.seen_words_file, words if earlier is None else words.joined(earlier)
        )
    elif (newest is None or is_streaming(data.config.data)) and folder.seen_words_file.exists():
        # What lies there tells of other data: of a start without a checkpoint, or of those before the stream.
        remove([folder.seen_words_file])


def _prepared_data(
    folder: RunFolder,
    config: Config,
    newest: Checkpoint | None,
    initial: InitialModel | None,
    accept_data_change: bool,
) -> PreparedData:
    """The data that the newest checkpoint was trained on, or newly prepared data."""
    tokenizers = tokenizers_of(newest) if newest else initial.tokenizers if initial else None
    is_done = False
    if newest is None:
        take_over(config, folder.data_folder, folder.path.parent)
    else:
        progress = Progress.from_json(newest.training_state().part("progress"))
        is_done = is_finished(progress, config.training)
    data = prepare_data(
        config,
        folder.data_folder,
        accept_change=accept_data_change,
        has_begun=newest is not None,
        is_finished=is_done,
        tokenizers=tokenizers,
    )
    if newest is None or accept_data_change:
        for line in data.report.lines():
            logger.info("%s", line, extra={"is_table": True})
    return data


def open_session(
    folder: RunFolder,
    config: Config,
    data: PreparedData,
    machine: Machine,
    processes: Processes,
    *,
    initial: InitialModel | None = None,
    compilation: Compilation | None = None,
) -> TrainingSession:
    """A new session, from random weights or from `initial`; or the continuation of the newest valid checkpoint.

    Args:
        compilation: what torch.compile compiles; None: what the config asks for.

    Raises:
        ConfigError: the processes cannot share out the batches of an update.
        StorageError: there are checkpoints, and none is valid.
        DataError: the newest checkpoint is not of this model.
        TryAgainError: there is no room on the disk for a checkpoint, or in memory for the model.
    """
    retention = Retention.of(config.training)
    checkpoints = Checkpoints(folder.path, retention, data_fingerprint=data.fingerprint)
    checkpoints.recognise_folder()
    vocab_sizes = data.source_tokenizer.vocab_size, data.target_tokenizer.vocab_size
    require_memory_for_training(config, vocab_sizes, machine.device)
    if not processes.is_alone:
        # A process that builds a model takes memory from the others, so it waits until all have checked theirs.
        processes.sums(0)
    model, average = _on_device(
        new_model(config, data.tokenizers, initial), config, machine, processes
    )
    optimizer = Optimizer(model, config.training, machine.precision)
    newest = checkpoints.newest_valid()
    for name, reason in checkpoints.skipped.items():
        logger.warning("skipped %s: %s", name, reason)
    progress, meter = Progress(), Meter(machine.device)
    validation: dict[str, Any] = {}
    if newest is None:
        _require_space(checkpoints, model, optimizer, average)
        count = sum(p.numel() for p in model.parameters())
        logger.info("model: %s parameters; %s", f"{count:,}", machine.describe())
    else:
        progress, validation = _restore(newest, model, optimizer, average, meter)
        if not is_finished(progress, config.training):
            described = folder.path, progress.step, machine.describe()
            logger.info("resuming %s at step %d; %s", *described)
    num_micro = micro_batches_of_an_update(progress, config.training, processes.size)
    progress = replace(progress, num_micro_batches=num_micro)
    updates = updates_of(config, data, progress, machine, processes)
    if compilation is None:
        compilation = planned_compilation(
            config,
            machine.device,
            lambda: max(0, num_steps_of(config.training, updates) - progress.step),
            processes.size,
        )
    if compilation.reason and processes.is_main:
        logger.info("%s", compilation.reason)
    if compilation.layers:
        compile_layers(model)
    objective = build_objective(
        config.training, vocab_sizes[1], machine.device, is_compiled=compilation.loss
    )
    experiment = Experiment(
        model=model,
        optimizer=optimizer,
        objective=objective,
        updates=updates,
        training=config.training,
        machine=machine,
        runner=build_runner(config, model, optimizer, objective, machine, processes),
        seed=config.seed,
        average=average,
    )
    return TrainingSession(
        config, data, experiment, progress, meter, checkpoints, validation_pairs(config, data),
        validation, seen=_seen_lengths(data, config, newest, initial), compilation=compilation,
    )  # fmt: skip


def _require_space(
    checkpoints: Checkpoints,
    model: Transformer,
    optimizer: Optimizer,
    average: MovingAverage | None,
) -> None:
    """Refuse a new run whose checkpoint would not fit on the disk."""
    parts = tensors_to_save(model, optimizer, average)
    saved_bytes = sum(tensor.nbytes for part in parts for tensor in part.values())
    checkpoints.require_space(saved_bytes + optimizer.state_bytes())


def _seen_lengths(
    data: PreparedData, config: Config, newest: Checkpoint | None, initial: InitialModel | None
) -> SeenLengths:
    """The lengths of the texts of the training, with those that the model has seen before."""
    seen = lengths_seen_in(data.train, config)
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
    newest: Checkpoint,
    model: Transformer,
    optimizer: Optimizer,
    average: MovingAverage | None,
    meter: Meter,
) -> tuple[Progress, dict[str, Any]]:
    """Put a checkpoint into model, optimizer, average and meter; return the progress, and the last validation."""
    state = newest.training_state()
    progress = Progress.from_json(state.part("progress"))
    meter.restore(state.part("meter"))
    if optimizer.scale is not None:
        optimizer.scale.restore(state)
    restore_tensors(newest, model, optimizer, average)
    return progress, checked_validation(state.part("validation"), progress)


def updates_of(
    config: Config,
    data: PreparedData,
    progress: Progress,
    machine: Machine,
    processes: Processes,
) -> Updates:
    """The updates of a run from its position on; of several processes, the share of this one."""
    pairs, order = training_pairs(data.train, data.tokenizers, config)
    num_batches = progress.num_micro_batches or config.training.accumulate
    size = UpdateSize(num_batches, config.training.update_tokens)
    position, pin_memory = progress.position, machine.device.type == "cuda"
    if is_streaming(config.data):
        updates: Updates = StreamedUpdates(
            config, data.tokenizers, order, size=size, position=position, pin_memory=pin_memory
        )
    else:
        updates = Updates(
            pairs,
            order,
            size=size,
            position=position,
            sequence_format=SequenceFormat.of(config.data),
            pin_memory=pin_memory,
        )
    if processes.is_alone:
        return updates
    return updates.shared(Share(processes.rank, processes.size))


def validation_pairs(config: Config, data: PreparedData) -> list[SentencePair]:
    """The validation pairs that a run uses; if these are not all, the log says so."""
    pairs = pairs_to_validate(config, data.validation)
    if config.validation.max_sentences is None and len(pairs) < len(data.validation):
        logger.info(
            "validating on %s of the %s validation pairs; --set validation.max_sentences=... sets another "
            "number, and tfm validate scores all",
            f"{len(pairs):,}", f"{len(data.validation):,}",
        )  # fmt: skip
    return pairs
