"""Ensembles of models with different source tokenizers: each model reads the same text in its own tokens."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.config import DecodingConfig, ModelConfig, PhrasebookData, TokenizerConfig
from transformer_cli.decoding import ExplainingEngine, Request, TokenIds, Translator
from transformer_cli.decoding.ensemble import (
    EnsembleEngine,
    SourceReading,
    combine_translators,
)
from transformer_cli.decoding.loading import build_translator
from transformer_cli.decoding.pytorch_engine import PyTorchEngine
from transformer_cli.model import Transformer
from transformer_cli.process.errors import UsageError
from transformer_cli.text.sentences import UNKNOWN_LENGTHS, SeenLengths
from transformer_cli.text.tokenizer import Tokenizer, train_tokenizer

from .small_translators import CPU, WORDS, config_of, tokenizer_of_words

TEXTS = [" ".join(WORDS[first : first + 3]) for first in range(6)] * 2
TAGS = ("<2it>", "<2en>")


def subwords(kind: str, vocab_size: int) -> Tokenizer:
    config = TokenizerConfig.model_validate({"kind": kind, "vocab_size": vocab_size})
    return train_tokenizer(TEXTS, config, tags=TAGS)


SMALL, LARGE, UNIGRAM = subwords("bpe", 265), subwords("bpe", 290), subwords("unigram", 275)
TARGET = tokenizer_of_words()
LINES = ["uno due", "tre quattro cinque", "sette", "otto sei", "due? tre!", "città — 猫 uno"]


def reader(source: Tokenizer, seed: int, *, max_length: int = 60, **decoding: object) -> Translator:
    torch.manual_seed(seed)
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 16, "encoder_layers": 1, "decoder_layers": 2}
    learned = {"max_length": max_length, "positions": "learned"}
    config = ModelConfig.model_validate({**sizes, **learned})
    model = Transformer(config, source.vocab_size, TARGET.vocab_size).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4.0)
    settings = DecodingConfig.model_validate({"max_length": 6, "beam_size": 4, **decoding})
    data = PhrasebookData(target_tag=True)
    return build_translator(model, source, TARGET, config_of(model, settings, data), CPU)


def combined(*members: Translator) -> Translator:
    return combine_translators(members, [f"model {number}" for number in range(len(members))])


@pytest.mark.long
@pytest.mark.parametrize("source", [SMALL, UNIGRAM], ids=["bpe", "unigram"])
def test_an_ensemble_of_twice_the_same_that_reads_the_text_anew_is_that_one(
    source: Tokenizer,
) -> None:
    alone = reader(source, 1, num_best=4)
    assert isinstance(alone.engine, PyTorchEngine)
    anew = SourceReading(source, source, alone.pipeline.max_length)
    engine = EnsembleEngine.of([alone.engine] * 2, [None, anew])
    together = replace(alone, engine=engine)
    for one, other in zip(
        alone.translate(LINES, with_details=True),
        together.translate(LINES, with_details=True),
        strict=True,
    ):
        assert [each.text for each in other.alternatives] == [each.text for each in one.alternatives]
        scores = [each.score for each in one.alternatives]
        assert [each.score for each in other.alternatives] == pytest.approx(scores, abs=1e-6)
        assert other.confidence == pytest.approx(one.confidence)
        assert one.details is not None
        assert other.details is not None
        assert other.details.links == one.details.links


@pytest.mark.long
@pytest.mark.parametrize("others", [(LARGE,), (UNIGRAM, SMALL), (TARGET,)], ids=len)
def test_probabilities_are_the_mean_over_the_models_that_each_read_the_text_in_its_own_tokens(
    others: tuple[Tokenizer, ...],
) -> None:
    if TARGET in others:  # its vocabulary has no tags
        others = (train_tokenizer(TEXTS, TokenizerConfig(), tags=TAGS),)
    members = [reader(source, seed) for seed, source in enumerate((SMALL, *others))]
    ensemble = combined(*members).engine
    for line in LINES[:4]:
        of_members: list[TokenIds] = [one.pipeline.source_ids(line) for one in members]
        assert of_members[0] != of_members[1]
        target = (*TARGET.encode("sei uno"), Tokenizer.eos_id)
        total = 0.0
        for place, token in enumerate(target):
            prefix = target[:place]
            alone = [
                one.engine.next_token_probabilities(ids, prefix) for one, ids in zip(members, of_members, strict=True)
            ]
            expected = torch.stack(alone).mean(0)
            found = ensemble.next_token_probabilities(of_members[0], prefix)
            assert torch.allclose(found, expected, rtol=1e-9)
            total += math.log(expected[token].item())
        likelihood = ensemble.negative_log_likelihood([of_members[0]], [target], batch_tokens=50)
        assert likelihood == pytest.approx(-total)


def test_a_search_finds_what_the_likelihood_and_the_explanation_say_in_any_batch() -> None:
    together = combined(reader(SMALL, 1), reader(LARGE, 2), reader(SMALL, 3))
    assert isinstance(together.engine, ExplainingEngine)
    options = DecodingConfig(beam_size=3, num_best=3, length_penalty=0.0, max_length=6)
    requests = [Request(together.pipeline.source_ids(line)) for line in LINES]
    for request, hypotheses in zip(requests, together.engine.translate(requests, options), strict=True):
        targets = [one.ids for one in hypotheses]
        explained = together.engine.explain([request] * len(targets), targets, batch_tokens=200)
        for hypothesis, explanation in zip(hypotheses, explained, strict=True):
            assert hypothesis.score == pytest.approx(explanation.token_log_probs.sum(), abs=1e-4)
            assert explanation.attention.shape == (len(hypothesis.ids), len(request.ids))
            assert explanation.attention.sum(1) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.long
def test_the_coverage_penalty_counts_the_attention_on_the_tokens_of_the_first_model() -> None:
    together = combined(reader(SMALL, 1), reader(LARGE, 2))
    assert len(list(replace(together, decoding=DecodingConfig(coverage_penalty=0.5)).translate(LINES))) == len(LINES)


@given(text=st.text(max_size=30))
def test_a_text_is_read_as_if_it_were_given_to_the_model_alone(text: str) -> None:
    one, other = READERS[0].pipeline, READERS[1].pipeline
    text = one.normalize_source(text)
    reading = SourceReading(one.source_tokenizer, other.source_tokenizer, 1000)
    assert reading.ids(one.source_ids(text)) == other.source_ids(text)


READERS = [reader(SMALL, 1), reader(UNIGRAM, 2)]


def test_a_sentence_is_cut_where_any_model_can_read_no_more() -> None:
    long = " ".join(WORDS)
    few, many = reader(LARGE, 1, max_length=30), reader(SMALL, 2, max_length=30)
    assert not few.pipeline.prepare(long).is_cut
    assert many.pipeline.prepare(long).is_cut
    together = combined(few, many)
    prepared = together.pipeline.prepare(long)
    assert prepared.is_cut
    for part in [one.text for one in prepared.parts]:
        assert len(many.pipeline.source_ids(part)) <= 30
    [translation] = together.translate([long])
    assert translation.is_cut


def test_an_ensemble_has_seen_what_each_of_its_models_has_seen() -> None:
    lengths = [SeenLengths(30, 0.6), SeenLengths(20, 0.5), UNKNOWN_LENGTHS]
    readers = [
        replace(of, pipeline=replace(of.pipeline, seen=seen))
        for of, seen in zip((reader(SMALL, 1), reader(LARGE, 2), reader(SMALL, 3)), lengths, strict=True)
    ]
    assert combined(*readers).pipeline.seen == SeenLengths(20, 0.5)


def test_a_first_model_of_words_cannot_give_its_text_to_another_reader() -> None:
    words = train_tokenizer(TEXTS, TokenizerConfig(), tags=TAGS)
    with pytest.raises(UsageError, match="the source vocabularies differ") as refused:
        combined(reader(words, 1), reader(SMALL, 2))
    assert "name a run first whose source tokenizer is tokenizer.kind bpe or unigram" in str(refused.value.hint)
