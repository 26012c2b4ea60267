"""What each ablation claims comes out: the direction of the differences, not their size."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from transformer_cli.extensions.lessons.ablations import ABLATIONS, ablation_named
from transformer_cli.extensions.lessons.laboratory import try_variants

Figures = Mapping[str, float]


def no_positions(usual: Figures, changed: Figures) -> bool:
    # It knows which symbols, so it is better than guessing; it does not know their order.
    return (
        changed["loss"] > usual["loss"] + 0.5
        and changed["loss"] < 1.8
        and usual["exact"] > 60
        and changed["exact"] < 10
    )


def no_causal_mask(usual: Figures, changed: Figures) -> bool:
    # It reads the answer in training, and so it cannot translate.
    return (
        changed["training loss"] < usual["training loss"] - 0.5
        and changed["forced"] > usual["forced"] + 10
        and changed["bleu"] < 1 < usual["bleu"]
    )


def no_cross_attention(usual: Figures, changed: Figures) -> bool:
    return usual["loss"] < 0.5 and 1.8 < changed["loss"] < 2.4


def loss_rises(usual: Figures, changed: Figures) -> bool:
    return changed["loss"] > usual["loss"] + 0.5


def one_head(usual: Figures, changed: Figures) -> bool:
    return usual["forced"] > 80 and changed["forced"] > 80


def post_norm(pre: Figures, warmed: Figures, not_warmed: Figures) -> bool:
    return not_warmed["loss"] > pre["loss"] + 0.3


def target_not_shifted(usual: Figures, changed: Figures) -> bool:
    return changed["loss"] < 0.1 and changed["symbols"] < 30 and usual["symbols"] > 90


def label_smoothing(smoothed: Figures, plain: Figures) -> bool:
    return plain["confidence"] > smoothed["confidence"]


def small_vocabulary(usual: Figures, words: Figures, subwords: Figures) -> bool:
    return (
        words["unknown"] > 20
        and usual["unknown"] < 1
        and subwords["unknown"] < 1
        and words["loss"] < usual["loss"]  # [UNK] is easy to predict
    )


def xavier_tables(xavier: Figures, pytorch: Figures) -> bool:
    return xavier["loss"] > pytorch["loss"] + 0.5


CLAIMS: dict[str, Callable[..., bool]] = {
    "no-positions": no_positions,
    "no-causal-mask": no_causal_mask,
    "no-cross-attention": no_cross_attention,
    "no-scaling": loss_rises,
    "no-residuals": loss_rises,
    "one-head": one_head,
    "post-norm-without-warm-up": post_norm,
    "target-not-shifted": target_not_shifted,
    "no-label-smoothing": label_smoothing,
    "small-vocabulary": small_vocabulary,
    "xavier-tables": xavier_tables,
}


def test_each_ablation_has_a_claim() -> None:
    assert {one.name for one in ABLATIONS} == set(CLAIMS)


@pytest.mark.slow
@pytest.mark.parametrize("name", CLAIMS)
def test_what_an_ablation_says_comes_out(name: str, tmp_path: Path) -> None:
    outcomes = try_variants(ablation_named(name), tmp_path)
    assert CLAIMS[name](*(one.figures for one in outcomes)), outcomes


def test_without_positions_the_order_of_the_source_changes_nothing() -> None:
    """The encoder's output for a permuted source is the permuted output, so cross-attention reads the same set."""
    import torch

    from transformer_cli.config import ModelConfig
    from transformer_cli.model.transformer import Transformer

    torch.manual_seed(1)
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 32, "encoder_layers": 2, "decoder_layers": 2}
    source, target = torch.tensor([[3, 4, 5, 6]]), torch.tensor([[1, 7, 8]])
    for positions, is_equal in (("none", True), ("sinusoidal", False)):
        config = ModelConfig.model_validate({**sizes, "positions": positions})
        model = Transformer(config, 12, 12).eval()
        one, other = (model(ids, None, target) for ids in (source, source.flip(1)))
        assert torch.allclose(one, other, atol=1e-6) == is_equal
