"""The names of weights in files, which other programs rely on."""

import pytest
import torch

from .samples import (
    sample,
    small_model,
)


def test_parameter_names_are_those_that_weights_travel_by() -> None:
    names = set(small_model(qk_norm=True, activation="swiglu", positions="learned", tie_embeddings="none").state_dict())
    attention = {f"{part}.{kind}" for part in ("query", "key", "value", "output") for kind in ("weight", "bias")}
    attention |= {"query_norm.weight", "key_norm.weight"}
    feed_forward = {f"{part}.{kind}" for part in ("up", "gate", "down") for kind in ("weight", "bias")}
    expected = {"output.weight", "output.bias"}
    for side, stack in (("source", "encoder"), ("target", "decoder")):
        expected |= {f"{side}_embedding.weight", f"{side}_positions.weight"}
        expected |= {f"{stack}.norm.weight", f"{stack}.norm.bias"}
        attentions = ["self_attention"] if stack == "encoder" else ["self_attention", "cross_attention"]
        for i in range(2):
            layer = f"{stack}.layers.{i}"
            for name in attentions:
                expected |= {f"{layer}.{name}.{part}" for part in attention}
            expected |= {f"{layer}.feed_forward.{part}" for part in feed_forward}
            for name in (*attentions, "feed_forward"):
                expected |= {f"{layer}.{name}_norm.weight", f"{layer}.{name}_norm.bias"}
    assert names == expected


@pytest.mark.parametrize(
    ("tied", "absent"),
    [
        ("none", set()),
        ("target-output", {"target_embedding.weight"}),
        ("all", {"source_embedding.weight", "target_embedding.weight"}),
    ],
)
def test_a_tied_table_is_one_parameter_under_one_name(tied: str, absent: set[str]) -> None:
    model = small_model(tie_embeddings=tied)
    tables = {"source_embedding.weight", "target_embedding.weight", "output.weight"}
    assert tables - set(model.state_dict()) == absent
    assert set(model.state_dict()) == {name for name, _ in model.named_parameters()}
    assert set(model.state_dict()) == set(small_model(tie_embeddings=tied).state_dict())


def test_weights_load_strictly_into_another_model() -> None:
    torch.manual_seed(1)
    model, other, batch = small_model(), small_model(), sample()
    assert not torch.equal(other(*batch[:3]), model(*batch[:3]))
    other.load_state_dict(model.state_dict(), strict=True)
    assert torch.equal(other(*batch[:3]), model(*batch[:3]))
    state = model.state_dict()
    del state["output.bias"]
    with pytest.raises(RuntimeError, match=r"output\.bias"):
        other.load_state_dict(state)


def test_a_tied_table_may_come_under_any_of_its_names_but_not_with_two_contents() -> None:
    model, other = small_model(tie_embeddings="all"), small_model(tie_embeddings="all")
    state = dict(model.state_dict())
    table = state["output.weight"]
    other.load_state_dict({**state, "source_embedding.weight": table, "target_embedding.weight": table})
    assert torch.equal(other.output.weight, table)
    del state["output.weight"]
    other.load_state_dict({**state, "source_embedding.weight": table + 1})
    assert torch.equal(other.output.weight, table + 1)
    with pytest.raises(RuntimeError, match=r"target_embedding\.weight"):
        other.load_state_dict({**model.state_dict(), "target_embedding.weight": table + 1})
