"""The page of a validation: complete, escaped, without a network; its charts, its marked words, its order of sentences."""

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import CHRF

from transformer_cli.config import Direction
from transformer_cli.data.pairs import SentencePair
from transformer_cli.decoding import Translation
from transformer_cli.evaluation.breakdown import LENGTHS, by_number
from transformer_cli.evaluation.confidence import ConfidenceReport, Quarter, calibration
from transformer_cli.evaluation.curve_pictures import (
    LINES,
    Chart,
    ChartLine,
    inline_svg,
    learning_curves,
    svg_of,
)
from transformer_cli.evaluation.metrics import measure_corpus
from transformer_cli.evaluation.report import (
    Page,
    evenly_spread,
    html_of,
    ranked_sentences,
    word_differences,
)
from transformer_cli.evaluation.system_comparison import compare_systems
from transformer_cli.evaluation.validation import DirectionReport, ValidationReport

from .scored_texts import REFERENCES, damaged

EVIL = """<script>alert("1")</script> & 'ciao' <b onclick=x>"""
NAMES = ("bleu", "chrf", "length_ratio")
VOID = {"meta", "line", "circle", "polyline"}


def direction_report(hypotheses: list[str]) -> DirectionReport:
    measured = measure_corpus(hypotheses, REFERENCES, NAMES)
    return DirectionReport(
        Direction("en", "it"),
        100.0,
        [one.score(with_interval=True) for one in measured],
        num_sentences=len(REFERENCES),
        num_target_tokens=500,
        pairs=[SentencePair(EVIL, line) for line in REFERENCES],
        translations=[Translation(EVIL, text, 0.0, ()) for text in hypotheses],
        measurements=measured,
    )


@pytest.fixture(scope="module")
def part() -> DirectionReport:
    return direction_report([EVIL, *damaged(REFERENCES, 0.3, seed=1)[1:]])


@pytest.fixture(scope="module")
def page(part: DirectionReport, tmp_path_factory: pytest.TempPathFactory) -> Page:
    other = measure_corpus(damaged(REFERENCES, 0.5, seed=2), REFERENCES, NAMES)
    metrics = tmp_path_factory.mktemp("run") / "metrics.jsonl"
    rows = [{"kind": "train", "step": n, "loss": 9 / n, "learning_rate": 0.1} for n in (1, 2, 3)]
    scores = [{"name": EVIL, "value": 33.0}]
    last = {"kind": "validation", "step": 3, "loss": math.inf, "scores": scores}
    metrics.write_text("".join(f"{json.dumps(row)}\n" for row in [*rows, last]))
    return Page(
        title=EVIL,
        facts=[("run", EVIL)],
        report=ValidationReport(1.25, 3.49, part.scores, 60, 500, [], parts=[part]),
        sentences=ranked_sentences(part),
        curves=learning_curves(metrics),
        breakdowns=[by_number(part.measurements, "words", [3] * len(REFERENCES), LENGTHS)],
        calibration=calibration(np.array([0.2, 0.95]), np.array([False, True])),
        confidence=ConfidenceReport(0.25, [Quarter(60, 0.5, 33.3)]),
        comparison=compare_systems(part.measurements, other, EVIL),
    )


@pytest.fixture(scope="module")
def text(page: Page) -> str:
    return html_of(page)


