"""The process of a server: it listens at once, loads its models, answers, and drains after SIGTERM."""

import logging
import socket
import threading
from collections.abc import Callable
from contextlib import closing

import uvicorn

from transformer_cli.errors import CannotCreateError
from transformer_cli.serving.application import ServerOptions, build_application
from transformer_cli.serving.served_runs import ServedRuns
from transformer_cli.serving.slow_clients import protocol_with_deadlines
from transformer_cli.serving.translation_service import TranslationService

logger = logging.getLogger(__name__)

_BACKLOG = 2048


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
    service = TranslationService(options.limits)
    config = uvicorn.Config(
        build_application(service, options),
        http=protocol_with_deadlines(options.limits.read_seconds),
        limit_concurrency=4 * options.limits.max_requests,
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
