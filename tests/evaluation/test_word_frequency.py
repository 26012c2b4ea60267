"""How often the words of a source occur in the training data: compared with a count over the text itself."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from transformer_cli.config import PhrasebookData, TokenizerConfig
from transformer_cli.data.encoded import (
    EncodedCorpus,
    TokenPair,
    write_encoded,
)
from transformer_cli.decoding import TextPipeline
from transformer_cli.evaluation.breakdown import rarest_word_frequencies, training_sources
from transformer_cli.text import train_tokenizer

from ..data.encoded_pairs import encoded_pairs

TRAINING = ["The cat sees the dog.", "The dog, the cat", "a dog sleeps."]


@pytest.mark.parametrize("kind", ["wordlevel", "bpe"])
def test_the_frequency_is_that_of_the_rarest_word_in_the_training_text(tmp_path: Path, kind: Any) -> None:
    settings = {"kind": kind} | ({} if kind == "wordlevel" else {"vocab_size": 300})
    tokenizer = train_tokenizer(TRAINING, TokenizerConfig.model_validate(settings))
    pipeline = TextPipeline(tokenizer, tokenizer, PhrasebookData(), max_length=50)
    pairs = [TokenPair([*tokenizer.encode(text), tokenizer.eos_id], [3]) for text in TRAINING]
    path = tmp_path / "train.arrow"
    write_encoded(path, [encoded_pairs(pairs, [0] * 3)], vocab_size=tokenizer.vocab_size)
    texts = ["The dog sees.", "a cat sleeps", "a bird", ""]
    expected = [
        1,  # sees
        1,  # a, sleeps
        0,
        0,
    ]
    assert rarest_word_frequencies(pipeline, [*texts, "the cat"], EncodedCorpus.open(path)) == [
        *expected,
        2,  # the, cat
    ]


def test_without_prepared_data_there_is_nothing_to_count(tmp_path: Path) -> None:
    config: Any = SimpleNamespace(data=PhrasebookData())
    assert training_sources(config, tmp_path) is None
    assert training_sources(config, tmp_path / "checkpoints" / "step-1") is None
