"""The model against the Marian model of `transformers`: same weights, same logits."""

import re
from typing import Any

import pytest
import torch
from torch import Tensor

from transformer_cli.config import ModelConfig
from transformer_cli.model.transformer import Transformer

from .samples import SOURCE_VOCAB_SIZE, TARGET_VOCAB_SIZE, model_of, sample

SIZES: dict[str, Any] = {"d_model": 12, "num_heads": 2, "d_ff": 10, "max_length": 16}
NAMES_IN_MARIAN = {
    "self_attention_norm": "self_attn_layer_norm",
    "cross_attention_norm": "encoder_attn_layer_norm",
    "feed_forward_norm": "final_layer_norm",
    "self_attention.": "self_attn.",
    "cross_attention.": "encoder_attn.",
    "query.": "q_proj.",
    "key.": "k_proj.",
    "value.": "v_proj.",
    "feed_forward.up": "fc1",
    "feed_forward.down": "fc2",
}


def marian_model(config: ModelConfig, source_vocab_size: int, *, is_shared: bool) -> Any:
    """The Marian model of `transformers` with the same sizes, in float64; its weights are still its own."""
    import transformers

    theirs = transformers.MarianConfig(
        vocab_size=source_vocab_size,
        decoder_vocab_size=TARGET_VOCAB_SIZE,
        share_encoder_decoder_embeddings=is_shared,
        tie_word_embeddings=True,
        d_model=config.d_model,
        encoder_layers=config.encoder_layers,
        decoder_layers=config.decoder_layers,
        encoder_attention_heads=config.num_heads,
        decoder_attention_heads=config.num_heads,
        encoder_ffn_dim=config.d_ff,
        decoder_ffn_dim=config.d_ff,
        activation_function={"silu": "swish"}.get(config.activation, config.activation),
        scale_embedding=config.scale_embeddings,
        max_position_embeddings=config.max_length,
        pad_token_id=0,
        eos_token_id=2,
        decoder_start_token_id=0,
    )
    return transformers.MarianMTModel(theirs).double().eval()


def in_names_of_marian(model: Transformer) -> dict[str, Tensor]:
    """Our weights under the names of Marian, without the embeddings."""
    state = {}
    for name, tensor in model.state_dict().items():
        if not name.startswith(("encoder.", "decoder.")):
            continue
        for ours, theirs in NAMES_IN_MARIAN.items():
            name = name.replace(ours, theirs)
        state["model." + re.sub(r"attn\.output\.", "attn.out_proj.", name)] = tensor
    return state


def give_weights(theirs: Any, model: Transformer) -> None:
    own = model.state_dict()
    missing, unexpected = theirs.load_state_dict(in_names_of_marian(model), strict=False)
    assert not unexpected
    table = own["output.weight"]
    with torch.no_grad():
        theirs.get_encoder().embed_tokens.weight.copy_(own.get("source_embedding.weight", table))
        theirs.get_decoder().embed_tokens.weight.copy_(table)
        theirs.lm_head.weight.copy_(table)
        theirs.final_logits_bias.copy_(own["output.bias"])
    filled = ("embed_tokens", "embed_positions", "shared", "lm_head", "final_logits_bias")
    assert all(any(part in name for part in filled) for name in missing)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # warnings of `transformers`
@pytest.mark.parametrize("is_shared", [True, False])
@pytest.mark.parametrize("activation", ["relu", "silu"])
@pytest.mark.parametrize("is_scaled", [True, False])
def test_logits_are_those_of_marian_with_the_same_weights(is_shared: bool, activation: str, is_scaled: bool) -> None:
    torch.manual_seed(1)
    config = ModelConfig(
        **SIZES,
        encoder_layers=2,
        decoder_layers=3,
        activation=activation,
        norm_placement="post",
        positions="sinusoidal_halves",
        scale_embeddings=is_scaled,
        tie_embeddings="all" if is_shared else "target-output",
        dropout=0.0,
    )
    model = model_of(config)
    source_vocab_size = TARGET_VOCAB_SIZE if is_shared else SOURCE_VOCAB_SIZE
    theirs = marian_model(config, source_vocab_size, is_shared=is_shared)
    give_weights(theirs, model)
    batch = sample()
    source_ids = batch.source_ids % source_vocab_size
    for stack in (theirs.get_encoder(), theirs.get_decoder()):
        table = stack.embed_positions.weight
        exact = model.source_positions(torch.zeros(1, 16, 12, dtype=torch.float64), 0)[0]
        torch.testing.assert_close(table, exact, rtol=0, atol=1e-7)  # theirs is in float32
        with torch.no_grad():
            table.copy_(exact)
    found = theirs(
        input_ids=source_ids,
        attention_mask=batch.source_mask.long(),
        decoder_input_ids=batch.decoder_input_ids,
    ).logits
    expected = model(source_ids, batch.source_mask, batch.decoder_input_ids)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)
