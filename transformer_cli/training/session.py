"""A training session: one process' part of a run, from the newest checkpoint to the end of the loop; how a run is opened."""

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import torch

from transformer_cli.acceleration import accelerate
from transformer_cli.acceleration.accelerate import (
    compilation_errors_explained,
    compile_layers,
)
from transformer_cli.acceleration.compilation import NOTHING, Compilation, planned_compilation
from transformer_cli.acceleration.native_kernels import kernel_level
from transformer_cli.checkpoint import (
    Checkpoint,
    Checkpoints,
    Retention,
    Snapshot,
    portable_files,
    tokenizers_of,
)
from transformer_cli.checkpoint.run_folder import CONFIG_FILE, IMPORTED, RunFolder
from transformer_cli.checkpoint.trained_files import seen_lengths_of
from transformer_cli.config import Config, TrainingConfig, load_stored_config, to_yaml
from transformer_cli.data.encoded import lengths_seen_in
from transformer_cli.data.order import UpdateSize
from transformer_cli.data.pairs import SentencePair
from transformer_cli.data.preparation import PreparedData, prepare_data, take_over
from transformer_cli.data.selection import pairs_to_validate
from transformer_cli.data.sources.corpus import is_streaming
from transformer_cli.data.streaming import StreamedUpdates, require_shareable
from transformer_cli.data.updates import Share, Updates, training_pairs
from transformer_cli.decoding import Translator
from transformer_cli.decoding.loading import build_translator
from transformer_cli.evaluation import validate
from transformer_cli.model import Transformer
from transformer_cli.process.device import (
    Machine,
    environment,
    return_freed_memory,
)
from transformer_cli.process.errors import (
    ConfigError,
)
from transformer_cli.storage import replace_file
from transformer_cli.text import SequenceFormat
from transformer_cli.text.sentences import SEEN_LENGTHS, UNKNOWN_LENGTHS, SeenLengths
from transformer_cli.training.batch_size import with_fitting_batches, with_recorded_batches
from transformer_cli.training.callbacks import Callbacks, Meter
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
    new_model,
    require_memory_for_training,
)
from transformer_cli.training.joining import (
    SharedEngine,
    StoppedError,
    data_of_main,
    require_same_settings,
)
from transformer_cli.training.loop import (
    Experiment,
    Progress,
    Validated,
    checked_validation,
    goodness,
    is_finished,
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
from transformer_cli.training.process_group import Processes, gathered, shard, whole_copy
from transformer_cli.training.step import build_objective, worker_of

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class TrainingSession:
    """Model, optimizer and data put together; it knows how to validate and how to save."""

    config: Config
    data: PreparedData
    experiment: Experiment
    progress: Progress
    meter: Meter
    checkpoints: Checkpoints
    validation_pairs: list[SentencePair]
    validation: dict[str, Any] = field(default_factory=dict)  # the last one: its step and figures
    origin: dict[str, Any] = field(default_factory=dict)  # of the initial weights; empty: random
    seen: SeenLengths = UNKNOWN_LENGTHS
    """The lengths of the texts that the model has seen, with those of the run of its initial weights."""
    compilation: Compilation = NOTHING
    callbacks: Callbacks = field(default_factory=Callbacks)

    @classmethod
    def open(
        cls,
        folder: RunFolder,
        config: Config,
        data: PreparedData,
        machine: Machine,
        processes: Processes,
        *,
        initial: InitialModel | None = None,
        compilation: Compilation | None = None,
    ) -> Self:
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
            parts = tensors_to_save(model, optimizer, average)
            saved_bytes = sum(tensor.nbytes for part in parts for tensor in part.values())
            checkpoints.require_space(saved_bytes + optimizer.state_bytes())
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
            worker=worker_of(config, model, optimizer, objective, machine, processes),
            seed=config.seed,
            average=average,
        )
        pairs = validation_pairs(config, data)
        seen = lengths_seen_in(data.train, config)
        if newest is not None and SEEN_LENGTHS in newest.state():
            seen = seen.joined(seen_lengths_of(newest, config))
        elif initial is not None:
            seen = seen.joined(initial.trained.seen)
        return cls(
            config, data, experiment, progress, meter, checkpoints, pairs, validation,
            seen=seen, compilation=compilation,
        )  # fmt: skip

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
        settings, processes = self.config.validation, self.experiment.worker.processes
        average = self.experiment.average  # if there is one, it is validated and translates
        model = (
            average.model if average else self.experiment.model
        ).eval()  # each step switches it back
        if self.config.runtime.sharding == "full":
            model = whole_copy(model, self.experiment.machine.device)
        # The callbacks get the translator of this process; of several, all share out the work.
        translator = shared = self.translator(model)
        if not processes.is_alone:
            shared = replace(translator, engine=SharedEngine(translator.engine, processes))
        return_freed_memory()  # decoding cannot use what training has freed in small pieces
        try:
            with _between_batches(model, must_stop_now):
                report = validate(
                    shared,
                    self.validation_pairs,
                    scores=settings.scores,
                    num_samples=settings.num_samples,
                )
        except StoppedError:
            logger.info("step %d  validation: stopped; the resumed run repeats it", step)
            return None
        self.callbacks.on_validation(step, report, translator)
        return_freed_memory()
        metric = self.config.training.best_metric
        value = report.metric(metric)
        self.validation = {"step": step, "value": value} | report.as_json()
        return Validated(goodness(value, metric), report.loss)

    def translator(self, model: Transformer, beam_size: int | None = None) -> Translator:
        """A translator with a model of this run, as validations use it, or with another beam size."""
        decoding = self.config.decoding.best_of_beam(beam_size or self.config.validation.beam_size)
        # A validation compares models: a copied source or a repair would hide what a model writes.
        decoding = decoding.model_copy(update={"keep_text": False, "repair": False})
        tokenizers = self.data.source_tokenizer, self.data.target_tokenizer
        experiment = self.experiment
        return build_translator(
            model, *tokenizers, self._as_it_began(), experiment.machine, decoding=decoding
        )

    def _as_it_began(self) -> Config:
        """The config with which a model of this run reads text while it is trained.

        A run of an earlier version was validated on sources with their invisible characters. With other sources it might
        stop at another step or keep another checkpoint.
        """
        data = self.config.data
        if data.cleaning.normalize_invisible is not None:
            return self.config
        cleaning = data.cleaning.model_copy(update={"normalize_invisible": False})
        data = data.model_copy(update={"cleaning": cleaning})
        return self.config.model_copy(update={"data": data})

    def _save(self, progress: Progress, meter: Meter) -> None:
        processes = self.experiment.worker.processes
        is_validated = self.validation.get("step") == progress.step
        one = self.experiment
        model, optimizer = tensors_to_save(one.model, one.optimizer, one.average)
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
                SEEN_LENGTHS: self.seen.to_json(),
                **({GRADIENT_SCALE: scale.to_json()} if (scale := one.optimizer.scale) else {}),
                **({INIT_FROM: self.origin} if self.origin else {}),
            },
            files=portable_files(
                self.config, self.data.source_tokenizer, self.data.target_tokenizer
            ),
        )
        score = self.validation["value"] if is_validated else None
        if processes.is_alone:
            folder = self.checkpoints.save(snapshot, score)
        else:
            folder = Path(processes.from_main(lambda: str(self.checkpoints.save(snapshot, score))))
        self.callbacks.on_save(progress.step, folder)


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


