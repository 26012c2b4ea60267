"""Properties of whole searches with a small model, in float64 (F2-F4, F9)."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_cli.config import DecodingConfig, ModelConfig
from transformer_cli.decoding import SpecialIds
from transformer_cli.decoding.search import beam_search, greedy_search
from transformer_cli.decoding.search.beam import BannedTokens, Hypotheses
from transformer_cli.model.transformer import Transformer

PAD, SOS, EOS = 1, 2, 3
SPECIAL_IDS = SpecialIds(0, PAD, SOS, EOS)
VOCAB_SIZE = 11


def model_of(positions: str = "sinusoidal") -> Transformer:
    torch.manual_seed(3)
    config = ModelConfig.model_validate(
        {
            "d_model": 16,
            "num_heads": 2,
            "d_ff": 16,
            "encoder_layers": 1,
            "decoder_layers": 1,
            "positions": positions,
            "max_length": 64,
        }
    )
    model = Transformer(config, VOCAB_SIZE, VOCAB_SIZE).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4.0)
    return model


MODEL = model_of()
sources = st.lists(st.integers(0, VOCAB_SIZE - 1), min_size=1, max_size=6)


def search(some: list[list[int]], *, beam_size: int | None, num_pads: int = 0, pad_id: int = PAD) -> Hypotheses:
    """Beam search, or greedy search if `beam_size` is None, with this much padding after each source."""
    width = max(map(len, some)) + num_pads
    ids = torch.tensor([[*one, *[pad_id] * (width - len(one))] for one in some])
    mask = torch.tensor([[True] * len(one) + [False] * (width - len(one)) for one in some])
    max_lengths = torch.tensor([2 * len(one) + 3 for one in some])
    with torch.inference_mode():
        state = MODEL.start_decoding(MODEL.encode(ids, mask), mask)
        options = DecodingConfig(beam_size=beam_size or 1, num_best=beam_size or 1)
        find = greedy_search if beam_size is None else beam_search
        hooks = [BannedTokens([PAD, SOS])]
        return find(state, special_ids=SPECIAL_IDS, max_lengths=max_lengths, options=options, hooks=hooks)


def found(hypotheses: Hypotheses, sentence: int) -> list[tuple[list[int], float]]:
    return [
        (ids[:length], score)
        for ids, length, score in zip(
            hypotheses.ids[sentence].tolist(),
            hypotheses.lengths[sentence].tolist(),
            hypotheses.scores[sentence].tolist(),
            strict=True,
        )
        if length
    ]


def assert_close(actual: list[tuple[list[int], float]], expected: list[tuple[list[int], float]]) -> None:
    assert [ids for ids, _ in actual] == [ids for ids, _ in expected]
    scores = [score for _, score in expected]
    assert [score for _, score in actual] == pytest.approx(scores, abs=1e-9)


@pytest.mark.long
@settings(max_examples=30)
@given(some=st.lists(sources, min_size=1, max_size=5))
def test_a_beam_of_one_is_greedy_search_with_a_real_model_too(some: list[list[int]]) -> None:
    """F4: exactly, tokens and scores."""
    greedy, beam = search(some, beam_size=None), search(some, beam_size=1)
    assert torch.equal(greedy.lengths, beam.lengths)
    assert torch.equal(greedy.scores, beam.scores)
    for sentence in range(len(some)):
        assert found(greedy, sentence) == found(beam, sentence)


@pytest.mark.heavy
@pytest.mark.parametrize("beam_size", [None, 3])
@settings(max_examples=30)
@given(some=st.lists(sources, min_size=1, max_size=5), num_pads=st.integers(1, 9))
def test_more_padding_changes_no_translation(beam_size: int | None, some: list[list[int]], num_pads: int) -> None:
    """F3: for any ids at padded positions and any other sentences in the batch."""
    plain = search(some, beam_size=beam_size)
    for pad_id in (PAD, 7):
        padded = search(some, beam_size=beam_size, num_pads=num_pads, pad_id=pad_id)
        for sentence in range(len(some)):
            assert_close(found(padded, sentence), found(plain, sentence))
    for sentence, one in enumerate(some):
        assert_close(found(search([one], beam_size=beam_size), 0), found(plain, sentence))


def test_a_pad_that_is_taken_for_a_token_is_noticed() -> None:
    """The negative control: one more real token changes the translation."""
    assert found(search([[4, 5]], beam_size=3), 0) != found(search([[4, 5, 7]], beam_size=3), 0)
