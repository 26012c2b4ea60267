"""The report of a validation as one web page: scores, curves, sentences; without scripts, and without a network."""

import difflib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import jinja2

from transformer_cli.checkpoint.recorded_series import Values, finite, read_series
from transformer_cli.evaluation.breakdown import Breakdown
from transformer_cli.evaluation.confidence import Calibration, ConfidenceReport
from transformer_cli.evaluation.metrics import measure_corpus, num_digits
from transformer_cli.evaluation.system_comparison import Comparison
from transformer_cli.evaluation.validation import DirectionReport, ValidationReport

# Charts: converts numbers to the coordinates of lines and axes in an SVG picture, which the page draws.


WIDTH, HEIGHT = 640, 300
"""Of a chart, in units of the picture, which a browser scales to the page."""
LEFT, RIGHT, TOP, BOTTOM = 80, 24, 16, 56
_NUM_TICKS = 5


class Series(NamedTuple):
    """The points of one line."""

    name: str
    points: list[tuple[float, float]]


class Tick(NamedTuple):
    """A mark of an axis."""

    position: float
    label: str


class Line(NamedTuple):
    """A line of a chart: its name, and its points for an SVG polyline."""

    name: str
    points: str
    markers: list[tuple[float, float]]
    """Its points, if they are few enough to be marked one by one."""


class Chart(NamedTuple):
    """A chart that is ready to be drawn."""

    title: str
    x_label: str
    lines: list[Line]
    x_ticks: list[Tick]
    y_ticks: list[Tick]


def line_chart(
    title: str,
    x_label: str,
    series: Sequence[Series],
    *,
    y_range: tuple[float, float] | None = None,
    max_markers: int = 40,
) -> Chart | None:
    """A chart of several lines, from x = 0 on; None if no line has a point with finite numbers.

    Args:
        y_range: the lowest and the highest value of the vertical axis; None: those of the points.
        max_markers: a line of more points has no markers.
    """
    finite = [Series(one.name, list(_finite(one.points))) for one in series]
    kept = [one for one in finite if one.points]
    if not kept:
        return None
    xs = [x for one in kept for x, _ in one.points]
    ys = [y for one in kept for _, y in one.points]
    x_ticks = _ticks(min(0.0, *xs), max(xs))
    y_ticks = _ticks(*(y_range or (min(ys), max(ys))))

    def place(x: float, y: float) -> tuple[float, float]:
        across = LEFT + _share(x, x_ticks) * (WIDTH - LEFT - RIGHT)
        return round(across, 1), round(HEIGHT - BOTTOM - _share(y, y_ticks) * _inner_height(), 1)

    lines = []
    for one in kept:
        points = [place(x, y) for x, y in one.points]
        text = " ".join(f"{x},{y}" for x, y in points)
        lines.append(Line(one.name, text, points if len(points) <= max_markers else []))
    return Chart(
        title,
        x_label,
        lines,
        [Tick(place(x, y_ticks[0])[0], _number(x)) for x in x_ticks],
        [Tick(place(x_ticks[0], y)[1], _number(y)) for y in y_ticks],
    )


def _inner_height() -> int:
    return HEIGHT - TOP - BOTTOM


def _finite(points: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    return (point for point in points if all(map(math.isfinite, point)))


def _share(value: float, ticks: Sequence[float]) -> float:
    """Where a value lies on an axis: 0 at the first tick, 1 at the last."""
    return (value - ticks[0]) / (ticks[-1] - ticks[0])


def _ticks(lowest: float, highest: float) -> list[float]:
    """About five round numbers, the first one at or below `lowest`, the last one at or above `highest`."""
    if highest <= lowest:
        lowest, highest = lowest - 0.5, lowest + 0.5
    rough = (highest - lowest) / _NUM_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first, last = math.floor(lowest / step + 1e-9), math.ceil(highest / step - 1e-9)
    return [number * step for number in range(first, last + 1)]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


# The learning curves of a run as charts, from its metrics.jsonl.


def learning_curves(metrics_file: Path) -> list[Chart]:
    """Charts of the losses, the scores and the learning rate over the steps; none without a readable file."""
    if not metrics_file.is_file():
        return []
    recorded = read_series(metrics_file)
    training, validation = recorded.training, recorded.validation
    losses = [
        _series("training", training.get("loss", {})),
        _series("validation", validation.get("loss", {})),
    ]
    scores = [_series(title, validation.get(name, {})) for name, title in recorded.titles.items()]
    rates = [_series("rate", training.get("learning_rate", {}))]
    found = [
        line_chart("Loss, nats per target token", "step", losses),
        line_chart("Scores on the validation split", "step", scores),
        line_chart("Learning rate", "step", rates),
    ]
    return [chart for chart in found if chart is not None]


def _series(name: str, values: Values) -> Series:
    return Series(name, [(float(step), value) for step, value in finite(values).items()])


# The words of a translation and of its reference, marked where they differ.


class Words(NamedTuple):
    """A run of words that stand in both texts, or in one of them."""

    text: str
    is_common: bool


def word_differences(reference: str, hypothesis: str) -> tuple[list[Words], list[Words]]:
    """Both texts, reference first, cut into runs of common words and of other words.

    Joined with one space, the runs of a text are its words. Equal words that stand in another order are common only
    once.
    """
    sides = reference.split(), hypothesis.split()
    blocks = difflib.SequenceMatcher(None, *sides, autojunk=False).get_opcodes()
    of_reference = [
        Words(" ".join(sides[0][first:last]), kind == "equal")
        for kind, first, last, _, _ in blocks
        if first < last
    ]
    of_hypothesis = [
        Words(" ".join(sides[1][first:last]), kind == "equal")
        for kind, _, _, first, last in blocks
        if first < last
    ]
    return of_reference, of_hypothesis


# The sentences of a validation in the order of their quality: the worst and the best translations.


class RankedSentence(NamedTuple):
    """One sentence with its translation."""

    number: int
    """Counted from 1, in the order of the split or of the file."""
    chrf: float
    source: str
    reference: list[Words]
    hypothesis: list[Words]


def ranked_sentences(part: DirectionReport) -> list[RankedSentence]:
    """All sentences, the lowest chrF of a sentence first; of equal ones, the one with the shorter reference."""
    texts = [translation.text for translation in part.translations]
    references = [pair.target for pair in part.pairs]
    [chrf] = measure_corpus(texts, references, ["chrf"])
    values = [chrf.value([row]) for row in range(len(texts))]
    order = sorted(range(len(texts)), key=lambda row: (values[row], len(references[row]), row))
    return [
        RankedSentence(
            row + 1,
            values[row],
            part.pairs[row].source,
            *word_differences(references[row], texts[row]),
        )
        for row in order
    ]


def evenly_spread(sentences: Sequence[RankedSentence], count: int) -> list[RankedSentence]:
    """At most `count` of the sentences, evenly spread over the text, in its order."""
    in_order = sorted(sentences, key=lambda sentence: sentence.number)
    count = min(count, len(in_order))
    return [in_order[place * len(in_order) // count] for place in range(count)]


NUM_SHOWN = 10
"""How many of the worst and of the best sentences, and how many samples, a page shows."""
_TEMPLATE = "report.html"


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
        chart_size={
            "WIDTH": WIDTH,
            "HEIGHT": HEIGHT,
            "LEFT": LEFT,
            "RIGHT": RIGHT,
            "BOTTOM": BOTTOM,
        },
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
