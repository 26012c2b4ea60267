"""Compares tfm with JoeyNMT, torch.nn.Transformer and CTranslate2 on one CPU thread, in turns.

    python benchmarks/peers.py --data-root PATH

It installs JoeyNMT and CTranslate2 from the package registry into a temporary virtual environment, which it removes
at the end; `--keep FOLDER` keeps it for the next time. The environment sees the packages of the Python that runs
this file, so that all programs use its PyTorch and it is not downloaded again. A program that cannot be installed
is left out, and the others are measured.

- One training update: the batch, the model and the optimizer of training_step.py (d 256, 3 + 3 layers, d_ff 1,024).
- A whole training of the first `--pairs` pairs of Multi30k for one epoch, with whole words: the command of JoeyNMT
  and `tfm train`, each with start, vocabulary and saving, in target tokens per CPU second of the whole process. Words
  and punctuation are separated by spaces beforehand, so that both read the same tokens. d 256, 3 + 3 layers, d_ff
  512, at most 2,048 tokens in a batch. With `--marian PYTHON`, which names a Python with pymarian (600 MB), Marian trains the same.
- Decoding 24 tokens from 24 tokens with random weights, presets small (V 8,192) and base (V 32,768), greedy with 128
  sentences and beam 4 with 32; base with a quarter of them. One table has all rows; each is printed once it is measured.
  Its ratios are to CTranslate2 in float32, and to CTranslate2 in the precision of the row.

All figures are target tokens per CPU second; the spread goes from the slowest to the fastest round.
"""

import argparse
import functools
import gzip
import importlib.util
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import torch
import yaml
from training_step import (
    CONFIG,
    LABEL_SMOOTHING,
    NUM_POSITIONS,
    PAD_ID,
    VOCAB_SIZE,
    Step,
    measure_in_turns,
    num_target_tokens,
    random_batch,
    table,
)
from training_step import CONTESTANTS as UPDATES

from transformer_cli.config import DecodingConfig, ModelConfig, RuntimeConfig
from transformer_cli.decoding import Request, SpecialIds
from transformer_cli.decoding.pytorch_engine import PyTorchEngine
from transformer_cli.model.transformer import Transformer
from transformer_cli.process.device import prepare_machine
from transformer_cli.text import SequenceFormat

PEERS = {
    # JoeyNMT 2.3 imports importlib_metadata, and does not name it among its requirements.
    "joeynmt": ["joeynmt==2.3.0", "importlib-metadata==8.7.0"],
    "ctranslate2": ["ctranslate2==4.8.5"],
}
LINES = ("update", "training", "decoding")
SIZES: dict[str, tuple[Literal["small", "base"], int, int]] = {
    "small": ("small", 8192, 128),
    "base": ("base", 32768, 32),
}
Precision = Literal["float32", "bfloat16", "int8"]


def main() -> None:
    """Install the peers, then measure in the environment that has them."""
    arguments = _parse_arguments()
    if arguments.inside:
        _measure(arguments)
        return
    with _environment(arguments.keep) as python:
        command = [str(python), __file__, "--inside", *sys.argv[1:]]
        root = str(Path(__file__).parent.parent)
        paths = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
        threads = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": paths}
        raise SystemExit(subprocess.run(command, env=os.environ | threads, check=False).returncode)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-root", type=Path, help="the folder that holds multi30k/")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the environment here")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of updates and of decoding")
    parser.add_argument("--trainings", type=int, default=2, help="rounds of whole trainings")
    parser.add_argument("--pairs", type=int, default=29_000, help="pairs of a whole training")
    parser.add_argument("--only", choices=LINES, action="append", help="measure only this")
    parser.add_argument("--marian", metavar="PYTHON", help="a Python in which pymarian is installed")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--size", choices=SIZES, action="append", help="decode with this size only")
    parser.add_argument("--beam-size", type=int, action="append", help="decode with this only")
    arguments = parser.parse_args()
    arguments.only = arguments.only or LINES
    if "training" in arguments.only and arguments.data_root is None:
        parser.error("give --data-root, the folder that holds multi30k/, or --only update")
    return arguments


