"""How a run talks: progress bar, log, metrics.jsonl and TensorBoard."""

import logging
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tqdm import tqdm

from transformer_cli.evaluation.validation import ValidationReport
from transformer_cli.storage import append_json_line
from transformer_cli.training.loop import TrainingReport

logger = logging.getLogger("transformer_cli")


class TrainingConsole:
    """Shows one run of `tfm train`, from the step that it starts or resumes at."""

    def __init__(self, run_folder: Path, *, first_step: int, num_steps: int | None) -> None:
        self.metrics_file = run_folder / "metrics.jsonl"
        self.tensorboard_folder = run_folder / "tensorboard"
        self.first_step = first_step
        self.num_steps = num_steps
        self.bar: tqdm[Any] | None = None
        self.board: Any = None
        self.is_warned = False

    def __enter__(self) -> "TrainingConsole":
        from torch.utils.tensorboard import SummaryWriter

        # What an earlier process logged after the step that we resume from is hidden: it happens again.
        self._guarded(lambda: self._open_board(SummaryWriter))
        self.bar = tqdm(
            total=self.num_steps,
            initial=self.first_step,
            unit=" steps",
            disable=not sys.stderr.isatty(),
            dynamic_ncols=True,
            smoothing=0.05,
        )
        return self

    def _open_board(self, writer: Any) -> None:
        self.board = writer(str(self.tensorboard_folder), purge_step=self.first_step + 1)

    def __exit__(self, *exception: object) -> None:
        if self.bar is not None:
            self.bar.close()
        if self.board is not None:
            self._guarded(self.board.close)

    def tick(self, step: int) -> None:
        if self.bar is not None:
            self.bar.update(step - self.bar.n)

    def show_training(self, report: TrainingReport) -> None:
        """One report of the training loss."""
        if self.bar is not None:
            self.bar.set_postfix_str(
                f"loss {report.loss:.3f}, lr {report.learning_rate:.1e}, {report.target_tokens_per_second:,.0f} tok/s"
            )
        if not sys.stderr.isatty():
            logger.info(
                "step %d%s  epoch %d  loss %.4f  lr %.2e  %s tok/s",
                report.step,
                f"/{self.num_steps}" if self.num_steps else "",
                report.epoch,
                report.loss,
                report.learning_rate,
                f"{report.target_tokens_per_second:,.0f}",
            )
        curves = {
            "loss/train": report.loss,
            "loss/train_objective": report.objective,
            "training/learning_rate": report.learning_rate,
            "training/gradient_norm": report.gradient_norm,
            "training/target_tokens_per_second": report.target_tokens_per_second,
            "training/source_tokens_per_second": report.source_tokens_per_second,
            "training/skipped_updates": report.num_skipped,
            "training/epoch": report.epoch,
        }
        self._record(report.step, "train", curves)

    def show_validation(self, step: int, report: ValidationReport, *, is_best: bool) -> None:
        """One validation: its figures, and sample translations as text."""
        scores = "  ".join(f"{score.name} {score.value:.2f}" for score in report.scores)
        logger.info(
            "step %d  validation: loss %.4f  perplexity %.2f  %s%s",
            step, report.loss, report.perplexity, scores, "  (best so far)" if is_best else "",
        )  # fmt: skip
        curves = {
            "loss/validation": report.loss,
            "perplexity/validation": report.perplexity,
        } | {f"scores/{score.name}": score.value for score in report.scores}
        self._record(step, "validation", curves)
        for number, sample in enumerate(report.samples):
            text = f"    SOURCE     {sample.source}\n    TARGET     {sample.target}\n    PREDICTED  {sample.predicted}"
            logger.info("%s", text)
            self._on_board(lambda n=number, t=text: self.board.add_text(f"samples/{n}", t, step))

    def show_picture(self, step: int, name: str, figure: Any) -> None:
        """A matplotlib figure, to TensorBoard."""
        self._on_board(lambda: self.board.add_figure(name, figure, step))

    def _record(self, step: int, kind: str, curves: Mapping[str, float]) -> None:
        names = {name.rpartition("/")[2] if kind == "train" else name: value for name, value in curves.items()}
        line = {"step": step, "kind": kind} | {
            name.replace("loss/validation", "loss").replace("perplexity/validation", "perplexity").replace("scores/", ""): value
            for name, value in names.items()
        }
        self._guarded(lambda: append_json_line(self.metrics_file, line))
        for name, value in curves.items():
            self._on_board(lambda n=name, v=value: self.board.add_scalar(n, v, step))

    def _on_board(self, write: Callable[[], None]) -> None:
        if self.board is not None:
            self._guarded(write)

    def _guarded(self, write: Callable[[], None]) -> None:
        """Curves are not worth a run: a full disk costs them, and one warning."""
        try:
            write()
        except OSError as error:
            self.board = None
            if not self.is_warned:
                logger.warning("metrics cannot be written any more (%s); the run goes on", error)
            self.is_warned = True
