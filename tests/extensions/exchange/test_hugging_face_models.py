"""Models in transformers: the same logits in both directions, whatever of its classes holds the model."""

from pathlib import Path
from typing import Any

import pytest
import torch

from transformer_cli.config import ModelConfig
from transformer_cli.extensions.exchange.hugging_face_models import (
    TableForm,
    VocabularySizes,
    fitting_class,
    from_hugging_face,
    hugging_face_config,
    hugging_face_obstacles,
    hugging_face_tensors,
    restored_model,
    with_rows,
)
from transformer_cli.model.transformer import Transformer
from transformer_cli.process.errors import ConfigError, DataError

from .hugging_face_models import (
    ALL,
    BART,
    MBART,
    POST,
    SHAPES,
    SHARED,
    SIZES,
    in_transformers,
    logits_of,
    random_batch,
    random_model,
)

pytestmark = pytest.mark.long

SHAPE = pytest.mark.parametrize(("changes", "vocabularies"), SHAPES.values(), ids=SHAPES)


def offset_of(model: Transformer, vocabularies: VocabularySizes) -> int:
    form = TableForm.of(model.config, vocabularies, fitting_class(model.config))
    return form.source_offset(vocabularies)


@SHAPE
def test_transformers_computes_our_logits(
    changes: dict[str, Any], vocabularies: VocabularySizes, tmp_path: Path
) -> None:
    model = random_model(changes, vocabularies)
    source_ids, mask, decoder_input_ids = random_batch(vocabularies)
    expected = model(source_ids, mask, decoder_input_ids)
    loaded = in_transformers(model, vocabularies, tmp_path)
    their_ids = source_ids + offset_of(model, vocabularies)
    found = logits_of(loaded, their_ids, mask, decoder_input_ids)
    size = vocabularies.target_size
    torch.testing.assert_close(found[..., :size], expected, rtol=0.0, atol=1e-5)
    assert (found[..., size:] < -9e3).all()


@pytest.mark.heavy
@SHAPE
def test_a_model_that_transformers_saves_again_is_still_the_same(
    changes: dict[str, Any], vocabularies: VocabularySizes, tmp_path: Path
) -> None:
    from transformers import AutoModelForSeq2SeqLM

    model = random_model(changes, vocabularies)
    loaded = in_transformers(model, vocabularies, tmp_path / "exported")
    loaded.save_pretrained(tmp_path / "saved")
    again = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "saved").eval()
    source_ids, mask, decoder_input_ids = random_batch(vocabularies)
    ids = source_ids + offset_of(model, vocabularies), mask, decoder_input_ids
    torch.testing.assert_close(logits_of(again, *ids), logits_of(loaded, *ids), rtol=0.0, atol=0.0)


@SHAPE
def test_an_exported_model_comes_back_bit_for_bit(changes: dict[str, Any], vocabularies: VocabularySizes) -> None:
    model = random_model(changes, vocabularies)
    state = model.state_dict()
    config = hugging_face_config(model.config, vocabularies)
    tensors = hugging_face_tensors(model.config, vocabularies, state)
    restored = restored_model(model.config, vocabularies, config, tensors)
    assert restored.config == model.config
    back = restored.state
    assert back.keys() == state.keys()
    assert all(torch.equal(back[name], state[name]) for name in state)


@pytest.mark.heavy
@SHAPE
def test_positions_that_transformers_has_trained_come_back_as_learned_positions(
    changes: dict[str, Any], vocabularies: VocabularySizes, tmp_path: Path
) -> None:
    model = random_model(changes, vocabularies)
    theirs = in_transformers(model, vocabularies, tmp_path)
    with torch.no_grad():
        for stack in (theirs.model.encoder, theirs.model.decoder):
            stack.embed_positions.weight.add_(0.1 * torch.randn(stack.embed_positions.weight.shape))
    saves_positions = fitting_class(model.config).saves_positions
    if not saves_positions:  # Marian makes its sinusoids anew when it is loaded
        theirs.save_pretrained(tmp_path / "saved")
        theirs = type(theirs).from_pretrained(tmp_path / "saved").eval()
    config, tensors = theirs.config.to_dict(), theirs.state_dict()
    restored = restored_model(model.config, vocabularies, config, tensors)
    assert restored.config.positions == ("learned" if saves_positions else model.config.positions)
    assert restored.config.max_length == model.config.max_length
    sizes = vocabularies.source_size, vocabularies.target_size
    ours = Transformer(restored.config, *sizes).eval()
    ours.load_state_dict(restored.state)
    source_ids, mask, decoder_input_ids = random_batch(vocabularies)
    offset = offset_of(model, vocabularies)
    found = logits_of(theirs, source_ids + offset, mask, decoder_input_ids)
    expected = ours(source_ids, mask, decoder_input_ids)
    torch.testing.assert_close(found[..., : sizes[1]], expected, rtol=0.0, atol=1e-5)


@pytest.mark.parametrize("name", ["Marian", "Pegasus", "Bart", "MBart"])
@pytest.mark.parametrize("is_tied", [True, False])
def test_a_model_of_transformers_has_the_same_logits_with_us(name: str, is_tied: bool) -> None:
    import transformers

    torch.manual_seed(5)
    config = getattr(transformers, f"{name}Config")(
        vocab_size=40,
        d_model=16,
        encoder_layers=2,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
        max_position_embeddings=32,
        activation_function="swish",
        scale_embedding=True,
        pad_token_id=39,
        eos_token_id=0,
        decoder_start_token_id=39,
        tie_word_embeddings=is_tied,
    )
    class_name = "MarianMTModel" if name == "Marian" else f"{name}ForConditionalGeneration"
    theirs = getattr(transformers, class_name)(config).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            if parameter.requires_grad:
                parameter.add_(0.2 * torch.randn_like(parameter))
        theirs.final_logits_bias.normal_()
    assert_same_logits_with_us(theirs, 40)


