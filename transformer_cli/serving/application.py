"""The application of a server: all interfaces over one service, as an ASGI application."""

from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from transformer_cli.serving.interfaces.api_keys import ApiKeys
from transformer_cli.serving.interfaces.choices_api import ChoicesApi
from transformer_cli.serving.interfaces.explain_api import ExplainApi
from transformer_cli.serving.interfaces.libretranslate_api import LibreTranslateApi
from transformer_cli.serving.interfaces.stream_api import StreamApi
from transformer_cli.serving.language_detection import LanguageDetector
from transformer_cli.serving.limits import Limits
from transformer_cli.serving.page.page_routes import page_routes
from transformer_cli.serving.refusals import RefusedRequest
from transformer_cli.serving.request_guard import RequestGuard, error_response
from transformer_cli.serving.source_languages import SourceLanguages
from transformer_cli.serving.translation_service import TranslationService

_MAX_AGE_SECONDS = 20 * 24 * 3600


@dataclass(frozen=True)
class ServerOptions:
    """What a server allows, beside its runs."""

    limits: Limits = field(default_factory=Limits)
    keys: ApiKeys = field(default_factory=ApiKeys)
    has_cors: bool = False
    """Whether pages of other origins may ask the server from a browser."""


def build_application(service: TranslationService, options: ServerOptions) -> ASGIApp:
    """The ASGI application of a server.

    Args:
        service: it may still be loading its models.
    """
    languages = SourceLanguages(service, LanguageDetector())
    api = LibreTranslateApi(service, languages, options.keys)
    stream = StreamApi(service, languages, options.keys)
    choices = ChoicesApi(service, options.keys)
    routes = [
        *page_routes(),
        *_state_routes(service),
        *api.routes(),
        *stream.routes(),
        *choices.routes(),
        *ExplainApi(service, options.keys).routes(),
    ]
    application: ASGIApp = Starlette(
        routes=routes, exception_handlers={RefusedRequest: _refused, HTTPException: _failed}
    )
    if options.has_cors:
        application = CORSMiddleware(
            application,
            allow_origins=["*"],
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
            max_age=_MAX_AGE_SECONDS,
        )
    return RequestGuard(application, options.limits, lambda path, status, seconds: None)


def _state_routes(service: TranslationService) -> list[Route]:
    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def ready(request: Request) -> Response:
        if service.is_ready:
            return JSONResponse({"status": "ready"})
        return JSONResponse({"status": "loading"}, 503, headers={"Retry-After": "5"})

    return [Route("/health", health, methods=["GET"]), Route("/ready", ready, methods=["GET"])]


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedRequest)
    return error_response(request.url.path, error)


def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    refusal = RefusedRequest(error.status_code, str(error.detail), headers=error.headers)
    return error_response(request.url.path, refusal)
