"""SimCut: a second pass with cut embeddings, and the loss of its formula."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from transformer_cli.acceleration import accelerated_loss, losses
from transformer_cli.acceleration.losses import divergence_in_parts, simcut_loss_on_cpu
from transformer_cli.config import ModelConfig, TrainingConfig, load_config
from transformer_cli.data.encoded import TokenPair
from transformer_cli.data.updates import Batch, collate
from transformer_cli.model.layers import TokenCutoff
from transformer_cli.model.loss import SmoothedLabels, divergence, simcut_loss
from transformer_cli.model.transformer import Transformer
from transformer_cli.process.errors import ConfigError
from transformer_cli.training.initial_weights import new_model
from transformer_cli.training.loop import SimCut, build_objective

from ..experiments import TINY, write_tiny
from ..launcher import TfmHere

PAD, SOS, EOS = 1, 2, 3
WEIGHT, SMOOTHING, SHARE, NUM_SPECIALS = 3.0, 0.1, 0.4, 4
PAIRS = [
    TokenPair([4, 5, 8, EOS], [6, EOS]),
    TokenPair([7, EOS], [4, 4, 5, 6, EOS]),
    TokenPair([4, 6, EOS], [5, 6, EOS]),
]


def model(dropout: float = 0.0) -> Transformer:
    torch.manual_seed(0)
    config = ModelConfig(d_model=16, num_heads=2, d_ff=32, encoder_layers=1, decoder_layers=1, dropout=dropout)
    made = Transformer(config, 9, 9).double().train()
    made.source_word_dropout = made.target_word_dropout = TokenCutoff(SHARE, NUM_SPECIALS)
    return made


def batch() -> Batch:
    return collate(PAIRS, sos_id=SOS, pad_id=PAD)


def objective() -> Any:
    settings = {"simcut": {"weight": WEIGHT, "probability": SHARE}, "label_smoothing": SMOOTHING}
    training = TrainingConfig.model_validate({"max_steps": 1, "batch_sentences": 4, **settings})
    return build_objective(training, 9, torch.device("cpu"))


def logits_of(of: Transformer, rows: Batch, kept: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """The paper's f(x, y), where the embeddings of both sides are multiplied by `kept`, (B, S) and (B, T)."""
    tables = of.source_embedding, of.target_embedding
    embedded = []
    for ids, table, of_side in zip((rows.source_ids, rows.decoder_input_ids), tables, kept, strict=True):
        weight = (of.output if table is None else table).weight
        scaled = weight[ids] * (of.config.d_model**0.5 if of.config.scale_embeddings else 1.0)
        embedded.append(of.source_positions(scaled * of_side.unsqueeze(-1), 0))
    mask = of.mask_of_sources(rows.source_mask, embedded[0])
    memory = of.encoder(embedded[0], mask, None)
    target_mask = of.mask_of_targets(embedded[1])
    return of.output(of.decoder(embedded[1], memory, target_mask, mask, None))


def formula(p: torch.Tensor, q: torch.Tensor, target_ids: torch.Tensor) -> torch.Tensor:
    """Gao et al. 2022, section 3: the cross-entropy of the whole sentence, plus alpha KL(f(x, y) || f(x_cut, y_cut))."""
    likelihood = F.cross_entropy(
        p.transpose(1, 2),
        target_ids,
        ignore_index=PAD,
        label_smoothing=SMOOTHING,
        reduction="sum",
    )
    is_real = target_ids != PAD
    # kl_div(a, b) of PyTorch is KL(b || a).
    distance = F.kl_div(q[is_real].log_softmax(-1), p[is_real].log_softmax(-1), reduction="sum", log_target=True)
    return likelihood + WEIGHT * distance


@pytest.mark.parametrize("is_plain", [False, True])
def test_loss_and_gradients_are_those_of_the_paper_in_float64(is_plain: bool) -> None:
    ours, theirs, rows = model(), model(), batch()
    labels = SmoothedLabels.of(9, PAD, SMOOTHING, "vocabulary")
    torch.manual_seed(1)
    sums = (SimCut(labels, WEIGHT) if is_plain else objective())(ours, rows)
    sums.objective.backward()
    torch.manual_seed(1)
    sides = rows.source_ids, rows.decoder_input_ids
    kept = [(F.dropout(torch.ones(ids.shape, dtype=torch.float64), SHARE) > 0) | (ids < NUM_SPECIALS) for ids in sides]
    assert not all(each.all() for each in kept)
    whole = logits_of(theirs, rows, (torch.ones(sides[0].shape), torch.ones(sides[1].shape)))
    expected = formula(whole, logits_of(theirs, rows, (kept[0], kept[1])), rows.target_ids)
    expected.backward()
    assert sums.objective.item() == pytest.approx(expected.item(), rel=1e-12)
    of_whole = F.cross_entropy(whole.transpose(1, 2), rows.target_ids, ignore_index=PAD, reduction="sum")
    assert sums.negative_log_likelihood.item() == pytest.approx(of_whole.item(), rel=1e-12)
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
    in_parts = accelerated_loss(simcut_loss, torch.device("cuda"))
    expected = simcut_loss(layer, x, ids, labels, WEIGHT)
    inputs = x, *layer.parameters()
    of_expected = torch.autograd.grad(expected.objective / 3, inputs, retain_graph=True)
    for loss in (simcut_loss_on_cpu, in_parts):
        found = loss(layer, x, ids, labels, WEIGHT)
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-13)
        assert not found.negative_log_likelihood.requires_grad
        of_found = torch.autograd.grad(found.objective / 3, inputs)
        for one, other in zip(of_found, of_expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-13)


