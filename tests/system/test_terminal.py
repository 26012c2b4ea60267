"""The output at a terminal: a progress bar, and lines above it."""

import gzip
import io
import os
import re
import select
import signal
import termios
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import pytest
from tqdm import tqdm
from tqdm.utils import disp_len

from transformer_cli.commands.progress_bar import layout

from ..experiments import write_tiny
from ..launcher import Process, Tfm


@contextmanager
def terminal(num_columns: int = 100) -> Iterator[tuple[str, bytearray]]:
    """The name of a terminal, and the bytes that were written to it."""
    reader, writer = os.openpty()
    termios.tcsetwinsize(writer, (24, num_columns))
    shown = bytearray()

    def read() -> None:
        while data := os.read(reader, 65_536):
            shown.extend(data)
            if b"\x04" in data:
                return

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        yield os.ttyname(writer), shown
    finally:
        os.write(writer, b"\x04")
        thread.join()
        os.close(writer)
        os.close(reader)


def test_training_at_a_terminal_shows_a_bar_and_logs_all_the_same(tfm: Tfm) -> None:
    config = write_tiny(tfm.folder)
    with terminal() as (name, shown):
        stop = ("at", "step", 7, "signal", "SIGTERM")
        assert tfm("train", "--config", config, terminal=name, faults=[stop]).exit_code == 143
        assert tfm("train", "--config", config, terminal=name).exit_code == 0
    text = shown.decode()
    assert re.search(r"100%\|█+\| 13/13 \[.*loss \d\.\d{3}, lr \d\.\de-03, [\d,]+ tok/s\]", text)
    assert re.search(r"54%\|█+.? *\| 7/13 ", text), "it goes on where it stopped"
    assert "step 4  validation: loss" in text
    assert "step 6/13" not in text, "that is what the bar says"
    log = (tfm.folder / "runs/tiny/train.log").read_text()
    assert [*re.findall(r" step (\d+)/13  epoch", log)] == ["3", "6", "9", "12", "13"]
    assert "|" not in log, "no bar in the log"


def test_a_log_that_is_no_terminal_has_no_bar(tfm: Tfm) -> None:
    talk = tfm("train", "--config", write_tiny(tfm.folder)).talk
    assert "\r" not in talk
    assert "█" not in talk
    assert "step 6/13  epoch 1  loss" in talk


class Conversation(NamedTuple):
    """A process and both ends of its terminal."""

    process: Process
    person: int
    program: int

    def type(self, keys: bytes) -> None:
        os.write(self.person, keys)

    def read_until(self, wanted: str) -> str:
        """What the terminal shows, up to and with these words."""
        shown = b""

        def is_there() -> bool:
            nonlocal shown
            if select.select([self.person], [], [], 0.01)[0]:
                shown += os.read(self.person, 65_536)
            return wanted.encode() in shown

        self.process.wait_until(is_there)
        return shown.decode()

    def wait_for_prompt(self) -> None:
        """Wait until keys are read one by one.

        Between two prompts the terminal reads whole lines, and a Ctrl-D typed then is lost.
        """
        self.process.wait_until(lambda: not termios.tcgetattr(self.program)[3] & termios.ICANON)

    def answers(self, num_lines: int) -> list[str]:
        """The lines of standard output, which is a file, when there are so many."""
        self.process.wait_until(lambda: self.process.out.read_bytes().count(b"\n") >= num_lines)
        return self.process.out.read_text().split("\n")[:-1]


@contextmanager
def conversation(tfm_with_run: Tfm, *options: str, faults: Sequence[Sequence[str]] = ()) -> Iterator[Conversation]:
    """`tfm translate` whose standard input and standard error are one terminal, in a folder with a run."""
    person, program = os.openpty()
    termios.tcsetwinsize(program, (24, 100))
    name = os.ttyname(program)
    before = termios.tcgetattr(program)
    process = tfm_with_run.start(
        "translate",
        *options,
        stdin=name,
        terminal=name,
        faults=faults,
        environment={"TERM": "xterm"},
    )
    try:
        yield Conversation(process, person, program)
        assert termios.tcgetattr(program) == before, "the terminal is left as it was found"
    finally:
        os.close(person)
        os.close(program)


