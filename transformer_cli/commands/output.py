"""What a command shows on standard output: one JSON object for programs, or lines for people."""

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from transformer_cli.escaping import escaped, escaped_in_json
from transformer_cli.signals import ended_after


def show(facts: Mapping[str, Any], lines: Iterable[str], *, as_json: bool) -> None:
    """Write the facts as one line of JSON, or the lines; control characters are written as codes."""
    shown = (
        [escaped_in_json(json.dumps(facts, ensure_ascii=False))] if as_json else map(escaped, lines)
    )
    with ended_after():
        sys.stdout.write("\n".join(shown) + "\n")
