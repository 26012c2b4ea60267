"""Responses that arrive line by line: one JSON object in each line (NDJSON)."""

import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from transformer_cli.extensions.serving.batching.jobs import Job
from transformer_cli.extensions.serving.translation_service import TranslationService

NDJSON = "application/x-ndjson"


class StreamOfJob(StreamingResponse):
    """A stream whose job ends with it, whatever happens."""

    def __init__(self, service: TranslationService, job: Job, lines: AsyncIterator[str]) -> None:
        super().__init__(
            lines,
            media_type=NDJSON,
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )
        self._service = service
        self._job = job

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._service.leave(self._job)


def json_line(values: dict[str, Any]) -> str:
    """A line of such a response."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")) + "\n"
