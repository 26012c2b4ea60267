"""The picture of an ablation: the training loss of each variant over the steps."""

import io
from collections.abc import Sequence

from transformer_cli.ablations.ablation import Ablation
from transformer_cli.ablations.laboratory import Outcome
from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.storage import read_json_lines

# The palette of Okabe and Ito 2008, and lines that can be told apart without colours.
STYLES = (("#0072b2", "-"), ("#d55e00", "--"), ("#009e73", ":"))


def curves_picture(ablation: Ablation, outcomes: Sequence[Outcome]) -> bytes:
    """A PNG file; equal runs give equal bytes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 3.6), dpi=110, layout="constrained")
    axes = figure.subplots()
    drawn = {outcome.folder: outcome for outcome in reversed(outcomes)}
    for (folder, outcome), (colour, line) in zip(reversed(drawn.items()), STYLES, strict=False):
        points = _losses(RunFolder(folder))
        axes.plot(*zip(*points, strict=True), color=colour, linestyle=line, label=outcome.label)
    axes.set_xlabel("step")
    axes.set_ylabel("training loss, nats per token")
    axes.set_title(ablation.subject, loc="left")
    axes.grid(alpha=0.3)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    png = io.BytesIO()
    figure.savefig(png, format="png", metadata={"Software": None})
    return png.getvalue()


def _losses(run: RunFolder) -> list[tuple[int, float]]:
    return [
        (step, loss)
        for record in read_json_lines(run.metrics_file)
        if record.get("kind") == "train"
        and isinstance(step := record.get("step"), int)
        and isinstance(loss := record.get("loss"), float)
    ]
