"""`tfm translate --resume`: killed at any moment, the same command goes on, and the output has the same bytes."""

import gzip
import json
import random
import re
import shutil
import time
from contextlib import suppress
from pathlib import Path

import pytest

from ..launcher import Finished, Launcher, Tfm

# Hostile lines among ordinary ones: empty, very long, with NUL, with carriage returns, not UTF-8, with other line ends.
HOSTILE = [
    b"",
    b"1 2 \xc3\xa8",
    b" ".join(b"%d" % (number % 9) for number in range(400)),
    b"1\x002",
    b"3\r",
    b"\r4 5\r\r",
    b"\xe2\x80\xa8 1",
    b"6 \xff\xfe 7",
    b"2\x1c3\xc2\x852\x0b1",
    b"\xef\xbb\xbf5",
    b"x" * 5000,
]
LINES = [HOSTILE[number % 7 if number < 4000 else number % 11] for number in range(5003)]
COMMAND = ("translate", "--input", "in.txt", "--output", "out.txt", "--resume")


@pytest.fixture(scope="module")
def trained(launcher: Launcher, memory_folder: Path, finished_tiny: Path) -> Tfm:
    folder = shutil.copytree(finished_tiny, memory_folder / "trained", symlinks=True)
    tfm = Tfm(launcher, folder)
    (folder / "in.txt").write_bytes(b"\n".join(LINES))  # the last line has no line feed
    finished = tfm("translate", "--input", "in.txt", "--output", "expected.txt")
    assert finished.exit_code == 0, finished.talk
    assert (folder / "expected.txt").read_bytes().count(b"\n") == len(LINES)
    return tfm


@pytest.fixture(autouse=True)
def _nothing_is_left(trained: Tfm) -> None:
    for path in trained.folder.glob("out.txt*"):
        path.unlink()
    (trained.folder / "in.txt").write_bytes(b"\n".join(LINES))


def assert_whole(trained: Tfm, finished: Finished) -> None:
    assert finished.exit_code == 0, finished.talk
    found, expected = (trained.folder / name for name in ("out.txt", "expected.txt"))
    assert found.read_bytes() == expected.read_bytes()
    assert [path.name for path in trained.folder.glob("out.txt*")] == ["out.txt"]


OFTEN = (2, 5, 8, 11, 19)


@pytest.mark.parametrize(
    "number",
    [
        *OFTEN,
        *(pytest.param(number, marks=pytest.mark.slow) for number in range(1, 22) if number not in OFTEN),
    ],
)
def test_a_kill_before_any_operation_on_the_disk_loses_at_most_one_window(trained: Tfm, number: int) -> None:
    killed = trained(*COMMAND, faults=[("at", "disk", number, "signal", "SIGKILL")])
    assert killed.exit_code == -9
    assert number > 18 or not (trained.folder / "out.txt").exists()
    assert_whole(trained, trained(*COMMAND))


def test_a_translation_that_is_killed_again_and_again_comes_to_its_end(trained: Tfm) -> None:
    going_on = []
    for _ in range(2):
        killed = trained(*COMMAND, faults=[("at", "translation", 2, "signal", "SIGKILL")])
        assert killed.exit_code == -9
        going_on.append("continuing after line" in killed.talk)
    assert going_on == [False, True]
    finished = trained(*COMMAND)
    assert "out.txt.unfinished: continuing after line 4000" in finished.talk
    assert_whole(trained, finished)


def test_a_signal_keeps_the_output_so_far(trained: Tfm) -> None:
    stopped = trained(*COMMAND, faults=[("at", "translation", 3, "signal", "SIGTERM")])
    assert stopped.exit_code == 143
    finished = trained(*COMMAND)
    assert "continuing after line 4000" in finished.talk
    assert_whole(trained, finished)


def test_a_compressed_output_has_the_same_text(trained: Tfm) -> None:
    command = (*COMMAND[:4], "out.txt.gz", "--resume")
    assert trained(*command, faults=[("at", "translation", 2, "signal", "SIGKILL")]).exit_code == -9
    assert trained(*command).exit_code == 0
    expected = (trained.folder / "expected.txt").read_bytes()
    assert gzip.decompress((trained.folder / "out.txt.gz").read_bytes()) == expected


def interrupted(trained: Tfm) -> None:
    killed = trained(*COMMAND, faults=[("at", "translation", 2, "signal", "SIGKILL")])
    assert killed.exit_code == -9
    notes = (trained.folder / "out.txt.unfinished.notes.jsonl").read_text().splitlines()
    assert [json.loads(note).get("num_lines") for note in notes] == [None, 2000]


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (LINES[:1999], "it has 1999 lines, but 2000 were translated"),
        ([b"9", *LINES[1:]], "its first 2000 lines are not the lines that were translated"),
        ([*LINES[:1999], b"9", *LINES[2000:]], "its first 2000 lines are not the lines"),
    ],
)
def test_an_input_that_has_changed_is_refused(trained: Tfm, lines: list[bytes], problem: str) -> None:
    interrupted(trained)
    (trained.folder / "in.txt").write_bytes(b"\n".join(lines))
    refused = trained(*COMMAND)
    assert refused.exit_code == 65
    assert problem in refused.talk
    assert "delete out.txt.unfinished" in refused.talk
    (trained.folder / "out.txt.unfinished").unlink()
    (trained.folder / "in.txt").write_bytes(b"\n".join(LINES))
    assert_whole(trained, trained(*COMMAND))


