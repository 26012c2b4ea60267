"""The state of a server: whether it lives, whether it is ready, and its metrics."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from transformer_cli.extensions.serving.interfaces.api_keys import ApiKeys, key_in_header
from transformer_cli.extensions.serving.refusals import RefusedRequest
from transformer_cli.extensions.serving.server_metrics import CONTENT_TYPE, ServerMetrics
from transformer_cli.extensions.serving.translation_service import TranslationService


class StateApi:
    """GET /health, /ready and /metrics."""

    def __init__(self, service: TranslationService, keys: ApiKeys) -> None:
        self._service = service
        self._keys = keys
        self.metrics: ServerMetrics | None = None
        """Set when all routes are known."""

    def routes(self) -> list[Route]:
        """The routes of these endpoints."""
        return [
            Route("/health", self.health, methods=["GET"]),
            Route("/ready", self.ready, methods=["GET"]),
            Route("/metrics", self.show_metrics, methods=["GET"]),
        ]

    async def health(self, request: Request) -> Response:
        """GET /health: 200 as long as the process answers."""
        return JSONResponse({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """GET /ready: 200 when the models are loaded, 503 before."""
        if self._service.is_ready:
            return JSONResponse({"status": "ready"})
        return JSONResponse({"status": "loading"}, 503, headers={"Retry-After": "5"})

    async def show_metrics(self, request: Request) -> Response:
        """GET /metrics: for Prometheus, with `Authorization: Bearer KEY` if the server needs keys."""
        if self._keys.are_required:
            key = key_in_header(request.headers.get("authorization", ""))
            if not self._keys.allow(key):
                raise RefusedRequest(
                    401, "An API key is needed", headers={"WWW-Authenticate": "Bearer"}
                )
        assert self.metrics is not None
        return Response(self.metrics.text(), media_type=CONTENT_TYPE)
