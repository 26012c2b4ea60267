"""The interface of LibreTranslate: languages, translations and detection, for clients that were written for it.

Its endpoints, parameters and answers are described at https://docs.libretranslate.com.
"""

import re
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from transformer_cli.extensions.serving.languages import percent
from transformer_cli.extensions.serving.limits import RefusedRequest, bad_request
from transformer_cli.extensions.serving.request_values import (
    ApiKeys,
    RequestValues,
    key_in_header,
    read_values,
)
from transformer_cli.extensions.serving.service import TranslationService
from transformer_cli.extensions.serving.texts import TextOptions, available_formats
from transformer_cli.text.languages import name_of_language, primary_language

_LISTS = frozenset({"q"})


class LibreTranslateApi:
    """The endpoints of LibreTranslate over the service."""

    def __init__(self, service: TranslationService, keys: ApiKeys) -> None:
        self._service = service
        self._keys = keys

    def routes(self) -> list[Route]:
        """The routes of these endpoints."""
        return [
            # Several clients post here; LibreTranslate itself refuses that.
            Route("/languages", self.languages, methods=["GET", "POST"]),
            Route("/translate", self.translate, methods=["POST"]),
            Route("/detect", self.detect, methods=["POST"]),
            Route("/suggest", self.suggest, methods=["POST"]),
            Route("/frontend/settings", self.frontend_settings, methods=["GET"]),
        ]

    async def languages(self, request: Request) -> JSONResponse:
        """GET or POST /languages: every language of the server, and the languages into which it is translated."""
        runs = self._service.runs
        return JSONResponse(
            [
                {
                    "code": language,
                    "name": shown_name(language),
                    "targets": [*runs.targets_of(language), language],
                }
                for language in runs.languages
            ]
        )

    async def translate(self, request: Request) -> JSONResponse:
        """POST /translate: the translation of a text, or of each text of a list."""
        values = await read_values(request, lists=_LISTS)
        await check_key(self._keys, request, values)
        given, source, target = _texts_and_languages(values)
        texts = [given] if isinstance(given, str) else given
        self._service.check_texts(texts)
        num_alternatives = values.count("alternatives", self._service.limits.max_alternatives)
        is_html = _is_html(values)
        options = TextOptions(
            num_alternatives=0 if is_html else num_alternatives,
            line_breaks="joined" if is_html else "kept",
            is_html=is_html,
        )
        target = self._service.language(target)
        sources = await self._service.source_languages(texts, source, target)
        translated = await self._service.translate_between(
            request,
            list(zip(texts, [one.language for one in sources], strict=True)),
            target,
            options,
        )
        answer: dict[str, Any] = {"translatedText": [one.text for one in translated]}
        if source.lower() == "auto":
            answer["detectedLanguage"] = [
                {"confidence": percent(one.probability), "language": one.language} for one in sources
            ]
        if num_alternatives:
            answer["alternatives"] = [list(one.alternatives) for one in translated]
        if values.switch("details"):
            details = [one.details for one in translated]
            for name in dict.fromkeys(name for each in details for name in each):
                answer[name] = [each.get(name, False if name == "untranslated" else None) for each in details]
        if isinstance(given, str):
            answer = {name: value[0] for name, value in answer.items()}
        return JSONResponse(answer)

    async def detect(self, request: Request) -> JSONResponse:
        """POST /detect: in which language a text is written, the most probable one first."""
        values = await read_values(request, lists=_LISTS)
        await check_key(self._keys, request, values)
        if not values.texts("q"):
            raise bad_request("Invalid request: missing q parameter")
        texts = values.listed("q")
        self._service.check_texts(texts)
        found = await self._service.detected_languages("\n".join(texts), self._service.runs.languages)
        return JSONResponse([{"confidence": percent(one.probability), "language": one.language} for one in found])

    async def suggest(self, request: Request) -> JSONResponse:
        """POST /suggest: suggestions of better translations are not taken."""
        raise RefusedRequest(403, "Suggestions are disabled on this server.")

    async def frontend_settings(self, request: Request) -> JSONResponse:
        """GET /frontend/settings: what a page needs to know about the server."""
        runs, limits = self._service.runs, self._service.limits
        first = next(iter(runs.directions))
        return JSONResponse(
            {
                "charLimit": limits.max_characters,
                "frontendTimeout": 250,
                "apiKeys": self._keys.are_required,
                "keyRequired": self._keys.are_required,
                "suggestions": False,
                "filesTranslation": True,
                "supportedFilesFormat": [ending for each in available_formats() for ending in each.endings],
                "language": {
                    "source": {"code": first.source, "name": shown_name(first.source)},
                    "target": {"code": first.target, "name": shown_name(first.target)},
                },
            }
        )


async def check_key(keys: ApiKeys, request: Request, values: RequestValues) -> None:
    """Refuse a request without a valid key, if the server needs keys.

    Raises:
        RefusedRequest: the key is missing or wrong.
    """
    if not keys.are_required:
        return
    key = values.text("api_key") or key_in_header(request.headers.get("authorization", ""))
    if not key:
        raise bad_request("Please contact the server operator to get an API key")
    await keys.check(request, key, RefusedRequest(403, "Invalid API key"))


def shown_name(language: str) -> str:
    """The English name of a language, with its region or script where it has one."""
    _, *region = re.split("[-_]", language, maxsplit=1)
    name = name_of_language(primary_language(language))
    return f"{name} ({region[0]})" if region else name


def _texts_and_languages(values: RequestValues) -> tuple[str | list[str], str, str]:
    """The texts, the source language and the target language; each of them must be there."""
    texts = values.texts("q")
    if isinstance(texts, list) and not values.is_json and len(texts) == 1:
        texts = texts[0]
    source, target = values.text("source"), values.text("target")
    for name, value in (("q", texts), ("source", source), ("target", target)):
        if not value:
            raise bad_request(f"Invalid request: missing {name} parameter")
    return texts, source, target


def _is_html(values: RequestValues) -> bool:
    wanted = values.text("format") or "text"
    if wanted.lower() not in ("text", "html"):
        raise bad_request(f"{wanted[:40]} format is not supported")
    return wanted.lower() == "html"
