"""The scores of groups of sentences: each group is scored as if it were a corpus of its own."""

from collections import Counter

import pytest

from transformer_cli.evaluation.breakdown import by_name, by_number, lengths_in_words
from transformer_cli.evaluation.metrics import measure_corpus, score_corpus

from .scored_texts import REFERENCES, damaged

HYPOTHESES = damaged(REFERENCES, 0.3, seed=1)
NAMES = ("bleu", "chrf", "ter", "cer", "exact_match", "length_ratio")
MEASURED = measure_corpus(HYPOTHESES, REFERENCES, NAMES)


def alone(rows: list[int]) -> dict[str, float]:
    hypotheses, references = [HYPOTHESES[i] for i in rows], [REFERENCES[i] for i in rows]
    return {score.name: score.value for score in score_corpus(hypotheses, references, NAMES)}


def test_each_group_is_scored_as_a_corpus_of_its_own() -> None:
    numbers = [len(line.split()) for line in REFERENCES]
    found = by_number(MEASURED, "words", numbers, (3, 6, 50))
    assert [group.label for group in found.groups] == ["0 to 2", "3 to 5", "6 to 49"]
    bounds = [(0, 2), (3, 5), (6, 49)]
    for group, (low, high) in zip(found.groups, bounds, strict=True):
        rows = [row for row, number in enumerate(numbers) if low <= number <= high]
        assert group.num_sentences == len(rows)
        assert group.values == pytest.approx(alone(rows))
    assert sum(group.num_sentences for group in found.groups) == len(REFERENCES)


def test_groups_by_name_stand_in_the_order_of_the_sentences() -> None:
    names = ["b" if row % 3 else "a" for row in range(len(REFERENCES))]
    found = by_name(MEASURED, "corpus", names)
    assert [(group.label, group.num_sentences) for group in found.groups] == [
        (name, Counter(names)[name]) for name in ("a", "b")
    ]
    assert found.groups[0].values == pytest.approx(alone(list(range(0, len(REFERENCES), 3))))


def test_labels_say_which_numbers_belong_to_a_group() -> None:
    numbers = [0, 1, 2, 9, 1000, 5000, *[10] * (len(REFERENCES) - 6)]
    labels = [group.label for group in by_number(MEASURED, "x", numbers, (1, 2, 10, 1000)).groups]
    assert labels == ["0", "1", "2 to 9", "10 to 999", "1,000 or more"]


def test_lengths_are_words_or_characters_where_there_are_no_spaces() -> None:
    assert lengths_in_words(["uno  due", ""], "it") == ("words", [2, 0])
    assert lengths_in_words(["你好 吗"], "zh-CN") == ("characters", [3])


def test_the_table_has_a_row_for_each_group() -> None:
    found = by_name(MEASURED, "corpus", ["a"] * len(REFERENCES))
    heading, row = found.lines()
    assert heading.split() == ["corpus", "sentences", *found.groups[0].values]
    assert row.split()[:3] == ["a", "60", f"{MEASURED[0].value():.2f}"]
    assert len(heading) == len(row)
    assert found.as_json()["groups"][0]["scores"] == found.groups[0].values