def test_a_person_is_asked_for_each_line_and_may_edit_it(tfm_with_run: Tfm) -> None:
    with conversation(tfm_with_run) as talk:
        head = talk.read_until("> ")
        assert "task copy: type a sentence and press Enter; Ctrl-D ends" in head
        talk.type(b"1 2 9\x7f3\r")  # a wrong key, and the key that takes it back
        (first,) = talk.answers(1)
        talk.read_until("> ")
        talk.type(b"\x1b[A\r")  # the arrow up brings the last line again
        assert talk.answers(2) == [first, first]
        talk.read_until("> ")
        talk.type(b"\r")
        assert talk.answers(3)[2] == ""
        talk.read_until("> ")
        talk.type("perché\r".encode())
        talk.answers(4)
        talk.read_until("> ")
        talk.type(b"\x04")
        finished = talk.process.wait()
    assert finished.exit_code == 0
    assert len(finished.lines) == 4
    assert ">" not in finished.text, "prompts are no data"
    assert [first] == tfm_with_run("translate", "1 2 3").lines


def test_the_prompt_takes_commands_beside_sentences(tfm_with_run: Tfm) -> None:
    with conversation(tfm_with_run) as talk:
        talk.read_until(":help lists commands")
        talk.type(b":why\r:beam 3\r1 2 3\r")
        assert ":why: nothing was translated yet" in talk.read_until("the beam has 3 hypotheses")
        (answer,) = talk.answers(1)
        talk.type(b":why\r:quit\r")
        assert "probability  token" in talk.read_until(answer)
        assert talk.process.wait().exit_code == 0


def test_lines_that_are_pasted_together_are_lines(tfm_with_run: Tfm) -> None:
    with conversation(tfm_with_run) as talk:
        talk.read_until("> ")
        talk.type(b"\x1b[200~1 2 3\r4 5\x1b[201~\r")  # as terminals mark pasted text
        answers = talk.answers(2)
        talk.wait_for_prompt()
        talk.type(b"\x04")
        assert talk.process.wait().exit_code == 0
    assert answers == tfm_with_run("translate", "1 2 3", "4 5").lines


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_at_the_prompt_leaves_the_terminal_as_it_was(tfm_with_run: Tfm, name: str, code: int) -> None:
    with conversation(tfm_with_run) as talk:
        talk.read_until("> ")
        talk.type(b"1 2")
        talk.read_until("1 2")
        talk.process.send(signal.Signals[name])
        assert talk.process.wait().exit_code == code
        talk.read_until(f"tfm: ended by {name}")


def test_a_signal_just_before_the_wait_for_a_key_takes_effect_without_a_key(tfm_with_run: Tfm) -> None:
    with conversation(tfm_with_run, faults=[("signal_before_key", "SIGTERM")]) as talk:
        assert talk.process.wait().exit_code == 143
        talk.read_until("tfm: ended by SIGTERM")


@pytest.mark.parametrize("end", ["Ctrl-D", "exit", "quit", "SIGINT", "SIGHUP"])
@pytest.mark.parametrize("name", ["out.txt", "out.txt.gz"])
def test_an_output_file_keeps_each_answer_that_the_terminal_showed(tfm_with_run: Tfm, end: str, name: str) -> None:
    with conversation(tfm_with_run, "--output", name) as talk:
        talk.read_until("> ")
        talk.type(b"1 2 3\r")
        shown = talk.read_until("> ")
        if end.startswith("SIG"):
            talk.process.send(signal.Signals[end])
            code = 128 + signal.Signals[end]
        else:
            talk.type(b"\x04" if end == "Ctrl-D" else f"{end}\r".encode())
            code = 0
        assert talk.process.wait().exit_code == code
    raw = (tfm_with_run.folder / name).read_bytes()
    text = (gzip.decompress(raw) if name.endswith(".gz") else raw).decode()
    assert text.splitlines() == tfm_with_run("translate", "1 2 3").lines
    assert f"= {text.strip()}" in shown
    assert not [*tfm_with_run.folder.glob(".tmp-*")]