def test_the_divergence_in_parts_is_the_divergence() -> None:
    torch.manual_seed(1)
    p, q = (torch.randn(3, 4, 7, dtype=torch.float64, requires_grad=True) for _ in range(2))
    is_real = torch.rand(3, 4) < 0.7
    assert torch.autograd.gradcheck(lambda *both: divergence_in_parts(*both, is_real), (p, q))
    torch.testing.assert_close(divergence_in_parts(p, q, is_real), divergence(p, q, is_real))


def test_only_the_copies_lose_tokens_and_special_tokens_stay() -> None:
    torch.manual_seed(1)
    ids = torch.randint(0, 9, (200, 5)).repeat(2, 1)
    cut = TokenCutoff(SHARE, NUM_SPECIALS, tag_ids=(8,))
    embedded = torch.ones(400, 5, 3)
    found = cut(embedded, ids)
    assert torch.equal(found[:200], embedded[:200])
    copies, stays = found[200:], (ids[200:] < NUM_SPECIALS) | (ids[200:] == 8)
    assert (copies[stays] == 1.0).all()
    others = copies[~stays]
    assert set(others.flatten().tolist()) == {0.0, 1.0}  # nothing is divided by 1 - p
    assert (others[:, 0] == 0.0).double().mean().item() == pytest.approx(SHARE, abs=0.06)
    assert torch.equal(cut.eval()(embedded, ids), embedded)


def test_without_any_cut_it_is_the_plain_loss() -> None:
    """The divergence of two equal predictions is zero."""
    uncut = model()
    uncut.source_word_dropout = uncut.target_word_dropout = None
    labels = SmoothedLabels.of(9, PAD, SMOOTHING, "vocabulary")
    plain = build_objective(
        TrainingConfig(max_steps=1, batch_sentences=4, label_smoothing=SMOOTHING), 9, torch.device("cpu")
    )(uncut, batch())
    with_cut = SimCut(labels, WEIGHT)(uncut, batch())
    assert with_cut.objective.item() == pytest.approx(plain.objective.item(), rel=1e-12)


def test_the_config_gives_the_model_its_cutoff_with_the_values_of_the_paper(tmp_path: Any) -> None:
    from transformer_cli.config import TokenizerConfig
    from transformer_cli.text.tokenizer import train_tokenizer

    config = load_config("copy.yaml", ["training.simcut={}"])
    assert config.training.simcut is not None
    assert (config.training.simcut.weight, config.training.simcut.probability) == (3.0, 0.05)
    tokenizer = train_tokenizer(["a b c"] * 2, TokenizerConfig())
    made = new_model(config, (tokenizer, tokenizer))  # type: ignore[arg-type]
    for each in (made.source_word_dropout, made.target_word_dropout):
        assert isinstance(each, TokenCutoff)
        assert each.probability == 0.05


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("training.r_drop=1.0", r"training\.r_drop .* does not go together with training\.simcut"),
        ("training.word_dropout=0.1", r"training\.word_dropout cuts embeddings in both passes"),
        ("training.simcut.probability=1.0", "less than 1"),
        ("training.simcut.weight=0", "more than 0"),
    ],
)
def test_settings_that_do_not_fit_are_refused(override: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_config("copy.yaml", ["model.dropout=0.1", "training.simcut={}", override])


@pytest.mark.long
def test_a_resumed_run_equals_the_uninterrupted_one_bit_for_bit(
    tmp_path: Path,
) -> None:
    """Both stop at the same update; one of them has ended before, and goes on."""
    text = TINY.replace("accumulate: 2", "accumulate: 2\n  simcut: {}\n  schedule: constant")
    runs = []
    for name, steps in (("whole", (8,)), ("resumed", (4, 8))):
        here = TfmHere(tmp_path / name)
        here.folder.mkdir()
        write_tiny(here.folder, text)
        for most in steps:
            finished = here("train", "--config", "tiny.yaml", "--set", f"training.max_steps={most}")
            assert finished.exit_code == 0, finished.talk
        runs.append(here.folder / "runs/tiny/checkpoints/step-00000008")
    for file in ("model.safetensors", "optimizer.safetensors"):
        assert (runs[0] / file).read_bytes() == (runs[1] / file).read_bytes()