@contextmanager
def _environment(kept: Path | None) -> Iterator[Path]:
    """The Python of an environment with the peers."""
    with tempfile.TemporaryDirectory(prefix="tfm-peers-") as temporary:
        folder = (kept or Path(temporary) / "environment").absolute()
        python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        if not python.exists():
            venv.create(folder, with_pip=True)
            [site_packages] = folder.glob("[Ll]ib/**/site-packages")
            outer = next(Path(path) for path in sys.path if path.endswith("site-packages"))
            (site_packages / "outer.pth").write_text(f"import site; site.addsitedir({str(outer)!r})\n")
        for name, packages in PEERS.items():
            command = [str(python), "-m", "pip", "install", "--quiet", *packages]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                reason = done.stderr.strip().splitlines()[-1:] or ["no message"]
                sys.stderr.write(f"{name} cannot be installed and is left out: {reason[0]}\n")
        yield python


def _measure(arguments: argparse.Namespace) -> None:
    has = {name: importlib.util.find_spec(name) is not None for name in PEERS}
    if "update" in arguments.only:
        updates: dict[str, Callable[[], Step]] = dict(UPDATES)
        if has["joeynmt"]:
            updates = {"JoeyNMT, float32": joeynmt_update, **updates}
        seconds = measure_in_turns(updates, arguments.rounds, 1)
        _print(table("one training update", num_target_tokens(), seconds, next(iter(updates))))
    if "training" in arguments.only:
        _print(_trainings(arguments, has_joeynmt=has["joeynmt"]))
    if "decoding" in arguments.only:
        _print_decodings(arguments, has_ctranslate2=has["ctranslate2"])


def _print(lines: list[str]) -> None:
    sys.stdout.write("\n".join(lines) + "\n\n")
    sys.stdout.flush()


def joeynmt_update() -> Step:
    """One update of JoeyNMT's model with its own loss, and Adam as JoeyNMT builds it."""
    from types import SimpleNamespace

    from joeynmt.config import _check_special_symbols
    from joeynmt.model import build_model
    from joeynmt.vocabulary import Vocabulary

    symbols = SimpleNamespace(**_check_special_symbols({}))
    words = [str(number) for number in range(VOCAB_SIZE - 4)]
    vocabulary = Vocabulary(words, symbols)
    model = build_model(_joeynmt_model(CONFIG.d_ff, CONFIG.dropout), vocabulary, vocabulary)
    model.loss_function = "crossentropy", LABEL_SMOOTHING
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98))
    source_ids, source_mask, inputs, targets = random_batch()
    assert vocabulary.pad_index == PAD_ID
    batch = {
        "src": source_ids,
        "src_mask": source_mask.unsqueeze(1),
        "src_length": source_mask.sum(1),
        "trg_input": inputs,
        "trg": targets,
        "trg_mask": (targets != PAD_ID).unsqueeze(1),
    }
    num_tokens = num_target_tokens()

    def step() -> None:
        loss, *_ = model(return_type="loss", **batch)
        (loss / num_tokens).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def _joeynmt_model(d_ff: int, dropout: float) -> dict[str, Any]:
    side = {
        "type": "transformer",
        "num_layers": CONFIG.encoder_layers,
        "num_heads": CONFIG.num_heads,
        "embeddings": {"embedding_dim": CONFIG.d_model, "scale": True, "dropout": dropout},
        "hidden_size": CONFIG.d_model,
        "ff_size": d_ff,
        "dropout": dropout,
        "layer_norm": "pre",
    }
    return {
        "initializer": "xavier_uniform",
        "embed_initializer": "xavier_uniform",
        "tied_embeddings": False,
        "tied_softmax": False,
        "encoder": side,
        "decoder": side,
    }


def _trainings(arguments: argparse.Namespace, *, has_joeynmt: bool) -> list[str]:
    """One epoch by each command, in turns; CPU seconds of the whole processes."""
    with tempfile.TemporaryDirectory(prefix="tfm-peers-") as temporary:
        folder = Path(temporary)
        num_tokens = _write_corpus(arguments.data_root, folder / "multi30k", arguments.pairs)
        commands = {f"tfm train, {precision}": _tfm_command(precision) for precision in ("float32", "bfloat16")}
        if has_joeynmt:
            config = folder / "joeynmt.yaml"
            config.write_text(yaml.safe_dump(_joeynmt_config(folder)))
            joeynmt = [sys.executable, "-m", "joeynmt", "train", str(config), "--skip-test"]
            commands = {"joeynmt train, float32": joeynmt, **commands}
        if arguments.marian:
            commands["Marian, float32"] = [arguments.marian, "-c", MARIAN_TRAINING, str(folder)]
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(arguments.trainings):
            for name in [*seconds]:
                try:
                    seconds[name].append(_cpu_seconds(commands[name], folder))
                except subprocess.CalledProcessError as error:
                    sys.stderr.write(f"{name} failed and is left out:\n{error.stderr[-2000:]}\n")
                    del seconds[name]
        what = f"one epoch of {arguments.pairs:,} pairs of Multi30k"
        return table(what, num_tokens, seconds, next(iter(seconds)))


