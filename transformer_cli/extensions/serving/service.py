"""The service behind all interfaces of a server: admission, languages, and translations in threads of their own."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from transformer_cli.config import Direction
from transformer_cli.extensions.serving.batcher import DeadlinePassed, Job, JobCancelled
from transformer_cli.extensions.serving.languages import (
    AUTO,
    Detected,
    TextLanguageDetector,
    served_language,
)
from transformer_cli.extensions.serving.limits import Limits, RefusedRequest, bad_request, try_later
from transformer_cli.extensions.serving.served_runs import ServedDirection, ServedRuns
from transformer_cli.extensions.serving.texts import (
    TextOptions,
    TranslatedText,
    translate_texts,
    with_options,
)
from transformer_cli.process.errors import TfmError, is_out_of_memory

logger = logging.getLogger(__name__)


Result = TypeVar("Result")


class TranslationService:
    """What every interface of a server needs; it is made before the models are loaded."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.num_active = 0
        """The number of requests that are translated, or wait for it."""
        self.num_refused = 0
        self.num_receiving = 0
        """The number of requests with a large body that is not received yet."""
        self.num_files = 0
        """The number of requests with a file, from their head to the end of their answer."""
        self._file_turns = asyncio.Semaphore(limits.max_files)
        self.num_characters = 0
        """The number of characters of texts that were translated."""
        self._detector = TextLanguageDetector()
        self._runs: ServedRuns | None = None
        self._threads = ThreadPoolExecutor(limits.max_requests, thread_name_prefix="request")

    @property
    def is_ready(self) -> bool:
        """Whether the models are loaded."""
        return self._runs is not None

    @property
    def runs(self) -> ServedRuns:
        """The loaded runs.

        Raises:
            RefusedRequest: they are not loaded yet.
        """
        if self._runs is None:
            raise try_later(503, "The models are still loading", seconds=5)
        return self._runs

    def start(self, runs: ServedRuns) -> None:
        """Begin to translate with loaded runs."""
        self._runs = runs

    def close(self) -> None:
        """End all threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._runs is not None:
            self._runs.close()

    def language(self, given: str) -> str:
        """The language that a client means.

        Raises:
            RefusedRequest: the server does not have it.
        """
        found = served_language(given, self.runs.languages)
        if found is None:
            raise bad_request(f"{given[:40]} is not supported")
        return found

    async def detected_languages(self, text: str, languages: Sequence[str]) -> list[Detected]:
        """The probability of each language, the most probable one first."""
        return await asyncio.to_thread(self._detector.detect, text, languages)

    async def source_languages(self, texts: Sequence[str], source: str, target: str) -> list[Detected]:
        """The language of each text; if it is detected, one from which the server translates into the target language.

        Args:
            source: as the client says; auto: detect the language of each text.
            target: a language of the server. A text that is surely in this language keeps it.

        Raises:
            RefusedRequest: the server does not have the source language, or translates nothing into the target language,
                and not all texts are surely in it.
        """
        if source.lower() != AUTO:
            return [Detected(self.language(source), 1.0)] * len(texts)
        runs = self.runs
        sources = [each for each in runs.languages if Direction(each, target) in runs.directions]
        others = sources or [each for each in runs.languages if each != target]
        found = await asyncio.to_thread(lambda: [self._detector.source_of(text, others, target) for text in texts])
        if not sources and any(each.language != target for each in found):
            raise bad_request(f"{target} is not available as a target language")
        return found

    def direction(self, source: str, target: str) -> ServedDirection:
        """The direction between two languages of the server.

        Raises:
            RefusedRequest: no run translates so.
        """
        found = self.runs.directions.get(Direction(source, target))
        if found is None:
            raise bad_request(f"{target} is not available as a target language of {source}")
        return found

    async def translate_between(
        self,
        request: Request,
        texts: Sequence[tuple[str, str]],
        target: str,
        options: TextOptions,
    ) -> list[TranslatedText]:
        """The translations of texts in several languages into one, in order.

        Args:
            texts: each with its language; a text in the target language stays as it is.

        Raises:
            RefusedRequest: no run translates so, or as of `translate`.
        """
        translated = [TranslatedText(text) for text, _ in texts]
        sources = dict.fromkeys(source for _, source in texts if source != target)
        directions = [self.direction(source, target) for source in sources]

        def work(job: Job) -> list[list[TranslatedText]]:
            return [self._translated(job, direction, texts, options) for direction in directions]

        if directions:
            async with self.admitted() as job:
                found = await self.run(request, job, work)
            for direction, direction_texts in zip(directions, found, strict=True):
                own = [place for place, (_, source) in enumerate(texts) if source == direction.languages.source]
                for place, each in zip(own, direction_texts, strict=True):
                    translated[place] = each
        self.num_characters += sum(len(text) for text, _ in texts)
        return translated

    def _translated(
        self,
        job: Job,
        direction: ServedDirection,
        texts: Sequence[tuple[str, str]],
        options: TextOptions,
    ) -> list[TranslatedText]:
        own = [text for text, source in texts if source == direction.languages.source]
        with direction.translator_for(job) as translator:
            return translate_texts(with_options(translator, options), own, options, job.check)

    def check_texts(self, texts: Sequence[str]) -> None:
        """Refuse too many texts, and texts that are too long.

        Raises:
            RefusedRequest: a limit is exceeded.
        """
        limits = self.limits
        if len(texts) > limits.max_texts:
            raise bad_request(f"Invalid request: request ({len(texts)}) exceeds text limit ({limits.max_texts})")
        longest = max(map(len, texts), default=0)
        if longest > limits.max_characters:
            raise bad_request(f"Invalid request: request ({longest}) exceeds text limit ({limits.max_characters})")

    def enter(self, deadline_seconds: float | None = None) -> Job:
        """The job of a new request; `leave` ends it.

        Args:
            deadline_seconds: None: as for a text.

        Raises:
            RefusedRequest: too many requests are translated or wait for it.
        """
        self._refuse_when_full()
        self.num_active += 1
        return Job(deadline_seconds or self.limits.deadline_seconds)

    def _refuse_when_full(self) -> None:
        if self.num_active + self.num_receiving >= self.limits.max_requests:
            self.num_refused += 1
            raise try_later(429, "Slowdown: too many requests are waiting")

    def begin_large_body(self) -> None:
        """Count a request whose large body is being received; `end_large_body` ends it.

        Raises:
            RefusedRequest: as of `enter`.
        """
        self._refuse_when_full()
        self.num_receiving += 1

    def end_large_body(self) -> None:
        """The body is received, or nobody waits for it any more."""
        self.num_receiving -= 1

    @contextmanager
    def receiving_file(self) -> Iterator[None]:
        """A block around a request with a file, from before its body is received.

        Raises:
            RefusedRequest: too many files wait.
        """
        most = self.limits.max_files + self.limits.max_waiting_files
        if self.num_files >= most:
            self.num_refused += 1
            raise try_later(429, f"Slowdown: {self.num_files} files are waiting", seconds=10)
        with self.counting_file():
            yield

    @contextmanager
    def counting_file(self) -> Iterator[None]:
        """A block around the work for a file that is received, also if its request is answered before the end."""
        self.num_files += 1
        try:
            yield
        finally:
            self.num_files -= 1

    @asynccontextmanager
    async def turn_of_file(self, request: Request | None, job: Job) -> AsyncIterator[None]:
        """A block in which a file is read and translated; only some files have their turn at the same time.

        Args:
            request: None: no client waits.

        Raises:
            RefusedRequest: the client has left, or the deadline has passed, before the turn came.
        """
        turn = asyncio.ensure_future(self._file_turns.acquire())
        leaving = asyncio.ensure_future(_disconnected(request))
        try:
            await asyncio.wait(
                {turn, leaving},
                timeout=max(0.0, job.deadline_at - time.monotonic()),
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not turn.done():
                raise refusal_of(JobCancelled() if leaving.done() else DeadlinePassed())
            yield
        finally:
            leaving.cancel()
            if turn.done() and not turn.cancelled():
                self._file_turns.release()
            turn.cancel()

    def leave(self, job: Job) -> None:
        """End a job; what it has not computed yet is cancelled."""
        job.cancel()
        self.num_active -= 1

    @asynccontextmanager
    async def admitted(self, deadline_seconds: float | None = None) -> AsyncIterator[Job]:
        """A block with the job of a request.

        Raises:
            RefusedRequest: as of `enter`.
        """
        job = self.enter(deadline_seconds)
        try:
            yield job
        finally:
            self.leave(job)

    async def run(self, request: Request | None, job: Job, work: Callable[[Job], Result]) -> Result:
        """The result of work in a thread of its own; the job is cancelled when the client disconnects.

        Args:
            request: None: no client waits.

        Raises:
            RefusedRequest: the work has failed.
        """
        working = asyncio.get_running_loop().run_in_executor(self._threads, work, job)
        leaving = asyncio.ensure_future(_disconnected(request))
        waited: set[asyncio.Future[Any]] = {working, leaving}
        try:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                job.cancel()
            return await working
        except asyncio.CancelledError:
            job.cancel()
            # The server ends, so nobody wants to know how the work ends.
            working.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            raise
        except BaseException as error:
            raise refusal_of(error) from error
        finally:
            leaving.cancel()
            # An error holds this frame, which must not hold the error: else the data of the work would stay until
            # the garbage collector comes.
            del working, waited


async def _disconnected(request: Request | None) -> None:
    """Wait until the client closes the connection; for ever, if there is none."""
    if request is None:
        await asyncio.Event().wait()
        return
    while (await request.receive())["type"] != "http.disconnect":
        pass


def refusal_of(error: BaseException) -> RefusedRequest:
    """What a client gets when its work fails."""
    if isinstance(error, RefusedRequest):
        return error
    if isinstance(error, JobCancelled):
        return RefusedRequest(499, "The client has closed the connection")
    if isinstance(error, DeadlinePassed):
        return try_later(503, "The translation took too long", seconds=5)
    if isinstance(error, TfmError) and error.exit_code in (2, 65, 78):
        return bad_request(error.message)
    if is_out_of_memory(error):
        logger.error("a request failed: out of memory")
        return RefusedRequest(500, "The server has no memory for this request")
    # The message of an unknown error may contain text of the client.
    logger.error("a request failed: %s", type(error).__name__)
    logger.debug("the error of the request", exc_info=error)
    return RefusedRequest(500, "Internal server error")


NDJSON = "application/x-ndjson"


class StreamOfJob(StreamingResponse):
    """A stream whose job ends with it, whatever happens."""

    def __init__(self, service: TranslationService, job: Job, lines: AsyncIterator[str]) -> None:
        super().__init__(
            lines,
            media_type=NDJSON,
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )
        self._service = service
        self._job = job

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._service.leave(self._job)


def json_line(values: dict[str, Any]) -> str:
    """A line of such a response."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")) + "\n"
