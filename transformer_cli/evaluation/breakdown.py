"""A breakdown: the scores of groups of sentences, such as short and long ones, or those with rare and with frequent words."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.config import Config
from transformer_cli.data.encoded import EncodedCorpus
from transformer_cli.data.preparation import TRAIN, num_corpora
from transformer_cli.decoding import TextPipeline
from transformer_cli.evaluation.metrics import (
    UNSPACED_LANGUAGES,
    Measurement,
    num_digits,
)
from transformer_cli.text.languages import plain_code

LENGTHS = (1, 6, 11, 16, 21, 31, 41, 61)
"""The shortest length of each group but the first, which holds empty lines."""
FREQUENCIES = (1, 2, 10, 100, 1000)
"""The smallest frequency of each group but the first, which holds sentences with a word that never occurs."""


class Group(NamedTuple):
    """Some of the sentences, and their scores."""

    label: str
    num_sentences: int
    values: dict[str, float]
    """Name of a score -> its value for these sentences alone."""


class Breakdown(NamedTuple):
    """All sentences in groups."""

    by: str
    """The property that decides the group of a sentence."""
    groups: list[Group]

    def as_json(self) -> dict[str, Any]:
        """A dictionary for `json.dump`."""
        groups = [
            {"label": label, "num_sentences": num_sentences, "scores": values}
            for label, num_sentences, values in self.groups
        ]
        return {"by": self.by, "groups": groups}

    def lines(self) -> list[str]:
        """A table for people: a row for each group, a column for each score."""
        names = list(self.groups[0].values)
        labels = [self.by, *(group.label for group in self.groups)]
        width = max(map(len, labels))
        heading = f"{self.by:<{width}}{'sentences':>11}" + "".join(f"  {name:>8}" for name in names)
        return [heading, *(self._row(group, width) for group in self.groups)]

    def _row(self, group: Group, width: int) -> str:
        values = "".join(f"  {value:>{max(8, len(name))}.{num_digits(name)}f}" for name, value in group.values.items())
        return f"{group.label:<{width}}{group.num_sentences:>11,}{values}"


def by_number(measured: Sequence[Measurement], by: str, numbers: Sequence[int], lowest: Sequence[int]) -> Breakdown:
    """The groups of a number of each sentence; groups without sentences are left out.

    Args:
        measured: the scores.
        by: what the number is.
        numbers: one for each sentence, 0 or more.
        lowest: the lowest number of each group, in rising order; below the first one, there is one more group.
    """
    bounds = (0, *lowest)
    groups = [max(bound for bound in bounds if bound <= number) for number in numbers]
    labels = {bound: _label(bound, after) for bound, after in zip(bounds, [*lowest, None], strict=True)}
    return _broken_down(measured, by, groups, [(bound, labels[bound]) for bound in bounds])


def by_name(measured: Sequence[Measurement], by: str, names: Sequence[str]) -> Breakdown:
    """The groups of sentences with the same name, such as that of their corpus."""
    return _broken_down(measured, by, names, [(name, name) for name in dict.fromkeys(names)])


def lengths_in_words(texts: Iterable[str], language: str | None) -> tuple[str, list[int]]:
    """The unit of length, and the length of each text: words, or characters if there are no spaces between words."""
    if plain_code(language) in UNSPACED_LANGUAGES:
        return "characters", [len("".join(text.split())) for text in texts]
    return "words", [len(text.split()) for text in texts]


def _broken_down(
    measured: Sequence[Measurement],
    by: str,
    keys: Sequence[Hashable],
    order: Iterable[tuple[Hashable, str]],
) -> Breakdown:
    rows: dict[Hashable, list[int]] = {}
    for row, key in enumerate(keys):
        rows.setdefault(key, []).append(row)
    groups = [
        Group(label, len(rows[key]), {one.name: one.value(rows[key]) for one in measured})
        for key, label in order
        if key in rows
    ]
    return Breakdown(by, groups)


def _label(lowest: int, next_lowest: int | None) -> str:
    if next_lowest is None:
        return f"{lowest:,} or more"
    return str(lowest) if next_lowest == lowest + 1 else f"{lowest:,} to {next_lowest - 1:,}"


# How often the words of a sentence occur in the sources that a model was trained on.


def training_sources(config: Config, checkpoint: Path) -> EncodedCorpus | None:
    """The prepared training pairs of a run; None if they are not there, or are only a part of the corpus.

    Args:
        checkpoint: the folder of the checkpoint, in the folder of its run or elsewhere.
    """
    run = RunFolder.containing(checkpoint)
    is_streamed = bool(getattr(config.data, "streaming", False))
    if run is None or is_streamed or not (run.data_folder / TRAIN).is_file():
        return None
    return EncodedCorpus.open(run.data_folder / TRAIN, num_corpora=num_corpora(config, with_reversed=False))


def rarest_word_frequencies(pipeline: TextPipeline, texts: Sequence[str], training: EncodedCorpus) -> list[int]:
    """For each source text, how often its rarest word or mark occurs in the training sources; 0 for a blank text.

    A word that is not in the vocabulary of a tokenizer of whole words has the frequency 0.

    Args:
        pipeline: its source tokenizer has encoded the training pairs.
        texts: sources, not normalised.
    """
    words = [_words(pipeline, pipeline.normalize_source(text)) for text in texts]
    sought = {word for text_words in words for word in text_words}
    counts: Counter[str] = Counter()
    decode = pipeline.source_tokenizer.decode
    for index in range(len(training)):
        text = decode(map(int, training[index].source_ids))
        counts.update(word for word in _words(pipeline, text) if word in sought)
    return [min((counts[word] for word in text_words), default=0) for text_words in words]


def _words(pipeline: TextPipeline, text: str) -> list[str]:
    return [word for word in map(str.strip, pipeline.source_tokenizer.words(text)) if word]
