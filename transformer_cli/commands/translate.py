"""`tfm translate`: translate sentences, a file, or standard input, line by line."""

import json
import logging
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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
from transformer_cli.config import DecodingConfig
from transformer_cli.decoding import Translation, Translator, UnknownWords, read_glossary
from transformer_cli.decoding.glossary_use import GlossaryUse
from transformer_cli.decoding.text_pipeline import Alternative
from transformer_cli.errors import UsageError
from transformer_cli.escaping import escaped_in_json, for_output
from transformer_cli.inference import LoadedRun, load_run
from transformer_cli.signals import ended_after

logger = logging.getLogger(__name__)

_TAB = "\t"


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a user wants of the translations of one command, beside the settings."""

    to: str | None = None
    """The target language; None: the only possible one."""
    from_: str | None = None
    """The source language; None: the only possible one."""
    num_best: int | None = None
    """Number of translations that are printed for each line; None: one, without its rank and score."""
    prefix: str | None = None
    """The text with which each translation begins; None: any."""
    prefixes: Path | None = None
    """A file with the prefix of each line, instead of `prefix`."""
    glossary: Path | None = None
    """A file of terms that the translations must contain."""


def run_translation(
    sentences: Sequence[str] | Path | None,
    output_file: Path | None,
    *,
    run: str | None,
    overrides: Sequence[str],
    wishes: Wishes = Wishes(),
    as_json: bool,
) -> None:
    """Translate sentences, a file, or standard input if `sentences` is None; to standard output or a file.

    The path `-` means standard input or standard output, too.
    """
    given = None if sentences == STANDARD else sentences
    output = None if output_file == STANDARD else output_file
    _check_files(given, output)
    check_prefixes(wishes.prefixes, is_input_standard=given is None)
    glossary = None if wishes.glossary is None else read_glossary(wishes.glossary)
    translator = _translator(load_run(run, overrides), wishes)
    if glossary is not None:
        translator = translator.with_glossary(glossary)
    if translator.decoding.num_best > 1 and wishes.num_best is None and not as_json:
        logger.warning(
            "showing one translation per line; to see all %d (decoding.num_best), add --n-best %d or --json",
            translator.decoding.num_best,
            translator.decoding.num_best,
        )
    # The input is opened first, as a shell does for `< in > out`: opening a named pipe waits for its other end.
    prefixes = PrefixLines(wishes.prefix, wishes.prefixes)
    conversation, unknown_words = _conversation(given, translator), UnknownWords()
    glossary_use = GlossaryUse()
    opened = opened_output if conversation is None else opened_output_of_typing
    with _opened_batches(given, conversation) as batches, opened(output) as write:
        for batch in batches:
            of_batch = prefixes.take(len(batch))
            translations = list(translator.translate(batch, prefixes=of_batch))
            lines = [
                line
                for translation in translations
                for line in _lines(translation, wishes, as_json=as_json)
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
                glossary_use.add(translation)
            if conversation is not None:
                unknown_words.report()
        prefixes.finish()
    unknown_words.report()
    if glossary is not None:
        glossary_use.report()


def _translator(loaded: LoadedRun, wishes: Wishes) -> Translator:
    """The translator of the chosen direction, with a beam that is wide enough for the n best translations.

    Raises:
        UsageError: an override sets a smaller beam.
    """
    translator, num_best = loaded.translator.towards(wishes.to, wishes.from_), wishes.num_best
    if num_best is None:
        return translator
    beam_size = translator.decoding.beam_size
    if beam_size < num_best and "decoding.beam_size" in loaded.overridden:
        raise UsageError(
            f"--n-best {num_best} needs a beam of at least {num_best}, but beam_size is {beam_size}",
            hint=f"leave the beam size out, or set it to {num_best} or more",
        )
    wider = {"num_best": num_best, "beam_size": max(beam_size, num_best)}
    decoding = DecodingConfig.model_validate(translator.decoding.model_dump() | wider)
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


def _lines(translation: Translation, wishes: Wishes, *, as_json: bool) -> list[str]:
    """The lines of the output for one line of the input; more than one only for the n best translations."""
    if as_json:
        return [_as_json(translation, wishes)]
    if wishes.num_best is None:
        return [translation.text]
    # A line without any translation, such as a blank one, has rank 1 too: programs count lines by this rank.
    best = translation.alternatives or (Alternative(translation.text, translation.score),)
    return [
        f"{rank}\t{alternative.score:.6f}\t{alternative.text.replace(_TAB, ' ')}"
        for rank, alternative in enumerate(best, start=1)
    ]


def _as_json(translation: Translation, wishes: Wishes) -> str:
    facts: dict[str, Any] = {
        "source": translation.source,
        "translation": translation.text,
        "score": translation.score,
        "alternatives": [alternative._asdict() for alternative in translation.alternatives],
        "unknown_words": translation.unknown_words,
    }
    if wishes.glossary is not None:
        facts["terms"] = [
            {"source": term.source, "target": term.target, "applied": term.is_applied}
            for term in translation.terms
        ]
    return escaped_in_json(json.dumps(facts, ensure_ascii=False))
