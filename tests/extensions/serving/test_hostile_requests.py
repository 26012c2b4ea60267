"""Requests that are too large, damaged or hostile: each gets an error with a code, and the server goes on (I1, I5, I6)."""

import asyncio
import errno
import functools
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from transformer_cli.extensions.serving.application import ServerOptions
from transformer_cli.extensions.serving.limits import Limits
from transformer_cli.extensions.serving.service import TranslationService

from .served_translators import LINES, served, small_runs, small_translator

TRANSLATOR = small_translator()
JSON = {"Content-Type": "application/json"}
GOOD = {"q": LINES[0], "source": "en", "target": "it"}
PATHS = ("/translate", "/detect", "/translate_stream", "/v2/translate", "/explain")


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    options = ServerOptions(limits=Limits(max_body_bytes=100_000))
    with served(small_runs(TRANSLATOR), options) as (client, _):
        yield client


@pytest.fixture(autouse=True)
def _the_server_goes_on(client: TestClient) -> Iterator[None]:
    """After each request the next one is answered."""
    yield
    assert client.post("/translate", json=GOOD).json() == {"translatedText": _expected()}


@functools.cache
def _expected() -> str:
    [translation] = TRANSLATOR.translate(LINES[:1])
    return translation.text


@pytest.mark.long
@pytest.mark.parametrize("path", PATHS)
def test_a_body_that_announces_more_than_the_limit_is_refused_unread(client: TestClient, path: str) -> None:
    """I1."""
    answer = client.post(path, content=b" " * 100_001, headers=JSON)
    assert answer.status_code == 413


@pytest.mark.long
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("content_type", ["application/json", "application/x-www-form-urlencoded", "text/plain"])
def test_a_body_without_a_length_is_read_up_to_the_limit(client: TestClient, path: str, content_type: str) -> None:
    """I1: chunked, without an end."""
    num_read = 0
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        nonlocal num_read
        num_read += 1
        return {"type": "http.request", "body": b" " * 1000, "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(b"content-type", content_type.encode())],
    }
    asyncio.run(client.app(scope, receive, send))  # type: ignore[arg-type]
    assert sent[0]["status"] == 413
    assert num_read == 101


BAD_BODIES = {
    "nothing": b"",
    "half an object": b'{"q": "a"',
    "a list": b'["a"]',
    "null": b"null",
    "NaN": b'{"q": NaN, "source": "en", "target": "it"}',
    "deep list": b"[" * 50_000,
    "deep object": b'{"q":' * 16_000,
    "deep q": b'{"source": "en", "target": "it", "q": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    "lone surrogate": b'{"q": "\\ud800", "source": "en", "target": "it"}',
    "lone surrogate in a list": b'{"q": ["a", "\\udfff"], "source": "en", "target": "it"}',
    "not UTF-8": b'{"q": "\xff", "source": "en", "target": "it"}',
    "UTF-16": '{"q": "a"}'.encode("utf-16-be")[:-1],
    "booleans": b'{"q": true, "source": false, "target": true}',
    "object as q": b'{"q": {"a": 1}, "source": "en", "target": "it"}',
}


BAD_VALUES = {
    "infinity": b'{"q": "a", "alternatives": Infinity, "source": "en", "target": "it"}',
    "huge number": b'{"q": "a", "alternatives": 1e400, "source": "en", "target": "it"}',
    "long number": b'{"q": "a", "alternatives": ' + b"9" * 5000 + b', "source": "en", "target": "it"}',
    "lone surrogate as language": b'{"q": "a", "source": "\\ud800", "target": "it"}',
    "unknown language": b'{"q": "a", "source": "xx", "target": "yy"}',
    "ten thousand": b'{"q": "a", "alternatives": 10000, "beam": 10000, "source": "en", "target": "it"}',
}


@pytest.mark.long
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("case", BAD_BODIES)
def test_a_bad_body_is_an_error_of_the_client(client: TestClient, path: str, case: str) -> None:
    """I5."""
    answer = client.post(path, content=BAD_BODIES[case], headers=JSON)
    assert 400 <= answer.status_code < 500, answer.text
    assert len(answer.text) < 300


@pytest.mark.parametrize("case", BAD_VALUES)
def test_a_bad_value_is_an_error_of_the_client(client: TestClient, case: str) -> None:
    """I5."""
    answer = client.post("/translate", content=BAD_VALUES[case], headers=JSON)
    assert 400 <= answer.status_code < 500, answer.text
    assert set(answer.json()) == {"error"}