@contextmanager
def _between_batches(model: Transformer, must_stop_now: Callable[[], bool]) -> Iterator[None]:
    """Before each batch of sources, ask whether to stop; if so, end the block with StoppedError."""

    def ask(*_: Any) -> None:
        with torch.inference_mode(mode=False):  # a checkpoint may be written here
            if must_stop_now():
                raise StoppedError

    handle = model.encoder.register_forward_pre_hook(ask)
    try:
        yield
    finally:
        handle.remove()


def num_steps_of(training: TrainingConfig, updates: Updates) -> int:
    """The last step of a run, estimated from the number of batches of this epoch."""
    limits = [] if training.max_steps is None else [training.max_steps]
    if training.max_epochs is not None:
        limits.append(training.max_epochs * updates.num_updates)
    return min(limits)


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
    if not processes.is_alone:
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
    origin: dict[str, Any] = {}
    if has_begun:
        config = _accepted(folder, config, newest, accept_data_change)
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
    session = TrainingSession.open(folder, config, data, machine, processes, initial=initial)
    session.origin = origin
    # Nothing was refused; but a command that trains nothing leaves the records of the updates as they are.
    trains_on = not is_finished(session.progress, config.training)
    if processes.is_main and (trains_on or not folder.config_file.exists()):
        record_run(folder, session)
    return session


def _accepted(
    folder: RunFolder, config: Config, newest: Checkpoint | None, accept_data_change: bool
) -> Config:
    """The config with which a run that has begun goes on; the main process logs what has changed.

    Args:
        newest: its newest checkpoint; None in the other processes.
    """
    config = with_recorded_cleaning(config, _recorded_config(folder, newest))
    if not folder.config_file.exists():
        return config
    before = load_stored_config(folder.config_file)
    config = with_recorded_batches(config, before)
    if newest is not None:
        progress = Progress.from_json(newest.training_state().part("progress"))
        trains_on = not is_finished(progress, config.training)
        changes = accept_changes(
            before, config, step=newest.step, accept_data_change=accept_data_change
        )
        refuse_passed_limits(before, config, progress)
        what = "changed since the last command" if trains_on else "not recorded, because the run is finished"  # fmt: skip
        for change in changes:
            logger.info("%s: %s", what, change, extra={"is_no_record": not trains_on})
    return config


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
    described = environment(kernel_level()) | {
        "device": session.experiment.machine.describe(),
        "processes": session.experiment.worker.processes.size,
        "data": dict(session.data.fingerprint),
    }
    described |= {INIT_FROM: dict(session.origin)} if session.origin else {}
    replace_file(folder.environment_file, json.dumps(described, indent=1).encode())
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
