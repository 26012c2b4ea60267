"""Ensembles: the mean of the probabilities of several models, in every search and for given targets."""

import math
from dataclasses import replace

import pytest
import torch

from transformer_cli.config import (
    CleaningConfig,
    DecodingConfig,
    PhrasebookData,
    SequencesData,
    TokenizerConfig,
)
from transformer_cli.decoding import Engine, ExplainingEngine, Request, TokenIds, Translator
from transformer_cli.decoding.checks.quality import Quality, QualityPromise
from transformer_cli.decoding.ensemble import (
    EnsembleEngine,
    combine_translators,
    mean_log_probs,
)
from transformer_cli.decoding.pytorch_engine import PyTorchEngine
from transformer_cli.process.errors import UsageError
from transformer_cli.text.tokenizer import Tokenizer, train_tokenizer

from .small_translators import WORDS, random_model, tokenizer_of_words, translator

TOKENIZER = tokenizer_of_words()
LINES = [" ".join(WORDS[first:last]) for first in range(8) for last in range(first + 1, 9)]
SOURCES: list[TokenIds] = [(*TOKENIZER.encode(line), Tokenizer.eos_id) for line in LINES]
TARGETS = [*reversed(SOURCES)]


def single(seed: int, **settings: object) -> Translator:
    model = random_model(TOKENIZER)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.5 * torch.randn(parameter.shape, generator=generator).double())
    return translator(TOKENIZER, model=model, **settings)


def combined(*translators: Translator) -> Translator:
    return combine_translators(translators, [f"model {i}" for i in range(len(translators))])


@pytest.mark.long
@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("count", [2, 3])
def test_an_ensemble_of_the_same_model_translates_as_this_model(beam_size: int, count: int) -> None:
    alone = single(1, beam_size=beam_size, num_best=beam_size)
    together = combined(*[alone] * count)
    assert isinstance(together.engine, EnsembleEngine)
    for one, other in zip(alone.translate(LINES), together.translate(LINES), strict=True):
        assert [each.text for each in other.alternatives] == [each.text for each in one.alternatives]
        scores = [each.score for each in one.alternatives]
        assert [each.score for each in other.alternatives] == pytest.approx(scores, abs=1e-6)
    likelihoods = [
        engine.negative_log_likelihood(SOURCES, TARGETS, batch_tokens=50) for engine in (alone.engine, together.engine)
    ]
    assert likelihoods[1] == pytest.approx(likelihoods[0], abs=1e-6)


def test_a_calibration_of_one_model_says_nothing_about_an_ensemble() -> None:
    quality = Quality({}, 0.0, 0.0, 0.0, 0.5, QualityPromise("chrf", 60, 0.05, 0.95), {})
    alone = single(1)
    calibrated = replace(alone, pipeline=replace(alone.pipeline, qualities={"en-it": quality}))
    assert calibrated.pipeline.quality is quality
    assert combined(calibrated, single(2)).pipeline.quality is None


def mean_probabilities(engines: list[Engine], source: TokenIds, prefix: TokenIds) -> torch.Tensor:
    all_of_them = [engine.next_token_probabilities(source, prefix) for engine in engines]
    return torch.stack(all_of_them).mean(0)


def test_probabilities_are_the_mean_of_those_of_all_models() -> None:
    members = [single(seed) for seed in (1, 2, 3)]
    engines, ensemble = [one.engine for one in members], combined(*members).engine
    source, target = SOURCES[7], TARGETS[3]
    log_probability = 0.0
    for position, token in enumerate(target):
        prefix = target[:position]
        expected = mean_probabilities(engines, source, prefix)
        found = ensemble.next_token_probabilities(source, prefix)
        assert torch.allclose(found, expected, rtol=1e-9)
        log_probability += math.log(expected[token].item())
    found_sum = ensemble.negative_log_likelihood([source], [target], batch_tokens=50)
    assert found_sum == pytest.approx(-log_probability, abs=1e-9)


def test_an_explanation_is_of_the_mean_probabilities_and_of_the_mean_attention() -> None:
    members = [single(seed) for seed in (1, 2)]
    engines, ensemble = [one.engine for one in members], combined(*members).engine
    request, target = Request(SOURCES[7]), TARGETS[3]
    assert isinstance(ensemble, ExplainingEngine)
    [explained] = ensemble.explain([request], [target], batch_tokens=50, num_best=2)
    alone = [engine.explain([request], [target], batch_tokens=50)[0] for engine in engines]  # type: ignore[attr-defined]
    attention = torch.tensor([one.attention.tolist() for one in alone]).mean(0)
    assert explained.attention == pytest.approx(attention.numpy(), abs=1e-6)
    for place, token in enumerate(target):
        expected = mean_probabilities(engines, request.ids, target[:place])
        assert math.exp(explained.token_log_probs[place]) == pytest.approx(expected[token].item())
        assert explained.best_ids[place].tolist() == expected.topk(2).indices.tolist()


