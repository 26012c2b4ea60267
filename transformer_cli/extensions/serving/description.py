"""What the endpoints of a server take and answer, as `endpoints.yaml` says it: `/spec` and `/docs` show it."""

import base64
import hashlib
import re
from collections.abc import Iterator
from functools import cache
from html import escape
from importlib import resources
from itertools import groupby
from typing import Any, NamedTuple

import yaml
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Route

from transformer_cli import __version__


class Field(NamedTuple):
    """A parameter of an endpoint."""

    name: str
    meaning: str
    kind: str = "string"
    """As in Swagger: string, integer, boolean, array or file."""
    is_required: bool = False


class Endpoint(NamedTuple):
    """A path and a method of the server."""

    path: str
    method: str
    meaning: str
    answer: str
    """What a request gets that succeeds."""
    fields: tuple[Field, ...] = ()
    group: str = ""


_FIELD = re.compile(r"(\w+)(!?)(?: \((\w+)\))?")


def _endpoints() -> Iterator[Endpoint]:
    """The endpoints of endpoints.yaml, in its order."""
    text = resources.files(__package__).joinpath("endpoints.yaml").read_text(encoding="utf-8")
    for group, endpoints in yaml.safe_load(text).items():
        for place, given in endpoints.items():
            method, path = place.split()
            fields = tuple(_field(*each) for each in given.get("takes", {}).items())
            yield Endpoint(path, method.lower(), given["does"], given["answers"], fields, group)


def _field(name: str, meaning: str) -> Field:
    found = _FIELD.fullmatch(name)
    assert found, name
    return Field(found[1], meaning, found[3] or "string", is_required=bool(found[2]))


ENDPOINTS = tuple(_endpoints())
"""All endpoints, except the page itself and these descriptions."""


_TITLE = "tfm serve"
# Clients such as Dialect look at the title of the description, to see whether a server speaks this interface.
_TITLE_OF_SPECIFICATION = "LibreTranslate"
_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}"
    "code{font-size:.95em}h3{margin:1.5rem 0 .2rem}p{margin:.2rem 0}"
    "table{border-collapse:collapse;margin:.4rem 0;width:100%}"
    "th,td{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0;border-bottom:1px solid #8886}"
)


def description_routes() -> list[Route]:
    """The routes of the description."""
    return [Route("/spec", _spec, methods=["GET"]), Route("/docs", _docs, methods=["GET"])]


async def _spec(request: Request) -> JSONResponse:
    return JSONResponse(swagger())


async def _docs(request: Request) -> HTMLResponse:
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; frame-ancestors 'none'"
    return HTMLResponse(docs_page(), headers={"content-security-policy": policy})


@cache
def swagger() -> dict[str, Any]:
    """The description in the form of Swagger 2.0."""
    paths: dict[str, dict[str, Any]] = {}
    for each in ENDPOINTS:
        paths.setdefault(each.path, {})[each.method] = _operation(each)
    return {
        "swagger": "2.0",
        "info": {
            "title": _TITLE_OF_SPECIFICATION,
            "description": f"{_TITLE}: the interface of LibreTranslate, and others",
            "version": __version__,
        },
        "basePath": "/",
        "paths": paths,
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    place = "formData" if endpoint.method == "post" else "query"
    path_parameters = [
        {"name": part[1:-1], "in": "path", "required": True, "type": "string"}
        for part in endpoint.path.split("/")
        if part.startswith("{")
    ]
    has_file = any(field.kind == "file" for field in endpoint.fields)
    operation: dict[str, Any] = {
        "tags": [endpoint.group],
        "summary": endpoint.meaning,
        "parameters": [*path_parameters, *(_parameter(field, place) for field in endpoint.fields)],
        "responses": {
            "200": {"description": endpoint.answer},
            "400": {"description": "The request is wrong"},
            "403": {"description": "The key is missing or wrong"},
            "413": {"description": "The request or its file is too large"},
            "429": {"description": "Too many requests are waiting"},
        },
    }
    if place == "formData":
        forms = ["application/x-www-form-urlencoded", "application/json"]
        operation["consumes"] = ["multipart/form-data"] if has_file else forms
    return operation


def _parameter(field: Field, place: str) -> dict[str, Any]:
    parameter: dict[str, Any] = {
        "name": field.name,
        "in": place,
        "required": field.is_required,
        "type": field.kind,
        "description": field.meaning,
    }
    if field.kind == "array":
        parameter |= {"items": {"type": "string"}, "collectionFormat": "multi"}
    return parameter


@cache
def docs_page() -> str:
    """The description as a page of HTML."""
    groups = [
        f"<h2>{escape(group)}</h2>" + "".join(map(_section, group_endpoints))
        for group, group_endpoints in groupby(ENDPOINTS, lambda each: each.group)
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{_TITLE}: interfaces</title><style>{_STYLE}</style></head><body>"
        f"<h1>{_TITLE}: interfaces</h1><p>Parameters come as JSON, as a form or in the query string. "
        'For programs: <a href="/spec">/spec</a> (Swagger 2.0). <a href="/">The page</a></p>'
        f"{''.join(groups)}</body></html>"
    )


def _section(endpoint: Endpoint) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(field.name)}</code></td><td>{'yes' if field.is_required else 'no'}</td>"
        f"<td>{escape(field.meaning)}</td></tr>"
        for field in endpoint.fields
    )
    head = '<tr><th scope="col">Parameter</th><th scope="col">Required</th><th scope="col">Meaning</th></tr>'
    table = f"<table>{head}{rows}</table>" if rows else ""
    return (
        f"<h3><code>{endpoint.method.upper()} {escape(endpoint.path)}</code></h3>"
        f"<p>{escape(endpoint.meaning)}</p>{table}<p>Answer: {escape(endpoint.answer)}</p>"
    )
