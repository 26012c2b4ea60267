"""The benchmark of training: the loop and the batches of `tfm train` under a stopwatch, what limits them, and trials of other settings."""

import logging
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.profiler import ProfilerActivity, profile

from transformer_cli.acceleration.accelerate import num_compiled_graphs
from transformer_cli.acceleration.flop import flop_counter, work_of_batch
from transformer_cli.acceleration.recorded_passes import RecordedPasses, are_recorded
from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.config import Config, load_config
from transformer_cli.config.loading import override_settings
from transformer_cli.data.preparation import PreparedData
from transformer_cli.data.sources.corpus import is_streaming
from transformer_cli.data.streaming import require_shareable
from transformer_cli.data.updates import Batch
from transformer_cli.extensions.benchmark import advice, measuring
from transformer_cli.extensions.benchmark.advice import MachineFacts, Suggestion, setting
from transformer_cli.extensions.benchmark.measuring import Figures, Observed, Pacing, Stopwatch, Timed
from transformer_cli.model import Transformer
from transformer_cli.process.device import forget_peak_memory, peak_memory, peak_of_data_sheet, prepare_machine
from transformer_cli.process.torchrun import Launch
from transformer_cli.storage import temporary_folder
from transformer_cli.training.advice import one_or_two_digits
from transformer_cli.training.batch_size import with_fitting_batches
from transformer_cli.training.callbacks import Callback, Callbacks, StepReport
from transformer_cli.training.initial_weights import data_of
from transformer_cli.training.loop import run_loop
from transformer_cli.training.process_group import ALONE
from transformer_cli.training.run import build_session, checked_machine

logger = logging.getLogger(__name__)

PHASES = ("waiting for data", "forward", "output and loss", "backward", "optimizer", "other")
"""The phases of an update, in their order. "forward" ends with the decoder; "output and loss" has on a CPU the gradients of both
too; "optimizer" has the clipping of the gradient."""
DATA, FORWARD, LOSS, BACKWARD, OPTIMIZER, OTHER = PHASES
REPLAY = "replay of CUDA graphs"
PHASES_OF_REPLAYS = (DATA, REPLAY, OPTIMIZER, OTHER)
"""With `runtime.cuda_graphs`: forward and backward pass are started as a whole."""
WHAT_IS_OTHER = (
    "Other work (Python code of the training loop, copies of batches to the device, the moving average of the weights, "
    "logging)"
)
NEVER = 10**9
MOST_ROUNDS_OF_PREPARATION = 10
MUCH_PADDING, MUCH_WAITING, LARGEST_RAISE = 0.1, 0.02, 8.0
MEMORY_TO_USE = 0.8  # a suggestion leaves the rest for batches that differ
MUCH_BUSY = 0.75  # of the time of a GPU; from here on, recordings that start all kernels at once gain little
# Larger updates change what a model learns from the same number of tokens, so they must gain more than noise.
LEAST_GAIN_OF_LARGER_BATCHES = 1.15
NUM_PROFILED = 3


def measure_training(config_path: str, overrides: Sequence[str], *, num_updates: int | None) -> tuple[Config, Figures]:
    """Measure the training of a config, with random weights; nothing stays on the disk, and no run changes."""
    config = load_config(config_path, overrides)
    # A missing device, and a stream that cannot be shared out, are errors before the corpus is read.
    checked_machine(config, Launch())
    if is_streaming(config.data):
        require_shareable(config.data, config.training.accumulate, 1)
    with temporary_folder("tfm-benchmark-") as folder:
        data = data_of(config, folder / "data")
        return config, benchmark_training(config, data, folder / "run", measuring.Pacing(num_updates=num_updates))