def _write_corpus(root: Path, folder: Path, num_pairs: int) -> int:
    """Write tokens with spaces between them, as both commands read them; returns the target tokens with [EOS]."""
    folder.mkdir()
    num_tokens = 0
    for split in ("train", "val", "test_2016_flickr"):
        for language in ("en", "de"):
            text = gzip.decompress((root / "multi30k" / f"{split}.{language}.gz").read_bytes())
            lines = text.decode().splitlines()[: num_pairs if split == "train" else 50]
            spaced = [" ".join(re.findall(r"\w+|[^\w\s]", line)) for line in lines]
            content = "".join(f"{line}\n" for line in spaced)
            (folder / f"{split}.{language}").write_text(content, encoding="utf-8")
            (folder / f"{split}.{language}.gz").write_bytes(gzip.compress(content.encode()))
            if (split, language) == ("train", "de"):
                num_tokens = sum(len(line.split()) + 1 for line in spaced)
    return num_tokens


def _tfm_command(precision: str) -> list[str]:
    settings = [
        "data.root=.",
        "training.max_epochs=1",
        "training.schedule=constant",
        "training.max_steps=1000000",
        "training.best_metric=loss",
        "validation.scores=[]",
        "validation.num_samples=0",
        "validation.max_sentences=1",
        "runtime.device=cpu",
        "runtime.threads=1",
        f"runtime.precision={precision}",
    ]
    options = [option for setting in settings for option in ("--set", setting)]
    config = "multi30k-en-de-wordlevel.yaml"
    return [sys.executable, "-m", "transformer_cli", "train", "--from-scratch", "--config", config, *options]


MARIAN_TRAINING = """
import os, sys
from pymarian import Trainer
os.chdir(sys.argv[1])
for name in ("en.yml", "de.yml", "marian.npz"):
    if os.path.exists(name):
        os.remove(name)
Trainer(
    type="transformer", train_sets=["multi30k/train.en", "multi30k/train.de"], vocabs=["en.yml", "de.yml"],
    model="marian.npz", cpu_threads=1, seed=1, enc_depth=3, dec_depth=3, dim_emb=256, transformer_heads=4,
    transformer_dim_ffn=512, transformer_dropout=0.2, tied_embeddings=True, label_smoothing=0.1, optimizer="adam",
    mini_batch=1000, mini_batch_words=2048, maxi_batch=100, after_epochs=1, learn_rate=0.0015, lr_warmup="600", max_length=100,
    disp_freq=50, save_freq=100000, overwrite=True, workspace=1000, clip_norm=1, quiet=True,
).train()
"""


def _joeynmt_config(folder: Path) -> dict[str, Any]:
    side = {"level": "word", "lowercase": False, "voc_min_freq": 2, "max_length": 512}
    return {
        "name": "peer",
        "joeynmt_version": "2.3.0",
        "model_dir": str(folder / "joeynmt"),
        "use_cuda": False,
        "fp16": False,
        "random_seed": 1,
        "data": {
            "train": str(folder / "multi30k" / "train"),
            "dev": str(folder / "multi30k" / "val"),
            "dataset_type": "plain",
            "src": {"lang": "en", **side},
            "trg": {"lang": "de", **side},
        },
        "testing": {"beam_size": 1, "batch_size": 50},
        "training": {
            "optimizer": "adam",
            "adam_betas": [0.9, 0.98],
            "learning_rate": 0.0015,
            "learning_rate_warmup": 600,
            "scheduling": "warmupinversesquareroot",
            "normalization": "tokens",
            "clip_grad_norm": 1.0,
            "label_smoothing": 0.1,
            "batch_size": 2048,
            "batch_type": "token",
            "epochs": 1,
            "logging_freq": 50,
            "validation_freq": 1_000_000,
            "overwrite": True,
        },
        "model": _joeynmt_model(512, 0.2),
    }


