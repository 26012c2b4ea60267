"""Makes a COMET model with random weights, in the form in which unbabel-comet saves its models; needs that library."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.models import Unigram
from tokenizers.pre_tokenizers import Metaspace
from tokenizers.processors import TemplateProcessing

WIDTH = 16


def save_encoder(folder: Path) -> None:
    """A tiny XLM-RoBERTa with random weights, whose tokens are letters."""
    from transformers import XLMRobertaConfig, XLMRobertaModel, XLMRobertaTokenizerFast

    letters = [chr(code) for code in range(0x21, 0x17F) if chr(code).isprintable()]
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "\u2581", *letters, "<mask>"]
    tokens = Tokenizer(Unigram([(piece, 0.0) for piece in pieces], unk_id=3))
    tokens.pre_tokenizer = Metaspace()
    tokens.post_processor = TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    XLMRobertaTokenizerFast(tokenizer_object=tokens).save_pretrained(folder)
    config = XLMRobertaConfig(
        vocab_size=len(pieces),
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=WIDTH,
        max_position_embeddings=130,
        initializer_range=1.0,
    )
    XLMRobertaModel(config, add_pooling_layer=False).save_pretrained(folder)


def save_comet(folder: Path, *, kind: str = "regression_metric", seed: int = 1) -> Path:
    """A COMET model with random weights; returns its folder.

    Args:
        folder: becomes the folder of the model, with its encoder beside it.
        kind: regression_metric, or referenceless_regression_metric, which reads no references.
    """
    import yaml
    from comet.models import str2model

    torch.manual_seed(seed)
    encoder = folder.with_name(f"{folder.name}-encoder")
    save_encoder(encoder)
    settings: dict[str, Any] = {
        "pretrained_model": str(encoder),
        "hidden_sizes": [8],
        "layer": "mix",
        "local_files_only": True,
    }
    model = str2model[kind](**settings)
    (folder / "checkpoints").mkdir(parents=True)
    hparams = {**settings, "class_identifier": kind}
    (folder / "hparams.yaml").write_text(yaml.safe_dump(hparams))
    saved = {
        "state_dict": model.state_dict(),
        "hyper_parameters": dict(model.hparams),
        "pytorch-lightning_version": "2.0.0",
    }
    torch.save(saved, folder / "checkpoints" / "model.ckpt")
    return folder
