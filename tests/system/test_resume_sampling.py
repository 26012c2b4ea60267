"""Runs whose pairs are sampled anew in each epoch resume as exactly as others."""

from typing import Any

import pytest

from ..experiments import essence
from ..launcher import Tfm

CONFIG = """\
name: tiny
seed: 3
data: {source: phrasebook, num_pairs: 90}
tokenizer: {kind: bpe, vocab_size: 330}
model: {d_model: 16, num_heads: 2, d_ff: 32, encoder_layers: 1, decoder_layers: 1, dropout: 0.1, max_length: 90}
training:
  max_steps: 12
  batch_tokens: 300
  update_tokens: 700
  learning_rate: 5e-3
  warmup_steps: 6
  log_every: 3
  validate_every: 4
  save_every: 4
  best_metric: loss
validation: {max_sentences: 4, scores: [bleu], num_samples: 0}
decoding: {max_length: 8, beam_size: 2}
runtime: {device: cpu, precision: float32, threads: 1}
"""
FILES = "data: {source: files, validation_share: 0.1, corpora: [{path: a.tsv}, {path: b.tsv}]}"
# Of the second corpus, each epoch has about half of the pairs; the third epoch has none of the first corpus.
FIRST, SECOND = "data.corpora[0].weight=[[0, 1.5], [2, 0]]", "data.corpora[1].weight=0.5"
OPTIONS = {
    "weights": [FIRST, SECOND],
    "temperature": ["data.temperature=5"],
    "bpe_dropout": ["training.bpe_dropout=0.2"],
    "noise": ["training.noise.capitals=0.3", "training.noise.typos=0.2"],
    "word_dropout": ["training.word_dropout=0.3"],
    "directions and tags": [
        "data.both_directions=true",
        "tokenizer.shared=true",
        "training.bpe_dropout=0.2",
        "data.corpora[1].split=train",
        "data.corpora[1].tag=<BT>",
        "data.corpora[1].weight=0.5",
    ],
    "unigram_alpha": ["tokenizer.kind=unigram", "training.unigram_alpha=0.3"],
}


def train(tfm: Tfm, options: list[str], step: int | None = None) -> int:
    """Train in the folder of `tfm`, up to a signal in the middle of a step if one is given."""
    config = CONFIG
    if any(option.startswith("data.") for option in options):
        config = config.replace("data: {source: phrasebook, num_pairs: 90}", FILES)
        for name, number in (("a", 60), ("b", 20)):
            lines = [f"{name} house {n}\tuna casa {name} {n}\n" for n in range(number)]
            (tfm.folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
    (tfm.folder / "tiny.yaml").write_text(config, encoding="utf-8")
    given = [part for option in options for part in ("--set", option)]
    faults: list[Any] = [] if step is None else [("at", "step", step, "signal", "SIGTERM")]
    return tfm("train", "--config", "tiny.yaml", *given, faults=faults).exit_code


@pytest.mark.parametrize("what", OPTIONS)
def test_a_resumed_run_equals_the_uninterrupted_one(tfm: Tfm, what: str) -> None:
    ends = []
    for name, stops in (("whole", []), ("resumed", [3, 2, 4])):
        here = Tfm(tfm.launcher, tfm.folder / name)
        here.folder.mkdir()
        for step in stops:
            assert train(here, OPTIONS[what], step) == 143
        assert train(here, OPTIONS[what]) == 0
        ends.append(essence(here.folder / "runs/tiny"))
        if name == "whole":
            ends[0].pop("checkpoints")
        else:
            ends[1].pop("checkpoints")  # it also has those of its interruptions
    assert ends[0] == ends[1]
