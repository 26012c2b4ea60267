"""The diagrams of a model follow the model that is built, and its wirings are those that its functions compute."""

from typing import Any

import pytest
import torch

from transformer_cli.config import load_config, shipped_configs
from transformer_cli.config.schema import NormPlacement
from transformer_cli.extensions.lessons.drawing.diagrams import WIRINGS, Traced, wiring_of
from transformer_cli.extensions.lessons.drawing.pictures import draw_picture
from transformer_cli.model import Transformer, layers

SIZES = {
    "preset",
    *("d_model", "num_heads", "head_dim", "num_kv_heads", "d_ff", "encoder_layers", "decoder_layers", "max_length"),
    *("dropout", "attention_dropout", "ff_dropout", "embedding_dropout", "layer_dropout"),
}
MODULES = ("attention", "attention_norm", "feed_forward", "feed_forward_norm", "_embedding")


def texts_of(*overrides: str, config: str | None = None) -> list[str]:
    axes = draw_picture("architecture", config=config, overrides=overrides).get_axes()[0]
    return [text.get_text() for text in axes.texts]


def heights_of(*overrides: str) -> dict[str, float]:
    """The height on the page of each text; of those that occur twice, that in the decoder."""
    axes = draw_picture("architecture", overrides=overrides).get_axes()[0]
    return {text.get_text(): text.get_position()[1] for text in axes.texts}


@pytest.mark.heavy
def test_every_shipped_config_is_drawn_with_the_names_and_numbers_of_its_model() -> None:
    # Configs whose models differ only in sizes have equal boxes: one of them is drawn, with its sizes.
    of_models = {load_config(name).model.model_dump_json(exclude=SIZES): name for name in shipped_configs()}
    assert len(of_models) > 10
    for name in of_models.values():
        assert_drawn_with_its_model(name)


def assert_drawn_with_its_model(name: str) -> None:
    texts, config = texts_of(config=name), load_config(name)
    with torch.device("meta"):
        model = Transformer(config.model, 8, 8)
    named = {path.rpartition(".")[2] for path, _ in model.named_modules()}
    drawn = {text for text in texts if text.endswith(MODULES) and "_" in text}
    assert drawn - {"source_embedding", "target_embedding"} <= named
    assert {"self_attention", "cross_attention", "feed_forward", "output"} <= {*texts}
    assert f"{config.model.encoder_layers} × EncoderLayer" in texts  # noqa: RUF001
    assert f"{config.model.decoder_layers} × DecoderLayer" in texts  # noqa: RUF001
    has_mask = any(text.startswith("MultiHeadAttention, causal_mask") for text in texts)
    assert has_mask == (config.model.decoder_layer == "attention")
    sizes = f"{config.model.d_model} → {config.model.d_ff} → {config.model.d_model}"
    assert texts.count(f"{sizes}, {config.model.activation}") == 2
    assert ("encoder.norm" in texts) == config.model.has_final_norm


@pytest.mark.long
def test_an_ssru_is_drawn_in_place_of_the_self_attention_of_the_decoder() -> None:
    texts = texts_of("model.decoder_layer=ssru")
    assert {"ssru", "ssru_norm", "SSRU", "cross_attention"} <= {*texts}
    assert texts.count("self_attention") == 1  # that of the encoder
    assert not any("causal_mask" in text for text in texts)


@pytest.mark.long
def test_the_norm_stands_below_or_above_its_sub_layer_as_in_the_wiring() -> None:
    pre = heights_of("model.norm_placement=pre")
    post = heights_of("model.norm_placement=post")
    assert pre["feed_forward_norm"] < pre["feed_forward"]
    assert post["feed_forward_norm"] > post["feed_forward"]


@pytest.mark.long
@pytest.mark.parametrize(("tied", "num_tables", "num_links"), [("none", 0, 0), ("target-output", 1, 1), ("all", 2, 2)])
def test_tied_tables_are_joined(tied: str, num_tables: int, num_links: int) -> None:
    figure = draw_picture("architecture", overrides=[f"model.tie_embeddings={tied}"])
    axes = figure.get_axes()[0]
    texts = [text.get_text() for text in axes.texts]
    assert sum(text.startswith("the table of output") for text in texts) == num_tables
    dashed = [line for line in axes.get_lines() if line.is_dashed()]
    assert len(dashed) == num_links


@pytest.mark.long
def test_a_shared_vocabulary_is_one_box_and_two_vocabularies_are_two() -> None:
    assert {"one tokenizer for both", "bpe, 37,000 tokens"} <= {*texts_of()}
    apart = texts_of("tokenizer.shared=false", "model.tie_embeddings=none")
    assert {"source tokenizer", "target tokenizer"} <= {*apart}
    assert apart.count("bpe, 37,000 tokens") == 2


