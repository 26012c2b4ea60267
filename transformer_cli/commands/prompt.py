"""The prompt of `tfm translate`: a person types lines at a terminal and reads their translations, or types commands."""

import importlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import NoReturn

from pydantic import ValidationError
from tqdm.utils import disp_len

from transformer_cli.commands.input_lines import LineDecoder
from transformer_cli.commands.output import is_new_or_regular, opened_output_of_typing
from transformer_cli.commands.translate_lines import (
    TranslateOptions,
    input_lines,
    output_bytes,
    output_lines,
)
from transformer_cli.config import DecodingConfig, SequencesData
from transformer_cli.config.refusal import plain_reason
from transformer_cli.decoding import (
    PartDetails,
    TextPipeline,
    Translation,
    Translator,
    UnknownWords,
)
from transformer_cli.decoding.translation import GlossaryUse, SourceText
from transformer_cli.process.errors import TfmError, UsageError
from transformer_cli.process.messages import (
    escaped,
    fitted,
    for_output,
    on_one_line,
    terminal_width,
)
from transformer_cli.process.signals import ended_after
from transformer_cli.text.languages import meant_among

logger = logging.getLogger(__name__)

SIGN = ":"
"""A line that begins with this sign is a command; a text that begins with it is typed with two."""
_QUIT = "quit"
_HELP = {
    "beam": (":beam 8", "search with 8 hypotheses from now on"),
    "to": (":to CODE", "translate into this language from now on, if the model knows several"),
    "why": (":why", "how probable the last translation was, and what else was likely"),
    "help": (":help", "show this list"),
    _QUIT: (":quit", "end, as Ctrl-D does"),
}
_MOST_TOLD = 5  # translations that `:why` lists
_NUM_OTHERS = 3
_MAX_TOKEN = 16  # characters of a token that are shown
# A token as improbable as this is not told.
_LEAST_PROBABILITY = 0.0005
_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")
_KEYS_TO_END = "Ctrl-Z and Enter end" if os.name == "nt" else "Ctrl-D ends"
_WORDS_TO_END = (b"exit", b"quit")
_MAX_DELAY_SECONDS = 0.5  # between a signal at the prompt and its effect


def talk(translator: Translator, options: TranslateOptions, output: Path | None) -> None:
    """Translate each line that is typed, until the person ends the input.

    Args:
        output: a file that gets the translations, too; None: standard output.

    Raises:
        UsageError: two models translate in a row.
    """
    if translator.before is not None:
        raise UsageError(
            "the prompt works with one model, not with two in a row (--via)",
            hint="give sentences, or a file with --input",
        )
    prompt, unknown_words, glossary_use = Prompt(translator, options), UnknownWords(), GlossaryUse()
    conversation = prompt.conversation
    with opened_output_of_typing(output) as write:
        for window in input_lines(([line] for line in prompt.texts()), options):
            pipeline = prompt.translator.pipeline
            translator, details = prompt.translator, options.any_details
            translations = translator.translate_window(window, with_details=details)
            prompt.last, prompt.last_translation = window[0], translations[0]
            data = output_bytes(window, translations, pipeline, options, output)
            if output is None:
                conversation.announce_answer()
            with ended_after():
                write(data)
            if output is not None and is_new_or_regular(output):
                shown = [line for one in translations for line in output_lines(one, pipeline, options)]
                conversation.show_answer(shown)
            for translation in translations:
                unknown_words.add(translation)
                glossary_use.add(translation)
            unknown_words.report()


