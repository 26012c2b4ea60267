"""Exact matches against answers whose number of faults is known."""

from collections.abc import Iterable, Iterator
from typing import cast

import pytest

from transformer_cli.config import SequencesData
from transformer_cli.data.sources.sequences import generate_sequences, sequences_of_length
from transformer_cli.decoding import Translation, Translator
from transformer_cli.evaluation.exact_match import exact_match_by_length


class Answers:
    """Copies; of every fourth sequence it gets the last symbol wrong, of every tenth it gives nothing."""

    def translate(self, lines: Iterable[str]) -> Iterator[Translation]:
        for number, line in enumerate(lines):
            text = line
            if number % 4 == 0:
                text = " ".join([*line.split()[:-1], "0"])
            if number % 10 == 1:
                text = ""
            yield Translation(line, text, 0.0, ())


def data(**settings: object) -> SequencesData:
    return SequencesData.model_validate(
        {"source": "sequences", "min_length": 4, "max_length": 6} | settings
    )


def test_sequences_and_symbols_that_are_right_are_counted_for_each_length() -> None:
    rows = exact_match_by_length(cast(Translator, Answers()), data(), None, seed=1)
    assert [(row.length, row.num_sequences) for row in rows] == [(4, 100), (5, 100), (6, 100)]
    for row in rows:
        # 25 have a wrong end; 10 others, odd in number, are empty: 0, 4, 8 ... and 1, 11, 21 ...
        assert row.exact == pytest.approx(65.0)
        assert row.symbols == pytest.approx(100 - 25 / row.length - 10)


def test_lengths_beyond_those_of_training_can_be_asked_for() -> None:
    rows = exact_match_by_length(cast(Translator, Answers()), data(), (5, 30), seed=1)
    assert [row.length for row in rows] == [5, 30]


def test_the_sequences_are_not_those_of_training() -> None:
    task = data(num_pairs=20_000)
    trained = {pair.source for pair in generate_sequences(task, "train", seed=1)}
    tested = {pair.source for pair in sequences_of_length(task, 5, seed=1)}
    assert not trained & tested
    assert len(tested) > 90
    assert {len(source.split()) for source in tested} == {5}


def test_to_memorise_its_own_sequences_are_asked_for() -> None:
    task = data(task="memorise", num_pairs=30)
    own = {pair.source for pair in generate_sequences(task, "train", seed=1)}
    rows = exact_match_by_length(cast(Translator, Answers()), task, (4, 5, 6, 7), seed=1)
    assert sum(row.num_sequences for row in rows) == 30
    assert 7 not in {row.length for row in rows}
    assert {pair.source for length in (4, 5, 6) for pair in sequences_of_length(task, length, seed=1)} == own  # fmt: skip
