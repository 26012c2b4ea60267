"""Guided alignment: the loss equals its formula, and a trained head aligns as it was taught."""

import copy
from pathlib import Path
from random import Random

import pytest
import torch

from transformer_cli.acceleration import accelerate
from transformer_cli.data.updates import Batch
from transformer_cli.model.loss import SmoothedLabels, alignment_loss
from transformer_cli.training.loop import GuidedAlignment, LabelSmoothedLikelihood

from ..data.test_alignments import reversed_pair, write
from ..launcher import TfmHere
from ..model.samples import PAD_ID, TARGET_VOCAB_SIZE, sample, small_model

CONFIG = """\
name: aligned
data:
  source: files
  corpora:
    - {split: train, source_path: train.source, target_path: train.target%s}
    - {split: validation, source_path: val.source, target_path: val.target}
tokenizer: {kind: bpe, vocab_size: 300, shared: true}
model: {d_model: 32, num_heads: 4, d_ff: 64, encoder_layers: 1, decoder_layers: 2, dropout: 0.0,
        decoder_layer: ssru%s}
training:
  max_steps: 40
  batch_sentences: 32
  learning_rate: 5e-3
  warmup_steps: 20
  validate_every: 40
  save_every: 40
  best_metric: loss
%s
validation: {scores: [], num_samples: 0}
runtime: {device: cpu, precision: float32, threads: 1}
"""
GUIDED = (", alignment_path: train.links", ", alignment_head: 2", "  guided_alignment: 1.0")


def test_the_loss_is_the_cross_entropy_of_the_formula() -> None:
    torch.manual_seed(1)
    weights = torch.rand(2, 4, 5, dtype=torch.float64).softmax(-1).requires_grad_()
    alignment = torch.rand(2, 4, 5) < 0.4
    alignment[0, 1] = False  # a position without links adds nothing
    expected = torch.zeros((), dtype=torch.float64)
    for row in range(2):
        for target in range(4):
            linked = [source for source in range(5) if alignment[row, target, source]]
            for source in linked:
                expected = expected - (weights[row, target, source]).log() / len(linked)
    found = alignment_loss(weights, alignment)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    ours, theirs = (torch.autograd.grad(one, weights)[0] for one in (found, expected))
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)
    assert (ours[0, 1] == 0.0).all()


@pytest.mark.parametrize("head", [1, "mean"])
def test_the_objective_on_a_cpu_is_that_of_the_plain_model(head: int | str) -> None:
    torch.manual_seed(1)
    model, rows = small_model(alignment_head=head, alignment_layer=0), sample()
    alignment = torch.rand(3, rows.target_ids.size(1), rows.source_ids.size(1)) < 0.3
    alignment &= rows.source_mask[:, None]
    batch = Batch(*rows[:2], *rows[2:], 12, 12, PAD_ID, alignment=alignment)
    labels = SmoothedLabels.of(TARGET_VOCAB_SIZE, PAD_ID, 0.1, "vocabulary")
    found = []
    for one in (model, accelerate(copy.deepcopy(model), torch.device("cpu"))):
        sums = GuidedAlignment(labels, 0.5)(one, batch)
        gradients = torch.autograd.grad(sums.objective, list(one.parameters()))
        found.append([*sums, *gradients])
    torch.testing.assert_close(*found, rtol=1e-9, atol=1e-11)
    plain = LabelSmoothedLikelihood(labels)(model, batch)
    assert sums.objective > plain.objective
    assert torch.equal(found[0][1], plain.negative_log_likelihood)


def share_of_links(folder: Path, settings: tuple[str, str, str]) -> float:
    """How many of the given links of held-out pairs `tfm align` finds, after a training."""
    numbers = Random(2)
    write(folder, [reversed_pair(numbers) for _ in range(400)])
    held_out = [reversed_pair(numbers) for _ in range(30)]
    write(folder, held_out, "val")
    (folder / "aligned.yaml").write_text(CONFIG % settings)
    here = TfmHere(folder)
    trained = here("train", "--config", "aligned.yaml")
    assert trained.exit_code == 0, trained.talk
    aligned = here("align", "--run", "runs/aligned", "--source", "val.source", "--target", "val.target")
    assert aligned.exit_code == 0, aligned.talk
    found = [set(line.split()) for line in aligned.lines]
    given = [set(links.split()) for _, _, links in held_out]
    shared = sum(len(one & other) for one, other in zip(found, given, strict=True))
    return shared / sum(map(len, given))


@pytest.mark.heavy
def test_a_trained_head_aligns_as_it_was_taught(tmp_path: Path) -> None:
    for name in ("guided", "free"):
        (tmp_path / name).mkdir()
    guided = share_of_links(tmp_path / "guided", GUIDED)
    free = share_of_links(tmp_path / "free", ("", "", ""))
    assert guided > free + 0.2
