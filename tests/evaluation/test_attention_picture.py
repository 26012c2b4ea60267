"""Pictures of cross-attention: right numbers, right axes, no dropout."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from transformer_cli.config import (
    Config,
    ModelConfig,
    PhrasebookData,
    SequencesData,
    TokenizerConfig,
    TrainingConfig,
)
from transformer_cli.decoding import Translator
from transformer_cli.decoding.loading import build_translator
from transformer_cli.decoding.pytorch_engine import cross_attention
from transformer_cli.evaluation.validation import (
    MAX_TOKENS,
    attention_picture,
    draw_attention,
)
from transformer_cli.model.transformer import Transformer
from transformer_cli.process.device import Machine
from transformer_cli.text.tokenizer import Tokenizer, train_tokenizer

SOURCE = torch.tensor([[4, 5, 6, 3], [7, 3, 1, 1]])
MASK = SOURCE != 1
TARGET = torch.tensor([[2, 5, 6], [2, 8, 8]])


def model(**settings: object) -> Transformer:
    torch.manual_seed(0)
    small = {"d_model": 16, "num_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 2}
    return Transformer(ModelConfig.model_validate(small | settings), 9, 9)


def test_each_row_is_a_distribution_over_the_real_source_positions() -> None:
    weights = cross_attention(model().eval(), SOURCE, MASK, TARGET)
    assert weights.shape == (2, 2, 2, 3, 4)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 2, 3))
    assert bool((weights[:, 1, :, :, 2:] == 0).all())


@pytest.mark.parametrize("settings", [{}, {"num_kv_heads": 1}, {"qk_norm": True}])
@torch.inference_mode()
def test_the_weights_are_those_that_make_the_output(settings: dict[str, object]) -> None:
    """With them, the values and the output projection, the layer's own output comes out again."""
    one = model(**settings).eval()
    inputs = {}
    attention = one.decoder.layers[0].cross_attention
    hook = attention.register_forward_hook(lambda module, args, output: inputs.update(args=args, output=output))
    weights = cross_attention(one, SOURCE, MASK, TARGET)[0]  # (B, H, T, S)
    hook.remove()
    memory = inputs["args"][1]
    values = attention.keys_and_values(memory)[1]
    values = values.repeat_interleave(2 // values.size(1), dim=1)
    gathered = (weights @ values).transpose(1, 2).flatten(2)
    torch.testing.assert_close(attention.output(gathered), inputs["output"])


def picture_translator(tokenizer: Tokenizer, one: Transformer) -> Translator:
    config = Config(
        name="small",
        data=PhrasebookData(),
        model=one.config,
        training=TrainingConfig(max_steps=1, batch_sentences=1),
    )
    machine = Machine(torch.device("cpu"), torch.float32)
    return build_translator(one, tokenizer, tokenizer, config, machine)


def test_the_picture_of_a_translation_has_the_mean_weights_of_the_last_layer() -> None:
    tokenizer = train_tokenizer(["a b c d e"], TokenizerConfig())
    one = model(dropout=0.9, attention_dropout=0.9).eval()
    figure = attention_picture(picture_translator(tokenizer, one), "a b", "c d e")
    assert figure is not None
    source_ids = torch.tensor([[*tokenizer.encode("a b"), tokenizer.eos_id]])
    inputs = torch.tensor([[tokenizer.sos_id, *tokenizer.encode("c d e")]])
    weights = cross_attention(one, source_ids, torch.ones_like(source_ids).bool(), inputs)
    shown = torch.from_numpy(figure.axes[0].get_images()[0].get_array().data)
    assert shown.shape == (4, 3)
    assert torch.equal(shown, weights[-1, 0].mean(0))
    assert not one.training


def words(word: str, count: int) -> str:
    return " ".join([word] * count)


@pytest.mark.long
def test_a_long_translation_has_a_picture_of_its_first_tokens() -> None:
    tokenizer = train_tokenizer(["a b c d e"], TokenizerConfig())
    one = picture_translator(tokenizer, model().eval())
    short = attention_picture(one, words("a", MAX_TOKENS - 1), words("b", MAX_TOKENS - 1))
    long = attention_picture(one, words("a", 60), words("b", 500))
    assert short is not None
    assert long is not None
    weights = [figure.axes[0].get_images()[0].get_array() for figure in (short, long)]
    assert [one.shape for one in weights] == [(MAX_TOKENS, MAX_TOKENS)] * 2
    assert long.get_size_inches() == pytest.approx(short.get_size_inches(), abs=0.5)
    assert "first 40 of 61 source tokens and 40 of 501 target tokens" in long.get_suptitle()
    only_target = attention_picture(one, "a b", words("b", 100))
    whole = attention_picture(one, "a b", words("b", MAX_TOKENS - 1))
    assert only_target is not None
    assert whole is not None
    assert whole.get_suptitle() == ""
    first, of_whole = (figure.axes[0].get_images()[0].get_array() for figure in (only_target, whole))
    # The last row of the short one predicts [EOS], which does not change the weights.
    np.testing.assert_allclose(first, of_whole, atol=1e-6)


def test_a_model_in_training_mode_is_refused() -> None:
    noisy = model(dropout=0.9).train()
    with pytest.raises(ValueError, match=r"call model\.eval\(\)"):
        cross_attention(noisy, SOURCE, MASK, TARGET)
    assert noisy.training


def test_a_text_without_tokens_and_another_engine_have_no_picture() -> None:
    tokenizer = train_tokenizer(["a b c d e"], TokenizerConfig())
    of = picture_translator(tokenizer, model().eval())
    without_end = SequencesData(source="sequences", end_symbol=False)
    of_task = replace(of, pipeline=replace(of.pipeline, data=without_end))
    assert attention_picture(of_task, "a", "") is None
    assert attention_picture(of_task, "", "a") is None
    assert attention_picture(of_task, "a", "a") is not None
    assert attention_picture(replace(of, engine=object()), "a", "a") is None


def test_the_source_runs_from_left_to_right_and_the_target_from_top_to_bottom() -> None:
    weights = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    figure = draw_attention(weights, [" the", " red", "$5"], [" il", " rosso"])
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["the", "red", r"\$5"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["il", "rosso"]
    assert axes.get_images()[0].get_array().tolist() == weights.tolist()
    assert axes.yaxis_inverted()
