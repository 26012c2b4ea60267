"""Decoding with the cache equals decoding without it, for any selection of rows."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_cli.config import ModelConfig
from transformer_cli.model.layers import MultiHeadAttention
from transformer_cli.process.errors import DataError

from .samples import TARGET_VOCAB_SIZE, model_configs, model_of, sample, small_model


@pytest.mark.long
@settings(max_examples=40)
@given(config=model_configs(), seed=st.integers(0, 2**31), data=st.data())
def test_cached_steps_equal_uncached_ones_however_rows_are_selected(
    config: ModelConfig, seed: int, data: st.DataObject
) -> None:
    torch.manual_seed(seed)
    model, batch = model_of(config), sample((4, 0, 3), (1, 1, 1))
    source_ids, source_mask = batch.source_ids % TARGET_VOCAB_SIZE, batch.source_mask
    ids = torch.empty(3, 0, dtype=torch.int64)
    with torch.inference_mode():
        state = model.start_decoding(model.encode(source_ids, source_mask), source_mask)
        for _ in range(5):
            last_ids = torch.randint(TARGET_VOCAB_SIZE, (len(ids),))
            ids = torch.cat([ids, last_ids[:, None]], dim=1)
            expected = model(source_ids, source_mask, ids)[:, -1].log_softmax(-1)
            torch.testing.assert_close(state.advance(last_ids), expected, rtol=0, atol=1e-9)
            drawn = data.draw(st.lists(st.integers(0, len(ids) - 1), min_size=1, max_size=6))
            rows = torch.tensor(drawn)
            state.select(rows)
            ids, source_ids, source_mask = ids[rows], source_ids[rows], source_mask[rows]


def test_rows_can_be_selected_before_the_first_token() -> None:
    torch.manual_seed(1)
    model, batch = small_model(), sample()
    rows = torch.tensor([2, 2, 0])
    state = model.start_decoding(model.encode(*batch[:2]), batch.source_mask)
    state.select(rows)
    first_ids = batch.decoder_input_ids[rows, 0]
    expected = model(*batch[:3])[rows, 0]
    found = state.advance(first_ids)
    again = model(batch.source_ids[rows], batch.source_mask[rows], first_ids[:, None])[:, 0]
    assert expected.shape == found.shape
    torch.testing.assert_close(found, again.log_softmax(-1), rtol=0, atol=1e-9)


@pytest.mark.long
def test_a_long_target_stays_equal_as_the_cache_grows() -> None:
    torch.manual_seed(1)
    model, batch = small_model(), sample((4, 3), (70, 70))
    expected = model(*batch[:3]).log_softmax(-1)
    state = model.start_decoding(model.encode(*batch[:2]), batch.source_mask)
    for position in range(70):
        found = state.advance(batch.decoder_input_ids[:, position])
        torch.testing.assert_close(found, expected[:, position], rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (torch.float64, torch.float64),
        (torch.float32, torch.float32),
        (torch.bfloat16, torch.float32),
    ],
)
def test_log_probabilities_are_float32_at_least_and_sum_to_one(dtype: torch.dtype, expected: torch.dtype) -> None:
    torch.manual_seed(1)
    model, batch = small_model(dtype), sample()
    state = model.start_decoding(model.encode(*batch[:2]), batch.source_mask)
    found = state.advance(batch.decoder_input_ids[:, 0])
    assert found.dtype == expected
    torch.testing.assert_close(found.exp().sum(-1), torch.ones(3, dtype=expected))


def test_learned_positions_end_while_decoding_too() -> None:
    model, batch = small_model(positions="learned"), sample((3,), (1,))
    state = model.start_decoding(model.encode(*batch[:2]), batch.source_mask)
    for _ in range(16):
        state.advance(torch.tensor([2]))
    with pytest.raises(DataError, match="17 tokens"):
        state.advance(torch.tensor([2]))


def test_what_one_state_does_leaves_another_as_it_was() -> None:
    torch.manual_seed(1)
    model, batch = small_model(), sample()
    memory = model.encode(*batch[:2])
    first = model.start_decoding(memory, batch.source_mask)
    second = model.start_decoding(memory, batch.source_mask)
    expected = first.advance(batch.decoder_input_ids[:, 0])
    first.select(torch.tensor([1]))
    assert torch.equal(second.advance(batch.decoder_input_ids[:, 0]), expected)


@pytest.mark.long
@settings(max_examples=10)
@given(config=model_configs(), seed=st.integers(0, 2**31))
def test_the_attention_of_a_step_is_that_of_the_whole_target(config: ModelConfig, seed: int) -> None:
    torch.manual_seed(seed)
    model, batch = model_of(config), sample((4, 1, 3), (4, 4, 4))
    source_ids, source_mask = batch.source_ids % TARGET_VOCAB_SIZE, batch.source_mask
    layer = config.decoder_layers - 1
    decoder_layer = model.decoder.layers[layer]
    seen: list[torch.Tensor] = []
    attention = decoder_layer.cross_attention
    assert isinstance(attention, MultiHeadAttention)
    attention.register_forward_pre_hook(lambda module, args: seen.append(attention.weights(*args)))
    with torch.inference_mode():
        model(source_ids, source_mask, batch.decoder_input_ids)
        expected = seen[0].mean(1)  # (B, T, S)
        memory = model.encode(source_ids, source_mask)
        state = model.start_decoding(memory, source_mask, attended_layer=layer)
        plain = model.start_decoding(memory, source_mask)
        rows = torch.arange(3)
        for position in range(4):
            last_ids = batch.decoder_input_ids[rows, position]
            assert torch.equal(state.advance(last_ids), plain.advance(last_ids))
            found = state.attention()
            torch.testing.assert_close(found, expected[rows, position], rtol=0, atol=1e-9)
            torch.testing.assert_close(found.sum(-1), torch.ones(3, dtype=found.dtype))
            state.select(torch.tensor([2, 0, 1]))
            plain.select(torch.tensor([2, 0, 1]))
            rows = rows[[2, 0, 1]]
