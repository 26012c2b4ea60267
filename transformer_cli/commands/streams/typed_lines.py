"""Sentences that a person types at a terminal: with a prompt, line editing and a history."""

import importlib
import logging
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

from transformer_cli.commands.streams.input_lines import LineDecoder
from transformer_cli.config import SequencesData
from transformer_cli.decoding import TextPipeline
from transformer_cli.process.escaping import escaped, for_output
from transformer_cli.process.messages import fitted, terminal_width

_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")
_KEYS_TO_END = "Ctrl-Z and Enter end" if os.name == "nt" else "Ctrl-D ends"
_WORDS_TO_END = (b"exit", b"quit")
_MAX_DELAY_SECONDS = 0.5  # between a signal at the prompt and its effect

logger = logging.getLogger(__name__)


class Conversation:
    """Reads lines from a terminal; a line is translated before the next one is read.

    Prompts go to standard error, so standard output holds translations only.
    """

    def __init__(self, pipeline: TextPipeline) -> None:
        self.speak(pipeline)

    def speak(self, pipeline: TextPipeline) -> None:
        """Ask and answer in the languages of this pipeline from now on."""
        if isinstance(pipeline.data, SequencesData):
            self._subject, self._prompt, self._label = f"task {pipeline.data.task}", "> ", "= "
        else:
            source, target = pipeline.languages
            self._subject = f"{source} to {target}"
            self._prompt, self._label = f"{source}> ", f"{target}> "

    def lines(self) -> Iterator[str]:
        """Each line that is typed, until the person ends the input."""
        logger.info(
            "%s: type a sentence and press Enter; %s, and so does the line: exit; :help lists commands",
            self._subject,
            _KEYS_TO_END,
        )
        decoder = LineDecoder("standard input")
        while (typed := self._read()) is not None and typed.strip() not in _WORDS_TO_END:
            for line in typed.split(b"\n"):  # several lines may be pasted at once
                yield decoder.decode(line.removesuffix(b"\r"))
        decoder.finish()

    def announce_answer(self) -> None:
        """Write the target language before a translation, if a terminal shows both output streams."""
        if sys.stderr.isatty() and sys.stdout.isatty():
            sys.stderr.write(self._label)
            sys.stderr.flush()

    def show_answer(self, lines: Sequence[str]) -> None:
        """Show a translation at the terminal, beside the file that `--output` names."""
        for stream in (sys.stderr, sys.stdout):
            if stream.isatty():
                shown = "".join(f"{for_output(line, stream)}\n" for line in lines)
                stream.write(f"{self._label}{shown}")
                stream.flush()
                return

    def tell(self, lines: Iterable[str]) -> None:
        """Show lines that are no translations to the person, cut where the terminal would wrap them."""
        stream = sys.stdout if sys.stdout.isatty() and not sys.stderr.isatty() else sys.stderr
        num_columns = terminal_width(stream)
        stream.write("".join(f"{fitted(escaped(line), num_columns)}\n" for line in lines))
        stream.flush()

    def _read(self) -> bytes | None:
        """One line without its line feed, or several pasted lines; None at the end."""
        if not (sys.stderr.isatty() or sys.stdout.isatty()):
            raw = sys.stdin.buffer.readline()
            return raw.removesuffix(b"\n") if raw else None
        with suppress(
            ImportError
        ):  # Windows has no readline library: its terminal has line editing
            importlib.import_module("readline")
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
        try:
            with _signals_raised(), _woken_regularly(), _standard_output_at_the_terminal():
                return input(self._prompt).encode("utf-8", "surrogateescape")
        except EOFError:
            sys.stderr.write("\n")  # the cursor stands behind the prompt
            return None


class _SignalCame(BaseException):
    """A signal came while a person typed a line."""


@contextmanager
def _signals_raised() -> Iterator[None]:
    """Turn a signal in the block into an exception; after the block, send the signal to its own handler.

    The readline library has changed the settings of the terminal, and it restores them after an exception. The
    handler may end the process at once, and then the terminal would keep the changed settings.
    """

    def raise_it(number: int, frame: FrameType | None) -> NoReturn:
        raise _SignalCame(number)

    numbers = [getattr(signal, name) for name in _ENDING if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    came = None
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, raise_it)
        yield
    except _SignalCame as error:
        came = error.args[0]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came is not None:
        sys.stderr.write("\n")
        signal.raise_signal(came)


@contextmanager
def _woken_regularly() -> Iterator[None]:
    """Interrupt the wait for a key at regular times, so that Python looks whether a signal came.

    Python looks after each wait that a signal interrupts. A signal that comes just before the wait, while the
    readline library shows a key, interrupts nothing: without this, it would have no effect until the next key.
    """
    if not hasattr(signal, "setitimer"):  # Windows
        yield
        return
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, _MAX_DELAY_SECONDS, _MAX_DELAY_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _standard_output_at_the_terminal() -> Iterator[None]:
    """During the block, let file descriptor 1 be standard error, if standard error is a terminal.

    `input` and the readline library write the prompt and the edited line to descriptor 1. They edit lines only
    if it is a terminal, but standard output may be a file.
    """
    if not sys.stderr.isatty():
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