@pytest.mark.parametrize(
    "form",
    [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=x",
        "application/x-www-form-urlencoded; charset=utf-16",
    ],
)
def test_a_damaged_form_is_an_error_of_the_client(client: TestClient, form: str) -> None:
    for body in (b"", b"--x\r\n\r\n", b"--x\r\nContent-Disposition: form-data\r\n\r\na\r\n", b"\xff=\xfe&q"):
        answer = client.post("/translate", content=body, headers={"Content-Type": form})
        assert 400 <= answer.status_code < 500


def test_a_form_with_too_many_fields_is_refused(client: TestClient) -> None:
    body = "&".join(f"f{number}=1" for number in range(5000))
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert client.post("/translate", content=body, headers=headers).status_code == 400


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.long
@settings(max_examples=150)
@given(
    st.sampled_from(PATHS),
    st.dictionaries(
        st.sampled_from(
            [
                "q",
                "text",
                "source",
                "target",
                "source_lang",
                "target_lang",
                "alternatives",
                "format",
                "beam",
                "api_key",
                "split_sentences",
            ]
        ),
        _VALUES | st.sampled_from(["en", "it", "auto", "EN", "1"]),
    ),
)
def test_no_json_breaks_the_server(client: TestClient, path: str, values: dict[str, Any]) -> None:
    """I5, as a fuzz test."""
    answer = client.post(path, content=json.dumps(values), headers=JSON)
    assert answer.status_code < 500, (values, answer.text)


@pytest.mark.long
@settings(max_examples=100)
@given(
    st.sampled_from(PATHS),
    st.binary(max_size=300),
    st.sampled_from(
        ["application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a", "", "x/y"]
    ),
)
def test_no_bytes_break_the_server(client: TestClient, path: str, body: bytes, content_type: str) -> None:
    """I5, as a fuzz test."""
    answer = client.post(path, content=body, headers={"Content-Type": content_type})
    assert answer.status_code < 500


class Panic(BaseException):
    """What a panic in Rust becomes."""


@pytest.mark.long
@pytest.mark.parametrize("error", [ValueError("a secret text"), Panic("a secret text"), MemoryError()])
def test_an_error_in_one_request_is_an_error_of_this_request_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    """I6."""
    translator = small_translator()
    compute = type(translator.engine).translate
    bad = translator.pipeline.source_ids(LINES[7])

    def failing(engine: Any, requests: Any, options: Any) -> Any:
        if any(request.ids == bad for request in requests):
            raise error
        return compute(engine, requests, options)

    monkeypatch.setattr(type(translator.engine), "translate", failing)
    with caplog.at_level(logging.INFO), served(small_runs(translator)) as (client, service):
        answer = client.post("/translate", json={**GOOD, "q": LINES[7]})
        assert answer.status_code == 500
        assert "secret" not in answer.text
        good = client.post("/translate", json={**GOOD, "q": LINES[8:10]})
        assert good.status_code == 200
        assert service.num_active == 0
    assert "secret" not in caplog.text


def test_neither_texts_nor_keys_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with served(small_runs(TRANSLATOR)) as (client, _):
        values = {"q": "secret words", "source": "en", "target": "it", "api_key": "secret key"}
        for sent in ({"params": values}, {"json": values}, {"data": values}):
            client.post("/translate", **sent)
        client.get("/MTRestService/TranslateJson", params={"input": "secret", "srcLangCode": "en", "trgLangCode": "it"})
    mine = [record.getMessage() for record in caplog.records if record.name.startswith(("transformer_cli", "uvicorn"))]
    assert mine, caplog.text
    assert "secret" not in " ".join(mine)


def test_responses_forbid_sniffing(client: TestClient) -> None:
    for path in ("/", "/languages", "/nothing"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"


def test_every_answer_has_the_headers_that_protect_browsers(client: TestClient) -> None:
    expected = {
        "permissions-policy": "camera=(), geolocation=(), microphone=()",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "referrer-policy": "no-referrer",
    }
    answers = [
        client.get("/"),
        client.get("/nothing"),
        client.get("/translate"),
        client.post("/translate", json=GOOD),
        client.post("/translate", content=b" " * 200_000, headers=JSON),
        client.post("/translate", json=GOOD, headers=SITES),
    ]
    assert [answer.status_code for answer in answers] == [200, 404, 405, 200, 413, 403]
    for answer in answers:
        assert {name: answer.headers.get(name) for name in expected} == expected
        assert "server" not in answer.headers


def test_a_server_that_still_loads_lives_but_is_not_ready() -> None:
    from transformer_cli.extensions.serving.application import build_application

    options = ServerOptions()
    service = TranslationService(options.limits)
    with TestClient(build_application(service, options)) as client:
        assert client.get("/health").json() == {"status": "ok"}
        assert client.get("/ready").status_code == 503
        assert client.get("/metrics").status_code == 200
        for answer in (client.post("/translate", json=GOOD), client.get("/languages")):
            assert answer.status_code == 503
            assert answer.headers["retry-after"] == "5"
        service.start(small_runs(TRANSLATOR))
        assert client.get("/ready").json() == {"status": "ready"}
        assert client.post("/translate", json=GOOD).status_code == 200
    service.close()


@pytest.mark.long
@pytest.mark.parametrize(
    ("error", "status"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 507),
        (OSError(errno.EIO, "a secret text"), 500),
        (RuntimeError("a secret text"), 500),
    ],
)
@pytest.mark.parametrize("path", ["/translate_file", "/translate", "/v2/translate"])
def test_an_error_that_nobody_expected_is_answered_as_every_other_one(
    monkeypatch: pytest.MonkeyPatch, path: str, error: Exception, status: int
) -> None:
    async def failing(*arguments: Any, **options: Any) -> Any:
        raise error
        yield b""

    monkeypatch.setattr("starlette.requests.Request.stream", failing)
    with served(small_runs(TRANSLATOR)) as (client, _):
        answer = client.post(path, data=GOOD, files={"file": ("a.txt", b"uno")})
    assert answer.status_code == status
    assert set(answer.json()) == {"message" if path.startswith("/v2") else "error"}
    assert "secret" not in answer.text


