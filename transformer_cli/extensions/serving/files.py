"""Files that clients send: how they are translated and kept, and the interface of LibreTranslate for them."""

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from transformer_cli.config import Direction
from transformer_cli.decoding.glossary import RequiredTerms
from transformer_cli.extensions.documents import ModelTranslator, translate_document
from transformer_cli.extensions.documents.segments import Document
from transformer_cli.extensions.documents.translation import NotGreen, TranslatedDocument
from transformer_cli.extensions.documents.translator import UNTRANSLATED, AnsweredText, AskedText
from transformer_cli.extensions.serving.batcher import Job
from transformer_cli.extensions.serving.languages import AUTO
from transformer_cli.extensions.serving.libretranslate import check_key
from transformer_cli.extensions.serving.limits import RefusedRequest, bad_request
from transformer_cli.extensions.serving.request_values import ApiKeys, read_values
from transformer_cli.extensions.serving.served_runs import ServedDirection
from transformer_cli.extensions.serving.service import StreamOfJob, TranslationService, json_line
from transformer_cli.extensions.serving.texts import (
    TextOptions,
    name_of_translation,
    num_characters,
    opened_document,
    sample_of,
    with_options,
)
from transformer_cli.text.sentences import Sentence

KEPT_SECONDS = 1800.0
_ID_BYTES = 16


class _File(NamedTuple):
    data: bytes
    expires_at: float


