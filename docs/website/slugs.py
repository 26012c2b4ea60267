"""The anchor of a heading, by the rules of GitHub, so that one link works there and on the site."""

import re
import unicodedata


def slug(heading: str) -> str:
    """The anchor of a heading that occurs once: small letters, hyphens for spaces, no punctuation.

    Args:
        heading: the text of the heading as a reader sees it, without Markdown.
    """
    text = heading.strip().lower()
    return "".join("-" if letter == " " else letter for letter in text if _stays(letter))


class Slugs:
    """The anchors of one page: the second heading with the same text gets `-1`, the third `-2`."""

    def __init__(self) -> None:
        self._uses: dict[str, int] = {}

    def next(self, heading: str) -> str:
        """The anchor of the next heading of the page."""
        base = slug(heading)
        anchor = base
        while anchor in self._uses:
            self._uses[base] += 1
            anchor = f"{base}-{self._uses[base]}"
        self._uses[anchor] = 0
        return anchor


def plain(heading: str) -> str:
    """The text of a Markdown heading that a reader sees: without marks of code, stress and links."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = re.sub(r"(\*\*|\*|`)(.+?)\1", r"\2", text)
    text = re.sub(r"(?<!\w)_(.+?)_(?!\w)", r"\1", text)
    return re.sub(r"<[^>]+>", "", text).rstrip("#").strip()


def _stays(letter: str) -> bool:
    """Whether GitHub keeps a character: letters, marks, digits, connectors, hyphens and spaces."""
    category = unicodedata.category(letter)
    return letter in "- " or category[0] in "LM" or category in ("Nd", "Pc")
