"""The page of `tfm explain --html`: it needs no network, holds any text, and draws everything in a browser."""

import json
import re
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from transformer_cli.extensions.lessons.explaining.explainer import Explainer
from transformer_cli.extensions.lessons.explaining.explanation import LineExplanation
from transformer_cli.extensions.lessons.explaining.standalone_page import page_of_line, views_script

from .varied_translators import varied_translator

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
# What a person does on the page, in the order of the comments of each line of the answer.
CLICKS = """
const say = [];
const note = (name, value) => say.push(`${name}=${value}`);
addEventListener("error", (event) => note("error", event.message));
setTimeout(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  note("translation", document.getElementById("translation").textContent);
  note("steps", all(".tfm-step").length);
  note("maps", all(".tfm-maps canvas").length);
  const rows = all(".tfm-heat tbody tr").map((row) => [...row.querySelectorAll("td")].reduce((sum, cell) => sum + Number(cell.textContent), 0));
  note("rows", rows.every((sum) => Math.abs(sum - 1) < 0.06));
  const target = all(".tfm-two > div")[1].querySelector("button");
  target.dispatchEvent(new MouseEvent("mouseenter"));
  note("lines", all(".tfm-two line").length > 0);
  note("reads", all(".tfm-two ~ .tfm-note")[0].textContent.includes("reads:"));
  const shares = () => all(".tfm-step:first-child .tfm-share").map((one) => parseFloat(one.textContent));
  const slider = document.querySelector("input[type=range]");
  const warm = shares();
  slider.value = 0;
  slider.dispatchEvent(new Event("input"));
  note("colder", shares()[0] >= warm[0] && Math.abs(shares().reduce((a, b) => a + b, 0) - 100) < 2);
  const buttons = (state) => all(`.tfm-tree button.tfm-${state}`);
  buttons("dropped")[0].click();
  note("branch", document.querySelector(".tfm-panel").textContent.includes("It would have said"));
  buttons("chosen").at(-1).click();
  note("best", document.querySelector(".tfm-panel b:last-of-type").textContent.length > 0 && document.querySelector(".tfm-panel").textContent.includes(document.getElementById("translation").textContent));
  const inputs = all("#beams input");
  note("beams", inputs.map((one) => one.parentNode.textContent.trim()).join(","));
  inputs[0].click();
  note("greedy", buttons("kept").length);
  note("alone", performance.getEntriesByType("resource").length);
  const answer = document.createElement("pre");
  answer.id = "answer";
  answer.textContent = say.join("\\n");
  document.body.append(answer);
}, 300);
"""


@pytest.fixture(scope="module")
def page() -> str:
    explainer = Explainer.of(varied_translator())
    return page_of_line(explained(explainer, "due due tre due"), 4)


def explained(explainer: Explainer, line: str) -> dict[int, LineExplanation]:
    return {size: explainer.explain(line, beam_size=size, continues=True) for size in (1, 2, 4, 8)}


class Addresses(HTMLParser):
    """Collects what a page would load or link to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [f"{tag} {name}" for name, _ in attrs if name in ("src", "href", "action")]


@pytest.mark.long
def test_the_page_names_no_address(page: str) -> None:
    parser = Addresses()
    parser.feed(page)
    assert parser.found == []
    assert not re.search(r"https?:|['(]//|@import|url\(|fetch\(|XMLHttp|WebSocket", page)
    assert "default-src 'none'" in page


@pytest.mark.long
def test_the_data_of_the_page_are_the_explanations(page: str) -> None:
    match = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert match is not None
    data = json.loads(match[1])
    assert list(data["explanations"]) == ["1", "2", "4", "8"]
    assert data["first"] == "4"
    assert data["explanations"]["4"]["source"] == "due due tre due"


@pytest.mark.long
def test_no_text_can_end_the_script_or_fill_a_place_of_the_template() -> None:
    explainer = Explainer.of(varied_translator())
    line = "uno </script><script>alert(1)</script> <!-- {{ views }} {{ data }} \ud800 due"
    page = page_of_line({4: explainer.explain(line)}, 4)
    assert page.count(views_script()) == 1
    assert page.count("</script>") == 4
    assert "<!--" not in page
    match = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert match is not None
    assert json.loads(match[1])["explanations"]["4"]["source"] == line
    title = re.search(r"<title>(.*?)</title>", page)
    assert title is not None
    assert unescape(title[1]) == f"{line} - explained"
    assert page.encode("utf-8", "replace")


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_browser_draws_the_page_and_answers_clicks(page: str, tmp_path: Path) -> None:
    assert CHROMIUM is not None
    file = tmp_path / "page.html"
    file.write_text(page.replace("</body>", f"<script>{CLICKS}</script></body>"), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    finished = subprocess.run(
        [CHROMIUM, *options, profile, "--virtual-time-budget=3000", "--dump-dom", file.as_uri()],
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    match = re.search(r'<pre id="answer">(.*?)</pre>', finished.stdout, re.DOTALL)
    assert match is not None, finished.stdout[-2000:]
    answer = dict(line.split("=", 1) for line in unescape(match[1]).splitlines())
    explainer = Explainer.of(varied_translator())
    best = explainer.explain("due due tre due", beam_size=4)
    [sentence] = best.sentences
    assert answer == {
        "translation": best.translation,
        "steps": str(len(sentence.decoder_input)),
        "maps": str(2 * 3),  # 2 layers; 2 heads and their mean
        "beams": "1,2,4,8",
        "greedy": "0",
        "alone": "0",
    } | dict.fromkeys(("rows", "lines", "reads", "colder", "branch", "best"), "true")
