"""Word dropout: the embeddings of random tokens become zero."""

import pytest
import torch
from torch import nn

from transformer_cli.config import ModelConfig
from transformer_cli.model.layers import WordDropout
from transformer_cli.model.transformer import Transformer

IDS = torch.randint(0, 12, (40, 50), generator=torch.Generator().manual_seed(1))
EMBEDDED = torch.randn(40, 50, 6, generator=torch.Generator().manual_seed(2))
NUM_SPECIALS = 4


def test_a_token_is_dropped_as_a_whole_and_the_others_are_scaled() -> None:
    torch.manual_seed(1)
    dropped = WordDropout(0.25, NUM_SPECIALS)(EMBEDDED, IDS)
    is_zero = (dropped == 0.0).all(-1)
    torch.testing.assert_close(
        dropped[~is_zero], (EMBEDDED * torch.where(IDS < 4, 1.0, 1 / 0.75).unsqueeze(-1))[~is_zero]
    )
    assert not is_zero[IDS < NUM_SPECIALS].any()
    share = is_zero[IDS >= NUM_SPECIALS].float().mean().item()
    num_words = int((IDS >= NUM_SPECIALS).sum())
    assert share == pytest.approx(0.25, abs=5 * (0.25 * 0.75 / num_words) ** 0.5)


@pytest.mark.long
def test_it_keeps_the_mean() -> None:
    torch.manual_seed(1)
    module = WordDropout(0.3, NUM_SPECIALS)
    mean = torch.stack([module(EMBEDDED, IDS) for _ in range(2000)]).mean(0)
    torch.testing.assert_close(mean, EMBEDDED, atol=0.2, rtol=0.0)


def test_outside_of_training_nothing_is_dropped() -> None:
    module = WordDropout(0.9, NUM_SPECIALS).eval()
    assert module(EMBEDDED, IDS) is EMBEDDED


def model_with(dropout: WordDropout | None) -> Transformer:
    torch.manual_seed(0)
    config = ModelConfig(d_model=8, num_heads=2, d_ff=16, encoder_layers=1, decoder_layers=1, dropout=0.0)
    model = Transformer(config, 12, 12)
    model.source_word_dropout = model.target_word_dropout = dropout
    return model


def test_the_model_drops_words_of_the_source_and_of_what_the_decoder_reads() -> None:
    """The positions stay: a sentence whose words are all dropped is that of embeddings of zeros."""
    source, target = torch.full((1, 5), 7), torch.tensor([[2, 8, 9]])
    nothing = WordDropout(1.0 - 1e-9, NUM_SPECIALS)
    dropping, plain = model_with(nothing).train(), model_with(None)
    found = dropping.embed_source(source), dropping.embed_target(target)
    with torch.no_grad():
        for module in plain.modules():
            if isinstance(module, nn.Embedding):
                module.weight[4:] = 0.0
        plain.output.weight[4:] = 0.0
    expected = plain.embed_source(source), plain.embed_target(target)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_a_dropped_word_gets_no_gradient() -> None:
    torch.manual_seed(5)
    model = model_with(WordDropout(0.5, NUM_SPECIALS)).train()
    ids = torch.arange(4, 12).unsqueeze(0)
    embedded = model.embed_source(ids)
    torch.manual_seed(5)
    is_dropped = (WordDropout(0.5, NUM_SPECIALS)(torch.ones(1, 8, 8), ids) == 0.0).all(-1)[0]
    assert 0 < is_dropped.sum() < 8
    torch.manual_seed(5)
    model.embed_source(ids).pow(2).sum().backward()
    table = model.output if model.source_embedding is None else model.source_embedding
    assert table.weight.grad is not None
    assert torch.equal((table.weight.grad[4:] == 0.0).all(-1), is_dropped)
    assert embedded.shape == (1, 8, 8)


def test_a_model_without_it_draws_no_random_number() -> None:
    model = model_with(None).train()
    torch.manual_seed(3)
    before = torch.get_rng_state()
    model.embed_source(IDS)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_weights_have_the_same_names() -> None:
    assert model_with(WordDropout(0.5, 4)).state_dict().keys() == model_with(None).state_dict().keys()


def test_tags_stay() -> None:
    ids = torch.tensor([[8, 5, 5, 5, 9, 5, 5, 5]])
    embedded = torch.ones(1, 8, 2)
    for _ in range(20):
        is_kept = WordDropout(0.9, 4, [8, 9])(embedded, ids).eq(1.0).all(-1)[0]
        assert is_kept[0]
        assert is_kept[4]
