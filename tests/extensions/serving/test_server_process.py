"""`tfm serve` as a process: its start, its signals, its errors, and the same translations as `tfm translate`."""

import json
import re
import shutil
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ...launcher import Launcher, Process, Tfm

LINES = ["1 2 3", "4 5 6 7", "", "  8 9 10", "10 9 8 7 6", "1 2 3"]


@pytest.fixture(scope="module")
def trained(launcher: Launcher, memory_folder: Path, finished_tiny: Path) -> Tfm:
    folder = shutil.copytree(finished_tiny, memory_folder / "served", symlinks=True)
    tfm = Tfm(launcher, folder)
    return tfm


@contextmanager
def serving(
    tfm: Tfm, *arguments: str, waits: bool = True, protection: tuple[str, ...] = ("--no-protect",)
) -> Iterator[tuple[Process, str]]:
    """A process that serves the tiny run, and its address."""
    process = tfm.start("serve", "--run", "tiny", "--port", "0", *protection, *arguments)
    try:
        process.wait_until(lambda: "listening on" in process.talk.read_text())
        [address] = re.findall(r"listening on (http://\S+),", process.talk.read_text())
        if waits:
            process.wait_until(lambda: status(f"{address}/ready") == 200)
        yield process, address
    finally:
        if process.is_running():
            process.send(signal.SIGKILL)
            process.wait()


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def translate(address: str, text: str | list[str], *, source: str = "en", target: str = "it") -> Any:
    body = json.dumps({"q": text, "source": source, "target": target}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{address}/translate", body, headers)
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())["translatedText"]


def test_the_server_prints_what_the_command_line_prints(trained: Tfm) -> None:
    """I8."""
    (trained.folder / "in.txt").write_text("\n".join(LINES) + "\n")
    expected = trained("translate", "--run", "tiny", "--input", "in.txt").lines
    with serving(trained) as (process, address):
        assert translate(address, LINES[:2] + LINES[3:]) == expected[:2] + expected[3:]
        assert translate(address, "\n".join(LINES)).split("\n") == expected
        assert process.talk.read_text().count("\n") == 3  # listening, the run, ready
        process.send(signal.SIGTERM)
        finished = process.wait()
    assert finished.exit_code == 143
    assert finished.out == b""
    assert finished.talk.endswith("tfm: ended by SIGTERM\n")


def test_a_server_protects_urls_and_placeholders_unless_told_otherwise(trained: Tfm) -> None:
    text = "1 2 {name} https://example.com/a?b=c 4"
    kept, free = (
        trained("translate", "--run", "tiny", *protection, text).lines[0] for protection in (["--protect"], [])
    )
    assert kept != free
    with serving(trained, protection=()) as (_, address):
        assert translate(address, text) == kept
    with serving(trained) as (_, address):
        assert translate(address, text) == free


def test_settings_are_taken_as_by_translate(trained: Tfm) -> None:
    arguments = ("--set", "decoding.max_length=3", "-b", "3")
    expected = trained("translate", "--run", "tiny", LINES[4], *arguments).lines
    with serving(trained, *arguments) as (_, address):
        assert translate(address, LINES[4]) == expected[0]


