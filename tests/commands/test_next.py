"""The probabilities of the next token."""

import pytest
import torch

from transformer_cli.commands.next import next_token_probabilities
from transformer_cli.config import (
    Config,
    DecodingConfig,
    ModelConfig,
    PhrasebookData,
    TokenizerConfig,
    TrainingConfig,
)
from transformer_cli.decoding import Translator
from transformer_cli.decoding.loading import build_translator
from transformer_cli.model.transformer import Transformer
from transformer_cli.process.device import Machine
from transformer_cli.process.errors import UsageError
from transformer_cli.text.tokenizer import train_tokenizer


@pytest.fixture(scope="module")
def translator() -> Translator:
    tokenizer = train_tokenizer(["a b c d", "d c b a"], TokenizerConfig())
    torch.manual_seed(0)
    config = Config(
        name="small",
        data=PhrasebookData(),
        model=ModelConfig(d_model=16, num_heads=2, d_ff=32, encoder_layers=1, decoder_layers=1),
        training=TrainingConfig(max_steps=1, batch_sentences=1),
        decoding=DecodingConfig(beam_size=1, max_length=1),
    )
    model = Transformer(config.model, tokenizer.vocab_size, tokenizer.vocab_size).eval()
    machine = Machine(torch.device("cpu"), torch.float32)
    return build_translator(model, tokenizer, tokenizer, config, machine)


def test_probabilities_sum_to_one_and_follow_the_prefix(translator: Translator) -> None:
    first, later = (next_token_probabilities(translator, "a b", prefix) for prefix in ("", "a b"))
    assert first.shape == (translator.pipeline.target_tokenizer.vocab_size,)
    torch.testing.assert_close(first.sum(), torch.tensor(1.0))
    assert not torch.allclose(first, later)


def test_greedy_search_takes_the_most_probable_token(translator: Translator) -> None:
    probabilities = next_token_probabilities(translator, "c d", "")
    tokenizer = translator.pipeline.target_tokenizer
    probabilities[[tokenizer.pad_id, tokenizer.sos_id]] = 0.0  # search never chooses these
    (translation,) = translator.translate(["c d"])
    assert translation.text == tokenizer.decode([int(probabilities.argmax())])


def test_a_blank_source_is_refused(translator: Translator) -> None:
    with pytest.raises(UsageError, match="blank"):
        next_token_probabilities(translator, "  ", "a")


def test_a_space_at_the_end_of_the_prefix_is_no_token(translator: Translator, caplog: pytest.LogCaptureFixture) -> None:
    plain, with_space = (next_token_probabilities(translator, "a b", prefix) for prefix in ("a", "a "))
    assert torch.equal(plain, with_space)
    assert not caplog.records


@pytest.mark.parametrize(
    ("source", "prefix", "expected"),
    [
        ("a printer b", "a", ["unknown source word: 'printer'"]),
        ("a (x) y, (x)", "b z.", ["unknown source words: 'x', 'y'", "unknown prefix word: 'z'"]),
        ("a ... b", "", ["unknown source word: '...'"]),
        ("a  b", "", ["unknown source word: 'a  b'"]),
    ],
)
def test_unknown_words_are_named(
    translator: Translator,
    caplog: pytest.LogCaptureFixture,
    source: str,
    prefix: str,
    expected: list[str],
) -> None:
    next_token_probabilities(translator, source, prefix)
    assert [record.getMessage() for record in caplog.records] == expected