class Trainee:
    """A model that is trained as `tfm train` does it, but without an end, and nothing is validated, saved or written into its folder."""

    def __init__(self, config: Config, data: PreparedData, folder: Path) -> None:
        self.machine = prepare_machine(config.runtime, records=are_recorded(config, torch.device("cuda")))
        self.num_threads = torch.get_num_threads()
        if config.training.batch_tokens == "auto":
            config = with_fitting_batches(config, data, self.machine)
        self.session = build_session(RunFolder(folder), config, data, self.machine, ALONE)
        never = dict.fromkeys(("max_steps", "save_every", "validate_every"), NEVER)
        endless = config.training.model_copy(update=never | {"max_epochs": None, "patience": None})
        self.experiment = replace(self.session.experiment, training=endless)
        self._folder = folder

    @contextmanager
    def changed(self, overrides: Sequence[str]) -> Iterator["Trainee"]:
        """A model that is trained with other settings, until the end of the block; its shapes are prepared."""
        config = override_settings(self.session.config, overrides)
        with closing(Trainee(config, self.session.data, self._folder)) as other:
            other.prepare_shapes()
            yield other

    def prepare_shapes(self) -> None:
        """Train until no batch needs a compilation (`runtime.compile`) or a recording (`runtime.cuda_graphs`), which take long."""
        compilation, recorded = self.session.compilation, self.experiment.runner.recorded
        is_prepared = not (compilation.layers or compilation.loss or recorded)
        for _ in range(0 if is_prepared else MOST_ROUNDS_OF_PREPARATION):
            before = num_compiled_graphs(), recorded and recorded.num_recordings
            self.train(0.0, at_least=20)
            if before == (num_compiled_graphs(), recorded and recorded.num_recordings):
                return

    def close(self) -> None:
        """Stop the thread that prepares batches."""
        self.experiment.updates.__exit__()

    def train(self, seconds: float, *, at_least: int = 1, at_most: int = NEVER, phases: bool = False) -> list[Timed]:
        """Train on from where the last call ended. To measure `phases` may slow the updates on a GPU."""
        torch.set_num_threads(self.num_threads)
        stopwatch, timed = Stopwatch(self.machine.device, phases=phases), list[Timed]()
        ends_at = time.perf_counter() + seconds
        experiment, recorded = self.experiment, self.experiment.runner.recorded
        next_batches = stopwatch.around(experiment.updates.__next__, OTHER, DATA)

        def next_update() -> list[Batch]:
            batches: list[Batch] = next_batches()
            timed.append(_counted(batches, recorded))
            return batches

        changes: dict[str, Any] = {"updates": Observed(experiment.updates, next_one=next_update)}
        if recorded is None:
            changes["objective"] = stopwatch.around(experiment.objective, OTHER, LOSS)
        else:
            replay = stopwatch.around(recorded.sum_gradients, OTHER, REPLAY)
            changes["runner"] = replace(experiment.runner, recorded=cast(Any, Observed(recorded, sum_gradients=replay)))

        class Limit(Callback):
            """Ends each lap with its update, and the training after the given time."""

            def on_step(self, step: int, report: StepReport) -> None:
                stopwatch.end_lap(OTHER)
                timed[-1].num_halvings = report.num_halvings

            def should_stop(self) -> bool:
                is_late = time.perf_counter() >= ends_at and len(timed) >= at_least
                return is_late or len(timed) == at_most

        with ExitStack() as hooks, self.session.compiling():
            # No hook runs in a replay, and one that runs while a pass is recorded would be recorded too.
            for hook in _marking_hooks(stopwatch, None if recorded else experiment.model) if phases else ():
                hooks.callback(hook.remove)
            self.session.progress = run_loop(
                replace(experiment, **changes),
                self.session.progress,
                self.session.meter,
                validate=lambda *_: None,
                save=lambda *_: None,
                callbacks=Callbacks([Limit()]),
            )
        stopwatch.give_times(timed, PHASES if recorded is None else PHASES_OF_REPLAYS)
        return timed


def _counted(batches: Sequence[Batch], recorded: RecordedPasses | None) -> Timed:
    """An update with the size of its batches, which recorded passes pad further; without its time."""
    target_tokens = sum(one.num_target_tokens for one in batches)
    num_cells = sum(one.source_ids.numel() + one.target_ids.numel() for one in batches)
    if recorded is not None:
        num_cells = sum(2 * shape.num_pairs * shape.length for shape in map(recorded.shape_of, batches))
    return Timed(
        work=sum(map(work_of_batch, batches), Timed().work),
        target_tokens=target_tokens,
        num_tokens=target_tokens + sum(one.num_source_tokens for one in batches),
        num_cells=num_cells,
        num_batches=len(batches),
    )


def _marking_hooks(stopwatch: Stopwatch, model: Transformer | None) -> Iterator[Any]:
    """Hooks of PyTorch that mark the phases. After the last parameter has its gradient, the backward pass has ended, so each marks it."""
    yield register_optimizer_step_post_hook(lambda *_: stopwatch.mark(OPTIMIZER))
    if model is not None:
        yield model.decoder.register_forward_hook(lambda *_: stopwatch.mark(FORWARD))
        for parameter in model.parameters():
            if parameter.requires_grad:
                yield parameter.register_post_accumulate_grad_hook(lambda _: stopwatch.mark(BACKWARD))


