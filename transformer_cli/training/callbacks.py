"""Callbacks: what a caller adds to a training run, such as a progress bar or a log; the reports that they get; the recorder of a run."""

import io
import logging
import math
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from operator import attrgetter
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import torch
from torch import Tensor

from transformer_cli.checkpoint.run_folder import RunFolder, StateValues
from transformer_cli.config import Config
from transformer_cli.decoding.translator import Translator
from transformer_cli.evaluation import ValidationReport
from transformer_cli.evaluation.validation import Sample, attention_picture
from transformer_cli.process.device import wait_for
from transformer_cli.process.errors import TfmError
from transformer_cli.process.signals import SignalRequests
from transformer_cli.storage import KnownFolder, append_json_line, cut_json_lines, keep_json_lines

logger = logging.getLogger(__name__)


class Callback:
    """Override the methods that you need; they do nothing by default.

    An exception in a callback ends the training; the last checkpoint stays.
    """

    def on_start(self, first_step: int, num_steps: int | None) -> None:
        """The training begins.

        Args:
            first_step: updates that are done already; above 0 when a run is resumed.
            num_steps: the last step of the run; `patience` may end it earlier.
        """

    def on_step(self, step: int, report: "StepReport") -> None:
        """An update is done. Do not read its tensors here: the CPU waits for the GPU."""

    def on_report(self, report: "TrainingReport") -> None:
        """Loss and speed since the last report: every `training.log_every` steps, and at max_steps or max_epochs."""

    def on_validation(self, step: int, report: ValidationReport, translator: Translator) -> None:
        """A validation is done; `translator` uses the weights of this step, and only during this call."""

    def on_save(self, step: int, folder: Path) -> None:
        """A checkpoint is on the disk.

        A checkpoint is written before the validation of its step, which may take long, and once more behind it if the
        validation has given it a score: then this is called twice for the step.
        """

    def should_stop(self) -> bool:
        """Whether to end the training with a checkpoint; asked before the first step and after each one."""
        return False

    def should_stop_now(self) -> bool:
        """Whether to end the training during a validation, as a signal does; asked between its batches.

        Then the validation has no result, and the next call of `train` does it again. A time limit belongs into
        `should_stop`: here, a limit shorter than a validation would stop every validation.
        """
        return False

    def should_save(self) -> bool:
        """Whether to write a checkpoint now and go on; asked between steps, and by one process alone between batches of a validation.

        `on_save` follows. Several processes do not talk during a validation: they save after it.
        """
        return False

    def on_end(self) -> None:
        """The training has ended, perhaps with an error; called once per `on_start`."""


class Callbacks:
    """Several callbacks as one: those that override a method are called in turn, and the others are left out."""

    def __init__(self, callbacks: Iterable[Callback] = ()) -> None:
        self._callbacks = tuple(callbacks)
        names = [name for name in vars(Callback) if name.startswith(("on_", "should_"))]
        self._overridden: dict[str, list[Callable[..., Any]]] = {
            name: [
                method
                for method in (getattr(one, name) for one in self._callbacks)
                if getattr(method, "__func__", None) is not getattr(Callback, name)
            ]
            for name in names
        }

    @contextmanager
    def running(self, first_step: int, num_steps: int | None) -> Iterator[None]:
        """Call `on_start`, and at the end `on_end` of each callback that was started."""
        with ExitStack() as ends:
            for callback in self._callbacks:
                if callback.on_start in self._overridden["on_start"]:
                    callback.on_start(first_step, num_steps)
                if callback.on_end in self._overridden["on_end"]:
                    ends.callback(callback.on_end)
            yield

    def call(self, name: str, *facts: Any) -> list[Any]:
        """What the methods of this name return, of the callbacks that override it.

        Args:
            name: of a method of `Callback`, such as on_step.
            facts: its arguments.
        """
        return [method(*facts) for method in self._overridden[name]]


