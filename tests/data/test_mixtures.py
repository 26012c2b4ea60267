"""How often an epoch visits the pairs of each corpus: temperatures, and weights that change."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.config import Config, FilesData, TrainingConfig
from transformer_cli.config.loading import check_settings
from transformer_cli.data.order import EpochOrder, Indices, epoch_order, tempered_weights
from transformer_cli.process.errors import ConfigError, DataError

SIZES = [700, 60, 240]


def lengths(indices: Indices) -> tuple[Indices, Indices]:
    return 1 + indices % 30, 1 + indices % 20


def config_of(corpora: list[Any], **data: Any) -> Config:
    corpora = [{"path": f"{number}.tsv"} | one for number, one in enumerate(corpora)]
    section = FilesData.model_validate({"source": "files", "corpora": corpora} | data)
    return Config(name="a", data=section, training=TrainingConfig(max_steps=1, batch_tokens=300))


def visits(order: EpochOrder, epoch: int) -> list[Counter[int]]:
    """How often an epoch visits each pair, for each corpus."""
    counts = Counter(np.concatenate(list(order.batches(epoch))).tolist())
    ends = np.cumsum(SIZES)
    return [
        Counter({pair: counts[pair] for pair in range(end - size, end)})
        for size, end in zip(SIZES, ends.tolist(), strict=True)
    ]


@pytest.mark.parametrize("temperature", [1.5, 5.0, 100.0])
def test_the_shares_are_those_of_the_formula(temperature: float) -> None:
    order = epoch_order(lengths, SIZES, config_of([{}, {}, {}], temperature=temperature))
    powers = [(size / sum(SIZES)) ** (1 / temperature) for size in SIZES]
    for epoch in range(3):
        found = visits(order, epoch)
        for corpus, power, size in zip(found, powers, SIZES, strict=True):
            expected = sum(SIZES) * power / sum(powers)
            assert corpus.total() == pytest.approx(expected, abs=1.0)
            # Each pair as often as the others of its corpus, but for one visit.
            each = expected / size
            assert {int(each), int(each) + 1} >= set(corpus.values())


@given(st.lists(st.integers(0, 10**9), min_size=2, max_size=6), st.floats(1.01, 1000.0))
def test_an_epoch_has_as_many_pairs_as_all_corpora_together(sizes: list[int], temperature: float) -> None:
    weights = tempered_weights(sizes, temperature)
    total = sum(size * weight for size, weight in zip(sizes, weights, strict=True))
    assert total == pytest.approx(sum(sizes))


def test_weights_change_at_their_epochs() -> None:
    schedule = [[0, 1], [2, 0.25], [3, 0]]
    order = epoch_order(lengths, SIZES, config_of([{"weight": schedule}, {"weight": 2}, {}]))
    for epoch, weight in enumerate([1, 1, 0.25, 0, 0]):
        found = visits(order, epoch)
        assert [one.total() for one in found] == [700 * weight, 120, 240]
        assert order.num_pairs(epoch) == 700 * weight + 360
        assert set(found[1].values()) == {2}


def test_an_epoch_does_not_depend_on_the_ones_before() -> None:
    """The order of epoch 2 is that of a run whose weights were constant."""
    changing = epoch_order(lengths, SIZES, config_of([{"weight": [[0, 1], [2, 0.5]]}, {}, {}]))
    constant = epoch_order(lengths, SIZES, config_of([{"weight": 0.5}, {}, {}]))
    for found, expected in zip(changing.batches(2), constant.batches(2), strict=True):
        assert np.array_equal(found, expected)
    first = [batch.tolist() for batch in changing.batches(2)][5:]
    assert [batch.tolist() for batch in changing.batches(2, first=5)] == first


def test_an_epoch_without_a_pair_is_an_error_and_no_endless_loop() -> None:
    config = config_of([{"weight": [[0, 1], [1, 0]]}, {}])
    order = epoch_order(lengths, [50, 0], config)
    assert order.num_pairs(0) == 50
    with pytest.raises(DataError, match="epoch 1 has no training pair"):
        order.batches(1)


BAD = {
    "temperature has no effect on a single corpus": ([{}, {"split": "test"}], {"temperature": 5.0}),
    "both temperature and the weights of data.corpora decide how often each corpus is read": (
        [{"weight": 2}, {}],
        {"temperature": 5.0},
    ),
    "weight is 0 in each epoch, so this corpus is never read": (
        [{}, {"weight": [[0, 0], [3, 0]]}],
        {},
    ),
    "begins with epoch 0, and the epochs rise; found [1]": ([{"weight": [[1, 1]]}], {}),
    "begins with epoch 0, and the epochs rise; found [0, 3, 3]": (
        [{"weight": [[0, 1], [3, 1], [3, 2]]}],
        {},
    ),
    "from epoch 4 on every corpus of training pairs has weight 0": (
        [{"weight": [[0, 1], [4, 0]]}, {"weight": [[0, 0], [2, 1], [3, 0]]}],
        {},
    ),
    "weight has no effect on a corpus of split test": (
        [{}, {"split": "test", "weight": [[0, 2]]}],
        {},
    ),
}


@pytest.mark.parametrize("problem", BAD)
def test_a_mixture_that_cannot_be_is_refused(problem: str) -> None:
    corpora, data = BAD[problem]
    corpora = [{"path": f"{number}.tsv"} | one for number, one in enumerate(corpora)]
    settings = {
        "name": "a",
        "data": {"source": "files", "corpora": corpora} | data,
        "training": {"max_steps": 1, "batch_tokens": 300},
    }
    with pytest.raises(ConfigError) as refused:
        check_settings(settings, "test")
    assert problem in str(refused.value)


@pytest.mark.parametrize("weight", [0, -1, "often", [], [[0]], [[0, -1]], [0, 1]])
def test_a_bad_weight_is_refused_with_its_place(weight: Any) -> None:
    settings = {
        "name": "a",
        "data": {"source": "files", "corpora": [{"path": "a.tsv", "weight": weight}]},
        "training": {"max_steps": 1, "batch_tokens": 300},
    }
    with pytest.raises(ConfigError, match=r"data\.corpora\.0\.weight"):
        check_settings(settings, "test")
