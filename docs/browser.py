"""The browser that takes the pictures of the documentation.

It needs chromium and chromedriver, and the package selenium (extra `dev`).
"""

import io
import shutil
import time
from pathlib import Path
from typing import Any

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

PICTURES = Path(__file__).parent / "pictures"


def save_small(picture: Image.Image, path: Path) -> None:
    """Save a picture with 128 colours: pages and drawings have few, and the file becomes a third as large."""
    picture.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)


class Browser:
    """A browser without a window of its own, which saves what a page shows."""

    def __init__(self) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = str(shutil.which("chromium"))
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--lang=en"):
            options.add_argument(argument)
        self.driver = webdriver.Chrome(options, Service(str(shutil.which("chromedriver"))))

    def do(self, script: str) -> Any:
        """Run JavaScript in the page; gives what it returns."""
        return self.driver.execute_script(script)

    def wait(self, expression: str) -> None:
        """Wait until a JavaScript expression is true."""
        WebDriverWait(self.driver, 60).until(lambda _: self.do(f"return {expression}"))

    def show(self, address: str, width: int, height: int, theme: str) -> None:
        """Open a page in a window of this size, for a reader who prefers this theme."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": theme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        self.driver.get(address)

    def take(self, path: Path) -> None:
        """Save what the window shows."""
        time.sleep(0.5)  # until nothing moves
        with Image.open(io.BytesIO(self.driver.get_screenshot_as_png())) as shown:
            save_small(shown, path)
