"""How bytes become lines: by line feeds alone, and none is lost."""

import io
import json
import logging
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transformer_cli.commands.translate import decoded_lines, run_translation
from transformer_cli.errors import DataError, MissingInputError

from ..decoding.small_translators import tokenizer_of_words, translator

pieces = st.sampled_from(
    [b"a", b"\n", b"\r", b"\r\n", b"\xff", b"\xc3", b"\xc3\xa8", b"\x00", b"\xef\xbb\xbf",
     "\u2028".encode(), b"\x85", b"\x0b", b"\x0c", b"\x1e", b" "]
)  # fmt: skip


def decode(data: bytes) -> list[str]:
    return list(decoded_lines(io.BytesIO(data), "x.txt"))


@given(st.lists(pieces, max_size=12).map(b"".join) | st.binary(max_size=40))
@example(b"")
@example(b"\n")
@example(b"no last newline")
def test_there_are_as_many_lines_as_line_feeds_say(data: bytes) -> None:
    lines = decode(data)
    assert len(lines) == data.count(b"\n") + (data != b"" and not data.endswith(b"\n"))
    expected = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for line, raw in zip(lines, expected, strict=False):
        assert line == raw.removesuffix(b"\r").decode("utf-8", errors="replace")


def test_only_a_byte_order_mark_at_the_beginning_is_taken_away() -> None:
    assert decode(b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n") == ["a", "\ufeffb"]


def test_replaced_bytes_are_told_once_for_all(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="transformer_cli"):
        assert decode(b"\xff\nfine\n\xfe\n") == ["\ufffd", "fine", "\ufffd"]
    assert [record.getMessage() for record in caplog.records] == [
        "x.txt: lines that are not UTF-8, their bad bytes replaced: 2"
    ]


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff"])
def test_utf_16_is_told_once_and_as_soon_as_it_comes(
    mark: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    lines = decoded_lines(io.BytesIO(b"fine\n" + mark + b"a\n" + mark + b"b\n"), "x.txt")
    assert next(lines) == "fine"
    assert not caplog.records
    assert next(lines) == "\ufffd\ufffda"
    (record,) = caplog.records
    assert record.getMessage().startswith("x.txt:2: UTF-16 text, where UTF-8 is expected")
    assert "iconv -f UTF-16 -t UTF-8" in record.getMessage()
    assert list(lines) == ["\ufffd\ufffdb"]
    assert "UTF-16" not in "".join(record.getMessage() for record in caplog.records[1:])


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_file_that_says_itself_to_be_utf_16_is_refused_before_a_model_is_sought(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # no run is here
    path = tmp_path / "in.txt"

    def translate(content: bytes) -> None:
        path.write_bytes(content)
        run_translation(path, None, run=None, overrides=(), as_json=False)

    with pytest.raises(DataError, match=r"in\.txt: UTF-16 text, where UTF-8 is") as refusal:
        translate("\ufeffHello\nyou\n".encode(encoding))
    assert "iconv -f UTF-16 -t UTF-8 in.txt" in str(refusal.value.hint)
    for content in (b"Hello\n", b"\xef\xbb\xbfHello\n", b"\xff\n", b"\xff", b"", b"a\xff\xfe"):
        with pytest.raises(MissingInputError):
            translate(content)


@pytest.fixture
def of_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run with the eight words of `small_translators`."""
    loaded = SimpleNamespace(translator=translator(tokenizer_of_words()))
    monkeypatch.setattr("transformer_cli.commands.translate.load_run", lambda *_: loaded)


UNKNOWN = "unknown words: 2 of 5 are not in the vocabulary of the model, which read them as [UNK]"


@pytest.mark.usefixtures("of_words")
def test_the_unknown_words_of_all_lines_are_told_once(
    capfdbinary: pytest.CaptureFixture[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    lines = ["uno stampante", "due", "tre toner"]
    run_translation(lines, None, run=None, overrides=(), as_json=True)
    assert caplog.messages == [f"{UNKNOWN}; the first: stampante"]
    answers = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert [answer["unknown_words"] for answer in answers] == [["stampante"], [], ["toner"]]
    caplog.clear()
    run_translation(["uno due"], None, run=None, overrides=(), as_json=False)
    assert not caplog.messages


@pytest.mark.usefixtures("of_words")
def test_at_a_terminal_the_unknown_words_of_each_line_are_told_after_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    terminal = io.TextIOWrapper(io.BytesIO(b"uno stampante\ndue\ntoner\n"))
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    run_translation(None, None, run=None, overrides=(), as_json=False)
    told = [message for message in caplog.messages if message.startswith("unknown words")]
    assert [message.split("; ")[1] for message in told] == [
        "the first: stampante",
        "the first: toner",
    ]
