"""The page of `--to browser` in a real Chromium without a network: from a web space, and opened from a disk."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from selenium import webdriver

from ..serving.page.browser import Page, chromium, needs_chromium
from .students import known_sentences, write_page

pytestmark = [needs_chromium, pytest.mark.browser, pytest.mark.heavy]
TEXT = "Where is the station? Anna is at the table.\n\nThe \U0001f600 is small."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, installed_engine: Path) -> Path:
    return write_page(tmp_path_factory.mktemp("browser") / "en-it", installed_engine)


@pytest.fixture(scope="module")
def offline_driver() -> Iterator[webdriver.Chrome]:
    """A browser that finds no host by name, whatever a page asks for."""
    with chromium() as found:
        yield found


class _Quiet(SimpleHTTPRequestHandler):
    asked: list[str] = []  # noqa: RUF012

    def log_message(self, *_: object) -> None:
        self.asked.append(self.path)


@pytest.fixture
def web_space(folder: Path) -> Iterator[str]:
    """A server that knows nothing but files."""
    _Quiet.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def set_offline(driver: webdriver.Chrome, *, is_offline: bool) -> None:
    conditions = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    driver.execute_cdp_cmd("Network.enable", {})
    driver.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": is_offline, **conditions})


def require_translated(page: Page, sentence: str) -> str:
    page.wait("document.querySelector('#output .sentence') && document.getElementById('progress').hidden", 60)
    assert page.js("document.getElementById('source').value") == sentence
    return page.output


def test_a_page_from_a_disk_translates_without_a_network(folder: Path, offline_driver: webdriver.Chrome) -> None:
    set_offline(offline_driver, is_offline=True)
    page = Page(offline_driver, (folder / "index.html").as_uri())
    page.look(1200)
    sentence = known_sentences()[0]
    page.again(q=sentence)
    first = require_translated(page, sentence)
    assert first
    page.write(TEXT)
    page.wait("document.querySelectorAll('#output .sentence').length === 3")
    page.wait_until_translated()
    paragraphs = page.output.split("\n")
    assert len(paragraphs) == 3
    assert paragraphs[0].startswith("Dov'è la stazione? ")
    assert paragraphs[1] == ""
    # Pointing at the source lights the sentence in both places, also behind a character of two code units.
    sources = page.js("[...document.querySelectorAll('#mirror .sentence')].map((one) => one.textContent)")
    assert sources == ["Where is the station?", "Anna is at the table.", "The \U0001f600 is small."]
    assert page.complaints() == []


def test_a_page_of_a_web_space_goes_on_when_the_network_is_cut(
    folder: Path, web_space: str, offline_driver: webdriver.Chrome
) -> None:
    set_offline(offline_driver, is_offline=False)
    page = Page(offline_driver, web_space)
    page.look(390, 800, "dark")
    sentence = known_sentences()[0]
    page.open(q=sentence)
    from_web = require_translated(page, sentence)
    set_offline(offline_driver, is_offline=True)
    asked = [*_Quiet.asked]
    assert {path.split("?")[0] for path in asked} == {
        "/",
        *(f"/files/{name}.js" for name in ("program", "wasm", "model", "vocabulary")),
    }
    page.write(TEXT)
    page.wait("document.querySelectorAll('#output .sentence').length === 3")
    page.wait_until_translated()
    assert _Quiet.asked == asked
    assert from_web
    assert page.complaints() == []


def test_the_page_offers_nothing_that_only_a_server_can_do(folder: Path, offline_driver: webdriver.Chrome) -> None:
    page = Page(offline_driver, (folder / "index.html").as_uri())
    page.again(q=known_sentences()[0])
    require_translated(page, known_sentences()[0])
    shown = page.js(
        "[...document.querySelectorAll('[data-served], #pick-file')].filter((one) => one.checkVisibility()).length"
    )
    assert shown == 0
    assert page.js("document.querySelectorAll('#output [role=button]').length") == 0
    assert "Texts do not leave this browser" in page.js("document.querySelector('footer').textContent")


def test_the_policy_of_the_page_lets_no_text_out(
    folder: Path, offline_driver: webdriver.Chrome, web_space: str
) -> None:
    set_offline(offline_driver, is_offline=False)
    page = Page(offline_driver, (folder / "index.html").as_uri())
    page.again()
    page.wait("document.querySelectorAll('#source-language option').length > 0", 60)
    page.complaints()
    for attempt in (
        f"fetch('{web_space}?secret').then(() => 'out', () => 'kept')",
        f"new Promise((done) => {{ const image = new Image(); image.onload = () => done('out'); image.onerror = () => done('kept'); image.src = '{web_space}index.html?secret'; }})",
    ):
        found = offline_driver.execute_async_script(f"const done = arguments[0]; ({attempt}).then(done)")
        assert found == "kept"
    assert not any("secret" in path for path in _Quiet.asked)
    page.complaints()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model", None, "The file files/model.js is missing: copy the whole folder again."),
        ("wasm", b'tfmTake("wasm", "H4sI', "The file files/wasm.js is damaged: copy the whole folder again."),
        ("vocabulary", b'tfmTake("vocabulary", "H4sIAAAA");', "The file files/vocabulary.js is damaged"),
    ],
)
def test_a_file_that_is_missing_or_damaged_is_named_on_the_page(
    name: str, content: bytes | None, message: str, folder: Path, offline_driver: webdriver.Chrome
) -> None:
    path = folder / "files" / f"{name}.js"
    whole = path.read_bytes()
    try:
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        page = Page(offline_driver, (folder / "index.html").as_uri())
        page.again()
        page.wait("!document.getElementById('notice').hidden", 60)
        assert message in page.js("document.getElementById('notice').textContent")
        page.complaints()
        # Once the file is there, the button of the notice is enough.
        path.write_bytes(whole)
        page.js("document.querySelector('#notice button').click()")
        page.wait("document.querySelectorAll('#source-language option').length > 0", 60)
    finally:
        path.write_bytes(whole)
