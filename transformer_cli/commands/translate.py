"""`tfm translate`: sentences, a file or standard input, line by line."""

import json
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from transformer_cli.data.sources.lines import UTF_16_FOUND, UTF_16_MARKS, utf_16_error
from transformer_cli.decoding.translator import Translation, Translator
from transformer_cli.errors import CannotCreateError, MissingInputError, UsageError
from transformer_cli.inference import load_for_inference
from transformer_cli.storage import staged_file

logger = logging.getLogger(__name__)


def run_translation(
    sentences: Sequence[str] | Path | None,
    output_file: Path | None,
    *,
    run: str | None,
    overrides: Sequence[str],
    as_json: bool,
) -> None:
    """Translate arguments, a file, or standard input where neither is given."""
    if isinstance(sentences, Path):
        _check_files(sentences, output_file)
    if output_file is not None and not output_file.parent.is_dir():
        raise CannotCreateError(f"{output_file}: there is no folder {output_file.parent}")
    if output_file is not None and output_file.is_dir():
        raise CannotCreateError(f"{output_file}: a folder, where a file is to be written")
    translator = load_for_inference(run, overrides).translator
    if translator.decoding.num_best > 1 and not as_json:
        logger.warning("one translation per line: more (decoding.num_best) are shown with --json")
    with _opened_output(output_file) as output:
        # Arguments, and what a person types or a slow program pipes in, are answered line by line.
        for translation in _translations(translator, sentences):
            output.write(_line(translation, as_json=as_json).encode() + b"\n")
        output.flush()


def _check_files(input_file: Path, output_file: Path | None) -> None:
    if not input_file.is_file():
        problem = "a folder, where a file is expected" if input_file.is_dir() else "no such file"
        raise MissingInputError(
            f"{input_file}: {problem}", hint="--input takes a text file, one sentence per line"
        )
    if output_file is not None and output_file.exists() and output_file.samefile(input_file):
        raise UsageError(
            f"{output_file}: the output would replace the input", hint="name another --output"
        )
    with input_file.open("rb") as file:
        if file.read(2) in UTF_16_MARKS:
            raise utf_16_error(input_file)


def _translations(
    translator: Translator, sentences: Sequence[str] | Path | None
) -> Iterator[Translation]:
    if isinstance(sentences, Path):
        with sentences.open("rb") as file:
            yield from translator.translate(decoded_lines(file, str(sentences)))
    elif sentences is not None:
        yield from translator.translate(map(_as_text, sentences))
    elif sys.stdin is not None and sys.stdin.isatty():
        logger.info("type a sentence and press Enter; Ctrl-D ends")
        for line in decoded_lines(sys.stdin.buffer, "standard input"):
            yield from translator.translate([line])
            sys.stdout.flush()
    elif sys.stdin is not None:
        yield from translator.translate(decoded_lines(sys.stdin.buffer, "standard input"))


def _as_text(argument: str) -> str:
    """Bytes that are not UTF-8 arrive as lone surrogates, which no output can hold; they become U+FFFD."""
    return os.fsencode(argument).decode("utf-8", errors="replace")


def decoded_lines(file: BinaryIO, name: str) -> Iterator[str]:
    """The lines of a file: split on line feeds only, and never lost; bad bytes become U+FFFD.

    Text that says itself to be UTF-16 is told as such, when it comes.
    """
    num_replaced = 0
    is_utf_16_told = False
    for number, raw in enumerate(_without_byte_order_mark(file), start=1):
        if not is_utf_16_told and raw.startswith(UTF_16_MARKS):
            is_utf_16_told = True
            logger.warning(
                "%s:%d: %s; what comes out of it makes no sense; convert it before: "
                "iconv -f UTF-16 -t UTF-8 FILE | tfm translate",
                name,
                number,
                UTF_16_FOUND,
            )
        line = raw.removesuffix(b"\n").removesuffix(b"\r")
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError:
            num_replaced += 1
            yield line.decode("utf-8", errors="replace")
    if num_replaced:
        logger.warning(
            "%s: lines that are not UTF-8, their bad bytes replaced: %d", name, num_replaced
        )


def _without_byte_order_mark(file: BinaryIO) -> Iterable[bytes]:
    for number, raw in enumerate(file):
        yield raw.removeprefix(b"\xef\xbb\xbf") if number == 0 else raw


def _line(translation: Translation, *, as_json: bool) -> str:
    if not as_json:
        return translation.text
    return json.dumps(
        {
            "source": translation.source,
            "translation": translation.text,
            "score": translation.score,
            "alternatives": [alternative._asdict() for alternative in translation.alternatives],
        },
        ensure_ascii=False,
    )


@contextmanager
def _opened_output(path: Path | None) -> Iterator[BinaryIO]:
    """Standard output, or a file that appears when it is complete."""
    if path is None:
        yield sys.stdout.buffer
        return
    with staged_file(path) as partial, partial.open("wb") as file:
        yield file
