"""The CTranslate2 engine: the same hypotheses as PyTorch in greedy search, our scores, and PyTorch where needed."""

import shutil
from itertools import pairwise
from pathlib import Path
from pkgutil import resolve_name
from typing import get_args

import pytest
import torch

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding import Engine, Glossary, Request, SpecialIds, Term, TokenIds
from transformer_cli.decoding.engine import require_agreement
from transformer_cli.decoding.loading import OTHER_ENGINES, load_translator
from transformer_cli.decoding.pytorch_engine import PyTorchEngine
from transformer_cli.extensions.exchange.ctranslate2_engine import (
    CTranslate2Engine,
    ctranslate2_translator,
)
from transformer_cli.extensions.exchange.ctranslate2_models import ctranslate2_files
from transformer_cli.model.transformer import Transformer
from transformer_cli.process.errors import ConfigError, DataError
from transformer_cli.text import SequenceFormat

from ...decoding.small_translators import CPU, random_model, tokenizer_of_words

pytest.importorskip("ctranslate2")

TOKENIZER = tokenizer_of_words()
EOS = TOKENIZER.eos_id
REQUESTS = [Request((*range(4, 4 + length), EOS)) for length in (3, 1, 8, 5, 1, 2, 7, 4)]
GREEDY = DecodingConfig(beam_size=1)


class Engines:
    """Both engines of one model, and how often PyTorch was asked."""

    def __init__(self, model: Transformer, max_positions: int = 100) -> None:
        special_ids = SpecialIds.of(TOKENIZER)
        self.pytorch = PyTorchEngine(model, special_ids, SequenceFormat(), CPU)
        self.num_calls = 0
        self.broken: set[TokenIds] = set()
        files = ctranslate2_files(model, TOKENIZER)
        self.ctranslate2 = CTranslate2Engine(
            ctranslate2_translator(files, "cpu", "float32", 1),
            special_ids,
            max_positions,
            TOKENIZER.vocab_size,
            lambda ids: ids not in self.broken,
            self._load,
        )

    def _load(self) -> Engine:
        self.num_calls += 1
        return self.pytorch


def model_without_banned_tokens() -> Transformer:
    model = random_model(TOKENIZER).float()
    with torch.no_grad():
        model.output.bias[[TOKENIZER.pad_id, TOKENIZER.sos_id, TOKENIZER.unk_id]] = -60.0
    return model


def test_every_engine_of_the_config_is_found_by_its_name() -> None:
    names = get_args(DecodingConfig.model_fields["engine"].annotation)
    assert {"torch", *OTHER_ENGINES} == {*names}
    for places in OTHER_ENGINES.values():
        assert all(callable(resolve_name(place)) for place in places)


@pytest.fixture(scope="module")
def engines() -> Engines:
    return Engines(model_without_banned_tokens())


@pytest.mark.long
@pytest.mark.parametrize("batch_tokens", [1, 12, 4096])
@pytest.mark.parametrize("max_length", [None, 3])
def test_greedy_search_finds_what_pytorch_finds_in_any_batch(
    engines: Engines, batch_tokens: int, max_length: int | None
) -> None:
    options = GREEDY.model_copy(update={"batch_tokens": batch_tokens, "max_length": max_length})
    engines.num_calls = 0
    found = engines.ctranslate2.translate(REQUESTS, options)
    assert engines.num_calls == 0
    for ours, theirs in zip(found, engines.pytorch.translate(REQUESTS, options), strict=True):
        assert [one.ids for one in ours] == [one.ids for one in theirs]
        assert ours[0].score == pytest.approx(theirs[0].score, rel=1e-3, abs=1e-4)


def test_each_source_has_its_own_limit() -> None:
    """The limit of a batch is that of its longest source: 2 * source + 20."""
    model = model_without_banned_tokens()
    with torch.no_grad():
        model.output.bias[EOS] = -60.0  # it never ends
    engines = Engines(model)
    found = engines.ctranslate2.translate(REQUESTS, GREEDY)
    assert [len(one.ids) for [one] in found] == [2 * len(one.ids) + 20 for one in REQUESTS]
    for ours, theirs in zip(found, engines.pytorch.translate(REQUESTS, GREEDY), strict=True):
        assert [one.ids for one in ours] == [one.ids for one in theirs]


@pytest.mark.long
@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_hypotheses_of_a_beam_are_ranked_by_our_score(engines: Engines, alpha: float) -> None:
    # Short ones: in what random weights go on writing, errors of rounding grow from token to token.
    options = DecodingConfig(beam_size=4, num_best=3, length_penalty=alpha, max_length=3)
    found = engines.ctranslate2.translate(REQUESTS, options)
    for request, of_one in zip(REQUESTS, found, strict=True):
        assert 1 <= len(of_one) <= 3
        scores = [one.score for one in of_one]
        assert scores == sorted(scores, reverse=True)
        for one in of_one:
            loss = engines.pytorch.negative_log_likelihood([request.ids], [one.ids], batch_tokens=9)
            expected = -loss / ((5 + len(one.ids)) / 6) ** alpha
            assert one.score == pytest.approx(expected, rel=1e-3, abs=1e-3)


