"""The guard around all endpoints: a limit for the body, answers to errors, and headers of every response."""

import logging
import time
from collections.abc import Callable

from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from transformer_cli.serving.limits import Limits
from transformer_cli.serving.refusals import RefusedRequest

logger = logging.getLogger(__name__)

_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
]
Observe = Callable[[str, int, float], None]
"""Takes the path, the status code and the seconds of a request."""


class RequestGuard:
    """ASGI middleware: no request can send more than the limit, and none gets a traceback."""

    def __init__(self, app: ASGIApp, limits: Limits, observe: Observe) -> None:
        self._app = app
        self._limits = limits
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; what is not HTTP is passed on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_at = time.perf_counter()
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message.get("headers", []), *_HEADERS]}
            await send(message)

        try:
            await self._answer(scope, receive, send_with_headers, lambda: status != 0)
        finally:
            seconds = time.perf_counter() - started_at
            self._observe(scope["path"], status, seconds)
            # The query string may hold text and keys.
            logger.debug("%s %s: %d, %.3f s", scope["method"], scope["path"], status, seconds)

    async def _answer(
        self, scope: Scope, receive: Receive, send: Send, is_started: Callable[[], bool]
    ) -> None:
        path = scope["path"]
        try:
            most = (
                self._limits.max_file_bytes
                if path == "/translate_file"
                else self._limits.max_body_bytes
            )
            check_content_length(scope, most)
            await self._app(scope, limited(receive, most), send)
        except RefusedRequest as refusal:
            if not is_started():
                await error_response(path, refusal)(scope, receive, send)
        except ClientDisconnect:
            return
        except Exception as error:
            # The message of an unknown error may contain text of the client.
            logger.error("%s: internal error: %s", path, type(error).__name__)
            logger.debug("the error", exc_info=error)
            if not is_started():
                await error_response(path, RefusedRequest(500, "Internal server error"))(
                    scope, receive, send
                )


def error_response(path: str, refusal: RefusedRequest) -> JSONResponse:
    """An error in the form of the interface to which the path belongs."""
    name = "message" if path.startswith("/v2/") else "error"
    return JSONResponse({name: refusal.message}, refusal.status, headers=refusal.headers)


def check_content_length(scope: Scope, most: int) -> None:
    """Refuse a body that announces more than `most` bytes, before it is read.

    Raises:
        RefusedRequest: it is too large.
    """
    given = dict(scope["headers"]).get(b"content-length", b"")
    if given.isdigit() and int(given[:20]) > most:
        raise _too_large(most)


def limited(receive: Receive, most: int) -> Receive:
    """`receive` that refuses a body of more than `most` bytes while it is read."""
    num_bytes = 0

    async def receive_limited() -> Message:
        nonlocal num_bytes
        message = await receive()
        num_bytes += len(message.get("body", b""))
        if num_bytes > most:
            raise _too_large(most)
        return message

    return receive_limited


def _too_large(most: int) -> RefusedRequest:
    return RefusedRequest(
        413, f"The request is larger than {most} bytes", headers={"Connection": "close"}
    )
