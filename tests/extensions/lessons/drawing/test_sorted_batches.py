"""The picture of batches: shares of padding as `tfm data` reports them, and as real batches have them."""

import json
from pathlib import Path

import numpy as np
import pytest

from transformer_cli.commands.data import show_data
from transformer_cli.config import load_config
from transformer_cli.data.preparation import PreparedData, prepare_data
from transformer_cli.data.updates import collate
from transformer_cli.extensions.lessons.drawing.pictures import draw_picture
from transformer_cli.extensions.lessons.drawing.sorted_batches import (
    NUM_ROWS,
    BatchesInOrder,
    orders_of,
)

pytestmark = pytest.mark.long

OVERRIDES = "data.num_pairs=3000", "training.batch_tokens=400"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    config = load_config("en-it.yaml", OVERRIDES)
    return prepare_data(config, tmp_path_factory.mktemp("batches") / "data", has_begun=False)


@pytest.fixture(scope="module")
def orders(prepared: PreparedData) -> tuple[BatchesInOrder, BatchesInOrder]:
    return orders_of(prepared)


def test_the_share_of_sorted_batches_is_that_of_the_report(
    prepared: PreparedData, orders: tuple[BatchesInOrder, BatchesInOrder]
) -> None:
    in_random_order, by_length = orders
    assert by_length.padding_share == prepared.report.padding_share
    assert by_length.padding_share < 0.15 < 0.3 < in_random_order.padding_share


def test_the_picture_says_the_share_that_tfm_data_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    show_data("en-it.yaml", OVERRIDES, split="train", as_json=True)
    share = json.loads(capsys.readouterr().out)["report"]["padding_share"]
    figure = draw_picture("batches", config="en-it.yaml", overrides=OVERRIDES)
    titles = [part.get_suptitle() for part in figure.subfigs]
    assert titles[1].startswith(f"sorted by length (batch_tokens: 400): {share:.1%} padding")
    assert sorted(tmp_path.iterdir()) == [tmp_path / "runs"]


def test_a_corpus_of_one_batch_has_a_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    overrides = "data.num_pairs=20", "training.batch_tokens=100000"
    figure = draw_picture("batches", config="en-it.yaml", overrides=overrides)
    assert all(part.get_suptitle().endswith("in all batches, one of them:") for part in figure.subfigs)


@pytest.mark.parametrize("which", [0, 1])
def test_the_cells_are_those_of_padded_batches(
    prepared: PreparedData, orders: tuple[BatchesInOrder, BatchesInOrder], which: int
) -> None:
    """A batch of the picture has as many tokens and cells as a batch that `collate` makes of the same pairs."""
    order, train = orders[which], prepared.train
    for cells, indices, share in zip(order.batches, order.indices, order.shares, strict=True):
        pairs = [train[index] for index in indices.tolist()]
        batch = collate(pairs, sos_id=2, pad_id=1)
        expected = np.hstack(
            [
                batch.source_mask.numpy(),
                np.full((len(pairs), 1), -1),
                (batch.target_ids != 1).numpy(),
            ]
        )
        np.testing.assert_array_equal(cells, expected)
        num_tokens = batch.num_source_tokens + batch.num_target_tokens
        num_cells = batch.source_ids.numel() + batch.target_ids.numel()
        assert share == pytest.approx(1 - num_tokens / num_cells)


def test_both_orders_have_batches_of_about_the_same_number_of_pairs(
    orders: tuple[BatchesInOrder, BatchesInOrder],
) -> None:
    in_random_order, by_length = orders
    sizes = [len(batch) for batch in in_random_order.batches]
    assert max(sizes) - min(sizes) <= 1
    assert min(map(len, by_length.batches)) < 2 * max(sizes)


def test_a_corpus_of_a_few_pairs_is_drawn_too() -> None:
    overrides = "data.num_pairs=4", "training.batch_sentences=3", "training.max_epochs=1"
    figure = draw_picture("batches", config="copy.yaml", overrides=overrides)
    assert figure.get_axes()


def test_the_pairs_of_random_batches_are_in_no_order(
    orders: tuple[BatchesInOrder, BatchesInOrder],
) -> None:
    in_random_order, by_length = orders
    for order, is_sorted in ((in_random_order, False), (by_length, True)):
        for batch in order.batches:
            gap = int(np.flatnonzero(batch[0] < 0)[0])
            lengths = batch[:, :gap].sum(1)
            steps = np.abs(np.diff(lengths)).mean()
            assert (steps < 1) == is_sorted


def test_the_picture_shows_the_first_pairs_of_each_batch() -> None:
    figure = draw_picture("batches", config="en-it.yaml", overrides=OVERRIDES)
    panels = [axes for axes in figure.get_axes() if axes.get_images()]
    assert panels
    for axes in panels:
        assert axes.get_images()[0].get_array().shape[0] <= NUM_ROWS  # type: ignore[union-attr]
        assert [text.get_text() for text in axes.texts] == ["source", "target"]
    [legend] = figure.legends
    assert legend.get_title().get_text() == f"a row is a pair; of each batch, the first {NUM_ROWS} pairs are drawn"
