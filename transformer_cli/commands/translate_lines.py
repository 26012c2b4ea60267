"""The lines that `tfm translate` translates: of arguments, of a file, or of standard input, window by window."""

import json
import logging
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import chain, repeat
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from transformer_cli.checkpoint.run_folder import CHECKPOINTS, RUNS
from transformer_cli.commands.command_line import files_among
from transformer_cli.commands.input_lines import (
    check_input,
    count_lines,
    input_status,
    is_regular_file,
    opened_lines,
    require_utf_8,
)
from transformer_cli.commands.output import (
    STANDARD,
    Write,
    check_output,
    is_new_or_regular,
    opened_output_of_lines,
    require_no_corpus,
    require_other_file,
)
from transformer_cli.config import SequencesData
from transformer_cli.config.decoding import WINDOW_LINES
from transformer_cli.decoding import (
    LineDetails,
    PartDetails,
    TextPipeline,
    Translation,
    Translator,
    UnknownWords,
)
from transformer_cli.decoding.checks.quality import Drift, read_quality
from transformer_cli.decoding.details import UnknownReplacement, pharaoh
from transformer_cli.decoding.loading import LoadedRun, load_run
from transformer_cli.decoding.translation import BY_GLOSSARY, BY_MEMORY, Alternative, GlossaryUse, SourceText
from transformer_cli.process.errors import DataError, UsageError
from transformer_cli.process.messages import escaped, escaped_in_json, for_shell
from transformer_cli.process.signals import ended_after

logger = logging.getLogger(__name__)

MEMORY = "transformer_cli.extensions.corpora.importing:read_memory"
"""What reads a translation memory; the core imports it only for one."""

_PREFIXES_HINT = "line N of the prefixes belongs to line N of the input; an empty line means no prefix"


@dataclass(frozen=True, slots=True)
class TranslateOptions:
    """What a command line of `tfm translate` asks for, beside the text and the file of its translation."""

    run: str | Sequence[str] | None = None
    """As of `load_run`."""
    via: str | None = None
    """The pivot language; None: one model, or an ensemble, translates."""
    overrides: Sequence[str] = ()
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
    """A file of terms that the translations contain."""
    memory: Path | None = None
    """A file with translations that are reused."""
    table_encoding: str | None = None
    """Of a memory or a glossary that is not UTF-8; None: it is found out."""
    alignment: bool = False
    """Whether the word alignment stands beside each translation."""
    details: bool = False
    """Whether the JSON has the tokens of source and translation, with their probabilities."""
    attention: bool = False
    """Whether the JSON has the tokens, and the attention weights between them."""
    mark: bool = False
    """Whether each translation is marked as green or not."""
    only_green: bool = False
    """Whether only green translations are written."""
    protects_spans: bool = False
    """See `Translator.protects_spans`."""
    is_strict: bool = False
    """See `Translator.is_strict`."""
    replace_unknown: bool = False
    """Whether a word of the source, or its dictionary entry, replaces each [UNK]."""
    dictionary: Path | None = None
    """A file with translations of words for `replace_unknown`."""
    comet: Path | None = None
    """The folder of a COMET model, by which `decoding.mbr` chooses; None: chrF."""
    resume: bool = False
    """Whether the output so far of an interrupted translation is kept, and continued."""
    as_json: bool = False

    @property
    def any_details(self) -> bool:
        """Whether the translations need their details."""
        return self.alignment or self.details or self.attention

    @property
    def needs_quality(self) -> bool:
        """Whether the run must have a calibration."""
        return self.mark or self.only_green


