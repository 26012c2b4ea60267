"""A file that a command writes beside its output, such as a picture or a page; the log says its size."""

import logging
from pathlib import Path

from transformer_cli.commands.streams.output_file import opened_output
from transformer_cli.storage.filesystem import size_in_words

logger = logging.getLogger(__name__)


def write_and_tell(path: Path, content: bytes, more: str = "") -> None:
    """Write a file, and log its name and its size.

    Args:
        path: checked by `check_output` before.
        content: of the file.
        more: what the log line says after the size.
    """
    with opened_output(path) as write:
        write(content)
    logger.info("wrote %s (%s)%s", path, size_in_words(len(content)), more)
