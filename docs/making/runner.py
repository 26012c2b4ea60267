"""Runs commands one after the other in this process, and prints what each has printed.

Standard input has a JSON list of objects: `{"tfm": [arguments]}` or `{"python": "a program", "page": "its page"}`. The
programs of one page share their variables. Standard output gets a list of objects with `output`; `failure`, which is
empty if the command has succeeded; and `drawn`.

With `draws`, `drawn` is the SHA-256 of what the saved figure shows, independent of fonts and of the version of matplotlib. It
is empty if there is not exactly one figure. `draws` is "with numbers", or "without numbers" for pictures of a model: its
numbers are rounded differently on different processors, so only texts, shapes and colours count.
"""

import contextlib
import hashlib
import io
import json
import re
import sys
import traceback
from collections.abc import Iterator
from typing import Any

_variables: dict[object, dict[str, object]] = {}


def run(job: dict[str, object]) -> dict[str, str]:
    """Run one command."""
    taken = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n")
    failure = ""
    descriptions: list[str] = []
    with contextlib.redirect_stdout(taken), _observed(descriptions, bool(job.get("draws"))):
        try:
            _run(job)
        except SystemExit as end:
            failure = f"it ended with exit code {end.code}" if end.code else ""
        except Exception:
            failure = traceback.format_exc()
    taken.flush()
    output = taken.buffer.getvalue().decode("utf-8")
    drawn = descriptions[0] if len(descriptions) == 1 else ""
    if drawn:
        if job["draws"] == "without numbers":
            drawn = _without_numbers(drawn)
        drawn = hashlib.sha256(drawn.encode("utf-8")).hexdigest()
    return {"output": output, "failure": failure, "drawn": drawn}


@contextlib.contextmanager
def _observed(descriptions: list[str], is_wanted: bool) -> Iterator[None]:
    """Add the description of each figure that is saved."""
    if not is_wanted:
        yield
        return
    from matplotlib.figure import Figure

    from transformer_cli.extensions.lessons.drawing.description import describe_figure

    save = Figure.savefig

    def observe(self: Figure, *arguments: Any, **options: Any) -> None:
        descriptions.append(describe_figure(self))
        save(self, *arguments, **options)

    Figure.savefig = observe
    try:
        yield
    finally:
        Figure.savefig = save


def _without_numbers(description: str) -> str:
    lines = [
        re.sub(r", [0-9a-f]{16}(?= )", "", line) if line.lstrip().startswith("image ") else line
        for line in description.splitlines()
    ]
    blanked = re.sub(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?", "#", "\n".join(lines))
    # Which cells of a picture show their number depends on the number.
    return re.sub(r"^ *text '#'.*\n", "", blanked, flags=re.MULTILINE)


def _run(job: dict[str, object]) -> None:
    if "python" in job:
        variables = _variables.setdefault(job["page"], {"__name__": "page"})
        exec(compile(str(job["python"]), str(job["page"]), "exec"), variables)
        return
    from typer.main import get_command

    from transformer_cli.cli import app

    arguments = job["tfm"]
    assert isinstance(arguments, list)
    get_command(app).main(args=arguments, prog_name="tfm", standalone_mode=False)


def main() -> None:
    """Run all commands."""
    answers = [run(job) for job in json.load(sys.stdin)]
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
