"""R-Drop: one forward pass over each sentence twice, and the loss of its formula."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from transformer_cli.acceleration import losses
from transformer_cli.acceleration.losses import r_drop_loss_on_cpu
from transformer_cli.config import ModelConfig, TrainingConfig, load_config
from transformer_cli.data.encoded import TokenPair
from transformer_cli.data.updates import Batch, collate
from transformer_cli.model.layers import WordDropout
from transformer_cli.model.loss import SmoothedLabels, r_drop_loss
from transformer_cli.model.transformer import Transformer
from transformer_cli.process.errors import ConfigError
from transformer_cli.training.loop import RDrop, build_objective

PAD, SOS, EOS = 1, 2, 3
ALPHA, SMOOTHING = 1.5, 0.1
PAIRS = [
    TokenPair([4, 5, EOS], [6, EOS]),
    TokenPair([7, EOS], [4, 4, 5, 6, EOS]),
    TokenPair([4, EOS], [5, 6, EOS]),
]


class Counted(nn.Module):
    """Counts the forward passes of a model, and keeps the logits of the last."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model
        self.output = model.output
        self.logits: list[torch.Tensor] = []

    def decoder_output(self, *inputs: Any) -> torch.Tensor:
        decoded = self.model.decoder_output(*inputs)
        self.logits.append(self.output(decoded))
        return decoded


def model(dropout: float = 0.3) -> Counted:
    torch.manual_seed(0)
    config = ModelConfig(d_model=16, num_heads=2, d_ff=32, encoder_layers=1, decoder_layers=1, dropout=dropout)
    return Counted(Transformer(config, 9, 9).double().train())


def batch() -> Batch:
    return collate(PAIRS, sos_id=SOS, pad_id=PAD)


def objective(**settings: Any) -> Any:
    settings = {"r_drop": ALPHA, "label_smoothing": SMOOTHING} | settings
    training = TrainingConfig(max_steps=1, batch_sentences=4, **settings)
    return build_objective(training, 9, torch.device("cpu"))


def formula(logits: torch.Tensor, target_ids: torch.Tensor) -> torch.Tensor:
    """Both cross-entropies, plus alpha times half the sum of the divergences, of one float64 tensor."""
    twice = torch.cat([target_ids, target_ids])
    likelihood = F.cross_entropy(
        logits.transpose(1, 2), twice, ignore_index=PAD, label_smoothing=SMOOTHING, reduction="sum"
    )
    is_real = target_ids != PAD
    p, q = (one[is_real].log_softmax(-1) for one in logits.chunk(2))
    both = [F.kl_div(a, b, reduction="sum", log_target=True) for a, b in ((p, q), (q, p))]
    return likelihood + ALPHA * (both[0] + both[1]) / 2


@pytest.mark.parametrize("is_plain", [False, True])
def test_loss_and_gradients_are_those_of_the_formula_in_float64(is_plain: bool) -> None:
    ours, theirs = model(), model()
    labels = SmoothedLabels.of(9, PAD, SMOOTHING, "vocabulary")
    torch.manual_seed(1)
    sums = (RDrop(labels, ALPHA) if is_plain else objective())(ours, batch())
    sums.objective.backward()
    torch.manual_seed(1)
    rows = batch()
    logits = theirs.model(
        rows.source_ids.repeat(2, 1), rows.source_mask.repeat(2, 1), rows.decoder_input_ids.repeat(2, 1)
    )
    expected = formula(logits, rows.target_ids)
    expected.backward()
    assert sums.objective.item() == pytest.approx(expected.item(), rel=1e-12)
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("smoothed_over", ["vocabulary", "others"])
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("num_sentences", [3, 40])  # fewer and more positions than MULTIPLE
def test_the_form_for_a_cpu_is_the_loss_of_the_logits(
    num_sentences: int, has_bias: bool, smoothed_over: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(1)
    monkeypatch.setattr(losses, "MAX_PER_THREAD", 63)  # several parts
    lengths = torch.arange(num_sentences).unsqueeze(-1) % 5
    ids = torch.randint(2, 9, (num_sentences, 4)).where(torch.arange(4) < lengths, PAD)
    labels = SmoothedLabels.of(9, PAD, 0.1, smoothed_over)
    layer = nn.Linear(5, 9, bias=has_bias).double()
    x = torch.randn(2 * num_sentences, 4, 5, dtype=torch.float64, requires_grad=True)
    found, expected = (loss(layer, x, ids, labels, ALPHA) for loss in (r_drop_loss_on_cpu, r_drop_loss))
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-13)
    assert not found.negative_log_likelihood.requires_grad
    inputs = x, *layer.parameters()
    of_found = torch.autograd.grad(found.objective / 3, inputs)
    of_expected = torch.autograd.grad(expected.objective / 3, inputs)
    for one, other in zip(of_found, of_expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-13)


