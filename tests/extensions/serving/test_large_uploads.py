"""Large uploads: refused early, few at once, ended when their client leaves; and small requests go on beside them."""

import asyncio
import gc
import http.client
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from transformer_cli.extensions.documents.formats import ReadingWatch
from transformer_cli.extensions.serving import files
from transformer_cli.extensions.serving.application import ServerOptions, build_application
from transformer_cli.extensions.serving.batcher import Job
from transformer_cli.extensions.serving.limits import Limits
from transformer_cli.extensions.serving.request_values import ApiKeys
from transformer_cli.extensions.serving.service import TranslationService

from .served_translators import LINES, listening, served, small_runs, small_translator

LONG = 60.0
FORM = {"source": "en", "target": "it"}
TRANSLATOR = small_translator()


def sent(client: Any, data: bytes, **more: Any) -> Any:
    return client.post("/translate_file", data=FORM, files={"file": ("a.txt", data)}, **more)


def wait_until(condition: Callable[[], bool]) -> None:
    stop_at = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < stop_at
        time.sleep(0.005)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (Limits(max_segments=10), "more than 10 texts to translate: 11 up to line 11"),
        (Limits(max_file_characters=50), "more than 50 characters to translate: 5"),
        (Limits(max_file_parts=640), "more than 640 parts"),
    ],
)
def test_a_file_with_too_much_text_gets_413_with_what_was_found_and_the_limit(limits: Limits, message: str) -> None:
    with served(small_runs(TRANSLATOR), ServerOptions(limits)) as (client, service):
        answer = sent(client, b"uno due\n" * 1000)
        assert answer.status_code == 413
        assert message in answer.json()["error"]
        assert sent(client, b"uno\n").status_code == 200
        assert (service.num_files, service.num_active) == (0, 0)


@contextmanager
def held_reading(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[list[str], threading.Event]]:
    """Files are opened only when they are released; the list has the names of those that were begun."""
    begun: list[str] = []
    released = threading.Event()
    opened = files.opened_document

    def held(name: str, *arguments: Any, **options: Any) -> Any:
        begun.append(name)
        assert released.wait(LONG)
        return opened(name, *arguments, **options)

    monkeypatch.setattr(files, "opened_document", held)
    try:
        yield begun, released
    finally:
        released.set()


def test_few_files_are_read_at_once_others_wait_and_further_ones_are_refused_unread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = Limits(max_files=2, max_waiting_files=3)
    service = TranslationService(limits)
    service.start(small_runs(TRANSLATOR))
    application = build_application(service, ServerOptions(limits))

    async def clients() -> tuple[list[httpx.Response], httpx.Response, httpx.Response, int]:
        transport = httpx.ASGITransport(app=application)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:

            def send(number: int) -> Any:
                files = {"file": (f"{number}.txt", b"uno\n")}
                return asyncio.ensure_future(client.post("/translate_file", data=FORM, files=files))

            first = [send(number) for number in range(5)]
            stop_at = time.monotonic() + LONG
            while service.num_active < 5 or len(begun) < 2:
                assert time.monotonic() < stop_at
                await asyncio.sleep(0.005)
            refused = await send(5)
            health = await client.get("/health")
            num_begun = len(begun)
            released.set()
            return [await each for each in first], refused, health, num_begun

    with held_reading(monkeypatch) as (begun, released):
        answers, refused, health, num_begun = asyncio.run(clients())
    service.close()
    assert num_begun == 2
    assert (refused.status_code, health.status_code) == (429, 200)
    assert refused.headers["retry-after"]
    assert [each.status_code for each in answers] == [200] * 5
    assert sorted(begun) == [f"{number}.txt" for number in range(5)]
    assert (service.num_files, service.num_active) == (0, 0)


def test_a_file_that_is_refused_because_others_wait_is_not_received() -> None:
    limits = Limits(max_files=1, max_waiting_files=0)
    service = TranslationService(limits)
    application = build_application(service, ServerOptions(limits))
    with service.receiving_file():
        status, num_received = answer_of(application, "/translate_file", [])
    service.close()
    assert (status, num_received) == (429, 0)


def answer_of(
    application: Any,
    path: str,
    headers: list[tuple[bytes, bytes]],
    *,
    query: bytes = b"",
    content_type: bytes = b"application/json",
) -> tuple[int, int]:
    """The status for a body that never ends, and how many parts of it were received."""
    num_received = 0
    statuses: list[int] = []

    async def receive() -> dict[str, Any]:
        nonlocal num_received
        num_received += 1
        return {"type": "http.request", "body": b" " * 10_000, "more_body": True}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query,
        "headers": [(b"content-type", content_type), *headers],
    }
    asyncio.run(application(scope, receive, send))
    return statuses[0], num_received