def _cpu_seconds(command: list[str], folder: Path) -> float:
    def of_children() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = of_children()
    subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return of_children() - before


def _print_decodings(arguments: argparse.Namespace, *, has_ctranslate2: bool) -> None:
    """One table of the sizes, searches and engines."""
    names = ("decoding", "engine", "median", "range", "ratio", "range", "of precision", "range")
    _print_row(names)
    for size in arguments.size or SIZES:
        for beam_size in arguments.beam_size or (1, 4):
            seconds = _decodings(arguments.rounds, size, beam_size, has_ctranslate2)
            num_tokens = _num_sentences(size, beam_size) * NUM_POSITIONS
            for engine in seconds:
                what = f"{size}, {'greedy' if beam_size == 1 else f'beam {beam_size}'}"
                rates = _median_and_range([num_tokens / one for one in seconds[engine]], ",.0f")
                precision = engine.split(", ")[1]
                ratios = (_ratio(seconds, f"CTranslate2, {reference}", engine) for reference in ("float32", precision))
                _print_row((what, engine, *rates, *(cell for pair in ratios for cell in pair)))


def _print_row(cells: Sequence[str]) -> None:
    what, engine, *numbers = cells
    widths = (8, 15, 8, 11, 14, 11)
    shown = (f"{cell:>{width}}" for cell, width in zip(numbers, widths, strict=True))
    sys.stdout.write(f"{what:16}{engine:28}{''.join(shown)}\n")
    sys.stdout.flush()


def _ratio(seconds: Mapping[str, Sequence[float]], reference: str, engine: str) -> tuple[str, str]:
    """How many times as fast as the reference, per round, so that a slow round does not change it."""
    if reference not in seconds:
        return "-", "-"
    pairs = zip(seconds[reference], seconds[engine], strict=True)
    return _median_and_range([theirs / ours for theirs, ours in pairs], ".2f")


def _median_and_range(values: Sequence[float], form: str) -> tuple[str, str]:
    return f"{statistics.median(values):{form}}", f"{min(values):{form}}-{max(values):{form}}"


def _num_sentences(size: str, beam_size: int) -> int:
    return SIZES[size][2] // (1 if beam_size == 1 else 4)


def _decodings(num_rounds: int, size: str, beam_size: int, has_ctranslate2: bool) -> dict[str, list[float]]:
    """CPU seconds of each engine in each round."""
    num_sentences = _num_sentences(size, beam_size)
    contestants: dict[str, Callable[[], Step]] = {}
    if has_ctranslate2:
        for kind in ("float32", "int8"):
            prepare = functools.partial(ctranslate2_step, size, kind, beam_size, num_sentences)
            contestants[f"CTranslate2, {kind}"] = prepare
        if torch.backends.cpu.get_cpu_capability() == "AVX512":
            # On processors of AMD, CTranslate2 uses AVX2 unless it is told to use AVX-512.
            prepare = functools.partial(prepare, isa="AVX512")
            contestants["CTranslate2, int8, AVX-512"] = prepare
    precisions: tuple[Precision, ...] = "float32", "bfloat16", "int8"
    for precision in precisions:
        prepare = functools.partial(tfm_step, size, precision, beam_size, num_sentences)
        contestants[f"tfm, {precision}"] = prepare
        if precision != "bfloat16":
            contestants[f"tfm, {precision}, PyTorch only"] = functools.partial(prepare, has_kernels=False)
    return measure_in_turns(contestants, num_rounds, 1)


def _sources(vocab_size: int, num_sentences: int) -> torch.Tensor:
    return torch.randint(4, vocab_size, (num_sentences, NUM_POSITIONS))


