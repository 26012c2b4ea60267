"""Explanations of given targets: probabilities, attention and alignment, in any batch."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding import ExplainingEngine, Request, SpecialIds, TokenIds
from transformer_cli.decoding.pytorch_engine import PyTorchEngine, cross_attention
from transformer_cli.text.tokenizer import SequenceFormat, Tokenizer

from .small_translators import CPU, random_model, tokenizer_of_words

TOKENIZER = tokenizer_of_words()
EOS, SOS = Tokenizer.eos_id, Tokenizer.sos_id
VOCAB_SIZE = TOKENIZER.vocab_size
MODEL = random_model(TOKENIZER)
ENGINE = PyTorchEngine(MODEL, SpecialIds.of(TOKENIZER), SequenceFormat(), CPU)
ids = st.lists(st.integers(4, VOCAB_SIZE - 1), min_size=1, max_size=6).map(lambda x: (*x, EOS))


def test_the_engine_is_one_that_explains() -> None:
    assert isinstance(ENGINE, ExplainingEngine)


@pytest.mark.long
@given(pairs=st.lists(st.tuples(ids, ids), max_size=6), batch_tokens=st.integers(1, 40))
@settings(max_examples=15)
def test_an_explanation_agrees_with_the_next_tokens_and_does_not_depend_on_the_batch(
    pairs: list[tuple[TokenIds, TokenIds]], batch_tokens: int
) -> None:
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    requests = [*map(Request, sources)]
    found = ENGINE.explain(requests, targets, batch_tokens=batch_tokens, num_best=3)
    assert len(found) == len(pairs)
    for (source, target), explanation in zip(pairs, found, strict=True):
        assert explanation.attention.shape == (len(target), len(source))
        assert explanation.attention.sum(1) == pytest.approx(1.0, abs=1e-5)
        for place, token in enumerate(target):
            probabilities = ENGINE.next_token_probabilities(source, target[:place])
            of_token = np.exp(explanation.token_log_probs[place])
            assert of_token == pytest.approx(probabilities[token].item(), abs=1e-5)
            best = probabilities.topk(3)
            assert explanation.best_ids[place].tolist() == best.indices.tolist()
            of_best = np.exp(explanation.best_log_probs[place])
            assert of_best == pytest.approx(best.values.numpy(), abs=1e-5)


def test_the_log_probabilities_of_a_translation_sum_to_its_score() -> None:
    options = DecodingConfig(beam_size=3, length_penalty=0.0)
    requests = [Request((4, 5, 6, EOS)), Request((9, EOS))]
    best = [of_one[0] for of_one in ENGINE.translate(requests, options)]
    explained = ENGINE.explain(requests, [one.ids for one in best], batch_tokens=100)
    for hypothesis, explanation in zip(best, explained, strict=True):
        assert explanation.token_log_probs.sum() == pytest.approx(hypothesis.score, abs=1e-5)
        assert explanation.best_ids.shape == (len(hypothesis.ids), 0)


def test_the_attention_is_the_mean_over_the_heads_of_the_aligning_layer() -> None:
    source, target = (4, 5, 6, 7, EOS), (8, 9, EOS)
    [explanation] = ENGINE.explain([Request(source)], [target], batch_tokens=100)
    source_ids, inputs = torch.tensor([source]), torch.tensor([(SOS, 8, 9)])
    every_layer = cross_attention(MODEL, source_ids, torch.ones_like(source_ids).bool(), inputs)
    expected = every_layer[-1, 0].mean(0)
    assert explanation.attention == pytest.approx(expected.numpy(), abs=1e-6)


@given(source=ids, target=ids)
@settings(max_examples=15)
def test_a_token_is_aligned_to_the_source_token_of_largest_weight_and_not_to_the_end(
    source: TokenIds, target: TokenIds
) -> None:
    [explanation] = ENGINE.explain([Request(source)], [target], batch_tokens=100)
    expected = explanation.attention[:, :-1].argmax(1)
    assert explanation.alignment == tuple(expected.tolist())


def test_a_source_of_nothing_but_its_end_is_aligned_to_it() -> None:
    [explanation] = ENGINE.explain([Request((EOS,))], [(4, EOS)], batch_tokens=100)
    assert explanation.alignment == (0, 0)


def test_an_unshifted_decoder_reads_the_target_itself() -> None:
    sequence_format = SequenceFormat(has_end=False, is_shifted=False)
    unshifted = PyTorchEngine(MODEL, SpecialIds.of(TOKENIZER), sequence_format, CPU)
    source, target = (4, 5, 6), (7, 8, 9)
    [explanation] = unshifted.explain([Request(source)], [target], batch_tokens=10)
    expected = -unshifted.negative_log_likelihood([source], [target], batch_tokens=10)
    assert explanation.token_log_probs.sum() == pytest.approx(expected, abs=1e-5)
