"""The stream of a text: sentence by sentence, each with its place, its words and its confidence; see docs/serving.md."""

import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from transformer_cli.extensions.serving.batching.jobs import Job
from transformer_cli.extensions.serving.interfaces.api_keys import ApiKeys
from transformer_cli.extensions.serving.interfaces.libretranslate_api import check_key
from transformer_cli.extensions.serving.interfaces.request_values import read_values
from transformer_cli.extensions.serving.interfaces.streamed_lines import (
    NDJSON,
    StreamOfJob,
    json_line,
)
from transformer_cli.extensions.serving.refusals import RefusedRequest, bad_request
from transformer_cli.extensions.serving.sentences.placed_sentences import (
    PlacedSentence,
    PlacedText,
    placed_sentences,
)
from transformer_cli.extensions.serving.served_runs import ServedDirection
from transformer_cli.extensions.serving.source_languages import AUTO, SourceLanguages, percent
from transformer_cli.extensions.serving.translation_service import TranslationService

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
            return Response("".join(map(json_line, lines)), media_type=NDJSON)
        direction = self._service.direction(detected.language, target)
        job = self._service.enter()
        try:
            placed = await self._service.run(
                request, job, lambda _: placed_sentences(direction.translator, text)
            )
        except BaseException:
            self._service.leave(job)
            raise
        start["numSentences"] = len(placed.sentences)
        self._service.num_characters += len(text)
        return StreamOfJob(self._service, job, self._lines(request, job, direction, placed, start))

    async def _lines(
        self,
        request: Request,
        job: Job,
        direction: ServedDirection,
        placed: PlacedText,
        start: dict[str, Any],
    ) -> AsyncIterator[str]:
        """The lines of the stream."""
        yield json_line(start)
        translated, number = "", 0
        try:
            for chunk in _chunks(placed.sentences):
                work = partial(direction.detailed, sentences=[one.text for one in chunk])
                found = await self._service.run(request, job, work)
                for sentence, of_sentence in zip(chunk, found, strict=True):
                    translated += sentence.before
                    values = of_sentence.as_json(sentence.start, len(translated))
                    yield json_line(
                        {"type": "sentence", "index": number, "before": sentence.before, **values}
                    )
                    translated += of_sentence.target
                    number += 1
        except RefusedRequest as refusal:
            yield json_line({"type": "error", "error": refusal.message})
            return
        yield json_line(
            {"type": "end", "after": placed.after, "translatedText": translated + placed.after}
        )


def _chunks(sentences: Sequence[PlacedSentence]) -> Iterator[Sequence[PlacedSentence]]:
    place, sizes = 0, iter(_SIZES)
    while place < len(sentences):
        size = next(sizes, _SIZE)
        yield sentences[place : place + size]
        place += size
