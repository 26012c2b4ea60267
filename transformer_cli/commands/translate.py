"""`tfm translate`: translate sentences, a file, or standard input, line by line."""

import logging
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from transformer_cli.commands.streams.input_lines import check_input, opened_lines
from transformer_cli.commands.streams.open_descriptors import STANDARD
from transformer_cli.commands.streams.output_file import (
    check_output,
    is_new_or_regular,
    opened_output,
    opened_output_of_typing,
    output_status,
)
from transformer_cli.commands.streams.prefix_lines import PrefixLines, check_prefixes
from transformer_cli.commands.streams.typed_lines import Conversation
from transformer_cli.commands.translating.translation_lines import check_wishes, output_lines
from transformer_cli.commands.translating.wishes import NO_WISHES, Wishes
from transformer_cli.config import DecodingConfig
from transformer_cli.decoding import Translation, Translator, UnknownWords
from transformer_cli.errors import UsageError
from transformer_cli.escaping import for_output
from transformer_cli.inference import LoadedRun, load_run
from transformer_cli.signals import ended_after

logger = logging.getLogger(__name__)


def run_translation(
    sentences: Sequence[str] | Path | None,
    output_file: Path | None,
    *,
    run: str | Sequence[str] | None,
    overrides: Sequence[str],
    wishes: Wishes = NO_WISHES,
    as_json: bool,
) -> None:
    """Translate sentences, a file, or standard input if `sentences` is None; to standard output or a file.

    The path `-` means standard input or standard output, too.

    Args:
        run: as in `load_run`; several are an ensemble.
        wishes: what the translations are like, beside the settings.
    """
    given = None if sentences == STANDARD else sentences
    output = None if output_file == STANDARD else output_file
    check_wishes(wishes, as_json=as_json)
    _check_files(given, output)
    check_prefixes(wishes.prefixes, is_input_standard=given is None)
    translator = _translator(load_run(run, overrides), wishes)
    if translator.decoding.num_best > 1 and wishes.num_best is None and not as_json:
        logger.warning(
            "showing one translation per line; to see all %d (decoding.num_best), add --n-best %d or --json",
            translator.decoding.num_best,
            translator.decoding.num_best,
        )
    # The input is opened first, as a shell does for `< in > out`: opening a named pipe waits for its other end.
    prefixes = PrefixLines(wishes.prefix, wishes.prefixes)
    conversation, unknown_words = _conversation(given, translator), UnknownWords()
    opened = opened_output if conversation is None else opened_output_of_typing
    with _opened_batches(given, conversation) as batches, opened(output) as write:
        for translations in _translated(batches, translator, prefixes, wishes):
            lines = [
                line
                for translation in translations
                for line in output_lines(translation, wishes, translator.pipeline, as_json=as_json)
            ]
            if output is None:
                lines = [for_output(line, sys.stdout) for line in lines]
            if conversation is not None and output is None:
                conversation.announce_answer()
            with ended_after():
                write("".join(f"{line}\n" for line in lines).encode())
            if conversation is not None and output is not None and is_new_or_regular(output):
                conversation.show_answer(lines)
            for translation in translations:
                unknown_words.add(translation)
            if conversation is not None:
                unknown_words.report()
        prefixes.finish()
    unknown_words.report()


def _translated(
    batches: Iterable[list[str]], translator: Translator, prefixes: PrefixLines, wishes: Wishes
) -> Iterator[list[Translation]]:
    """The translations of each batch of lines."""
    num_before = 0
    for batch in batches:
        of_batch = prefixes.take(len(batch))
        yield list(
            translator.translate(
                batch,
                prefixes=of_batch,
                num_before=num_before,
                with_details=wishes.any_details,
            )
        )
        num_before += len(batch)


def _translator(loaded: LoadedRun, wishes: Wishes) -> Translator:
    """The translator of the chosen direction, with a beam that is wide enough for the n best translations.

    Raises:
        UsageError: an override sets a smaller beam.
    """
    translator, num_best = loaded.translator.towards(wishes.to, wishes.from_), wishes.num_best
    if num_best is None:
        return translator
    decoding = translator.decoding
    beam_size, diversity = decoding.beam_size, decoding.diversity
    is_given = "decoding.beam_size" in loaded.overridden or diversity is not None
    if decoding.sampling is None and beam_size < num_best and is_given:
        hint = f"leave the beam size out, or set it to {num_best} or more"
        if diversity is not None:
            hint = f"set decoding.beam_size to a multiple of {diversity.groups} that is at least {num_best}"
        raise UsageError(
            f"--n-best {num_best} needs a beam of at least {num_best}, but beam_size is {beam_size}",
            hint=hint,
        )
    wider = {"num_best": num_best, "beam_size": max(beam_size, num_best)}
    decoding = DecodingConfig.model_validate(decoding.model_dump() | wider)
    return replace(translator, decoding=decoding)


def _check_files(given: Sequence[str] | Path | None, output: Path | None) -> None:
    """Refuse an input or an output that cannot work, before a model is loaded."""
    check_output(output)
    if given is not None and not isinstance(given, Path):
        for sentence in filter(os.path.isfile, given):
            logger.warning(
                "%s is a file, but its name is translated, not its lines; did you mean --input %s?",
                sentence,
                sentence,
            )
        return
    read = os.fstat(0) if given is None else check_input(given)
    written = output_status(output)
    if written is None or not stat.S_ISREG(read.st_mode) or not os.path.samestat(read, written):
        return
    raise UsageError(
        f"{output or 'standard output'}: this output is the same file as the input",
        hint="name another --output",
    )


def _conversation(
    given: Sequence[str] | Path | None, translator: Translator
) -> Conversation | None:
    is_typed = given is None and sys.stdin.isatty()
    return Conversation(translator.pipeline) if is_typed else None


@contextmanager
def _opened_batches(
    given: Sequence[str] | Path | None, conversation: Conversation | None
) -> Iterator[Iterable[list[str]]]:
    """The input in batches of lines; the caller translates a batch before it asks for the next one."""
    if given is not None and not isinstance(given, Path):
        yield [[_as_text(sentence) for sentence in given]]
    elif conversation is not None:
        yield ([line] for line in conversation.lines())
    else:
        with opened_lines(given) as batches:
            yield batches


def _as_text(argument: str) -> str:
    """Replace lone surrogates, which Python makes of bytes that are not UTF-8, by U+FFFD."""
    return os.fsencode(argument).decode("utf-8", errors="replace")
