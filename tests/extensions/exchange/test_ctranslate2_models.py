"""Converted models: CTranslate2 translates as PyTorch does, whatever layers the model has."""

import pytest
import torch

from transformer_cli.config import DecodingConfig, ModelConfig
from transformer_cli.decoding import Request, SpecialIds
from transformer_cli.decoding.pytorch_engine import PyTorchEngine
from transformer_cli.extensions.exchange.ctranslate2_engine import (
    CTranslate2Engine,
    ctranslate2_translator,
)
from transformer_cli.extensions.exchange.ctranslate2_models import (
    ctranslate2_files,
    require_convertible,
)
from transformer_cli.extensions.exchange.position_tables import num_positions
from transformer_cli.model.transformer import Transformer
from transformer_cli.process.errors import ConfigError
from transformer_cli.text import SequenceFormat

from ...decoding.small_translators import CPU, random_model, tokenizer_of_words

TOKENIZER = tokenizer_of_words()
REQUESTS = [Request((*range(4, 4 + length), TOKENIZER.eos_id)) for length in (3, 1, 8, 5, 1, 2, 7, 4)]
MODELS: dict[str, dict[str, object]] = {
    "pre-norm": {},
    "post-norm": {"norm_placement": "post"},
    "post-norm with a final norm": {"norm_placement": "post", "final_norm": True},
    "pre-norm without a final norm": {"final_norm": False},
    "rmsnorm": {"norm": "rmsnorm", "attention_bias": False, "feed_forward_bias": False},
    "a norm of embeddings": {"norm_placement": "post", "embedding_norm": True},
    "rotary and gated": {"positions": "rotary", "activation": "swiglu"},
    "gated gelu": {"activation": "geglu"},
    "gelu": {"activation": "gelu"},
    "silu": {"activation": "silu"},
    "learned positions": {"positions": "learned", "max_length": 40},
    "halves": {"positions": "sinusoidal_halves"},
    "no positions": {"positions": "none", "scale_embeddings": False},
    "wide heads": {"head_dim": 16, "output_bias": False},
    "one table": {"tie_embeddings": "all"},
    "three tables": {"tie_embeddings": "none", "encoder_layers": 3, "decoder_layers": 1},
    "another epsilon": {"norm_eps": 0.01},
}


def engines_of(model: Transformer) -> tuple[CTranslate2Engine, PyTorchEngine]:
    special_ids = SpecialIds.of(TOKENIZER)
    pytorch = PyTorchEngine(model, special_ids, SequenceFormat(), CPU)
    translator = ctranslate2_translator(ctranslate2_files(model, TOKENIZER), "cpu", "float32", 1)
    limit = num_positions(model.config)
    size = TOKENIZER.vocab_size
    return CTranslate2Engine(translator, special_ids, limit, size, TOKENIZER.has_whole_characters, _never), pytorch


def _never() -> PyTorchEngine:
    raise AssertionError("CTranslate2 alone translates")


@pytest.mark.long
@pytest.mark.parametrize("changes", MODELS.values(), ids=MODELS)
def test_greedy_tokens_and_scores_are_those_of_pytorch(changes: dict[str, object]) -> None:
    pytest.importorskip("ctranslate2")
    torch.manual_seed(2)
    model = random_model(TOKENIZER, **changes).float()
    with torch.no_grad():  # every bias and every gain has an effect
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    ours, theirs = engines_of(model)
    options = DecodingConfig(beam_size=1, length_penalty=0.6, max_length=11)
    found = ours._search([request.ids for request in REQUESTS], 11, options)
    expected = theirs.translate(REQUESTS, options)
    banned = {TOKENIZER.pad_id, TOKENIZER.sos_id}  # by PyTorch's engine
    compared = [(mine, yours) for [mine], [yours] in zip(found, expected, strict=True) if banned.isdisjoint(mine.ids)]
    assert len(compared) >= len(REQUESTS) // 2
    for mine, yours in compared:
        assert mine.ids == yours.ids
        assert mine.score == pytest.approx(yours.score, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("num_kv_heads", 1),
        ("qk_norm", True),
        ("decoder_layer", "ssru"),
        ("norm_placement", "residual_of_normed"),
        ("norm", "std_layernorm"),
    ],
)
def test_what_ctranslate2_cannot_hold_is_refused_by_name(setting: str, value: object) -> None:
    config = ModelConfig.model_validate({"preset": "tiny", setting: value})
    with pytest.raises(ConfigError, match=f"model.{setting}: ") as refusal:
        require_convertible(config)
    assert "decoding.engine=torch" in str(refusal.value.hint)


def test_the_model_is_left_as_it_was() -> None:
    pytest.importorskip("ctranslate2")
    model = random_model(TOKENIZER).float()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    ctranslate2_files(model, TOKENIZER)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