@pytest.mark.heavy
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("search", [{"beam_size": 4}, {"beam_size": 4, "diversity": {"groups": 2}}])
def test_the_coverage_penalty_is_that_of_the_explained_attention(count: int, search: dict[str, object]) -> None:
    settings = {"num_best": 3, "length_penalty": 0.6, "coverage_penalty": 0.7}
    members = [single(seed, **settings, **search) for seed in range(1, count + 1)]
    for member in members:
        assert isinstance(member.engine, PyTorchEngine)
        with torch.no_grad():  # small weights, or some attention is 0 in float32
            for parameter in member.engine.model.parameters():
                parameter.mul_(0.4)
    together = combined(*members)
    requests = [Request(source) for source in SOURCES]
    assert isinstance(together.engine, ExplainingEngine)
    translations = together.engine.translate(requests, together.decoding)
    for request, hypotheses in zip(requests, translations, strict=True):
        assert hypotheses
        targets = [hypothesis.ids for hypothesis in hypotheses]
        of_all = together.engine.explain([request] * len(targets), targets, batch_tokens=50)
        for hypothesis, explained in zip(hypotheses, of_all, strict=True):
            coverage = explained.attention.sum(0).tolist()
            penalty = sum(math.log(min(covered, 1.0)) for covered in coverage)
            divisor = ((5 + len(hypothesis.ids)) / 6) ** 0.6
            expected = float(explained.token_log_probs.sum()) / divisor + 0.7 * penalty
            assert hypothesis.score == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.long
def test_greedy_search_takes_the_token_with_the_largest_mean_probability() -> None:
    members = [single(seed) for seed in (1, 2)]
    engines, ensemble = [one.engine for one in members], combined(*members).engine
    options = DecodingConfig(beam_size=1, max_length=6)
    found = ensemble.translate([Request(source) for source in SOURCES], options)
    alone = engines[0].translate([Request(source) for source in SOURCES], options)
    assert found != alone
    for source, [hypothesis] in zip(SOURCES, found, strict=True):
        tokens: TokenIds = ()
        while len(tokens) < 6 and tokens[-1:] != (Tokenizer.eos_id,):
            probabilities = mean_probabilities(engines, source, tokens)
            probabilities[[Tokenizer.pad_id, Tokenizer.sos_id]] = 0.0
            tokens += (int(probabilities.argmax()),)
        assert hypothesis.ids == tokens


@pytest.mark.long
def test_a_beam_finds_the_score_that_the_likelihood_has() -> None:
    ensemble = combined(single(1), single(2)).engine
    options = DecodingConfig(beam_size=4, length_penalty=0.0, num_best=4)
    for source, hypotheses in zip(SOURCES, ensemble.translate([*map(Request, SOURCES)], options), strict=True):
        for hypothesis in hypotheses:
            likelihood = ensemble.negative_log_likelihood([source], [hypothesis.ids], batch_tokens=99)
            assert hypothesis.score == pytest.approx(-likelihood, abs=1e-6)


def test_the_logarithm_of_the_mean_is_exact_for_tiny_probabilities() -> None:
    tiny = torch.tensor([-1000.0, -2.0], dtype=torch.float64)
    other = torch.tensor([-1000.0 + math.log(3), -math.inf], dtype=torch.float64)
    expected = torch.tensor([-1000.0 + math.log(2), -2.0 - math.log(2)], dtype=torch.float64)
    assert torch.allclose(mean_log_probs([tiny, other]), expected, rtol=1e-12)


def test_the_limits_are_those_of_the_model_that_reads_least() -> None:
    small = translator(TOKENIZER, model=random_model(TOKENIZER, max_length=5, positions="learned"), beam_size=1)
    together = combined(single(1, beam_size=1), small)
    assert together.pipeline.max_length == 5
    [[hypothesis]] = together.engine.translate([Request(SOURCES[0])], DecodingConfig(beam_size=1, max_length=50))
    assert len(hypothesis.ids) <= 5


def test_one_model_in_training_mode_is_refused() -> None:
    members = [single(1), single(2)]
    ensemble = combined(*members)
    assert isinstance(members[1].engine, PyTorchEngine)
    members[1].engine.model.train()
    with pytest.raises(ValueError, match="in training mode"):
        list(ensemble.translate(LINES))


def other_tokenizer(*words: str) -> Tokenizer:
    return train_tokenizer([" ".join(words)] * 3, TokenizerConfig())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"target_tokenizer": other_tokenizer(*WORDS, "nove")},
            r"the target vocabularies differ: 12 and 13 tokens",
        ),
        (
            {"target_tokenizer": other_tokenizer(*WORDS[:-1], "nove")},
            r"the target vocabularies differ: token \d+ is ' \w+' and ' \w+'",
        ),
        (
            {"source_tokenizer": other_tokenizer(*WORDS, "nove")},
            r"the source vocabularies differ: 12 and 13 tokens",
        ),
        (
            {"data": PhrasebookData(both_directions=True)},
            r"the languages differ: en-it, and en-it, it-en",
        ),
        (
            {"data": PhrasebookData(cleaning=CleaningConfig(normalize_unicode=False))},
            r"the rules of normalisation differ: normalize_unicode True, .*, and normalize_unicode False",
        ),
        (
            {"data": SequencesData(source="sequences", task="drop-first", end_symbol=False)},
            r"the formats of sequences differ: with \[EOS\], .*, and without \[EOS\], ",
        ),
    ],
)
def test_models_that_read_or_write_other_ids_are_refused(changes: dict[str, object], message: str) -> None:
    first = single(1)
    other = replace(first, pipeline=replace(first.pipeline, **changes))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=f"model 0 and model 1 cannot form an ensemble: {message}"):
        combined(first, other)


def test_an_engine_of_another_kind_is_refused() -> None:
    first = single(1)
    with pytest.raises(UsageError, match="models that run with PyTorch"):
        combined(first, replace(first, engine=object()))  # type: ignore[arg-type]


def test_a_single_translator_stays_what_it_is() -> None:
    alone = single(1)
    assert combined(alone) is alone
