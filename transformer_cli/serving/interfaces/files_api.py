"""Files in the interface of LibreTranslate: a file is sent, translated, and downloaded under a name of its own."""

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from transformer_cli.documents import ModelTranslator, translate_document
from transformer_cli.documents.segments import Document
from transformer_cli.serving.batching.jobs import Job
from transformer_cli.serving.document_texts import (
    name_of_translation,
    num_characters,
    opened_document,
    sample_of,
)
from transformer_cli.serving.interfaces.api_keys import ApiKeys
from transformer_cli.serving.interfaces.libretranslate_api import check_key
from transformer_cli.serving.interfaces.request_values import read_values
from transformer_cli.serving.refusals import RefusedRequest, bad_request
from transformer_cli.serving.served_runs import ServedDirection
from transformer_cli.serving.source_languages import SourceLanguages
from transformer_cli.serving.translated_files import TranslatedFiles
from transformer_cli.serving.translation_service import TranslationService


class FilesApi:
    """POST /translate_file and GET /download_file/NAME."""

    def __init__(
        self, service: TranslationService, languages: SourceLanguages, keys: ApiKeys
    ) -> None:
        self._service = service
        self._languages = languages
        self._keys = keys
        self._files = TranslatedFiles(service.limits.kept_files_bytes)

    def routes(self) -> list[Route]:
        """The routes of these endpoints."""
        return [
            Route("/translate_file", self.translate_file, methods=["POST"]),
            Route("/download_file/{name}", self.download_file, methods=["GET"]),
        ]

    async def translate_file(self, request: Request) -> JSONResponse:
        """POST /translate_file: the address of the translated file."""
        values = await read_values(request)
        check_key(self._keys, request, values)
        file = values.file("file")
        for name in ("source", "target"):
            if not values.text(name):
                raise bad_request(f"Invalid request: missing {name} parameter")
        target = self._service.language(values.text("target"))
        (given_name, data), columns = file, values.text("columns")
        async with self._service.admitted(self._service.limits.file_deadline_seconds) as job:
            document = await self._service.run(
                request, job, lambda job: opened_document(given_name, data, columns)
            )
            [source] = await self._languages.of_texts(
                [sample_of(document)], values.text("source"), target
            )
            if source.language != target:
                direction = self._service.direction(source.language, target)
                data = await self._service.run(request, job, _translation(direction, document))
        self._service.num_characters += num_characters(document)
        unique = self._files.add(name_of_translation(given_name, target), data)
        return JSONResponse({"translatedFileUrl": f"{request.base_url}download_file/{unique}"})

    async def download_file(self, request: Request) -> Response:
        """GET /download_file/NAME: the translated file, as an attachment."""
        unique = request.path_params["name"]
        data = self._files.get(unique)
        if data is None:
            raise RefusedRequest(404, "This file does not exist any more")
        name = unique.partition(".")[2]
        ascii_name = name.encode("ascii", "replace").decode().replace("?", "_")
        return Response(
            data,
            media_type="application/octet-stream",
            headers={
                "Content-Disposition": f'attachment; filename="{ascii_name}"',
                "Cache-Control": "no-store",
            },
        )


def _translation(direction: ServedDirection, document: Document) -> Callable[[Job], bytes]:
    """The work of translating a document."""

    def work(job: Job) -> bytes:
        with direction.translator_for(job) as translator:
            return translate_document(document, ModelTranslator.of(translator)).data

    return work
