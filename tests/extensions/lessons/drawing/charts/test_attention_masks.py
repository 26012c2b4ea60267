"""The picture of the masks: which cells are 0, and which pieces stand beside them."""

import numpy as np

from transformer_cli.extensions.lessons.drawing.charts.attention_masks import (
    DECODER_INPUTS,
    SOURCES,
    grids_of_masks,
)
from transformer_cli.extensions.lessons.drawing.pictures import draw_picture

LONG, SHORT = range(2)


def test_the_causal_mask_hides_later_pieces_of_the_target() -> None:
    causal = grids_of_masks()[0]
    assert causal.rows == causal.columns == DECODER_INPUTS[LONG]
    length = len(causal.rows)
    rows, columns = np.indices((length, length))
    np.testing.assert_array_equal(causal.visible.numpy(), columns <= rows)


def test_the_padding_mask_hides_the_padding_of_the_source_alone() -> None:
    for grid in grids_of_masks()[1:]:
        assert grid.columns in SOURCES
        assert grid.visible.shape == (len(grid.rows), len(grid.columns))
        for row in grid.visible.tolist():
            assert row == [piece != "[PAD]" for piece in grid.columns]


def test_the_encoder_reads_the_source_with_the_source_and_cross_attention_with_the_target() -> None:
    _, *padding = grids_of_masks()
    readers = [(grid.rows, grid.columns) for grid in padding]
    assert readers == [
        (SOURCES[LONG], SOURCES[LONG]),
        (SOURCES[SHORT], SOURCES[SHORT]),
        (DECODER_INPUTS[LONG], SOURCES[LONG]),
        (DECODER_INPUTS[SHORT], SOURCES[SHORT]),
    ]


def test_both_sentences_of_a_batch_have_one_length() -> None:
    for batch in (SOURCES, DECODER_INPUTS):
        assert len(batch[LONG]) == len(batch[SHORT])
        assert "[PAD]" in batch[SHORT]
        assert "[PAD]" not in batch[LONG]


def test_each_grid_is_drawn_and_the_number_in_a_cell_is_its_value() -> None:
    panels = [axes for axes in draw_picture("masks").get_axes() if axes.get_images()]
    assert len(panels) == len(grids_of_masks())
    shown = {axes.get_title("left"): axes for axes in panels}
    for grid in grids_of_masks():
        axes = shown[grid.title]
        cells = np.asarray(axes.get_images()[0].get_array())
        np.testing.assert_array_equal(cells, grid.visible.int().numpy())
        assert len(axes.texts) == cells.size
        for text in axes.texts:
            column, row = map(int, text.get_position())
            assert text.get_text() == str(cells[row, column])
        assert tuple(label.get_text() for label in axes.get_yticklabels()) == tuple(grid.rows)
        assert tuple(label.get_text() for label in axes.get_xticklabels()) == tuple(grid.columns)