def benchmark_training(config: Config, data: PreparedData, folder: Path, pacing: Pacing) -> Figures:
    """Measure the training of a config on this machine; try suggested settings in short trials."""
    with closing(Trainee(config, data, folder)) as trainee:
        machine, experiment, described = trainee.machine, trainee.experiment, trainee.machine.describe()
        figures = _measured(trainee, pacing)
        situation = Situation(
            trainee.session.config,
            MachineFacts.of(machine),
            num_batches=sum(1 for _ in experiment.updates.producer.order.batches(0)),
            are_layers_compiled=trainee.session.compilation.layers,
            are_passes_recorded=experiment.runner.recorded is not None,
        )
        trials = advice.advised(
            training_limit(figures),
            training_suggestions(figures, situation),
            trainee,
            lambda one, unit: measuring.speed_of(one.train(pacing.turn_seconds), unit),
            pacing,
        )
        num_parameters = sum(one.numel() for one in experiment.model.parameters())
        return {"machine": described, "num_parameters": num_parameters, "figures": figures} | trials


def _measured(trainee: Trainee, pacing: Pacing) -> Figures:
    """The figures of a training. A spread is over updates, the warm-up left out; a share is from 0 to 1."""
    machine, config, model = trainee.machine, trainee.session.config, trainee.experiment.model
    limits: dict[str, Any] = {"at_least": pacing.num_updates or 3, "at_most": pacing.num_updates or NEVER}
    logger.info("warming up")
    trainee.prepare_shapes()
    num_rows = trainee.train(pacing.warm_up_seconds, at_least=3)[-1].num_cells // 2
    own_shape = num_rows, config.model.d_model, config.model.d_ff
    products, peak = measuring.measure_products(machine, own_shape, seconds=pacing.product_seconds)
    logger.info("measuring the speed of updates")
    forget_peak_memory(machine.device)
    speed = trainee.train(pacing.speed_seconds, **limits)
    memory = peak_memory(machine.device, has_graphs=trainee.experiment.runner.recorded is not None)
    logger.info("measuring the phases of an update")  # in further updates: to mark them takes time
    marked = trainee.train(pacing.phases_seconds, **limits, phases=True)
    flop_of, passes = flop_counter(model, trains=True), config.training.num_predictions
    laps, unit = [update.phases for update in marked], measuring.unit_of_speed(machine.device.type)
    found = measuring.figures_of("update", speed, laps, lambda work: passes * flop_of(work), peak, unit)
    together = measuring.speed_of(speed, "second")  # unlike the median, this has the few updates that take long
    busy = peak_of_sheet = None
    if machine.device.type == "cuda":
        # Updates take longer than usual here, because PyTorch's profiler writes down each kernel.
        with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:
            profiled = trainee.train(0.0, at_least=NUM_PROFILED, at_most=NUM_PROFILED)
        kernels = measuring.kernel_seconds(profiler.key_averages())
        # The seconds in kernels for a token, of those without a profiler; two streams may compute at the same time.
        busy = min(1.0, kernels / sum(update.target_tokens for update in profiled) * together)
        peak_of_sheet = peak_of_data_sheet(torch.cuda.get_device_name(machine.device), machine.precision)
    return found | {
        "num_updates": len(speed),
        "target_tokens_per_second_together": together,
        "target_tokens_per_update": measuring.spread(update.target_tokens for update in speed),
        "batches_per_update": sum(update.num_batches for update in speed) / len(speed),
        "memory": memory,
        "num_halvings": sum(update.num_halvings for update in (*speed, *marked)),
        "products": products,
        "peak": peak,
        "share_of_data_sheet": peak_of_sheet and found["flop_per_second"]["median"] / peak_of_sheet,
        "busy_share": busy,
    }


def training_limit(figures: Figures) -> str:
    """One sentence: the phase that takes the most time, and the share of the peak."""
    phases, of_sheet, busy = figures["phases"], figures["share_of_data_sheet"], figures["busy_share"]
    name, waiting = measuring.longest_of(phases), phases[DATA]["share"]
    parts = [
        f"{WHAT_IS_OTHER if name == OTHER else name.capitalize()} takes {phases[name]['share']:.0%} of an update of "
        f"{figures['update_milliseconds']['median']:,.0f} ms; the matrix products reach "
        f"{figures['share_of_peak']:.0%} of this machine's peak"
    ]
    if of_sheet is not None:
        parts[0] += f" and {of_sheet:.0%} of that of its data sheet"
    if busy is not None:
        parts.append(f"the GPU computes {busy:.0%} of the time")
    if waiting >= MUCH_WAITING:
        parts.append(f"waiting for data takes {waiting:.0%}: one thread prepares the batches")
    if figures["num_halvings"]:
        parts.append(f"{figures['num_halvings']} batches did not fit into memory and were cut in two")
    return "; ".join(parts)


