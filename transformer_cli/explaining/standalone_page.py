"""The page of `tfm explain --html`: one HTML file with its script and its data, which needs no network."""

import html
import json
import re
from collections.abc import Mapping
from importlib import resources

from transformer_cli.explaining.explanation import LineExplanation

BEAM_SIZES = (1, 2, 4, 8)
"""The beams that are decoded beforehand."""


def page_of(explanations: Mapping[int, LineExplanation], first: int) -> str:
    """The page as text.

    Args:
        explanations: of one line, by the beam size.
        first: the beam size that is shown first.
    """
    shown = {str(size): one.to_json() for size, one in sorted(explanations.items())}
    data = json.dumps({"explanations": shown, "first": str(first)})
    parts = {
        "title": html.escape(f"{explanations[first].source} - explained"),
        # Without this character, nothing in the data can end the script.
        "data": data.replace("<", "\\u003c"),
        "views": views_script(),
    }
    return re.sub(r"\{\{ (\w+) \}\}", lambda match: parts[match[1]], _text("standalone_page.html"))


def views_script() -> str:
    """The JavaScript that draws explanations, for any page."""
    return _text("views.js")


def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
