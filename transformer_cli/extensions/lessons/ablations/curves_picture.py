"""The picture of an ablation: the training loss of each variant over the steps, and one figure of the trained models."""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.extensions.lessons.ablations.ablation import Ablation
from transformer_cli.extensions.lessons.ablations.laboratory import Outcome
from transformer_cli.extensions.lessons.ablations.measurements import MEASURES
from transformer_cli.storage import read_json_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The palette of Okabe and Ito 2008, and lines that can be told apart without colours.
STYLES = (("#0072b2", "-"), ("#d55e00", "--"), ("#009e73", ":"))


def curves_picture(ablation: Ablation, outcomes: Sequence[Outcome]) -> bytes:
    """A PNG file; equal runs give equal bytes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.6), dpi=100, layout="constrained")
    figure.suptitle(ablation.subject, x=0.01, ha="left", fontsize=11)
    curves, bars = figure.subplots(1, 2, width_ratios=(1.7, 1))
    _draw_curves(curves, outcomes)
    _draw_bars(bars, ablation, outcomes)
    png = io.BytesIO()
    figure.savefig(png, format="png", metadata={"Software": None})
    return png.getvalue()


def _draw_curves(axes: "Axes", outcomes: Sequence[Outcome]) -> None:
    """One line for each training; variants that differ only in decoding share one."""
    folders: list[object] = []
    for outcome, (colour, line) in zip(outcomes, STYLES, strict=False):
        if outcome.folder in folders:
            continue
        folders.append(outcome.folder)
        steps, losses = zip(*_losses(RunFolder(outcome.folder)), strict=True)
        axes.plot(steps, losses, color=colour, linestyle=line, linewidth=1.8, label=outcome.label)
    axes.set_xlabel("step")
    axes.set_title("training loss, nats per token", fontsize=10, loc="left")
    axes.grid(alpha=0.3)
    axes.set_ylim(bottom=0)
    if len(folders) > 1:
        axes.legend(frameon=False)


def _draw_bars(axes: "Axes", ablation: Ablation, outcomes: Sequence[Outcome]) -> None:
    """The figure that shows the difference, as a bar for each variant."""
    measure = MEASURES[ablation.drawn]
    values = [outcome.figures[ablation.drawn] for outcome in outcomes]
    colours = [colour for colour, _ in STYLES[: len(outcomes)]]
    bars = axes.barh([outcome.label for outcome in outcomes], values, color=colours, height=0.5)
    axes.bar_label(bars, fmt=f"%.{measure.digits}f", padding=4)
    axes.set_title(measure.title, fontsize=10, loc="left")
    axes.invert_yaxis()
    axes.set_xlim(0, 1.25 * max(values) or 1)
    axes.tick_params(left=False, bottom=False, labelbottom=False)
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)


def _losses(run: RunFolder) -> list[tuple[int, float]]:
    return [
        (step, loss)
        for record in read_json_lines(run.metrics_file)
        if record.get("kind") == "train"
        and isinstance(step := record.get("step"), int)
        and isinstance(loss := record.get("loss"), float)
    ]