@dataclass
class SignalsObeyed(Callback):
    """Ends the training after the step, or the batch of a validation, in which a signal came; or saves there."""

    requests: SignalRequests

    def should_stop(self) -> bool:
        return self.requests.signal_number is not None

    should_stop_now = should_stop

    def should_save(self) -> bool:
        return self.requests.wants_save

    def on_save(self, step: int, folder: Path) -> None:
        self.requests.wants_save = False


# What is measured between two reports: sums of losses and tokens, and the speed.


@dataclass(frozen=True, slots=True)
class StepReport:
    """What one update did, in all processes; the tensors stay on the device, so that no step waits for it."""

    objective: Tensor  # () label-smoothed loss, summed over target tokens, in nats
    negative_log_likelihood: Tensor  # () summed over target tokens, in nats; gives the perplexity
    gradient_norm: Tensor  # () before clipping
    is_finite: Tensor  # () bool; if False, weights and moments stayed as they were
    num_source_tokens: int
    num_target_tokens: int
    num_halvings: int = 0  # how often the batches were cut in two, because memory was too small
    # () bool, in float16 alone: the update was skipped, and a smaller scale of the gradient may help.
    is_scale_too_large: Tensor | None = None


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """The training since the last report; losses are means per target token."""

    step: int
    epoch: int
    objective: float  # label-smoothed, in nats
    loss: float  # negative log-likelihood, in nats
    learning_rate: float
    gradient_norm: float  # of the last update, before clipping
    target_tokens_per_second: float
    source_tokens_per_second: float
    num_skipped: int  # updates of the whole run that were skipped, because the gradient was not finite
    num_target_tokens: int  # that the means count, so without those of skipped updates
    gradient_scale: float | None = None  # of the next update, in float16; None in other precisions


class Meter:
    """The speed, and sums since the last report; the sums stay on the device until they are needed."""

    LOSSES = ("objective", "negative_log_likelihood")
    FIELDS = (*LOSSES, "num_target_tokens", "num_skipped", "num_skipped_in_a_row")

    def __init__(self, device: torch.device) -> None:
        self._device = device
        # float64, because float32 rounds sums over many steps; Apple GPUs have no float64.
        dtype = torch.float32 if device.type == "mps" else torch.float64
        self.sums: dict[str, Tensor] = {name: torch.zeros((), dtype=dtype, device=device) for name in self.FIELDS}
        self.start_lap()

    def start_lap(self) -> None:
        """Measure the speed from now on: over all tokens, those of skipped updates included."""
        self.num_source_tokens_seen = self.num_target_tokens_seen = 0
        self._lap_started_at = time.perf_counter()

    def add(self, report: StepReport) -> None:
        """Count one update; a skipped update adds no loss and no tokens to the sums."""
        is_skipped = ~report.is_finite
        for name in self.LOSSES:
            value = getattr(report, name).to(self.sums[name].dtype)
            self.sums[name] += torch.where(is_skipped, 0.0, value)
        self.sums["num_target_tokens"] += report.num_target_tokens * report.is_finite
        self.sums["num_skipped"] += is_skipped
        in_a_row = self.sums["num_skipped_in_a_row"]
        # While float16 searches for its scale, skipped updates say nothing about the training.
        may_be_scale = report.is_scale_too_large
        is_bad = is_skipped if may_be_scale is None else is_skipped & ~may_be_scale
        self.sums["num_skipped_in_a_row"] = (in_a_row + is_bad) * is_skipped
        self.num_source_tokens_seen += report.num_source_tokens
        self.num_target_tokens_seen += report.num_target_tokens

    def end_interval(
        self, step: int, epoch: int, last: StepReport, *, learning_rate: float, gradient_scale: float | None
    ) -> TrainingReport:
        """The report on the updates since the last one; then the sums are 0, and skipped updates are counted over the whole run.

        The losses are per target token, NaN if every update was skipped; the speed is without pauses.

        Args:
            step, epoch, last, learning_rate: of the last update.
            gradient_scale: of the next update, in float16.
        """
        num_tokens = self.sums["num_target_tokens"].item()
        objective, loss = (self.sums[name].item() / (num_tokens or math.nan) for name in self.LOSSES)
        seconds = max(time.perf_counter() - self._lap_started_at, 1e-9)
        for name in (*self.LOSSES, "num_target_tokens"):
            self.sums[name] = torch.zeros_like(self.sums[name])
        return TrainingReport(
            step=step,
            epoch=epoch,
            objective=objective,
            loss=loss,
            learning_rate=learning_rate,
            gradient_norm=last.gradient_norm.item(),
            target_tokens_per_second=self.num_target_tokens_seen / seconds,
            source_tokens_per_second=self.num_source_tokens_seen / seconds,
            num_skipped=int(self.sums["num_skipped"].item()),
            num_target_tokens=int(num_tokens),
            gradient_scale=gradient_scale,
        )

    @contextmanager
    def paused(self, *, is_long: bool) -> Iterator[None]:
        """Leave out the time of the block, such as a validation or a save.

        Args:
            is_long: whether the block will take time; a GPU then first finishes the updates that are queued, because
                their time counts.
        """
        if is_long:
            wait_for(self._device)
        pause_started_at = time.perf_counter()
        yield
        self._lap_started_at += time.perf_counter() - pause_started_at

    def to_json(self) -> dict[str, float]:
        return {name: value.item() for name, value in self.sums.items()}

    def restore(self, values: StateValues | Mapping[str, Any]) -> None:
        """Put back what `to_json` gave.

        Raises:
            DataError: a value is missing, or cannot be that of a training run.
        """
        state = values if isinstance(values, StateValues) else StateValues(values, "state.json")
        for name in self.FIELDS:
            value = state.number(name)
            if name not in self.LOSSES and not (value >= 0.0 and value.is_integer()):
                raise state.refusal(name, f"is {value} instead of a whole number from 0 on")
            self.sums[name].fill_(value)


