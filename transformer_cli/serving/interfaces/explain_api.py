"""The inside of a translation: POST /explain, for the drawer of the page; `docs/explaining.md` describes the answer."""

import asyncio
import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from transformer_cli.explaining.explainer import Explainer
from transformer_cli.serving.batching.jobs import Job
from transformer_cli.serving.interfaces.api_keys import ApiKeys
from transformer_cli.serving.interfaces.libretranslate_api import check_key
from transformer_cli.serving.interfaces.request_values import RequestValues, read_values
from transformer_cli.serving.refusals import bad_request
from transformer_cli.serving.served_runs import ServedDirection
from transformer_cli.serving.translation_service import TranslationService

# An explanation holds every attention weight, so its size grows with the square of the length.
_MAX_CHARACTERS = 1000
_MAX_BEAM_SIZE = 8


class ExplainApi:
    """POST /explain."""

    def __init__(self, service: TranslationService, keys: ApiKeys) -> None:
        self._service = service
        self._keys = keys
        # Explanations take much memory and are computed outside the batches: one at a time.
        self._turn = asyncio.Lock()

    def routes(self) -> list[Route]:
        """The route of this endpoint."""
        return [Route("/explain", self.explain, methods=["POST"])]

    async def explain(self, request: Request) -> Response:
        """What the model does with a line, from its tokens to the beam search."""
        values = await read_values(request)
        check_key(self._keys, request, values)
        direction = self._direction(values)
        line, options = values.text("q"), _options(values)

        def work(job: Job) -> str:
            job.check()
            explainer = Explainer.of(direction.translator)
            explanation = explainer.explain(line, **options)
            return json.dumps(explanation.to_json(), ensure_ascii=False, separators=(",", ":"))

        job = self._service.enter()
        try:
            async with self._turn:
                text = await self._service.run(request, job, work)
        finally:
            self._service.leave(job)
        return Response(text, media_type="application/json")

    def _direction(self, values: RequestValues) -> ServedDirection:
        """The direction of a request.

        Raises:
            RefusedRequest: a parameter is missing, a language is unknown, or the line is too long.
        """
        for name in ("q", "source", "target"):
            if not values.text(name):
                raise bad_request(f"Invalid request: missing {name} parameter")
        if (length := len(values.text("q"))) > _MAX_CHARACTERS:
            raise bad_request(
                f"Invalid request: request ({length}) exceeds text limit ({_MAX_CHARACTERS})"
            )
        source = self._service.language(values.text("source"))
        return self._service.direction(source, self._service.language(values.text("target")))


def _options(values: RequestValues) -> dict[str, Any]:
    """The arguments of `Explainer.explain`.

    Raises:
        RefusedRequest: a value is impossible.
    """
    options: dict[str, Any] = {
        "prefix": values.text("prefix"),
        "prefix_ids": tuple(values.counts("prefix_ids")),
        "continues": values.switch("continues"),
    }
    for name in ("beam_size", "num_best"):
        if number := values.count(name):
            if number > _MAX_BEAM_SIZE:
                raise bad_request(
                    f"Invalid request: {name} ({number}) exceeds the limit ({_MAX_BEAM_SIZE})"
                )
            options[name] = number
    return options
