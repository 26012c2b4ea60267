"""The benchmark of training: measure, suggest, try, conclude."""

import logging
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from transformer_cli.config import Config
from transformer_cli.config.loading import override_settings
from transformer_cli.data.order import epoch_order, padding_share
from transformer_cli.data.preparation import PreparedData
from transformer_cli.extensions.benchmark.advice.machine_settings import MachineFacts
from transformer_cli.extensions.benchmark.advice.trials import Suggestion, Trial, conclusion, tried
from transformer_cli.extensions.benchmark.measuring import peak_memory
from transformer_cli.extensions.benchmark.measuring.matrix_products import measure_products
from transformer_cli.extensions.benchmark.measuring.model_flop import Work
from transformer_cli.extensions.benchmark.measuring.training_flop import training_flop
from transformer_cli.extensions.benchmark.training.timed_updates import Trainee
from transformer_cli.extensions.benchmark.training.training_bottleneck import (
    Situation,
    limit_of,
    suggestions,
)
from transformer_cli.extensions.benchmark.training.training_figures import (
    TrainingFigures,
    figures_of,
)
from transformer_cli.process.errors import TfmError

logger = logging.getLogger(__name__)

LEAST_BATCH_TOKENS = 256


@dataclass(frozen=True, slots=True)
class Pacing:
    """How long is measured."""

    num_updates: int | None = None
    """Updates of each of the two series; None: as many as fit into the seconds."""
    warm_up_seconds: float = 3.0
    speed_seconds: float = 10.0
    phases_seconds: float = 5.0
    product_seconds: float = 0.5
    """For each shape of matrix product."""
    turn_seconds: float = 1.5
    """In a trial: how long each of the two configs trains per turn."""
    num_turns: int = 3
    num_trials: int = 2


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """What the benchmark of a training found."""

    machine: str
    num_parameters: int
    figures: TrainingFigures
    trials: list[Trial]
    conclusion: str


def benchmark_training(
    config: Config, data: PreparedData, folder: Path, pacing: Pacing
) -> TrainingReport:
    """Measure the training of a config on this machine; try suggested settings in short trials.

    Args:
        config: of the experiment.
        data: the prepared corpus.
        folder: an empty folder, in which nothing is written.
        pacing: how long to measure.

    Raises:
        ConfigError: the config asks for a device that this machine does not have.
        TryAgainError: memory is too small for the model.
    """
    with ExitStack() as stack:
        trainee = Trainee(config, data, folder)
        stack.callback(trainee.close)
        machine = trainee.machine.describe()
        model = trainee.session.experiment.model
        num_parameters = sum(parameter.numel() for parameter in model.parameters())
        fixed = _bytes_in_use(trainee) + 3 * sum(p.nbytes for p in model.parameters())
        figures = _measured(trainee, pacing)
        situation = _situation(trainee, data, fixed)
        worth = suggestions(figures, situation)[: pacing.num_trials]
        trials = [_tried(one, trainee, data, folder, pacing) for one in worth]
    concluded = conclusion(limit_of(figures), trials)
    return TrainingReport(machine, num_parameters, figures, trials, concluded)


def _measured(trainee: Trainee, pacing: Pacing) -> TrainingFigures:
    device, at_most = trainee.machine.device, pacing.num_updates
    at_least = at_most or 3
    model = trainee.config.model
    logger.info("warming up")
    trainee.prepare_shapes()
    warm_up = trainee.train(pacing.warm_up_seconds, at_least=3)
    logger.info("measuring the speed of matrix products")
    num_rows = warm_up[-1].num_cells // 2
    own_shape = num_rows, model.d_model, model.d_ff
    products = measure_products(trainee.machine, own_shape, seconds=pacing.product_seconds)
    logger.info("measuring the speed of updates")
    peak_memory.start_measuring(device)
    speed = trainee.train(pacing.speed_seconds, at_least=at_least, at_most=at_most)
    memory = peak_memory.peak_memory(device, has_graphs=trainee.config.runtime.cuda_graphs)
    logger.info("measuring the phases of an update")
    phases = trainee.train(pacing.phases_seconds, at_least=at_least, at_most=at_most, phases=True)
    return figures_of(
        speed,
        phases,
        flop=_flop_of_updates(trainee),
        memory=memory,
        products=products,
        on_cpu=device.type == "cpu",
    )


