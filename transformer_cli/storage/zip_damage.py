"""Damage of a zip file, which Python tells by exceptions of many kinds."""

import errno
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from transformer_cli.process.errors import DataError

ZIP_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,  # an unknown kind of compression
    RuntimeError,  # an encrypted part
    ValueError,  # a place before the beginning of the data
)


@contextmanager
def zip_damage_explained(message: str, hint: str | None = None) -> Iterator[None]:
    """Turn the errors that a damaged zip file raises in the block into a DataError."""
    try:
        yield
    except ZIP_DAMAGE as error:
        raise DataError(f"{message}: {error}", hint=hint) from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # a place before the beginning of the file
            raise
        raise DataError(f"{message}: {error.strerror}", hint=hint) from error
