"""`tfm translate`: translate sentences, a file, or standard input, line by line."""

import logging
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from transformer_cli.checkpoint.run_folder import CHECKPOINTS, RUNS
from transformer_cli.commands.streams.input_lines import (
    check_input,
    is_regular_file,
    opened_lines,
    require_utf_8,
)
from transformer_cli.commands.streams.open_descriptors import STANDARD
from transformer_cli.commands.streams.output_file import (
    Write,
    check_output,
    is_new_or_regular,
    opened_output,
    output_status,
)
from transformer_cli.commands.streams.prefix_lines import check_prefixes
from transformer_cli.commands.translating.conditions import conditions_of
from transformer_cli.commands.translating.counts import Counts
from transformer_cli.commands.translating.dictionary import with_replacement
from transformer_cli.commands.translating.line_progress import line_progress
from transformer_cli.commands.translating.task import Task, input_lines
from transformer_cli.commands.translating.translation_lines import check_wishes
from transformer_cli.commands.translating.unfinished_output import opened_unfinished
from transformer_cli.commands.translating.wishes import NO_WISHES, Wishes
from transformer_cli.decoding import Glossary, Translator, read_glossary
from transformer_cli.decoding.loading import LoadedRun, load_run
from transformer_cli.process.errors import UsageError
from transformer_cli.process.signals import ended_after

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
    if wishes.resume:
        _check_resumable(given, output)
    if wishes.dictionary is not None:
        check_input(wishes.dictionary, "--dictionary")
    check_prefixes(wishes.prefixes, is_input_standard=given is None)
    glossary = None if wishes.glossary is None else read_glossary(wishes.glossary)
    loaded = load_run(run, overrides)
    translator = with_replacement(chosen_translator(loaded, wishes, glossary), wishes)
    if translator.decoding.num_best > 1 and wishes.num_best is None and not as_json:
        logger.warning(
            "showing one translation per line; to see all %d (decoding.num_best), add --n-best %d or --json",
            translator.decoding.num_best,
            translator.decoding.num_best,
        )
    task = Task(translator, wishes, as_json=as_json)
    if given is None and sys.stdin.isatty():
        from transformer_cli.commands.translating.prompt import talk

        talk(task, output)
        return
    _translate_windows(task, given, output, loaded)


def _translate_windows(
    task: Task, given: Sequence[str] | Path | None, output: Path | None, loaded: LoadedRun
) -> None:
    """Translate arguments, a file or a pipe, window by window."""
    counts = Counts(has_glossary=task.wishes.glossary is not None)
    with ExitStack() as opened:
        # The input is opened first, as a shell does for `< in > out`: opening a named pipe waits for its other end.
        windows = input_lines(opened.enter_context(_opened_windows(given)), task.wishes)
        write: Write
        num_done = 0
        if task.wishes.resume and output is not None:
            conditions = conditions_of(
                loaded, task.translator.decoding, task.wishes, as_json=task.as_json
            )
            unfinished = opened.enter_context(opened_unfinished(output, conditions))
            num_done = unfinished.num_done
            windows, write = unfinished.remaining(windows), unfinished.write
        else:
            write = opened.enter_context(opened_output(output))
        advance = opened.enter_context(line_progress(given, output, num_done))
        for window in windows:
            translations = task.translations(window)
            data = task.output(window, translations, is_standard=output is None)
            with ended_after():
                write(data)
            advance(len(window))
            counts.add(translations)
    counts.report()


def _choosing_by_comet(translator: Translator, folder: Path) -> Translator:
    if translator.decoding.mbr is None:
        raise UsageError(
            "--comet works only with decoding.mbr",
            hint='add --set "decoding.mbr={}", or leave out --comet',
        )
    from transformer_cli.decoding.comet import comet_utility

    return replace(translator, utility=comet_utility(folder))


def chosen_translator(loaded: LoadedRun, wishes: Wishes, glossary: Glossary | None) -> Translator:
    """The translator of the chosen direction, with a beam that is wide enough for the n best translations.

    Raises:
        UsageError: an override sets a smaller beam.
    """
    translator, num_best = loaded.translator.towards(wishes.to, wishes.from_), wishes.num_best
    translator = replace(
        translator, protects_spans=wishes.protects_spans, is_strict=wishes.is_strict
    )
    if wishes.comet is not None:
        translator = _choosing_by_comet(translator, wishes.comet)
    if glossary is not None:
        translator = translator.with_glossary(glossary)
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
    decoding = decoding.model_copy(update=wider)
    if decoding.num_candidates < num_best:
        raise UsageError(
            f"--n-best {num_best} needs at least {num_best} candidates, but mbr.candidates is {decoding.num_candidates}",
            hint=f"--set decoding.mbr.candidates={num_best}",
        )
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
        for sentence in filter(_is_run, given):
            logger.warning(
                "%s is a run, but its name is translated; did you mean --run %s?",
                sentence,
                sentence,
            )
        return
    read = os.fstat(0) if given is None else check_input(given)
    if given is not None:
        require_utf_8(given)
    written = output_status(output)
    if written is None or not stat.S_ISREG(read.st_mode) or not os.path.samestat(read, written):
        return
    raise UsageError(
        f"{output or 'standard output'}: this output is the same file as the input",
        hint="name another --output",
    )


def _is_run(sentence: str) -> bool:
    return Path(sentence).name == sentence and (RUNS / sentence / CHECKPOINTS).is_dir()


@contextmanager
def _opened_windows(given: Sequence[str] | Path | None) -> Iterator[Iterable[list[str]]]:
    """The input in batches of lines; the caller translates a batch before it asks for the next one."""
    if given is not None and not isinstance(given, Path):
        yield [[_as_text(sentence) for sentence in given]]
    else:
        with opened_lines(given) as batches:
            yield batches


def _check_resumable(given: Sequence[str] | Path | None, output: Path | None) -> None:
    """Refuse --resume for what cannot be read again, or cannot wait beside the output."""
    if not isinstance(given, Path) or not is_regular_file(given):
        raise UsageError("--resume is for a file of lines", hint="name the file with --input")
    if output is None or not is_new_or_regular(output):
        raise UsageError("--resume is for an output file", hint="name it with --output")


def _as_text(argument: str) -> str:
    """Replace lone surrogates, which Python makes of bytes that are not UTF-8, by U+FFFD."""
    return os.fsencode(argument).decode("utf-8", errors="replace")
