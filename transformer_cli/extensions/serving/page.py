"""The page for people, and what it asks the server for beside translations; see docs/the_page.md."""

import base64
import hashlib
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import cache, partial
from importlib import resources
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from transformer_cli.decoding import Translator
from transformer_cli.decoding.details import word_spans
from transformer_cli.extensions.lessons.explaining.standalone_page import views_script
from transformer_cli.extensions.serving.batcher import Job
from transformer_cli.extensions.serving.languages import AUTO, percent
from transformer_cli.extensions.serving.libretranslate import check_key
from transformer_cli.extensions.serving.limits import RefusedRequest, bad_request
from transformer_cli.extensions.serving.request_values import ApiKeys, RequestValues, read_values
from transformer_cli.extensions.serving.sentences import (
    PlacedSentence,
    PlacedSentences,
    likely_words,
    placed_sentences,
    sentence_alternatives,
)
from transformer_cli.extensions.serving.served_runs import ServedDirection
from transformer_cli.extensions.serving.service import (
    NDJSON,
    StreamOfJob,
    TranslationService,
    json_line,
)


class PageFile(NamedTuple):
    """A file of the page, as it is sent."""

    body: bytes
    headers: dict[str, str]


def page_routes() -> list[Route]:
    """The routes of the page."""
    return [
        Route("/", _page, methods=["GET"]),
        Route("/views.js", _views, methods=["GET"]),
    ]


async def _page(request: Request) -> Response:
    return _answer(request, page_file())


async def _views(request: Request) -> Response:
    return _answer(request, views_file())


def _answer(request: Request, file: PageFile) -> Response:
    """The file, or 304 if the browser has it."""
    if request.headers.get("if-none-match") == file.headers["etag"]:
        return Response(status_code=304, headers=file.headers)
    return Response(file.body, headers=file.headers)


@cache
def page_file() -> PageFile:
    """The page and its headers; read once."""
    text = resources.files("transformer_cli.extensions").joinpath("page.html").read_text(encoding="utf-8")
    headers = {"content-security-policy": served_page_policy(text)}
    return _file(text, "text/html; charset=utf-8", headers)


@cache
def views_file() -> PageFile:
    """The program that draws explanations; the page loads it when somebody wants to see inside."""
    return _file(views_script(), "text/javascript; charset=utf-8", {})