@pytest.mark.parametrize("place", [0, 500, -1])
def test_an_unfinished_output_that_was_changed_is_refused_and_left_as_it_is(trained: Tfm, place: int) -> None:
    interrupted(trained)
    path = trained.folder / "out.txt.unfinished"
    written = path.read_bytes()
    changed = bytearray(written)
    changed[place] ^= 1
    path.write_bytes(changed)
    refused = trained(*COMMAND)
    assert refused.exit_code == 65
    assert f"its first {len(written):,} bytes are not the bytes that were written" in refused.talk
    assert "delete out.txt.unfinished, to begin again" in refused.talk
    assert path.read_bytes() == changed
    path.write_bytes(written)
    finished = trained(*COMMAND)
    assert "continuing after line 2000" in finished.talk
    assert_whole(trained, finished)


def test_an_unfinished_output_that_was_cut_or_deleted_begins_again(trained: Tfm) -> None:
    path = trained.folder / "out.txt.unfinished"
    for is_deleted in (True, False):
        interrupted(trained)
        if is_deleted:
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:-1])
        finished = trained(*COMMAND)
        assert "continuing" not in finished.talk
        assert_whole(trained, finished)
        (trained.folder / "out.txt").unlink()


def test_other_settings_and_another_model_are_refused(trained: Tfm) -> None:
    interrupted(trained)
    refused = trained(*COMMAND, "--beam-size", "3", "--json")
    assert refused.exit_code == 78
    assert "decoding.beam_size was 2, and is 3; json was False, and is True" in refused.talk
    steps = sorted((trained.folder / "runs/tiny/checkpoints").glob("step-*"))
    refused = trained(*COMMAND, "--run", str(steps[0]))
    assert refused.exit_code == 78
    assert "another model, setting or option: model: other files than before\n" in refused.talk
    assert_whole(trained, trained(*COMMAND))


def test_an_input_that_has_grown_is_translated_to_its_new_end(trained: Tfm) -> None:
    interrupted(trained)
    (trained.folder / "in.txt").write_bytes(b"\n".join([*LINES, b"1 2 3"]))
    assert trained(*COMMAND).exit_code == 0
    found = (trained.folder / "out.txt").read_bytes().split(b"\n")
    expected = (trained.folder / "expected.txt").read_bytes().split(b"\n")
    assert found[: len(LINES)] == expected[: len(LINES)]
    assert len(found) == len(LINES) + 2


def test_two_processes_do_not_write_to_the_same_output(trained: Tfm) -> None:
    gate = trained.folder / "gate"
    first = trained.start(*COMMAND, faults=[("at", "translation", 2, "pause", str(gate))])
    first.wait_until(gate.exists)
    second = trained(*COMMAND)
    assert second.exit_code == 75
    assert "another process writes to this file" in second.talk
    gate.unlink()
    assert_whole(trained, first.wait())


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["1 2", "--output", "out.txt"], "--resume is for a file of lines"),
        (["--input", "-", "--output", "out.txt"], "--resume is for a file of lines"),
        (["--input", "in.txt"], "--resume is for an output file"),
        (["--input", "in.txt", "--output", "/dev/stdout"], "--resume is for an output file"),
    ],
)
def test_what_cannot_be_read_again_or_kept_is_refused(trained: Tfm, arguments: list[str], problem: str) -> None:
    refused = trained("translate", *arguments, "--resume")
    assert refused.exit_code == 2
    assert problem in refused.talk


@pytest.mark.slow
def test_a_hundred_thousand_lines_need_no_more_memory_than_ten_thousand(trained: Tfm) -> None:
    drawn = random.Random(1)
    peaks = []
    for num_lines in (10_000, 100_000):
        lines = (" ".join(drawn.choices("123456789", k=5)) for _ in range(num_lines))
        (trained.folder / "in.txt").write_text("\n".join(lines))
        process = trained.start(*COMMAND)
        status, peak = Path(f"/proc/{process.pid}/status"), 0
        while process.is_running():
            with suppress(OSError):
                found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
                peak = int(found[1]) if found else peak
            time.sleep(0.05)
        finished = process.wait()
        assert finished.exit_code == 0, finished.talk
        assert (trained.folder / "out.txt").read_bytes().count(b"\n") == num_lines
        peaks.append(peak)
    assert peaks[1] < peaks[0] + 20_000  # kB