def _flop_of_updates(trainee: Trainee) -> Callable[[Work], int]:
    """The FLOP of updates with some work. R-Drop predicts each pair twice."""
    num_predictions = 1 if trainee.config.training.r_drop is None else 2
    model = trainee.session.experiment.model
    return partial(training_flop, model, num_predictions=num_predictions)


def _bytes_in_use(trainee: Trainee) -> int:
    device = trainee.machine.device
    if device.type == "cuda":
        return torch.cuda.memory_allocated(device)
    return peak_memory.resident_bytes() or 0


def _situation(trainee: Trainee, data: PreparedData, fixed_bytes: int) -> Situation:
    config, training = trainee.config, trainee.config.training
    assert training.batch_tokens != "auto"  # a number was found when the trainee was made
    by_tokens = training.batch_tokens is not None
    order = trainee.session.experiment.updates.order
    return Situation(
        machine=MachineFacts.of(trainee.machine),
        batch_setting="training.batch_tokens" if by_tokens else "training.batch_sentences",
        batch_size=training.batch_tokens or training.batch_sentences or 1,
        accumulate=training.accumulate,
        update_tokens=training.update_tokens,
        num_batches=sum(1 for _ in order.batches(0)),
        fixed_bytes=fixed_bytes,
        is_compiled=config.runtime.compile,
        may_record=_may_record(config),
        padding_at=_padding_of_smaller_batches(trainee, data),
    )


def _may_record(config: Config) -> bool:
    """Whether `runtime.cuda_graphs` is possible with the other settings, and not set."""
    runtime = config.runtime
    is_possible = not config.model.layer_dropout and runtime.sharding == "none"
    return is_possible and not runtime.cuda_graphs


def _padding_of_smaller_batches(trainee: Trainee, data: PreparedData) -> dict[int, float]:
    """The padding with a half, a quarter and an eighth of the tokens in a batch; nothing is trained for that."""
    config = trainee.config
    cells = trainee.cells_of_largest_batch
    found = {}
    for tokens in (cells // 2, cells // 4, cells // 8):
        if tokens >= LEAST_BATCH_TOKENS:
            sizes = {"batch_tokens": tokens, "batch_sentences": None}
            changed = config.model_copy(
                update={"training": config.training.model_copy(update=sizes)}
            )
            order = epoch_order(data.train.lengths, data.train.corpus_sizes, changed)
            found[tokens] = padding_share(order, max_batches=200)
    return found


def _tried(
    suggestion: Suggestion, trainee: Trainee, data: PreparedData, folder: Path, pacing: Pacing
) -> Trial:
    """Train with and without the change, in turns."""
    logger.info("trying %s", " ".join(suggestion.overrides))
    try:
        changed = override_settings(trainee.config, suggestion.overrides)
        other = Trainee(changed, data, folder)
    except TfmError as error:
        return Trial(suggestion, None, failure=error.message)
    changes_threads = other.num_threads != trainee.num_threads
    unit = MachineFacts.of(trainee.machine).unit(changes_threads=changes_threads)
    before, after = (
        partial(_tokens_per, unit, one, pacing.turn_seconds) for one in (trainee, other)
    )
    try:
        other.prepare_shapes()
        return tried(suggestion, before, after, num_turns=pacing.num_turns, unit=unit)
    except TfmError as error:
        return Trial(suggestion, None, unit=unit, failure=error.message)
    finally:
        other.close()


def _tokens_per(unit: str, trainee: Trainee, seconds: float) -> float:
    updates = trainee.train(seconds)
    num_tokens = sum(update.work.target_tokens for update in updates)
    by_cpu = unit == "CPU-second"
    return num_tokens / sum(update.cpu_seconds if by_cpu else update.seconds for update in updates)