@pytest.mark.long
def test_kinds_of_positions_are_shown() -> None:
    assert texts_of().count("adds SinusoidalPositions") == 2
    assert texts_of("model.positions=learned").count("adds LearnedPositions") == 2
    rotary = texts_of("model.positions=rotary")
    assert rotary.count("rotary positions") == 2
    assert "source_positions" not in rotary


@pytest.mark.long
def test_shared_keys_and_normed_queries_are_shown() -> None:
    texts = texts_of("model.num_kv_heads=2", "model.qk_norm=true", "model.ff_dropout=0.2")
    assert texts.count("8 heads of 64; 2 heads of keys") == 3
    assert texts.count("query_norm, key_norm") == 3
    assert "ff_dropout: 0.2" in texts


@pytest.mark.long
def test_the_number_of_parameters_is_that_of_the_model() -> None:
    config = load_config("wmt14-en-de-base.yaml")
    with torch.device("meta"):
        model = Transformer(config.model, 37_000, 37_000)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert f"{count:,} parameters" in texts_of()


@pytest.mark.long
def test_each_attention_has_arrows_for_queries_keys_and_values() -> None:
    texts = draw_picture("architecture").get_axes()[0].texts
    letters = [(one.get_text(), one.get_position()) for one in texts if one.get_text() in ("Q", "K", "V")]
    assert sorted(letter for letter, _ in letters) == ["K"] * 3 + ["Q"] * 3 + ["V"] * 3
    cross = next(one for one in texts if one.get_text() == "cross_attention").get_position()
    # Keys and values of cross-attention come from the encoder, which stands on the left; its queries come from below.
    beside = {letter for letter, (x, y) in letters if abs(y - cross[1]) < 0.5 and x < cross[0] - 1.2}
    assert beside == {"K", "V"}


@pytest.mark.long
def test_sentences_go_into_the_tokenizer() -> None:
    assert {"source sentences", "target sentences, in training"} <= {*texts_of()}


EXPECTED = {
    "pre": ("x + dropout(sublayer(norm(x)))", ("norm", "sublayer", "dropout"), ()),
    "post": ("norm(x + dropout(sublayer(x)))", ("sublayer", "dropout"), ("norm",)),
    "residual_of_normed": (
        "x + norm(dropout(sublayer(x)))",
        ("sublayer", "dropout", "norm"),
        (),
    ),
}


def test_there_are_three_wirings() -> None:
    assert {*WIRINGS} == {*EXPECTED}


@pytest.mark.parametrize("placement", WIRINGS)
def test_a_wiring_is_that_of_its_description(placement: NormPlacement) -> None:
    wiring = wiring_of(placement)
    assert (wiring.formula, wiring.branch, wiring.after_sum) == EXPECTED[placement]


@pytest.mark.parametrize("placement", WIRINGS)
def test_the_formula_computes_what_the_model_computes(placement: NormPlacement) -> None:
    steps: dict[str, Any] = {
        "sublayer": lambda value: 3 * value + 1,
        "norm": lambda value: value - 7,
        "dropout": lambda value: value * 0.5,
    }
    computed = getattr(layers, placement)(5.0, steps["sublayer"], steps["norm"], steps["dropout"])
    assert eval(wiring_of(placement).formula, steps | {"x": 5.0}) == computed


def test_a_sum_of_other_values_is_not_drawn_wrong() -> None:
    with pytest.raises(ValueError, match="not the sum of x and a branch"):
        _ = Traced("x").after("norm") + Traced("x")


@pytest.mark.long
@pytest.mark.parametrize("number", range(3))
def test_the_boxes_of_a_panel_stand_in_the_order_of_the_wiring(number: int) -> None:
    placement = WIRINGS[number]
    texts = draw_picture("residuals").get_axes()[0].texts
    [title] = [text for text in texts if text.get_text() == placement]
    middle = title.get_position()[0]
    names = {"f: the sub-layer": "sublayer", "norm": "norm", "dropout": "dropout", "+": "+"}
    column = [
        (text.get_position()[1], names[text.get_text()])
        for text in texts
        if text.get_position()[0] == middle and text.get_text() in names
    ]
    _, branch, after_sum = EXPECTED[placement]
    assert [name for _, name in sorted(column)] == [*branch, "+", *after_sum]


@pytest.mark.long
def test_the_wiring_of_the_config_is_marked() -> None:
    for placement in WIRINGS:
        figure = draw_picture("residuals", overrides=[f"model.norm_placement={placement}"])
        texts = {text.get_text(): text.get_position() for text in figure.get_axes()[0].texts}
        assert texts["in wmt14-en-de-base"][0] == texts[placement][0]