def served_page_policy(page: str) -> str:
    """A policy that allows requests to this server only, and of all inline code only that of the page.

    Args:
        page: HTML; its style and script elements without attributes are allowed by their hashes.
    """
    styles, scripts = (_hashes(page, element) for element in ("style", "script"))
    return "; ".join(
        [
            "default-src 'none'",
            "connect-src 'self'",
            "img-src 'self' data:",
            f"style-src 'self' {styles}",
            f"script-src 'self' {scripts}",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
    )


def _hashes(page: str, element: str) -> str:
    contents = re.findall(f"<{element}>(.*?)</{element}>", page, flags=re.DOTALL)
    digests = [hashlib.sha256(content.encode()).digest() for content in contents]
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


def _file(text: str, media_type: str, headers: dict[str, str]) -> PageFile:
    body = text.encode()
    tag = hashlib.sha256(body).hexdigest()[:32]
    own = {"content-type": media_type, "cache-control": "no-cache", "etag": f'"{tag}"'}
    return PageFile(body, {**own, **headers})


# The first sentence is answered soon; later ones are translated together, which takes less time for each.
_SIZES = (1, 2, 4)
_SIZE = 8


def stream_routes(service: TranslationService, keys: ApiKeys) -> list[Route]:
    """POST /translate_stream: a text sentence by sentence, each with its place, its words and its confidence."""

    async def translate_stream(request: Request) -> Response:
        """One line of JSON for the beginning, for each sentence, and for the end."""
        values = await read_values(request)
        await check_key(keys, request, values)
        text, source, target = values.needed_texts("q", "source", "target")
        service.check_texts([text])
        target = service.language(target)
        [detected] = await service.source_languages([text], source, target)
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
        direction = service.direction(detected.language, target)
        job = service.enter()
        try:
            placed = await service.run(request, job, lambda _: placed_sentences(direction.translator, text))
        except BaseException:
            service.leave(job)
            raise
        start["numSentences"] = len(placed.sentences)
        service.num_characters += len(text)
        return StreamOfJob(service, job, _stream_lines(service, request, job, direction, placed, start))

    return [Route("/translate_stream", translate_stream, methods=["POST"])]


async def _stream_lines(
    service: TranslationService,
    request: Request,
    job: Job,
    direction: ServedDirection,
    placed: PlacedSentences,
    start: dict[str, Any],
) -> AsyncIterator[str]:
    """The lines of the stream."""
    yield json_line(start)
    translated, number = "", 0
    try:
        for chunk in _chunks(placed.sentences):
            work = partial(direction.detailed, sentences=[one.text for one in chunk])
            found = await service.run(request, job, work)
            for sentence, detailed_sentence in zip(chunk, found, strict=True):
                translated += sentence.before
                values = detailed_sentence.as_json(sentence.start, len(translated))
                yield json_line({"type": "sentence", "index": number, "before": sentence.before, **values})
                translated += detailed_sentence.target
                number += 1
    except RefusedRequest as refusal:
        yield json_line({"type": "error", "error": refusal.message, "status": refusal.status})
        return
    yield json_line({"type": "end", "after": placed.after, "translatedText": translated + placed.after})


def _chunks(sentences: Sequence[PlacedSentence]) -> Iterator[Sequence[PlacedSentence]]:
    place, sizes = 0, iter(_SIZES)
    while place < len(sentences):
        size = next(sizes, _SIZE)
        yield sentences[place : place + size]
        place += size


_NUM_WORDS = 6


def choice_routes(service: TranslationService, keys: ApiKeys) -> list[Route]:
    """POST /alternatives and POST /likely_words: choices for one sentence."""

    async def alternatives(request: Request) -> JSONResponse:
        """POST /alternatives: the best translations of a sentence, each with the probabilities of its words."""
        values = await checked_values(request)
        sentence, prefix = values.text("q"), values.text("prefix")
        wanted = values.count("alternatives", service.limits.max_alternatives)
        found = await result_of(
            request,
            values,
            lambda translator, _: sentence_alternatives(translator, sentence, prefix, num_alternatives=wanted),
        )
        source = {"text": sentence, "words": word_spans(sentence)}
        return JSONResponse({"source": source, "alternatives": [one.as_json() for one in found]})

    async def most_likely_words(request: Request) -> JSONResponse:
        """POST /likely_words: the words that most probably follow the beginning of a translation."""
        values = await checked_values(request)
        sentence, prefix = values.text("q"), values.text("prefix")
        found = await result_of(
            request,
            values,
            lambda translator, job: likely_words(translator, sentence, prefix, num_words=_NUM_WORDS, check=job.check),
        )
        words = [{"text": one.text, "prefix": one.prefix, "probability": round(one.probability, 4)} for one in found]
        return JSONResponse({"words": words})

    async def checked_values(request: Request) -> RequestValues:
        """The parameters of a request for one sentence.

        Raises:
            RefusedRequest: one is missing, or the sentence is too long or has line breaks.
        """
        values = await read_values(request)
        await check_key(keys, request, values)
        values.needed_texts("q", "source", "target")
        service.check_texts([values.text("q"), values.text("prefix")])
        if "\n" in values.text("q") + values.text("prefix"):
            raise bad_request("Invalid request: q and prefix must be one line each")
        return values

    async def result_of(request: Request, values: RequestValues, work: Callable[[Translator, Job], Any]) -> Any:
        """What `work` makes with the translator of the languages of a request."""
        source, target = service.language(values.text("source")), service.language(values.text("target"))
        direction = service.direction(source, target)

        def translated(job: Job) -> Any:
            with direction.translator_for(job) as translator:
                return work(translator, job)

        async with service.admitted() as job:
            return await service.run(request, job, translated)

    return [
        Route("/alternatives", alternatives, methods=["POST"]),
        Route("/likely_words", most_likely_words, methods=["POST"]),
    ]


MAX_BEAM = 8
_NUM_ALTERNATIVES = 5
_MAX_ALTERNATIVES = 20
# The attention and the shapes of a text grow with the square of its length.
_MAX_CHARACTERS = 1000


def explain_routes(service: TranslationService, keys: ApiKeys) -> list[Route]:
    """POST /explain: what the model does with one sentence, as JSON; docs/explaining.md describes its fields."""

    async def explain(request: Request) -> JSONResponse:
        """The parameters are q, source and target; and, if wished, beam, nbest, topk, prefix or prefix_ids, continues and attention."""
        values = await read_values(request)
        await check_key(keys, request, values)
        prefix = values.text("prefix")
        text, source, target = values.needed_texts("q", "source", "target")
        limits = {"beam": MAX_BEAM, "nbest": MAX_BEAM, "topk": _MAX_ALTERNATIVES}
        counts = {name: values.count(name, most) for name, most in limits.items()}
        if max(len(text), len(prefix)) > _MAX_CHARACTERS or "\n" in text + prefix:
            raise bad_request(f"Invalid request: q must be one line of at most {_MAX_CHARACTERS} characters")
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
            # The same object may be the answer to other requests.
            sentences = [{**sentence} for sentence in explained["sentences"]]
            for sentence in sentences:
                del sentence["attention"]
            explained = {**explained, "sentences": sentences}
        return JSONResponse(explained)

    return [Route("/explain", explain, methods=["POST"])]
