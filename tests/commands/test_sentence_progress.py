"""At a terminal, a command that reads or translates many sentences shows how far it is; elsewhere it says nothing of that."""

import os
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from transformer_cli.commands.calibrate import calibrate_command
from transformer_cli.commands.sentence_progress import sentence_progress
from transformer_cli.commands.validate import validate_command
from transformer_cli.decoding.engine import length_batches
from transformer_cli.extensions.exchange.commands.export import export_command
from transformer_cli.process.messages import escaped

pty = pytest.importorskip("pty")
termios = pytest.importorskip("termios")

DOCS_RUN = Path(__file__).parents[2] / "docs" / "run"
NUM_LINES = 120  # a calibration needs at least 100
COUNT = re.compile(r"(\d+)/(\d+) \[\S+<\S+, +\S+ sentences")  # such as 2/4 [00:00<00:00, 31.4 sentences/s]


class Shown:
    """What a terminal got; known after the block."""

    text = ""


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shown]:
    """Make standard error a terminal in the block."""
    shown, pieces = Shown(), list[bytes]()
    keyboard_side, program_side = pty.openpty()
    termios.tcsetwinsize(program_side, (24, 100))

    def read() -> None:
        try:
            while piece := os.read(keyboard_side, 4096):
                pieces.append(piece)
        except OSError:  # no program has the terminal any more
            pass

    reader = threading.Thread(target=read)
    reader.start()
    try:
        with monkeypatch.context() as patched, os.fdopen(program_side, "w", encoding="utf-8") as stream:
            patched.setattr(sys, "stderr", stream)
            yield shown
    finally:
        reader.join(10)
        os.close(keyboard_side)
        shown.text = b"".join(pieces).decode()


def validate_it(texts: Path) -> None:
    validate_command(
        [str(DOCS_RUN)],
        source=texts / "a.en",
        reference=texts / "a.it",
        scores="bleu",
        overrides=["decoding.repair=false"],
    )


def export_it(texts: Path) -> None:
    pytest.importorskip("ctranslate2")
    export_command("ctranslate2", texts / "exported", run=str(DOCS_RUN), input_file=texts / "a.en")


def calibrate_it(texts: Path) -> None:
    shutil.copytree(DOCS_RUN, texts / "run")
    calibrate_command(
        str(texts / "run"), source=texts / "a.en", reference=texts / "a.it", samples=0, share=0.9, certainty=0.5
    )


@pytest.mark.long
@pytest.mark.usefixtures("few_samples")
@pytest.mark.parametrize("command", [validate_it, export_it, calibrate_it])
def test_a_command_that_takes_long_says_at_a_terminal_how_far_it_is(
    command: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("transformer_cli.data.preparation.num_trained_on", lambda *_: 0)  # takes longer than all else
    (tmp_path / "a.en").write_text("".join(f"The red cars are here: {number}.\n" for number in range(NUM_LINES)))
    (tmp_path / "a.it").write_text("".join(f"Le macchine rosse sono qui: {number}.\n" for number in range(NUM_LINES)))
    with terminal(monkeypatch) as shown:
        command(tmp_path)
    assert ("0", str(NUM_LINES)) in COUNT.findall(shown.text), escaped(shown.text)
    assert "sentences/s" not in capsys.readouterr().out


def test_each_pass_over_the_sentences_begins_anew_and_at_the_end_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tqdm.tqdm.monitor_interval", 0)  # no thread that outlives the test
    with terminal(monkeypatch) as shown, sentence_progress():
        for lengths in ([3, 3, 3, 3], [3, 3]):
            for _ in length_batches(lengths, int, max_tokens=6):
                pass
    assert ("0", "4") in COUNT.findall(shown.text), escaped(shown.text)
    assert not shown.text.rpartition("\r")[0].rpartition("\r")[2].strip()


def test_without_a_terminal_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with sentence_progress():
        for _ in length_batches([3, 3, 3, 3], int, max_tokens=6):
            pass
    assert capsys.readouterr() == ("", "")
