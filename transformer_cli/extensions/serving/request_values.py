"""What a request brings along: its parameters, in JSON, in a form or in the address, and its key."""

import asyncio
import hashlib
import hmac
import json
import logging
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from mimetypes import MimeTypes
from pathlib import Path, PurePath
from typing import Any, NamedTuple, NoReturn
from urllib.parse import parse_qsl

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import HTTPConnection, Request

from transformer_cli.extensions.serving.limits import RefusedRequest, bad_request, try_later
from transformer_cli.process.errors import DataError, MissingInputError

logger = logging.getLogger(__name__)


_MAX_KEYS = 10_000
_SHORT_KEY = 16
# A person who mistypes a key does not wait; a program with wrong keys does.
_NUM_FREE_MISTAKES = 5
_SECONDS_OF_MISTAKES = 60.0
_DELAY_SECONDS = 1.0
_MAX_DELAYED = 16
_MAX_ADDRESSES = 10_000
_SCHEMES = ("bearer ", "deepl-auth-key ")


@dataclass(slots=True)
class _Mistakes:
    """The wrong keys that came from one address."""

    forgotten_at: float
    num: int = 0
    num_delayed: int = 0
    """Of them, those that are not answered yet, or whose client has not waited for the answer."""

    def end_delay(self) -> None:
        self.num_delayed -= 1


