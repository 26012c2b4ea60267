"""The likelihood of given pairs: one number for each, the same that validation sums and that the search finds."""

import logging
import math
from dataclasses import replace

import pytest
import torch

from transformer_cli.config import SequencesData
from transformer_cli.decoding.given_pairs import PairLikelihood, pair_likelihoods
from transformer_cli.process.errors import UsageError

from .small_translators import WORDS, random_model, tokenizer_of_words, translator

TOKENIZER = tokenizer_of_words()
PAIRS = [("uno due", "tre"), ("tre", "quattro cinque sei"), ("", "uno"), ("sei", " "), ("due", "x")]


@pytest.mark.parametrize("batch_tokens", [1, 20, 4096])
def test_each_pair_has_the_log_probability_that_the_engine_sums(batch_tokens: int) -> None:
    of_words = translator(TOKENIZER, batch_tokens=batch_tokens)
    found = pair_likelihoods(of_words, PAIRS)
    assert [one.num_tokens for one in found] == [2, 4, 2, 1, 2]
    for (source, target), one in zip(PAIRS, found, strict=True):
        source_ids = of_words.pipeline.source_ids(source)
        target_ids = of_words.pipeline.target_ids(target.strip())
        expected = of_words.engine.negative_log_likelihood([source_ids], [target_ids], batch_tokens=100)
        assert one.log_probability == pytest.approx(-expected, abs=1e-5)


def test_the_likelihood_of_a_translation_is_the_score_that_the_search_gave_it() -> None:
    model = random_model(TOKENIZER, max_length=100)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():  # another model, which ends many translations
        for parameter in model.parameters():
            parameter.add_(0.5 * torch.randn(parameter.shape, generator=generator).double())
    of_words = translator(
        TOKENIZER, model=model, beam_size=8, num_best=8, length_penalty=0.0, max_length=20, allow_unknown=False
    )
    num_ended = 0
    for translation in of_words.translate(["uno due tre", "sei", *WORDS]):
        pairs = [(translation.source, one.text) for one in translation.alternatives]
        for one, alternative in zip(pair_likelihoods(of_words, pairs), translation.alternatives, strict=True):
            if one.num_tokens <= 20:  # the search did not stop at the maximal length, before [EOS]
                num_ended += 1
                assert one.log_probability == pytest.approx(alternative.score, abs=1e-4)
    assert num_ended > 10


def test_a_pair_that_is_too_long_is_shortened_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    of_words = translator(TOKENIZER)
    long = " ".join(WORDS * 2)
    with caplog.at_level(logging.WARNING):
        [found] = pair_likelihoods(of_words, [("uno", long)])
    assert found.num_tokens == 12
    assert math.isfinite(found.log_probability)
    assert caplog.messages == ["pairs of more than 12 tokens, of which only the beginning was scored: 1"]


def test_without_an_end_symbol_a_blank_pair_has_no_token() -> None:
    task = SequencesData(source="sequences", task="drop-first", end_symbol=False)
    model = random_model(TOKENIZER)
    assert pair_likelihoods(translator(TOKENIZER, model=model, data=task), [("", "")]) == [PairLikelihood(0.0, 0)]
    assert pair_likelihoods(translator(TOKENIZER), []) == []


def test_an_engine_that_cannot_score_is_refused() -> None:
    of_words = replace(translator(TOKENIZER), engine=object())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="cannot score given translations"):
        pair_likelihoods(of_words, PAIRS)