def test_in_bfloat16_the_form_for_a_cpu_is_as_near_to_the_formula() -> None:
    torch.manual_seed(1)
    ids = torch.randint(2, 9, (20, 6))
    given = ids, SmoothedLabels.of(9, PAD, 0.1, "vocabulary"), ALPHA
    x, layer = torch.randn(40, 6, 16, requires_grad=True), nn.Linear(16, 9)
    exact = r_drop_loss(layer.double(), x.double(), *given)
    expected = torch.autograd.grad(exact.objective, (x, layer.weight))
    layer.float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = r_drop_loss_on_cpu(layer, x, *given)
    assert found.objective.dtype == torch.float32
    torch.testing.assert_close(found.objective.double(), exact.objective, rtol=1e-3, atol=0)
    for one, wanted in zip(torch.autograd.grad(found.objective, (x, layer.weight)), expected, strict=True):
        torch.testing.assert_close(one.double(), wanted.double(), rtol=0.03, atol=0.03)


def test_the_model_runs_once_with_each_sentence_twice_and_other_dropout() -> None:
    counted = model()
    objective()(counted, batch())
    [logits] = counted.logits
    assert logits.shape == (2 * len(PAIRS), 5, 9)
    first, second = logits.chunk(2)
    assert not torch.allclose(first, second)


def test_the_reported_likelihood_is_the_mean_of_both_runs() -> None:
    counted = model()
    sums = objective()(counted, batch())
    target_ids = batch().target_ids
    of_runs = [
        F.cross_entropy(one.transpose(1, 2), target_ids, ignore_index=PAD, reduction="sum").item()
        for one in counted.logits[0].chunk(2)
    ]
    assert sums.negative_log_likelihood.item() == pytest.approx(sum(of_runs) / 2, rel=1e-12)


def test_without_dropout_it_is_twice_the_plain_loss() -> None:
    """The divergence is zero then; the config refuses it for this reason."""
    plain = objective(r_drop=None)(model(0.0), batch())
    doubled = objective()(model(0.0), batch())
    assert doubled.objective.item() == pytest.approx(2 * plain.objective.item(), rel=1e-12)
    nll = plain.negative_log_likelihood.item()
    assert doubled.negative_log_likelihood.item() == pytest.approx(nll, rel=1e-12)


def test_a_config_without_dropout_is_refused() -> None:
    overrides = ["training.r_drop=1.0", "model.dropout=0.0"]
    with pytest.raises(ConfigError, match="r_drop has no effect without dropout"):
        load_config("copy.yaml", overrides)
    # Both runs of a batch skip the same layers.
    with pytest.raises(ConfigError, match="r_drop has no effect without dropout"):
        load_config("copy.yaml", [*overrides, "model.layer_dropout=0.2"])
    for one in ("attention_dropout", "ff_dropout", "embedding_dropout"):
        assert load_config("copy.yaml", [*overrides, f"model.{one}=0.1"]).training.r_drop == 1.0
    assert load_config("copy.yaml", [*overrides, "training.word_dropout=0.1"]).training.r_drop == 1.0


def test_word_dropout_alone_makes_the_two_runs_differ() -> None:
    """So the divergence is above 0, and with it the objective of a larger alpha."""
    objectives = []
    for alpha in (1e-12, 1.0):
        with_word_dropout = model(0.0)
        with_word_dropout.model.source_word_dropout = with_word_dropout.model.target_word_dropout = WordDropout(
            0.5, num_special_tokens=4
        )
        torch.manual_seed(6)
        objectives.append(objective(r_drop=alpha)(with_word_dropout, batch()).objective.item())
    assert objectives[1] > objectives[0] + 1e-6