def test_several_runs_on_ctranslate2_answer_as_translate_does(trained: Tfm) -> None:
    pytest.importorskip("ctranslate2")
    languages = "data.source_language=it", "data.target_language=en"
    reversed_run = [word for each in ("name=back", "seed=2", *languages) for word in ("--set", each)]
    assert trained("train", "--config", "tiny.yaml", *reversed_run).exit_code == 0
    on_ctranslate2 = ("--set", "decoding.engine=ctranslate2")
    expected = {run: trained("translate", "--run", run, *on_ctranslate2, LINES[4]).lines[0] for run in ("tiny", "back")}
    with serving(trained, "--run", "back", *on_ctranslate2) as (_, address):
        assert translate(address, LINES[4]) == expected["tiny"]
        assert translate(address, LINES[4], source="it", target="en") == expected["back"]
        with urllib.request.urlopen(f"{address}/languages") as answer:
            assert {each["code"] for each in json.loads(answer.read())} == {"en", "it"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_requests_in_progress_finish(trained: Tfm, number: signal.Signals) -> None:
    """I7: a request whose body is half sent when the signal comes is still answered."""
    with serving(trained) as (process, address):
        host, port = address.removeprefix("http://").split(":")
        body = json.dumps({"q": LINES[0], "source": "en", "target": "it"}).encode()
        head = f"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection((host, int(port)), timeout=60.0) as connection:
            connection.sendall(head.encode() + body[:5])
            assert status(f"{address}/health") == 200  # so the beginning has been read, too
            process.send(number)
            process.wait_until(lambda: not accepts(host, int(port)))
            assert process.is_running()
            connection.sendall(body[5:])
            answer = b"".join(iter(lambda: connection.recv(10_000), b""))
        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert b"translatedText" in answer
        assert process.wait().exit_code == 128 + number


def test_a_second_signal_ends_a_server_that_waits(trained: Tfm) -> None:
    """I7."""
    with serving(trained) as (process, address):
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=60.0) as connection:
            connection.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
            assert status(f"{address}/health") == 200
            process.send(signal.SIGINT)
            process.wait_until(lambda: not accepts(host, int(port)))
            process.send(signal.SIGINT)
            started_at = time.monotonic()
            assert process.wait().exit_code == 130
            assert time.monotonic() - started_at < 15.0  # not the 20 seconds for requests in progress


def test_a_signal_while_the_models_load_ends_the_server(trained: Tfm) -> None:
    with serving(trained, waits=False) as (process, _):
        process.send(signal.SIGTERM)
        assert process.wait().exit_code == 143


def accepts(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=5.0).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--run", "none"), 66, "none"),
        (("--run", "tiny", "--run", "tiny"), 2, "--run tiny: given twice"),
        (("--run", "tiny", "--api-keys", "none.txt"), 66, "none.txt: no such file"),
        (("--run", "tiny", "--api-keys", "empty.txt"), 65, "holds no key"),
        (("--run", "tiny", "--glossary", "terms.tsv"), 2, "--glossary terms.tsv"),
        (("--run", "tiny", "--glossary", "en-it=none.tsv"), 66, "none.tsv"),
        (("--run", "tiny", "--host", "203.0.113.1"), 73, "203.0.113.1"),
        (("--run", "tiny", "--set", "training.max_steps=3"), 78, "cannot be changed for a trained model"),
        (("--run", "tiny", "--set", "decoding.num_best=3"), 78, "has no effect on tfm serve"),
        (("--run", "tiny", "--max-requests", "0"), 2, "--max-requests"),
    ],
)
def test_what_cannot_be_served_is_said(trained: Tfm, arguments: tuple[str, ...], code: int, message: str) -> None:
    (trained.folder / "empty.txt").write_text("# no key\n\n")
    finished = trained("serve", "--port", "0", *arguments)
    assert (finished.exit_code, message in finished.talk) == (code, True), finished.talk
    assert "Traceback" not in finished.talk


def test_a_port_in_use_is_said(trained: Tfm) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        finished = trained("serve", "--run", "tiny", "--port", str(port))
    assert finished.exit_code == 73
    assert f"--port {port}" in finished.talk


def test_health_is_answered_before_the_models_are_loaded(trained: Tfm) -> None:
    with serving(trained, waits=False) as (process, address):
        assert status(f"{address}/health") == 200
        process.wait_until(lambda: status(f"{address}/ready") == 200)


def test_the_server_can_translate_while_many_ask(trained: Tfm) -> None:
    """I8, with single precision and the cache."""
    expected = trained("translate", "--run", "tiny", *[line or " " for line in LINES]).lines
    found: dict[int, str] = {}
    with serving(trained) as (_, address):

        def ask(number: int) -> None:
            line = LINES[number % len(LINES)]
            found[number] = translate(address, line) if line else ""

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(48)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    wanted = [translation if line else "" for line, translation in zip(LINES, expected, strict=True)]
    assert found == {number: wanted[number % len(LINES)] for number in range(48)}
