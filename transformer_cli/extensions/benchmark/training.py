"""The benchmark of training: measure, suggest, try, conclude."""

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from transformer_cli.checkpoint.run_folder import RUNS, RunFolder
from transformer_cli.config import Config, load_config
from transformer_cli.data.order import epoch_order, padding_share
from transformer_cli.data.preparation import PreparedData, open_prepared, prepare_data, take_over
from transformer_cli.data.sources.corpus import is_streaming
from transformer_cli.data.streaming import require_shareable
from transformer_cli.extensions.benchmark.advice import (
    LEAST_GAIN,
    MachineFacts,
    Suggestion,
    Trial,
    conclusion,
    other_precision,
    other_threads,
    tried,
    worth_trying,
)
from transformer_cli.extensions.benchmark.flop import flop_counter
from transformer_cli.extensions.benchmark.measuring import (
    PeakMemory,
    Phase,
    ProductSpeed,
    Spread,
    busy_seconds,
    bytes_in_use,
    flop_per_second,
    measure_products,
    peak_memory,
    peak_of,
    peak_of_data_sheet,
    phases_of,
    start_measuring,
)
from transformer_cli.extensions.benchmark.timed_updates import (
    DATA,
    OPTIMIZER,
    OTHER,
    TimedUpdate,
    Trainee,
)
from transformer_cli.process.device import (
    prepare_machine,
    require_cuda_graphs,
    require_training_precision,
)
from transformer_cli.process.signals import cleaned_up
from transformer_cli.storage import remove
from transformer_cli.training.initial_weights import load_initial_model

logger = logging.getLogger(__name__)


LEAST_BATCH_TOKENS = 256
MUCH_PADDING, MUCH_WAITING = 0.1, 0.02
MEMORY_TO_USE = 0.8
"""The share of the memory that a suggestion plans to use; the rest is for batches that differ."""
LARGEST_RAISE = 8.0
MUCH_BUSY = 0.75
"""The share of the time that a GPU computes, from which on recordings that start all kernels at once gain little."""
SMALL_SHARE = 0.15
"""A share of the peak below which the short kernels of a model may be what limits a GPU."""
LEAST_GAIN_OF_LARGER_BATCHES = 1.15
"""Larger updates change what a model learns from the same number of tokens, so they must gain more than noise."""
WHAT_IS_OTHER = (
    "Other work (Python code of the training loop, copies of batches to the device, the moving average of the weights, "
    "logging)"
)


@dataclass(frozen=True, slots=True)
class TrainingPacing:
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
class TrainingFigures:
    """What was measured. A spread is over updates, the warm-up left out."""

    num_updates: int
    target_tokens_per_second: Spread
    target_tokens_per_second_together: float
    """All target tokens divided by all seconds: unlike the median, it has the few updates that take long."""
    target_tokens_per_cpu_second: Spread
    target_tokens_per_update: Spread
    batches_per_update: float
    """The mean; `training.accumulate` or `training.update_tokens` may add up several."""
    padding_share: float
    """Share of padding (0 to 1) in the source and target ids of all batches."""
    update_milliseconds: Spread
    phases: dict[str, Phase]
    """Measured in further updates, so that marking them slows no speed above."""
    memory: PeakMemory
    num_halvings: int
    """How often a batch was cut in two, because memory was too small."""
    flop_per_target_token: float
    """FLOP of the matrix products of forward and backward pass, for both predictions of R-Drop; padding needs none."""
    flop_per_second: Spread
    """On a CPU per CPU-second."""
    products: tuple[ProductSpeed, ...]
    peak: ProductSpeed
    """The fastest of `products`."""
    share_of_peak: float
    share_of_data_sheet: float | None = None
    """Of the FLOP a second in the data sheet of the card; None if it is not known."""
    busy_share: float | None = None
    """The share of the time (0 to 1) in which an NVIDIA GPU computes; the rest of the time it waits for the CPU."""


@dataclass(frozen=True, slots=True)
class Situation:
    """Settings and facts, beside the figures, on which a suggestion depends."""

    config: Config
    machine: MachineFacts
    num_batches: int
    """Of an epoch."""
    fixed_bytes: int
    """Memory that does not grow with the batch: libraries, weights, gradients and the optimizer's state."""
    padding_at: Mapping[int, float]
    """The share of padding for other values of training.batch_tokens."""
    are_layers_compiled: bool = False

    @property
    def batch(self) -> tuple[str, int]:
        """The setting of the size of a batch, and its value."""
        training = self.config.training
        assert training.batch_tokens != "auto"  # a number was found when the trainee was made
        if training.batch_tokens is not None:
            return "training.batch_tokens", training.batch_tokens
        return "training.batch_sentences", training.batch_sentences or 1

    @property
    def keeps_update(self) -> bool:
        """Whether an update keeps its size when batches are larger: it then consists of fewer batches."""
        training = self.config.training
        return training.accumulate > 1 or training.update_tokens is not None


