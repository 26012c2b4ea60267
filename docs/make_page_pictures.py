"""Makes the pictures of docs/the_page.md, and page.png with its narrow and dark forms: what a browser shows of a server that runs.

    tfm serve --run docs/demonstration --port 5000
    python docs/make_page_pictures.py http://127.0.0.1:5000/

The forms of page.png are page.png, page-dark.png, page-narrow.png and page-narrow-dark.png.

It needs chromium and chromedriver, and the package selenium (extra `dev`).
"""

import argparse

from browser import PICTURES, Browser

TEXT = "Good morning. Where is the station?\nThe red cars are in front of the school."
ONE = "The red cars are in front of the school."
IS_DONE = "document.querySelector('#output .word') && document.getElementById('progress').hidden"


class Camera(Browser):
    """A browser that takes pictures of the page of a server."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address

    def open(self, text: str, width: int, height: int, theme: str) -> None:
        """The page with a text, in a window of this size."""
        self.show(self.address, width, height, theme)
        self.do(
            "const field = document.getElementById('source');"
            f"field.value = {text!r}; field.dispatchEvent(new Event('input'))"
        )
        self.wait(IS_DONE)

    def choose_word(self, number: int) -> None:
        """Press a word of the translation, and wait for the words that were likely."""
        self.do(f"document.querySelectorAll('#output .word')[{number}].click()")
        self.wait("document.querySelectorAll('#likely li button').length > 1")
        self.wait("!document.getElementById('then').hidden")
        self.wait("document.querySelectorAll('#others li').length > 1")

    def see_inside(self, tab: str) -> None:
        """Open the drawer at a tab."""
        self.do("document.getElementById('open-inside').click()")
        self.wait("document.querySelector('#view .tfm-view')")
        self.do(f"document.getElementById('tab-{tab}').click(); document.activeElement.blur(); scrollTo(0, 0)")


def main() -> None:
    """Take all pictures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("address", help="of a server with an English-French run")
    camera = Camera(parser.parse_args().address)
    try:
        for theme, end in (("light", ""), ("dark", "-dark")):
            camera.open(TEXT, 1240, 560, theme)
            camera.choose_word(5)
            camera.take(PICTURES / f"page{end}.png")
            camera.open(TEXT, 360, 720, theme)
            camera.choose_word(5)
            camera.take(PICTURES / f"page-narrow{end}.png")
        camera.open(ONE, 1400, 1200, "dark")
        camera.see_inside("attention")
        camera.take(PICTURES / "page_attention.png")
        camera.open(ONE, 1240, 1240, "light")
        camera.see_inside("beam")
        camera.take(PICTURES / "page_beam.png")
        camera.open(TEXT, 320, 700, "dark")
        camera.choose_word(3)
        camera.take(PICTURES / "page_phone.png")
    finally:
        camera.driver.quit()


if __name__ == "__main__":
    main()