class Tags(HTMLParser):
    """Collects the open tags, and the texts."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.long
def test_the_page_is_whole_and_everything_in_it_is_escaped(page: Page, text: str) -> None:
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert "script" not in tags.seen
    assert "b" in tags.seen  # of the facts, without an attribute
    assert "onclick" not in re.sub(r"&lt;b onclick=x&gt;", "", text)
    assert EVIL in tags.texts
    for heading in (
        "Scores",
        "Learning curves",
        "Samples",
        "Worst sentences",
        "Best sentences",
        "Groups of sentences",
        "Calibration",
        "Confidence",
    ):
        assert heading in tags.texts
    for score in page.report.scores:
        assert score.signature in tags.texts


@pytest.mark.long
def test_the_page_needs_no_network_and_no_other_file(text: str) -> None:
    # A picture names its own parts: href="#...", url(#...).
    assert not re.search(r"https?:|\bsrc=|\bhref=\"(?!#)|url\((?!#)|@import|<link|<iframe|<object", text)


def test_a_page_without_curves_comparison_and_calibration_leaves_them_out(page: Page) -> None:
    small = Page(page.title, page.facts, page.report, page.sentences)
    tags = Tags()
    tags.feed(html_of(small))
    assert tags.open == []
    assert not {"Learning curves", "Calibration", "Groups of sentences"} & set(tags.texts)
    assert "svg" not in tags.seen


@pytest.mark.long
def test_the_page_names_the_test_whose_p_values_it_shows(page: Page, text: str) -> None:
    assert page.comparison is not None
    assert "Paired bootstrap, 1,000 samples." in text
    rare = [one._replace(p_value=1 / 10_001) for one in page.comparison.differences]
    randomized = page.comparison._replace(test="randomization", differences=rare)
    shown = html_of(replace(page, comparison=randomized))
    assert "Approximate randomization, 10,000 samples." in shown
    assert "<td>0.0001</td>" in shown


def test_differences_are_marked_by_elements_and_not_by_colour_alone(text: str) -> None:
    assert "del { color: var(--missing); background: var(--missing-back); text-decoration" in text
    assert "ins { color: var(--added); background: var(--added-back); text-decoration" in text
    assert "<del>" in text
    assert "<ins>" in text
    assert "prefers-color-scheme: dark" in text
    assert "width=device-width" in text


def test_sentences_are_ranked_by_the_sentence_chrf_of_sacrebleu(part: DirectionReport) -> None:
    ranked = ranked_sentences(part)
    assert sorted(one.number for one in ranked) == list(range(1, len(REFERENCES) + 1))
    assert [one.chrf for one in ranked] == sorted(one.chrf for one in ranked)
    for one in ranked:
        text = part.translations[one.number - 1].text
        expected = CHRF().sentence_score(text, [REFERENCES[one.number - 1]]).score
        assert one.chrf == pytest.approx(expected)
    assert [one.number for one in evenly_spread(ranked, 3)] == [1, 21, 41]
    assert len(evenly_spread(ranked, 99)) == len(REFERENCES)


def test_text_without_spaces_is_compared_by_characters_with_their_marks(page: Page) -> None:
    marked = word_differences("我喜欢红色的车", "我喜欢蓝色的车", has_spaces=False)
    assert [[(run.text, run.is_common) for run in runs] for runs in marked] == [
        [("我喜欢", True), ("红", False), ("色的车", True)],
        [("我喜欢", True), ("蓝", False), ("色的车", True)],
    ]
    [of_reference, _] = word_differences("กินข้าว", "กาข้าว", has_spaces=False)
    assert [run.text for run in of_reference] == ["กิน", "ข้าว"], "a vowel above stays with its letter"
    translation = Translation("红车", "我喜欢蓝色的车", 0.0, ())
    part = DirectionReport(
        Direction("en", "zh"), 1.0, [], 1, 1, [SentencePair("A red car.", "我喜欢红色的车")], [translation]
    )
    shown = html_of(replace(page, sentences=ranked_sentences(part), curves=[]))
    assert "我喜欢<del>红</del>色的车" in shown
    assert "我喜欢<ins>蓝</ins>色的车" in shown


words = st.lists(st.sampled_from("abc"), max_size=8).map(" ".join)


@pytest.mark.long
@given(reference=words, hypothesis=words)
def test_marked_words_are_the_words_of_the_texts(reference: str, hypothesis: str) -> None:
    marked = word_differences(reference, hypothesis)
    for text, runs in zip((reference, hypothesis), marked, strict=True):
        assert " ".join(run.text for run in runs) == text
    common = [" ".join(run.text for run in runs if run.is_common) for runs in marked]
    assert common[0] == common[1]
    if reference == hypothesis:
        assert all(run.is_common for runs in marked for run in runs)


def test_points_lie_where_their_numbers_are_on_the_axes() -> None:
    chart = Chart("t", "x", [ChartLine("a", [(0, 0), (50, 5), (100, 10)]), ChartLine("b", [(0, 10)])])
    svg = ElementTree.fromstring(svg_of(chart))
    marks = [
        (float(use.get("x")), float(use.get("y")))
        for use in svg.iter("{http://www.w3.org/2000/svg}use")
        if chart_color(use.get("style")) == LINES[0]
    ][:3]
    (left, bottom), middle, (right, top) = marks
    assert left < right
    assert top < bottom
    assert middle == pytest.approx(((left + right) / 2, (top + bottom) / 2), abs=1e-3)
    texts = [text.text for text in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert {"0", "20", "40", "60", "80", "100", "2", "4", "t", "x", "a", "b"} <= set(texts)


def chart_color(style: str | None) -> str:
    found = re.search("fill: (#[0-9a-f]{6})", style or "")
    return found[1] if found else ""


@pytest.mark.long
def test_equal_charts_give_equal_pictures_and_an_element_of_a_page_has_its_colours() -> None:
    chart = Chart("t", "x", [ChartLine("a", [(1, 2.5)])], (0.0, 100.0))
    assert svg_of(chart) == svg_of(chart)
    element = inline_svg(svg_of(chart, is_bare=True), {LINES[0]: "--line-0"})
    assert "var(--line-0)" in element
    assert LINES[0] not in element
    assert "xmlns" not in element
    assert ">t<" not in element


def test_curves_come_from_the_records_of_a_run(page: Page, tmp_path: Path) -> None:
    loss, scores, rate = page.curves
    assert [line.name for line in loss.lines] == ["training"]  # an infinite loss is not drawn
    assert loss.lines[0].points == [(1, 9.0), (2, 4.5), (3, 3.0)]
    assert [line.name for line in scores.lines] == [EVIL]
    assert rate.title == "Learning rate"
    assert learning_curves(tmp_path / "lost.jsonl") == []