class TranslatedFiles:
    """Files by names that nobody can guess; the oldest ones are dropped when memory is full."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._files: OrderedDict[str, _File] = OrderedDict()

    def add(self, name: str, data: bytes) -> str:
        """Keep a file; returns the name under which it can be downloaded, with 128 random bits in it."""
        self.drop_old()
        unique = f"{secrets.token_hex(_ID_BYTES)}.{name}"
        self._files[unique] = _File(data, time.monotonic() + KEPT_SECONDS)
        while len(self._files) > 1 and self._num_bytes() > self._max_bytes:
            self._files.popitem(last=False)
        return unique

    def get(self, unique: str) -> bytes | None:
        """The file of this name; None if it is not there any more."""
        self.drop_old()
        found = self._files.get(unique)
        return None if found is None else found.data

    def drop_old(self) -> None:
        """Forget the files whose time is over."""
        now = time.monotonic()
        while self._files and next(iter(self._files.values())).expires_at <= now:
            self._files.popitem(last=False)

    def _num_bytes(self) -> int:
        return sum(len(file.data) for file in self._files.values())


_SIZE = 32
"""Texts that are translated together; between two such groups the progress is counted."""


@dataclass(slots=True)
class FileProgress:
    """Numbers that one thread counts and another one reads."""

    done: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class CountingTranslator:
    """A `TextTranslator` that counts the sentences it has translated."""

    inner: ModelTranslator
    progress: FileProgress = field(default_factory=FileProgress)
    check: Callable[[], None] = lambda: None
    """Called often; it raises an exception to end the work."""

    @property
    def languages(self) -> Direction:
        """See `TextTranslator.languages`."""
        return self.inner.languages

    def sentences(self, text: str) -> list[Sentence]:
        """See `TextTranslator.sentences`."""
        self.check()
        return self.inner.sentences(text)

    def knows(self, text: str) -> bool:
        """See `TextTranslator.knows`."""
        return self.inner.knows(text)

    def has_read(self, word: str) -> bool:
        """See `TextTranslator.has_read`."""
        return self.inner.has_read(word)

    def translate(self, texts: Sequence[AskedText]) -> list[AnsweredText]:
        """See `TextTranslator.translate`."""
        sizes = [max(1, len(self.sentences(asked.text))) for asked in texts]
        self.progress.total += sum(sizes)
        answers: list[AnsweredText] = []
        for start in range(0, len(texts), _SIZE):
            answers += self.inner.translate(texts[start : start + _SIZE])
            self.progress.done += sum(sizes[start : start + _SIZE])
        return answers


class SentFile(NamedTuple):
    """A file, and what a client wants to have of it."""

    name: str
    data: bytes
    source: str
    """The language of its text, or auto."""
    target: str
    columns: str = ""
    """As of `opened_document`."""
    terms: RequiredTerms | None = None
    """Of a glossary."""
    is_refused_unchanged: bool = False
    """Whether a file that is in the target language already is refused; else it stays as it is."""
    marks: bool = False
    """Whether the texts that are not green are marked in it (fuzzy, needs-review-translation)."""
    has_details: bool = False
    """Whether the answer has the fields of `FinishedFile.details`."""


class FinishedFile(NamedTuple):
    """A translated file that can be downloaded."""

    unique: str
    """Its name in `TranslatedFiles`."""
    num_characters: int
    details: dict[str, Any]
    """What the interfaces say of it beside their own fields; empty unless it was asked for."""


class FileTranslations:
    """Translates files for all interfaces, and keeps the translations."""

    def __init__(self, service: TranslationService) -> None:
        self._service = service
        self.kept = TranslatedFiles(service.limits.kept_files_bytes)

    async def translated(
        self, request: Request | None, job: Job, sent: SentFile, progress: FileProgress
    ) -> FinishedFile:
        """The translation of a file, when its turn has come.

        Args:
            request: the work ends when the client closes the connection; None: nobody waits.

        Raises:
            RefusedRequest: it cannot be read or translated.
        """
        async with self._service.turn_of_file(request, job):
            return await self._translated_in_turn(request, job, sent, progress)

    async def _translated_in_turn(
        self, request: Request | None, job: Job, sent: SentFile, progress: FileProgress
    ) -> FinishedFile:
        limits = self._service.limits
        is_known = sent.source.lower() != AUTO
        language = self._service.language(sent.source) if is_known else None
        document = await self._service.run(
            request,
            job,
            lambda job: opened_document(
                sent.name,
                sent.data,
                sent.columns,
                language=language,
                target=sent.target,
                limits=limits,
                job=job,
            ),
        )
        [source] = await self._service.source_languages([sample_of(document)], sent.source, sent.target)
        found = TranslatedDocument(sent.data, 0, ())
        if source.language == sent.target and sent.is_refused_unchanged:
            raise bad_request("Source and target language are the same.")
        if source.language != sent.target:
            direction = self._service.direction(source.language, sent.target)
            work = _translation(direction, document, progress, sent)
            found = await self._service.run(request, job, work)
        count = num_characters(document)
        self._service.num_characters += count
        unique = self.kept.add(name_of_translation(sent.name, sent.target), found.data)
        asyncio.get_running_loop().call_later(KEPT_SECONDS, self.kept.drop_old)
        return FinishedFile(unique, count, _details_of(found) if sent.has_details else {})


def _details_of(found: TranslatedDocument) -> dict[str, Any]:
    """Whether text of it stays in the source language, because the model loses text of it; how many of its texts have an estimate, and are green."""
    is_untranslated = any(doubt.reason == UNTRANSLATED for doubt in found.doubts)
    num_green = sum(estimate.is_green for estimate in found.estimates)
    return {
        **({"untranslated": True} if is_untranslated else {}),
        **({"segments": len(found.estimates), "green": num_green} if found.estimates else {}),
    }


def download_response(unique: str, data: bytes) -> Response:
    """A translated file, as an attachment with its name."""
    name = unique.partition(".")[2]
    ascii_name = name.encode("ascii", "replace").decode().replace("?", "_")
    disposition = f'attachment; filename="{ascii_name}"'
    if name != ascii_name:
        # RFC 6266: for clients that know more than ASCII.
        disposition += f"; filename*=UTF-8''{quote(name, safe='')}"
    headers = {"Content-Disposition": disposition, "Cache-Control": "no-store"}
    return Response(data, media_type="application/octet-stream", headers=headers)


_SECONDS_BETWEEN_LINES = 0.3


class FilesApi:
    """POST /translate_file and GET /download_file/NAME."""

    def __init__(
        self,
        service: TranslationService,
        keys: ApiKeys,
        files: FileTranslations,
        root_path: str = "",
    ) -> None:
        """The endpoints over a service.

        Args:
            root_path: the path under which a proxy shows the server, such as /mt; it is a part of the addresses of files.
        """
        self._root_path = root_path
        self._service = service
        self._keys = keys
        self._files = files

    def routes(self) -> list[Route]:
        """The routes of these endpoints."""
        return [
            Route("/translate_file", self.translate_file, methods=["POST"]),
            Route("/download_file/{name}", self.download_file, methods=["GET"]),
        ]

    async def translate_file(self, request: Request) -> Response:
        """POST /translate_file: the address of the translated file; with progress=true, how far it is, line by line."""
        values = await read_values(request)
        await check_key(self._keys, request, values)
        file = values.file("file")
        source, target = values.needed_texts("source", "target")
        target = self._service.language(target)
        sent = SentFile(
            *file,
            source,
            target,
            values.text("columns"),
            marks=values.switch("mark"),
            has_details=values.switch("details"),
        )
        deadline_seconds = self._service.limits.file_deadline_seconds
        if values.text("progress").lower() == "true":
            job = self._service.enter(deadline_seconds)
            return StreamOfJob(self._service, job, self._lines(request, job, sent))
        async with self._service.admitted(deadline_seconds) as job:
            return JSONResponse(await self._answer(request, job, sent, FileProgress()))

    async def _lines(self, request: Request, job: Job, sent: SentFile) -> AsyncIterator[str]:
        """The progress in sentences whenever it has changed, and at last the address of the file, or an error."""
        progress, told = FileProgress(), FileProgress()
        working = asyncio.ensure_future(self._answer(request, job, sent, progress))
        try:
            while not working.done():
                await asyncio.wait([working], timeout=_SECONDS_BETWEEN_LINES)
                now = FileProgress(progress.done, progress.total)
                if now != told:
                    yield json_line({"type": "progress", "done": now.done, "total": now.total})
                    told = now
            yield json_line({"type": "end", **working.result()})
        except RefusedRequest as refusal:
            yield json_line({"type": "error", "error": refusal.message, "status": refusal.status})
        finally:
            working.cancel()

    async def _answer(self, request: Request, job: Job, sent: SentFile, progress: FileProgress) -> dict[str, Any]:
        """The address of the translated file, and what is to be said of its texts."""
        found = await self._files.translated(request, job, sent, progress)
        address = f"{str(request.base_url).rstrip('/')}{self._root_path}/download_file/{quote(found.unique)}"
        return {"translatedFileUrl": address, **found.details}

    async def download_file(self, request: Request) -> Response:
        """GET /download_file/NAME: the translated file, as an attachment."""
        unique = request.path_params["name"]
        data = self._files.kept.get(unique)
        if data is None:
            raise RefusedRequest(404, "This file does not exist any more")
        return download_response(unique, data)


def _translation(
    direction: ServedDirection,
    document: Document,
    progress: FileProgress,
    sent: SentFile,
) -> Callable[[Job], TranslatedDocument]:
    """The work of translating a document."""

    def work(job: Job) -> TranslatedDocument:
        with direction.translator_for(job) as translator:
            with_terms = with_options(translator, TextOptions(terms=sent.terms))
            counting = CountingTranslator(ModelTranslator.of(with_terms), progress, job.check)
            not_green = NotGreen.MARKED if sent.marks else NotGreen.WRITTEN
            return translate_document(document, counting, job.check, not_green=not_green)

    return work
