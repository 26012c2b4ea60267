"""The report of a validation as one web page: scores, curves, sentences; without scripts, and without a network."""

import difflib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import NamedTuple

import jinja2

from transformer_cli.evaluation.breakdown import Breakdown
from transformer_cli.evaluation.confidence import Calibration, ConfidenceReport
from transformer_cli.evaluation.curve_pictures import (
    FAINT,
    INK,
    LINES,
    MUTED,
    Chart,
    ChartLine,
    inline_svg,
    svg_of,
)
from transformer_cli.evaluation.metrics import UNSPACED_LANGUAGES, measure_corpus, num_digits
from transformer_cli.evaluation.system_comparison import SystemComparison
from transformer_cli.evaluation.validation import DirectionReport, ValidationReport
from transformer_cli.text.languages import plain_code

# The words of a translation and of its reference, marked where they differ.


class MarkedWords(NamedTuple):
    """A run of words that stand in both texts, or in one of them."""

    text: str
    is_common: bool


def word_differences(
    reference: str, hypothesis: str, *, has_spaces: bool = True
) -> tuple[list[MarkedWords], list[MarkedWords]]:
    """Both texts, reference first, cut into runs of common words and of other words.

    Joined with one space, the runs of a text are its words. Equal words that stand in another order are common only
    once. Where no spaces separate words, characters are compared in place of words, and joined with nothing.
    """
    joint = " " if has_spaces else ""
    sides = [text.split() if has_spaces else _characters(text) for text in (reference, hypothesis)]
    blocks = difflib.SequenceMatcher(None, sides[0], sides[1], autojunk=False).get_opcodes()
    reference_runs = [
        MarkedWords(joint.join(sides[0][first:last]), kind == "equal")
        for kind, first, last, _, _ in blocks
        if first < last
    ]
    hypothesis_runs = [
        MarkedWords(joint.join(sides[1][first:last]), kind == "equal")
        for kind, _, _, first, last in blocks
        if first < last
    ]
    return reference_runs, hypothesis_runs


def _characters(text: str) -> list[str]:
    """The characters of a text, each with the marks on it."""
    found: list[str] = []
    for one in text:
        if found and unicodedata.category(one).startswith("M"):
            found[-1] += one
        else:
            found.append(one)
    return found


# The sentences of a validation in the order of their quality: the worst and the best translations.


class RankedSentence(NamedTuple):
    """One sentence with its translation."""

    number: int
    """Counted from 1, in the order of the split or of the file."""
    chrf: float
    source: str
    reference: str
    hypothesis: str
    has_spaces: bool = True
    """Between the words of the target language."""

    @property
    def differences(self) -> tuple[list[MarkedWords], list[MarkedWords]]:
        """Those of the reference and of the hypothesis."""
        return word_differences(self.reference, self.hypothesis, has_spaces=self.has_spaces)


def ranked_sentences(part: DirectionReport) -> list[RankedSentence]:
    """All sentences, the lowest chrF of a sentence first; of equal ones, the one with the shorter reference."""
    texts = [translation.text for translation in part.translations]
    references = [pair.target for pair in part.pairs]
    [chrf] = measure_corpus(texts, references, ["chrf"])
    values = [chrf.value([row]) for row in range(len(texts))]
    has_spaces = plain_code(part.direction.target) not in UNSPACED_LANGUAGES
    order = sorted(range(len(texts)), key=lambda row: (values[row], len(references[row]), row))
    return [
        RankedSentence(row + 1, values[row], part.pairs[row].source, references[row], texts[row], has_spaces)
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
    comparison: SystemComparison | None = None


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
        drawn=_drawn,
        num_digits=num_digits,
    )


def _drawn(chart: Chart) -> str:
    """The chart as an element of the page, in its colours."""
    colors = {INK: "--text", MUTED: "--faint", FAINT: "--border"}
    lines = {color: f"--line-{number}" for number, color in enumerate(LINES)}
    return inline_svg(svg_of(chart, is_bare=True), lines | colors)


def _reliability(calibration: Calibration | None) -> Chart | None:
    """Accuracy over probability: a calibrated model lies on the diagonal."""
    if calibration is None:
        return None
    points = [(100 * one.confidence, 100 * one.accuracy) for one in calibration.bins if one.num_tokens]
    lines = [
        ChartLine("this model", points),
        ChartLine("perfectly calibrated", [(0.0, 0.0), (100.0, 100.0)]),
    ]
    return Chart("Accuracy, %", "probability of the token, %", lines, (0.0, 100.0))