class Situation(NamedTuple):
    """Settings and facts, beside the figures, on which a suggestion depends."""

    config: Config
    machine: MachineFacts
    num_batches: int  # of an epoch
    are_layers_compiled: bool = False
    are_passes_recorded: bool = False


def training_suggestions(figures: Figures, situation: Situation) -> list[Suggestion]:
    """What is worth a trial, the largest expected gain first."""
    machine, waiting, padding = situation.machine, figures["phases"][DATA]["share"], figures["padding_share"]
    found = [*machine.suggestions(), *_larger_batches(figures, situation)]
    if machine.device == "cuda":
        found += _for_a_gpu(figures["busy_share"], situation)
    if machine.device == "cpu" and waiting >= MUCH_WAITING and 2 < machine.num_threads >= machine.num_cores:
        because = f"waiting for data takes {waiting:.0%} of an update"
        change = f"runtime.threads={machine.num_threads - 1}"
        what = f"leave a core for the thread that prepares batches: set {change}"
        found.append(Suggestion(because, what, (change,), 1.0 / (1.0 - waiting)))
    if padding >= MUCH_PADDING:  # sentences of a smaller batch differ less in their lengths
        gain = (1.0 - padding / 2) / (1.0 - padding)
        found.append(Suggestion(f"padding is {padding:.0%} of a batch", *_resized(situation.config, 0.5), gain))
    return advice.worth_trying(found)


def _for_a_gpu(busy: float, situation: Situation) -> Iterator[Suggestion]:
    """Of a GPU that is busy for a share of the time, and else waits for the CPU, which starts its kernels."""
    runtime, is_waiting = situation.config.runtime, busy < MUCH_BUSY
    if not situation.are_layers_compiled and runtime.compile is not True:
        # Joined kernels read and write less memory; a GPU that waits for the CPU does not become faster by that.
        yield setting("the layers are not compiled", "runtime.compile=true", 1.05 if is_waiting else 1.2)
    may_record = runtime.sharding == "none" and not situation.config.model.layer_dropout
    if is_waiting and may_record and not situation.are_passes_recorded:
        because = f"the GPU computes only {busy:.0%} of the time and waits for the CPU to start its kernels"
        yield setting(because, "runtime.cuda_graphs=true", min(3.0, 1.0 / max(busy, 0.01)))


def _larger_batches(figures: Figures, situation: Situation) -> Iterator[Suggestion]:
    used, usable = measuring.used_and_usable(figures["memory"])
    training = situation.config.training
    if used is None or usable is None:
        return
    # More fits, because libraries and weights take no more memory with a larger batch.
    factor = min(LARGEST_RAISE, MEMORY_TO_USE * usable / used, situation.num_batches / 50)
    if training.update_tokens is not None:
        # One batch is the least; a larger one would make the update larger than the setting says.
        factor = min(factor, figures["batches_per_update"])
    if factor < 1.5:
        return
    # An update that keeps its size consists of fewer batches. Matrix products are larger, and the work that is done
    # once per batch is done less often.
    keeps_update = training.accumulate > 1 or training.update_tokens is not None
    once = (OTHER,) if keeps_update else (OTHER, OPTIMIZER)
    less_often = sum(figures["phases"][name]["share"] for name in once)
    gain = 1.0 / (1.0 - less_often * (1.0 - 1.0 / factor))
    if situation.machine.device != "cpu":
        gain = max(gain, min(factor, 0.5 / max(figures["share_of_peak"], 0.01)))
    least = advice.LEAST_GAIN if keeps_update else LEAST_GAIN_OF_LARGER_BATCHES
    yield Suggestion(f"{used / usable:.0%} of the memory is used", *_resized(situation.config, factor), gain, least)


def _resized(config: Config, factor: float) -> tuple[str, tuple[str, ...]]:
    """Larger or smaller batches, of which an update has fewer or more if its size is set; in words and as overrides."""
    training, unit = config.training, "training.batch_tokens"
    before = training.batch_tokens
    assert before != "auto"  # a number was found when the trainee was made
    if before is None:
        unit, before = "training.batch_sentences", training.batch_sentences or 1
    if training.accumulate > 1:
        accumulate = math.ceil(training.accumulate / factor)
        size = before * training.accumulate // accumulate
        what = f"set {unit} to {size:,} and training.accumulate to {accumulate}"
        return what, (f"{unit}={size}", f"training.accumulate={accumulate}")
    size = one_or_two_digits(before * factor)
    effect = f"an update then sees {size / before:.1f} times as many tokens"
    if training.update_tokens is not None:
        effect = f"an update keeps its size of about {training.update_tokens:,} target tokens"
    return f"{'raise' if factor > 1.0 else 'lower'} {unit} to {size:,} ({effect})", (f"{unit}={size}",)