def translate_lines(
    sentences: Sequence[str] | Path | None, output_file: Path | None, options: TranslateOptions
) -> None:
    """Translate sentences, a file, or standard input if `sentences` is None; to standard output or a file.

    The path `-` means standard input or standard output, too.
    """
    given = None if sentences == STANDARD else sentences
    output = None if output_file == STANDARD else output_file
    _check_options(options)
    _check_files(given, output, options)
    loaded, translator = open_translator(options)
    if output is not None:
        require_no_corpus(output, loaded)
    if translator.decoding.num_best > 1 and options.num_best is None and not options.as_json:
        logger.warning(
            "showing one translation per line; to see all %d (decoding.num_best), add --n-best %d or --json",
            translator.decoding.num_best,
            translator.decoding.num_best,
        )
    if given is None and sys.stdin.isatty():
        from transformer_cli.commands.prompt import talk

        talk(translator, options, output)
        return
    # In batches of lines: each is translated before the next one is asked for.
    if given is None or isinstance(given, Path):
        batches: AbstractContextManager[Iterable[list[str]]] = opened_lines(given)
    else:
        # Lone surrogates, which Python makes of bytes that are not UTF-8, become U+FFFD.
        texts = [os.fsencode(each).decode("utf-8", errors="replace") for each in given]
        batches = nullcontext([texts[at : at + WINDOW_LINES] for at in range(0, len(texts), WINDOW_LINES)])
    input_file = given if isinstance(given, Path) else None
    _write_translations(batches, input_file, output, loaded, translator, options)


def _write_translations(
    batches: AbstractContextManager[Iterable[list[str]]],
    input_file: Path | None,
    output: Path | None,
    loaded: LoadedRun,
    translator: Translator,
    options: TranslateOptions,
) -> None:
    """Translate the input and write the output, window by window; at the end, tell what was counted over all lines.

    Args:
        batches: the lines of the input, when it is opened.
        input_file: the file in which they stand; None: arguments, or standard input.
    """
    unknown_words, num_from_memory = UnknownWords(), 0
    glossary_use = GlossaryUse() if options.glossary is not None else None
    drift = drift_of(translator) if translator.estimates else None
    with ExitStack() as opened:
        # The input is opened first, as a shell does for `< in > out`: opening a named pipe waits for its other end.
        windows, num_done = input_lines(opened.enter_context(batches), options), 0
        write: Write
        if options.resume and output is not None:
            from transformer_cli.commands.unfinished_output import opened_unfinished, translation_conditions

            conditions = translation_conditions(loaded, translator.decoding, options)
            unfinished = opened.enter_context(opened_unfinished(output, conditions))
            num_done = unfinished.num_done
            windows, write = unfinished.remaining(windows), unfinished.write
        else:
            can_resume = input_file is not None and is_regular_file(input_file)
            write = opened.enter_context(opened_output_of_lines(output, can_resume=can_resume))
        advance = opened.enter_context(_progress(input_file, output, num_done))
        for window in windows:
            translations = translator.translate_window(window, with_details=options.any_details)
            data = output_bytes(window, translations, translator.pipeline, options, output)
            with ended_after():
                write(data)
            advance(len(window))
            if drift is not None:
                drift.add(translations)
            for translation in translations:
                num_from_memory += translation.is_from_memory
                if translation.num_words:  # of a model of subwords, none
                    unknown_words.add(translation)
                if glossary_use is not None:
                    glossary_use.add(translation)
    if unknown_words.num_unknown:
        unknown_words.report()
    if translator.memory is not None:
        translator.memory.report(num_from_memory)
    given_by_options: list[GlossaryUse | Drift] = [one for one in (glossary_use, drift) if one is not None]
    for count in given_by_options:
        count.report()


def drift_of(translator: Translator) -> Drift:
    """What compares a text with that of the calibration; `_require_quality` has found one."""
    quality = translator.pipeline.quality
    assert quality is not None
    return Drift(quality)


def open_translator(options: TranslateOptions) -> tuple[LoadedRun, Translator]:
    """The run, and its translator as the options ask for it; the demonstration model if no run is named and there is none.

    Raises:
        UsageError: an option does not fit the run.
        DataError: the glossary or the dictionary cannot be read.
    """
    if options.via is not None:
        return open_pivot_translator(options, options.via)
    glossary = None
    if options.glossary is not None:
        from transformer_cli.decoding.glossary_files import read_glossary

        glossary = read_glossary(options.glossary, options.table_encoding)
    loaded = load_run(options.run, options.overrides, or_demonstration=True)
    translator = replace(
        loaded.translator.towards(options.to, options.from_),
        protects_spans=options.protects_spans,
        is_strict=options.is_strict,
    )
    if options.comet is not None:
        translator = _choosing_by_comet(translator, options.comet)
    if glossary is not None:
        translator = translator.with_glossary(glossary)
    if options.memory is not None:
        translator = _with_memory(translator, options.memory, options.table_encoding)
    if options.num_best is not None:
        translator = _with_num_best(translator, options.num_best, loaded)
    if options.replace_unknown:
        translator = _with_replacement(translator, options.dictionary)
    if options.mark or options.only_green:
        _require_quality(translator, loaded, options)
        translator = replace(translator, estimates=True, only_green=options.only_green)
    return loaded, translator


