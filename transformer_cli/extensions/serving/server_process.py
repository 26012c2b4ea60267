"""The process of a server: it listens, loads the models, guards its connections, and ends in good order after a signal."""

import asyncio
import json
import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from transformer_cli.extensions.serving.application import (
    SECURITY_HEADERS,
    ServerOptions,
    build_application,
)
from transformer_cli.extensions.serving.served_runs import ServedRuns
from transformer_cli.extensions.serving.service import TranslationService
from transformer_cli.process.errors import CannotCreateError

logger = logging.getLogger(__name__)


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
        """Begin the deadline of the first request; if there are too many connections, close the oldest one that is idle."""
        self._opened_at = time.monotonic()
        # One that is closed is in the set until the event loop comes to it.
        others = [each for each in self.connections if not each.transport.is_closing()]
        if len(others) >= self.max_connections:
            idle = [each for each in others if each.is_idle]
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


_BACKLOG = 2048
# Of the connections that wait, so many are accepted before others that are too many are closed. They fit into the
# descriptors that are left for other things; if those were exhausted, asyncio would complain once for each in the log.
_ACCEPTED_AT_ONCE = 16
_CONNECTIONS_PER_REQUEST = 4
# What a server has open beside its connections, such as the files of uploads.
_OTHER_DESCRIPTORS = 256
_COMPLAINTS = ("Invalid HTTP request", "Unsupported upgrade request", "No supported WebSocket")


class Server(uvicorn.Server):
    """A server that lets more connections wait than it accepts at once."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        for listening in sockets or ():
            # asyncio has told the system the number of those that it accepts at once.
            listening.listen(_BACKLOG)


def run_server(load: Callable[[], ServedRuns], options: ServerOptions, *, host: str, port: int) -> None:
    """Serve until a signal ends the process; SIGTERM and SIGINT let requests in progress finish.

    Args:
        load: loads the models; it runs in a thread while the server already answers `/health`.
        host: the address of the machine at which the server listens.
        port: 0 is any free port; the log says which.

    Raises:
        CannotCreateError: the port cannot be used.
        TfmError: whatever `load` raises.
    """
    logging.getLogger("uvicorn.error").addFilter(_is_no_complaint)
    service = TranslationService(options.limits)
    config = uvicorn.Config(
        build_application(service, options),
        http=protocol_with_deadlines(options.limits.read_seconds, _max_connections(options.limits.max_requests)),
        forwarded_allow_ips=options.trusted_proxies,
        log_config=None,
        access_log=False,
        backlog=_ACCEPTED_AT_ONCE,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=round(options.limits.drain_seconds),
        timeout_keep_alive=round(options.limits.read_seconds),
    )
    server = Server(config)
    failures: list[BaseException] = []

    def load_models() -> None:
        try:
            runs = load()
            service.start(runs)
            names = ", ".join(map(str, runs.directions))
            logger.info("ready: %s", names)
        except BaseException as error:
            failures.append(error)
            server.should_exit = True

    with closing(_listening(host, port)) as listening:
        address, found_port = listening.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        logger.info("listening on http://%s:%d, loading models", shown, found_port)
        threading.Thread(target=load_models, name="loading", daemon=True).start()
        try:
            server.run(sockets=[listening])
        finally:
            service.close()
    if failures:
        raise failures[0]


def _is_no_complaint(record: logging.LogRecord) -> bool:
    """Whether a message is none about a client that speaks no HTTP: any client could fill the log with them."""
    return not record.getMessage().startswith(_COMPLAINTS)


def _max_connections(max_requests: int) -> int:
    """How many connections the server takes at the same time: several for each request, if the process may open as many."""
    wanted = _CONNECTIONS_PER_REQUEST * max_requests
    soft = raised_descriptor_limit(wanted + _OTHER_DESCRIPTORS)
    return wanted if soft is None else max(1, min(wanted, soft - _OTHER_DESCRIPTORS))


def raised_descriptor_limit(wanted: int) -> int | None:
    """Let this process open as many files and connections as wanted, or as it may; returns how many; None: not limited."""
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return None
    if soft >= wanted:
        return int(soft)
    raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
    except (OSError, ValueError):
        return int(soft)
    return int(raised)


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens at an address."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found = socket.socket(family, kind, protocol)
    except OSError as error:
        raise CannotCreateError(
            f"--host {host}: {error.strerror or error}",
            hint="give an address of this machine, such as 127.0.0.1",
        ) from None
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(_BACKLOG)
    except OSError as error:
        found.close()
        raise CannotCreateError(
            f"--port {port}: {host} cannot be listened on: {error.strerror or error}",
            hint="another program may use this port; choose another one, such as --port 5001",
        ) from None
    return found
