"""The routes of the page: `/` with a content security policy that allows only its own code, and `/views.js`."""

import base64
import hashlib
import re
from functools import cache
from importlib import resources
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from transformer_cli.extensions.lessons.explaining.standalone_page import views_script


class PageFile(NamedTuple):
    """A file of the page, as it is sent."""

    body: bytes
    headers: dict[str, str]


def page_routes() -> list[Route]:
    """The routes of the page."""
    return [
        Route("/", _page, methods=["GET"]),
        Route("/views.js", _views, methods=["GET"]),
    ]


async def _page(request: Request) -> Response:
    return _answer(request, page_file())


async def _views(request: Request) -> Response:
    return _answer(request, views_file())


def _answer(request: Request, file: PageFile) -> Response:
    """The file, or 304 if the browser has it."""
    if request.headers.get("if-none-match") == file.headers["etag"]:
        return Response(status_code=304, headers=file.headers)
    return Response(file.body, headers=file.headers)


@cache
def page_file() -> PageFile:
    """The page and its headers; read once."""
    text = resources.files(__package__).joinpath("index.html").read_text(encoding="utf-8")
    headers = {"content-security-policy": content_security_policy(text)}
    return _file(text, "text/html; charset=utf-8", headers)


@cache
def views_file() -> PageFile:
    """The program that draws explanations; the page loads it when somebody wants to see inside."""
    return _file(views_script(), "text/javascript; charset=utf-8", {})


def content_security_policy(page: str) -> str:
    """A policy that allows requests to this server only, and of all inline code only that of the page.

    Args:
        page: HTML; its style and script elements without attributes are allowed by their hashes.
    """
    styles, scripts = (_hashes(page, element) for element in ("style", "script"))
    return "; ".join(
        [
            "default-src 'none'",
            "connect-src 'self'",
            "img-src 'self' data:",
            f"style-src 'self' {styles}",
            f"script-src 'self' {scripts}",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
    )


def _hashes(page: str, element: str) -> str:
    contents = re.findall(f"<{element}>(.*?)</{element}>", page, flags=re.DOTALL)
    digests = [hashlib.sha256(content.encode()).digest() for content in contents]
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


def _file(text: str, media_type: str, headers: dict[str, str]) -> PageFile:
    body = text.encode()
    tag = hashlib.sha256(body).hexdigest()[:32]
    own = {"content-type": media_type, "cache-control": "no-cache", "etag": f'"{tag}"'}
    return PageFile(body, {**own, **headers})
