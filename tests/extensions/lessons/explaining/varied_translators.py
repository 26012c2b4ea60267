"""A translator with random weights whose translations differ, and are neither all empty nor all endless."""

import torch

from transformer_cli.decoding import Translator
from transformer_cli.model import Transformer
from transformer_cli.text.tokenizer import Tokenizer

from ....decoding.small_translators import random_model, tokenizer_of_words, translator

LINES = ["uno due tre.", "sette otto", "Due tre! cinque sei? tre due uno", "due due due due"]


def varied_model(tokenizer: Tokenizer, **changes: object) -> Transformer:
    model = random_model(tokenizer, **changes)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.35)
        model.output.bias[tokenizer.eos_id] += 2.0
        model.output.bias[tokenizer.unk_id] -= 3.0
    return model


def varied_translator(tokenizer: Tokenizer | None = None) -> Translator:
    tokenizer = tokenizer or tokenizer_of_words()
    return translator(tokenizer, model=varied_model(tokenizer), max_length=9)
