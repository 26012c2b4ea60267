"""The application of a server: all interfaces over one service, and the guard around them, as an ASGI application."""

import errno
import logging
import re
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from transformer_cli.extensions.serving.deepl import DeepLApi, Glossaries
from transformer_cli.extensions.serving.description import description_routes
from transformer_cli.extensions.serving.files import FilesApi, FileTranslations
from transformer_cli.extensions.serving.libretranslate import LibreTranslateApi
from transformer_cli.extensions.serving.limits import Limits, RefusedRequest, bad_request, too_large
from transformer_cli.extensions.serving.metrics import ServerMetrics, state_routes
from transformer_cli.extensions.serving.opus_cat import opus_cat_routes
from transformer_cli.extensions.serving.page import (
    choice_routes,
    explain_routes,
    page_routes,
    stream_routes,
)
from transformer_cli.extensions.serving.request_values import ApiKeys, key_in_header
from transformer_cli.extensions.serving.service import TranslationService
from transformer_cli.process.messages import on_one_line

logger = logging.getLogger(__name__)


SECURITY_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
# No browser and no proxy keeps texts of people.
_NO_STORE = (b"cache-control", b"no-store")
_OWN_MACHINE = frozenset({"localhost", "127.0.0.1", "[::1]"})
_PATHS_OF_FILES = ("/translate_file", "/v2/document")
# Of such a body, many at the same time need little memory, also those that never end.
_SMALL_BODY_BYTES = 64 << 10
Observe = Callable[[str, int, float], None]
"""Takes the path, the status code and the seconds of a request."""


class RequestGuard:
    """ASGI middleware: no request can send more than the limit, and none gets a traceback."""

    def __init__(
        self,
        app: ASGIApp,
        service: TranslationService,
        keys: ApiKeys,
        observe: Observe,
        *,
        allowed_hosts: frozenset[str] = frozenset(),
        allows_other_sites: bool = False,
    ) -> None:
        """A guard around an application.

        Args:
            allowed_hosts: the names in the header Host that are answered; nothing: all.
            allows_other_sites: whether the pages of other sites may send requests from a browser.
        """
        self._allowed_hosts = allowed_hosts
        self._allows_other_sites = allows_other_sites
        self._app = app
        self._service = service
        self._keys = keys
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; what is not HTTP is passed on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if "//" in scope["path"]:
            # Of a client whose address of the server ends with a slash: http://127.0.0.1:5000//translate, or .../v2//usage
            scope = {**scope, "path": re.sub("/{2,}", "/", scope["path"])}
        started_at = time.perf_counter()
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = list(message.get("headers", []))
                has_caching = any(name.lower() == b"cache-control" for name, _ in given)
                more = SECURITY_HEADERS if has_caching else [*SECURITY_HEADERS, _NO_STORE]
                message = {**message, "headers": [*given, *more]}
            await send(message)

        try:
            await self._answer(scope, receive, send_with_headers, lambda: status != 0)
        finally:
            seconds = time.perf_counter() - started_at
            self._observe(scope["path"], status, seconds)
            # The query string may hold text and keys.
            shown = on_one_line(scope["path"], 100)
            logger.debug("%s %s: %d, %.3f s", scope["method"], shown, status, seconds)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, is_started: Callable[[], bool]) -> None:
        path = scope["path"]
        try:
            limits = self._service.limits
            has_file = path in _PATHS_OF_FILES
            most = limits.max_file_bytes if has_file else limits.max_body_bytes
            if self._keys.are_required and not await self._has_key(scope) and most > limits.max_body_bytes:
                # The key may be a field of the form, which is known only when the form is received.
                most = limits.max_body_bytes
                advice = "; a larger file needs its API key in the header Authorization"
            else:
                advice = ""
            self._check_origin(scope)
            check_length_is_clear(scope)
            check_content_length(scope, most, advice)
            with ExitStack() as stack:
                if has_file and scope["method"] == "POST":
                    stack.enter_context(self._service.receiving_file())
                body = ReceivedBody(receive, self._service, most, advice)
                stack.callback(body.close)
                await self._app(scope, body.receive, send)
        except RefusedRequest as refusal:
            if not is_started():
                await error_response(path, refusal)(scope, receive, send)
        except ClientDisconnect:
            return
        except Exception as error:
            # The message of an unknown error may contain text of the client.
            shown = on_one_line(path, 100)
            logger.error("%s: internal error: %s", shown, type(error).__name__)
            logger.debug("the error", exc_info=error)
            if not is_started():
                await error_response(path, refusal_of_error(error))(scope, receive, send)

    def _check_origin(self, scope: Scope) -> None:
        """Refuse a request for another host, and one that a page of another site sends from a browser.

        Raises:
            RefusedRequest: it is such a request.
        """
        headers = {name: value.decode("latin-1").lower() for name, value in scope["headers"]}
        if self._allowed_hosts:
            host = _without_port(headers.get(b"host", ""))
            if host not in self._allowed_hosts:
                raise bad_request("Invalid request: this server does not answer for this host")
        # A link to the page, such as /?q=..., and extensions of browsers are no such requests.
        is_link = scope["method"] == "GET" and headers.get(b"sec-fetch-mode") == "navigate"
        is_extension = "-extension://" in headers.get(b"origin", "")
        is_of_other_site = headers.get(b"sec-fetch-site", _site_of_origin(headers)) == "cross-site"
        if is_of_other_site and not (self._allows_other_sites or is_link or is_extension):
            raise RefusedRequest(403, "Pages of other sites may not use this server (see --cors)")

    async def _has_key(self, scope: Scope) -> bool:
        """Whether the head of a request has a valid key.

        Raises:
            RefusedRequest: it has a wrong one, so that the body need not be received.
        """
        headers = dict(scope["headers"])
        query = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=None)
        in_query = query.get("api_key") or query.get("auth_key") or query.get("tokenCode")
        key = key_in_header(headers.get(b"authorization", b"").decode("latin-1"))
        key = key or (in_query[0] if in_query else "")
        if not key:
            return False
        refusal = RefusedRequest(403, "Invalid API key", headers={"Connection": "close"})
        await self._keys.check(HTTPConnection(scope), key, refusal)
        return True


