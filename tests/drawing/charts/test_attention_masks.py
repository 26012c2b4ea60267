"""The picture of the masks: which cells are 0."""

import numpy as np

from transformer_cli.drawing.charts.attention_masks import NUM_REAL, TOKENS
from transformer_cli.drawing.pictures import draw_picture


def test_masked_cells_are_0_and_all_others_1() -> None:
    causal, padding, both = (
        np.asarray(axes.get_images()[0].get_array()) for axes in draw_picture("masks").get_axes()
    )
    length = len(TOKENS)
    rows, columns = np.indices((length, length))
    np.testing.assert_array_equal(causal, columns <= rows)
    np.testing.assert_array_equal(padding, columns < NUM_REAL)
    np.testing.assert_array_equal(both, causal & padding)


def test_the_number_in_a_cell_is_its_value() -> None:
    for axes in draw_picture("masks").get_axes():
        cells = np.asarray(axes.get_images()[0].get_array())
        for text in axes.texts:
            column, row = map(int, text.get_position())
            assert text.get_text() == str(cells[row, column])
