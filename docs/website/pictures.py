"""What the site makes of the pictures of a page: each opens large, has a dark form, and can be read on a telephone."""

import re
from html import escape, unescape
from pathlib import Path

from PIL import Image

FOLDER = Path(__file__).parents[1] / "pictures"
_FOR_GITHUB = re.compile(r"<a [^>]*>\s*<picture>.*?(<img [^>]*>)\s*</picture>\s*</a>", re.DOTALL)
_PICTURE = re.compile(r"<img [^>]*>")
_TELEPHONE = "(max-width: 40em)"
_READABLE_PIXELS = 720
"""A picture without a narrow form keeps this width on a telephone, where it can be moved to the side."""


def without_forms(markdown: str) -> str:
    """A page whose pictures are Markdown: README names all forms of a picture in HTML, because GitHub chooses among them so."""
    return _FOR_GITHUB.sub(lambda found: _as_markdown(found[1]), markdown)


def _as_markdown(image: str) -> str:
    alternative = " ".join(unescape(_attribute(image, "alt")).split())
    return f"![{alternative}]({_attribute(image, 'src')})"


def with_forms(html: str) -> str:
    """The HTML of a page in which each picture of docs/pictures is a link to itself, and has its other forms.

    `X.png` may have `X-dark.png` beside it, which is shown with the dark colours of the site, and `X-narrow.png` and
    `X-narrow-dark.png` for telephones. A picture on white without a dark form is inverted by `site.css`.
    """
    return _PICTURE.sub(lambda found: _with_its_forms(found[0]), html)


def _with_its_forms(image: str) -> str:
    address = _attribute(image, "src")
    folder, inside, name = address.partition("pictures/")
    path = FOLDER / name
    if not inside or not path.is_file():
        return image
    alternative = escape(unescape(_attribute(image, "alt")))

    def form(end: str) -> str | None:
        other = Path(name).with_name(f"{path.stem}{end}{path.suffix}")
        return f"{folder}{inside}{other.as_posix()}" if (FOLDER / other).is_file() else None

    def shown(end: str, scheme: str) -> str:
        narrow = form(f"-narrow{end}")
        source = f'<source media="{_TELEPHONE}" srcset="{narrow}">' if narrow else ""
        kind = "" if narrow else f' class="{_kind(path, has_dark=bool(scheme))}"'
        return f'<picture>{source}<img alt="{alternative}"{kind} src="{form(end)}{scheme}" loading="lazy"></picture>'

    forms = shown("", "#only-light") + shown("-dark", "#only-dark") if form("-dark") else shown("", "")
    return f'<a class="picture" href="{address}">{forms}</a>'


def _kind(path: Path, *, has_dark: bool) -> str:
    with Image.open(path) as picture:
        is_wide = picture.width > _READABLE_PIXELS
        corner = picture.convert("L").getpixel((0, 0))
    is_on_white = not has_dark and isinstance(corner, int) and corner > 240
    return " ".join(("wide",) * is_wide + ("on-white",) * is_on_white)


def _attribute(image: str, name: str) -> str:
    found = re.search(rf'\b{name}="([^"]*)"', image)
    return found[1] if found else ""
