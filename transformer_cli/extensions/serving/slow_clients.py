"""Connections within limits: slow clients have deadlines, and idle connections make room for new ones.

uvicorn closes idle connections, but it waits without a limit for the rest of a request that has begun, and for a client
that does not read its answer. It counts connections only after they have taken a descriptor, and answers errors of HTTP
with plain text.
"""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from transformer_cli.extensions.serving.request_guard import SECURITY_HEADERS

_Protocol: Any = H11Protocol
_BUSY = b'{"error": "Slowdown: too many connections"}'
_FULL = b"\r\n".join(
    [
        b"HTTP/1.1 503 Service Unavailable",
        b"content-type: application/json",
        b"content-length: %d" % len(_BUSY),
        b"retry-after: 5",
        b"connection: close",
        *(b"%s: %s" % header for header in SECURITY_HEADERS),
        b"",
        _BUSY,
    ]
)


class _Deadline:
    """A time after which a function is called, unless the deadline is lifted before."""

    def __init__(self, seconds: float, act: Callable[[], None]) -> None:
        self._seconds = seconds
        self._act = act
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Begin to count, unless it has begun already."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._act)

    def lift(self) -> None:
        """End it without a call."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class ProtocolWithDeadlines(_Protocol):  # type: ignore[misc]
    """The HTTP protocol of uvicorn, one object for each connection, with deadlines; see `protocol_with_deadlines`."""

    read_seconds: float
    max_connections: int

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin the deadline of the first request; if there are too many connections, close the one that is idle longest."""
        self._opened_at = time.monotonic()
        if len(self.connections) >= self.max_connections:
            idle = [each for each in self.connections if each.is_idle]
            if idle:
                min(idle, key=lambda each: each._opened_at).transport.abort()
            else:
                transport.write(_FULL)
                transport.close()
        super().connection_made(transport)
        self._request_deadline = _Deadline(self.read_seconds, transport.abort)
        self._answer_deadline = _Deadline(self.read_seconds, transport.abort)
        self._request_deadline.begin()

    @property
    def is_idle(self) -> bool:
        """Whether no request of this connection is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def send_400_response(self, message: str) -> None:
        """Answer what is not HTTP, as all other errors are answered."""
        body = json.dumps({"error": f"Invalid request: {message}"}).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
            *SECURITY_HEADERS,
        ]
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event))
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Begin the deadline of a further request with its first byte; lift it with the last one."""
        super().data_received(data)
        cycle = self.cycle
        if cycle is not None and not cycle.more_body and not cycle.response_complete:
            self._request_deadline.lift()
        elif not self.transport.is_closing():
            self._request_deadline.begin()

    def pause_writing(self) -> None:
        """Begin the deadline of an answer: its buffer is full."""
        super().pause_writing()
        self._answer_deadline.begin()

    def resume_writing(self) -> None:
        """Lift it: the client has read most of the buffer."""
        super().resume_writing()
        self._answer_deadline.lift()

    def connection_lost(self, error: Exception | None) -> None:
        """Lift both deadlines."""
        self._request_deadline.lift()
        self._answer_deadline.lift()
        super().connection_lost(error)


def protocol_with_deadlines(read_seconds: float, max_connections: int) -> type[asyncio.Protocol]:
    """The protocol of a server.

    Args:
        read_seconds: from the connection, or from the first byte of a further request, to the last byte of the request;
            and from the moment at which the buffer of an answer is full until the client has read most of it.
        max_connections: at the same time; a further one takes the place of one that is idle, or gets 503.
    """
    return type(
        "Protocol",
        (ProtocolWithDeadlines,),
        {"read_seconds": read_seconds, "max_connections": max_connections},
    )