def tfm_step(
    size: str,
    precision: Precision,
    beam_size: int,
    num_sentences: int,
    *,
    has_kernels: bool = True,
) -> Step:
    """Translate all sentences; each translation has as many tokens as its source."""
    os.environ["TFM_NATIVE"] = "1" if has_kernels else "0"
    preset, vocab_size, _ = SIZES[size]
    machine = prepare_machine(RuntimeConfig(device="cpu", precision=precision))
    model = Transformer(ModelConfig(preset=preset), vocab_size, vocab_size).eval()
    engine = PyTorchEngine(model, SpecialIds(0, 1, 2, 3), SequenceFormat(has_end=False), machine)
    requests = [Request(tuple(row)) for row in _sources(vocab_size, num_sentences).tolist()]
    options = DecodingConfig(beam_size=beam_size)
    prepared = engine.prepared()
    return lambda: prepared.translate(requests, options)


def ctranslate2_step(size: str, kind: str, beam_size: int, num_sentences: int, *, isa: str | None = None) -> Step:
    """The same with CTranslate2, which chooses its instructions (isa) itself or is told."""
    if isa is not None:
        os.environ["CT2_FORCE_CPU_ISA"] = isa
    import ctranslate2

    vocab_size = SIZES[size][1]
    with tempfile.TemporaryDirectory(prefix="tfm-peers-") as folder:
        _write_ctranslate2_model(size, folder)
        translator = ctranslate2.Translator(folder, device="cpu", compute_type=kind, inter_threads=1, intra_threads=1)
    rows = _sources(vocab_size, num_sentences).tolist()
    sources = [[f"t{number}" for number in row] for row in rows]
    forced = {"min_decoding_length": NUM_POSITIONS, "max_decoding_length": NUM_POSITIONS}
    return lambda: translator.translate_batch(sources, beam_size=beam_size, length_penalty=0.6, **forced)


def _write_ctranslate2_model(size: str, folder: str) -> None:
    """The weights of a random model of tfm, in CTranslate2's format."""
    from ctranslate2.specs import TransformerSpec

    preset, vocab_size, _ = SIZES[size]
    config = ModelConfig(preset=preset, tie_embeddings="none")
    model = Transformer(config, vocab_size, vocab_size)
    spec = TransformerSpec.from_config((config.encoder_layers, config.decoder_layers), config.num_heads)
    _copy(model.source_embedding, spec.encoder.embeddings[0])
    _copy(model.target_embedding, spec.decoder.embeddings)
    _copy(model.output, spec.decoder.projection)
    for ours, theirs in ((model.encoder, spec.encoder), (model.decoder, spec.decoder)):
        _copy_norm(ours.norm, theirs.layer_norm)
        layer: Any  # of the encoder or of the decoder
        for layer, of_spec in zip(ours.layers, theirs.layer, strict=True):
            _copy_attention(layer, "self_attention", of_spec.self_attention, num_joined=3)
            if ours is model.decoder:
                _copy_attention(layer, "cross_attention", of_spec.attention, num_joined=1)
            _copy_norm(layer.feed_forward_norm, of_spec.ffn.layer_norm)
            _copy(layer.feed_forward.up, of_spec.ffn.linear_0)
            _copy(layer.feed_forward.down, of_spec.ffn.linear_1)
    specials = ["<unk>", "<blank>", "<s>", "</s>"]
    words = [*specials, *(f"t{number}" for number in range(4, vocab_size))]
    spec.register_source_vocabulary(words)
    spec.register_target_vocabulary(words)
    spec.validate()
    spec.optimize()
    spec.save(folder)


def _copy(ours: Any, theirs: Any) -> None:
    theirs.weight = ours.weight.detach().numpy()
    if getattr(ours, "bias", None) is not None:
        theirs.bias = ours.bias.detach().numpy()


def _copy_norm(ours: Any, theirs: Any) -> None:
    theirs.gamma, theirs.beta = ours.weight.detach().numpy(), ours.bias.detach().numpy()


def _copy_attention(layer: Any, name: str, theirs: Any, *, num_joined: int) -> None:
    """CTranslate2 joins queries, keys and values into one matrix; in cross-attention only keys and values."""
    ours = getattr(layer, name)
    projections = [ours.query, ours.key, ours.value]
    for linear, joined in zip(
        theirs.linear,
        (projections[:num_joined], projections[num_joined:] or [ours.output], [ours.output]),
        strict=False,
    ):
        linear.weight = torch.cat([one.weight for one in joined]).detach().numpy()
        linear.bias = torch.cat([one.bias for one in joined]).detach().numpy()
    _copy_norm(getattr(layer, f"{name}_norm"), theirs.layer_norm)


if __name__ == "__main__":
    main()
