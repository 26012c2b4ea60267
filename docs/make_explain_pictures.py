"""Makes the pictures of docs/explaining.md and docs/plotting.md: what a browser shows of pages of tfm.

    common="--set model.d_model=128 --set model.d_ff=256 --set model.num_heads=4 --set training.max_steps=500
        --set training.log_every=10 --set training.validate_every=50 --set validation.max_sentences=50"
    tfm train --config en-it.yaml $common --set name=three --set model.encoder_layers=3 --set model.decoder_layers=3
    tfm train --config en-it.yaml $common --set name=three-seed-2 --set seed=2 --set model.encoder_layers=3 --set model.decoder_layers=3
    tfm train --config en-it.yaml $common --set name=six --set model.encoder_layers=6 --set model.decoder_layers=6
    python docs/make_explain_pictures.py three three-seed-2 six

It needs chromium and chromedriver, and the package selenium (extra `dev`).
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from browser import PICTURES, Browser

SENTENCE = "The red cars are in front of the station."
WIDE, NARROW = (1400, 2000), (360, 1500)
TO_ATTENTION = "document.querySelector('section:nth-of-type(4)').scrollIntoView()"


def tfm(*arguments: str | Path) -> None:
    """Run the command line."""
    command = [sys.executable, "-m", "transformer_cli", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def point_at_a_word(browser: Browser) -> None:
    """Show the lines of the third token of the translation."""
    browser.wait("document.querySelectorAll('.tfm-two button').length > 0")
    browser.do("document.querySelectorAll('.tfm-two > div')[1].querySelectorAll('button')[2].dispatchEvent(new MouseEvent('mouseenter'))")  # fmt: skip


def take_pages(browser: Browser, pages: dict[str, Path], folder: Path) -> None:
    """Each page wide and narrow, light and dark: from its head, and from its heat maps."""
    for name, page in pages.items():
        for size_name, size in (("wide", WIDE), ("narrow", NARROW)):
            for theme in ("light", "dark"):
                browser.show(page.as_uri(), *size, theme)
                point_at_a_word(browser)
                browser.take(folder / f"explain-{name}-{size_name}-{theme}.png")
                browser.do(TO_ATTENTION)
                browser.take(folder / f"explain-{name}-{size_name}-{theme}-attention.png")


def main() -> None:
    """Take all pictures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("three", help="a run with three layers")
    parser.add_argument("again", help="the same with another seed")
    parser.add_argument("six", help="a run with six layers")
    parser.add_argument("--folder", type=Path, default=PICTURES)
    asked = parser.parse_args()
    browser = Browser()
    try:
        with tempfile.TemporaryDirectory() as made:
            pages = {}
            for name in ("three", "six"):
                pages[name] = Path(made, f"{name}.html")
                slide = asked.folder / "explain-slide.png"
                picture = ["--png", slide] if name == "three" else []
                tfm("explain", SENTENCE, "--run", getattr(asked, name), "--html", pages[name], *picture)  # fmt: skip
            take_pages(browser, pages, asked.folder)
            tfm("explain", "--over-time", "--run", asked.three, "--png", asked.folder / "explain-film.png")  # fmt: skip
            runs = asked.three, asked.again, asked.six
            tfm("plot", *runs, "--group", "--smooth", "5", "--output", asked.folder / "plot.png")
    finally:
        browser.driver.quit()


if __name__ == "__main__":
    main()
