"""The picture of label smoothing: the bars are the labels that the loss compares with."""

from typing import get_args

import pytest
import torch
from torch.nn import functional as F

from transformer_cli.config.schema import SmoothedOver
from transformer_cli.extensions.lessons.drawing.pictures import draw_picture
from transformer_cli.extensions.lessons.drawing.smoothed_targets import (
    SYMBOLS,
    TRUE_SYMBOL,
    smoothed_probabilities,
)
from transformer_cli.model.loss import SmoothedLabels, sum_loss

TRUE, PAD = SYMBOLS.index(TRUE_SYMBOL), SYMBOLS.index("[PAD]")


def bars(kind: int, *overrides: str) -> list[float]:
    """The widths of the bars of a panel."""
    axes = draw_picture("label-smoothing", overrides=overrides).get_axes()[kind]
    return [patch.get_width() for patch in axes.patches]  # type: ignore[attr-defined]


@pytest.mark.long
@pytest.mark.parametrize("kind", [0, 1])
def test_the_probabilities_sum_to_1(kind: int) -> None:
    assert sum(bars(kind)) == pytest.approx(1.0)


def test_the_true_token_and_padding_get_what_each_kind_gives_them() -> None:
    vocabulary, others = bars(0), bars(1)
    assert vocabulary[TRUE] == pytest.approx(0.9 + 0.1 / 10)
    assert vocabulary[PAD] == pytest.approx(0.1 / 10)
    assert others[TRUE] == pytest.approx(0.9)
    assert others[PAD] == 0.0
    assert others[0] == pytest.approx(0.1 / 8)


@pytest.mark.parametrize("smoothed_over", get_args(SmoothedOver))
def test_the_loss_is_the_cross_entropy_with_the_drawn_labels(smoothed_over: SmoothedOver) -> None:
    logits = torch.randn(1, 1, len(SYMBOLS), dtype=torch.float64)
    ids = torch.tensor([[TRUE]])
    labels = SmoothedLabels.of(logits.size(-1), PAD, 0.3, smoothed_over)
    sums = sum_loss(logits, ids, labels)
    labels = smoothed_probabilities(0.3, smoothed_over)
    assert sums.objective.item() == pytest.approx(F.cross_entropy(logits[0], labels[None]).item())


@pytest.mark.long
def test_the_share_is_that_of_the_config() -> None:
    assert bars(1, "training.label_smoothing=0.0") == [float(each == TRUE) for each in range(10)]
