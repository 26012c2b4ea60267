"""How a run shows itself: progress bar, log lines, metrics.jsonl and TensorBoard."""

import logging
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

from transformer_cli.errors import TfmError
from transformer_cli.evaluation.validation import ValidationReport
from transformer_cli.storage import append_json_line, cut_json_lines
from transformer_cli.training.loop import TrainingReport

if TYPE_CHECKING:
    from matplotlib.figure import Figure

logger = logging.getLogger(__name__)


class TrainingConsole:
    """Shows one run of `tfm train`, from the step that it starts or resumes at."""

    def __init__(self, run_folder: Path, *, first_step: int, num_steps: int | None) -> None:
        self.metrics_file = run_folder / "metrics.jsonl"
        self.tensorboard_folder = run_folder / "tensorboard"
        self.first_step = first_step
        self.num_steps = num_steps
        self.bar: tqdm[Any] | None = None
        self.board: _EventFile | None = None
        self.is_recording = True
        self.is_warned = False

    def __enter__(self) -> "TrainingConsole":
        try:
            # What an earlier process logged after the step that we resume at happens again.
            cut_json_lines(self.metrics_file, after_step=self.first_step)
        except TfmError as error:
            self.is_recording = False  # or steps would stand there twice
            self._warn(error)
        try:
            self.board = _EventFile(self.tensorboard_folder, first_step=self.first_step)
        except OSError as error:
            self._warn(error)
        self.bar = tqdm(
            total=self.num_steps,
            initial=self.first_step,
            unit=" steps",
            disable=not sys.stderr.isatty(),
            dynamic_ncols=True,
            smoothing=0.05,
        )
        return self

    def __exit__(self, *exception: object) -> None:
        if self.bar is not None:
            self.bar.close()
        if self.board is not None:
            self.board.close()

    def tick(self, step: int) -> None:
        if self.bar is not None:
            self.bar.update(step - self.bar.n)

    def show_training(self, report: TrainingReport) -> None:
        """One report of the training loss."""
        speed = f"{report.target_tokens_per_second:,.0f} tok/s"
        has_bar = self.bar is not None and not self.bar.disable
        if self.bar is not None and has_bar:
            self.bar.set_postfix_str(
                f"loss {report.loss:.3f}, lr {report.learning_rate:.1e}, {speed}"
            )
        steps = f"{report.step}/{self.num_steps}" if self.num_steps else f"{report.step}"
        logger.info(
            "step %s  epoch %d  loss %.4f  lr %.2e  %s",
            steps, report.epoch, report.loss, report.learning_rate, speed,
            extra={"is_on_the_bar": has_bar},
        )  # fmt: skip
        self._record({"kind": "train"} | asdict(report))
        self._draw(
            report.step,
            {
                "loss/train": report.loss,
                "loss/train_objective": report.objective,
                "training/learning_rate": report.learning_rate,
                "training/gradient_norm": report.gradient_norm,
                "training/target_tokens_per_second": report.target_tokens_per_second,
                "training/source_tokens_per_second": report.source_tokens_per_second,
                "training/skipped_updates": report.num_skipped,
                "training/epoch": report.epoch,
            },
        )

    def show_validation(self, step: int, report: ValidationReport) -> None:
        """One validation: its figures, and sample translations as text."""
        scores = "".join(f"  {score.name} {score.value:.2f}" for score in report.scores)
        logger.info(
            "step %d  validation: loss %.4f  perplexity %.2f%s",
            step, report.loss, report.perplexity, scores,
        )  # fmt: skip
        self._record({"kind": "validation", "step": step} | report.as_json())
        curves = {"loss/validation": report.loss, "perplexity/validation": report.perplexity}
        self._draw(step, curves | {f"scores/{score.name}": score.value for score in report.scores})
        for number, sample in enumerate(report.samples):
            shown = (
                f"    SOURCE     {sample.source}\n"
                f"    TARGET     {sample.target}\n"
                f"    PREDICTED  {sample.predicted}"
            )
            logger.info("%s", shown)
            self._on_board(step, "text", f"samples/{number}", shown)

    def show_picture(self, step: int, name: str, figure: "Figure") -> None:
        """A matplotlib figure, to TensorBoard."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        canvas = FigureCanvasAgg(figure)
        canvas.draw()  # type: ignore[no-untyped-call]
        pixels = np.asarray(canvas.buffer_rgba())  # type: ignore[no-untyped-call]
        self._on_board(step, "image", name, pixels, dataformats="HWC")

    def _draw(self, step: int, curves: Mapping[str, float]) -> None:
        for name, value in curves.items():
            self._on_board(step, "scalar", name, value)

    def _record(self, line: Mapping[str, Any]) -> None:
        if not self.is_recording:
            return
        try:
            append_json_line(self.metrics_file, line)
        except TfmError as error:
            self._warn(error)

    def _on_board(self, step: int, kind: str, *content: Any, **options: Any) -> None:
        """Curves are not worth a run: a full disk costs them, and one warning."""
        if self.board is None:
            return
        try:
            self.board.add(step, kind, *content, **options)
        except OSError as error:
            self.board.close()
            self.board = None
            self._warn(error)

    def _warn(self, error: Exception) -> None:
        if not self.is_warned:
            reason = error.message if isinstance(error, TfmError) else error
            logger.warning("metrics cannot be written any more (%s); the run goes on", reason)
        self.is_warned = True


class _EventFile:
    """A file for TensorBoard, in which each event stands as soon as it happens.

    PyTorch's SummaryWriter leaves that to a thread, which dies with a traceback when the disk is full,
    and names its files by the clock, which may jump; TensorBoard reads them in the order of their names.
    """

    def __init__(self, folder: Path, *, first_step: int) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog

        folder.mkdir(parents=True, exist_ok=True)
        number = len(list(folder.iterdir()))
        self._file = (folder / f"events.out.tfevents.{number:06d}").open("xb", buffering=0)
        # What an earlier file holds from this step on is void.
        start = SessionLog(status=SessionLog.START)
        try:
            self._write(Event(wall_time=time.time(), file_version="brain.Event:2"))
            self._write(Event(wall_time=time.time(), step=first_step + 1, session_log=start))
        except OSError:
            self.close()
            raise

    def add(self, step: int, kind: str, *content: Any, **options: Any) -> None:
        """Add what a function of `torch.utils.tensorboard.summary` makes: a scalar, a text, an image."""
        from tensorboard.compat.proto.event_pb2 import Event
        from torch.utils.tensorboard import summary

        made = getattr(summary, kind)(*content, **options)
        self._write(Event(wall_time=time.time(), step=step, summary=made))

    def close(self) -> None:
        self._file.close()

    def _write(self, event: Any) -> None:
        from tensorboard.summary.writer.record_writer import RecordWriter

        RecordWriter(self._file).write(event.SerializeToString())