def _with_memory(translator: Translator, path: Path, encoding: str | None) -> Translator:
    """The translator that reuses the translations of a file.

    Args:
        encoding: as of `TranslateOptions.table_encoding`.

    Raises:
        MissingInputError: there is no such file.
        DataError: it cannot be read, or has no pair in these languages.
        UsageError: the symbols of a synthetic task are no language; or a package is missing.
    """
    reader = (translator.before or translator).pipeline
    if isinstance(reader.data, SequencesData):
        raise UsageError("--memory is for languages, but this run was trained on symbols")
    languages = translator.languages
    from transformer_cli.decoding.memory import TranslationMemory

    pairs = resolve_name(MEMORY)(path, languages.source, languages.target, encoding)
    memory = TranslationMemory.of(pairs, reader.normalize_source, str(path))
    return replace(translator, memory=memory)


def open_pivot_translator(options: TranslateOptions, pivot: str) -> tuple[LoadedRun, Translator]:
    """Two runs, and the translator that uses one after the other; as of `open_translator`."""
    if not pivot.strip():
        raise UsageError(
            "--via: the language is empty",
            hint="name the language between the two steps, such as --via en; or leave out --via",
        )
    _check_one_model(options)
    runs = [options.run] if isinstance(options.run, str) else list(options.run or [])
    if not 1 <= len(runs) <= 2:
        raise UsageError(
            f"--via {pivot} needs two runs, but --run is given {len(runs) or 'no'} times",
            hint=f"--run INTO_{pivot} --run FROM_{pivot}, in this order; or one run that does both",
        )
    loaded = [load_run(run, options.overrides) for run in runs]
    first = _step(loaded[0], pivot, f"the first step, into {pivot}", options.from_)
    second = _step(loaded[-1], options.to, f"the second step, from {pivot}", pivot)
    translator = replace(
        second,
        protects_spans=options.protects_spans,
        is_strict=options.is_strict,
    )
    if options.num_best is not None:
        translator = _with_num_best(translator, options.num_best, loaded[-1])
    translator = translator.after(first)
    if options.memory is not None:
        translator = _with_memory(translator, options.memory, options.table_encoding)
    both = replace(loaded[0], others=tuple(one.trained for one in loaded[1:]))
    return both, translator


def _step(loaded: LoadedRun, to: str | None, name: str, from_: str | None) -> Translator:
    """The translator of one of two steps.

    Raises:
        UsageError: the run has no such direction, or several.
    """
    try:
        return loaded.translator.towards(to, from_)
    except UsageError as error:
        raise UsageError(
            f"--via: {loaded.trained.folder} cannot make {name}: {error.message}",
            hint="--run names the model into the pivot language, and a second --run the one that goes on; --from and --to name the "
            "languages of the input and the output",
        ) from error


def _check_one_model(options: TranslateOptions) -> None:
    """Refuse options that describe what one model does, before two are loaded.

    Raises:
        UsageError: there is such an option.
    """
    reasons = {
        "--glossary": (options.glossary, "its terms are of the source language, which the second model does not read"),
        "--alignment": (options.alignment, "it links the words of one model"),
        "--details": (options.details, "its tokens are those of one model"),
        "--attention": (options.attention, "its weights are those of one model"),
        "--mark": (options.mark, "a calibration promises nothing about two models in a row"),
        "--only-green": (options.only_green, "a calibration promises nothing about two models in a row"),
        "--replace-unknown": (options.replace_unknown, "the second model does not read the words of the source"),
        "--comet": (options.comet, "it compares translations with the source of one model"),
    }
    for option, (is_given, reason) in reasons.items():
        if is_given:
            raise UsageError(
                f"{option} does not work with --via: {reason}",
                hint=f"leave out {option}, or translate in two commands, one for each step",
            )