class Prompt:
    """What a person has set at the prompt, and the line that was translated last."""

    def __init__(self, translator: Translator, options: TranslateOptions) -> None:
        self.options = options
        self.translator = replace(translator.with_estimates_if_possible(), reports_not_green=options.needs_quality)
        self.last: SourceText | None = None
        self.last_translation: Translation | None = None
        self.conversation = Conversation(translator.pipeline)
        self._commands: dict[str, Callable[[str], None]] = {
            "beam": self._set_beam,
            "to": self._set_target,
            "why": self._tell_why,
            "help": self._tell_help,
        }

    def texts(self) -> Iterator[str]:
        """The typed lines that are to be translated; commands among them are obeyed."""
        for line in self.conversation.lines():
            if not line.startswith(SIGN):
                yield line
            elif line.startswith(2 * SIGN):
                yield line.removeprefix(SIGN)
            elif line.removeprefix(SIGN).split()[:1] == [_QUIT]:
                return
            else:
                self._obey(line)

    def _obey(self, line: str) -> None:
        name, _, value = line.removeprefix(SIGN).strip().partition(" ")
        command = self._commands.get(name)
        try:
            if command is None:
                known = ", ".join(f"{SIGN}{one}" for one in _HELP)
                raise UsageError(
                    f"{SIGN}{name} is not a command; the commands are {known}",
                    hint=f"a text that begins with {SIGN} is typed with {2 * SIGN}",
                )
            command(value.strip())
        except TfmError as error:
            self.conversation.tell(str(error).splitlines())

    def _set_beam(self, value: str) -> None:
        if not (value.isascii() and value.isdigit() and len(value) < 10):
            raise UsageError(
                f"{f':beam {value}'.rstrip()}: a whole number is expected",
                hint="such as :beam 8; 1 is greedy search",
            )
        changed = self.translator.decoding.model_dump() | {"beam_size": int(value)}
        try:
            decoding = DecodingConfig.model_validate(changed)
        except ValidationError as error:
            problem = plain_reason(error.errors()[0])
            raise UsageError(f":beam {value}: {problem}", hint="such as :beam 8") from error
        self.translator = replace(self.translator, decoding=decoding)
        self.conversation.tell([f"the beam has {value} {'hypothesis' if value == '1' else 'hypotheses'}"])

    def _set_target(self, value: str) -> None:
        if not value:
            raise UsageError(":to: the language is missing", hint="such as :to it")
        number = direction_towards(value, self.translator.pipeline)
        changed = replace(self.translator, estimates=False).in_direction(number)
        changed = changed.with_estimates_if_possible()
        if self.options.needs_quality and not changed.estimates:
            raise UsageError(
                f":to {value}: no calibration of {changed.pipeline.languages}, which --mark and --only-green need",
                hint="end with :quit, and start again without them, or after tfm calibrate --to",
            )
        self.translator = changed
        self.conversation.speak(self.translator.pipeline)

    def _tell_why(self, value: str) -> None:
        if self.last is None or self.last_translation is None:
            raise UsageError(":why: nothing was translated yet", hint="type a sentence first")
        translator = self.translator
        num_best = min(_MOST_TOLD, translator.decoding.num_hypotheses)
        decoding = translator.decoding.model_copy(update={"num_best": num_best})
        several = replace(translator, decoding=decoding, only_green=False, reports_lines=False)
        self.conversation.tell(trust_lines(self.last_translation, translator.pipeline))
        for translation in several.translate_window([self.last], with_details=True):
            # Where only green translations are shown, the last one may have been left out.
            if self.last_translation.text not in ("", translation.text):
                self.conversation.tell(
                    [
                        "the last line was translated in pieces, to keep its layout or its protected spans; "
                        "this is the line as one text:",
                        translation.text,
                    ]
                )
            self.conversation.tell(reason_lines(translation, translator.pipeline), is_table=True)

    def _tell_help(self, value: str) -> None:
        width = max(len(example) for example, _ in _HELP.values())
        self.conversation.tell(
            [
                *(f"{example:<{width}}  {meaning}" for example, meaning in _HELP.values()),
                f"{2 * SIGN:<{width}}  at the beginning of a line: the text begins with {SIGN}",
            ]
        )


