"""The interface of OPUS-CAT, for its plug-ins of OmegaT, Wordfast and others: three GET requests.

They are described at https://helsinki-nlp.github.io/OPUS-CAT.
"""

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from transformer_cli.extensions.serving.limits import RefusedRequest, bad_request
from transformer_cli.extensions.serving.request_values import ApiKeys, key_in_header, read_values
from transformer_cli.extensions.serving.service import TranslationService
from transformer_cli.extensions.serving.texts import TextOptions


def opus_cat_routes(service: TranslationService, keys: ApiKeys) -> list[Route]:
    """The endpoints of OPUS-CAT over the service."""

    async def translate_json(request: Request) -> JSONResponse:
        """GET TranslateJson: the translation of the parameter `input`; `tokenCode` is the API key, if one is needed."""
        values = await read_values(request)
        key = values.text("tokenCode") or key_in_header(request.headers.get("authorization", ""))
        await keys.check(request, key, RefusedRequest(403, "Invalid API key"))
        text, source, target = (values.text(name) for name in ("input", "srcLangCode", "trgLangCode"))
        if not source or not target:
            raise bad_request("Invalid request: srcLangCode and trgLangCode are needed")
        service.check_texts([text])
        languages = service.language(source), service.language(target)
        [translated] = await service.translate_between(request, [(text, languages[0])], languages[1], TextOptions())
        details = translated.details if values.switch("details") else {}
        return JSONResponse({"translation": translated.text, **details})

    async def language_pairs(request: Request) -> JSONResponse:
        """GET ListSupportedLanguagePairs: such as ["en-it"]."""
        return JSONResponse([str(direction) for direction in service.runs.directions])

    async def model_tags(request: Request) -> JSONResponse:
        """GET GetLanguagePairModelTags: the names among which a client may choose as `modelTag`; each pair has one model, without a name."""
        return JSONResponse([])

    root = "/MTRestService"
    return [
        Route(f"{root}/TranslateJson", translate_json, methods=["GET"]),
        Route(f"{root}/ListSupportedLanguagePairs", language_pairs, methods=["GET"]),
        Route(f"{root}/GetLanguagePairModelTags", model_tags, methods=["GET"]),
    ]