def _require_quality(translator: Translator, loaded: LoadedRun, options: TranslateOptions) -> None:
    """Refuse to mark translations of a run without a calibration for its checkpoint.

    Raises:
        UsageError: there is none, or no threshold keeps its promise; or several models translate together.
        DataError: it is damaged.
    """
    quality = translator.pipeline.quality
    folder = loaded.trained.folder
    run = loaded.trained.run
    if loaded.others:
        raise UsageError(
            f"{'--mark' if options.mark else '--only-green'}: a calibration describes one model, and {len(loaded.members)} translate together",
            hint="name one --run; or leave out --mark and --only-green",
        )
    if quality is None:
        if run is not None:
            read_quality(run.path)  # refuses one that is damaged
        chosen = (
            options.run if isinstance(options.run, str) else next(iter(options.run or ()), run.path if run else folder)
        )
        here, there = translator.pipeline.languages
        direction = f" --from {here} --to {there}" if len(translator.pipeline.data.directions) > 1 else ""
        raise UsageError(
            f"{folder}: no calibration of this checkpoint for {translator.pipeline.languages}, so nothing is known about the quality "
            "of its translations",
            # As it was named: it may be another checkpoint than the best one of its run.
            hint=f"make one: tfm calibrate --run {for_shell(chosen)}{direction}",
        )
    if quality.threshold is None:
        raise UsageError(
            f"{folder}: no threshold keeps the promise of its calibration: {quality.promise}",
            hint="calibrate with a lower --below, a larger --share, or more text",
        )
    if warning := quality.warning_about(translator.decoding.beam_size):
        logger.warning("%s", warning)
    logger.info("%s", quality.promise)


def input_lines(windows: Iterable[list[str]], options: TranslateOptions) -> Iterator[list[SourceText]]:
    """Each line of each window with its number and its prefix.

    Raises:
        MissingInputError: there is no file of prefixes.
        DataError: the file of prefixes has fewer or more lines than the input.
    """
    path, prefixes, num_before = options.prefixes, None, 0
    if path is not None:
        with opened_lines(path) as batches:
            prefixes = list(chain.from_iterable(batches))
    for window in windows:
        numbers = range(num_before, num_before + len(window))
        num_before += len(window)
        if prefixes is not None and len(prefixes) < num_before:
            raise DataError(
                f"{path}: it ends after line {len(prefixes)}, but the input has more lines",
                hint=_PREFIXES_HINT,
            )
        window_prefixes: Iterable[str] = repeat(options.prefix or "")
        if prefixes is not None:
            window_prefixes = prefixes[numbers.start : numbers.stop]
        lines = []
        for number, line, prefix in zip(numbers, window, window_prefixes, strict=False):
            text = line.removesuffix("\r")
            # A blank prefix, such as the "\r" of a file from Windows, is none.
            beginning = prefix.strip()
            lines.append(SourceText(text, beginning, number, line_end=f"{line[len(text) :]}\n"))
        yield lines
    if prefixes is not None and num_before < len(prefixes):
        raise DataError(f"{path}: {len(prefixes)} lines, but the input has {num_before}", hint=_PREFIXES_HINT)


def output_bytes(
    window: Sequence[SourceText],
    translations: Iterable[Translation],
    pipeline: TextPipeline,
    options: TranslateOptions,
    output: Path | None,
) -> bytes:
    """The output for a window; a translation without anything beside it ends as its line does.

    Args:
        pipeline: the one that made the translations.
        output: the file into which they go; None: standard output, which may be a terminal.
    """
    ends: Iterable[str] = repeat("\n")
    if options.num_best or options.alignment or options.as_json or options.mark:
        lines = [line for one in translations for line in output_lines(one, pipeline, options)]
    else:
        lines, ends = [one.text for one in translations], [line.line_end for line in window]
    if output is None and sys.stdout.isatty():
        lines = list(map(escaped, lines))
    return "".join(map(str.__add__, lines, ends)).encode()


