"""The prompt of `tfm translate`: a person types lines at a terminal and reads their translations, or types commands."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from transformer_cli.commands.streams.output_file import is_new_or_regular, opened_output_of_typing
from transformer_cli.commands.streams.typed_lines import Conversation
from transformer_cli.commands.translating.reasons import reason_lines
from transformer_cli.commands.translating.task import InputLine, Task, input_lines
from transformer_cli.config import DecodingConfig, SequencesData
from transformer_cli.decoding import TextPipeline, Translator, UnknownWords
from transformer_cli.decoding.translation import GlossaryUse
from transformer_cli.process.errors import TfmError, UsageError
from transformer_cli.process.signals import ended_after
from transformer_cli.text.languages import meant_among

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


def talk(task: Task, output: Path | None) -> None:
    """Translate each line that is typed, until the person ends the input.

    Args:
        output: a file that gets the translations, too; None: standard output.
    """
    prompt, unknown_words, glossary_use = Prompt(task), UnknownWords(), GlossaryUse()
    conversation = prompt.conversation
    with opened_output_of_typing(output) as write:
        for window in input_lines(([line] for line in prompt.texts()), task.wishes):
            translations = prompt.task.translations(window)
            prompt.last, prompt.last_text = window[0], translations[0].text
            data = prompt.task.output(window, translations, is_standard=output is None)
            if output is None:
                conversation.announce_answer()
            with ended_after():
                write(data)
            if output is not None and is_new_or_regular(output):
                conversation.show_answer(prompt.task.lines(translations))
            for translation in translations:
                unknown_words.add(translation)
                glossary_use.add(translation)
            unknown_words.report()


class Prompt:
    """What a person has set at the prompt, and the line that was translated last."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.last: InputLine | None = None
        self.last_text = ""
        self.conversation = Conversation(task.translator.pipeline)
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
            elif line.removeprefix(SIGN).strip() == _QUIT:
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
        translator = self.task.translator
        if not (value.isascii() and value.isdigit() and len(value) < 10):
            raise UsageError(
                f"{f':beam {value}'.rstrip()}: a whole number is expected",
                hint="such as :beam 8; 1 is greedy search",
            )
        changed = translator.decoding.model_dump() | {"beam_size": int(value)}
        try:
            decoding = DecodingConfig.model_validate(changed)
        except ValidationError as error:
            problem = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise UsageError(f":beam {value}: {problem}", hint="such as :beam 8") from error
        self._use(replace(translator, decoding=decoding))
        self.conversation.tell(
            [f"the beam has {value} {'hypothesis' if value == '1' else 'hypotheses'}"]
        )

    def _set_target(self, value: str) -> None:
        if not value:
            raise UsageError(":to: the language is missing", hint="such as :to it")
        translator = self.task.translator
        pipeline = translator.pipeline
        number = direction_towards(value, pipeline)
        self._use(translator.in_direction(number))
        self.conversation.speak(self.task.translator.pipeline)

    def _tell_why(self, value: str) -> None:
        if self.last is None:
            raise UsageError(":why: nothing was translated yet", hint="type a sentence first")
        translator = self.task.translator
        num_best = min(_MOST_TOLD, translator.decoding.num_hypotheses)
        decoding = translator.decoding.model_copy(update={"num_best": num_best})
        task = replace(self.task, translator=replace(translator, decoding=decoding))
        for translation in task.translations([self.last], with_details=True):
            if translation.text != self.last_text:
                self.conversation.tell(
                    [
                        "the last line was translated in pieces, to keep its layout or its protected spans; "
                        "this is the line as one text:",
                        translation.text,
                    ]
                )
            self.conversation.tell(reason_lines(translation, translator.pipeline))

    def _tell_help(self, value: str) -> None:
        width = max(len(example) for example, _ in _HELP.values())
        self.conversation.tell(
            [
                *(f"{example:<{width}}  {meaning}" for example, meaning in _HELP.values()),
                f"{2 * SIGN:<{width}}  at the beginning of a line: the text begins with {SIGN}",
            ]
        )

    def _use(self, translator: Translator) -> None:
        self.task = replace(self.task, translator=translator)


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
