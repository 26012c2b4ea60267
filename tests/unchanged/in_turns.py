"""CPU seconds of two trees in turns: training, translation and starts, as "not slower than 3 %" asks.

    python tests/unchanged/in_turns.py OLD_PYTHON --rounds 5
    python tests/unchanged/in_turns.py OLD_PYTHON --kinds greedy beam --rounds 9

OLD_PYTHON is the Python of a virtual environment in which the other tree is installed (`pip install -e .` there, which also compiles
its kernels); this tree is that of the Python that runs. Each round measures both trees, the one that begins changing each time. Printed are
the medians, the median of the ratios of the rounds, and the smallest and the largest ratio. On a machine that does other work, too,
single ratios differ by a third: believe medians of many rounds only.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]
SENTENCES = HERE / "benchmarks" / "everyday_sentences.tsv"
NUM_STARTS = {"help": 10, "sentence": 5}  # of one measurement, because a start is short
UPDATES = {"tiny": ("copy.yaml", 150), "small": ("en-it.yaml", 40)}
KINDS = ("help", "sentence", "greedy", "beam", *UPDATES)


def arguments(kind: str, tree: Path, folder: Path) -> list[str]:
    """The command line behind `tfm` of one measurement."""
    run = str(tree / "docs" / "run")
    if kind == "help":
        return ["--help"]
    if kind == "sentence":
        return ["translate", "--run", run, "Where is the station?"]
    if kind in UPDATES:
        config, num_updates = UPDATES[kind]
        settings = [f"training.max_steps={num_updates}", f"name={folder.name}", "runtime.threads=1"]
        return ["train", "--config", str(tree / "configs" / config), *(f"--set={setting}" for setting in settings)]
    size = "1" if kind == "greedy" else "4"
    return [
        "translate", f"--run={run}", f"--input={folder / 'lines'}", f"--output={folder / 'out'}", f"--beam-size={size}"
    ]  # fmt: skip


def seconds(python: str, tree: Path, kind: str) -> float:
    """The CPU seconds of one measurement of a tree, of one thread; a failing command ends the program."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = [line.split("\t")[0] for line in SENTENCES.read_text("utf-8").splitlines() if line[:1] != "#"]
        (folder / "lines").write_text("\n".join(lines) + "\n", "utf-8")
        command = [str(Path(python).parent / "tfm"), *arguments(kind, tree, folder)]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        for _ in range(NUM_STARTS.get(kind, 1)):
            subprocess.run(
                command, cwd=folder, env=environment | {"OMP_NUM_THREADS": "1"}, check=True, capture_output=True,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def row(kind: str, old: Sequence[float], new: Sequence[float]) -> str:
    """A line about the rounds of one kind: medians, the median of the ratios, the smallest and the largest one."""
    ratios = sorted(after / before for before, after in zip(old, new, strict=True))
    return (
        f"{kind:9} {statistics.median(old):8.3f} {statistics.median(new):8.3f}  "
        f"{statistics.median(ratios):.3f} ({ratios[0]:.2f}-{ratios[-1]:.2f})"
    )


def tree_of(python: str) -> Path:
    """The folder of the checkout that a Python imports `transformer_cli` from."""
    code = "import transformer_cli; print(transformer_cli.__file__)"
    found = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True, cwd="/")
    return Path(found.stdout.strip()).parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("old", metavar="OLD_PYTHON", help="the Python of the other tree")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    pythons = (options.old, sys.executable)
    trees = [tree_of(python) for python in pythons]
    sys.stdout.write(f"{'':9} {'old s':>8} {'new s':>8}  ratio\n")
    for kind in options.kinds:
        for python, tree in zip(pythons, trees, strict=True):
            seconds(python, tree, kind)  # compiles modules, and fills the caches of the disk
        times: list[tuple[float, float]] = []
        for number in range(options.rounds):
            both = {place: 0.0 for place in (0, 1)}
            for place in (0, 1) if number % 2 else (1, 0):
                both[place] = seconds(pythons[place], trees[place], kind)
            times.append((both[0], both[1]))
        sys.stdout.write(row(kind, *zip(*times, strict=True)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
