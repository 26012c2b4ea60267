"""Many clients at once: right answers for each, refusals when too many wait, and cancelled work (I3, I4, I8)."""

import asyncio
import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn

from transformer_cli.decoding import Engine, Request
from transformer_cli.extensions.serving.application import ServerOptions
from transformer_cli.extensions.serving.limits import Limits
from transformer_cli.extensions.serving.server_process import Server, raised_descriptor_limit

from .served_translators import LINES, listening, small_runs, small_translator

LONG = 60.0
CLIENT = httpx.Client(limits=httpx.Limits(max_connections=None), timeout=LONG, trust_env=False)


@dataclass(frozen=True)
class HeldEngine:
    """An engine that translates nothing until it is released."""

    engine: Engine
    begun: threading.Event
    released: threading.Event
    requests: list[Request]

    def translate(self, requests: Any, options: Any) -> Any:
        self.requests.extend(requests)
        self.begun.set()
        assert self.released.wait(LONG)
        return self.engine.translate(requests, options)

    def negative_log_likelihood(self, *arguments: Any, **options: Any) -> Any:
        raise NotImplementedError

    def next_token_probabilities(self, *arguments: Any) -> Any:
        raise NotImplementedError


@contextmanager
def held_server(limits: Limits) -> Iterator[tuple[str, HeldEngine]]:
    translator = small_translator()
    engine = HeldEngine(translator.engine, threading.Event(), threading.Event(), [])
    with listening(small_runs(replace(translator, engine=engine)), ServerOptions(limits)) as address:
        try:
            yield address, engine
        finally:
            engine.released.set()


@pytest.fixture(scope="module", autouse=True)
def closed_connections() -> Iterator[None]:
    """The connections of the client are closed before the interpreter ends."""
    yield
    CLIENT.close()


def translate(address: str, text: str, **options: Any) -> httpx.Response:
    values = {"q": text, "source": "en", "target": "it"}
    return CLIENT.post(f"{address}/translate", json=values, **options)


def metric(address: str, name: str) -> float:
    text = CLIENT.get(f"{address}/metrics").text
    [line] = [line for line in text.splitlines() if line.split(" ")[0].split("{")[0] == name]
    return float(line.split(" ")[1])


def wait_until(condition: Callable[[], bool]) -> None:
    stop_at = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < stop_at
        time.sleep(0.01)


@pytest.mark.heavy
@pytest.mark.parametrize("beam_size", [1, 4])
def test_answers_are_those_of_the_translator_at_any_concurrency(beam_size: int) -> None:
    """I8. In double precision, so that no rounding hides a mistake."""
    translator = small_translator(beam_size=beam_size)
    expected = {each.source: each.text for each in translator.translate(LINES)}
    assert len(set(expected.values())) > len(expected) // 2  # mixed-up answers would show
    asked = random.Random(1).choices(LINES, k=100)
    # Without a cache, each answer is computed.
    with listening(small_runs(translator, cache_bytes=0)) as address:
        for num_clients in (1, 16):
            with ThreadPoolExecutor(num_clients) as threads:
                answers = threads.map(lambda line: translate(address, line).json(), asked[:30])
                found = [answer["translatedText"] for answer in answers]
            assert found == [expected[line] for line in asked[:30]]
        with ThreadPoolExecutor(4) as threads:
            texts = ["\n".join(asked[start : start + 10]) for start in range(0, 100, 10)]
            answers = threads.map(lambda text: translate(address, text).json(), texts)
            lines = "\n".join(answer["translatedText"] for answer in answers).split("\n")
        assert lines == [expected[line] for line in asked]


@pytest.mark.heavy
def test_two_hundred_requests_are_answered_or_told_to_try_later() -> None:
    """I3."""
    translator = small_translator()
    expected = {each.source: each.text for each in translator.translate(LINES)}
    with held_server(Limits(max_requests=40)) as (address, engine):
        asked = [LINES[number % len(LINES)] for number in range(200)]
        with ThreadPoolExecutor(200) as threads:
            running = [threads.submit(translate, address, line) for line in asked]
            wait_until(lambda: sum(one.done() for one in running) == 160)
            assert metric(address, "tfm_requests_active") == 40
            assert CLIENT.get(f"{address}/health").status_code == 200
            engine.released.set()
            answers = [one.result(LONG) for one in running]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert len(refused) == 160
        assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
        assert all("Slowdown" in answer.json()["error"] for answer in refused)
        for line, answer in zip(asked, answers, strict=True):
            if answer.status_code != 429:
                assert answer.json() == {"translatedText": expected[line]}
        # It recovers.
        assert translate(address, LINES[0]).json() == {"translatedText": expected[LINES[0]]}
        assert metric(address, "tfm_requests_refused_total") == 160