def error_response(path: str, refusal: RefusedRequest) -> JSONResponse:
    """An error in the form of the interface to which the path belongs."""
    name = "message" if path.startswith(("/v2/", "/v3/")) else "error"
    return JSONResponse({name: refusal.message}, refusal.status, headers=refusal.headers)


def _site_of_origin(headers: Mapping[bytes, str]) -> str:
    """What Sec-Fetch-Site would say, which browsers leave out where the address is plain http and not of their own machine.

    A proxy that changes Host gives the name that the browser asked for in X-Forwarded-Host.
    """
    origin, host = headers.get(b"origin", ""), _without_port(headers.get(b"host", ""))
    if not origin or host in _OWN_MACHINE:
        return ""
    asked = [host, *(_without_port(name.strip()) for name in headers.get(b"x-forwarded-host", "").split(","))]
    return "" if _without_port(origin.partition("://")[2]) in filter(None, asked) else "cross-site"


def _without_port(host: str) -> str:
    """The name or address in a header Host; an address of IPv6 stands in brackets."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


def refusal_of_error(error: Exception) -> RefusedRequest:
    """What a client gets for an error that nobody expected."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return RefusedRequest(507, "The server has no space left for this request")
    return RefusedRequest(500, "Internal server error")


def check_length_is_clear(scope: Scope) -> None:
    """Refuse a request whose head says its length in two ways: a proxy and this server could read two different ones.

    Raises:
        RefusedRequest: it has both headers; the connection ends (RFC 9112, section 6.1).
    """
    names = {name for name, _ in scope["headers"]}
    if {b"transfer-encoding", b"content-length"} <= names:
        raise RefusedRequest(
            400,
            "Invalid request: it has both Transfer-Encoding and Content-Length",
            headers={"Connection": "close"},
        )


