"""Deadlines for slow clients: a connection is closed if its request, or the reading of its answer, takes too long.

uvicorn closes idle connections, but it waits without a limit for the rest of a request that has begun, and for a client
that does not read its answer.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

_Protocol: Any = H11Protocol


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

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin the deadline of the first request."""
        super().connection_made(transport)
        self._request_deadline = _Deadline(self.read_seconds, transport.abort)
        self._answer_deadline = _Deadline(self.read_seconds, transport.abort)
        self._request_deadline.begin()

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


def protocol_with_deadlines(read_seconds: float) -> type[asyncio.Protocol]:
    """The protocol of a server.

    Args:
        read_seconds: from the connection, or from the first byte of a further request, to the last byte of the request;
            and from the moment at which the buffer of an answer is full until the client has read most of it.
    """
    return type("Protocol", (ProtocolWithDeadlines,), {"read_seconds": read_seconds})
