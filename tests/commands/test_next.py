"""The probabilities of the next symbol."""

import pytest
import torch

from transformer_cli.commands.next import next_symbol
from transformer_cli.config import DecodingConfig, ModelConfig, PhrasebookData, TokenizerConfig
from transformer_cli.decoding.translator import Translator
from transformer_cli.errors import UsageError
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import Machine
from transformer_cli.text.tokenizer import train_tokenizer


@pytest.fixture(scope="module")
def translator() -> Translator:
    tokenizer = train_tokenizer(["a b c d", "d c b a"], TokenizerConfig())
    torch.manual_seed(0)
    config = ModelConfig(d_model=16, num_heads=2, d_ff=32, encoder_layers=1, decoder_layers=1)
    model = Transformer(config, tokenizer.vocab_size, tokenizer.vocab_size)
    machine = Machine(torch.device("cpu"), torch.float32)
    decoding = DecodingConfig(beam_size=1, max_length=1)
    return Translator(model.eval(), tokenizer, tokenizer, decoding, PhrasebookData(), machine)


def test_probabilities_sum_to_one_and_follow_the_prefix(translator: Translator) -> None:
    first, later = (next_symbol(translator, "a b", prefix) for prefix in ("", "a b"))
    assert first.shape == (translator.target_tokenizer.vocab_size,)
    torch.testing.assert_close(first.sum(), torch.tensor(1.0))
    assert not torch.allclose(first, later)


def test_greedy_search_takes_the_most_probable_symbol(translator: Translator) -> None:
    probabilities = next_symbol(translator, "c d", "")
    tokenizer = translator.target_tokenizer
    probabilities[[tokenizer.pad_id, tokenizer.sos_id]] = 0.0  # search never chooses these
    (translation,) = translator.translate(["c d"])
    assert translation.text == tokenizer.decode([int(probabilities.argmax())])


def test_a_blank_source_is_refused(translator: Translator) -> None:
    with pytest.raises(UsageError, match="blank"):
        next_symbol(translator, "  ", "a")


def test_unknown_words_are_reported_and_a_space_at_the_end_is_no_symbol(
    translator: Translator, caplog: pytest.LogCaptureFixture
) -> None:
    plain, with_blank = (next_symbol(translator, "a b", prefix) for prefix in ("a", "a "))
    assert torch.equal(plain, with_blank)
    assert not caplog.records
    next_symbol(translator, "a x y", "b z")
    assert [record.getMessage() for record in caplog.records] == [
        "symbols of the source that the model does not know: 2",
        "symbols of the prefix that the model does not know: 1",
    ]
