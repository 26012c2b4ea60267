"""The page of a report: its content, and the HTML that shows it."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

import jinja2

from transformer_cli.evaluation.breakdown import Breakdown
from transformer_cli.evaluation.calibration import Calibration
from transformer_cli.evaluation.confidence import ConfidenceReport
from transformer_cli.evaluation.metrics import num_digits
from transformer_cli.evaluation.report import charts
from transformer_cli.evaluation.report.charts import Chart, Series, line_chart
from transformer_cli.evaluation.report.ranked_sentences import RankedSentence, evenly_spread
from transformer_cli.evaluation.system_comparison import Comparison
from transformer_cli.evaluation.validation import ValidationReport

NUM_SHOWN = 10
"""How many of the worst and of the best sentences, and how many samples, a page shows."""
_TEMPLATE = "page.html"


@dataclass(frozen=True, slots=True)
class Page:
    """The content of a report."""

    title: str
    facts: Sequence[tuple[str, str]]
    """Name and value: the run, its step, the split and how it was translated."""
    report: ValidationReport
    sentences: Sequence[RankedSentence]
    """All sentences, the worst first."""
    curves: Sequence[Chart] = ()
    breakdowns: Sequence[Breakdown] = ()
    calibration: Calibration | None = None
    confidence: ConfidenceReport | None = None
    comparison: Comparison | None = None


def html_of(page: Page) -> str:
    """The page as one HTML document that needs no other file; every text in it is escaped."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = resources.files(__package__).joinpath(_TEMPLATE).read_text(encoding="utf-8")
    shown = min(NUM_SHOWN, (len(page.sentences) + 1) // 2)
    return environment.from_string(template).render(
        page=page,
        worst=page.sentences[:shown],
        best=page.sentences[len(page.sentences) - shown :][::-1],
        samples=evenly_spread(page.sentences, NUM_SHOWN),
        reliability=_reliability(page.calibration),
        chart_size=charts,
        num_digits=num_digits,
    )


def _reliability(calibration: Calibration | None) -> Chart | None:
    """Accuracy over probability: a calibrated model lies on the diagonal."""
    if calibration is None:
        return None
    points = [
        (100 * one.confidence, 100 * one.accuracy) for one in calibration.bins if one.num_tokens
    ]
    series = [
        Series("this model", points),
        Series("perfectly calibrated", [(0.0, 0.0), (100.0, 100.0)]),
    ]
    return line_chart("Accuracy, %", "probability of the token, %", series, y_range=(0.0, 100.0))
