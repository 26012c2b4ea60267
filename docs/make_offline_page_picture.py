"""Makes docs/pictures/offline-page.png and its narrow and dark forms: the page of `tfm export --to browser`, opened from a disk without a network.

    tfm student --teacher docs/run --config student-en-it.yaml
    npm install @browsermt/bergamot-translator
    tfm export --run student-en-it --to browser --output page
    python docs/make_offline_page_picture.py page

The files are offline-page.png, offline-page-dark.png, offline-page-narrow.png and offline-page-narrow-dark.png. It needs
chromium and chromedriver, and the package selenium (extra `dev`).
"""

import argparse
from pathlib import Path

from browser import PICTURES, Browser

TEXT = "Where is the station? The train leaves at eight.\nThe red cars are in front of the station."
SIZES = {"": (1240, 420), "-narrow": (360, 640)}
IS_DONE = "document.querySelectorAll('#output .sentence').length === 3 && document.getElementById('progress').hidden"


def main() -> None:
    """Cut the network, open the page, type, and take pictures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="what tfm export --to browser has written")
    page = parser.parse_args().folder.resolve() / "index.html"
    browser = Browser()
    try:
        browser.driver.execute_cdp_cmd("Network.enable", {})
        browser.driver.execute_cdp_cmd(
            "Network.emulateNetworkConditions",
            {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1},
        )
        for size, (width, height) in SIZES.items():
            for theme, end in (("light", ""), ("dark", "-dark")):
                browser.show(page.as_uri(), width, height, theme)
                browser.do(
                    "const field = document.getElementById('source');"
                    f"field.value = {TEXT!r}; field.dispatchEvent(new Event('input'))"
                )
                browser.wait(IS_DONE)
                browser.take(PICTURES / f"offline-page{size}{end}.png")
    finally:
        browser.driver.quit()


if __name__ == "__main__":
    main()