@dataclass(frozen=True, slots=True)
class TrainingBenchmark:
    """What the benchmark of a training found."""

    machine: str
    num_parameters: int
    figures: TrainingFigures
    trials: list[Trial]
    conclusion: str


def measure_training(
    config_path: str, overrides: Sequence[str], *, num_updates: int | None
) -> tuple[Config, TrainingBenchmark]:
    """Measure the training of a config; nothing stays on the disk, and no run changes."""
    config = load_config(config_path, overrides)
    require_training_precision(config.runtime)
    # A missing device, and a stream that cannot be shared out, are errors before the corpus is read.
    require_cuda_graphs(config.runtime, prepare_machine(config.runtime))
    if is_streaming(config.data):
        require_shareable(config.data, config.training.accumulate, 1)
    pacing = TrainingPacing(num_updates=num_updates)
    with data_to_measure(config) as (data, folder):
        return config, benchmark_training(config, data, folder / "run", pacing)


@contextmanager
def data_to_measure(config: Config) -> Iterator[tuple[PreparedData, Path]]:
    """The data of a config, and a temporary folder.

    The prepared data are those of the run of this name if they fit the config; else they are prepared in the folder.
    Then they are encoded by the tokenizers of `training.init_from`, if it is set. The weights of that run are not used,
    because they do not change the speed.
    """
    # Windows deletes no file that is mapped into memory.
    with (
        TemporaryDirectory(prefix="tfm-benchmark-", ignore_cleanup_errors=True) as name,
        cleaned_up(lambda: remove([Path(name)])),
    ):
        folder, run = Path(name), RunFolder(RUNS / config.name)
        if (found := open_prepared(config, run.data_folder)) is not None:
            logger.info("%s: these prepared data are used", run.data_folder)
            yield found, folder
            return
        initial = load_initial_model(config, run.path)
        logger.info("preparing the data in a temporary folder")
        take_over(config, folder / "data", RUNS)
        tokenizers = None if initial is None else initial.tokenizers
        prepared = prepare_data(config, folder / "data", has_begun=False, tokenizers=tokenizers)
        yield prepared, folder


def benchmark_training(
    config: Config, data: PreparedData, folder: Path, pacing: TrainingPacing
) -> TrainingBenchmark:
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
        fixed = bytes_in_use(trainee.machine.device) + 3 * sum(p.nbytes for p in model.parameters())
        figures = _measured(trainee, pacing)
        situation = Situation(
            trainee.config,
            MachineFacts.of(trainee.machine),
            num_batches=sum(1 for _ in trainee.session.experiment.updates.order.batches(0)),
            fixed_bytes=fixed,
            padding_at=_padding_of_smaller_batches(trainee, data),
            are_layers_compiled=trainee.session.compilation.layers,
        )
        worth = training_suggestions(figures, situation)[: pacing.num_trials]

        def tokens_per(one: Trainee, unit: str) -> float:
            updates = one.train(pacing.turn_seconds)
            spent = sum(update.spent(unit) for update in updates)
            return sum(update.work.target_tokens for update in updates) / spent

        trials = [
            tried(one, trainee, trainee.changed, tokens_per, num_turns=pacing.num_turns)
            for one in worth
        ]
    concluded = conclusion(training_limit(figures), trials)
    return TrainingBenchmark(machine, num_parameters, figures, trials, concluded)


