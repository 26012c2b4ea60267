"""The page with a real model behind it: what it shows is what the model does."""

import json
import re
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from ....launcher import Launcher, Tfm
from ..served_translators import listening, small_runs, small_translator
from .browser import Page, needs_chromium

pytestmark = [pytest.mark.browser, needs_chromium]
CONFIG = """\
name: small
seed: 5
data: {source: phrasebook, num_pairs: 600}
tokenizer: {kind: bpe, vocab_size: 500}
model: {d_model: 32, num_heads: 2, d_ff: 64, encoder_layers: 2, decoder_layers: 2, dropout: 0.0}
training:
  max_steps: 40
  batch_tokens: 600
  learning_rate: 8e-3
  warmup_steps: 10
  label_smoothing: 0.1
  log_every: 40
  validate_every: 40
  save_every: 40
  best_metric: loss
validation: {max_sentences: 8, scores: [chrf], num_samples: 0}
decoding: {beam_size: 3, max_length: 24}
runtime: {device: cpu, precision: float32, threads: 1}
"""
LINE = "uno due tre quattro"
TEXT = "The dog is big. Where is the station?"


@pytest.fixture(scope="module")
def served_address(launcher: Launcher) -> Iterator[str]:
    """`tfm serve` with a run that was trained for a moment."""
    with tempfile.TemporaryDirectory(prefix="tfm-page-") as name:
        tfm = Tfm(launcher, Path(name))
        (Path(name) / "small.yaml").write_text(CONFIG, encoding="utf-8")
        trained = tfm("train", "--config", "small.yaml")
        assert trained.exit_code == 0, trained.talk
        process = tfm.start("serve", "--run", "small", "--port", "0")
        process.wait_until(lambda: "ready: " in process.talk.read_text())
        [found] = re.findall(r"http://[0-9.]+:[0-9]+", process.talk.read_text())[:1]
        yield found + "/"
        process.send(15)
        process.wait()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server of a small random model, in this process."""
    with listening(small_runs(small_translator(beam_size=3))) as found:
        yield found if found.endswith("/") else found + "/"


def asked(address: str, path: str, **body: Any) -> Any:
    request = urllib.request.Request(address + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


@contextmanager
def without_complaints(driver: webdriver.Chrome, address: str) -> Iterator[Page]:
    found = Page(driver, address)
    found.look(1200, 1000)
    found.complaints()
    yield found
    assert found.complaints() == []


@pytest.fixture
def page(driver: webdriver.Chrome, address: str) -> Iterator[Page]:
    with without_complaints(driver, address) as found:
        yield found


def test_the_page_shows_what_the_server_translates_and_goes_on_from_a_chosen_word(page: Page, address: str) -> None:
    page.open(source="en", target="it", q=LINE)
    translated = asked(address, "translate", q=LINE, source="en", target="it")["translatedText"]
    page.wait_for_output(translated)
    assert page.js("document.querySelectorAll('#output .word[title]').length") > 1
    first = page.driver.find_elements(By.CSS_SELECTOR, "#output .word")[1]
    page.hover(first)
    assert len(page.lit("mirror")) == 1
    first.click()
    page.wait("document.querySelectorAll('#likely li button').length > 1")
    likely = page.js("[...document.querySelectorAll('#likely li')].map((one) => one.innerText.trim().split('\\n'))")
    shares = [0.5 if share.startswith("<") else float(share.split()[0]) for *_, share in likely]
    assert shares == sorted(shares, reverse=True)
    other = page.driver.find_element(By.CSS_SELECTOR, '#likely [aria-current="false"]')
    chosen = other.find_element(By.CLASS_NAME, "piece").text
    before = page.js("document.querySelector('#output .word').textContent")
    other.click()
    page.wait("!document.getElementById('undo').hidden && document.getElementById('progress').hidden")
    assert page.output.startswith(f"{before} {chosen}")
    # What the model makes of this beginning is what `tfm translate --prefix` would print.
    [best, *_] = asked(address, "alternatives", q=LINE, source="en", target="it", prefix=f"{before} {chosen}")[
        "alternatives"
    ]
    assert page.js("document.querySelector('#output .sentence').textContent") == best["text"]


def test_the_inside_of_the_shown_translation_can_be_seen(page: Page) -> None:
    page.open(source="en", target="it", q=LINE)
    page.wait("document.querySelector('#output .word') && document.getElementById('progress').hidden")
    shown = page.output
    page.by_id("open-inside").click()
    page.wait("document.querySelector('#view .tfm-view')")
    tabs = page.driver.find_elements(By.CSS_SELECTOR, "[role=tab]")
    drawn = []
    for tab in tabs:
        tab.click()
        page.wait("document.querySelector('#view .tfm-view').childElementCount > 0")
        assert tab.get_attribute("aria-selected") == "true"
        drawn.append(page.by_id("view").text)
    assert [tab.text for tab in tabs] == ["Words", "Step by step", "Attention", "Beam search", "Tokens and shapes"]
    telling = ["quattro", "Temperature", "cross-attention", "[SOS]", "Masks"]
    assert [word for word, text in zip(telling, drawn, strict=True) if word not in text] == []
    # Another token in a step: the sentence goes on from it, in the text, too.
    tabs[1].click()
    other = "#view .tfm-step button.tfm-option:not(.tfm-taken)"
    page.wait(f"document.querySelector('{other}')")
    page.js(f"document.querySelector('{other}').click()")
    page.wait("!document.getElementById('undo').hidden && document.getElementById('progress').hidden")
    assert page.output != shown
    page.by_id("undo").click()
    page.wait_for_output(shown)
    page.by_id("inside-title").click()
    page.press(Keys.ESCAPE)
    assert not page.by_id("inside").is_displayed()


def test_a_file_comes_back_as_the_server_translates_it(page: Page, address: str, downloads: Path) -> None:
    page.open()
    page.wait("!document.getElementById('pick-file').hidden")
    path = downloads / "numbers.txt"
    path.write_text(f"{LINE}\n\ndue uno\n", encoding="utf-8")
    page.by_id("file").send_keys(str(path))
    page.wait("document.querySelector('#files a')")
    name = page.js("document.querySelector('#files a').download")
    assert name == "numbers_it.txt"
    page.driver.find_element(By.CSS_SELECTOR, "#files a").click()
    stop_at = time.monotonic() + 20
    while not (downloads / name).exists():
        assert time.monotonic() < stop_at
        time.sleep(0.05)
    lines = [asked(address, "translate", q=q, source="en", target="it") for q in (LINE, "due uno")]
    first, last = (one["translatedText"] for one in lines)
    assert (downloads / name).read_text(encoding="utf-8") == f"{first}\n\n{last}\n"


@pytest.mark.slow
def test_the_page_of_tfm_serve_shows_the_translation_of_tfm_serve(
    driver: webdriver.Chrome, served_address: str
) -> None:
    with without_complaints(driver, served_address) as page:
        page.open(q=TEXT)
        translated = asked(served_address, "translate", q=TEXT, source="en", target="it")
        page.wait_for_output(translated["translatedText"])
        page.by_id("open-inside").click()
        page.wait("document.querySelector('#view .tfm-view')")


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1400])
def test_axe_finds_no_violation_in_the_drawer(page: Page, axe: str, width: int, theme: str) -> None:
    page.look(width, 1200, theme)
    page.open(source="en", target="it", q=LINE)
    page.use(axe)
    page.wait("document.querySelector('#output .word') && document.getElementById('progress').hidden")
    page.by_id("open-inside").click()
    page.wait("document.querySelector('#view .tfm-view')")
    for tab in page.driver.find_elements(By.CSS_SELECTOR, "[role=tab]"):
        page.js("arguments[0].click()", tab)
        assert page.violations() == [], tab.text
