"""A training session: one process' part of a run, from the newest checkpoint to the end of the loop."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import torch

from transformer_cli.checkpoint import Checkpoints, Retention, Snapshot, portable_files
from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.config import Config
from transformer_cli.data.batches.order import epoch_order
from transformer_cli.data.batches.updates import Updates
from transformer_cli.data.pairs import SentencePair
from transformer_cli.data.preparation import PreparedData
from transformer_cli.data.selection.held_out import pairs_to_validate
from transformer_cli.decoding import Translator
from transformer_cli.evaluation import validate
from transformer_cli.inference import build_translator
from transformer_cli.memory import return_freed_memory
from transformer_cli.model import Transformer
from transformer_cli.runtime import Machine, seed_everything
from transformer_cli.text import SequenceFormat
from transformer_cli.training.callbacks import Callbacks
from transformer_cli.training.fitting import DeviceMemory, require_memory_for_training
from transformer_cli.training.loop import Experiment, run_loop
from transformer_cli.training.meter import Meter
from transformer_cli.training.objectives import build_objective
from transformer_cli.training.optimizers import Optimizer
from transformer_cli.training.progress import (
    Progress,
    Validated,
    checked_validation,
    goodness,
    is_finished,
)

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
    callbacks: Callbacks = field(default_factory=Callbacks)

    @classmethod
    def open(cls, folder: RunFolder, config: Config, data: PreparedData, machine: Machine) -> Self:
        """A new session, or the continuation of the newest valid checkpoint.

        Raises:
            StorageError: there are checkpoints, and none is valid.
            DataError: the newest checkpoint is not of this model.
            TryAgainError: there is no room on the disk for a checkpoint, or in memory for the model.
        """
        retention = Retention.of(config.training)
        checkpoints = Checkpoints(folder.path, retention, data_fingerprint=data.fingerprint)
        checkpoints.recognise_folder()
        vocab_sizes = data.source_tokenizer.vocab_size, data.target_tokenizer.vocab_size
        require_memory_for_training(config.model, vocab_sizes, machine.device)
        seed_everything(config.seed, "weights")
        model = Transformer(config.model, *vocab_sizes).to(machine.device)
        optimizer = Optimizer(model, config.training)
        newest = checkpoints.newest_valid()
        for name, reason in checkpoints.skipped().items():
            logger.warning("skipped %s: %s", name, reason)
        progress, meter, validation = Progress(), Meter(machine.device), {}
        if newest is None:
            checkpoints.require_space(3 * sum(p.nbytes for p in model.parameters()))
            num_parameters = sum(p.numel() for p in model.parameters())
            logger.info("model: %s parameters; %s", f"{num_parameters:,}", machine.describe())
        else:
            state = newest.training_state()
            progress = Progress.from_json(state.part("progress"))
            meter.restore(state.part("meter"))
            validation = checked_validation(state.part("validation"), progress)
            model.load_state_dict(newest.model(model.state_dict()))
            optimizer.restore(newest.optimizer(optimizer.expected_state()))
            if not is_finished(progress, config.training):
                described = folder.path, progress.step, machine.describe()
                logger.info("resuming %s at step %d; %s", *described)
        if config.runtime.compile:
            for layer in (*model.encoder.layers, *model.decoder.layers):
                layer.compile()
        experiment = Experiment(
            model=model,
            optimizer=optimizer,
            objective=build_objective(config.training, machine),
            updates=_updates(config, data, progress, machine),
            training=config.training,
            machine=machine,
            memory=DeviceMemory(machine.device),
            seed=config.seed,
        )
        pairs = _validation_pairs(config, data)
        return cls(config, data, experiment, progress, meter, checkpoints, pairs, validation)

    def run(self, callbacks: Callbacks) -> Progress:
        """Train until the run is finished or a callback asks to stop; the state is saved then."""
        self.callbacks = callbacks
        with callbacks.running(self.progress.step, self._num_steps()), self.experiment.updates:
            self.progress = run_loop(
                self.experiment,
                self.progress,
                self.meter,
                validate=self._validate,
                save=self._save,
                callbacks=callbacks,
            )
        return self.progress

    def _num_steps(self) -> int:
        """The last step of the run, estimated from the number of batches of this epoch."""
        training = self.config.training
        limits = [] if training.max_steps is None else [training.max_steps]
        if training.max_epochs is not None:
            batches = self.experiment.updates.num_batches
            limits.append(training.max_epochs * -(-batches // training.accumulate))
        return min(limits)

    def _validate(self, step: int, must_stop_now: Callable[[], bool]) -> Validated | None:
        settings = self.config.validation
        self.experiment.model.eval()  # each training step switches it back
        translator = self._translator()
        try:
            with _between_batches(self.experiment.model, must_stop_now):
                report = validate(
                    translator,
                    self.validation_pairs,
                    scores=settings.scores,
                    num_samples=settings.num_samples,
                )
        except _StoppedError:
            logger.info("step %d  validation: stopped; the resumed run repeats it", step)
            return None
        self.callbacks.on_validation(step, report, translator)
        return_freed_memory()
        metric = self.config.training.best_metric
        value = report.metric(metric)
        self.validation = {"step": step, "value": value} | report.as_json()
        return Validated(goodness(value, metric), report.loss)

    def _translator(self) -> Translator:
        settings = self.config.decoding
        decoding = settings.model_copy(
            update={"beam_size": self.config.validation.beam_size, "num_best": 1}
        )
        tokenizers = self.data.source_tokenizer, self.data.target_tokenizer
        experiment = self.experiment
        return build_translator(
            experiment.model, *tokenizers, self.config, experiment.machine, decoding=decoding
        )

    def _save(self, progress: Progress, meter: Meter) -> None:
        is_validated = self.validation.get("step") == progress.step
        snapshot = Snapshot(
            step=progress.step,
            model=self.experiment.model.state_dict(),
            optimizer=self.experiment.optimizer.state(),
            state={
                "progress": progress.to_json(),
                "meter": meter.to_json(),
                "validation": self.validation,
            },
            files=portable_files(
                self.config, self.data.source_tokenizer, self.data.target_tokenizer
            ),
        )
        score = self.validation["value"] if is_validated else None
        self.callbacks.on_save(progress.step, self.checkpoints.save(snapshot, score))


def _validation_pairs(config: Config, data: PreparedData) -> list[SentencePair]:
    pairs = pairs_to_validate(config, data.validation)
    if config.validation.max_sentences is None and len(pairs) < len(data.validation):
        logger.info(
            "validating on %s of the %s validation pairs; --set validation.max_sentences=... sets another "
            "number, and tfm validate scores all",
            f"{len(pairs):,}", f"{len(data.validation):,}",
        )  # fmt: skip
    return pairs


class _StoppedError(Exception):
    """A validation was told to stop."""


@contextmanager
def _between_batches(model: Transformer, must_stop_now: Callable[[], bool]) -> Iterator[None]:
    """Before each batch of sources, ask whether to stop; if so, end the block with _StoppedError."""

    def ask(*_: Any) -> None:
        with torch.inference_mode(mode=False):  # a checkpoint may be written here
            if must_stop_now():
                raise _StoppedError

    handle = model.encoder.register_forward_pre_hook(ask)
    try:
        yield
    finally:
        handle.remove()


def _updates(config: Config, data: PreparedData, progress: Progress, machine: Machine) -> Updates:
    return Updates(
        data.train,
        epoch_order(data.train.lengths, data.train.corpus_sizes, config),
        accumulate=config.training.accumulate,
        position=progress.position,
        sequence_format=SequenceFormat.of(config.data),
        pin_memory=machine.device.type == "cuda",
    )