def _measured(trainee: Trainee, pacing: TrainingPacing) -> TrainingFigures:
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
    start_measuring(device)
    speed = trainee.train(pacing.speed_seconds, at_least=at_least, at_most=at_most)
    memory = peak_memory(device, has_graphs=trainee.config.runtime.cuda_graphs)
    logger.info("measuring the phases of an update")
    phases = trainee.train(pacing.phases_seconds, at_least=at_least, at_most=at_most, phases=True)
    flop_of = flop_counter(trainee.session.experiment.model, trains=True)
    num_predictions = trainee.config.training.num_predictions
    flops = [num_predictions * flop_of(update.work) for update in speed]
    flop_speed, peak = flop_per_second(flops, speed, device), peak_of(products)
    of_data_sheet = (
        peak_of_data_sheet(torch.cuda.get_device_name(device), trainee.machine.precision)
        if device.type == "cuda"
        else None
    )
    tokens = sum(u.work.target_tokens for u in speed)
    seconds_of_a_token = sum(u.seconds for u in speed) / tokens
    return TrainingFigures(
        num_updates=len(speed),
        target_tokens_per_second=Spread.of(u.work.target_tokens / u.seconds for u in speed),
        target_tokens_per_second_together=tokens / sum(u.seconds for u in speed),
        target_tokens_per_cpu_second=Spread.of(u.work.target_tokens / u.cpu_seconds for u in speed),
        target_tokens_per_update=Spread.of(u.work.target_tokens for u in speed),
        batches_per_update=sum(u.num_batches for u in speed) / len(speed),
        padding_share=1.0 - sum(u.num_tokens for u in speed) / sum(u.num_cells for u in speed),
        update_milliseconds=Spread.of(1000.0 * u.seconds for u in phases),
        phases=phases_of([update.phases for update in phases], tuple(phases[0].phases)),
        memory=memory,
        num_halvings=sum(update.num_halvings for update in (*speed, *phases)),
        flop_per_target_token=sum(flops) / sum(u.work.target_tokens for u in speed),
        flop_per_second=flop_speed,
        products=tuple(products),
        peak=peak,
        share_of_peak=flop_speed.median / peak.flop_per_second.median,
        share_of_data_sheet=None if of_data_sheet is None else flop_speed.median / of_data_sheet,
        busy_share=_busy_share(trainee, seconds_of_a_token),
    )


NUM_PROFILED = 3


def _busy_share(trainee: Trainee, seconds_of_a_token: float) -> float | None:
    """The seconds in kernels for a target token, of the seconds that it takes without a profiler."""
    profiled: list[TimedUpdate] = []

    def work() -> None:
        profiled.extend(trainee.train(0.0, at_least=NUM_PROFILED, at_most=NUM_PROFILED))

    seconds = busy_seconds(trainee.machine.device, work)
    if seconds is None:
        return None
    # Two streams may compute at the same time.
    return min(1.0, seconds / sum(u.work.target_tokens for u in profiled) / seconds_of_a_token)


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


def training_limit(figures: TrainingFigures) -> str:
    """One sentence: the phase that takes the most time, and the share of the peak."""
    name, phase = max(figures.phases.items(), key=lambda item: item[1].share)
    subject = WHAT_IS_OTHER if name == OTHER else f"{name[0].upper()}{name[1:]}"
    limit = (
        f"{subject} takes {phase.share:.0%} of an update of "
        f"{figures.update_milliseconds.median:,.0f} ms; the matrix products reach "
        f"{figures.share_of_peak:.0%} of this machine's peak"
    )
    if figures.share_of_data_sheet is not None:
        limit += f" and {figures.share_of_data_sheet:.0%} of that of its data sheet"
    if figures.busy_share is not None:
        limit += f"; the GPU computes {figures.busy_share:.0%} of the time"
    waiting = figures.phases[DATA].share
    if waiting >= MUCH_WAITING:
        limit += f"; waiting for data takes {waiting:.0%}: one thread prepares the batches"
    if figures.num_halvings:
        limit += f"; {figures.num_halvings} batches did not fit into memory and were cut in two"
    return limit


def training_suggestions(figures: TrainingFigures, situation: Situation) -> list[Suggestion]:
    """What is worth a trial, the largest expected gain first."""
    of_machine = (other_precision(situation.machine), other_threads(situation.machine))
    rules = (_compiling, _cuda_graphs, _core_for_data, _padding, _larger_batches)
    return worth_trying([*of_machine, *(rule(figures, situation) for rule in rules)])


def _compiling(figures: TrainingFigures, situation: Situation) -> Suggestion | None:
    is_compiled = situation.are_layers_compiled or situation.config.runtime.compile is True
    if situation.machine.device != "cuda" or is_compiled:
        return None
    because = "the layers are not compiled"
    # Joined kernels read and write less memory; a GPU that waits for the CPU does not become faster by that.
    gain = 1.05 if is_waiting(figures) else 1.2
    return Suggestion(because, "set runtime.compile=true", ("runtime.compile=true",), gain)


def is_waiting(figures: TrainingFigures) -> bool:
    """Whether the GPU often waits for the CPU to start its kernels, as far as that is known."""
    return figures.busy_share is not None and figures.busy_share < MUCH_BUSY


