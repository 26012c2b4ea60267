"""The page of `tfm explain --html` as a person uses it: what each click shows is what the explanation says."""

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from transformer_cli.extensions.lessons.explaining.explainer import Explainer
from transformer_cli.extensions.lessons.explaining.explanation import LineExplanation
from transformer_cli.extensions.lessons.explaining.standalone_page import BEAM_SIZES, page_of_line

from ...serving.page.browser import Page, chromium, needs_chromium
from .varied_translators import varied_translator

pytestmark = [pytest.mark.browser, needs_chromium]
LINE = "due due tre due"
HEBREW, CHINESE = "שלום עולם", "红色的汽车"


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return Explainer.of(varied_translator())


def explained(explainer: Explainer, line: str) -> dict[int, LineExplanation]:
    return {one: explainer.explain(line, beam_size=one, continues=True) for one in BEAM_SIZES}


@pytest.fixture(scope="module")
def of_line(explainer: Explainer) -> dict[int, LineExplanation]:
    return explained(explainer, LINE)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with chromium() as driver:
        yield Page(driver, (tmp_path_factory.mktemp("pages") / "page.html").as_uri())


def opened(browser: Page, explanations: dict[int, LineExplanation], width: int = 1400) -> Page:
    file = Path(browser.address.removeprefix("file://"))
    file.write_text(page_of_line(explanations, 4), encoding="utf-8", errors="replace")
    browser.look(width)
    browser.driver.get(browser.address)
    browser.wait("document.querySelectorAll('.tfm-two button').length > 0")
    return browser


@pytest.fixture
def page(browser: Page, of_line: dict[int, LineExplanation]) -> Iterator[Page]:
    yield opened(browser, of_line)
    assert browser.driver.get_log("browser") == []


def elements(page: Page, selector: str) -> list[WebElement]:
    return page.driver.find_elements(By.CSS_SELECTOR, selector)


def sentence_of(explanations: dict[int, LineExplanation]) -> dict[str, Any]:
    [sentence] = explanations[4].to_json()["sentences"]
    assert isinstance(sentence, dict)
    return sentence


def test_a_word_under_the_pointer_has_lines_to_what_it_reads(page: Page, of_line: dict[int, LineExplanation]) -> None:
    [sentence] = of_line[4].sentences
    weights = sentence.attention.cross.values[sentence.attention.aligning_layer].mean(0)[1]
    source, target = (elements(page, f".tfm-two > div:nth-of-type({row}) button") for row in (1, 2))
    ActionChains(page.driver).move_to_element(target[1]).perform()
    expected = [place for place, weight in enumerate(weights.tolist()) if weight >= 0.03]
    lines = elements(page, ".tfm-two line")
    assert len(lines) == len(expected)
    frame = elements(page, ".tfm-two")[0].rect["x"]
    for line, place in zip(lines, expected, strict=True):
        middle = source[place].rect["x"] + source[place].rect["width"] / 2
        assert float(str(line.get_attribute("x1"))) + frame == pytest.approx(middle, abs=2)
    most = sentence.source.tokens[int(weights.argmax())].piece
    said = elements(page, ".tfm-two + .tfm-note")[0].text
    assert said.startswith(f"{sentence.hypotheses[0].tokens[1].piece} reads: {most} ")


def test_a_heat_map_that_is_clicked_is_enlarged_with_its_numbers(
    page: Page, of_line: dict[int, LineExplanation]
) -> None:
    [sentence] = of_line[4].sentences
    for kind in ("cross", "encoder", "decoder"):
        option = elements(page, f"option[value={kind}]")[0]
        option.click()
        elements(page, ".tfm-maps button[aria-label='layer 0, head 1']")[0].click()
        rows = [row.find_elements(By.TAG_NAME, "td") for row in elements(page, ".tfm-heat tbody tr")]
        shown = [[float(cell.text) for cell in row] for row in rows]
        weights = getattr(sentence.attention, kind).values[0, 1].tolist()
        assert shown == [pytest.approx(row, abs=0.01) for row in weights]