def test_a_marian_model_with_two_vocabularies_has_the_same_logits_with_us() -> None:
    import transformers

    torch.manual_seed(5)
    sizes = {
        "d_model": 16,
        "encoder_layers": 1,
        "decoder_layers": 2,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 24,
    }
    config = transformers.MarianConfig(
        vocab_size=40, decoder_vocab_size=30, share_encoder_decoder_embeddings=False, pad_token_id=29, **sizes
    )
    assert_same_logits_with_us(transformers.MarianMTModel(config).eval(), 30)


def assert_same_logits_with_us(theirs: Any, target_size: int) -> None:
    model = from_hugging_face(theirs.config.to_dict(), theirs.state_dict())
    ours = Transformer(model.config, model.source_vocab_size, model.target_vocab_size).eval()
    ours.load_state_dict(model.state)
    batch = random_batch(VocabularySizes(40, target_size, are_shared=True))
    torch.testing.assert_close(ours(*batch), logits_of(theirs, *batch), rtol=0.0, atol=1e-5)


def test_rows_of_the_vocabulary_can_be_chosen_anew() -> None:
    model = random_model(POST | ALL, SHARED)
    config = hugging_face_config(model.config, SHARED)
    tensors = hugging_face_tensors(model.config, SHARED, model.state_dict())
    rows = [*reversed(range(30)), 5]
    found = with_rows(from_hugging_face(config, tensors), rows, rows)
    ours = Transformer(found.config, found.source_vocab_size, found.target_vocab_size).eval()
    ours.load_state_dict(found.state)
    source_ids, mask, decoder_input_ids = random_batch(SHARED)
    expected = model(source_ids, mask, decoder_input_ids)[..., rows]
    logits = ours(29 - source_ids, mask, 29 - decoder_input_ids)
    torch.testing.assert_close(logits, expected, rtol=0.0, atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "obstacle"),
    [
        ({"norm": "rmsnorm"}, "model.norm: rmsnorm"),
        ({"norm_eps": 1e-6}, "model.norm_eps: 1e-06"),
        ({"activation": "swiglu"}, "model.activation: swiglu"),
        ({"head_dim": 4}, "model.head_dim: 4"),
        ({"num_kv_heads": 1}, "model.num_kv_heads: 1"),
        ({"qk_norm": True}, "model.qk_norm: true"),
        ({"decoder_layer": "ssru"}, "model.decoder_layer: ssru"),
        ({"positions": "rotary"}, "model.positions: rotary"),
        ({"final_norm": False}, "model.final_norm: false together with model.norm_placement: pre"),
        (POST | {"final_norm": True}, "model.final_norm: true together with model.norm_placement: post"),
        ({"norm_placement": "residual_of_normed"}, "model.norm_placement: residual_of_normed"),
        (POST | {"positions": "learned"}, "model.positions: learned together with model.norm_placement: post"),
        (POST | {"positions": "none"}, "model.positions: none together with model.norm_placement: post"),
    ],
)
def test_the_setting_that_no_class_has_is_named(changes: dict[str, Any], obstacle: str) -> None:
    config = ModelConfig.model_validate({**SIZES, **changes})
    assert [*hugging_face_obstacles(config)] == [obstacle]
    with pytest.raises(ConfigError, match=obstacle) as refused:
        fitting_class(config)
    assert "tfm info" in str(refused.value.hint)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        (POST, "MarianMTModel"),
        ({}, "PegasusForConditionalGeneration"),
        (BART, "BartForConditionalGeneration"),
        (MBART, "MBartForConditionalGeneration"),
    ],
)
def test_the_place_of_the_norms_decides_the_class(changes: dict[str, Any], name: str) -> None:
    assert fitting_class(ModelConfig.model_validate({**SIZES, **changes})).name == name


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "t5"}, "model_type is 't5'; models of these types fit: marian, pegasus"),
        ({"activation_function": "gelu_new"}, "activation_function is 'gelu_new'"),
        ({"decoder_ffn_dim": 7}, "encoder_ffn_dim is 24 and decoder_ffn_dim 7"),
        ({"d_model": "16"}, "d_model is '16', not a whole number"),
    ],
)
def test_a_foreign_model_that_does_not_fit_is_refused(changes: dict[str, Any], message: str) -> None:
    model = random_model(ALL, SHARED)
    config = hugging_face_config(model.config, SHARED)
    tensors = hugging_face_tensors(model.config, SHARED, model.state_dict())
    with pytest.raises(DataError, match=message):
        from_hugging_face({**config, **changes}, tensors)


@pytest.mark.parametrize("name", ["model.shared.weight", "model.decoder.layers.0.fc1.weight"])
def test_a_missing_weight_is_named(name: str) -> None:
    model = random_model(ALL, SHARED)
    config = hugging_face_config(model.config, SHARED)
    tensors = hugging_face_tensors(model.config, SHARED, model.state_dict())
    del tensors[name]
    with pytest.raises(DataError, match=f"no {name}"):
        from_hugging_face(config, tensors)


def test_a_bias_that_another_program_has_trained_is_no_longer_left_out() -> None:
    model = random_model(ALL | {"attention_bias": False}, SHARED)
    config = hugging_face_config(model.config, SHARED)
    tensors = hugging_face_tensors(model.config, SHARED, model.state_dict())
    tensors["model.encoder.layers.0.self_attn.q_proj.bias"] += 0.1
    with pytest.raises(DataError, match=r"q_proj\.bias is not zero"):
        restored_model(model.config, SHARED, config, tensors)
