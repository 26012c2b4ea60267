"""A server with a pretended translator, for tests of the page: it says what a test wants, at once, and counts requests."""

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from transformer_cli.serving.page.page_routes import page_routes

NAMES = {"en": "English", "it": "Italian", "de": "German", "ar": "Arabic"}
_SENTENCE = re.compile(r"\S[^.!?\n]*[.!?]*")
_WORD = re.compile(r"[\w'-]+|[^\w\s]")


@dataclass
class PretendServer:
    """Translates word by word: each word gets the target language in front, or the entry of `words`."""

    words: dict[str, str] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)
    """Probabilities of target words; 0.95 for others."""
    pairs: list[tuple[str, str]] = field(default_factory=lambda: [("en", "it"), ("it", "en")])
    delay_seconds: float = 0.0
    refusals: list[tuple[int, str, int]] = field(default_factory=list)
    """Status, message and Retry-After of the next requests for translations."""
    is_loading: bool = False
    has_files: bool = True
    key: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    """The bodies of all requests for translations."""
    address: str = ""

    def application(self) -> Starlette:
        return Starlette(
            routes=[
                *page_routes(),
                Route("/languages", self.languages),
                Route("/frontend/settings", self.settings),
                Route("/translate_stream", self.stream, methods=["POST"]),
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
            return JSONResponse(
                {"error": "Please contact the server operator to get an API key"}, 400
            )
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
        if body["source"] == "auto":
            yield json.dumps({"detectedLanguage": {"language": "en", "confidence": 97.0}}) + "\n"
        for match in _SENTENCE.finditer(body["q"]):
            await asyncio.sleep(self.delay_seconds)
            sentence = self.sentence(match[0].rstrip(), body)
            sentence |= {"start": match.start(), "end": match.start() + len(sentence["source"])}
            yield json.dumps({"sentence": sentence}, ensure_ascii=False) + "\n"

    def sentence(self, source: str, body: dict[str, Any]) -> dict[str, Any]:
        prefix = body.get("prefix", "")
        found = [match.span() for match in _WORD.finditer(source)]
        pieces = [self.word(source[start:end], body["target"]) for start, end in found]
        target = prefix
        begun = len(_WORD.findall(prefix))
        words, links = [list(match.span()) + [0.95] for match in _WORD.finditer(prefix)], []
        for number, piece in enumerate(pieces):
            links.append([number, number])
            if number < begun:
                continue
            gap = " " if target and (piece[0].isalnum()) else ""
            start = len(target + gap)
            target += gap + piece
            words.append([start, len(target), self.shares.get(piece, 0.95)])
        alternatives = [{"text": target, "score": -0.4}]
        for number in range(1, body.get("alternatives", 0) + 1):
            alternatives.append({"text": f"{target} {number}", "score": -0.4 - 0.5 * number})
        return {
            "source": source,
            "target": target,
            "gap": " ",
            "words": words,
            "source_words": [list(span) for span in found],
            "links": links,
            "alternatives": alternatives,
        }

    def word(self, word: str, target: str) -> str:
        return self.words.get(word, f"{target}-{word}" if word[0].isalnum() else word)

    async def likely_words(self, request: Request) -> Response:
        body = await request.json()
        if refusal := self.refusal(request):
            return refusal
        sentence = self.sentence(body["q"], {**body, "prefix": ""})
        place = len(_WORD.findall(body["prefix"]))
        start, end, share = sentence["words"][place]
        gap = " " if body["prefix"] and not body["prefix"].endswith(" ") else ""
        words = [{"text": gap + sentence["target"][start:end], "probability": share}]
        words += [
            {"text": f"{gap}other{n}", "probability": (1 - share) / 2**n} for n in range(1, 5)
        ]
        return JSONResponse({"words": words})

    async def file(self, request: Request) -> Response:
        if refusal := self.refusal(request):
            return refusal
        async with request.form() as form:
            name, content = form["file"].filename, (await form["file"].read()).decode()
        self.content = content.upper()
        return JSONResponse({"translatedFileUrl": f"http://elsewhere:1/download_file/{'0' * 32}.{name}"})  # fmt: skip

    async def download(self, request: Request) -> Response:
        return Response(self.content, headers={"content-disposition": "attachment"})


@contextmanager
def running(pretended: PretendServer) -> Iterator[PretendServer]:
    """The server in a thread of its own."""
    config = uvicorn.Config(
        pretended.application(), port=0, log_level="error", timeout_graceful_shutdown=1
    )
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
