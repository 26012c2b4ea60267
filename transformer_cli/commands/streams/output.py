"""What a command shows on standard output: one JSON object for programs, or lines for people."""

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from transformer_cli.process.escaping import escaped, escaped_in_json
from transformer_cli.process.messages import fitted, terminal_width
from transformer_cli.process.signals import ended_after


def fitting(lines: Iterable[str]) -> list[str]:
    """The lines of a table, cut where a terminal would wrap them; a file or a pipe gets them whole."""
    num_columns = terminal_width(sys.stdout)
    return [fitted(line, num_columns) for line in lines]


def show(facts: Mapping[str, Any], lines: Iterable[str], *, as_json: bool) -> None:
    """Write the facts as one line of JSON, or write the lines of text; control characters become codes."""
    shown = (
        [escaped_in_json(json.dumps(facts, ensure_ascii=False))] if as_json else map(escaped, lines)
    )
    with ended_after():
        sys.stdout.write("\n".join(shown) + "\n")