def output_lines(translation: Translation, pipeline: TextPipeline, options: TranslateOptions) -> list[str]:
    """The lines of the output for one line of the input; more than one only for the n best translations.

    Args:
        pipeline: the one that made the translation.
    """
    if options.as_json:
        return [_as_json(translation, pipeline, options)]
    if options.mark:
        return [_marked(translation)]
    if options.num_best is None:
        details = translation.details
        if not options.alignment:
            return [translation.text]
        return [f"{_without_tabs(translation.text)}\t{pharaoh(details.links if details else ())}"]
    # A line without any translation, such as a blank one, has rank 1 too: programs count lines by this rank.
    best = translation.alternatives or (Alternative(translation.text, translation.score),)
    return [
        f"{rank}\t{alternative.score:.6f}\t{_without_tabs(alternative.text)}"
        for rank, alternative in enumerate(best, start=1)
    ]


def _marked(translation: Translation) -> str:
    """The translation as `--mark` prints it; what needs no translation, such as a blank line or a number, has no mark."""
    estimate = translation.estimate
    if translation.is_from_memory or estimate is None:
        mark = BY_MEMORY if translation.is_from_memory else BY_GLOSSARY * translation.is_of_terms
        return f"{_without_tabs(translation.text)}\t{mark}\t"
    mark = "green" if estimate.is_green else "-"
    return f"{_without_tabs(translation.text)}\t{mark}\t{estimate.probability:.3f}"


def _without_tabs(text: str) -> str:
    return text.replace("\t", " ")


def _as_json(translation: Translation, pipeline: TextPipeline, options: TranslateOptions) -> str:
    facts: dict[str, Any] = {
        "source": translation.source,
        "translation": translation.text,
        "score": translation.score,
        "alternatives": [alternative._asdict() for alternative in translation.alternatives],
        **_marks(translation),
    }
    if translation.pivot is not None:
        facts["pivot"] = _pivot(translation.pivot, options)
    if options.glossary is not None:
        facts["terms"] = [
            {"source": term.source, "target": term.target, "applied": term.is_applied} for term in translation.terms
        ]
    if options.memory is not None:
        facts["memory"] = translation.is_from_memory
    if options.needs_quality:
        estimate = translation.estimate
        is_green = None if estimate is None else estimate.is_green
        facts["green"] = True if translation.is_from_memory else is_green
        facts["quality"] = None if estimate is None else estimate.probability
        quality = pipeline.quality
        facts["why_not_green"] = "" if quality is None else quality.why_not_green(translation)
        facts["confidence"] = _rounded_or_none(translation.confidence)
    if options.any_details and translation.details is not None:
        facts |= _details(translation.details, pipeline, options)
    return escaped_in_json(json.dumps(facts, ensure_ascii=False))


def _marks(translation: Translation) -> dict[str, Any]:
    """What a person should know of a translation: all that warnings about lines name."""
    return {
        "unknown_words": translation.unknown_words,
        "cut": translation.is_cut,
        "divided": translation.is_divided,
        "in_pieces": translation.is_in_pieces,
        "untranslated": translation.is_untranslated,
        "partly_copied": translation.is_partly_copied,
        "doubts": translation.doubts,
        "repaired": translation.is_repaired,
    }


def _pivot(first: Translation, options: TranslateOptions) -> dict[str, Any]:
    """The first of two steps."""
    return {
        "language": options.via,
        "translation": first.text,
        "score": first.score,
        **_marks(first),
    }


def _details(details: LineDetails, pipeline: TextPipeline, options: TranslateOptions) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "alignment": pharaoh(details.links),
        "confidence": _rounded_or_none(details.confidence),
    }
    if options.details or options.attention:
        parts = [_part(part, pipeline) for part in details.parts]
        if options.attention:
            for part, part_facts in zip(details.parts, parts, strict=True):
                weights = part.explanation.attention.tolist()
                part_facts["attention"] = [[_rounded(weight) for weight in row] for row in weights]
        facts["parts"] = parts
    return facts


def _part(part: PartDetails, pipeline: TextPipeline) -> dict[str, Any]:
    explanation, tokenizer = part.explanation, pipeline.target_tokenizer
    rows = zip(
        tokenizer.tokens(part.target_ids),
        explanation.token_probs.tolist(),
        explanation.alignment,
        explanation.best_ids.tolist(),
        explanation.best_probs.tolist(),
        strict=True,
    )
    return {
        "confidence": _rounded_or_none(LineDetails((part,), ()).confidence),
        "source_tokens": pipeline.source_tokenizer.tokens(part.source_ids),
        "target_tokens": [
            {
                "token": token,
                "probability": _rounded(probability),
                "source_token": source_token,
                "most_probable": [
                    {"token": name, "probability": _rounded(value)}
                    for name, value in zip(tokenizer.tokens(best_ids), best_probs, strict=True)
                ],
            }
            for token, probability, source_token, best_ids, best_probs in rows
        ],
    }


