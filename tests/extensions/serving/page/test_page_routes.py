"""How the page is sent: its security policy allows its own code and nothing else, and browsers keep it."""

import base64
import hashlib
import re

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from transformer_cli.extensions.serving.page import page_file, page_routes, served_page_policy


@pytest.fixture
def client() -> TestClient:
    return TestClient(Starlette(routes=page_routes()))


def test_the_page_is_small_and_names_no_other_address() -> None:
    body = page_file().body
    assert len(body) < 100_000
    assert b"http:" not in body
    assert b"https:" not in body
    assert b'"//' not in body


def test_all_inline_code_of_the_page_is_allowed_by_its_hash(client: TestClient) -> None:
    sent = client.get("/")
    policy = sent.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for element in ("style", "script"):
        [content] = re.findall(f"<{element}[^>]*>(.*?)</{element}>", sent.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{element}-src 'self' 'sha256-{digest}'" in policy
    # No policy with hashes allows these.
    assert re.findall(r"<[^>]+ (?:on\w+|style)=", sent.text.partition("<script>")[0]) == []


def test_code_that_is_not_of_the_page_is_not_allowed() -> None:
    policy = served_page_policy("<script>one()</script>")
    other = base64.b64encode(hashlib.sha256(b"two()").digest()).decode()
    assert other not in policy
    assert policy != served_page_policy("<script>two()</script>")


@pytest.mark.parametrize("path", ["/", "/views.js"])
def test_a_browser_that_has_the_file_gets_no_second_copy(client: TestClient, path: str) -> None:
    first = client.get(path)
    again = client.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
    assert client.get(path, headers={"If-None-Match": '"other"'}).content == first.content
