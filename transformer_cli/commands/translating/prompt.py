"""The prompt of `tfm translate`: a person types a line at a terminal and reads its translation."""

from pathlib import Path

from transformer_cli.commands.streams.output_file import is_new_or_regular, opened_output_of_typing
from transformer_cli.commands.streams.typed_lines import Conversation
from transformer_cli.commands.translating.task import Task, with_prefixes
from transformer_cli.decoding import UnknownWords
from transformer_cli.signals import ended_after


def talk(task: Task, output: Path | None) -> None:
    """Translate each line that is typed, until the person ends the input.

    Args:
        output: a file that gets the translations, too; None: standard output.
    """
    conversation, unknown_words = Conversation(task.translator.pipeline), UnknownWords()
    with opened_output_of_typing(output) as write:
        for window in with_prefixes(([line] for line in conversation.lines()), task.wishes):
            translations = task.translations(window)
            data = task.output(translations, is_standard=output is None)
            if output is None:
                conversation.announce_answer()
            with ended_after():
                write(data)
            if output is not None and is_new_or_regular(output):
                conversation.show_answer(task.lines(translations))
            for translation in translations:
                unknown_words.add(translation)
            unknown_words.report()
