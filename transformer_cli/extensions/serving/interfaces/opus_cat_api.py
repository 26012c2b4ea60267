"""The interface of OPUS-CAT, for its plug-ins of OmegaT, Wordfast and others: two GET requests.

They are described at https://helsinki-nlp.github.io/OPUS-CAT.
"""

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from transformer_cli.extensions.serving.interfaces.api_keys import ApiKeys, key_in_header
from transformer_cli.extensions.serving.interfaces.request_values import read_values
from transformer_cli.extensions.serving.refusals import RefusedRequest, bad_request
from transformer_cli.extensions.serving.text_translation import TextOptions
from transformer_cli.extensions.serving.translation_service import TranslationService


class OpusCatApi:
    """The endpoints of OPUS-CAT over the service."""

    def __init__(self, service: TranslationService, keys: ApiKeys) -> None:
        self._service = service
        self._keys = keys

    def routes(self) -> list[Route]:
        """The routes of these endpoints."""
        root = "/MTRestService"
        return [
            Route(f"{root}/TranslateJson", self.translate_json, methods=["GET"]),
            Route(f"{root}/ListSupportedLanguagePairs", self.language_pairs, methods=["GET"]),
        ]

    async def translate_json(self, request: Request) -> JSONResponse:
        """GET TranslateJson: the translation of the parameter `input`; `tokenCode` is the API key, if one is needed."""
        values = await read_values(request)
        key = values.text("tokenCode") or key_in_header(request.headers.get("authorization", ""))
        if self._keys.are_required and not self._keys.allow(key):
            raise RefusedRequest(403, "Invalid API key")
        text, source, target = (
            values.text(name) for name in ("input", "srcLangCode", "trgLangCode")
        )
        if not source or not target:
            raise bad_request("Invalid request: srcLangCode and trgLangCode are needed")
        self._service.check_texts([text])
        languages = self._service.language(source), self._service.language(target)
        [translated] = await self._service.translate_between(
            request, [(text, languages[0])], languages[1], TextOptions()
        )
        return JSONResponse({"translation": translated.text})

    async def language_pairs(self, request: Request) -> JSONResponse:
        """GET ListSupportedLanguagePairs: such as ["en-it"]."""
        return JSONResponse([str(direction) for direction in self._service.runs.directions])