def direction_towards(language: str, pipeline: TextPipeline) -> int:
    """The index of the direction into a language: from the source language of now, if the model can do that.

    Raises:
        UsageError: the model does not translate into this language, or from several others into it.
    """
    if isinstance(pipeline.data, SequencesData):
        raise UsageError(
            f":to {language}: the model of task {pipeline.data.task} translates no language",
            hint="type the next line without :to",
        )
    directions, now = pipeline.data.directions, pipeline.languages
    targets = list(dict.fromkeys(one.target for one in directions))
    target = meant_among(language, targets)
    if target is None:
        raise UsageError(
            f":to {language}: this model translates into: {', '.join(targets)}",
            hint="such as " + " or ".join(f":to {one}" for one in targets),
        )
    fitting = [number for number, one in enumerate(directions) if one.target == target]
    from_now = [number for number in fitting if directions[number].source == now.source]
    if len(from_now or fitting) > 1:
        sources = [directions[number].source for number in fitting]
        raise UsageError(
            f":to {language}: this model translates into: {target} from {', '.join(sources)}, but the prompt is "
            f"set to {now.source}",
            hint="end with :quit, and start again with "
            + " or ".join(f"--to {target} --from {source}" for source in sources),
        )
    return (from_now or fitting)[0]


def trust_lines(translation: Translation, pipeline: TextPipeline) -> list[str]:
    """What is known about the quality of a translation: its doubts, and its estimate if the run has a calibration."""
    lines = [f"doubt: the translation {doubt}" for doubt in translation.doubts]
    if translation.is_repaired:
        lines.append("the first translation was doubtful, so the sentence was searched again")
    estimate, quality = translation.estimate, pipeline.quality
    if estimate is not None and quality is not None:
        verdict = "green" if estimate.is_green else "not green"
        lines.append(
            f"{verdict}: the translation is good with an estimated probability of {estimate.probability:.3f} (good means "
            f"{quality.promise.metric} {quality.promise.below:g} or more against the translation of a person)"
        )
        if reason := quality.why_not_green(translation):
            lines.append(f"not green, because {reason}")
    return lines


def reason_lines(translation: Translation, pipeline: TextPipeline) -> list[str]:
    """A table with a row for each token of the translation, and then the other translations with their scores.

    Args:
        translation: one with details.
        pipeline: the one that made it.
    """
    details = translation.details
    if details is None or not details.parts:
        return ["there is nothing to explain: the translation is empty"]
    rows = [("probability", "token", "read most", "others in this place")]
    for part in details.parts:
        rows += _rows(part, pipeline)
    lines = _table(rows)
    if len(translation.alternatives) > 1:
        lines.append("the best translations, by score:")
        lines += [f"{one.score:>11.3f}  {one.text}" for one in translation.alternatives]
    return lines


def _rows(part: PartDetails, pipeline: TextPipeline) -> Iterator[tuple[str, str, str, str]]:
    explanation, tokenizer = part.explanation, pipeline.target_tokenizer
    source_tokens = pipeline.source_tokenizer.tokens(part.source_ids)
    rows = zip(
        part.target_ids,
        explanation.token_probs.tolist(),
        explanation.alignment,
        explanation.best_ids.tolist(),
        explanation.best_probs.tolist(),
        strict=True,
    )
    for token, probability, source_token, best_ids, best_probs in rows:
        others = [
            f"{_shown(name)} {value:.3f}"
            for index, name, value in zip(best_ids, tokenizer.tokens(best_ids), best_probs, strict=True)
            if index != token and value >= _LEAST_PROBABILITY
        ]
        [name] = tokenizer.tokens([token])
        read = _shown(source_tokens[source_token])
        yield f"{probability:.3f}", _shown(name), read, ", ".join(others[:_NUM_OTHERS])


def _shown(token: str) -> str:
    return on_one_line(token, _MAX_TOKEN)


def _table(rows: Sequence[tuple[str, str, str, str]]) -> list[str]:
    """Rows with columns of equal width; the first is aligned to the right."""
    widths = [max(disp_len(row[column]) for row in rows) for column in range(3)]

    def cell(row: tuple[str, str, str, str], column: int) -> str:
        return row[column] + " " * (widths[column] - disp_len(row[column]))

    return ["  ".join((f"{row[0]:>{widths[0]}}", cell(row, 1), cell(row, 2), row[3])).rstrip() for row in rows]


