"""The description of the interfaces names all of them, and its page needs no other server."""

import re
from collections.abc import Iterator

import pytest
from starlette.routing import Route
from starlette.testclient import TestClient

from transformer_cli.extensions.serving.application import (
    RequestGuard,
    ServerOptions,
    build_application,
)
from transformer_cli.extensions.serving.description import ENDPOINTS, Endpoint
from transformer_cli.extensions.serving.limits import Limits
from transformer_cli.extensions.serving.service import TranslationService

from .served_translators import LINES, served, small_runs, small_translator

OF_PAGES = {"/", "/views.js", "/spec", "/docs"}


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with served(small_runs(small_translator())) as (client, _):
        yield client


def test_every_route_is_described_and_nothing_else() -> None:
    service = TranslationService(Limits())
    application = build_application(service, ServerOptions())
    service.close()
    assert isinstance(application, RequestGuard)
    routes = application._app.routes  # type: ignore[attr-defined]
    assert all(isinstance(route, Route) for route in routes)
    assert {route.path for route in routes} - OF_PAGES == {each.path for each in ENDPOINTS}
    taken = {(route.path, method.lower()) for route in routes for method in route.methods}
    described = {(each.path, each.method) for each in ENDPOINTS}
    assert len(described) == len(ENDPOINTS)
    assert described <= taken


def test_the_specification_says_what_a_request_needs(client: TestClient) -> None:
    spec = client.get("/spec").json()
    assert spec["swagger"] == "2.0"
    parameters = spec["paths"]["/translate"]["post"]["parameters"]
    required = {each["name"] for each in parameters if each["required"]}
    assert required == {"q", "source", "target"}
    given = {"q": LINES[0], "source": "en", "target": "it"}
    assert client.post("/translate", data=given).status_code == 200
    for name in required:
        others = {key: value for key, value in given.items() if key != name}
        assert client.post("/translate", data=others).status_code == 400


NEEDING = [each for each in ENDPOINTS if each.method == "post" and any(field.is_required for field in each.fields)]


@pytest.mark.parametrize("endpoint", NEEDING, ids=lambda each: each.path)
def test_a_required_parameter_that_is_missing_is_named(client: TestClient, endpoint: Endpoint) -> None:
    [first, *_] = [field.name for field in endpoint.fields if field.is_required]
    answer = client.post(endpoint.path, json={})
    assert answer.status_code == 400
    assert first in answer.text


def test_the_page_of_the_description_needs_no_other_address_and_no_program(
    client: TestClient,
) -> None:
    answer = client.get("/docs")
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "script" not in answer.text
    assert "://" not in answer.text
    assert set(re.findall(r'(?:href|src)="([^"]*)"', answer.text)) == {"/", "/spec"}
    for endpoint in ENDPOINTS:
        assert f"{endpoint.method.upper()} {endpoint.path}</code>" in answer.text


def test_the_specification_has_the_title_that_clients_look_for(client: TestClient) -> None:
    assert client.get("/spec").json()["info"]["title"] == "LibreTranslate"
