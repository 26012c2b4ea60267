"""The picture of attention shows the numbers that the model computes."""

import re
from pathlib import Path

import pytest
import torch

from transformer_cli.config import load_config
from transformer_cli.extensions.lessons.drawing.charts.attention_steps import (
    SENTENCE,
    heads_of,
    of_run,
)
from transformer_cli.extensions.lessons.drawing.pictures import draw_picture
from transformer_cli.model.attention import MultiHeadAttention, attention_weights

RUN = Path(__file__).parents[5] / "docs" / "run"


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


def test_scores_weights_and_result_of_a_run_follow_from_its_query_keys_and_values() -> None:
    one = of_run(RUN)
    scores = torch.stack([(one.query * key).sum() for key in one.keys]) / len(one.query) ** 0.5
    torch.testing.assert_close(one.scores, scores)
    torch.testing.assert_close(one.weights, scores.exp() / scores.exp().sum())
    mixture = sum(weight * value for weight, value in zip(one.weights, one.values, strict=True))
    torch.testing.assert_close(one.result, mixture)
    assert "".join(one.pieces).startswith(SENTENCE.replace(" ", ""))


def test_the_picture_writes_each_score_and_weight() -> None:
    one = of_run(RUN)
    [axes] = draw_picture("attention", run=RUN).get_axes()
    texts = [text.get_text() for text in axes.texts]
    written = [text for text in texts if re.fullmatch(r"-?\d+\.\d\d", text)]
    expected = zip(one.scores.tolist(), one.weights.tolist(), strict=True)
    assert written == [f"{number:.2f}" for pair in expected for number in pair]
    assert any(one.asks in text for text in texts)


def test_without_a_run_the_picture_says_that_the_model_is_untrained() -> None:
    [axes] = draw_picture("attention").get_axes()
    assert "untrained" in axes.texts[0].get_text()
