"""A training session: model, optimizer and data of one process, from the opening of a run to the end of the loop; how it validates and saves."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from transformer_cli.acceleration.accelerate import compilation_errors_explained
from transformer_cli.acceleration.compilation import NOTHING, Compilation
from transformer_cli.checkpoint import (
    Snapshot,
    portable_files,
)
from transformer_cli.checkpoint.checkpoints import Checkpoints
from transformer_cli.checkpoint.run_folder import goodness
from transformer_cli.config import Config, TrainingConfig
from transformer_cli.data.pairs import SentencePair
from transformer_cli.data.preparation import PreparedData
from transformer_cli.data.updates import Updates
from transformer_cli.decoding import Translator
from transformer_cli.decoding.loading import build_translator
from transformer_cli.evaluation import validate
from transformer_cli.model import Transformer
from transformer_cli.process.device import (
    return_freed_memory,
)
from transformer_cli.text.sentences import SEEN_LENGTHS, UNKNOWN_LENGTHS, SeenLengths
from transformer_cli.training.callbacks import Callbacks, Meter
from transformer_cli.training.initial_weights import (
    INIT_FROM,
)
from transformer_cli.training.joining import (
    SharedEngine,
    StoppedError,
)
from transformer_cli.training.loop import (
    Experiment,
    Progress,
    Validated,
    run_loop,
)
from transformer_cli.training.optimizers import (
    GRADIENT_SCALE,
    tensors_to_save,
)
from transformer_cli.training.process_group import gathered, whole_copy

logger = logging.getLogger(__name__)


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
    validation: dict[str, Any] = field(default_factory=dict)  # the last one: its step and figures
    origin: dict[str, Any] = field(default_factory=dict)  # of the initial weights; empty: random
    seen: SeenLengths = UNKNOWN_LENGTHS
    """The lengths of the texts that the model has seen, with those of the run of its initial weights."""
    compilation: Compilation = NOTHING
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
        # Each step switches it back.
        model = (average.model if average else self.experiment.model).eval()
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
        self.callbacks.call("on_validation", step, report, translator)
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
        data = self.config.data
        if data.cleaning.normalize_invisible is None:
            # A run of an earlier version was validated on sources with their invisible characters. With other sources it
            # might stop at another step or keep another checkpoint.
            cleaning = data.cleaning.model_copy(update={"normalize_invisible": False})
            data = data.model_copy(update={"cleaning": cleaning})
        config = self.config.model_copy(update={"data": data})
        machine = self.experiment.machine
        return build_translator(model, *self.data.tokenizers, config, machine, decoding=decoding)

    @cached_property
    def _files(self) -> dict[str, bytes]:
        """The config and the tokenizers, which are the same in each checkpoint."""
        return portable_files(self.config, *self.data.tokenizers)

    def _save(self, progress: Progress, meter: Meter) -> None:
        processes = self.experiment.runner.processes
        is_validated = self.validation.get("step") == progress.step
        experiment = self.experiment
        model, optimizer = tensors_to_save(
            experiment.model, experiment.optimizer, experiment.average
        )
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
                **(
                    {GRADIENT_SCALE: scale.to_json()}
                    if (scale := experiment.optimizer.scale)
                    else {}
                ),
                **({INIT_FROM: self.origin} if self.origin else {}),
            },
            files=self._files,
        )
        score = self.validation["value"] if is_validated else None
        if processes.is_alone:
            folder = self.checkpoints.save(snapshot, score)
        else:
            folder = Path(processes.from_main(lambda: str(self.checkpoints.save(snapshot, score))))
        self.callbacks.call("on_save", progress.step, folder)


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
