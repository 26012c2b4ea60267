"""The progress bar of a training run, on a terminal."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tqdm import tqdm
from tqdm.utils import disp_len

from transformer_cli.process.torchrun import read_launch
from transformer_cli.training.callbacks import Callback, StepReport, TrainingReport

FORMATS = (
    "{l_bar}{bar}{r_bar}",
    "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]",
    "{l_bar}{bar}| {n_fmt}/{total_fmt}{postfix}",
    "{n_fmt}/{total_fmt}{postfix}",
)
"""Formats of the bar for tqdm, from a wide terminal to a narrow one."""
LEAST_BAR = 8


def progress_bars() -> list[Callback]:
    """The bar of a training, where standard error is a terminal; of several processes only the first has one."""
    return [ProgressBar()] if sys.stderr.isatty() and read_launch().rank == 0 else []


class ProgressBar(Callback):
    """Steps done, the loss and the speed; shows nothing where standard error is no terminal.

    On a narrow terminal it leaves out the least important: the learning rate, the speed, then the times.
    """

    def __init__(self) -> None:
        self.bar: tqdm[Any] | None = None
        self.facts: tuple[str, ...] = ()

    def on_start(self, first_step: int, num_steps: int | None) -> None:
        self.bar = tqdm(
            total=num_steps,
            initial=first_step,
            unit=" steps",
            disable=None,  # where standard error is no terminal
            dynamic_ncols=True,
            smoothing=0.05,
        )
        self._fit()

    def on_step(self, step: int, report: StepReport) -> None:
        if self.bar is not None:
            self.bar.update(step - self.bar.n)

    def on_report(self, report: TrainingReport) -> None:
        speed = f"{report.target_tokens_per_second:,.0f} tok/s"
        self.facts = f"loss {report.loss:.3f}", f"lr {report.learning_rate:.1e}", speed
        self._fit()

    def on_end(self) -> None:
        if self.bar is not None:
            self.bar.close()

    def _fit(self) -> None:
        """Choose the format and the facts by the width of the terminal, which may have changed."""
        if self.bar is None or self.bar.disable:
            return
        state = self.bar.format_dict
        self.bar.bar_format, self.bar.postfix = layout(state, self.facts, state["ncols"])
        self.bar.refresh()


def layout(state: Mapping[str, Any], facts: Sequence[str], num_columns: int | None) -> tuple[str, str]:
    """The first format and facts that fit into the terminal, with room for a bar; the narrowest if none fits.

    Args:
        state: `format_dict` of a bar of tqdm.
        facts: the texts after the bar; the first is the loss.
        num_columns: width of the terminal; None: unknown, so nothing is left out.
    """
    shown = [", ".join(kept) for kept in (facts, facts[::2], facts[:1])]
    choices = [
        *((FORMATS[0], text) for text in shown),
        *((form, shown[-1]) for form in FORMATS[1:]),
    ]
    for form, text in choices:
        without_bar = form.replace("{bar}", "")
        fields = {**state, "bar_format": without_bar, "postfix": text, "ncols": None}
        width = disp_len(tqdm.format_meter(**fields)) + (LEAST_BAR if "{bar}" in form else 0)
        if num_columns is None or width <= num_columns:
            return form, text
    return choices[-1]
