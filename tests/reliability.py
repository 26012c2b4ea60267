"""What a run survives, in figures: random kills, flipped bits, full disks.

    python tests/reliability.py --seed 1

Each figure comes from real `tfm train` processes on a tiny experiment; the same seed draws the same bits
and the same waits. If an expectation is not met, the script names it and exits with 1.
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from disks import mounted
from experiments import TINY, essence, metrics_of, newest_checkpoint, write_tiny
from launcher import Launcher, Process, Tfm

from transformer_cli.checkpoint.checkpoints import Checkpoints
from transformer_cli.checkpoint.run_folder import open_checkpoint

TRAIN = ("train", "--config", "tiny.yaml")
STEPS_PER_KILL = 20
SAVE_EVERY = 4
LARGEST_DISK = 4 << 20


class Machinery(NamedTuple):
    """The tools that every measurement needs."""

    launcher: Launcher
    folder: Path
    draw: random.Random


class Shortfall(Exception):
    """Something that was promised did not happen."""


def require(condition: object, message: str) -> None:
    if not condition:
        raise Shortfall(message)


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def experiment(num_steps: int, *, log_every: int, validate_every: int) -> str:
    text = TINY.replace("max_steps: 13", f"max_steps: {num_steps}")
    text = text.replace("log_every: 3", f"log_every: {log_every}")
    return text.replace("validate_every: 4", f"validate_every: {validate_every}")


def begin(machinery: Machinery, name: str, text: str) -> Tfm:
    """An empty folder with the config of an experiment."""
    folder = machinery.folder / name
    folder.mkdir()
    write_tiny(folder, text)
    return Tfm(machinery.launcher, folder)


def run_of(tfm: Tfm) -> Path:
    return tfm.folder / "runs/tiny"


def end_of(tfm: Tfm) -> dict[str, Any]:
    """Train to the end; returns the result of the run."""
    finished = tfm(*TRAIN)
    require(finished.exit_code == 0, f"exit code {finished.exit_code}: {finished.talk}")
    require(not leftovers(run_of(tfm)), f"left over: {leftovers(run_of(tfm))}")
    return essence(run_of(tfm))


def leftovers(run: Path) -> list[str]:
    return [path.name for path in run.rglob(".*") if path.name != ".lock"]


def require_equal(found: dict[str, Any], expected: dict[str, Any], what: str) -> None:
    different = [name for name in expected if found.get(name) != expected[name]]
    require(not different, f"{what}: not as in the uninterrupted run: {', '.join(different)}")


def measure_kills(machinery: Machinery, num_kills: int) -> tuple[Tfm, str]:
    """Kill one run again and again; the uninterrupted one, and the figures."""
    num_steps = num_kills * STEPS_PER_KILL
    text = experiment(num_steps, log_every=7, validate_every=50)
    whole, killed = (begin(machinery, name, text) for name in ("uninterrupted", "killed"))
    first = whole.start(*TRAIN)
    first.wait_until(lambda: has_begun(first, run_of(whole)))
    begun_at = time.perf_counter()
    require(first.wait().exit_code == 0, "the uninterrupted run failed")
    training_seconds = time.perf_counter() - begun_at
    # The waits are so long that the last kill comes late in the run, on a machine of any speed.
    longest_wait = 1.2 * training_seconds / num_kills
    num_in_a_save, reached, num_ahead = 0, 0, 0
    for number in range(num_kills):
        process = killed.start(*TRAIN)
        process.wait_until(lambda process=process: has_begun(process, run_of(killed)))  # type: ignore[misc]
        stop_at = time.perf_counter() + machinery.draw.uniform(0, longest_wait)
        # Some steps are left for each kill, also where the machine is faster now than it was before.
        most = num_steps * (number + 1) // (num_kills + 1)
        while time.perf_counter() < stop_at and last_folder(run_of(killed)) < most:
            time.sleep(0.001)
        require(process.is_running(), f"the run ended before kill {number + 1}")
        process.send(signal.SIGKILL)
        require(process.wait().exit_code == -signal.SIGKILL, "not killed")
        num_in_a_save += bool(leftovers(run_of(killed)))
        step = newest_step(run_of(killed))
        require(step >= reached, f"kill {number + 1}: step {step} after step {reached}")
        num_ahead += step > reached
        reached = step
        if (number + 1) % 10 == 0:
            say(f"  {number + 1} kills, step {reached}")
    require_equal(end_of(killed), essence(run_of(whole)), "after the kills")
    digests = essence(run_of(whole))
    return whole, (
        f"{num_kills} of {num_kills} kills in one run of {num_steps:,} steps,"
        f" {num_in_a_save} of them while a checkpoint was written or deleted;"
        f" {num_ahead} of the {num_kills} processes got further than the one before, none fell behind.\n"
        f"  At the end, as without a kill: model {digests['model.safetensors'][:16]},"
        f" optimizer {digests['optimizer.safetensors'][:16]} (SHA-256),"
        f" {len(digests['metrics']):,} lines of metrics; nothing left over"
    )


def has_begun(process: Process, run: Path) -> bool:
    """Whether a process has passed its preparations, or has ended."""
    talk = process.talk.read_text(encoding="utf-8")
    return "resuming" in talk or "model: " in talk or not process.is_running()


def last_folder(run: Path) -> int:
    """The highest step with a checkpoint, complete or not."""
    folders = (run / "checkpoints").glob("step-*")
    return max((int(folder.name.removeprefix("step-")) for folder in folders), default=0)


def newest_step(run: Path) -> int:
    newest = Checkpoints(run).newest_valid()
    return 0 if newest is None else newest.step


def measure_bits(machinery: Machinery, trained: Tfm, num_bits: int) -> str:
    """Flip one bit of the newest checkpoint at a time; real processes look at some of them too."""
    run = machinery.folder / "flipped/runs/tiny"
    shutil.copytree(run_of(trained), run, symlinks=True)
    newest = newest_checkpoint(run)
    previous = sorted((run / "checkpoints").glob("step-*"))[-2]
    files = {path: path.read_bytes() for path in sorted(newest.iterdir())}
    places = [(path, bit) for path, data in files.items() for bit in range(8 * len(data))]
    noticed = told = 0
    drawn = machinery.draw.sample(places, num_bits)
    for number, (path, bit) in enumerate(drawn):
        data = bytearray(files[path])
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        checkpoints = Checkpoints(run)
        found = checkpoints.newest_valid()
        is_passed_over = newest.name in checkpoints.skipped
        noticed += is_passed_over and found is not None and found.folder == previous
        if number % 40 == 0:
            told += is_told(machinery, run, newest, previous)
        path.write_bytes(files[path])
    num_told = len(range(0, num_bits, 40))
    require(noticed == num_bits, f"{noticed} of {num_bits} flipped bits noticed")
    require(told == num_told, f"{told} of {num_told} processes fell back to {previous.name}")
    require(newest_step(run) == open_checkpoint(newest).step, "the healthy one is passed over too")
    return (
        f"{noticed} of {num_bits} flipped bits noticed, over the {len(files)} files of a checkpoint"
        f" ({len(places):,} bits); the previous one was taken each time, {told} of {num_told} times"
        f" by a `tfm train` of its own"
    )


def is_told(machinery: Machinery, run: Path, newest: Path, previous: Path) -> bool:
    """Whether `tfm train` on a copy says what it skips, and resumes at the checkpoint before."""
    with tempfile.TemporaryDirectory(dir=machinery.folder) as name:
        folder = Path(name)
        shutil.copytree(run, folder / "runs/tiny", symlinks=True)
        shutil.copy(machinery.folder / "uninterrupted/tiny.yaml", folder)
        finished = Tfm(machinery.launcher, folder)(*TRAIN)
        step = int(previous.name.removeprefix("step-"))
        return (
            finished.exit_code == 0
            and f"skipped {newest.name}: " in finished.talk
            and f"resuming runs/tiny at step {step};" in finished.talk
        )


def measure_fills(machinery: Machinery, num_fills: int) -> str:
    """Fill the disk of one run repeatedly; before each new start, space is freed."""
    num_steps = 50 * (num_fills + 1)
    text = experiment(num_steps, log_every=1, validate_every=num_steps)
    whole, filled = (begin(machinery, name, text) for name in ("with room", "without room"))
    expected = end_of(whole)
    most_lost = 0
    with small_disk(machinery.folder) as disk:
        if disk is not None:
            (disk / "runs").mkdir()
            (filled.folder / "runs").symlink_to(disk / "runs")
        record = filled.folder / "acknowledged"
        for _ in range(num_fills):
            lost = lost_to_a_full_disk(machinery.draw, filled, disk, record)
            require(lost <= SAVE_EVERY, f"{lost} steps lost, {SAVE_EVERY} between two saves")
            most_lost = max(most_lost, lost)
        require_equal(end_of(filled), expected, "after the full disks")
    how = f"a tmpfs of {LARGEST_DISK >> 20} MB" if disk else "RLIMIT_FSIZE"
    return (
        f"{num_fills} of {num_fills} full disks ({how}) ended with exit code 75 and cost at most"
        f" {most_lost} steps, with a save every {SAVE_EVERY}; each run went on at its last save, and"
        f" ended as with room: {len(expected['metrics']):,} lines of metrics, model"
        f" {expected['model.safetensors'][:16]} (SHA-256)"
    )


def lost_to_a_full_disk(draw: random.Random, tfm: Tfm, disk: Path | None, record: Path) -> int:
    """How many steps were done after the save at which the next process goes on."""
    saves = ("note_saves", str(record))
    step = draw.randrange(8, 40)
    place = str(disk) if disk else ""
    fault = ("at", "step", step, "fill_folder" if disk else "fill_disk", *([place] if disk else []))
    full = tfm(*TRAIN, faults=[saves, fault])
    require(full.exit_code == 75, f"exit code {full.exit_code}: {full.talk}")
    require("bytes needed" in full.talk or "bytes free" in full.talk, full.talk)
    if disk:
        (disk / "filler").unlink()
    acknowledged = int(record.read_text().split()[-1])
    require(newest_step(run_of(tfm)) == acknowledged, "not the last save that was acknowledged")
    reached = max(
        int(line.split()[1].partition("/")[0])
        for line in full.talk.splitlines()
        if line.startswith("step ") and "epoch" in line
    )
    require(metrics_of(run_of(tfm))[-1]["step"] <= reached, "metrics of steps that were not done")
    return reached - acknowledged


@contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """A file system of a few megabytes where mounting one is allowed, and else none."""
    place = folder / "disk"
    place.mkdir()
    with mounted(place, f"size={LARGEST_DISK}") as is_mounted:
        yield place if is_mounted else None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="draws waits, bits and steps")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--bits", type=int, default=200)
    parser.add_argument("--fills", type=int, default=10)
    parser.add_argument("--folder", type=Path, help="on which disk; left out: the temporary one")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Remove the files of this script also if a signal ends it.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    say(f"python tests/reliability.py --seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="tfm-reliability-", dir=options.folder) as name:
        folder = Path(name)
        (folder / "launcher").mkdir()
        launcher = Launcher(folder / "launcher")
        machinery = Machinery(launcher, folder, random.Random(options.seed))
        started_at = time.perf_counter()
        try:
            trained, figures = measure_kills(machinery, options.kills)
            started_at = report("kills", figures, started_at)
            started_at = report("bits", measure_bits(machinery, trained, options.bits), started_at)
            report("full disks", measure_fills(machinery, options.fills), started_at)
        except Shortfall as shortfall:
            say(f"FAILED: {shortfall}")
            return 1
        finally:
            launcher.close()
    return 0


def report(name: str, figures: str, started_at: float) -> float:
    """Print a measurement and its duration; returns the current time."""
    now = time.perf_counter()
    say(f"{name}: {figures} ({now - started_at:.0f} s)")
    return now


if __name__ == "__main__":
    sys.exit(main())