def _rounded_or_none(value: float | None) -> float | None:
    return None if value is None else _rounded(value)


def _rounded(value: float) -> float:
    """Six significant digits: the others are noise of float32."""
    return float(f"{value:.6g}")


def _with_num_best(translator: Translator, num_best: int, loaded: LoadedRun) -> Translator:
    """A translator with a beam that is wide enough for the n best translations.

    Raises:
        UsageError: an override sets a smaller beam.
    """
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
        name = "mbr" if decoding.rescore is None else "rescore"
        raise UsageError(
            f"--n-best {num_best} needs at least {num_best} candidates, but {name}.candidates is {decoding.num_candidates}",
            hint=f"--set decoding.{name}.candidates={num_best}",
        )
    return replace(translator, decoding=decoding)


def _choosing_by_comet(translator: Translator, folder: Path) -> Translator:
    if translator.decoding.mbr is None:
        raise UsageError(
            "--comet works only with decoding.mbr",
            hint='add --set "decoding.mbr={}", or leave out --comet',
        )
    from transformer_cli.decoding.comet import comet_utility

    return replace(translator, utility=comet_utility(folder))


def _with_replacement(translator: Translator, dictionary: Path | None) -> Translator:
    """A translator that replaces [UNK].

    Raises:
        UsageError: its model never writes [UNK].
        DataError: the dictionary cannot be read.
    """
    if translator.pipeline.target_tokenizer.byte_pieces is not None:
        raise UsageError(
            "--replace-unknown is for tokenizer.kind: wordlevel; this model writes every word in pieces",
            hint="leave out --replace-unknown",
        )
    if not translator.decoding.allow_unknown:
        raise UsageError(
            "--replace-unknown has no effect with decoding.allow_unknown: false",
            hint="add --set decoding.allow_unknown=true",
        )
    replacement = UnknownReplacement({} if dictionary is None else read_dictionary(dictionary))
    return replace(translator, pipeline=replace(translator.pipeline, replacement=replacement))


def read_dictionary(path: Path) -> dict[str, str]:
    """The translation of each word; if a word has several lines, the first counts.

    Args:
        path: a text file; each line has a word of the source, a tab, and its translation. Blank lines are left out.

    Raises:
        DataError: a line does not have two columns.
    """
    entries: dict[str, str] = {}
    with opened_lines(path) as windows:
        for number, line in enumerate(chain.from_iterable(windows), start=1):
            if not line.strip():
                continue
            columns = [column.strip() for column in line.split("\t")]
            if len(columns) != 2 or not all(columns):
                raise DataError(
                    f"{path}:{number}: {len(columns)} columns, where a word and its translation are expected",
                    hint="write: word, tab, translation",
                )
            entries.setdefault(*columns)
    return entries


def _check_options(options: TranslateOptions) -> None:
    """Refuse options that do not fit together, before a model is loaded.

    Raises:
        UsageError: details without JSON or with protected spans, a dictionary for nothing, or an alignment of n-best lists.
    """
    for is_given, option in ((options.details, "--details"), (options.attention, "--attention")):
        if is_given and not options.as_json:
            raise UsageError(f"{option} works only with --json", hint=f"add --json, or leave out {option}")
    if options.num_best is not None and options.needs_quality:
        raise UsageError(
            "--mark and --only-green say something of the best translation, but --n-best prints several",
            hint="leave out --n-best",
        )
    if options.mark and options.alignment and not options.as_json:
        raise UsageError("--mark and --alignment print different columns", hint="add --json, which has both")
    if options.protects_spans and options.any_details:
        raise UsageError(
            "--protect cannot be used with --alignment, --details and --attention",
            hint="these options describe a translation of the whole line, but --protect may translate a line in pieces",
        )
    if options.dictionary is not None and not options.replace_unknown:
        raise UsageError("--dictionary works only with --replace-unknown", hint="add --replace-unknown")
    if options.num_best is not None and options.alignment and not options.as_json:
        raise UsageError(
            "--alignment shows only the best translation, but --n-best prints several",
            hint="leave out one of the two, or add --json, which shows both",
        )


