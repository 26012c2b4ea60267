"""Servers of small random models, in this process: an application for a test client, and one that listens on loopback."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import uvicorn
from starlette.testclient import TestClient

from transformer_cli.decoding import Translator
from transformer_cli.extensions.serving.application import ServerOptions, build_application
from transformer_cli.extensions.serving.served_runs import NamedTranslator, ServedRuns, served_runs
from transformer_cli.extensions.serving.server_process import protocol_with_deadlines
from transformer_cli.extensions.serving.service import TranslationService

from ...decoding.small_translators import WORDS, tokenizer_of_words, translator

LINES = [
    " ".join(WORDS[(start + step * number) % len(WORDS)] for number in range(length))
    for start in range(len(WORDS))
    for step in (1, 3)
    for length in (1, 2, 3, 5)
]
"""Different lines of words that the models know."""


def small_translator(source: str = "en", target: str = "it", **decoding: object) -> Translator:
    """A random model with double weights, so that batches change no digit that matters."""
    made = translator(tokenizer_of_words(), **{"beam_size": 2, **decoding})
    languages = {"source_language": source, "target_language": target}
    data = made.pipeline.data.model_copy(update=languages)
    return replace(made, pipeline=replace(made.pipeline, data=data))


def small_runs(*translators: Translator, cache_bytes: int = 1 << 20) -> ServedRuns:
    """Runs with the names run-0, run-1, ..."""
    named = [NamedTranslator(f"run-{number}", each, str(number)) for number, each in enumerate(translators)]
    return served_runs(named, cache_bytes=cache_bytes)


@contextmanager
def served(runs: ServedRuns, options: ServerOptions | None = None) -> Iterator[tuple[TestClient, TranslationService]]:
    """A test client of an application that is ready, and its service."""
    options = options or ServerOptions()
    service = TranslationService(options.limits)
    service.start(runs)
    application = build_application(service, options)
    try:
        # One event loop for all requests, as in a server.
        with TestClient(application, raise_server_exceptions=False) as client:
            yield client, service
    finally:
        service.close()


@contextmanager
def listening(runs: ServedRuns, options: ServerOptions | None = None, *, max_connections: int = 1000) -> Iterator[str]:
    """The address of a server on loopback, in a thread of this process."""
    options = options or ServerOptions()
    service = TranslationService(options.limits)
    service.start(runs)
    config = uvicorn.Config(
        build_application(service, options),
        port=0,
        http=protocol_with_deadlines(options.limits.read_seconds, max_connections),
        log_config=None,
        lifespan="off",
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        stop_at = time.monotonic() + 60.0
        while not server.started:
            assert time.monotonic() < stop_at
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()
        service.close()