@pytest.mark.long
def test_pytorch_translates_what_has_a_banned_token_a_broken_character_or_a_wish(
    engines: Engines,
) -> None:
    [[usual]] = engines.ctranslate2.translate(REQUESTS[:1], GREEDY)
    engines.num_calls, engines.broken = 0, {usual.ids}
    assert engines.ctranslate2.translate(REQUESTS[:1], GREEDY) == engines.pytorch.translate(REQUESTS[:1], GREEDY)
    assert engines.num_calls == 1
    engines.broken = set()
    model = model_without_banned_tokens()
    with torch.no_grad():
        model.output.bias[TOKENIZER.unk_id] = 60.0
    loud = Engines(model)
    without_unknown = GREEDY.model_copy(update={"allow_unknown": False})
    found = loud.ctranslate2.translate(REQUESTS, without_unknown)
    assert loud.num_calls == 1
    assert found == loud.pytorch.translate(REQUESTS, without_unknown)
    assert not any(TOKENIZER.unk_id in one.ids for [one] in found)


@pytest.mark.parametrize("name", ["split_sentences", "keep_layout", "known_spellings", "keep_text", "repair"])
def test_the_settings_of_the_text_pipeline_are_those_of_every_engine(name: str, engines: Engines) -> None:
    options = GREEDY.model_copy(update={name: not getattr(GREEDY, name)})
    usual = engines.ctranslate2.translate(REQUESTS[:1], GREEDY)
    assert engines.ctranslate2.translate(REQUESTS[:1], options) == usual


@pytest.mark.long
def test_pytorch_translates_what_has_terms(engines: Engines) -> None:
    term = Term(((9, 5),))
    requests = [request._replace(terms=(term,)) for request in REQUESTS[:2]]
    for options in (GREEDY, DecodingConfig(beam_size=3)):
        engines.num_calls = 0
        found = engines.ctranslate2.translate([*requests, REQUESTS[2]], options)
        assert engines.num_calls == 1
        assert found[:2] == engines.pytorch.translate(requests, options)
        assert all((9, 5) in pairwise(one.ids) for [one] in found[:2])


@pytest.mark.long
def test_a_term_stands_in_the_place_of_the_own_word_of_the_model(tmp_path: Path) -> None:
    run = Path(shutil.copytree(Path(__file__).parents[3] / "docs/run", tmp_path / "run"))
    translator = load_translator(run, decoding=DecodingConfig(engine="ctranslate2"))
    assert isinstance(translator.engine, CTranslate2Engine)
    sentences = ["The train is late."]
    [free] = translator.translate(sentences)
    [found] = translator.with_glossary(Glossary.of({"train": "convoglio"})).translate(sentences)
    assert "treno" in free.text
    assert found.text == free.text.replace("treno", "convoglio")


def test_likelihoods_and_next_tokens_are_those_of_pytorch(engines: Engines) -> None:
    sources = [request.ids for request in REQUESTS]
    expected = engines.pytorch.negative_log_likelihood(sources, sources, batch_tokens=20)
    found = engines.ctranslate2.negative_log_likelihood(sources, sources, batch_tokens=20)
    assert found == expected
    probabilities = engines.ctranslate2.next_token_probabilities(sources[0], (4, 5))
    assert torch.equal(probabilities, engines.pytorch.next_token_probabilities(sources[0], (4, 5)))


def test_a_limit_beyond_the_positions_is_refused() -> None:
    engines = Engines(model_without_banned_tokens(), max_positions=30)
    with pytest.raises(ConfigError, match=r"decoding\.max_length: 31") as refusal:
        engines.ctranslate2.translate(REQUESTS, GREEDY.model_copy(update={"max_length": 31}))
    assert "at most 30" in str(refusal.value.hint)


def test_engines_of_different_models_do_not_agree(engines: Engines) -> None:
    require_agreement(engines.ctranslate2, engines.pytorch, REQUESTS, what="a model")
    other = model_without_banned_tokens()
    with torch.no_grad():
        other.output.bias[EOS] = 60.0  # every translation is empty
    with pytest.raises(DataError, match=r"a model: [1-8] of 8 greedy translations differ"):
        require_agreement(engines.ctranslate2, Engines(other).pytorch, REQUESTS, what="a model")


@pytest.mark.parametrize(
    ("device", "precision", "message"),
    [
        ("mps", "float32", r"runtime\.device: mps, but CTranslate2 finds no such device"),
        ("cpu", "float8", r"runtime\.precision: float8, but CTranslate2 computes in "),
    ],
)
def test_a_machine_that_cannot_is_named(device: str, precision: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ctranslate2_translator({}, device, precision, 1)
