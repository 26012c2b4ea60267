"""Refusals: the answers of a server to a request that it does not fulfil."""

from collections.abc import Mapping


class RefusedRequest(Exception):
    """A request that is not fulfilled: the status code of HTTP, and a sentence for the client."""

    def __init__(
        self, status: int, message: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
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
