"""Small random models over eight words, and translators of them."""

import functools

import torch

from transformer_cli.config import (
    Config,
    DataConfig,
    DecodingConfig,
    ModelConfig,
    PhrasebookData,
    RuntimeConfig,
    TokenizerConfig,
    TrainingConfig,
)
from transformer_cli.decoding import Translator
from transformer_cli.decoding.loading import build_translator
from transformer_cli.model.transformer import Transformer
from transformer_cli.process.device import Machine
from transformer_cli.text.tokenizer import Tokenizer, train_tokenizer

WORDS = ["uno", "due", "tre", "quattro", "cinque", "sei", "sette", "otto"]
CPU = Machine(torch.device("cpu"), torch.float32)


@functools.cache
def tokenizer_of_words() -> Tokenizer:
    return train_tokenizer([" ".join(WORDS), *WORDS], TokenizerConfig())


def random_model(tokenizer: Tokenizer, **changes: object) -> Transformer:
    """Large weights, so that translations are short and differ from one another."""
    torch.manual_seed(1)
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 16, "encoder_layers": 1, "decoder_layers": 2}
    config = ModelConfig.model_validate({**sizes, "max_length": 12, **changes})
    model = Transformer(config, tokenizer.vocab_size, tokenizer.vocab_size).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4.0)
    return model


def config_of(model: Transformer, decoding: DecodingConfig, data: DataConfig | None = None) -> Config:
    has_both = data is not None and len(data.directions) > 1
    return Config(
        name="saved",
        data=data or PhrasebookData(),
        tokenizer=TokenizerConfig(shared=has_both),
        model=model.config,
        training=TrainingConfig(max_steps=1, batch_sentences=1),
        decoding=decoding,
        runtime=RuntimeConfig(device="cpu", precision="float32"),
    )


def translator(
    tokenizer: Tokenizer,
    *,
    model: Transformer | None = None,
    data: DataConfig | None = None,
    machine: Machine = CPU,
    **decoding: object,
) -> Translator:
    """Without `decoding.keep_text` and `decoding.repair`, unless they are given: random models write what fits no source."""
    model = model or random_model(tokenizer)
    settings = DecodingConfig.model_validate({"keep_text": False, "repair": False, **decoding})
    config = config_of(model, settings, data)
    return build_translator(model, tokenizer, tokenizer, config, machine)
