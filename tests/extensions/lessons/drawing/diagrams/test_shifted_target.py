"""The picture of the shifted target shows what a training reads."""

from transformer_cli.extensions.lessons.drawing.diagrams.shifted_target import TARGET, shifted
from transformer_cli.extensions.lessons.drawing.pictures import draw_picture


def test_each_place_reads_the_token_before_the_one_that_it_predicts() -> None:
    assert shifted() == ("[SOS]", *TARGET[:-1])


def test_both_rows_are_drawn_and_three_places_point_to_the_third_prediction() -> None:
    [axes] = draw_picture("shifted-target").get_axes()
    texts = [text.get_text() for text in axes.texts]
    for token in (*shifted(), *TARGET):
        assert texts.count(token) == (*shifted(), *TARGET).count(token)
    assert len(axes.get_lines()) == 3
