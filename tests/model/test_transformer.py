"""The whole model: shapes, dropout, precision, and what it refuses."""

import math
import re
from typing import Any

import pytest
import torch
from torch import nn

from transformer_cli.config import ModelConfig, load_config
from transformer_cli.model.transformer import Transformer
from transformer_cli.process.errors import ConfigError, DataError

from . import naive
from .samples import (
    PAD_ID,
    SMALL,
    SOURCE_VOCAB_SIZE,
    TARGET_VOCAB_SIZE,
    results,
    sample,
    small_model,
)


@pytest.mark.long
def test_dropout_stands_where_the_formulas_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nn.Dropout, "forward", lambda self, x: x * (1 + self.p))
    shares = {"dropout": 0.1, "attention_dropout": 0.2, "ff_dropout": 0.3, "embedding_dropout": 0.4}
    for placement in ("pre", "post", "residual_of_normed"):
        torch.manual_seed(1)
        model, batch = small_model(norm_placement=placement, **shares), sample()
        weights = model.state_dict()
        described = {**model.config.model_dump(), "dropout_multiplies": True}
        expected = naive.logits(weights, described, *batch[:3])
        torch.testing.assert_close(model(*batch[:3]), expected, rtol=0, atol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("share", ["dropout", "attention_dropout", "ff_dropout", "embedding_dropout"])
def test_each_dropout_acts_alone_and_only_while_training(share: str) -> None:
    none = dict.fromkeys(("dropout", "attention_dropout", "ff_dropout", "embedding_dropout"), 0.0)
    torch.manual_seed(1)
    model, batch = small_model(**{**none, share: 0.5}), sample()
    assert torch.equal(model(*batch[:3]), model(*batch[:3]))
    model.train()
    assert not torch.equal(model(*batch[:3]), model(*batch[:3]))


def test_without_any_dropout_training_and_evaluation_are_the_same() -> None:
    torch.manual_seed(1)
    model, batch = small_model(dropout=0.0), sample()
    assert torch.equal(model.train()(*batch[:3]), model.eval()(*batch[:3]))


def test_one_table_for_two_vocabularies_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"one shared vocabulary, found 11 source and 9 target") as caught:
        Transformer(ModelConfig(**SMALL, tie_embeddings="all"), SOURCE_VOCAB_SIZE, TARGET_VOCAB_SIZE)
    assert "tokenizer.shared" in str(caught.value.hint)


def test_learned_positions_end_and_the_others_go_on() -> None:
    batch = sample((17,), (3,))
    with pytest.raises(DataError, match="17 tokens, but this model has learned only 16") as caught:
        small_model(positions="learned")(*batch[:3])
    assert "model.max_length" in str(caught.value.hint)
    for positions in ("sinusoidal", "sinusoidal_halves", "rotary", "none"):
        assert small_model(positions=positions)(*batch[:3]).isfinite().all()


@pytest.mark.long
@pytest.mark.parametrize("norm", ["layernorm", "rmsnorm", "std_layernorm", "scalar_std_layernorm"])
@pytest.mark.parametrize("placement", ["pre", "post", "residual_of_normed"])
def test_a_sentence_without_tokens_makes_no_nan_in_logits_or_gradients(norm: str, placement: str) -> None:
    torch.manual_seed(1)
    model = small_model(norm=norm, norm_placement=placement, attention_bias=False)
    batch = sample((0, 3), (4, 4))
    assert all(tensor.isfinite().all() for tensor in results(model, batch).values())
    nothing = sample((0, 0), (4, 4))._replace(
        source_ids=torch.full((2, 3), PAD_ID), source_mask=torch.zeros(2, 3, dtype=torch.bool)
    )
    assert all(tensor.isfinite().all() for tensor in results(model, nothing).values())