@pytest.mark.long
def test_the_work_of_a_client_that_leaves_is_dropped() -> None:
    """I4."""
    with held_server(Limits(max_requests=3)) as (address, engine), ThreadPoolExecutor(2) as threads:
        first = threads.submit(translate, address, LINES[0])
        assert engine.begun.wait(LONG)
        leaving = [post_and_keep_open(address, LINES[number]) for number in (9, 10)]
        wait_until(lambda: metric(address, "tfm_sentences_waiting") == 2)
        assert translate(address, LINES[1]).status_code == 429
        for connection in leaving:
            connection.close()
        wait_until(lambda: metric(address, "tfm_requests_active") == 1)
        assert metric(address, "tfm_characters_total") == 0
        assert metric(address, "tfm_sentences_waiting") == 0
        second = threads.submit(translate, address, LINES[1])
        wait_until(lambda: metric(address, "tfm_requests_active") == 2)
        engine.released.set()
        assert [one.result(LONG).status_code for one in (first, second)] == [200, 200]
        assert len(engine.requests) == 2  # those that left were never translated
        assert metric(address, "tfm_characters_total") == len(LINES[0]) + len(LINES[1])


@pytest.mark.long
def test_a_stream_that_is_closed_is_dropped() -> None:
    """I4."""
    with held_server(Limits()) as (address, engine):
        text = ". ".join(line.capitalize() for line in LINES[:30])
        connection = post_and_keep_open(address, text, path="/translate_stream")
        assert engine.begun.wait(LONG)
        assert b'"type":"start"' in connection.recv(1000)
        connection.close()
        wait_until(lambda: metric(address, "tfm_requests_active") == 0)
        engine.released.set()
        assert translate(address, LINES[0]).status_code == 200
        assert len(engine.requests) <= 3


@pytest.mark.long
def test_a_request_has_a_deadline() -> None:
    with held_server(Limits(deadline_seconds=0.2)) as (address, engine):
        answer = translate(address, LINES[0])
        assert answer.status_code == 503
        assert "retry-after" in answer.headers
        engine.released.set()
        wait_until(lambda: translate(address, LINES[1]).status_code == 200)


def test_a_slow_client_is_closed_at_its_deadline_and_others_are_served() -> None:
    """I2: slow heads, slow bodies, and a connection that says nothing."""
    with listening(small_runs(small_translator()), ServerOptions(Limits(read_seconds=1.0))) as address:
        host, port = urlsplit(address).hostname, urlsplit(address).port
        assert host is not None
        head = b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        body = b"Content-Length: 1000\r\n\r\n"
        for beginning, drop in ((b"", b""), (head, b"X"), (head + body, b" "), (b"", b"G")):
            connection = socket.create_connection((host, port))
            connection.settimeout(LONG)
            connection.sendall(beginning)
            started_at = time.monotonic()
            assert translate(address, LINES[0]).status_code == 200
            assert is_closed_while_dripping(connection, drop)
            assert time.monotonic() - started_at > 0.9
            connection.close()


def test_a_second_request_on_a_connection_has_a_deadline_too() -> None:
    """I2."""
    with listening(small_runs(small_translator()), ServerOptions(Limits(read_seconds=1.0))) as address:
        connection = post_and_keep_open(address, LINES[0])
        connection.settimeout(LONG)
        assert b"200 OK" in connection.recv(10_000)
        connection.sendall(b"POST /translate HT")
        assert is_closed_while_dripping(connection, b"T")
        connection.close()


def is_closed_while_dripping(connection: socket.socket, drop: bytes) -> bool:
    """Whether the server closes a connection on which a byte is sent again and again."""
    stop_at = time.monotonic() + LONG
    connection.settimeout(0.1)
    while time.monotonic() < stop_at:
        try:
            if drop:
                connection.sendall(drop)
            if connection.recv(10_000) == b"":
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


def post_and_keep_open(address: str, text: str, *, path: str = "/translate") -> socket.socket:
    parts = urlsplit(address)
    assert parts.hostname is not None
    connection = socket.create_connection((parts.hostname, parts.port))
    connection.settimeout(LONG)
    body = json.dumps({"q": text, "source": "en", "target": "it"}).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    return connection


@pytest.mark.long
def test_an_idle_connection_makes_room_for_a_new_one() -> None:
    with listening(small_runs(small_translator()), max_connections=3) as address:
        host = urlsplit(address)
        place = str(host.hostname), int(host.port or 0)
        idle = []
        for _ in range(10):
            idle.append(socket.create_connection(place, timeout=LONG))
            assert httpx.get(f"{address}/health", trust_env=False).status_code == 200
        assert idle[0].recv(10) == b""  # the oldest was closed
        for each in idle:
            each.close()