def test_where_there_is_no_readline_lines_are_read_all_the_same(tfm_with_run: Tfm) -> None:
    """As on Windows."""
    with conversation(tfm_with_run, "--json", faults=[("without_module", "readline")]) as talk:
        talk.read_until("> ")
        talk.type(b"1 2 3\n")
        assert '"source": "1 2 3"' in talk.answers(1)[0]
        talk.type(b"\x04")
        assert talk.process.wait().exit_code == 0


def test_translating_from_a_terminal_answers_line_by_line(tfm_with_run: Tfm) -> None:
    reader, writer = os.openpty()
    process = tfm_with_run.start("translate", stdin=os.ttyname(writer))
    process.wait_until(lambda: "type a sentence" in process.talk.read_text())
    for number in (1, 2):
        os.write(reader, b"1 2 3\n")
        process.wait_until(lambda wanted=number: process.out.read_bytes().count(b"\n") == wanted)  # type: ignore[misc]
    os.write(reader, b"\x04")
    assert process.wait().exit_code == 0
    os.close(reader)
    os.close(writer)


def test_nothing_is_cut_or_wrapped_on_a_narrow_terminal(tfm: Tfm) -> None:
    config = write_tiny(tfm.folder)
    with terminal(60) as (name, shown):
        finished = tfm("train", "--config", config, terminal=name, environment={"COLUMNS": "60"})
        assert finished.exit_code == 0
    lines = re.split(r"[\r\n]+", re.sub("\x1b\\[[A-Z]", "", shown.decode()))
    bars = [line for line in lines if "█" in line]
    assert all(disp_len(bar) <= 60 and bar.endswith("]") for bar in bars), "whole bars"
    assert any(re.search(r"13/13 \[.*, loss \d\.\d{3}\]", bar) for bar in bars)
    log = (tfm.folder / "runs/tiny/train.log").read_text()
    (row,) = (line for line in lines if line.startswith("tokens "))
    assert len(row) <= 60
    assert row in log


def test_a_table_is_cut_at_a_terminal_and_whole_in_a_file(tfm: Tfm) -> None:
    long = "x" * 70
    (tfm.folder / "corpus.tsv").write_text("".join(f"a b {n}\tc d {n}\n" for n in range(200)) + f"{long}\t{long}\n" * 2)
    (tfm.folder / "mine.yaml").write_text(MINE)
    with terminal(60) as (name, shown):
        assert tfm("train", "--config", "mine.yaml", terminal=name).exit_code == 0
    lines = re.split(r"[\r\n]+", shown.decode())
    cut = [line for line in lines if line.startswith("  dropped: ") and "xxx" in line]
    assert len(cut) == 1
    assert len(cut[0]) == 60
    assert cut[0].endswith("x…")
    log = (tfm.folder / "runs/mine/train.log").read_text()
    (whole,) = (line for line in log.splitlines() if "  dropped: " in line and "xxx" in line)
    assert len(whole.partition("  dropped: ")[2]) > 60
    assert whole.endswith(("x", "x…"))


@pytest.mark.parametrize("num_columns", [None, *range(10, 200)])
def test_a_bar_shows_as_much_as_its_terminal_has_room_for(num_columns: int | None) -> None:
    facts = "loss 3.123", "lr 7.1e-04", "12,345 tok/s"
    with tqdm(total=1500, initial=730, unit=" steps", file=io.StringIO()) as bar:
        state = {**bar.format_dict, "ncols": num_columns}
    form, text = layout(state, facts, num_columns)
    shown = tqdm.format_meter(**state | {"bar_format": form, "postfix": text})
    assert "730/1500" in shown or (num_columns or 99) < 10
    if num_columns is None or num_columns >= 105:
        assert all(fact in shown for fact in facts)
    if num_columns is None or num_columns >= 20:
        assert "loss 3.123" in shown, "the loss is left out last"
    assert num_columns is None or disp_len(shown) <= num_columns


MINE = """\
name: mine
data: {source: files, validation_share: 0.1, corpora: [{path: corpus.tsv}]}
model: {d_model: 16, num_heads: 2, d_ff: 32, encoder_layers: 1, decoder_layers: 1}
training: {max_steps: 1, batch_sentences: 8, best_metric: loss}
validation: {scores: [], num_samples: 0}
runtime: {device: cpu, precision: float32, threads: 1}
"""