@pytest.mark.parametrize("norm", ["layernorm", "rmsnorm", "std_layernorm", "scalar_std_layernorm"])
def test_under_bfloat16_autocast_logits_are_bfloat16_and_close(norm: str) -> None:
    torch.manual_seed(1)
    model = Transformer(ModelConfig(**SMALL, norm=norm, dropout=0.0), SOURCE_VOCAB_SIZE, TARGET_VOCAB_SIZE)
    batch = sample((5, 0, 4), (4, 6, 2))
    exact = model(*batch[:3])
    with torch.autocast("cpu", torch.bfloat16):
        found = results(model, batch)
    assert found["logits"].dtype == torch.bfloat16
    torch.testing.assert_close(found["logits"].float(), exact, rtol=0, atol=0.1)
    assert all(tensor.isfinite().all() for tensor in found.values())


def test_a_model_of_bfloat16_weights_runs() -> None:
    torch.manual_seed(1)
    for settings_ in (
        {"positions": "rotary", "qk_norm": True},
        {"norm": "rmsnorm"},
        {"norm": "std_layernorm"},
    ):
        found = results(small_model(torch.bfloat16, **settings_), sample((5, 0, 4), (4, 6, 2)))
        assert all(tensor.isfinite().all() for tensor in found.values())


def test_logits_have_one_row_per_target_position() -> None:
    assert small_model()(*sample()[:3]).shape == (3, 6, TARGET_VOCAB_SIZE)


def test_embeddings_are_scaled_by_the_root_of_the_width_or_not() -> None:
    settings_: dict[str, Any] = {"positions": "none", "tie_embeddings": "none"}
    for is_scaled, factor in ((True, math.sqrt(12)), (False, 1.0)):
        model = small_model(scale_embeddings=is_scaled, **settings_)
        ids = torch.tensor([[3, 7]])
        expected = model.state_dict()["source_embedding.weight"][ids] * factor
        torch.testing.assert_close(model.embed_source(ids), expected)


def test_the_next_symbol_walk_through_prints_its_shape_and_rows_that_sum_to_one() -> None:
    torch.manual_seed(1)
    model = Transformer(load_config("reference/rms-silu.yaml").model, 256, 256).eval()
    source_ids, decoder_input_ids = torch.randint(256, (3, 9)), torch.randint(256, (3, 7))
    everything = torch.ones_like(source_ids, dtype=torch.bool)
    probabilities = model(source_ids, everything, decoder_input_ids).softmax(-1)
    assert probabilities.shape == (3, 7, 256)
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(3, 7))
    # What greedy search takes next is the argmax of the last position.
    state = model.start_decoding(model.encode(source_ids, everything), everything)
    for column in decoder_input_ids.unbind(1):
        scores = state.advance(column)
    assert torch.equal(scores.argmax(-1), probabilities[:, -1].argmax(-1))


@pytest.mark.parametrize("tied", ["none", "target-output", "all"])
def test_parameters_are_ordered_as_a_backward_pass_completes_them(tied: str) -> None:
    """Autograd itself tells when it has completed the gradients of each part of the model."""
    config = ModelConfig(**SMALL, tie_embeddings=tied, positions="learned", embedding_norm=True, dropout=0.0)
    model = Transformer(config, SOURCE_VOCAB_SIZE, SOURCE_VOCAB_SIZE)
    part_of = {id(one): _part(name) for name, one in model.named_parameters()}
    ordered = [id(one) for one in model.parameters_by_gradient()]
    assert sorted(ordered) == sorted(part_of)
    completed: list[int] = []
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(lambda one: completed.append(id(one)))
    model(*sample()[:3]).square().sum().backward()
    assert sorted(completed) == sorted(part_of)
    by_autograd, by_model = (
        list(dict.fromkeys(part_of[one] for one in reversed(found) if part_of[one]))[::-1]
        for found in (completed, ordered)
    )
    assert by_model == by_autograd


def _part(name: str) -> str:
    """The layer or the table of a parameter; empty for those whose gradients may be completed at other moments."""
    found = re.match(r"(encoder|decoder)\.layers\.\d+|(source|target)_embedding\.|output\.weight", name)
    return found[0] if found else ""