# What a run records in its folder: log lines, metrics.jsonl, and event files for TensorBoard.


PARTS = ("train", "validation")
LOSS = "loss"
NUM_PICTURES = 3
"""Of how many samples a validation draws the attention."""
# What extensions record, by the setting that asks for it: the module and the class of a callback that is made of the
# `Recorder`. It is imported when a training begins whose config asks for it.
RECORDED_BY_EXTENSIONS = {
    "validation.num_samples": "transformer_cli.extensions.lessons.explaining.learning:LearningRecorder"
}
_EVENTS = "events.out.tfevents."


def recorders(config: Config, folder: RunFolder) -> list[Callback]:
    """What records a run: the recorder of the core, then those of extensions that its config asks for."""
    recorder = Recorder(folder)
    found: list[Callback] = [recorder]
    for setting, place in RECORDED_BY_EXTENSIONS.items():
        if attrgetter(setting)(config):
            found.append(resolve_name(place)(recorder))
    return found


@dataclass(eq=False)
class Recorder(Callback):
    """Records one run; if a file cannot be written, it warns once and the run continues."""

    folder: RunFolder
    first_step: int = 0
    num_steps: int | None = None
    boards: "dict[str, _EventFile]" = field(default_factory=dict)
    known: KnownFolder | None = None
    is_recording: bool = True
    is_warned: bool = False
    is_lost: bool = False

    def on_start(self, first_step: int, num_steps: int | None) -> None:
        self.first_step, self.num_steps = first_step, num_steps
        self.known = KnownFolder(self.folder.path)
        try:
            # Steps after the checkpoint are trained again, and recorded again.
            for file in (self.folder.metrics_file, self.folder.learning_file):
                if file.exists():
                    cut_json_lines(file, after_step=first_step)
        except TfmError as error:
            self.is_recording = False  # otherwise steps would be recorded twice
            self._warn(error)
        try:
            folder = self.folder.tensorboard_folder
            if any(folder.glob(f"{_EVENTS}*")):
                # Earlier versions wrote here; their curves lose the steps that are trained again.
                _EventFile(folder, first_step=first_step).file.close()
            # TensorBoard puts curves of the same name into one chart, with one curve for each folder of event files.
            self.boards = {name: _EventFile(folder / name, first_step=first_step) for name in PARTS}
        except OSError as error:
            self._warn(error)

    def on_report(self, report: TrainingReport) -> None:
        # The last step may be an estimate.
        is_known = self.num_steps is not None and report.step <= self.num_steps
        steps = f"{report.step}/{self.num_steps}" if is_known else f"{report.step}"
        speed = f"{report.target_tokens_per_second:,.0f} tok/s"
        scale = report.gradient_scale
        scaled = "" if scale is None else f"  gradients x {scale:,.6g}"
        logger.info(
            "step %s  epoch %d  loss %.4f  lr %.2e  %s%s",
            steps,
            report.epoch,
            report.loss,
            report.learning_rate,
            speed,
            scaled,
            extra={"is_on_the_bar": sys.stderr.isatty()},
        )
        figures = {name: value for name, value in asdict(report).items() if value is not None}
        self.record({"kind": "train"} | figures, self.folder.metrics_file)
        self.draw(
            "train",
            report.step,
            {
                LOSS: report.loss,
                "training/objective": report.objective,
                "training/learning_rate": report.learning_rate,
                "training/gradient_norm": report.gradient_norm,
                "training/target_tokens_per_second": report.target_tokens_per_second,
                "training/source_tokens_per_second": report.source_tokens_per_second,
                "training/skipped_updates": report.num_skipped,
                "training/epoch": report.epoch,
                **({} if scale is None else {"training/gradient_scale": scale}),
            },
        )

    def on_validation(self, step: int, report: ValidationReport, translator: Translator) -> None:
        """Losses and scores, sample translations, and the attention of the first few samples."""
        scores = "".join(f"  {score.name} {score.value:.2f}" for score in report.scores)
        logger.info("step %d  validation: loss %.4f  perplexity %.2f%s", step, report.loss, report.perplexity, scores)
        line = {"kind": "validation", "step": step}
        for direction_report in report.directions:
            scores = "".join(f"  {score.name} {score.value:.2f}" for score in direction_report.scores)
            logger.info("    %s: loss %.4f%s", direction_report.direction, direction_report.loss, scores)
        self.record(line | report.as_json(), self.folder.metrics_file, replaced=line)
        curves = {LOSS: report.loss, "perplexity": report.perplexity}
        scored = {f"scores/{score.name}": score.value for score in report.scores}
        for one in report.directions:
            curves[f"losses/{one.direction}"] = one.loss
            scored |= {f"scores/{score.name}_{one.direction}": score.value for score in one.scores}
        self.draw("validation", step, curves | scored)
        for number, sample in enumerate(report.samples):
            shown = "\n".join(f"    {line}" for line in sample.lines())
            logger.info("%s", shown)
            self.draw("validation", step, {f"samples/{number}": shown}, kind="text")
        for number, sample in enumerate(report.samples[:NUM_PICTURES]):
            sample_translator = translator_of(sample, translator)
            if figure := attention_picture(sample_translator, sample.source, sample.predicted):
                self.draw("validation", step, {f"attention/{number}": figure}, kind="figure")

    def should_stop(self) -> bool:
        """True after the run folder was renamed or removed: then the training saves its state elsewhere and ends."""
        return self.is_lost

    def on_end(self) -> None:
        for board in self.boards.values():
            board.file.close()

    def draw(self, part: str, step: int, contents: Mapping[str, Any], *, kind: str = "scalar") -> None:
        """Show contents in TensorBoard.

        Args:
            part: one of `PARTS`.
            contents: by their names; numbers are points of curves.
            kind: of the contents, as in `_EventFile.add`.
        """
        for name, content in contents.items():
            if part not in self.boards:
                return
            try:
                self.boards[part].add(step, kind, name, content)
            except OSError as error:
                self.on_end()
                self.boards = {}
                self._warn(error)

    def record(self, line: Mapping[str, Any], file: Path, *, replaced: Mapping[str, Any] | None = None) -> None:
        """Append a line to a file of the run.

        Args:
            replaced: of a validation: its earlier lines have these values. A resumed run repeats the validation of its
                first step, so these lines are removed there.
        """
        if replaced is not None and replaced["step"] == self.first_step:
            self._forget(replaced, file)
        if self.known is not None and not self.known.is_in_place():
            self._leave(self.known)
        if not self.is_recording:
            return
        try:
            append_json_line(self.folder.path / file.name, line)
        except TfmError as error:
            self._warn(error)

    def _forget(self, line: Mapping[str, Any], file: Path) -> None:
        try:
            keep_json_lines(file, lambda record: not line.items() <= record.items())
        except TfmError as error:
            self._warn(error)

    def _leave(self, known: KnownFolder) -> None:
        """The folder was renamed or removed: ask to stop, and until then record in the renamed folder."""
        if not self.is_lost:
            logger.warning("%s was renamed or removed: saving and stopping", known.path)
        self.is_lost = True
        renamed = known.find_nearby()
        if renamed is None:
            self.is_recording = False
        else:
            self.folder, self.known = RunFolder(renamed), KnownFolder(renamed)

    def _warn(self, error: Exception) -> None:
        if not self.is_warned:
            reason = error.message if isinstance(error, TfmError) else error
            logger.warning("metrics cannot be written any more (%s); the run goes on", reason)
        self.is_warned = True


