"""Pictures of attention: the shifted target, the masks and the numbers are those that the functions of the model compute."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from transformer_cli.config import DecodingConfig, MbrConfig, TokenizerConfig, load_config
from transformer_cli.extensions.lessons.drawing.attention import (
    DECODER_INPUTS,
    SENTENCE,
    SOURCES,
    TARGET,
    grids_of_masks,
    heads_of,
    query_of_run,
    shifted,
)
from transformer_cli.extensions.lessons.drawing.pictures import draw_picture
from transformer_cli.model.layers import MultiHeadAttention, attention_weights

from ...exchange.small_runs import random_run


def test_each_place_reads_the_token_before_the_one_that_it_predicts() -> None:
    assert shifted() == ("[SOS]", *TARGET[:-1])


def test_both_rows_are_drawn_and_three_places_point_to_the_third_prediction() -> None:
    [axes] = draw_picture("shifted-target").get_axes()
    texts = [text.get_text() for text in axes.texts]
    for token in (*shifted(), *TARGET):
        assert texts.count(token) == (*shifted(), *TARGET).count(token)
    assert len(axes.get_lines()) == 3


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


@pytest.mark.long
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


RUN = Path(__file__).parents[4] / "docs" / "run"


def attention_module(*overrides: str) -> MultiHeadAttention:
    config = load_config("copy.yaml", ["model.d_model=32", "model.num_heads=4", *overrides])
    torch.manual_seed(0)
    return MultiHeadAttention(config.model).eval()


@pytest.mark.parametrize("override", ["name=a", "model.num_kv_heads=2", "model.qk_norm=true"])
def test_the_heads_give_the_output_of_the_module(override: str) -> None:
    attention = attention_module(override)
    x, context = torch.randn(1, 3, 32), torch.randn(1, 5, 32)
    with torch.no_grad():
        queries, keys, values = heads_of(attention, x, context)
        heads = attention_weights(queries[None], keys[None], None) @ values
        joined = heads.transpose(1, 2).flatten(2)
        torch.testing.assert_close(attention.output(joined), attention(x, context, None))


@pytest.mark.long
def test_scores_weights_and_result_of_a_run_follow_from_its_query_keys_and_values() -> None:
    one = query_of_run(RUN)
    scores = torch.stack([(one.query * key).sum() for key in one.keys]) / len(one.query) ** 0.5
    torch.testing.assert_close(one.scores, scores)
    torch.testing.assert_close(one.weights, scores.exp() / scores.exp().sum())
    mixture = sum(weight * value for weight, value in zip(one.weights, one.values, strict=True))
    torch.testing.assert_close(one.result, mixture)
    assert "".join(one.pieces).startswith(SENTENCE.replace(" ", ""))


@pytest.mark.long
def test_a_run_of_several_directions_or_with_another_search_has_a_picture_too(tmp_path: Path) -> None:
    random_run(tmp_path / "both", tokenizer=TokenizerConfig(kind="bpe", vocab_size=300), both_directions=True)
    searching = DecodingConfig(keep_text=False, repair=False, mbr=MbrConfig(candidates=4))
    random_run(tmp_path / "mbr", decoding=searching)
    for name in ("both", "mbr"):
        assert query_of_run(tmp_path / name).weights.sum().item() == pytest.approx(1.0)


@pytest.mark.long
def test_the_picture_writes_each_score_and_weight() -> None:
    one = query_of_run(RUN)
    [axes] = draw_picture("attention", run=RUN).get_axes()
    texts = [text.get_text() for text in axes.texts]
    written = [text for text in texts if re.fullmatch(r"-?\d+\.\d\d", text)]
    expected = zip(one.scores.tolist(), one.weights.tolist(), strict=True)
    assert written == [f"{number:.2f}" for pair in expected for number in pair]
    assert any(one.asks in text for text in texts)


def test_without_a_run_the_picture_says_that_the_model_is_untrained() -> None:
    [axes] = draw_picture("attention").get_axes()
    assert "untrained" in axes.texts[0].get_text()
