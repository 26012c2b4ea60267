"""The picture of `tfm explain --over-time --png`: its heat maps, steps and texts are those of learning.jsonl."""

from typing import Any

import numpy as np
import pytest

from transformer_cli.extensions.lessons.explaining.attention_pictures import (
    chosen_moments,
    draw_film,
    png_of,
)
from transformer_cli.extensions.lessons.explaining.learning import (
    Moment,
    WatchedSentence,
    WatchedToken,
)


def sentence(step: int, num_tokens: int = 2, **changes: Any) -> WatchedSentence:
    tokens = tuple(WatchedToken(f"t{place}", 0.25) for place in range(num_tokens))
    weights = np.full((num_tokens, 3), step / 1000)
    values = {
        "source": "the $ cat",
        "target": "il gatto",
        "translation": f"said at {step}",
    } | changes
    return WatchedSentence(
        values["source"],
        values["target"],
        values["translation"],
        ("the", "cat", "[EOS]"),
        tokens,
        values.get("attention", weights),
    )


def moments(count: int) -> list[Moment]:
    return [Moment(step, (sentence(step),)) for step in range(10, 10 * count + 1, 10)]


def texts(axes: Any) -> list[str]:
    return [label.get_text() for label in axes]


def test_at_most_eight_validations_are_chosen_the_first_and_the_last_among_them() -> None:
    assert [one.step for one in chosen_moments(moments(3))] == [10, 20, 30]
    assert [one.step for one in chosen_moments(moments(15))] == [10, 30, 50, 70, 90, 110, 130, 150]
    for count in (8, 9, 10, 100):
        steps = [one.step for one in chosen_moments(moments(count))]
        assert (len(set(steps)), steps[0], steps[-1]) == (8, 10, 10 * count)


def test_each_frame_shows_the_attention_the_translation_and_the_confidence() -> None:
    figure = draw_film("en-it", moments(2), "cross-attention of layer 1")
    title = figure.get_suptitle()
    assert title == "How en-it learned: cross-attention of layer 1, at steps 10, 20"
    first, second = figure.get_axes()
    assert first.get_title() == "step 10\nconfidence 25%"
    assert second.get_xlabel() == "said at 20"
    np.testing.assert_allclose(second.images[0].get_array(), np.full((2, 3), 0.02))
    assert texts(second.get_xticklabels()) == ["the", "cat", "[EOS]"]
    assert texts(second.get_yticklabels()) == ["t0", "t1"]


def test_a_sentence_that_a_validation_lacks_leaves_its_place_empty() -> None:
    other = sentence(20, source="another")
    figure = draw_film("a", [Moment(10, (sentence(10),)), Moment(20, (sentence(20), other))], "x")
    shown = [axes.axison for axes in figure.get_axes()]
    assert shown == [True, True, False, True]


@pytest.mark.long
def test_strange_sentences_are_drawn() -> None:
    strange = (
        sentence(10, num_tokens=60, translation="a " * 200),
        sentence(10, source="empty", translation="", num_tokens=1),
        sentence(10, source="long", attention=None),
        sentence(10, source="שלום עולם", translation="我们 的\nx"),
    )
    figure = draw_film("a $b$", [Moment(10, strange)], "x")
    long, empty, without, _ = figure.get_axes()
    assert texts(long.get_yticklabels()) == []
    assert long.get_xlabel().endswith("…")
    assert empty.get_xlabel() == "(nothing)"
    assert texts(without.texts) == ["too long to keep\nthe attention"]
    assert png_of(figure).startswith(b"\x89PNG")
