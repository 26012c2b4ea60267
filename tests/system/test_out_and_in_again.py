"""A whole journey: trained here, out to transformers, in again, fine-tuned on other data, and out to each of the other programs.

It took 5 and a half minutes on two cores that six other programs used, too.
"""

import pytest
import sacrebleu

from transformer_cli.config import PhrasebookData
from transformer_cli.data.sources.corpus import read_pairs
from transformer_cli.extensions.exchange.export import FORMATS

from ..launcher import Tfm

CONFIG = """\
name: first
data: {source: phrasebook, num_pairs: 4000}
tokenizer: {kind: bpe, vocab_size: 700}
model: {d_model: 96, num_heads: 4, d_ff: 192, encoder_layers: 1, decoder_layers: 1, dropout: 0.0, max_length: 60}
training: {max_steps: 320, batch_tokens: 700, learning_rate: 4e-3, warmup_steps: 40, log_every: 100, validate_every: 320, save_every: 320}
validation: {max_sentences: 20, num_samples: 0}
decoding: {beam_size: 1}
runtime: {device: cpu, precision: float32, threads: 1}
"""
NUM_TESTED = 40
GAIN = 10.0
"""In BLEU points. The other data ends each translation with two further words, which the first training never saw."""


def other_pairs() -> list[tuple[str, str]]:
    pairs = read_pairs(PhrasebookData(num_pairs=1500), "train", seed=9)
    return [(pair.source, f"{pair.target} Grazie mille.") for pair in pairs]


@pytest.mark.slow
def test_a_run_goes_out_comes_back_learns_and_every_program_translates_as_it_does(
    tfm: Tfm,
) -> None:
    folder = tfm.folder
    (folder / "first.yaml").write_text(CONFIG)
    pairs = other_pairs()
    tested, training = pairs[:NUM_TESTED], pairs[NUM_TESTED:]
    (folder / "other.tsv").write_text("".join(f"{one}\t{two}\n" for one, two in training))
    (folder / "in.txt").write_text("".join(f"{one}\n" for one, _ in tested))
    done(tfm, "train", "--config", "first.yaml")
    done(tfm, "export", "--run", "first", "--to", "hf", "--output", "first-hf")
    said = done(tfm, "import", "first-hf", "--name", "back")
    assert "the same ids; logits differ by at most" in said
    before = translations(tfm, "back")
    assert before == translations(tfm, "first")

    (folder / "tuned.yaml").write_text(
        CONFIG.replace("name: first", "name: tuned")
        .replace(
            "{source: phrasebook, num_pairs: 4000}",
            "{source: files, source_language: en, target_language: it, corpora: [{path: other.tsv}]}",
        )
        .replace("max_steps: 320", "init_from: back, max_steps: 100")
        .replace("learning_rate: 4e-3", "learning_rate: 2e-3")
        .replace("validate_every: 320, save_every: 320", "validate_every: 100, save_every: 100")
    )
    done(tfm, "train", "--config", "tuned.yaml")
    after = translations(tfm, "tuned")
    references = [two for _, two in tested]
    assert bleu(after, references) > bleu(before, references) + GAIN

    programs = {one.name: one for one in FORMATS if not one.suffix}
    assert programs.keys() == {"ctranslate2", "hf", "onnx"}
    for name, program in programs.items():
        done(tfm, "export", "--run", "tuned", "--to", name, "--output", f"tuned-{name}")
        opened = program.open(folder / f"tuned-{name}")
        limits = [2 * len(one.split()) + 40 for one, _ in tested]
        found = opened.decode([one for one, _ in tested], limits)
        assert [one.text for one in found] == after, name


def done(tfm: Tfm, *arguments: str) -> str:
    finished = tfm(*arguments)
    assert finished.exit_code == 0, finished.talk
    return finished.text


def translations(tfm: Tfm, run: str) -> list[str]:
    plain = ["--set", "decoding.split_sentences=false", "--set", "decoding.keep_layout=false"]
    return done(tfm, "translate", "--run", run, "--input", "in.txt", *plain).splitlines()


def bleu(found: list[str], references: list[str]) -> float:
    return float(sacrebleu.corpus_bleu(found, [references]).score)
