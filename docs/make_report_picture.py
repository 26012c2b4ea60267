"""Makes docs/pictures/report.png: what a browser shows of `tfm validate --report`, for the model of docs/run.

    python docs/make_report_picture.py

It needs chromium and chromedriver, and the package selenium (extra `dev`).
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from browser import PICTURES, Browser
from making.blocks import ROOT


def main() -> None:
    """Write the report of the test split, and take a picture of its beginning."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.html"
        command = [sys.executable, "-m", "transformer_cli", "validate", "--run", "docs/run"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        options = ["--split", "test", "--report", str(report)]
        subprocess.run([*command, *options], cwd=ROOT, env=environment, check=True)
        browser = Browser()
        try:
            browser.show(report.as_uri(), 1240, 1000, "light")
            browser.take(PICTURES / "report.png")
        finally:
            browser.driver.quit()


if __name__ == "__main__":
    main()
