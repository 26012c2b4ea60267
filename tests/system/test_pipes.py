"""`tfm translate` between pipes, devices and links, as shells put them together (J1, J4, J5)."""

import gzip
import json
import os
import re
import shlex
import shutil
import stat
import time
from pathlib import Path

import pytest

from ..launcher import Launcher, Process, Tfm


@pytest.fixture(scope="module")
def trained(launcher: Launcher, memory_folder: Path, finished_tiny: Path) -> Tfm:
    folder = shutil.copytree(finished_tiny, memory_folder / "trained", symlinks=True)
    tfm = Tfm(launcher, folder)
    (folder / "in.txt").write_text("1 2 3\n4 5\n6\n")
    return tfm


@pytest.fixture
def expected(trained: Tfm) -> list[str]:
    return trained("translate", "1 2 3", "4 5", "6").lines


def new_pipe(folder: Path, name: str) -> Path:
    path = folder / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    return path


def wait_for_lines(process: Process, num_lines: int) -> list[str]:
    process.wait_until(lambda: process.out.read_bytes().count(b"\n") >= num_lines)
    return process.out.read_text().splitlines()


@pytest.mark.parametrize("options", [(), ("--json",)])
@pytest.mark.parametrize("way", ["standard input", "--input"])
def test_a_line_is_answered_before_the_next_one_comes(
    trained: Tfm, expected: list[str], way: str, options: tuple[str, ...]
) -> None:
    """J4: a program writes a line, waits for its translation, and writes the next."""
    pipe = new_pipe(trained.folder, "pipe")
    writer = os.open(pipe, os.O_RDWR)  # so that `tfm` need not wait for a writer
    if way == "--input":
        process = trained.start("translate", "--input", "pipe", *options)
    else:
        process = trained.start("translate", *options, stdin=pipe)
    for number, line in enumerate(["1 2 3", "4 5", "6"], start=1):
        os.write(writer, f"{line}\n".encode())
        answer = wait_for_lines(process, number)[-1]
        found = json.loads(answer)["translation"] if options else answer
        assert found == expected[number - 1]
    os.close(writer)
    assert process.wait().exit_code == 0


def test_many_lines_through_a_pipe_are_those_of_a_file(trained: Tfm) -> None:
    lines = [f"{number % 10 + 1} {number % 7 + 1} {number % 3 + 1}" for number in range(4500)]
    (trained.folder / "many.txt").write_text("".join(f"{line}\n" for line in lines))
    options = ["translate", "--beam-size", "1"]
    of_file = trained(*options, "--input", "many.txt").lines
    pipe = new_pipe(trained.folder, "pipe")
    process = trained.start(*options, stdin=pipe)
    with pipe.open("w") as file:
        for number, line in enumerate(lines):
            file.write(f"{line}\n")
            if number % 1500 == 700:
                file.flush()
                time.sleep(0.2)
    assert process.wait().lines == of_file
    assert len(of_file) == len(lines)


def test_two_named_pipes_work_in_the_order_of_a_shell(trained: Tfm, expected: list[str]) -> None:
    pipes = [new_pipe(trained.folder, name) for name in ("pipe-in", "pipe-out")]
    process = trained.start("translate", "--input", "pipe-in", "--output", "pipe-out")
    pipes[0].write_text("1 2 3\n4 5\n6\n")
    assert pipes[1].read_text().splitlines() == expected
    assert process.wait().exit_code == 0
    assert all(stat.S_ISFIFO(pipe.lstat().st_mode) for pipe in pipes)


def test_a_dash_is_standard_input_and_standard_output(trained: Tfm, expected: list[str]) -> None:
    finished = trained("translate", "--input", "-", "--output", "-", stdin=b"1 2 3\n4 5\n6\n")
    assert finished.lines == expected
    assert not (trained.folder / "-").exists()


def test_standard_output_by_its_name_is_added_to(trained: Tfm, expected: list[str]) -> None:
    """J1: the shell has opened the file of standard output for appending; it stays that file."""
    name = Path("/dev/stdout")
    before = name.readlink(), name.lstat().st_ino, name.lstat().st_mtime_ns
    (trained.folder / "link").unlink(missing_ok=True)
    (trained.folder / "link").symlink_to(name)
    for output in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"):
        finished = trained("translate", "--output", output, "1 2 3")
        assert finished.lines == expected[:1], finished.talk
    assert (trained.folder / "link").is_symlink()
    assert (name.readlink(), name.lstat().st_ino, name.lstat().st_mtime_ns) == before


def test_a_full_device_is_told_and_stays(trained: Tfm) -> None:
    """J1: through a link of ours, so that a mistake cannot harm the system."""
    (trained.folder / "full").unlink(missing_ok=True)
    (trained.folder / "full").symlink_to("/dev/full")
    finished = trained("translate", "--output", "full", "1 2 3")
    assert finished.exit_code == 75
    assert finished.talk.endswith(
        "tfm: full: No space left on device\n  hint: make room, then run the same command again\n"
    )
    assert (trained.folder / "full").is_symlink()