@pytest.mark.parametrize("path", ["/translate_file", "/translate", "/v2/translate", "/explain"])
@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ([(b"authorization", b"Bearer wrong")], b""),
        ([(b"authorization", b"DeepL-Auth-Key wrong")], b""),
        ([], b"api_key=wrong"),
    ],
)
def test_a_wrong_key_in_the_head_of_a_request_is_refused_before_its_body_is_received(
    path: str, headers: list[tuple[bytes, bytes]], query: bytes
) -> None:
    service = TranslationService(Limits())
    application = build_application(service, ServerOptions(keys=ApiKeys(["right"])))
    assert answer_of(application, path, headers, query=query) == (403, 0)
    service.close()


@pytest.mark.long
def test_a_file_without_a_key_in_its_head_is_received_up_to_the_limit_of_a_text() -> None:
    options = ServerOptions(Limits(max_body_bytes=2000), ApiKeys(["right"]))
    with served(small_runs(TRANSLATOR), options) as (client, _):
        answer = sent(client, b"uno\n" * 1000)
        assert answer.status_code == 413
        assert "its API key in the header Authorization" in answer.json()["error"]
        right = sent(client, b"uno\n" * 1000, headers={"Authorization": "Bearer right"})
        assert right.status_code == 200
        form = {**FORM, "api_key": "right"}
        small = client.post("/translate_file", data=form, files={"file": ("a.txt", b"uno\n")})
        assert small.status_code == 200


def test_a_large_body_counts_as_a_request_while_it_is_received() -> None:
    service = TranslationService(Limits(max_requests=2))
    application = build_application(service, ServerOptions())
    one, two = service.enter(), service.enter()
    status, num_received = answer_of(application, "/translate", [])
    assert (status, num_received) == (429, 7)  # small bodies do not count
    service.leave(one)
    assert answer_of(application, "/translate", [])[0] == 413
    service.leave(two)
    assert (service.num_active, service.num_receiving) == (0, 0)
    service.close()


def test_the_reading_of_a_file_ends_when_its_client_leaves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    num_lines, num_read = 200_000, 0
    counted = ReadingWatch.counted

    def slowly(watch: ReadingWatch, segment: Any) -> Any:
        nonlocal num_read
        num_read += 1
        time.sleep(0.001)
        return counted(watch, segment)

    monkeypatch.setattr(ReadingWatch, "counted", slowly)
    limits = Limits(max_segments=10**9, max_file_characters=10**9)
    with listening(small_runs(TRANSLATOR), ServerOptions(limits)) as address:
        host = urlsplit(address)
        connection = http.client.HTTPConnection(str(host.hostname), host.port, timeout=LONG)
        request = httpx.Request(
            "POST", f"{address}/translate_file", data=FORM, files={"file": ("a.txt", b"x\n" * num_lines)}
        )
        connection.request("POST", "/translate_file", request.read(), dict(request.headers))
        wait_until(lambda: num_read > 50)
        assert httpx.get(f"{address}/health", trust_env=False).status_code == 200
        connection.close()

        def is_idle() -> bool:
            metrics = httpx.get(f"{address}/metrics", trust_env=False).text
            return "\ntfm_requests_active 0\n" in metrics

        wait_until(is_idle)
        stopped_at = num_read
        time.sleep(0.1)
        assert num_read == stopped_at < num_lines


def test_a_waiting_file_leaves_the_queue_when_its_client_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = Limits(max_files=1)
    with (
        held_reading(monkeypatch) as (begun, released),
        listening(small_runs(TRANSLATOR), ServerOptions(limits)) as address,
    ):
        host = urlsplit(address)
        connections = []
        for number in range(2):
            connection = http.client.HTTPConnection(str(host.hostname), host.port, timeout=LONG)
            request = httpx.Request(
                "POST", f"{address}/translate_file", data=FORM, files={"file": (f"{number}.txt", LINES[0].encode())}
            )
            connection.request("POST", "/translate_file", request.read(), dict(request.headers))
            connections.append(connection)
            wait_until(lambda: len(begun) == 1)

        def num_active() -> str:
            metrics = httpx.get(f"{address}/metrics", trust_env=False).text
            return metrics.partition("\ntfm_requests_active ")[2].partition("\n")[0]

        wait_until(lambda: num_active() == "2")
        connections[1].close()
        wait_until(lambda: num_active() == "1")
        released.set()
        with connections[0].getresponse() as answer:
            assert answer.status == 200
        connections[0].close()
        assert begun == ["0.txt"]


@pytest.mark.long
def test_work_that_fails_after_its_server_has_ended_it_is_not_complained_about() -> None:
    service = TranslationService(Limits())
    begun, released = threading.Event(), threading.Event()
    complaints: list[Any] = []

    def work(job: Job) -> None:
        begun.set()
        assert released.wait(LONG)
        job.check()

    async def server() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context["message"]))
        working = asyncio.create_task(service.run(None, Job(LONG), work))
        assert await asyncio.to_thread(begun.wait, LONG)
        working.cancel()
        await asyncio.wait([working])
        released.set()
        await asyncio.to_thread(service._threads.shutdown)
        await asyncio.sleep(0)
        del working
        gc.collect()

    asyncio.run(server())
    assert complaints == []
