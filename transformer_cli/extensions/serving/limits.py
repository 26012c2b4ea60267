"""The limits of a server, and the refusals of requests that it does not fulfil."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a server. All of them are on by default."""

    max_body_bytes: int = 1 << 20
    """Largest body of a request with text."""
    max_file_bytes: int = 20 << 20
    """Largest body of a request with a file."""
    max_texts: int = 128
    """Largest number of texts of one request."""
    max_characters: int = 5000
    """Largest number of characters of one text."""
    max_alternatives: int = 7
    """Largest number of alternatives of one text; the beam is one wider than that, or as the config says."""
    max_requests: int = 256
    """Largest number of requests that are translated or wait for it; further requests are refused."""
    deadline_seconds: float = 60.0
    """Longest time from the end of a request to its translation."""
    read_seconds: float = 30.0
    """Longest time in which a client sends its request, or reads a piece of the response."""
    file_deadline_seconds: float = 600.0
    """The same for a file."""
    max_files: int = 2
    """Largest number of files that are read and translated at the same time; others wait for their turn."""
    max_waiting_files: int = 16
    """Largest number of files that wait; further files are refused before they are received."""
    max_segments: int = 20_000
    """Largest number of texts of a file, such as lines, paragraphs or cells."""
    max_file_characters: int = 1_000_000
    """Largest number of characters of all texts of a file."""
    max_file_parts: int = 500_000
    """Largest number of parts of a file that are looked at, such as tags and values."""
    kept_files_bytes: int = 256 << 20
    """Largest memory for translated files that clients have not downloaded yet, or may download again."""
    drain_seconds: float = 20.0
    """Longest time for which the requests in progress are finished after SIGTERM."""
    cache_bytes: int = 64 << 20
    """Largest memory for translations that are kept, about."""


class RefusedRequest(Exception):
    """A request that is not fulfilled: the status code of HTTP, and a sentence for the client."""

    def __init__(self, status: int, message: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})


def bad_request(message: str) -> RefusedRequest:
    """400: the request is wrong, and the same request will be refused again."""
    return RefusedRequest(400, message)


def too_large(message: str) -> RefusedRequest:
    """413: a smaller request would be fulfilled; the connection ends, since the rest of the request is not read."""
    return RefusedRequest(413, message, headers={"Connection": "close"})


def try_later(status: int, message: str, *, seconds: int = 1) -> RefusedRequest:
    """A refusal of a request that may succeed later: `Retry-After` says when to try again."""
    return RefusedRequest(status, message, headers={"Retry-After": str(seconds)})