class ApiKeys:
    """The keys of a server; without any key, everybody may ask. Only their digests are kept."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._digests = [_digest(key) for key in keys]
        self._mistakes: OrderedDict[str, _Mistakes] = OrderedDict()

    def __repr__(self) -> str:
        return f"ApiKeys({len(self._digests)} keys)"

    @property
    def are_required(self) -> bool:
        """Whether a request needs a key."""
        return bool(self._digests)

    def allow(self, key: str) -> bool:
        """Whether this is one of the keys; the comparison takes the same time for every key."""
        given = _digest(key)
        # All keys are compared, so that the time does not say which of them is similar.
        return any([hmac.compare_digest(given, digest) for digest in self._digests])

    def owner(self, key: str) -> bytes:
        """To whom belongs what a client with this key leaves on the server; without keys all clients are the same."""
        return _digest(key) if self._digests else b""

    async def check(self, connection: HTTPConnection, key: str, refusal: RefusedRequest) -> None:
        """Refuse a request that has no valid key, if the server needs keys; later, if its address has sent many wrong ones.

        A valid key is never delayed: else one client with wrong keys would stop all others of its address.

        Raises:
            RefusedRequest: `refusal`; or 429, if many wrong keys of this address are being refused.
        """
        if not self._digests or self.allow(key):
            return
        if not key:
            raise refusal
        mistakes = self._mistakes_of(connection.client.host if connection.client else "")
        if mistakes.num_delayed >= _MAX_DELAYED:
            raise try_later(429, "Slowdown: too many wrong API keys")
        mistakes.num += 1
        if mistakes.num > _NUM_FREE_MISTAKES:
            mistakes.num_delayed += 1
            asyncio.get_running_loop().call_later(_DELAY_SECONDS, mistakes.end_delay)
            await asyncio.sleep(_DELAY_SECONDS)
        raise refusal

    def _mistakes_of(self, address: str) -> _Mistakes:
        """The mistakes of an address that has just made one."""
        now = time.monotonic()
        # They stand in the order in which they are forgotten.
        while self._mistakes and next(iter(self._mistakes.values())).forgotten_at < now:
            self._mistakes.popitem(last=False)
        found = self._mistakes.get(address)
        if found is None:
            if len(self._mistakes) >= _MAX_ADDRESSES:
                self._mistakes.popitem(last=False)
            found = self._mistakes[address] = _Mistakes(now + _SECONDS_OF_MISTAKES)
        return found


def key_in_header(authorization: str) -> str:
    """The key of the header Authorization: `Bearer KEY`, or `DeepL-Auth-Key KEY`; empty if there is none."""
    for scheme in _SCHEMES:
        if authorization.lower().startswith(scheme):
            return authorization[len(scheme) :].strip()
    return ""


def read_api_keys(path: Path) -> ApiKeys:
    """The keys of a file: one on each line; blank lines and lines that begin with # are skipped.

    Raises:
        MissingInputError: there is no such file.
        DataError: it cannot be read, or holds no key.
    """
    try:
        text = path.read_text(
            encoding="utf-8-sig"
        )  # editors of Windows write a mark, which would belong to the first key
    except FileNotFoundError:
        raise MissingInputError(f"--api-keys {path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"--api-keys {path}: cannot be read ({type(error).__name__})",
            hint="the file has one key on each line, in UTF-8",
        ) from None
    lines = [line.strip() for line in text.splitlines()]
    keys = [line for line in lines if line and not line.startswith("#")]
    if not keys:
        raise DataError(f"--api-keys {path}: the file holds no key", hint="write one key on each line")
    if len(keys) > _MAX_KEYS:
        raise DataError(f"--api-keys {path}: {len(keys)} keys, but at most {_MAX_KEYS} are possible")
    if (num_short := sum(len(key) < _SHORT_KEY for key in keys)) > 0:
        logger.warning(
            "--api-keys %s: %d of %d keys have less than %d characters, so that they could be guessed",
            path,
            num_short,
            len(keys),
            _SHORT_KEY,
        )
    return ApiKeys(keys)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


_MAX_FIELDS = 1000
_MAX_NUMBERS = 10_000


class ReceivedFile(NamedTuple):
    """A file of a multipart form."""

    name: str
    data: bytes


class RequestValues:
    """The parameters of a request by name; a parameter without a value is absent."""

    def __init__(self, values: Mapping[str, Any], *, is_json: bool) -> None:
        self._values = values
        self.is_json = is_json
        """Whether they came as JSON; only then a value can be something else than text."""

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def text(self, name: str, default: str = "") -> str:
        """A parameter that is one text.

        Raises:
            RefusedRequest: it is something else.
        """
        value = self._values.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise bad_request(f"Invalid request: {name} must be a string")
        return _checked(name, value)

    def word(self, name: str, default: str = "") -> str:
        """A parameter that is one of a few words, in small letters; JSON may have a number, or true and false for 1 and 0."""
        value = self._values.get(name)
        if isinstance(value, (int, float)):  # true and false are numbers in Python
            value = f"{value:g}"
        elif value is None or isinstance(value, str):
            value = self.text(name).strip().lower()
            value = {"true": "1", "false": "0"}.get(value, value)
        else:
            raise bad_request(f"Invalid request: {name} must be a string")
        return value or default

    def texts(self, name: str) -> str | list[str]:
        """A parameter that is a text, or a list of texts in JSON or a repeated field of a form."""
        value = self._values.get(name)
        if not isinstance(value, list):
            return self.text(name)
        if not all(isinstance(each, str) for each in value):
            raise bad_request(f"Invalid request: {name} must be a string or a list of strings")
        return [_checked(name, each) for each in value]

    def listed(self, name: str) -> list[str]:
        """As `texts`; one text is a list of one."""
        found = self.texts(name)
        return [found] if isinstance(found, str) else found

    def objects(self, name: str) -> list["RequestValues"]:
        """A parameter of JSON that is a list of objects.

        Raises:
            RefusedRequest: it is something else.
        """
        found = self._values.get(name) or []
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            raise bad_request(f"Invalid request: {name} must be a list of objects")
        return [RequestValues(each, is_json=self.is_json) for each in found]

    def needed_texts(self, *names: str) -> list[str]:
        """Parameters that are one text each, and not empty."""
        found = [self.text(name) for name in names]
        for name, value in zip(names, found, strict=True):
            if not value:
                raise bad_request(f"Invalid request: missing {name} parameter")
        return found

    def count(self, name: str, most: int) -> int:
        """A parameter that is a whole number from 0 to `most`; a form has its digits. Absent: 0."""
        value = self._values.get(name)
        if value is None or value == "":
            return 0
        if isinstance(value, str) and value.strip().isascii() and value.strip().isdecimal():
            value = int(value) if len(value) < 10 else 10**9
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise bad_request(f"Invalid request: {name} must be a whole number from 0")
        if value > most:
            raise bad_request(f"Invalid request: {name} ({value}) exceeds the limit ({most})")
        return value

    def counts(self, name: str) -> list[int]:
        """A parameter of JSON that is a list of whole numbers, from 0; empty if it is absent."""
        value = self._values.get(name)
        if value is None:
            return []
        is_list = isinstance(value, list) and len(value) <= _MAX_NUMBERS
        if not is_list or any(type(each) is not int or each < 0 for each in value):
            raise bad_request(f"Invalid request: {name} must be a list of whole numbers from 0")
        return list(value)

    def switch(self, name: str, default: bool = False) -> bool:
        """A parameter that is yes or no."""
        value = self._values.get(name)
        if value is None or value == "":
            return default
        named = {"1": True, "true": True, "0": False, "false": False}
        if isinstance(value, bool):
            return value
        if str(value).lower() in named:
            return named[str(value).lower()]
        raise bad_request(f"Invalid request: {name} must be true or false")

    def file(self, name: str) -> ReceivedFile:
        """A file of a multipart form."""
        value = self._values.get(name)
        if not isinstance(value, ReceivedFile):
            raise bad_request(f"Invalid request: missing {name} parameter")
        return value


async def read_values(request: Request, *, lists: frozenset[str] = frozenset()) -> RequestValues:
    """The parameters of a request; those in the body count before those in the query string.

    Args:
        lists: the fields that a form repeats for a list.

    Raises:
        RefusedRequest: the body is damaged or of an unknown type.
    """
    query_fields = _fields(_decoded("query string", request.scope["query_string"]), lists)
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_json = content_type == "application/json" or content_type.endswith("+json")
    # Clients that name one type for all of their requests name it for an empty body, too.
    if is_json and (await request.body()).strip():
        return RequestValues(_parsed(await request.body()), is_json=True)
    if content_type == "application/x-www-form-urlencoded":
        fields = _fields(_decoded("form", await request.body()), lists)
        return RequestValues(query_fields | fields, is_json=False)
    if content_type == "multipart/form-data":
        try:
            form = await request.form(max_fields=_MAX_FIELDS, max_files=1)
        except (MultiPartException, HTTPException) as error:
            detail = getattr(error, "message", None) or getattr(error, "detail", "")
            raise bad_request(f"Invalid request: the form is damaged: {detail}") from None
        items = [(name, await _received(value)) for name, value in form.multi_items()]
        return RequestValues(query_fields | _fields(items, lists), is_json=False)
    body = await request.body()
    if body.strip() and request.method == "POST":
        raise RefusedRequest(
            415,
            "Content-Type must be application/json, application/x-www-form-urlencoded or multipart/form-data",
        )
    return RequestValues(query_fields, is_json=False)


def _decoded(place: str, encoded: bytes) -> list[tuple[str, str]]:
    """The names and values of a form or a query string; curl sends UTF-8 without the escapes of URLs, too."""
    try:
        text = encoded.decode()
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
    except UnicodeDecodeError:
        raise bad_request(f"Invalid request: the {place} is not UTF-8") from None
    except ValueError:
        raise bad_request(f"Invalid request: the {place} has more than {_MAX_FIELDS} fields") from None


async def _received(value: str | UploadFile) -> str | ReceivedFile:
    """The value of a field; a file is read and closed, so that no error leaves it open."""
    if isinstance(value, str):
        return value
    try:
        return ReceivedFile(_with_ending(value.filename or "", value.content_type), await value.read())
    finally:
        await value.close()


def _with_ending(name: str, content_type: str | None) -> str:
    """The name of a file; one without an ending gets that of the content type, if it says one: file, text/html -> file.html"""
    if not name or PurePath(name).suffix:
        return name
    kind = (content_type or "").partition(";")[0].strip().lower()
    # Without the tables of the system, so that the answer is the same on every machine.
    return name + (MimeTypes().guess_extension(kind) or "")


def _fields(items: list[tuple[str, Any]], lists: frozenset[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in items:
        if name in lists:
            values.setdefault(name, []).append(value)
        else:
            values.setdefault(name, value)
    return values


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise bad_request("Invalid request: the body is not valid JSON") from None
    if not isinstance(parsed, dict):
        raise bad_request("Invalid request: the body must be a JSON object")
    return parsed


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)


def _checked(name: str, value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise bad_request(f"Invalid request: {name} is not valid Unicode: it has lone surrogates") from None
    return value