def test_a_dropped_branch_that_is_clicked_shows_what_it_would_have_said(
    page: Page, of_line: dict[int, LineExplanation]
) -> None:
    nodes = sentence_of(of_line)["beam"]["nodes"]
    for dropped in elements(page, ".tfm-tree button.tfm-dropped")[:5]:
        dropped.click()
        [panel] = elements(page, ".tfm-panel")
        name = str(dropped.get_attribute("title"))
        fitting = [
            one for one in nodes if one["state"] == "dropped" and name == f"{one['piece']} {one['score']:.2f}, dropped"
        ]
        assert any(
            f"It would have said (greedy search goes on): {one['continuation'] or 'nothing'}" in panel.text
            and f"log-probability {one['total']:.3f} / length penalty {one['length_penalty']:.3f}" in panel.text
            for one in fitting
        ), panel.text


def test_no_two_branches_of_the_tree_overlap_and_the_best_path_is_the_first_row(page: Page) -> None:
    elements(page, "option[value=all]")[0].click()
    buttons = elements(page, ".tfm-tree button")
    rects = sorted((one.rect for one in buttons), key=lambda one: (one["y"], one["x"]))
    for one, other in itertools.pairwise(rects):
        assert one["y"] + one["height"] <= other["y"] or one["x"] + one["width"] <= other["x"]
    tops = {one.rect["y"] for one in elements(page, ".tfm-tree button.tfm-chosen")}
    assert tops == {rects[0]["y"]}


def test_the_temperature_gives_the_softmax_at_that_temperature(page: Page, of_line: dict[int, LineExplanation]) -> None:
    value = of_line[4].to_json()
    token = sentence_of(of_line)["hypotheses"][0]["tokens"][0]
    for place in (0, len(value["temperatures"]) - 1):
        page.js(
            f"(() => {{ const slider = document.querySelector('input[type=range]'); slider.value = {place}; slider.dispatchEvent(new Event('input')); }})()"
        )
        temperature = value["temperatures"][place]
        assert elements(page, ".tfm-bar-row output")[0].text == f"{temperature:.1f}"
        shown = [float(one.text.removesuffix(" %")) for one in elements(page, ".tfm-step:first-child .tfm-share")]
        for one, percent in zip(token["alternatives"], shown, strict=False):
            share = math.exp(one["log_probability"] / temperature - token["log_partitions"][place])
            assert percent == pytest.approx(100 * share, abs=0.51)
        assert sum(shown) == pytest.approx(100, abs=2)


def test_each_beam_size_shows_its_own_search(page: Page, of_line: dict[int, LineExplanation]) -> None:
    for size, radio in zip(BEAM_SIZES, elements(page, "#beams input"), strict=True):
        radio.click()
        assert page.by_id("translation").text == of_line[size].translation
        nodes = of_line[size].to_json()["sentences"][0]["beam"]["nodes"]
        kept = [one for one in nodes if one["state"] == "kept"]
        assert len(elements(page, ".tfm-tree button.tfm-kept")) == len(kept)


@pytest.mark.parametrize("line", [f"{HEBREW} due tre", CHINESE, "due tre " * 5, "due"])
@pytest.mark.parametrize("width", [1400, 360])
def test_no_sentence_is_wider_than_the_window(browser: Page, explainer: Explainer, line: str, width: int) -> None:
    page = opened(browser, {4: explainer.explain(line, beam_size=4, continues=True)}, width)
    assert page.js("document.documentElement.scrollWidth") <= width
    assert browser.driver.get_log("browser") == []
    buttons = elements(page, ".tfm-two button")
    assert all(one.rect["x"] >= 0 and one.rect["x"] + one.rect["width"] <= width for one in buttons)


def test_words_of_a_right_to_left_language_run_from_the_right(browser: Page, explainer: Explainer) -> None:
    line = f"{HEBREW} due"
    page = opened(browser, {4: explainer.explain(line, beam_size=4, continues=True)})
    first, *others = elements(page, ".tfm-two > div:first-of-type button")
    assert all(first.rect["x"] > other.rect["x"] for other in others)
