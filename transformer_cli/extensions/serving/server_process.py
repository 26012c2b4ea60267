"""The process of a server: it listens at once, loads its models, answers, and drains after SIGTERM."""

import logging
import socket
import threading
from collections.abc import Callable
from contextlib import closing

import uvicorn

from transformer_cli.extensions.serving.application import ServerOptions, build_application
from transformer_cli.extensions.serving.served_runs import ServedRuns
from transformer_cli.extensions.serving.slow_clients import protocol_with_deadlines
from transformer_cli.extensions.serving.translation_service import TranslationService
from transformer_cli.process.errors import CannotCreateError

logger = logging.getLogger(__name__)

_BACKLOG = 2048
_CONNECTIONS_PER_REQUEST = 4
# What a server has open beside its connections, such as the files of uploads.
_OTHER_DESCRIPTORS = 256
_COMPLAINTS = ("Invalid HTTP request", "Unsupported upgrade request", "No supported WebSocket")


def serve(load: Callable[[], ServedRuns], options: ServerOptions, *, host: str, port: int) -> None:
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
        http=protocol_with_deadlines(
            options.limits.read_seconds, _max_connections(options.limits.max_requests)
        ),
        forwarded_allow_ips=options.trusted_proxies,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=round(options.limits.drain_seconds),
        timeout_keep_alive=round(options.limits.read_seconds),
    )
    server = uvicorn.Server(config)
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
