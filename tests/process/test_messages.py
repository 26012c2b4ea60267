"""Messages on standard error and in the log of a run."""

import logging
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from transformer_cli.process.errors import DataError
from transformer_cli.process.messages import fitted, for_shell, log_to_file, talk_on_stderr

logger = logging.getLogger("transformer_cli.some.module")


@pytest.fixture(autouse=True)
def _talk() -> None:
    talk_on_stderr()


def lines(log: Path) -> list[str]:
    return [re.sub(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", "", line) for line in log.read_text().splitlines()]


def test_both_places_get_each_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with log_to_file(tmp_path / "train.log"):
        logger.info("one %d", 1)
    logger.info("two")
    assert lines(tmp_path / "train.log") == ["one 1"]
    assert capsys.readouterr().err == "one 1\ntwo\n"


def test_what_the_bar_says_goes_to_the_file_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with log_to_file(tmp_path / "train.log"):
        logger.info("step 5", extra={"is_on_the_bar": True})
    assert lines(tmp_path / "train.log") == ["step 5"]
    assert capsys.readouterr().err == ""


def test_the_error_that_ends_the_work_is_logged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "train.log"
    with pytest.raises(DataError), log_to_file(log):
        raise DataError("a.tsv: no", hint="yes")
    assert lines(log) == ["a.tsv: no", "  hint: yes"]
    with pytest.raises(ZeroDivisionError), log_to_file(log):
        _ = 1 / 0
    assert "Traceback (most recent call last):" in lines(log)
    assert lines(log)[-1] == "ZeroDivisionError: division by zero"
    assert capsys.readouterr().err == "", "the command line says it there"


def test_a_log_is_continued(tmp_path: Path) -> None:
    for number in (1, 2):
        with log_to_file(tmp_path / "train.log"):
            logger.info("run %d", number)
    assert lines(tmp_path / "train.log") == ["run 1", "run 2"]


@pytest.mark.parametrize("place", ["/dev/full", "/nowhere/train.log"])
def test_a_log_that_cannot_be_written_costs_one_warning(capsys: pytest.CaptureFixture[str], place: str) -> None:
    with log_to_file(Path(place)):
        for number in (1, 2, 3):
            logger.info("message %d", number)
    talk = capsys.readouterr().err
    assert talk.count("cannot be written any more; the run goes on without it") == 1
    for number in (1, 2, 3):
        assert f"message {number}\n" in talk


def test_debugging_messages_are_shown_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    logger.debug("hidden")
    talk_on_stderr(debug=True)
    logger.debug("shown")
    assert capsys.readouterr().err == "shown\n"


def test_a_log_that_is_a_link_is_not_written_through(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "train.log").symlink_to("precious")
    with log_to_file(tmp_path / "train.log"):
        logger.info("one")
    assert (tmp_path / "precious").read_text() == "precious"
    assert "cannot be written any more; the run goes on without it" in capsys.readouterr().err


def test_control_characters_are_shown_as_codes_in_both_places(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with log_to_file(tmp_path / "train.log"):
        logger.info("a corpus says %s\nand %s", "\x1b[2J", "\u202e")
    assert lines(tmp_path / "train.log") == [r"a corpus says \x1b[2J", r"and \u202e"]
    assert capsys.readouterr().err == "a corpus says \\x1b[2J\nand \\u202e\n"


def test_a_line_is_cut_by_its_columns_on_the_screen() -> None:
    assert fitted("short", 10) == fitted("short", None) == "short"
    assert fitted("exactly 10", 10) == "exactly 10"
    assert fitted("more than 10", 10) == "more than…"
    assert fitted("你好世界", 8) == "你好世界"
    assert fitted("你好世界", 7) == "你好世…"


@pytest.mark.parametrize(
    "word", ["a b", "C:\\my files\\x.txt", "C:\\my files\\", 'say "no" now', 'x\\" y\\\\', "", "plain", "C:\\a\\b.txt"]
)
def test_a_word_is_quoted_as_programs_of_windows_read_it(word: str) -> None:
    assert for_shell(word, "nt") == subprocess.list2cmdline([word])
    assert shlex.split(for_shell(word, "posix")) == [word]


@pytest.mark.parametrize("word", ["a&b", "it's", "a|b", "a>b", "(a)"])
def test_a_sign_of_the_shell_of_windows_stands_in_quotation_marks(word: str) -> None:
    assert for_shell(word, "nt") == f'"{word}"'