@pytest.mark.long
def test_a_burst_of_connections_leaves_no_more_of_them_than_may_be() -> None:
    with listening(small_runs(small_translator()), max_connections=5) as address:
        host = urlsplit(address)
        place = str(host.hostname), int(host.port or 0)
        opened = [socket.create_connection(place, timeout=LONG) for _ in range(60)]
        assert httpx.get(f"{address}/health", trust_env=False).status_code == 200
        for each in opened:
            each.setblocking(False)
        assert sum(map(is_open, opened)) <= 5
        for each in opened:
            each.close()


def is_open(connection: socket.socket) -> bool:
    try:
        return connection.recv(10) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


def test_connections_that_wait_are_accepted_in_small_groups() -> None:
    """So those that are too many are closed before the descriptors are exhausted."""
    num_accepted = 0

    class Listening(socket.socket):
        def accept(self) -> Any:
            nonlocal num_accepted
            accepted = super().accept()
            num_accepted += 1
            return accepted

    async def server() -> tuple[int, int]:
        async def application(scope: Any, receive: Any, send: Any) -> None: ...

        config = uvicorn.Config(application, backlog=16, lifespan="off", log_config=None)
        config.load()
        server = Server(config)
        server.lifespan = config.lifespan_class(config)
        with Listening() as listening:
            listening.bind(("127.0.0.1", 0))
            await server.startup([listening])
            place = listening.getsockname()
            waiting = [socket.create_connection(place, timeout=LONG) for _ in range(100)]
            await asyncio.sleep(0)
            first = num_accepted
            while num_accepted < len(waiting):
                await asyncio.sleep(0)
            while len(server.server_state.connections) < len(waiting):
                await asyncio.sleep(0)
            for each in waiting:
                each.close()
            while server.server_state.connections:
                await asyncio.sleep(0)
            await server.shutdown([listening])
        return first, num_accepted

    first, last = asyncio.run(server())
    assert first <= 32
    assert last == 100


def test_a_connection_without_room_is_told_to_come_later() -> None:
    translator = small_translator()
    engine = HeldEngine(translator.engine, threading.Event(), threading.Event(), [])
    runs = small_runs(replace(translator, engine=engine))
    with listening(runs, max_connections=1) as address, ThreadPoolExecutor(1) as threads:
        try:
            values = {"q": LINES[0], "source": "en", "target": "it"}
            first = threads.submit(CLIENT.post, f"{address}/translate", json=values)
            assert engine.begun.wait(LONG)
            host = urlsplit(address)
            with socket.create_connection((str(host.hostname), int(host.port or 0)), LONG) as other:
                answer = b"".join(iter(lambda: other.recv(10_000), b""))
        finally:
            engine.released.set()
        assert first.result(LONG).status_code == 200
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert json.loads(body) == {"error": "Slowdown: too many connections"}


def test_what_is_no_http_gets_an_error_in_json_and_the_headers_of_all_answers() -> None:
    with listening(small_runs(small_translator())) as address:
        host = urlsplit(address)
        with socket.create_connection((str(host.hostname), int(host.port or 0)), LONG) as other:
            other.sendall(b"no HTTP at all\r\n\r\n")
            answer = b"".join(iter(lambda: other.recv(10_000), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"x-content-type-options: nosniff" in head.lower()
    assert set(json.loads(body)) == {"error"}


def test_the_limit_of_descriptors_is_raised_as_far_as_it_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import resource

    limits: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda kind, pair: limits.append(pair))
    for soft, hard, wanted, expected in [
        (1024, 4096, 2000, 2000),
        (1024, 1500, 2000, 1500),
        (1024, resource.RLIM_INFINITY, 2000, 2000),
        (8192, 8192, 2000, 8192),
    ]:
        monkeypatch.setattr(resource, "getrlimit", lambda kind, pair=(soft, hard): pair)
        assert raised_descriptor_limit(wanted) == expected
    assert limits == [(2000, 4096), (1500, 1500), (2000, resource.RLIM_INFINITY)]


def test_a_request_that_says_its_length_in_two_ways_is_refused_and_ends_the_connection() -> None:
    """A proxy could read another length than the server, and take the rest for the request of somebody else."""
    body = b"q=uno&source=en&target=it"
    head = b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    both = b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n"
    with listening(small_runs(small_translator())) as address:
        host = urlsplit(address)
        with socket.create_connection((str(host.hostname), int(host.port or 0)), LONG) as other:
            other.sendall(head + both + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
            answer = b"".join(iter(lambda: other.recv(10_000), b""))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1") == 1
