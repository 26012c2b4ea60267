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
import itertools
import subprocess
import sys
import tempfile
from pathlib import Path

from browser import PICTURES, Browser, save_small
from PIL import Image

SENTENCE = "The red cars are in front of the station."
SIZES = {"wide": (1400, 1200), "narrow": (360, 1200)}
# Which page is shown to which reader, and from where on.
SHOWN = [
    ("three", "wide", "light", "head"),
    ("six", "wide", "dark", "attention"),
    ("three", "narrow", "light", "head"),
    ("six", "narrow", "dark", "attention"),
]
TO_ATTENTION = "document.querySelector('section:nth-of-type(4)').scrollIntoView()"


def tfm(*arguments: str | Path) -> None:
    """Run the command line."""
    command = [sys.executable, "-m", "transformer_cli", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def point_at_a_word(browser: Browser) -> None:
    """Show the lines of the third token of the translation."""
    browser.wait("document.querySelectorAll('.tfm-two button').length > 0")
    browser.do(
        "document.querySelectorAll('.tfm-two > div')[1].querySelectorAll('button')[2].dispatchEvent(new MouseEvent('mouseenter'))"
    )


def take_page(browser: Browser, page: Path, look: tuple[str, str, str, str], path: Path) -> None:
    """A page in a window of a size, light or dark, from its head or from its heat maps."""
    _, size, theme, place = look
    browser.show(page.as_uri(), *SIZES[size], theme)
    point_at_a_word(browser)
    if place == "attention":
        browser.do(TO_ATTENTION)
    browser.take(path)


def main() -> None:
    """Take all pictures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("three", help="a run with three layers")
    parser.add_argument("again", help="the same with another seed")
    parser.add_argument("six", help="a run with six layers")
    parser.add_argument("--folder", type=Path, default=PICTURES, help="for the pictures of the docs")
    parser.add_argument("--all", type=Path, help="a folder for all other sizes and themes")
    asked = parser.parse_args()
    browser = Browser()
    try:
        with tempfile.TemporaryDirectory() as made:
            pages = {}
            for name in ("three", "six"):
                pages[name] = Path(made, f"{name}.html")
                slide = asked.folder / "explain-slide.png"
                picture = ["--png", slide] if name == "three" else []
                tfm("explain", SENTENCE, "--run", getattr(asked, name), "--html", pages[name], *picture)
            for look in itertools.product(pages, SIZES, ("light", "dark"), ("head", "attention")):
                name, size, theme, place = look
                if look in SHOWN:
                    take_page(browser, pages[name], look, asked.folder / f"explain-{name}-layers-{size}.png")
                elif asked.all is not None:
                    take_page(browser, pages[name], look, asked.all / f"{name}-{size}-{theme}-{place}.png")
            tfm("explain", "--over-time", "--run", asked.three, "--png", asked.folder / "explain-film.png")
            runs = asked.three, asked.again, asked.six
            tfm("plot", *runs, "--group", "--smooth", "5", "--output", asked.folder / "plot.png")
        for name in ("explain-slide.png", "explain-film.png", "plot.png"):
            with Image.open(asked.folder / name) as picture:
                picture.load()
            save_small(picture, asked.folder / name)
    finally:
        browser.driver.quit()


if __name__ == "__main__":
    main()
