"""The stream of a text: sentence by sentence, each with its place, its words and its confidence; see docs/serving.md."""

import json
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from transformer_cli.serving.batching.jobs import Job
from transformer_cli.serving.interfaces.api_keys import ApiKeys
from transformer_cli.serving.interfaces.libretranslate_api import check_key
from transformer_cli.serving.interfaces.request_values import read_values
from transformer_cli.serving.refusals import RefusedRequest, bad_request
from transformer_cli.serving.sentences.placed_sentences import (
    PlacedSentence,
    PlacedText,
    placed_sentences,
)
from transformer_cli.serving.served_runs import ServedDirection
from transformer_cli.serving.source_languages import AUTO, SourceLanguages, percent
from transformer_cli.serving.translation_service import TranslationService

logger = logging.getLogger(__name__)

# The first sentence is answered soon; later ones are translated together, which takes less time for each.
_SIZES = (1, 2, 4)
_SIZE = 8


class StreamApi:
    """POST /translate_stream."""

    def __init__(
        self, service: TranslationService, languages: SourceLanguages, keys: ApiKeys
    ) -> None:
        self._service = service
        self._languages = languages
        self._keys = keys

    def routes(self) -> list[Route]:
        """The route of this endpoint."""
        return [Route("/translate_stream", self.translate_stream, methods=["POST"])]

    async def translate_stream(self, request: Request) -> Response:
        """One line of JSON for the beginning, for each sentence, and for the end."""
        values = await read_values(request)
        check_key(self._keys, request, values)
        text, source, target = values.text("q"), values.text("source"), values.text("target")
        for name, value in (("q", text), ("source", source), ("target", target)):
            if not value:
                raise bad_request(f"Invalid request: missing {name} parameter")
        self._service.check_texts([text])
        target = self._service.language(target)
        [detected] = await self._languages.of_texts([text], source, target)
        start: dict[str, Any] = {"type": "start", "source": detected.language, "target": target}
        if source.lower() == AUTO:
            confidence = percent(detected.probability)
            start["detectedLanguage"] = {"confidence": confidence, "language": detected.language}
        if detected.language == target:
            lines = [
                {**start, "numSentences": 0},
                {"type": "end", "after": text, "translatedText": text},
            ]
            return Response("".join(map(_line, lines)), media_type=_NDJSON)
        direction = self._service.direction(detected.language, target)
        placed = placed_sentences(direction.translator, text)
        start["numSentences"] = len(placed.sentences)
        job = self._service.enter()
        self._service.num_characters += len(text)
        return _StreamOfJob(self._service, job, self._lines(request, job, direction, placed, start))

    async def _lines(
        self,
        request: Request,
        job: Job,
        direction: ServedDirection,
        placed: PlacedText,
        start: dict[str, Any],
    ) -> AsyncIterator[str]:
        """The lines of the stream."""
        yield _line(start)
        translated, number = "", 0
        try:
            for chunk in _chunks(placed.sentences):
                work = partial(direction.detailed, sentences=[one.text for one in chunk])
                found = await self._service.run(request, job, work)
                for sentence, of_sentence in zip(chunk, found, strict=True):
                    translated += sentence.before
                    values = of_sentence.as_json(sentence.start, len(translated))
                    yield _line(
                        {"type": "sentence", "index": number, "before": sentence.before, **values}
                    )
                    translated += of_sentence.target
                    number += 1
        except RefusedRequest as refusal:
            yield _line({"type": "error", "error": refusal.message})
            return
        yield _line(
            {"type": "end", "after": placed.after, "translatedText": translated + placed.after}
        )


_NDJSON = "application/x-ndjson"


class _StreamOfJob(StreamingResponse):
    """A stream whose job ends with it, whatever happens."""

    def __init__(self, service: TranslationService, job: Job, lines: AsyncIterator[str]) -> None:
        super().__init__(
            lines,
            media_type=_NDJSON,
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )
        self._service = service
        self._job = job

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._service.leave(self._job)


def _chunks(sentences: Sequence[PlacedSentence]) -> Iterator[Sequence[PlacedSentence]]:
    place, sizes = 0, iter(_SIZES)
    while place < len(sentences):
        size = next(sizes, _SIZE)
        yield sentences[place : place + size]
        place += size


def _line(values: dict[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")) + "\n"