def _check_files(given: Sequence[str] | Path | None, output: Path | None, options: TranslateOptions) -> None:
    """Refuse files that cannot be read or written, before a model is loaded."""
    if output is not None:
        check_output(output)
    _check_given(given, output)
    if options.resume:
        _check_resumable(given, output)
    if options.dictionary is not None:
        check_input(options.dictionary, "--dictionary")
    if options.memory is not None:
        _check_memory(options.memory)
    if options.prefixes == STANDARD and given is None:
        raise DataError(
            "--prefixes -: standard input holds the lines to translate",
            hint="name a file of prefixes, or give the lines with --input",
        )
    if options.prefixes is not None and options.prefixes != STANDARD:
        check_input(options.prefixes, "--prefixes")
    check_read_files(output, options)


def check_read_files(output: Path | None, options: TranslateOptions) -> None:
    """Refuse an output that is a file which an option names, before a model is loaded.

    Raises:
        UsageError: it is one.
    """
    for option, path in (
        ("--glossary", options.glossary),
        ("--memory", options.memory),
        ("--prefixes", options.prefixes),
        ("--dictionary", options.dictionary),
    ):
        if path is not None and path != STANDARD and path.is_file():
            require_other_file(output, path.stat(), option)


def _check_memory(path: Path) -> None:
    """Refuse a memory that is no file, before a model is loaded; its content tells its reader what it is."""
    hint = "--memory takes a file: a table (CSV, TSV), a spreadsheet (.xlsx), TMX or XLIFF"
    if path == STANDARD:
        raise UsageError("--memory -: standard input is not read as a memory", hint=hint)
    if not stat.S_ISREG(input_status(path, hint).st_mode):
        raise DataError(
            f"{path}: a pipe or device; a memory is read more than once",
            hint="write it to a file first",
        )


def _check_given(given: Sequence[str] | Path | None, output: Path | None) -> None:
    if given is not None and not isinstance(given, Path):
        for sentence in files_among(given) if len(given) > 1 else filter(os.path.isfile, given):
            logger.warning(
                "%s is a file, but its name is translated, not its lines; did you mean --input %s?",
                sentence,
                for_shell(sentence),
            )
        for sentence in given:
            # `Path.is_dir` raises an error for a name that is too long to be one.
            if Path(sentence).name == sentence and os.path.isdir(RUNS / sentence / CHECKPOINTS):
                logger.warning(
                    "%s is a run, but its name is translated; did you mean --run %s?",
                    sentence,
                    for_shell(sentence),
                )
        return
    read = os.fstat(0) if given is None else check_input(given)
    if given is not None:
        require_utf_8(given)
    require_other_file(output, read, "the input")


def _check_resumable(given: Sequence[str] | Path | None, output: Path | None) -> None:
    """Refuse --resume for what cannot be read again, or cannot wait beside the output."""
    if not isinstance(given, Path) or not is_regular_file(given):
        raise UsageError("--resume is for a file of lines", hint="name the file with --input")
    if output is None or not is_new_or_regular(output):
        raise UsageError("--resume is for an output file", hint="name it with --output")


@contextmanager
def _progress(input_file: Path | None, output: Path | None, num_done: int) -> Iterator[Callable[[int], object]]:
    """A bar on standard error; yields a function that advances it by a number of lines.

    Nothing is shown unless the input is a file, standard error is a terminal, and the translations go elsewhere: into a
    file or a pipe.

    Args:
        input_file: the file of the input, if it is one.
        output: the file of the translations; None: standard output.
        num_done: the number of lines that are done already.
    """
    goes_elsewhere = output is not None or not sys.stdout.isatty()
    if input_file is None or not (is_regular_file(input_file) and goes_elsewhere and sys.stderr.isatty()):
        yield lambda num_lines: None
        return
    from tqdm import tqdm

    with tqdm(total=count_lines(input_file), initial=num_done, unit=" lines", dynamic_ncols=True) as bar:
        yield bar.update
