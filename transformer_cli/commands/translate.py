"""`tfm translate`: translate sentences, a file, or standard input, line by line."""

import codecs
import json
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from transformer_cli.data.sources.lines import UTF_16_FOUND, UTF_16_MARKS, utf_16_error
from transformer_cli.decoding import Translation, Translator, UnknownWords
from transformer_cli.errors import CannotCreateError, MissingInputError, UsageError
from transformer_cli.inference import load_run
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
    """Translate sentences, a file, or standard input if `sentences` is None; to standard output or a file."""
    if isinstance(sentences, Path):
        _check_files(sentences, output_file)
    if output_file is not None and not output_file.parent.is_dir():
        raise CannotCreateError(f"{output_file}: there is no folder {output_file.parent}")
    if output_file is not None and output_file.is_dir():
        raise CannotCreateError(f"{output_file}: this is a folder; --output takes a file")
    translator = load_run(run, overrides).translator
    if translator.decoding.num_best > 1 and not as_json:
        logger.warning(
            "showing one translation per line; to see all %d (decoding.num_best), add --json",
            translator.decoding.num_best,
        )
    unknown_words = UnknownWords()
    with _opened_output(output_file) as output:
        for translation in _translations(translator, sentences, unknown_words):
            output.write(_line(translation, as_json=as_json).encode() + b"\n")
            unknown_words.add(translation)
        output.flush()
    unknown_words.report()


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
    translator: Translator, sentences: Sequence[str] | Path | None, unknown_words: UnknownWords
) -> Iterator[Translation]:
    if isinstance(sentences, Path):
        with sentences.open("rb") as file:
            yield from translator.translate(decoded_lines(file, str(sentences)))
    elif sentences is not None:
        yield from translator.translate(map(_as_text, sentences))
    elif sys.stdin.isatty():
        logger.info("type a sentence and press Enter; Ctrl-D ends")
        for line in decoded_lines(sys.stdin.buffer, "standard input"):
            yield from translator.translate([line])
            sys.stdout.flush()
            unknown_words.report()
    else:
        yield from translator.translate(decoded_lines(sys.stdin.buffer, "standard input"))


def _as_text(argument: str) -> str:
    """Replace lone surrogates, which Python makes of bytes that are not UTF-8, by U+FFFD."""
    return os.fsencode(argument).decode("utf-8", errors="replace")


def decoded_lines(file: BinaryIO, name: str) -> Iterator[str]:
    """The lines of a file; only a line feed ends a line, and bytes that are not UTF-8 become U+FFFD.

    It warns of such bytes, and of a line that begins with the byte-order mark of UTF-16.
    """
    num_replaced = 0
    has_warned = False
    for number, raw in enumerate(file, start=1):
        line = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        if not has_warned and line.startswith(UTF_16_MARKS):
            has_warned = True
            logger.warning(
                "%s:%d: %s; its translation makes no sense; convert the text first: "
                "iconv -f UTF-16 -t UTF-8 FILE | tfm translate",
                name,
                number,
                UTF_16_FOUND,
            )
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError:
            num_replaced += 1
            yield line.decode("utf-8", errors="replace")
    if num_replaced:
        logger.warning(
            "%s: lines that are not UTF-8, their bad bytes replaced: %d", name, num_replaced
        )


def _line(translation: Translation, *, as_json: bool) -> str:
    if not as_json:
        return translation.text
    facts = {
        "source": translation.source,
        "translation": translation.text,
        "score": translation.score,
        "alternatives": [alternative._asdict() for alternative in translation.alternatives],
        "unknown_words": translation.unknown_words,
    }
    return json.dumps(facts, ensure_ascii=False)


@contextmanager
def _opened_output(path: Path | None) -> Iterator[BinaryIO]:
    """Standard output, or a file that gets its name only when all lines are written."""
    if path is None:
        yield sys.stdout.buffer
        return
    with staged_file(path) as partial, partial.open("wb") as file:
        yield file
