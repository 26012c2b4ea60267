"""Runs commands one after the other in this process, and prints what each has printed.

Standard input has a JSON list of objects: `{"tfm": [arguments]}` or `{"python": "a program", "page": "its page"}`. The
programs of one page share their variables. Standard output gets a list of objects with `output` and `failure`, which is
empty if the command has succeeded.
"""

import contextlib
import io
import json
import sys
import traceback

_variables: dict[object, dict[str, object]] = {}


def run(job: dict[str, object]) -> dict[str, str]:
    """Run one command."""
    taken = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n")
    failure = ""
    with contextlib.redirect_stdout(taken):
        try:
            _run(job)
        except SystemExit as end:
            failure = f"it ended with exit code {end.code}" if end.code else ""
        except Exception:
            failure = traceback.format_exc()
    taken.flush()
    return {"output": taken.buffer.getvalue().decode("utf-8"), "failure": failure}


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
