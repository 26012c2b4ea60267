"""One process' share of a run: model, optimizer and data put together, and the loop's hooks."""

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar

import torch
from torch import Tensor

from transformer_cli.checkpoint import Checkpoint, Checkpoints, Retention, Snapshot, portable_files
from transformer_cli.config import Config
from transformer_cli.console import TrainingConsole
from transformer_cli.data.batches.order import epoch_order
from transformer_cli.data.batches.updates import Updates
from transformer_cli.data.preparation import PreparedData
from transformer_cli.decoding import Translator
from transformer_cli.errors import DataError
from transformer_cli.evaluation.attention_picture import attention_picture
from transformer_cli.evaluation.validation import ValidationReport, validate
from transformer_cli.inference import build_translator
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import Machine, return_freed_memory, seed_everything
from transformer_cli.text.sequence_format import SequenceFormat
from transformer_cli.training.loop import Experiment, Hooks
from transformer_cli.training.optimizer import (
    build_optimizer,
    optimizer_tensors,
    restore_optimizer,
)
from transformer_cli.training.progress import Meter, Progress

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(slots=True)
class TrainingSession:
    """What `tfm train` holds in its hands between two saves."""

    config: Config
    data: PreparedData
    experiment: Experiment
    progress: Progress
    meter: Meter
    checkpoints: Checkpoints
    run_folder: Path
    validation: dict[str, Any] = field(default_factory=dict)  # the last one: its step and figures
    talk: TrainingConsole | None = None

    @classmethod
    def open(cls, run_folder: Path, config: Config, data: PreparedData, machine: Machine) -> Self:
        """A new session, or the continuation of the newest valid checkpoint."""
        checkpoints = Checkpoints(
            run_folder, Retention.of(config.training), data_fingerprint=data.fingerprint
        )
        seed_everything(config.seed, "weights")
        vocab_sizes = data.source_tokenizer.vocab_size, data.target_tokenizer.vocab_size
        model = Transformer(config.model, *vocab_sizes).to(machine.device)
        optimizer = build_optimizer(model, config.training)
        newest = checkpoints.newest_valid()
        for folder, reason in checkpoints.skipped().items():
            logger.warning("skipped %s: %s", folder, reason)
        progress, meter, validation = Progress(), Meter(machine.device), {}
        if newest is None:
            checkpoints.require_space(3 * sum(p.nbytes for p in model.parameters()))
            num_parameters = sum(p.numel() for p in model.parameters())
            logger.info("model: %s parameters; %s", f"{num_parameters:,}", machine.describe())
        else:
            state = newest.state()
            progress = Progress.from_json(_part(state, "progress", newest))
            meter.restore(_part(state, "meter", newest))
            validation = dict(_part(state, "validation", newest))
            model.load_state_dict(newest.model(model.state_dict()))
            expected = _expected_optimizer_tensors(model)
            restore_optimizer(model, optimizer, newest.optimizer(expected))
            logger.info("resuming %s at step %d; %s", run_folder, progress.step, machine.describe())
        if config.runtime.compile:
            for layer in (*model.encoder.layers, *model.decoder.layers):
                layer.compile()
        updates = _updates(config, data, progress, machine)
        experiment = Experiment(model, optimizer, updates, config.training, machine, config.seed)
        return cls(config, data, experiment, progress, meter, checkpoints, run_folder, validation)

    def console(self) -> AbstractContextManager[TrainingConsole]:
        """What shows the run; open while training."""
        training = self.config.training
        limits = [] if training.max_steps is None else [training.max_steps]
        if training.max_epochs is not None:
            batches = self.experiment.updates.num_batches
            limits.append(training.max_epochs * -(-batches // training.accumulate))
        self.talk = TrainingConsole(
            self.run_folder, first_step=self.progress.step, num_steps=min(limits)
        )
        return self.talk

    def hooks(self, is_stop_requested: Callable[[], bool], alive: Callable[[], None]) -> Hooks:
        """What the loop does to the world; `alive` is told of each beginning and end."""
        assert self.talk is not None, "open the console first"

        def watched(work: Callable[P, T]) -> Callable[P, T]:
            def wrapped(*arguments: P.args, **options: P.kwargs) -> T:
                alive()
                done = work(*arguments, **options)
                alive()
                return done

            return wrapped

        return Hooks(
            tick=watched(self.talk.tick),
            report=self.talk.show_training,
            validate=watched(self._validate),
            save=watched(self._save),
            is_stop_requested=is_stop_requested,
        )

    def _validate(self, step: int) -> float:
        pairs = self.data.validation[: self.config.validation.max_sentences]
        settings = self.config.validation
        self.experiment.model.eval()  # each training step switches it back
        translator = self._translator()
        report = validate(
            translator, pairs, scores=settings.scores, num_samples=settings.num_samples
        )
        self._show(step, report, translator)
        return_freed_memory()
        value = report.metric(self.config.training.best_metric)
        self.validation = {"step": step, "value": value} | report.as_json()
        return value

    def _show(self, step: int, report: ValidationReport, translator: Translator) -> None:
        assert self.talk is not None
        self.talk.show_validation(step, report)
        for number, sample in enumerate(report.samples[:1]):
            figure = attention_picture(translator, sample.source, sample.predicted)
            if figure is not None:
                self.talk.show_picture(step, f"attention/{number}", figure)

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
        model, optimizer = self.experiment.model, self.experiment.optimizer
        is_validated = self.validation.get("step") == progress.step
        snapshot = Snapshot(
            step=progress.step,
            model=model.state_dict(),
            optimizer=optimizer_tensors(model, optimizer),
            state={
                "progress": progress.to_json(),
                "meter": meter.to_json(),
                "validation": self.validation,
            },
            files=portable_files(
                self.config, self.data.source_tokenizer, self.data.target_tokenizer
            ),
        )
        self.checkpoints.save(snapshot, self.validation["value"] if is_validated else None)


def _updates(config: Config, data: PreparedData, progress: Progress, machine: Machine) -> Updates:
    train = data.train
    order = epoch_order(
        train.lengths, train.corpus_sizes, config.data, config.training, config.seed
    )
    return Updates(
        train,
        order,
        accumulate=config.training.accumulate,
        position=progress.position,
        sequence_format=SequenceFormat.of(config.data),
        pin_memory=machine.device.type == "cuda",
    )


def _expected_optimizer_tensors(model: Transformer) -> dict[str, Tensor]:
    """Names, shapes and types that Adam's state must have."""
    expected = {}
    for name, parameter in model.named_parameters():
        expected[f"{name}.step"] = torch.zeros(())
        expected[f"{name}.exp_avg"] = parameter.detach()
        expected[f"{name}.exp_avg_sq"] = parameter.detach()
    return expected


def _part(state: Mapping[str, Any], name: str, checkpoint: Checkpoint) -> Mapping[str, Any]:
    part = state.get(name)
    if not isinstance(part, dict):
        raise DataError(f"{checkpoint.folder}/state.json: {name} is missing")
    return part
