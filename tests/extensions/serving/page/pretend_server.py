"""A server with a pretended translator, for tests of the page: it says what a test wants, at once, and counts requests."""

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from transformer_cli.extensions.serving.page import page_routes

NAMES = {"en": "English", "it": "Italian", "de": "German", "ar": "Arabic"}
# A list mark at the beginning of a line belongs to no sentence.
_SENTENCE = re.compile(r"[^\s-](?:[^.!?\n]|[.!?]+(?=\S))*[.!?]*")
_MARKS = '.,;:!?()"«»'


@dataclass
class PretendServer:
    """Translates word by word: each word gets the target language in front, or the entry of `words`."""

    words: dict[str, str] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)
    """Probabilities of target words; 0.95 for others."""
    pairs: list[tuple[str, str]] = field(default_factory=lambda: [("en", "it"), ("it", "en")])
    estimates: dict[str, float] = field(default_factory=dict)
    """Estimated probabilities of source sentences; one is green from 0.5. Others have none."""
    delay_seconds: float = 0.0
    refusals: list[tuple[int, str, int]] = field(default_factory=list)
    """Status, message and Retry-After of the next requests for translations."""
    break_after: int = 0
    """After this many sentences a stream ends with an error; 0: never."""
    num_sentences_of_file: int = 0
    """If it is not 0, a file is half done until `may_end_file` is set."""
    may_end_file: threading.Event = field(default_factory=threading.Event)
    is_loading: bool = False
    has_files: bool = True
    key: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    """The bodies of all requests for translations."""
    address: str = ""

    def forget(self) -> None:
        """Be as new."""
        fresh = PretendServer(address=self.address)
        for each in fields(self):
            setattr(self, each.name, getattr(fresh, each.name))

    def application(self) -> Starlette:
        return Starlette(
            routes=[
                *page_routes(),
                Route("/languages", self.languages),
                Route("/frontend/settings", self.settings),
                Route("/translate_stream", self.stream, methods=["POST"]),
                Route("/alternatives", self.alternatives, methods=["POST"]),
                Route("/likely_words", self.likely_words, methods=["POST"]),
                Route("/translate_file", self.file, methods=["POST"]),
                Route("/download_file/{name}", self.download),
            ]
        )

    async def languages(self, request: Request) -> Response:
        if self.is_loading:
            return JSONResponse({"error": "loading"}, 503, {"Retry-After": "1"})
        codes = dict.fromkeys(code for pair in self.pairs for code in pair)
        return JSONResponse(
            [
                {
                    "code": code,
                    "name": NAMES[code],
                    "targets": [*(b for a, b in self.pairs if a == code), code],
                }
                for code in codes
            ]
        )

    async def settings(self, request: Request) -> Response:
        source, target = self.pairs[0]
        return JSONResponse(
            {
                "charLimit": 5000,
                "keyRequired": bool(self.key),
                "filesTranslation": self.has_files,
                "supportedFilesFormat": [".txt", ".docx"] if self.has_files else [],
                "language": {
                    "source": {"code": source, "name": NAMES[source]},
                    "target": {"code": target, "name": NAMES[target]},
                },
            }
        )

    def refusal(self, request: Request) -> Response | None:
        if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
            return JSONResponse({"error": "Please contact the server operator to get an API key"}, 400)
        if not self.refusals:
            return None
        status, message, seconds = self.refusals.pop(0)
        return JSONResponse({"error": message}, status, {"Retry-After": str(seconds)})

    async def stream(self, request: Request) -> Response:
        body = await request.json()
        self.asked.append(body)
        if refusal := self.refusal(request):
            return refusal
        return StreamingResponse(self.events(body), media_type="application/x-ndjson")

    async def events(self, body: dict[str, Any]) -> AsyncIterator[str]:
        text = body["q"]
        matches = list(_SENTENCE.finditer(text))
        start: dict[str, Any] = {
            "type": "start",
            "source": body["source"],
            "target": body["target"],
        }
        if body["source"] == "auto":
            start["detectedLanguage"] = {"language": self.pairs[0][0], "confidence": 97.0}
        yield _line({**start, "numSentences": len(matches)})
        translated, done = "", 0
        for number, match in enumerate(matches):
            await asyncio.sleep(self.delay_seconds)
            if number and self.break_after == number:
                yield _line({"type": "error", "error": "The translation took too long"})
                return
            source, before = match[0].rstrip(), text[done : match.start()]
            translated += before
            target = self.target(source, body["target"])
            details = self.details(source, target)
            places = {
                "source": {
                    "start": match.start(),
                    "end": match.start() + len(source),
                    "text": source,
                    "words": spans(source),
                },
                "target": {"start": len(translated), "end": len(translated + target), **details},
            }
            links = places["target"].pop("links")
            share = self.estimates.get(source)
            trust = {} if share is None else {"quality": share, "green": share >= 0.5}
            event = {"type": "sentence", "index": number, "before": before, "links": links}
            yield _line({**event, **places, **trust})
            translated, done = translated + target, match.start() + len(source)
        yield _line({"type": "end", "after": text[done:], "translatedText": translated})

    def target(self, source: str, language: str, prefix: str = "") -> str:
        """The translation word by word; a prefix stands for as many words as it has."""
        target = re.sub(r"\S+", lambda match: self.word(match[0], language), source)
        return " ".join([prefix, *target.split()[len(prefix.split()) :]]) if prefix else target

    def details(self, source: str, target: str) -> dict[str, Any]:
        """Words, their probabilities, and links between words in the same place."""
        words = [word.strip(_MARKS) for word in target.split()]
        num_links = min(len(source.split()), len(words))
        return {
            "text": target,
            "words": spans(target),
            "probabilities": [self.shares.get(word, 0.95) for word in words],
            "links": [[number, number] for number in range(num_links)],
        }

    async def alternatives(self, request: Request) -> Response:
        body = await request.json()
        if refusal := self.refusal(request):
            return refusal
        source = body["q"]
        best = self.target(source, body["target"], body.get("prefix", ""))
        texts = [best, *(f"{best} {n}" for n in range(1, body["alternatives"] + 1))]
        return JSONResponse(
            {
                "source": {"text": source, "words": spans(source)},
                "alternatives": [
                    {"score": -0.4 - 0.5 * rank, **self.details(source, text)} for rank, text in enumerate(texts)
                ],
            }
        )

    def word(self, word: str, language: str) -> str:
        bare = word.strip(_MARKS)
        if not any(character.isalnum() for character in bare):
            return word
        return word.replace(bare, self.words.get(bare, f"{language}-{bare}"))

    async def likely_words(self, request: Request) -> Response:
        body = await request.json()
        if refusal := self.refusal(request):
            return refusal
        prefix = body["prefix"].strip()
        words = self.target(body["q"], body["target"]).split()
        now = words[len(prefix.split())].strip(_MARKS)
        share = self.shares.get(now, 0.95)
        gap = " " if prefix else ""
        likely = [(now, share), *((f"other{n}", (1 - share) / 2**n) for n in range(1, 5))]
        return JSONResponse(
            {
                "words": [
                    {"text": gap + text, "prefix": prefix + gap + text, "probability": probability}
                    for text, probability in likely
                ]
            }
        )

    async def file(self, request: Request) -> Response:
        if refusal := self.refusal(request):
            return refusal
        async with request.form() as form:
            name, content = form["file"].filename, (await form["file"].read()).decode()
        self.content = content.upper()
        url = f"http://elsewhere:1/download_file/{'0' * 32}.{name}"
        return StreamingResponse(self._file_lines(url), media_type="application/x-ndjson")

    async def _file_lines(self, url: str) -> AsyncIterator[str]:
        total = self.num_sentences_of_file
        if total:
            yield json.dumps({"type": "progress", "done": total // 2, "total": total}) + "\n"
            while not self.may_end_file.is_set():
                await asyncio.sleep(0.01)
        yield json.dumps({"type": "end", "translatedFileUrl": url}) + "\n"

    async def download(self, request: Request) -> Response:
        return Response(self.content, headers={"content-disposition": "attachment"})


def spans(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\S+", text)]


def _line(values: dict[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False) + "\n"


@contextmanager
def running(pretended: PretendServer) -> Iterator[PretendServer]:
    """The server in a thread of its own."""
    config = uvicorn.Config(pretended.application(), port=0, log_level="error", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    sock = config.bind_socket()
    pretended.address = f"http://127.0.0.1:{sock.getsockname()[1]}/"
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
    thread.start()
    try:
        yield pretended
    finally:
        server.should_exit = True
        thread.join()
