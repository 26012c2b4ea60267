"""`tfm translate --input page.html`: translates a document, and says what a person should look at."""

import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from transformer_cli.commands.documents.chosen_document import ChosenDocument
from transformer_cli.commands.streams.input_lines import input_status
from transformer_cli.commands.streams.open_descriptors import STANDARD
from transformer_cli.commands.streams.output_file import (
    check_output,
    opened_output,
    output_status,
)
from transformer_cli.commands.translate import chosen_translator
from transformer_cli.commands.translating.dictionary import with_replacement
from transformer_cli.commands.translating.wishes import Wishes
from transformer_cli.decoding import read_glossary
from transformer_cli.decoding.loading import load_run
from transformer_cli.extensions.documents import ModelTranslator, read_document, translate_document
from transformer_cli.extensions.documents.formats import format_of
from transformer_cli.extensions.documents.translation import CUT
from transformer_cli.process.errors import DataError, MissingInputError, UsageError
from transformer_cli.process.escaping import on_one_line
from transformer_cli.process.signals import ended_after

logger = logging.getLogger(__name__)

MAX_SHOWN_DOUBTS = 20


def run_document_translation(
    given: ChosenDocument,
    output_file: Path | None,
    *,
    run: Sequence[str] | None,
    overrides: Sequence[str],
    wishes: Wishes,
    as_json: bool,
) -> None:
    """Translate a document; its translation appears whole or not at all.

    Args:
        output_file: None or - is standard output.
        run: as in `load_run`.
    """
    _check_wishes(wishes, as_json=as_json)
    output = None if output_file == STANDARD else output_file
    _check_ending(given, output)
    if output is None and given.format.is_archive and sys.stdout.isatty():
        raise UsageError(
            f"{given.name}: a {given.format.name} file cannot be shown in a terminal",
            hint=f"name a file for the translation: --output NAME{given.format.endings[0]}",
        )
    data = _read(given, output)
    try:
        # The document is read before the model, because a file in another format is found at once.
        document = read_document(data, given.format, given.options)
    except (DataError, UsageError) as error:
        raise type(error)(f"{given.name}: {error.message}", hint=error.hint) from error
    glossary = None if wishes.glossary is None else read_glossary(wishes.glossary)
    loaded = load_run(run, overrides)
    translator = with_replacement(chosen_translator(loaded, wishes, glossary), wishes)
    found = translate_document(document, ModelTranslator.of(translator))
    cut = next((doubt for doubt in found.doubts if doubt.reason == CUT), None)
    if wishes.is_strict and cut is not None:
        raise DataError(
            f"{given.name}: {cut.place}: a sentence of more than {translator.pipeline.max_length} tokens, which the model cannot read at once",
            hint="divide the sentence, or leave out --strict to translate it in parts",
        )
    with opened_output(output) as write, ended_after():
        write(found.data)
    for doubt in found.doubts[:MAX_SHOWN_DOUBTS]:
        logger.warning("%s: %s: %s", doubt.place, doubt.reason, on_one_line(doubt.text, 80))
    if len(found.doubts) > MAX_SHOWN_DOUBTS:
        logger.warning("and %d more of this kind", len(found.doubts) - MAX_SHOWN_DOUBTS)
    logger.info(
        "%s: segments translated: %d, of which a person should look at: %d",
        given.name,
        found.num_segments,
        found.num_marked,
    )


def _check_ending(given: ChosenDocument, output: Path | None) -> None:
    """Refuse to write a document of one format into a file whose name says another."""
    named = None if output is None else format_of(output)
    if named is not None and named != given.format:
        raise UsageError(
            f"{given.name} is a document of the format {given.format.name}, and {output} has the ending of {named.name}",
            hint=f"name an --output that ends with {given.format.endings[0]}: documents are not converted",
        )


def _read(given: ChosenDocument, output: Path | None) -> bytes:
    limit = given.options.limits.max_bytes
    check_output(output)
    if given.path is None:
        return sys.stdin.buffer.read(limit + 1)
    status = input_status(given.path, "--input takes the path of a document; - is standard input")
    written = output_status(output)
    if written is not None and os.path.samestat(status, written):
        raise UsageError(
            f"{output or 'standard output'}: this output is the same file as the input",
            hint="name another --output",
        )
    try:
        with given.path.open("rb") as file:
            return file.read(limit + 1)
    except OSError as error:
        raise MissingInputError(f"{given.path}: cannot be read: {error.strerror}") from error


def _check_wishes(wishes: Wishes, *, as_json: bool) -> None:
    """Refuse options that are for lines, before anything is read."""
    if wishes.dictionary is not None and not wishes.replace_unknown:
        raise UsageError("--dictionary works only with --replace-unknown", hint="add --replace-unknown")  # fmt: skip
    for is_wished, option in (
        (as_json, "--json"),
        (wishes.num_best is not None, "--n-best"),
        (wishes.prefix is not None, "--prefix"),
        (wishes.prefixes is not None, "--prefixes"),
        (wishes.alignment, "--alignment"),
        (wishes.details, "--details"),
        (wishes.attention, "--attention"),
        (wishes.resume, "--resume"),
    ):
        if is_wished:
            raise UsageError(
                f"{option} is for lines, but the input is a document",
                hint=f"leave out {option}, or translate a file in UTF-8 line by line with --format txt",
            )
