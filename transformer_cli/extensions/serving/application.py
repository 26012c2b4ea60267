"""The application of a server: all interfaces over one service, as an ASGI application."""

from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from transformer_cli.extensions.serving.glossaries import Glossaries
from transformer_cli.extensions.serving.interfaces.api_keys import ApiKeys
from transformer_cli.extensions.serving.interfaces.choices_api import ChoicesApi
from transformer_cli.extensions.serving.interfaces.deepl_api import DeepLApi
from transformer_cli.extensions.serving.interfaces.description_api import description_routes
from transformer_cli.extensions.serving.interfaces.explain_api import ExplainApi
from transformer_cli.extensions.serving.interfaces.files_api import FilesApi
from transformer_cli.extensions.serving.interfaces.libretranslate_api import LibreTranslateApi
from transformer_cli.extensions.serving.interfaces.opus_cat_api import OpusCatApi
from transformer_cli.extensions.serving.interfaces.state_api import StateApi
from transformer_cli.extensions.serving.interfaces.stream_api import StreamApi
from transformer_cli.extensions.serving.language_detection import LanguageDetector
from transformer_cli.extensions.serving.limits import Limits
from transformer_cli.extensions.serving.page.page_routes import page_routes
from transformer_cli.extensions.serving.refusals import RefusedRequest
from transformer_cli.extensions.serving.request_guard import (
    RequestGuard,
    error_response,
    refusal_of_error,
)
from transformer_cli.extensions.serving.server_metrics import ServerMetrics
from transformer_cli.extensions.serving.source_languages import SourceLanguages
from transformer_cli.extensions.serving.translation_service import TranslationService

_CORS_SECONDS = 20 * 24 * 3600


@dataclass(frozen=True)
class ServerOptions:
    """What a server allows, beside its runs."""

    limits: Limits = field(default_factory=Limits)
    keys: ApiKeys = field(default_factory=ApiKeys)
    glossaries: Glossaries = field(default_factory=dict)
    has_cors: bool = False
    """Whether pages of other origins may ask the server from a browser."""
    root_path: str = ""
    """The path under which a proxy shows the server, such as /mt; without a slash at its end."""
    trusted_proxies: str = "127.0.0.1"
    """The addresses, with commas between them, whose X-Forwarded-Proto and X-Forwarded-For are believed."""
    allowed_hosts: tuple[str, ...] = ()
    """The names, in small letters, under which clients may ask the server; nothing: all names."""


def build_application(service: TranslationService, options: ServerOptions) -> ASGIApp:
    """The ASGI application of a server.

    Args:
        service: it may still be loading its models.
    """
    languages, keys = SourceLanguages(service, LanguageDetector()), options.keys
    interfaces = (
        LibreTranslateApi(service, languages, keys),
        StreamApi(service, languages, keys),
        ChoicesApi(service, keys),
        DeepLApi(service, languages, keys, options.glossaries),
        OpusCatApi(service, keys),
        FilesApi(service, languages, keys, options.root_path),
        ExplainApi(service, keys),
    )
    routes = [
        *page_routes(),
        *description_routes(),
        *(route for each in interfaces for route in each.routes()),
    ]
    state = StateApi(service, keys)
    routes += state.routes()
    metrics = state.metrics = ServerMetrics(service, [route.path for route in routes])
    application: ASGIApp = Starlette(
        routes=routes,
        exception_handlers={
            RefusedRequest: _refused,
            HTTPException: _failed,
            Exception: _broken,
        },
    )
    # Outside of the guard it is also for the refusals of the guard.
    guarded = RequestGuard(
        application,
        service,
        keys,
        metrics.observe,
        allowed_hosts=frozenset(options.allowed_hosts),
        allows_other_sites=options.has_cors,
    )
    if options.has_cors:
        return CORSMiddleware(
            guarded,
            allow_origins=["*"],
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
            max_age=_CORS_SECONDS,
        )
    return guarded


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedRequest)
    return error_response(request.url.path, error)


def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    refusal = RefusedRequest(error.status_code, str(error.detail), headers=error.headers)
    return error_response(request.url.path, refusal)


def _broken(request: Request, error: Exception) -> Response:
    """The answer to an error that nobody expected; the guard logs it."""
    return error_response(request.url.path, refusal_of_error(error))