class Conversation:
    """Reads lines from a terminal; a line is translated before the next one is read.

    Prompts go to standard error, so standard output holds translations only.
    """

    def __init__(self, pipeline: TextPipeline) -> None:
        self.speak(pipeline)

    def speak(self, pipeline: TextPipeline) -> None:
        """Ask and answer in the languages of this pipeline from now on."""
        if isinstance(pipeline.data, SequencesData):
            self._subject, self._prompt, self._label = f"task {pipeline.data.task}", "> ", "= "
        else:
            source, target = pipeline.languages
            self._subject = f"{source} to {target}"
            self._prompt, self._label = f"{source}> ", f"{target}> "

    def lines(self) -> Iterator[str]:
        """Each line that is typed, until the person ends the input."""
        logger.info(
            "%s: type a sentence and press Enter; %s, and so does the line: exit; :help lists commands",
            self._subject,
            _KEYS_TO_END,
        )
        decoder = LineDecoder("standard input")
        while (typed := self._read()) is not None and typed.strip() not in _WORDS_TO_END:
            for line in typed.split(b"\n"):  # several lines may be pasted at once
                yield decoder.decode(line.removesuffix(b"\r"))
        decoder.finish()

    def announce_answer(self) -> None:
        """Write the target language before a translation, if a terminal shows both output streams."""
        if sys.stderr.isatty() and sys.stdout.isatty():
            sys.stderr.write(self._label)
            sys.stderr.flush()

    def show_answer(self, lines: Sequence[str]) -> None:
        """Show a translation at the terminal, beside the file that `--output` names."""
        for stream in (sys.stderr, sys.stdout):
            if stream.isatty():
                shown = "".join(f"{for_output(line, stream)}\n" for line in lines)
                stream.write(f"{self._label}{shown}")
                stream.flush()
                return

    def tell(self, lines: Iterable[str], *, is_table: bool = False) -> None:
        """Show lines that are no translations to the person; a table is cut where the terminal would wrap it."""
        stream = sys.stdout if sys.stdout.isatty() and not sys.stderr.isatty() else sys.stderr
        shown: Iterable[str] = map(escaped, lines)
        if is_table:
            num_columns = terminal_width(stream)
            shown = (fitted(line, num_columns) for line in shown)
        stream.write("".join(f"{line}\n" for line in shown))
        stream.flush()

    def _read(self) -> bytes | None:
        """One line without its line feed, or several pasted lines; None at the end."""
        if not (sys.stderr.isatty() or sys.stdout.isatty()):
            raw = sys.stdin.buffer.readline()
            return raw.removesuffix(b"\n") if raw else None
        with suppress(ImportError):  # Windows has no readline library: its terminal has line editing
            importlib.import_module("readline")
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
        try:
            with _signals_raised(), _woken_regularly(), _standard_output_at_the_terminal():
                return input(self._prompt).encode("utf-8", "surrogateescape")
        except EOFError:
            sys.stderr.write("\n")  # the cursor stands behind the prompt
            return None


class _SignalCame(BaseException):
    """A signal came while a person typed a line."""


@contextmanager
def _signals_raised() -> Iterator[None]:
    """Turn a signal in the block into an exception; after the block, send the signal to its own handler.

    The readline library has changed the settings of the terminal, and it restores them after an exception. The
    handler may end the process at once, and then the terminal would keep the changed settings.
    """

    def raise_it(number: int, frame: FrameType | None) -> NoReturn:
        raise _SignalCame(number)

    numbers = [getattr(signal, name) for name in _ENDING if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    came = None
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, raise_it)
        yield
    except _SignalCame as error:
        came = error.args[0]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came is not None:
        sys.stderr.write("\n")
        signal.raise_signal(came)


@contextmanager
def _woken_regularly() -> Iterator[None]:
    """Interrupt the wait for a key at regular times, so that Python looks whether a signal came.

    Python looks after each wait that a signal interrupts. A signal that comes just before the wait, while the
    readline library shows a key, interrupts nothing: without this, it would have no effect until the next key.
    """
    if not hasattr(signal, "setitimer"):  # Windows
        yield
        return
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, _MAX_DELAY_SECONDS, _MAX_DELAY_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _standard_output_at_the_terminal() -> Iterator[None]:
    """During the block, let file descriptor 1 be standard error, if standard error is a terminal.

    `input` and the readline library write the prompt and the edited line to descriptor 1. They edit lines only
    if it is a terminal, but standard output may be a file.
    """
    if not sys.stderr.isatty():
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
