"""In which encoding unknown files are written: UTF-8 if they can be read so, else the reading that looks most like a language."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from transformer_cli.config.data import known_encoding
from transformer_cli.data.sources.decompression import read_chunks
from transformer_cli.data.sources.lines import UTF_16_MARKS
from transformer_cli.process.errors import DataError, UsageError
from transformer_cli.process.escaping import on_one_line
from transformer_cli.text.legacy_encodings import (
    Reading,
    hint_for,
    is_mixed,
    is_not_utf_8,
    likely_readings,
    lines_not_utf_8,
)

_MAX_BYTES = 1 << 26
"""Of a larger file, this much is looked at."""


class FoundEncoding(NamedTuple):
    """The encoding of files."""

    name: str | None
    """As a config has it; None: UTF-8."""
    doubt: str | None = None
    """How it was found out, in words, for a person to check."""


def encoding_of(paths: Sequence[Path], given: str | None) -> FoundEncoding:
    """The one encoding of all these files of text.

    Args:
        given: the encoding that the user names; None: it is found out.

    Raises:
        UsageError: there is no encoding of the given name.
        DataError: two readings are nearly as likely, or the files are in different encodings.
    """
    if given is not None:
        name = known_encoding(given)
        if name is None:
            raise UsageError(
                f"--encoding {given}: no such encoding is known",
                hint="such as windows-1252, iso-8859-2, shift_jis or utf-16",
            )
        return FoundEncoding(None if name == "utf-8" else given)
    texts = {path: _beginning(path) for path in dict.fromkeys(paths)}
    marked = [path for path, text in texts.items() if text.startswith(UTF_16_MARKS)]
    if marked and len(marked) == len(texts):
        return FoundEncoding("utf-16")
    legacy = {path: text for path, text in texts.items() if is_not_utf_8(text)}
    if marked or not legacy:  # UTF-16 beside another encoding is refused where the lines are read
        return FoundEncoding(None)
    _refuse_mixture(texts, legacy)
    readings = likely_readings(b"\n".join(legacy.values()))
    if len(readings) != 1:
        raise not_certain(", ".join(map(str, legacy)), readings)
    [reading] = readings
    _require_one_encoding(legacy, reading)
    return FoundEncoding(
        reading.encoding,
        f"{', '.join(on_one_line(path.name, 50) for path in legacy)}: not UTF-8, and read as {reading}; "
        "if these words are wrong, name the right encoding with --encoding",
    )


def not_certain(where: str, readings: Sequence[Reading]) -> DataError:
    """The error for a text that is not UTF-8, and of which no reading is clearly the best."""
    if not readings:
        return DataError(f"{where}: not UTF-8, and no encoding is known that makes words of it")
    shown = "".join(f"\n    {reading}" for reading in readings)
    return DataError(
        f"{where}: not UTF-8, and it can be read in {len(readings)} ways:{shown}",
        hint=hint_for(readings),
    )


def _beginning(path: Path) -> bytes:
    text = bytearray()
    for chunk in read_chunks(path):
        text += chunk
        if len(text) > _MAX_BYTES:
            # The last line may be cut in the middle of a character.
            return bytes(text[: text.rfind(b"\n") + 1] or text)
    return bytes(text)


def _refuse_mixture(texts: dict[Path, bytes], legacy: dict[Path, bytes]) -> None:
    for path, text in texts.items():
        is_utf_8 = path not in legacy and not text.isascii()
        if (legacy.get(path) and is_mixed(text)) or is_utf_8:
            first = likely_readings(lines_not_utf_8(next(iter(legacy.values()))))
            likely = first[0].encoding if first else "windows-1252"
            what = f"{path} is UTF-8, and {next(iter(legacy))} is not" if is_utf_8 else f"{path}: some of its lines are UTF-8, and others are not"  # fmt: skip
            raise DataError(
                what,
                hint=f"convert what is not UTF-8: iconv -f {likely} -t UTF-8 OLD > NEW; "
                "or name one encoding for all of it with --encoding, and what is no text in it counts as damaged",
            )


def _require_one_encoding(legacy: dict[Path, bytes], reading: Reading) -> None:
    alone = {path: likely_readings(text)[:1] for path, text in legacy.items()}
    if len(legacy) > 1 and any(
        not found
        or legacy[path].decode(found[0].encoding, "replace")
        != legacy[path].decode(reading.encoding, "replace")
        for path, found in alone.items()
    ):
        shown = "".join(f"\n    {path}: {found[0] if found else 'not known'}" for path, found in alone.items())  # fmt: skip
        raise DataError(
            f"the files are in different encodings:{shown}",
            hint="convert them to UTF-8: iconv -f ENCODING -t UTF-8 OLD > NEW",
        )
