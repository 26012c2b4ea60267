"""A Chromium without a window, for tests of the page."""

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from selenium import webdriver
from selenium.webdriver import ActionChains
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
needs_chromium = pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="needs chromium and chromedriver")


@contextmanager
def chromium(downloads: Path | None = None) -> Iterator[webdriver.Chrome]:
    """A browser that asks nobody but the server of the test."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
        "--hide-scrollbars",
        "--lang=en",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    if downloads is not None:
        options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    try:
        yield driver
    finally:
        driver.quit()


class Page:
    """The page in a browser, as a person uses it."""

    def __init__(self, driver: webdriver.Chrome, address: str) -> None:
        self.driver = driver
        self.address = address

    def open(self, **query: str) -> "Page":
        """Open the page as for the first time, with nothing stored."""
        stored = {"origin": self.address.rstrip("/"), "storageTypes": "local_storage"}
        self.driver.execute_cdp_cmd("Storage.clearDataForOrigin", stored)
        return self.again(**query)

    def again(self, **query: str) -> "Page":
        """Open the page with what is stored."""
        self.driver.get(self.address + ("?" + urlencode(query) if query else ""))
        return self

    def look(self, width: int, height: int = 900, theme: str = "light") -> None:
        """The size of the window and the colours that the system prefers."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": theme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def js(self, expression: str, *arguments: Any) -> Any:
        return self.driver.execute_script(f"return {expression}", *arguments)

    def wait(self, expression: str, seconds: float = 20.0) -> None:
        """Wait until a JavaScript expression is true."""
        stop_at = time.monotonic() + seconds
        while not self.js(expression):
            shown = self.js("document.body.innerText")
            assert time.monotonic() < stop_at, f"never true: {expression}; the page says: {shown}"
            time.sleep(0.05)

    def wait_for_output(self, text: str) -> None:
        self.wait(f"{_OUTPUT} === {json.dumps(text)} && !{_IS_WAITING}")

    def wait_until_translated(self) -> None:
        """Wait until no sentence waits for its translation."""
        self.wait(f"!{_IS_WAITING}")

    @property
    def output(self) -> str:
        """The translation; a line break between two paragraphs."""
        return str(self.js(_OUTPUT))

    def by_id(self, name: str) -> WebElement:
        return self.driver.find_element(By.ID, name)

    @property
    def source(self) -> WebElement:
        return self.by_id("source")

    def write(self, text: str) -> None:
        """Put a text into the source at once, as pasting does."""
        self.js(
            "(() => { const field = document.getElementById('source'); field.value = arguments[0];"
            " field.dispatchEvent(new Event('input')); })()".replace("arguments[0]", json.dumps(text))
        )

    def word(self, text: str) -> WebElement:
        """The first word of the translation with this text."""
        found = self.js(
            f"[...document.querySelectorAll('#output .word')].find((one) => one.textContent === {json.dumps(text)})"
        )
        assert isinstance(found, WebElement), f"no word {text} in {self.output}"
        return found

    def press(self, *keys: str) -> None:
        """Press keys together: all but the last are held."""
        actions = ActionChains(self.driver)
        for key in keys[:-1]:
            actions.key_down(key)
        actions.send_keys(keys[-1])
        for key in keys[:-1]:
            actions.key_up(key)
        actions.perform()

    def hover(self, element: WebElement) -> None:
        ActionChains(self.driver).move_to_element(element).perform()

    def lit(self, side: str) -> list[str]:
        """The words that are lit in `mirror` (of the source) or `output`."""
        return list(self.js(f"[...document.querySelectorAll('#{side} .word.lit')].map((one) => one.textContent)"))

    def use(self, script: str) -> None:
        """Run a script in the page, whatever its security policy says."""
        self.driver.execute_script(script)

    def violations(self) -> list[str]:
        """What axe-core, which the page must `use` before, finds wrong."""
        found = self.driver.execute_async_script(
            "const done = arguments[0]; document.getAnimations().forEach((one) => one.finish());"
            "axe.run(document, { resultTypes: ['violations'] }).then((result) => done(result.violations))"
        )
        return [
            f"{one['id']}: {node['html'][:200]}: {node['failureSummary']}" for one in found for node in one["nodes"]
        ]

    def complaints(self) -> list[str]:
        """What the browser has complained about: errors, and everything that the content security policy forbade."""
        entries = self.driver.get_log("browser")
        return [each["message"] for each in entries if each["level"] in ("WARNING", "SEVERE")]


_OUTPUT = "[...document.querySelectorAll('#output > p:not(.hint)')].map((one) => one.textContent).join('\\n')"
_IS_WAITING = (
    "(document.querySelector('#output .waiting, #output .pulse') || !document.getElementById('progress').hidden)"
)
