"""Choices for one sentence: its best translations, and the words that were likely at a place of it; see docs/the_page.md."""

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from transformer_cli.decoding import Translator
from transformer_cli.decoding.details import word_spans
from transformer_cli.extensions.serving.batching.jobs import Job
from transformer_cli.extensions.serving.interfaces.api_keys import ApiKeys
from transformer_cli.extensions.serving.interfaces.libretranslate_api import check_key
from transformer_cli.extensions.serving.interfaces.request_values import RequestValues, read_values
from transformer_cli.extensions.serving.refusals import bad_request
from transformer_cli.extensions.serving.sentences.likely_words import likely_words
from transformer_cli.extensions.serving.sentences.sentence_choices import ranked_sentences
from transformer_cli.extensions.serving.translation_service import TranslationService

_NUM_WORDS = 6


class ChoicesApi:
    """POST /alternatives and POST /likely_words."""

    def __init__(self, service: TranslationService, keys: ApiKeys) -> None:
        self._service = service
        self._keys = keys

    def routes(self) -> list[Route]:
        """The routes of these endpoints."""
        return [
            Route("/alternatives", self.alternatives, methods=["POST"]),
            Route("/likely_words", self.likely_words, methods=["POST"]),
        ]

    async def alternatives(self, request: Request) -> JSONResponse:
        """POST /alternatives: the best translations of a sentence, each with the probabilities of its words."""
        values = await self._values(request)
        sentence, prefix = values.text("q"), values.text("prefix")
        wanted, most = values.count("alternatives"), self._service.limits.max_alternatives
        if wanted > most:
            raise bad_request(
                f"Invalid request: alternatives ({wanted}) exceeds the limit ({most})"
            )
        found = await self._result(
            request,
            values,
            lambda translator, _: ranked_sentences(
                translator, sentence, prefix, num_alternatives=wanted
            ),
        )
        source = {"text": sentence, "words": word_spans(sentence)}
        return JSONResponse({"source": source, "alternatives": [one.as_json() for one in found]})

    async def likely_words(self, request: Request) -> JSONResponse:
        """POST /likely_words: the words that most probably follow the beginning of a translation."""
        values = await self._values(request)
        sentence, prefix = values.text("q"), values.text("prefix")
        found = await self._result(
            request,
            values,
            lambda translator, job: likely_words(
                translator, sentence, prefix, num_words=_NUM_WORDS, check=job.check
            ),
        )
        words = [
            {"text": one.text, "prefix": one.prefix, "probability": round(one.probability, 4)}
            for one in found
        ]
        return JSONResponse({"words": words})

    async def _values(self, request: Request) -> RequestValues:
        """The parameters of a request for one sentence.

        Raises:
            RefusedRequest: one is missing, or the sentence is too long or has line breaks.
        """
        values = await read_values(request)
        check_key(self._keys, request, values)
        for name in ("q", "source", "target"):
            if not values.text(name):
                raise bad_request(f"Invalid request: missing {name} parameter")
        self._service.check_texts([values.text("q"), values.text("prefix")])
        if "\n" in values.text("q") + values.text("prefix"):
            raise bad_request("Invalid request: q and prefix must be one line each")
        return values

    async def _result(
        self, request: Request, values: RequestValues, work: Callable[[Translator, Job], Any]
    ) -> Any:
        """What `work` makes with the translator of the languages of a request."""
        service = self._service
        source, target = service.language(values.text("source")), service.language(values.text("target"))  # fmt: skip
        direction = service.direction(source, target)

        def translated(job: Job) -> Any:
            with direction.translator_for(job) as translator:
                return work(translator, job)

        job = service.enter()
        try:
            return await service.run(request, job, translated)
        finally:
            service.leave(job)
