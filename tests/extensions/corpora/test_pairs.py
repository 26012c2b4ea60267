"""The parts of a corpus that are checked and cleaned, and their pairs."""

from collections.abc import Iterator

import pytest

from transformer_cli.config.data import HubData
from transformer_cli.data.sources import corpus
from transformer_cli.extensions.corpora.pairs import NumberedPairs, corpus_parts

ROWS = [[(f"the {n}", f"il {n}") for n in range(4)], [(f"il {n}", f"le {n}") for n in range(3)]]


def test_each_corpus_of_the_hub_is_a_part_in_its_own_languages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read(data: HubData, index: int, *_: object) -> Iterator[tuple[str, str]]:
        yield from ROWS[index]

    monkeypatch.setattr(corpus, "read_hub", read)
    corpora = [
        {"dataset": "a/b", "split": "train"},
        {"dataset": "a/c", "split": "train", "source_language": "it", "target_language": "fr"},
    ]
    data = HubData.model_validate({"source": "hub", "validation_share": 0.0, "corpora": corpora})
    parts = corpus_parts(data)
    assert [part.name for part in parts] == ["a/b, train", "a/c, train"]
    assert [str(part.direction) for part in parts] == ["en-it", "it-fr"]
    found = [[pair[1:3] for pair in NumberedPairs(part, data)] for part in parts]
    assert found == ROWS
