"""The output at a terminal: a progress bar, and lines above it."""

import os
import re
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..experiments import write_tiny
from ..launcher import Tfm


@contextmanager
def terminal() -> Iterator[tuple[str, bytearray]]:
    """The name of a terminal, and the bytes that were written to it."""
    reader, writer = os.openpty()
    termios.tcsetwinsize(writer, (24, 100))
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


def test_translating_from_a_terminal_answers_line_by_line(tfm: Tfm) -> None:
    tfm("train", "--config", write_tiny(tfm.folder))
    reader, writer = os.openpty()
    process = tfm.start("translate", stdin=os.ttyname(writer))
    process.wait_until(lambda: "type a sentence" in process.talk.read_text())
    for number in (1, 2):
        os.write(reader, b"1 2 3\n")
        process.wait_until(lambda wanted=number: process.out.read_bytes().count(b"\n") == wanted)  # type: ignore[misc]
    os.write(reader, b"\x04")
    assert process.wait().exit_code == 0
    os.close(reader)
    os.close(writer)