def translator_of(sample: Sample, translator: Translator) -> Translator:
    """The translator in the direction of a sample."""
    if sample.direction is None:
        return translator
    return translator.towards(sample.direction.target, sample.direction.source)


class _EventFile:
    """A file for TensorBoard; each event is on the disk as soon as it is added.

    PyTorch's SummaryWriter is not used: its thread ends with a traceback if the disk is full, and
    it names files by the clock, which may jump. TensorBoard reads files in the order of their names.
    """

    def __init__(self, folder: Path, *, first_step: int) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.summary.writer.record_writer import RecordWriter

        folder.mkdir(parents=True, exist_ok=True)
        names = (re.fullmatch(rf"{re.escape(_EVENTS)}(\d+)", path.name) for path in folder.iterdir())
        number = max((int(name[1]) for name in names if name), default=-1) + 1
        self.file = (folder / f"{_EVENTS}{number:06d}").open("xb", buffering=0)
        self.events = RecordWriter(self.file)
        # From this step on, TensorBoard ignores earlier files.
        start = SessionLog(status=SessionLog.START)
        try:
            self.events.write(Event(wall_time=time.time(), file_version="brain.Event:2").SerializeToString())
            begin = Event(wall_time=time.time(), step=first_step + 1, session_log=start)
            self.events.write(begin.SerializeToString())
        except OSError:
            self.file.close()
            raise

    def add(self, step: int, kind: str, name: str, content: Any) -> None:
        """Add an event; `kind` is figure, or names a function of `torch.utils.tensorboard.summary`, such as text."""
        from tensorboard.compat.proto.event_pb2 import Event

        if kind == "figure":
            # PyTorch's `summary.image` would copy the pixels of the drawing as float32, four times their size.
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from tensorboard.compat.proto.summary_pb2 import Summary

            canvas, png = FigureCanvasAgg(content), io.BytesIO()
            canvas.print_png(png)  # type: ignore[no-untyped-call]
            width, height = canvas.get_width_height()
            image = Summary.Image(width=width, height=height, colorspace=4, encoded_image_string=png.getvalue())
            made = Summary(value=[Summary.Value(tag=name, image=image)])
        else:
            from torch.utils.tensorboard import summary

            made = getattr(summary, kind)(name, content)
        event = Event(wall_time=time.time(), step=step, summary=made)
        self.events.write(event.SerializeToString())
