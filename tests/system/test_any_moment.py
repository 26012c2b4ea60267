"""A signal at any moment after the start of a real process ends it with its code and no other word.

A moment is counted from the first of our own code on: then the handlers are there, which the system shows in
`/proc`. Before that Python itself starts, and its own handlers answer.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from ..experiments import TINY, write_tiny
from ..launcher import ENVIRONMENT, LIMIT_SECONDS, Tfm

pytestmark = pytest.mark.kills

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
COMMANDS = {
    "train": ["train", "--config", "tiny.yaml", "--set", "training.max_steps=1000000"],
    "translate": ["translate", "--run", "../model", "--input", "../many.txt"],
}
ENDED = re.compile(r"tfm: ended by (SIG\w+)\n")
SAVED = re.compile(
    r"\ntfm: (SIG\w+): finishing the step and saving; a second signal ends the run at once\n"
    r"(.*\n)*tfm: stopped ((and saved )?at step \d+.*|before the first step)\n  hint: the same command continues where it stopped\n"
)


@pytest.fixture(autouse=True)
def _no_signal_is_ignored() -> Iterator[None]:
    """Under `nohup` these tests, and so the processes that they start, would ignore SIGHUP."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


class Ended(NamedTuple):
    """How one process ended."""

    exit_code: int
    out: bytes
    talk: str


def takes_signals(pid: int) -> bool:
    """Whether the process has a handler of SIGTERM, the last one that `tfm` sets."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = int(re.findall(r"^SigCgt:\s*([0-9a-f]+)$", status, re.MULTILINE)[0], 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


def ended_by(number: signal.Signals, moment_seconds: float, arguments: Sequence[str], folder: Path) -> Ended:
    """Start a command in an empty folder, and send it a signal at a moment."""
    out, talk = folder / "out", folder / "talk"
    with out.open("wb") as stdout, talk.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "transformer_cli", *arguments],
            cwd=folder,
            env=os.environ | ENVIRONMENT | {"TMPDIR": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
        )
        stop_at = time.monotonic() + LIMIT_SECONDS
        while not takes_signals(process.pid) and process.poll() is None:
            assert time.monotonic() < stop_at
        time.sleep(moment_seconds)
        process.send_signal(number)
        try:
            process.wait(LIMIT_SECONDS)
        finally:
            process.kill()
    return Ended(process.returncode, out.read_bytes(), talk.read_text())


def how_it_ended(number: signal.Signals, ended: Ended) -> str:
    """In a word; or everything, if the process did not end as it should."""
    has_half_line = ended.out and not ended.out.endswith(b"\n")
    if ended.exit_code == 0 and not has_half_line:
        return "finished before the signal"
    for pattern, word in ((ENDED, "ended"), (SAVED, "saved")):
        told = pattern.search(ended.talk)
        is_all = told is not None and told[1] == number.name and told.end() == len(ended.talk)
        if is_all and ended.exit_code == 128 + number and not has_half_line:
            return word if "Traceback" not in ended.talk else repr(ended)
    return repr(ended)


def storm(tfm_with_run: Tfm, num_moments: int, span_seconds: float) -> Counter[str]:
    """Signals at moments that are spread evenly; how the processes ended, and how often."""
    # So many that no command ends by itself while signals come.
    (tfm_with_run.folder / "many.txt").write_text("1 2 3\n4 5 6 7\n" * 100_000)
    (tfm_with_run.folder / "runs/tiny").rename(tfm_with_run.folder / "model")
    outcomes: Counter[str] = Counter()
    for i in range(num_moments):
        command, number = list(COMMANDS)[i % 2], SIGNALS[i % len(SIGNALS)]
        folder = tfm_with_run.folder / f"moment-{i}"
        folder.mkdir()
        write_tiny(folder, TINY.replace("save_every: 4", "save_every: 100"))
        moment = span_seconds * i / num_moments
        ended = ended_by(number, moment, COMMANDS[command], folder)
        outcomes[f"{command}: {how_it_ended(number, ended)}"] += 1
        left = [path.name for path in folder.rglob(".t[mr]*-*")]
        assert left == [], f"{moment:.3f} s: temporary files"
    return outcomes


def check(outcomes: Counter[str]) -> None:
    words = {"ended", "saved", "finished before the signal"}
    strange = {what: n for what, n in outcomes.items() if what.partition(": ")[2] not in words}
    assert strange == {}, outcomes
    assert outcomes["train: ended"] > 0
    assert outcomes["translate: ended"] > 0


def test_a_signal_at_any_moment_of_the_start_ends_a_command_with_its_code(tfm_with_run: Tfm) -> None:
    check(storm(tfm_with_run, 20, span_seconds=1.6))


@pytest.mark.slow
def test_370_signals_in_the_first_three_seconds_end_a_command_with_their_code(tfm_with_run: Tfm) -> None:
    outcomes = storm(tfm_with_run, 370, span_seconds=3.0)
    sys.stderr.write(f"\n{dict(outcomes)}\n")
    check(outcomes)
