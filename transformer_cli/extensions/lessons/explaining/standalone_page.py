"""The pages of `tfm explain SENTENCE --html FILE`: one HTML file with its scripts and its data, which needs no network."""

import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from transformer_cli.extensions.lessons.explaining.explanation import LineExplanation
from transformer_cli.extensions.lessons.explaining.learning import Moment, films

BEAM_SIZES = (1, 2, 4, 8)
"""The beams that are decoded beforehand."""


def page_of_line(explanations: Mapping[int, LineExplanation], first: int) -> str:
    """The page of one line.

    Args:
        explanations: of the line, by the beam size.
        first: the beam size that is shown first.
    """
    shown = {str(size): one.to_json() for size, one in sorted(explanations.items())}
    title = f"{explanations[first].source} - explained"
    return _page(title, {"explanations": shown, "first": str(first)}, "page_of_a_line.js")


def page_of_learning(run: str, moments: Sequence[Moment]) -> str:
    """The page that shows the same sentences at each validation of a run."""
    shown = [[{"step": step} | sentence.to_json() for step, sentence in film] for film in films(moments)]
    return _page(f"How {run} learned", {"run": run, "films": shown}, "page_of_learning.js")


def _page(title: str, data: Any, script: str) -> str:
    parts = {
        "title": html.escape(title),
        # Without this character, nothing in the data can end the script.
        "data": json.dumps(data).replace("<", "\\u003c"),
        "views": views_script(),
        "page": _text(script),
    }
    return re.sub(r"\{\{ (\w+) \}\}", lambda match: parts[match[1]], _text("standalone_page.html"))


def views_script() -> str:
    """The JavaScript that draws explanations, for any page."""
    return _text("views.js")


def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