def test_a_protected_file_stays_as_it_is(trained: Tfm) -> None:
    """J1."""
    path = trained.folder / "protected.txt"
    path.write_text("old\n")
    path.chmod(0o444)
    finished = trained("translate", "--output", path.name, "1 2 3")
    assert finished.exit_code == 73
    assert "protected.txt: no permission to write to this file" in finished.talk
    assert path.read_text() == "old\n"


def test_a_compressed_file_is_translated_as_its_text(trained: Tfm, expected: list[str]) -> None:
    """J5: also through a link with another name."""
    path = trained.folder / "in.txt.gz"
    path.write_bytes(gzip.compress(b"1 2 3\n4 5\n6\n"))
    (trained.folder / "linked.txt").unlink(missing_ok=True)
    (trained.folder / "linked.txt").symlink_to("in.txt.gz")
    for name in ("in.txt.gz", "linked.txt"):
        assert trained("translate", "--input", name).lines == expected
    refused = trained("translate", stdin=path.read_bytes())
    assert refused.exit_code == 65
    assert refused.talk.endswith("hint: give the path of the file, FILE.gz, instead of its content\n")


def test_an_output_that_is_the_input_of_the_shell_is_refused(trained: Tfm) -> None:
    text = (trained.folder / "in.txt").read_text()
    finished = trained("translate", "--output", "in.txt", stdin=trained.folder / "in.txt")
    assert finished.exit_code == 2
    assert "in.txt: this output is the same file as the input" in finished.talk
    assert (trained.folder / "in.txt").read_text() == text


def test_a_file_of_a_checkpoint_stands_for_the_checkpoint(trained: Tfm, expected: list[str]) -> None:
    checkpoint = max((trained.folder / "runs/tiny/checkpoints").glob("step-*"))
    best = Path("runs/tiny/checkpoints/best/model.safetensors")
    for run in (best, Path("runs/tiny/checkpoints"), Path("runs/tiny/config.yaml")):
        assert trained("translate", "--run", str(run), "1 2 3").lines == expected[:1]
    found = trained("translate", "--run", str(checkpoint / "model.safetensors"), "1 2 3")
    assert f"{checkpoint.name}, step " in found.talk


@pytest.mark.parametrize(
    "arguments",
    [
        ("translate", "-5 degrees"),
        ("translate", "-5"),
        ("next", "-hello you"),
        ("translate", "-Hello."),
        ("translate", "--", "-5 degrees"),
        ("translate", "- Hello", "-b", "2"),
        ("next", "1 2", "--prefix", "-hello you"),
    ],
)
def test_a_sentence_that_begins_with_a_dash(trained: Tfm, arguments: tuple[str, ...]) -> None:
    finished = trained(*arguments)
    if "--" in arguments or "--prefix" in arguments:
        assert finished.exit_code == 0
        return
    assert finished.exit_code == 2
    sentence = arguments[1]
    assert finished.talk == (
        f"tfm: {sentence}: begins with a dash, so it is read as an option\n"
        f"  hint: write -- before such sentences, behind all options: tfm {arguments[0]} -- {shlex.quote(sentence)}\n"
    )


def test_validate_reads_either_side_from_a_stream(trained: Tfm) -> None:
    text = b"1 2 3\n4 5\n6\n"
    options = ("validate", "--json")
    of_files = json.loads(trained(*options, "--source", "in.txt", "--reference", "in.txt").text)
    (trained.folder / "in.txt.gz").write_bytes(gzip.compress(text))
    for sides in (("-", "in.txt"), ("in.txt.gz", "-"), ("/dev/stdin", "in.txt")):
        finished = trained(*options, "--source", sides[0], "--reference", sides[1], stdin=text)
        assert finished.exit_code == 0, finished.talk
        found = json.loads(finished.text)
        assert found.pop("split") == " / ".join(sides)
        assert found == {name: value for name, value in of_files.items() if name != "split"}
    pipes = [new_pipe(trained.folder, name) for name in ("source", "reference")]
    process = trained.start(*options, "--source", "source", "--reference", "reference")
    for pipe in pipes:
        pipe.write_bytes(text)
    assert json.loads(process.wait().text)["scores"] == of_files["scores"]


@pytest.mark.parametrize(
    ("sides", "text", "code", "says"),
    [
        (("-", "/dev/stdin"), b"1\n", 2, "name the same input"),
        (("-", "in.txt"), b"1 2\n", 65, "- has 1 line, in.txt has 3 lines"),
        (("-", "in.txt"), b"1\n2\n\xff\n", 65, "-:3: byte 1 of the sentence .0xFF. is not UTF-8"),
        (("-", "/dev/null"), b"", 65, "no sentence pair in - and /dev/null"),
        (("-", "no.txt"), b"1\n", 66, "no.txt: no such file"),
    ],
)
def test_validate_tells_what_is_wrong_with_a_stream(
    trained: Tfm, sides: tuple[str, str], text: bytes, code: int, says: str
) -> None:
    finished = trained("validate", "--source", sides[0], "--reference", sides[1], stdin=text)
    assert finished.exit_code == code, finished.talk
    assert re.search(says, finished.talk), finished.talk