def check_content_length(scope: Scope, most: int, advice: str = "") -> None:
    """Refuse a body that announces more than `most` bytes, before it is read.

    Args:
        advice: what to do, for the message.

    Raises:
        RefusedRequest: it is too large.
    """
    given = dict(scope["headers"]).get(b"content-length", b"")
    if given.isdigit() and int(given[:20]) > most:
        raise _too_large(int(given[:20]), most, advice)


class ReceivedBody:
    """The body of a request: refused when it becomes too large, and counted while it is received if it is large."""

    def __init__(self, receive: Receive, service: TranslationService, most: int, advice: str) -> None:
        self._receive = receive
        self._service = service
        self._most, self._advice = most, advice
        self._num_bytes = 0
        self._is_counted = False

    async def receive(self) -> Message:
        """The next message.

        Raises:
            RefusedRequest: the body is too large, or too many requests are translated, wait or are received.
        """
        message = await self._receive()
        self._num_bytes += len(message.get("body", b""))
        if self._num_bytes > self._most:
            raise _too_large(self._num_bytes, self._most, self._advice)
        if not message.get("more_body", False):
            self.close()
        elif self._num_bytes > _SMALL_BODY_BYTES and not self._is_counted:
            self._service.begin_large_body()
            self._is_counted = True
        return message

    def close(self) -> None:
        """No more of it will be received."""
        if self._is_counted:
            self._is_counted = False
            self._service.end_large_body()


def _too_large(found: int, most: int, advice: str) -> RefusedRequest:
    return too_large(f"The request has {found} bytes or more; at most {most} are taken{advice}")


_CORS_SECONDS = 20 * 24 * 3600


@dataclass(frozen=True)
class ServerOptions:
    """What a server allows, beside its runs."""

    limits: Limits = field(default_factory=Limits)
    keys: ApiKeys = field(default_factory=ApiKeys)
    glossaries: Glossaries = field(default_factory=dict)
    has_cors: bool = False
    """Whether pages of other origins may ask the server from a browser."""
    root_path: str = ""
    """The path under which a proxy shows the server, such as /mt; without a slash at its end."""
    trusted_proxies: str = "127.0.0.1"
    """The addresses, with commas between them, whose X-Forwarded-Proto and X-Forwarded-For are believed."""
    allowed_hosts: tuple[str, ...] = ()
    """The names, in small letters, under which clients may ask the server; nothing: all names."""


def build_application(service: TranslationService, options: ServerOptions) -> ASGIApp:
    """The ASGI application of a server.

    Args:
        service: it may still be loading its models.
    """
    keys = options.keys
    metrics = ServerMetrics(service)
    files = FileTranslations(service)
    routes = [
        *page_routes(),
        *description_routes(),
        *LibreTranslateApi(service, keys).routes(),
        *stream_routes(service, keys),
        *choice_routes(service, keys),
        *DeepLApi(service, keys, options.glossaries, files).routes(),
        *opus_cat_routes(service, keys),
        *FilesApi(service, keys, files, options.root_path).routes(),
        *explain_routes(service, keys),
        *state_routes(service, keys, metrics),
    ]
    metrics.name_paths(route.path for route in routes)
    application: ASGIApp = Starlette(
        routes=routes,
        exception_handlers={
            RefusedRequest: _refused,
            HTTPException: _failed,
            Exception: _broken,
        },
    )
    # Outside of the guard it is also for the refusals of the guard.
    guarded = RequestGuard(
        application,
        service,
        keys,
        metrics.observe,
        allowed_hosts=frozenset(options.allowed_hosts),
        allows_other_sites=options.has_cors,
    )
    if options.has_cors:
        return CORSMiddleware(
            guarded,
            allow_origins=["*"],
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type"],
            max_age=_CORS_SECONDS,
        )
    return guarded


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedRequest)
    return error_response(request.url.path, error)


def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    refusal = RefusedRequest(error.status_code, str(error.detail), headers=error.headers)
    return error_response(request.url.path, refusal)


def _broken(request: Request, error: Exception) -> Response:
    """The answer to an error that nobody expected; the guard logs it."""
    return error_response(request.url.path, refusal_of_error(error))