def _cuda_graphs(figures: TrainingFigures, situation: Situation) -> Suggestion | None:
    share, runtime = figures.share_of_peak, situation.config.runtime
    may_record = runtime.sharding == "none" and not situation.config.model.layer_dropout
    is_open = may_record and not runtime.cuda_graphs
    if situation.machine.device != "cuda" or not is_open:
        return None
    if figures.busy_share is not None:
        if not is_waiting(figures):
            return None
        because = f"the GPU computes only {figures.busy_share:.0%} of the time and waits for the CPU to start its kernels"
        gain = min(3.0, 1.0 / max(figures.busy_share, 0.01))
        return Suggestion(because, "set runtime.cuda_graphs=true", ("runtime.cuda_graphs=true",), gain)  # fmt: skip
    if share > SMALL_SHARE:
        return None
    because = f"the matrix products reach only {share:.0%} of the peak, as if the GPU waited for the CPU to start them"
    gain = min(2.0, SMALL_SHARE / max(share, 0.01))
    return Suggestion(because, "set runtime.cuda_graphs=true", ("runtime.cuda_graphs=true",), gain)


def _core_for_data(figures: TrainingFigures, situation: Situation) -> Suggestion | None:
    waiting, now = figures.phases[DATA].share, situation.machine.num_threads
    has_no_core = now > 2 and now >= situation.machine.num_cores
    if situation.machine.device != "cpu" or waiting < MUCH_WAITING or not has_no_core:
        return None
    because = f"waiting for data takes {waiting:.0%} of an update"
    what = f"leave a core for the thread that prepares batches: set runtime.threads={now - 1}"
    return Suggestion(because, what, (f"runtime.threads={now - 1}",), 1.0 / (1.0 - waiting))


def _padding(figures: TrainingFigures, situation: Situation) -> Suggestion | None:
    now = figures.padding_share
    if now < MUCH_PADDING or not situation.padding_at:
        return None
    batch_tokens, padding = min(situation.padding_at.items(), key=lambda item: item[1])
    because = f"padding is {now:.0%} of a batch"
    overrides: tuple[str, ...] = (f"training.batch_tokens={batch_tokens}",)
    verb = "lower training.batch_tokens to"
    if situation.batch[0] == "training.batch_sentences":
        overrides = ("training.batch_sentences=null", *overrides)
        verb = "replace training.batch_sentences by training.batch_tokens:"
    what = f"{verb} {batch_tokens:,}, which leaves {padding:.0%}"
    return Suggestion(because, what, overrides, (1.0 - padding) / (1.0 - now))


def _larger_batches(figures: TrainingFigures, situation: Situation) -> Suggestion | None:
    factor = min(LARGEST_RAISE, _room_for_batches(figures, situation), situation.num_batches / 50)
    if situation.config.training.update_tokens is not None:
        # One batch is the least; a larger one would make the update larger than the setting says.
        factor = min(factor, figures.batches_per_update)
    if factor < 1.5:
        return None
    # Matrix products are larger, and the work that is done once per batch is done less often.
    less_often = figures.phases[OTHER].share
    if not situation.keeps_update:
        less_often += figures.phases[OPTIMIZER].share
    gain = 1.0 / (1.0 - less_often * (1.0 - 1.0 / factor))
    if situation.machine.device != "cpu":
        gain = max(gain, min(factor, 0.5 / max(figures.share_of_peak, 0.01)))
    least = LEAST_GAIN if situation.keeps_update else LEAST_GAIN_OF_LARGER_BATCHES
    because = f"{figures.memory.used_share or 0.0:.0%} of the memory is used"
    return Suggestion(because, *_raised(situation, factor), gain, least)


def _room_for_batches(figures: TrainingFigures, situation: Situation) -> float:
    """How many times as large batches fit into memory."""
    used, usable = figures.memory.used_and_usable
    if used is None or usable is None or used <= situation.fixed_bytes:
        return 1.0
    room = MEMORY_TO_USE * usable - situation.fixed_bytes
    return room / (used - situation.fixed_bytes)


def _raised(situation: Situation, factor: float) -> tuple[str, tuple[str, ...]]:
    """Larger batches, of which an update has fewer if its size is set; in words and as overrides."""
    (setting, before), training = situation.batch, situation.config.training
    if training.accumulate > 1:
        accumulate = math.ceil(training.accumulate / factor)
        size = before * training.accumulate // accumulate
        changes = (f"{setting}={size}", f"training.accumulate={accumulate}")
        return (
            f"raise {setting} to {size:,} and lower training.accumulate to {accumulate}",
            changes,
        )
    size = _rounded(before * factor)
    if training.update_tokens is not None:
        effect = f"an update keeps its size of about {training.update_tokens:,} target tokens"
    else:
        effect = f"an update then sees {size / before:.1f} times as many tokens"
    return f"raise {setting} to {size:,} ({effect})", (f"{setting}={size}",)


def _rounded(number: float) -> int:
    """Two digits, then zeros; rounded down."""
    step: int = 10 ** max(0, len(str(int(number))) - 2)
    return int(number) // step * step
