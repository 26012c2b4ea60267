"""Random models of all shapes that a class of transformers can hold, and the same models in transformers."""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer_cli.config import ModelConfig
from transformer_cli.extensions.exchange.hugging_face_models import (
    VocabularySizes,
    hugging_face_config,
    hugging_face_tensors,
)
from transformer_cli.model.transformer import Transformer
from transformer_cli.storage.filesystem import tensors_content

SIZES = {"d_model": 16, "num_heads": 2, "d_ff": 24, "encoder_layers": 2, "decoder_layers": 1, "max_length": 20}
SHARED = VocabularySizes(30, 30, are_shared=True)
SEPARATE = VocabularySizes(30, 20, are_shared=False)
POST = {"norm_placement": "post"}
BART = {"norm_placement": "post", "embedding_norm": True}
MBART = {"embedding_norm": True}
ALL = {"tie_embeddings": "all"}
NONE = {"tie_embeddings": "none"}
SHAPES: dict[str, tuple[dict[str, Any], VocabularySizes]] = {
    "post-norm, one table": (POST | ALL, SHARED),
    "post-norm, one vocabulary, two tables": (POST, SHARED),
    "post-norm, one vocabulary, three tables": (POST | NONE, SHARED),
    "post-norm, two vocabularies": (POST | {"activation": "silu"}, SEPARATE),
    "post-norm, two vocabularies, three tables": (POST | NONE | {"activation": "gelu"}, SEPARATE),
    "post-norm, sines and cosines in halves": (POST | ALL | {"positions": "sinusoidal_halves"}, SHARED),
    "post-norm, no biases": (
        POST | ALL | {"attention_bias": False, "feed_forward_bias": False, "output_bias": False},
        SHARED,
    ),
    "pre-norm, one table": (ALL, SHARED),
    "pre-norm, one vocabulary, two tables": ({"scale_embeddings": False}, SHARED),
    "pre-norm, two vocabularies": ({}, SEPARATE),
    "pre-norm, two vocabularies, three tables": (NONE, SEPARATE),
    "pre-norm, learned positions": (ALL | {"positions": "learned"}, SHARED),
    "pre-norm, no positions": (ALL | {"positions": "none"}, SHARED),
    "pre-norm, other numbers of layers": (ALL | {"encoder_layers": 1, "decoder_layers": 3}, SHARED),
    "norm of embeddings, learned positions": (BART | ALL | {"positions": "learned"}, SHARED),
    "norm of embeddings, sinusoids": (BART, SEPARATE),
    "norm of embeddings, three tables": (BART | NONE, SEPARATE),
    "pre-norm and norm of embeddings": (MBART | ALL | {"positions": "learned"}, SHARED),
    "pre-norm and norm of embeddings, two vocabularies": (MBART, SEPARATE),
}


def random_model(changes: dict[str, Any], vocabularies: VocabularySizes) -> Transformer:
    """Every bias and every gain has an effect."""
    torch.manual_seed(3)
    config = ModelConfig.model_validate({**SIZES, **changes})
    model = Transformer(config, vocabularies.source_size, vocabularies.target_size).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def in_transformers(model: Transformer, vocabularies: VocabularySizes, folder: Path) -> Any:
    """The model, exported and loaded by transformers, in eval mode."""
    from transformers import AutoModelForSeq2SeqLM

    config = hugging_face_config(model.config, vocabularies)
    tensors = hugging_face_tensors(model.config, vocabularies, model.state_dict())
    write_model(config, tensors, folder)
    loaded, report = AutoModelForSeq2SeqLM.from_pretrained(folder, output_loading_info=True)
    problems = {name: found for name, found in report.items() if found}
    assert not problems, problems
    return loaded.eval()


def write_model(config: dict[str, Any], tensors: dict[str, Tensor], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    content = tensors_content(tensors)
    (folder / "model.safetensors").write_bytes(b"".join(content.chunks))


def logits_of(loaded: Any, source_ids: Tensor, mask: Tensor, decoder_input_ids: Tensor) -> Tensor:
    with torch.no_grad():
        found: Tensor = loaded(
            input_ids=source_ids, attention_mask=mask.long(), decoder_input_ids=decoder_input_ids
        ).logits
    return found


def random_batch(vocabularies: VocabularySizes) -> tuple[Tensor, Tensor, Tensor]:
    """Source ids, mask and decoder input ids of five sentences."""
    generator = torch.Generator().manual_seed(7)
    source_ids = torch.randint(4, vocabularies.source_size, (5, 9), generator=generator)
    lengths = torch.tensor([9, 1, 4, 7, 3])
    mask = torch.arange(9)[None] < lengths[:, None]
    decoder_input_ids = torch.randint(4, vocabularies.target_size, (5, 8), generator=generator)
    decoder_input_ids[:, 0] = 2
    return source_ids.where(mask, 1), mask, decoder_input_ids
