"""Makes docs/pictures/explain-page.png and its narrow and dark forms: what a browser shows of `tfm explain --html`, for the model of docs/demonstration.

    python docs/make_explain_page_picture.py

The files are explain-page.png, explain-page-dark.png, explain-page-narrow.png and explain-page-narrow-dark.png. It needs
chromium and chromedriver, and the package selenium (extra `dev`).
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from browser import PICTURES, Browser
from make_explain_pictures import SENTENCE, point_at_a_word
from making.blocks import ROOT

SIZES = {"": (1000, 860), "-narrow": (360, 800)}


def main() -> None:
    """Write the page of one sentence, and take pictures of its beginning."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        command = [
            sys.executable,
            "-m",
            "transformer_cli",
            "explain",
            SENTENCE,
            "--run",
            "docs/demonstration",
        ]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        subprocess.run([*command, "--html", str(page)], cwd=ROOT, env=environment, check=True)
        browser = Browser()
        try:
            for size, (width, height) in SIZES.items():
                for theme, end in (("light", ""), ("dark", "-dark")):
                    browser.show(page.as_uri(), width, height, theme)
                    point_at_a_word(browser)
                    browser.take(PICTURES / f"explain-page{size}{end}.png")
        finally:
            browser.driver.quit()


if __name__ == "__main__":
    main()
