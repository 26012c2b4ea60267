"""Measures how long a command takes from its start to its end, in new processes.

    python benchmarks/cold_start.py --run en-it

The commands are `tfm --help`, the answer to the Tab key, `tfm info`, and the translation of one sentence by each
engine; an engine that is not installed is left out. Each command runs once unmeasured, so that its files are in
the file cache, Python has kept its compiled modules, and CTranslate2 has its converted model. Then the commands take turns, so that other work on the
machine slows all of them alike. `wall` is the time that a person waits; `CPU` is that of all threads of the
process. Both are in seconds, and the range goes from the fastest to the slowest round.

`--import-times` lists instead the modules whose import takes longest in a translation by CTranslate2.
"""

import argparse
import importlib.util
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

SENTENCE = "Where is the station?"
TFM = (sys.executable, "-m", "transformer_cli")
ROOT = str(Path(__file__).parent.parent)


class Round(NamedTuple):
    """One start of a command."""

    wall_seconds: float
    cpu_seconds: float


def main() -> None:
    arguments = _parse_arguments()
    commands = _commands(arguments.run)
    if arguments.import_times:
        _write(_slowest_imports(commands["tfm translate, CTranslate2"], arguments.import_times))
        return
    rounds: dict[str, list[Round]] = {name: [] for name in commands}
    for number in range(arguments.rounds + 1):
        for name, command in commands.items():
            measured = _timed(command, _environment(name))
            if number:
                rounds[name].append(measured)
    _write(_table(rounds))


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", required=True, help="name or folder of a trained run")
    parser.add_argument("--rounds", type=int, default=10, help="measured starts of each command")
    parser.add_argument("--import-times", type=int, metavar="N", help="list the N slowest imports")
    return parser.parse_args()


def _commands(run: str) -> dict[str, list[str]]:
    translate = [*TFM, "translate", "--run", run, "--set", "runtime.threads=1", SENTENCE]
    commands = {
        "tfm --help": [*TFM, "--help"],
        "the Tab key: --set runtime.dev": [*TFM],
        "tfm info": [*TFM, "info", "--run", run],
        "tfm translate, PyTorch": translate,
        # Without a wish for a machine or an engine, the first sentences of a small model need no PyTorch.
        "tfm translate, as it comes": [*TFM, "translate", "--run", run, SENTENCE],
    }
    if importlib.util.find_spec("ctranslate2") is not None:
        engine = ["--set", "decoding.engine=ctranslate2"]
        commands["tfm translate, CTranslate2"] = [*translate, *engine]
    return commands


def _environment(name: str) -> dict[str, str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ROOT}
    # With it, each process would compile all modules again; few users have it.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if name.startswith("the Tab key"):
        words = "tfm translate --set runtime.dev"
        environment |= {"_TFM_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "3"}
    return environment


def _timed(command: list[str], environment: dict[str, str]) -> Round:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started_at = time.perf_counter()
    subprocess.run(command, env=environment, capture_output=True, check=True)
    wall_seconds = time.perf_counter() - started_at
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Round(wall_seconds, cpu_seconds)


def _table(rounds: dict[str, list[Round]]) -> list[str]:
    lines = [f"{'median of new processes, seconds':36}{'wall':>8}{'range':>14}{'CPU':>8}{'range':>14}"]
    for name, measured in rounds.items():
        cells = []
        for seconds in zip(*measured, strict=True):
            spread = f"{min(seconds):.2f}-{max(seconds):.2f}"
            cells.append(f"{statistics.median(seconds):8.3f}{spread:>14}")
        lines.append(f"{name:36}{''.join(cells)}")
    return lines


def _slowest_imports(command: list[str], count: int) -> list[str]:
    """Milliseconds of a module itself and with what it imports, the slowest ones first."""
    timed = [command[0], "-X", "importtime", *command[1:]]
    done = subprocess.run(timed, env=_environment(""), capture_output=True, text=True, check=True)
    rows = re.findall(r"import time: +(\d+) \| +(\d+) \| +(\S+)", done.stderr)
    slowest = sorted(rows, key=lambda row: -int(row[1]))[:count]
    head = f"{'itself, ms':>12}{'with its imports, ms':>24}  module"
    return [
        head,
        *(f"{int(a) / 1000:12.1f}{int(b) / 1000:24.1f}  {name}" for a, b, name in slowest),
    ]


def _write(lines: list[str]) -> None:
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
