"""What a signal does to a command, to a training, and to a block that must not be cut."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from transformer_cli.process import signals
from transformer_cli.process.signals import (
    SignalRequests,
    cleaned_up,
    end_by_signals,
    ended_after,
)

from ..faults import run_in_child

ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def send(number: int) -> None:
    os.kill(os.getpid(), number)


def run_with_talk(work: Callable[[], int | None], talk: Path) -> tuple[int, str]:
    """The exit code of `work` in a child whose standard error is a file, and what stands there."""

    def in_child() -> int:
        os.dup2(os.open(talk, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
        end_by_signals()
        return work() or 0

    code = run_in_child(in_child)
    return code, talk.read_text()


@pytest.mark.process
@pytest.mark.parametrize("number", ENDING)
def test_a_signal_ends_a_command_with_its_code_and_one_line(tmp_path: Path, number: signal.Signals) -> None:
    ended = run_with_talk(lambda: send(number), tmp_path / "talk")
    assert ended == (128 + number, f"tfm: ended by {number.name}\n")


@pytest.mark.process
def test_the_module_of_the_signals_imports_nothing_else() -> None:
    """What is imported before the handlers are there can be broken by a signal."""
    script = (
        "import sys, signal; before = set(sys.modules); import transformer_cli.process.signals; "
        "print(*sorted(set(sys.modules) - before))"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert set(shown.stdout.decode().split()) <= {
        "__future__",
        "transformer_cli",
        "transformer_cli.process",
        "transformer_cli.process.signals",
    }


@pytest.mark.process
@pytest.mark.parametrize("number", [*ENDING, signal.SIGUSR1])
def test_a_signal_that_is_ignored_stays_ignored(tmp_path: Path, number: signal.Signals) -> None:
    """As `nohup` does with SIGHUP, and a shell with SIGINT for a job in the background."""

    def work() -> None:
        signal.signal(number, signal.SIG_IGN)
        end_by_signals()
        send(number)
        with SignalRequests() as requests:
            send(number)
            assert requests.signal_number is None
            assert not requests.wants_save

    assert run_with_talk(work, tmp_path / "talk") == (0, "")


def test_a_handler_of_the_program_around_us_is_left_alone() -> None:
    """A Python program that trains may use SIGUSR1 for something else."""
    noted: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: noted.append(number))
    try:
        with SignalRequests() as requests:
            send(signal.SIGUSR1)
        assert (noted, requests.wants_save) == ([signal.SIGUSR1], False)
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.process
def test_a_line_that_is_being_written_is_not_cut(tmp_path: Path) -> None:
    """What was written before the signal is in the output, and its last line is whole."""

    def work() -> None:
        sys.stdout = (tmp_path / "out").open("w")
        for number in range(5000):
            with ended_after():
                sys.stdout.write(f"line {number} ")
                if number == 4321:
                    send(signal.SIGTERM)
                sys.stdout.write("ends here\n")

    assert run_with_talk(work, tmp_path / "talk") == (143, "tfm: ended by SIGTERM\n")
    lines = (tmp_path / "out").read_text().splitlines(keepends=True)
    assert lines == [f"line {number} ends here\n" for number in range(4322)]


@pytest.mark.process
def test_a_reader_that_does_not_read_delays_the_end_by_two_seconds_at_most(tmp_path: Path) -> None:
    _, writer = os.pipe()

    def work() -> None:
        sys.stdout = os.fdopen(writer, "w")
        with ended_after():
            signal.signal(signal.SIGALRM, lambda *_: send(signal.SIGINT))
            # Again, because Python does not see one that comes just before the write that has to wait.
            signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
            sys.stdout.write("x" * 10_000_000)

    started_at = time.monotonic()
    assert run_with_talk(work, tmp_path / "talk") == (130, "tfm: ended by SIGINT\n")
    assert time.monotonic() - started_at < 60, "it ends, on a busy machine too"


@pytest.mark.process
def test_temporary_files_are_removed_before_the_process_ends(tmp_path: Path) -> None:
    def fail() -> None:
        raise OSError("no")

    def work() -> None:
        with cleaned_up((tmp_path / "one").touch), cleaned_up(fail):
            with cleaned_up((tmp_path / "two").touch):
                pass
            send(signal.SIGTERM)

    assert run_with_talk(work, tmp_path / "talk")[0] == 143
    assert (tmp_path / "one").exists(), "also where another cleanup fails"
    assert not (tmp_path / "two").exists(), "its block was left before the signal"


@pytest.mark.process
def test_a_second_signal_ends_an_ending_that_hangs(tmp_path: Path) -> None:
    def work() -> None:
        with cleaned_up(lambda: send(signal.SIGTERM)):
            send(signal.SIGINT)

    assert run_with_talk(work, tmp_path / "talk") == (143, "tfm: ended by SIGINT\n")


@pytest.mark.process
def test_a_signal_to_save_does_not_end_a_command(tmp_path: Path) -> None:
    """Slurm sends SIGUSR1 before the time of a job is over, whatever the job does then."""
    assert run_with_talk(lambda: send(signal.SIGUSR1), tmp_path / "talk") == (0, "")


@pytest.mark.parametrize("number", ENDING)
def test_the_first_signal_is_a_request(capfd: pytest.CaptureFixture[str], number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with SignalRequests() as request:
        assert request.signal_number is None
        send(number)
        assert request.signal_number == number
    assert signal.getsignal(number) is before
    assert f"tfm: {number.name}: finishing the step and saving" in capfd.readouterr().err


@pytest.mark.process
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_ends_the_process(tmp_path: Path, second: signal.Signals) -> None:
    def work() -> int:
        with SignalRequests():
            send(signal.SIGTERM)
            send(second)
            return 7

    assert run_with_talk(work, tmp_path / "talk")[0] == 128 + second


def test_under_torchrun_the_same_signal_soon_after_is_no_second_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends: list[int] = []
    now = 100.0
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    monkeypatch.setattr(os, "_exit", ends.append)
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with SignalRequests() as requests:
        signal.raise_signal(signal.SIGTERM)
        now += signals.PASSED_ON_SECONDS - 0.5
        signal.raise_signal(signal.SIGTERM)
        assert (requests.signal_number, ends) == (signal.SIGTERM, [])
        now += 0.5
        signal.raise_signal(signal.SIGTERM)
        assert ends == [143]


@pytest.mark.process
def test_the_signals_of_a_terminal_that_closes_are_one_request(tmp_path: Path) -> None:
    """SIGHUP comes from the shell and from the system; a service manager sends it beside SIGTERM."""

    def work(*numbers: signal.Signals) -> int:
        with SignalRequests() as requests:
            for number in numbers:
                send(number)
            return int(requests.signal_number or 0)

    hup, term = signal.SIGHUP, signal.SIGTERM
    for sent in ((hup, hup, hup), (hup, term), (term, hup, hup)):
        code, talk = run_with_talk(lambda sent=sent: work(*sent), tmp_path / "talk")  # type: ignore[misc]
        assert code == sent[0]
    assert talk.count("finishing the step") == 3, "once in each process"
    assert run_with_talk(lambda: work(hup, term, term), tmp_path / "talk")[0] == 128 + term


def test_a_signal_to_save_is_a_request_to_save(capfd: pytest.CaptureFixture[str]) -> None:
    with SignalRequests() as requests:
        send(signal.SIGUSR1)
        assert (requests.wants_save, requests.signal_number) == (True, None)
    assert "SIGUSR1: saving after this step" in capfd.readouterr().err


@pytest.mark.process
def test_a_closed_stderr_does_not_turn_a_request_into_an_error() -> None:
    def work() -> int:
        os.close(2)
        with SignalRequests() as request:
            send(signal.SIGTERM)
            return int(request.signal_number or 0)

    assert run_in_child(work) == signal.SIGTERM


@pytest.mark.process
def test_signals_that_this_system_does_not_have_are_left_out() -> None:
    """Windows has neither SIGHUP nor SIGUSR1."""
    script = (
        "import signal\n"
        "del signal.SIGHUP, signal.SIGUSR1, signal.setitimer\n"
        "from transformer_cli.process import signals\n"
        "signals.end_by_signals()\n"
        "with signals.SignalRequests() as requests:\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "assert requests.signal_number == signal.SIGINT\n"
        "signal.raise_signal(signal.SIGTERM)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True)
    assert (ended.returncode, ended.stderr.decode().splitlines()[-1]) == (
        143,
        "tfm: ended by SIGTERM",
    )


@pytest.mark.process
def test_every_signal_has_a_handler_at_every_moment_of_the_change(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Between the handlers of a command and those of a training there is no gap."""
    change = signal.signal
    seen: list[object] = []

    def watched(number: int, handler: object) -> object:
        before = change(number, handler)  # type: ignore[arg-type]
        seen.extend(signal.getsignal(each) for each in ENDING)
        return before

    def work() -> int:
        monkeypatch.setattr(signals.signal, "signal", watched)
        with SignalRequests():
            pass
        assert seen
        return int(not all(handler not in (None, signal.SIG_DFL, signal.SIG_IGN) for handler in seen))

    assert run_with_talk(work, tmp_path / "talk")[0] == 0
