"""A dictionary for `tfm translate --replace-unknown`: words of the source and their translations, in a TSV file."""

from dataclasses import replace
from itertools import chain
from pathlib import Path

from transformer_cli.commands.streams.input_lines import opened_lines
from transformer_cli.commands.translating.wishes import Wishes
from transformer_cli.decoding import Translator
from transformer_cli.decoding.text_pipeline import UnknownReplacement
from transformer_cli.process.errors import DataError, UsageError


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


def with_replacement(translator: Translator, wishes: Wishes) -> Translator:
    """The translator that replaces [UNK], if the user wishes so.

    Raises:
        UsageError: its model never writes [UNK].
        DataError: the dictionary cannot be read.
    """
    if not wishes.replace_unknown:
        return translator
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
    dictionary = {} if wishes.dictionary is None else read_dictionary(wishes.dictionary)
    replacement = UnknownReplacement(dictionary)
    return replace(translator, pipeline=replace(translator.pipeline, replacement=replacement))