def test_refusals_can_be_read_by_pages_of_other_origins_if_these_may_ask() -> None:
    options = ServerOptions(Limits(max_body_bytes=100), has_cors=True)
    with served(small_runs(TRANSLATOR), options) as (client, _):
        headers = {"Origin": "https://example.com"}
        answer = client.post("/translate", content=b" " * 200, headers=headers)
    assert answer.status_code == 413
    assert answer.headers["access-control-allow-origin"] == "*"


def test_nobody_keeps_answers_with_texts(client: TestClient) -> None:
    for answer in (
        client.post("/translate", json=GOOD),
        client.get(
            "/MTRestService/TranslateJson", params={"input": LINES[0], "srcLangCode": "en", "trgLangCode": "it"}
        ),
    ):
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    assert client.get("/").headers["cache-control"] == "no-cache"


SITES = {"Sec-Fetch-Site": "cross-site", "Origin": "https://example.com"}


def test_pages_of_other_sites_may_not_ask_unless_the_server_says_so(client: TestClient) -> None:
    assert client.post("/translate", json=GOOD, headers=SITES).status_code == 403
    link = {**SITES, "Sec-Fetch-Mode": "navigate"}
    assert client.get("/", headers=link).status_code == 200
    assert client.post("/translate", data=GOOD, headers=link).status_code == 403
    extension = {**SITES, "Origin": "moz-extension://1"}
    assert client.post("/translate", json=GOOD, headers=extension).status_code == 200
    with served(small_runs(TRANSLATOR), ServerOptions(has_cors=True)) as (open_client, _):
        assert open_client.post("/translate", json=GOOD, headers=SITES).status_code == 200


@pytest.mark.parametrize(
    ("origin", "host", "further", "status"),
    [
        ("http://evil.example", "mt.lan:5000", {}, 403),
        ("null", "mt.lan:5000", {}, 403),
        ("http://mt.lan.evil.example", "mt.lan", {}, 403),
        ("http://mt.lan:5000", "mt.lan:5000", {}, 200),
        ("http://mt.lan", "MT.lan:5000", {}, 200),
        ("http://[2001:db8::1]:5000", "[2001:db8::1]:5000", {}, 200),
        ("http://mt.lan", "upstream:5000", {"X-Forwarded-Host": "mt.lan, 10.0.0.1"}, 200),
        ("http://mt.lan", "127.0.0.1:5000", {}, 200),  # a proxy: to its own machine a browser says the site
        ("https://mt.lan", "upstream:5000", {"Sec-Fetch-Site": "same-origin"}, 200),
        ("moz-extension://1", "mt.lan:5000", {}, 200),
    ],
)
def test_without_the_site_of_a_browser_the_origin_must_be_the_host_that_was_asked(
    origin: str, host: str, further: dict[str, str], status: int, client: TestClient
) -> None:
    """To a machine in the network, a browser sends no Sec-Fetch-Site over plain http."""
    headers = {"Origin": origin, "Host": host, **further}
    assert client.post("/translate", json=GOOD, headers=headers).status_code == status


def test_only_allowed_hosts_are_answered() -> None:
    options = ServerOptions(allowed_hosts=("mt.example.org", "[::1]"))
    with served(small_runs(TRANSLATOR), options) as (client, _):
        for host, status in (
            ("mt.example.org", 200),
            ("MT.example.org:5000", 200),
            ("[::1]:5000", 200),
            ("attacker.example", 400),
            ("mt.example.org.attacker.example", 400),
            ("", 400),
        ):
            assert client.get("/languages", headers={"Host": host}).status_code == status, host
