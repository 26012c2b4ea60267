"""Downloads of files: a broken one goes on where it stopped, and a file appears whole or not at all."""

import errno
import http.client
import json
import logging
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from transformer_cli import __version__
from transformer_cli.process.errors import DataError, MissingInputError, TryAgainError
from transformer_cli.storage import errors_explained
from transformer_cli.storage.filesystem import NO_SPACE, REAL

logger = logging.getLogger(__name__)

Progress = Callable[[int, int | None], None]
"""Gets the bytes that are here, and the size of the file if the server names it."""

_CHUNK_BYTES = 1 << 18
_TIMEOUT_SECONDS = 60.0
_NUM_TRIES = 5
_GONE = (400, 401, 403, 404, 410)
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-\d+/(\d{1,18}|\*)")


class _Interrupted(Exception):
    """The connection broke, or the server asks to come again."""


def download(url: str, path: Path, *, progress: Progress, first_wait_seconds: float = 1.0) -> None:
    """Download a file; what an earlier call has left of it is not downloaded again.

    Args:
        path: where it appears when it is complete; beside it stand the unfinished file and a note about it.
        first_wait_seconds: the wait after the first broken connection; it doubles after each.

    Raises:
        MissingInputError: the server has no such file, or does not give it.
        TryAgainError: the connection broke several times.
        DataError: the server redirects to an address that is no https.
    """
    if path.exists():
        return
    unfinished = path.with_name(path.name + ".part")
    for number in range(_NUM_TRIES):
        try:
            _go_on(url, unfinished, progress)
        except (_Interrupted, http.client.HTTPException, OSError) as error:
            if isinstance(error, urllib.error.HTTPError) and error.code in _GONE:
                raise _refused(url, error) from error
            if isinstance(error, OSError) and error.errno in _ERRORS_OF_DISK:
                with errors_explained(unfinished, fs=REAL):
                    raise
            logger.info("%s: %s", url, _reason(error))
            if number + 1 == _NUM_TRIES:
                raise _broken(url, unfinished, error) from error
            time.sleep(first_wait_seconds * 2**number)
        else:
            with errors_explained(path, fs=REAL):
                REAL.flush_path(unfinished)
                REAL.rename(unfinished, path)
                REAL.flush_path(path.parent)
            _note_file(unfinished).unlink(missing_ok=True)
            return


_ERRORS_OF_DISK = NO_SPACE | {errno.EROFS, errno.EIO, errno.EACCES}


def _go_on(url: str, unfinished: Path, progress: Progress) -> None:
    """Download the rest of a file, or all of it if the server cannot give the rest or has another file now."""
    num_here, validator = _state(url, unfinished)
    headers = {"User-Agent": f"tfm/{__version__}", "Accept-Encoding": "identity"}
    if num_here and validator:
        headers |= {"Range": f"bytes={num_here}-", "If-Range": validator}
    request = urllib.request.Request(_with_escapes(url), headers=headers)
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # the server has fewer bytes than are here
            unfinished.unlink(missing_ok=True)
        raise
    with response:
        if urlsplit(url).scheme == "https" and urlsplit(response.url).scheme != "https":
            raise DataError(f"{url}: redirects to {response.url}, which is not encrypted")
        start, size = _extent(response, num_here)
        with unfinished.open("r+b" if start else "wb") as file:
            file.truncate(start)
            file.seek(start)
            # Only now: bytes of an earlier version never stand beside the validator of this one.
            note = {"url": url, "validator": _validator_of(response)}
            _note_file(unfinished).write_text(json.dumps(note), encoding="utf-8")
            num_here = start
            while chunk := response.read(_CHUNK_BYTES):
                file.write(chunk)
                num_here += len(chunk)
                progress(num_here, size)
    if size is not None and num_here != size:
        raise _Interrupted(f"the connection ended after {num_here:,} of {size:,} bytes")


def _with_escapes(url: str) -> str:
    """The address with its spaces and its letters beyond ASCII as escapes, such as %20; those that it has stay."""
    parts = urlsplit(url)
    path, query = (quote(part, safe="/%:@!$&'()*+,;=~?") for part in (parts.path, parts.query))
    return parts._replace(path=path, query=query).geturl()


def _extent(response: Any, num_here: int) -> tuple[int, int | None]:
    """The position of the first byte of the response in the file, and the size of the file."""
    length = response.headers.get("Content-Length") or ""
    num_bytes = int(length) if re.fullmatch(r"[0-9]{1,18}", length) else None
    if response.status == 206:
        found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if found is None or int(found[1]) != num_here:
            raise _Interrupted("the server answered with another part of the file")
        if found[2] != "*":
            return num_here, int(found[2])
        return num_here, None if num_bytes is None else num_here + num_bytes
    return 0, num_bytes


def _validator_of(response: Any) -> str | None:
    """What tells this version of the file from others: a strong ETag, or the time of its last change."""
    tag = response.headers.get("ETag", "")
    if tag and not tag.startswith("W/"):
        return str(tag)
    changed = response.headers.get("Last-Modified")
    return str(changed) if changed else None


def _state(url: str, unfinished: Path) -> tuple[int, str | None]:
    """How many bytes are here, and the validator of their version."""
    try:
        note = json.loads(_note_file(unfinished).read_text(encoding="utf-8"))
        if note["url"] == url and isinstance(note["validator"], str):
            return unfinished.stat().st_size, note["validator"]
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return 0, None


def _note_file(unfinished: Path) -> Path:
    return unfinished.with_name(unfinished.name + ".json")


def _reason(error: BaseException) -> str:
    return str(getattr(error, "reason", "") or error or type(error).__name__)


def _refused(url: str, error: urllib.error.HTTPError) -> MissingInputError:
    return MissingInputError(
        f"{url}: the server answered {error.code} {error.reason}",
        hint="the corpus has moved, or needs a login; look for it on its web page, and use tfm data import",
    )


def _broken(url: str, unfinished: Path, error: BaseException) -> TryAgainError:
    size = unfinished.stat().st_size if unfinished.exists() else 0
    return TryAgainError(
        f"{url}: {_reason(error)}; {size:,} bytes are here, after {_NUM_TRIES} tries",
        hint="run the same command again later: it goes on from there",
    )


def remove_download(path: Path) -> None:
    """Remove a downloaded file, and what is left of an unfinished one."""
    unfinished = path.with_name(path.name + ".part")
    for file in (path, unfinished, _note_file(unfinished)):
        with errors_explained(file, fs=REAL):
            if os.path.lexists(file):
                REAL.remove_file(file)
