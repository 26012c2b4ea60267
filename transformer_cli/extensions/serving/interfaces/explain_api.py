"""POST /explain: what the model does with one sentence, as JSON; docs/explaining.md describes its fields."""

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from transformer_cli.extensions.serving.batching.jobs import Job
from transformer_cli.extensions.serving.interfaces.api_keys import ApiKeys
from transformer_cli.extensions.serving.interfaces.libretranslate_api import check_key
from transformer_cli.extensions.serving.interfaces.request_values import read_values
from transformer_cli.extensions.serving.refusals import bad_request
from transformer_cli.extensions.serving.translation_service import TranslationService

MAX_BEAM = 8
_NUM_ALTERNATIVES = 5
_MAX_ALTERNATIVES = 20
# The attention and the shapes of a text grow with the square of its length.
_MAX_CHARACTERS = 1000


class ExplainApi:
    """POST /explain."""

    def __init__(self, service: TranslationService, keys: ApiKeys) -> None:
        self._service = service
        self._keys = keys

    def routes(self) -> list[Route]:
        """The route of this endpoint."""
        return [Route("/explain", self.explain, methods=["POST"])]

    async def explain(self, request: Request) -> JSONResponse:
        """The parameters are q, source and target; and, if wished, beam, nbest, topk, prefix or prefix_ids, continues and attention."""
        values = await read_values(request)
        check_key(self._keys, request, values)
        text, prefix = values.text("q"), values.text("prefix")
        source, target = values.text("source"), values.text("target")
        for name, value in (("q", text), ("source", source), ("target", target)):
            if not value:
                raise bad_request(f"Invalid request: missing {name} parameter")
        limits = {"beam": MAX_BEAM, "nbest": MAX_BEAM, "topk": _MAX_ALTERNATIVES}
        counts = {name: values.count(name) for name in limits}
        for name, most in limits.items():
            if counts[name] > most:
                raise bad_request(
                    f"Invalid request: {name} ({counts[name]}) exceeds the limit ({most})"
                )
        if max(len(text), len(prefix)) > _MAX_CHARACTERS or "\n" in text + prefix:
            raise bad_request(
                f"Invalid request: q must be one line of at most {_MAX_CHARACTERS} characters"
            )
        service = self._service
        direction = service.direction(service.language(source), service.language(target))
        asked = {
            "beam_size": counts["beam"] or None,
            "num_best": counts["nbest"] or None,
            "prefix": prefix,
            "prefix_ids": tuple(values.counts("prefix_ids")),
            "continues": values.switch("continues"),
        }

        def work(job: Job) -> dict[str, Any]:
            return direction.explained(job, text, counts["topk"] or _NUM_ALTERNATIVES, asked)

        async with service.admitted() as job:
            explained = await service.run(request, job, work)
        if not values.switch("attention", default=True):
            for sentence in explained["sentences"]:
                del sentence["attention"]
        return JSONResponse(explained)
