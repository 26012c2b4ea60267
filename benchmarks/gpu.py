"""Measures training and attention on the NVIDIA GPU of this machine, with the kernels that take its time.

    python benchmarks/gpu.py corpus PATH
    python benchmarks/gpu.py attention
    python benchmarks/gpu.py training --config wmt14-en-de-base.yaml --set data.root=PATH --set tokenizer.kind=wordlevel
    python benchmarks/gpu.py training --config wmt14-en-de-base.yaml --set ... --set runtime.compile=true --json FILE
    python benchmarks/gpu.py decoding --config wmt14-en-de-base.yaml --set ... --set runtime.cuda_graphs=true

`tfm benchmark` measures a config too, with more figures and trials of other settings; this script adds what decides whether its
counts (`benchmarks/operations.py`) are right: the kernels of an update with their times, seconds until the first update ends, and kinds of
attention side by side. `decoding` translates 1, 16 and 64 sentences of about 25 tokens with random weights, in turns with CTranslate2 if it is
installed, and prints what takes the time of the last of these searches. `corpus` writes sentence pairs of random words, whose lengths and frequencies are like those of WMT 2014 English-German
(log-normal lengths, Zipf's law), so that a config of that corpus can be measured without it.
"""

import argparse
import inspect
import itertools
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from transformer_cli.acceleration.flop import flop_counter
from transformer_cli.config import load_config
from transformer_cli.extensions.benchmark import measuring
from transformer_cli.extensions.benchmark.decoding import USUAL_BEAM, Subject, engines_in_turns, requests_of_one_length
from transformer_cli.extensions.benchmark.training import Trainee
from transformer_cli.process.device import (
    forget_peak_memory,
    let_segments_grow,
    peak_memory,
    peak_of_data_sheet,
    prepare_machine,
    wait_for,
)
from transformer_cli.storage import temporary_folder
from transformer_cli.training.initial_weights import data_of, new_model

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
NUM_WORDS = 36_996
NUM_WORDS_OF_A_LINE = 25
PAIRS = {"train": 150_000, "newstest2013": 600, "newstest2014": 600}
LOCK = Path(tempfile.gettempdir()) / "tfm-benchmark-gpu.lock"
SMALLER = 1 if DEVICE.type == "cuda" else 100
"""On a CPU the script can be tried out, with a hundredth of the work."""


def milliseconds(work: Callable[[], object]) -> float:
    """The time of some work, the device's included."""
    wait_for(DEVICE)
    started_at = time.perf_counter()
    work()
    wait_for(DEVICE)
    return 1000.0 * (time.perf_counter() - started_at)


# Sentence pairs as long as those of a real corpus.


def write_corpus(folder: Path) -> None:
    """Write the files that wmt14-en-de-base.yaml names, under a folder."""
    drawn = random.Random(1)
    words = ["w" + "".join("abcdefghij"[int(digit)] for digit in str(i)) for i in range(NUM_WORDS)]
    frequencies = [*itertools.accumulate(1.0 / (rank + 50) for rank in range(len(words)))]
    (folder / "wmt14").mkdir(parents=True, exist_ok=True)

    def sentence(length: int) -> str:
        return " ".join(drawn.choices(words, cum_weights=frequencies, k=length)) + "\n"

    for name, number in PAIRS.items():
        lengths = [min(400, max(1, int(drawn.lognormvariate(3.15, 0.62)))) for _ in range(max(60, number // SMALLER))]
        path = folder / "wmt14" / name
        path.with_suffix(".en").write_text("".join(map(sentence, lengths)))
        others = (max(1, int(one * drawn.lognormvariate(0.03, 0.18))) for one in lengths)
        path.with_suffix(".de").write_text("".join(map(sentence, others)))


# Kinds of attention, alone.


def measure_attention(num_heads: int, width: int, num_cells: int) -> Iterator[str]:
    """Lines with the milliseconds of one attention, forward and backward: of the first call with a shape, and of later ones.

    Args:
        num_heads: H.
        width: of a head.
        num_cells: B S.
    """
    name = torch.cuda.get_device_name() if DEVICE.type == "cuda" else "a CPU"
    yield f"{name}, PyTorch {torch.__version__}"
    for name, attend in KINDS.items():
        first, again = list[float](), list[float]()
        try:
            for length in range(21, 33, 2):
                work = attend(num_cells // SMALLER // length, length, num_heads, width)
                first.append(milliseconds(work))
                again.append(statistics.median(milliseconds(work) for _ in range(7)))
        except (RuntimeError, TypeError, ImportError) as error:
            yield f"{name:30} {type(error).__name__}: {str(error)[:150]}"
            continue
        shown = " ".join(f"{one:.1f}" for one in first)
        yield f"{name:30} again {statistics.median(again):7.3f} ms; first calls {shown}"


def padded(
    pairs: int,
    length: int,
    heads: int,
    width: int,
    *,
    has_mask: bool = False,
    is_causal: bool = False,
    has_cudnn: bool = False,
) -> Callable[[], object]:
    """A forward and backward pass of `scaled_dot_product_attention`."""
    q, k, v = _drawn(pairs * length, heads * width)
    bias = None
    if has_mask:
        aligned = length + -length % 8
        bias = torch.zeros(pairs, 1, 1, aligned, device=DEVICE, dtype=torch.bfloat16)[..., :length]

    def work() -> None:
        torch.backends.cuda.enable_cudnn_sdp(has_cudnn)
        queries, keys, values = (one.view(pairs, length, heads, width).transpose(1, 2) for one in (q, k, v))
        attend = F.scaled_dot_product_attention
        _backward(attend(queries, keys, values, attn_mask=bias, is_causal=is_causal))

    return work


def packed(pairs: int, length: int, heads: int, width: int, *, is_causal: bool = False) -> Callable[[], object]:
    """A forward and backward pass of the flash kernel for sentences of many lengths, without padding between them."""
    from torch.nn.attention import varlen

    lengths = torch.randint(max(1, length - 4), length + 1, (pairs,))
    starts = F.pad(lengths.cumsum(0), (1, 0)).to(DEVICE, torch.int32)
    q, k, v = _drawn(int(lengths.sum()), heads * width)
    # PyTorch 2.10 has a flag, later versions a window.
    has_window = "window_size" in inspect.signature(varlen.varlen_attn).parameters
    attend: Any = varlen.varlen_attn
    causal: dict[str, Any] = {"window_size": (-1, 0)} if has_window else {"is_causal": True}

    def work() -> None:
        views = (one.view(-1, heads, width) for one in (q, k, v))
        options = causal if is_causal else {}
        _backward(attend(*views, starts, starts, length, length, **options))

    return work


def _drawn(*size: int) -> list[Tensor]:
    return [torch.randn(size, device=DEVICE, dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]


def _backward(heads: Tensor) -> None:
    heads.backward(torch.ones_like(heads))


KINDS: dict[str, Callable[[int, int, int, int], Callable[[], object]]] = {
    "padded, mask": partial(padded, has_mask=True),
    "padded, mask, cuDNN allowed": partial(padded, has_mask=True, has_cudnn=True),
    "no padding": padded,
    "causal": partial(padded, is_causal=True),
    "causal, cuDNN allowed": partial(padded, is_causal=True, has_cudnn=True),
    "packed": packed,
    "packed, causal": partial(packed, is_causal=True),
}
"""Name -> a function of B, S, H and the width of a head."""


# Updates of a config.


def measure_training(config_path: str, overrides: list[str], num_updates: int) -> dict[str, Any]:
    """The figures of a config's updates, and its longest kernels.

    Args:
        config_path: see `tfm benchmark --config`.
        overrides: see `tfm benchmark --set`.
        num_updates: to measure.
    """
    from torch.profiler import profile

    config = load_config(config_path, overrides)
    found: dict[str, Any] = {"config": config_path, "overrides": overrides}
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder("tfm-benchmark-"))
        data = data_of(config, folder / "data")
        stack.enter_context(the_gpu_alone())
        trainee = stack.enter_context(closing(Trainee(config, data, folder / "run")))
        model, device = trainee.session.experiment.model, trainee.machine.device
        found["first_update_s"] = milliseconds(lambda: trainee.train(0)) / 1e3
        found["all_shapes_s"] = milliseconds(trainee.prepare_shapes) / 1e3
        trainee.train(0.0, at_least=10)
        forget_peak_memory(device)
        updates = trainee.train(0.0, at_least=num_updates, at_most=num_updates)
        seconds = sum(one.seconds for one in updates)
        tokens = sum(one.target_tokens for one in updates)
        flop = flop_counter(model, trains=True)
        per_second = sum(flop(one.work) for one in updates) / seconds
        size = round(sum(one.num_cells for one in updates) / len(updates) / 2)
        _, peak = measuring.measure_products(
            trainee.machine, (size, config.model.d_model, config.model.d_ff), seconds=0.3
        )
        highest = peak["flop_per_second"]["median"]
        name = torch.cuda.get_device_name() if device.type == "cuda" else "cpu"
        of_sheet = peak_of_data_sheet(name, trainee.machine.precision)
        found |= {
            "device": name,
            "precision": trainee.machine.precision_name,
            "compiled": [
                trainee.session.compilation.loss,
                trainee.session.compilation.layers,
            ],
            "target_tokens_per_second": tokens / seconds,
            "median_ms": 1e3 * statistics.median(one.seconds for one in updates),
            "mean_ms": 1e3 * seconds / len(updates),
            "cpu_ms": 1e3 * sum(one.cpu_seconds for one in updates) / len(updates),
            "target_tokens_per_update": tokens / len(updates),
            "padding": 1 - sum(u.num_tokens for u in updates) / sum(u.num_cells for u in updates),
            "tflops": per_second / 1e12,
            "share_of_sheet": None if of_sheet is None else per_second / of_sheet,
            "share_of_measured": per_second / highest,
            "measured_peak_tflops": highest / 1e12,
            "memory_gb": (peak_memory(device)["device"] or 0) / 1e9 or None,
        }
        marked = trainee.train(0.0, at_least=5, at_most=5, phases=True)
        whole = sum(one.seconds for one in marked)
        found["phases"] = {
            phase: round(sum(one.phases[phase] for one in marked) / whole, 3) for phase in marked[0].phases
        }
        with profile(acc_events=True) as profiler:
            took = milliseconds(lambda: trainee.train(0.0, at_least=3, at_most=3))
        kernels = [one for one in profiler.key_averages() if str(one.device_type).endswith("CUDA")]
        kernels.sort(key=lambda one: -one.self_device_time_total)
        busy = sum(one.self_device_time_total for one in kernels) / 3e3
        found |= {
            "kernel_ms": busy,
            "busy": busy / found["mean_ms"],
            "profiled_ms": took / 3,
            "num_kernels": sum(one.count for one in kernels) / 3,
            "kernels": [(round(one.self_device_time_total / 3e3, 4), one.count / 3, one.key) for one in kernels],
        }
    return found


# Translation with a config's model.


def measure_decoding(config_path: str, overrides: list[str], sizes: list[int], num_rounds: int) -> Iterator[str]:
    """Lines with the target tokens a second of this engine and CTranslate2 in turns, greedy and with a beam; then a profile of one search.

    Args:
        config_path, overrides: see `tfm benchmark --decode`.
        sizes: numbers of sentences that are translated together.
        num_rounds: translations of each, after one to warm up. The first ones of a shape are slower, as its steps are recorded.
    """
    from torch.profiler import profile

    config = load_config(config_path, overrides)
    prepare_machine(config.runtime)
    with temporary_folder("tfm-benchmark-") as folder:
        data = data_of(config, folder / "data")
        sources = [pair.source.split() for pair in data.validation]
    subject = Subject(new_model(config, data.tokenizers).eval(), data.tokenizers, config, is_forced=True)
    lines = [" ".join(words[:NUM_WORDS_OF_A_LINE]) for words in sources if len(words) >= NUM_WORDS_OF_A_LINE]
    for size in sizes:
        turns = engines_in_turns(subject, lines[:size], (1, USUAL_BEAM), num_rounds=num_rounds)
        for one in turns["figures"]:
            speed, who = one["target_tokens_per_second"], f"{one['engine']} {one['precision']}"
            yield (
                f"{turns['num_lines']:3} sentences, beam {one['beam_size']}: {who:22} {speed['median']:10,.0f} tokens a second "
                f"({speed['low']:,.0f} to {speed['high']:,.0f})"
            )
        yield from turns["left_out"]
    translator = subject.translator(1)
    prepared = [part for line in lines[: sizes[-1]] for part in translator.pipeline.prepare(line).requests]
    requests, options = requests_of_one_length(prepared), config.decoding.best_of_beam(1)
    for _ in range(12 if DEVICE.type == "cuda" else 1):
        took = milliseconds(lambda: translator.engine.translate(requests, options))
    with profile(acc_events=True) as profiler:
        milliseconds(lambda: translator.engine.translate(requests, options))
    yield f"greedy search of {len(requests)} sentences, {len(requests[0].ids)} steps: {took:.1f} ms without the profiler, whose times are"
    for key in dict.fromkeys(("self_cpu_time_total", f"self_{DEVICE.type}_time_total")):
        yield profiler.key_averages().table(sort_by=key, row_limit=20, max_name_column_width=60)


@contextmanager
def the_gpu_alone() -> Iterator[None]:
    """Other processes of this script wait until the block ends, so that one can import and read data while another measures."""
    import fcntl

    with open(LOCK, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def lines_of(found: dict[str, Any], num_kernels: int) -> Iterator[str]:
    """What `measure_training` has found, with its longest kernels."""
    for name, value in found.items():
        if name != "kernels":
            yield f"{name:26} {value:,.4g}" if isinstance(value, float) else f"{name:26} {value}"
    for took, count, name in found["kernels"][:num_kernels]:
        yield f"  {took:8.3f} ms {count:6.0f} x {name[:110]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    modes = parser.add_subparsers(dest="mode", required=True)
    corpus = modes.add_parser("corpus")
    corpus.add_argument("folder", type=Path)
    attention = modes.add_parser("attention")
    attention.add_argument("--heads", type=int, default=8)
    attention.add_argument("--width", type=int, default=64)
    attention.add_argument("--cells", type=int, default=25_000)
    training = modes.add_parser("training")
    training.add_argument("--config", default="wmt14-en-de-base.yaml")
    training.add_argument("--set", action="append", default=[])
    training.add_argument("--updates", type=int, default=30)
    training.add_argument("--kernels", type=int, default=25, help="how many are printed")
    training.add_argument("--json", type=Path)
    decoding = modes.add_parser("decoding")
    decoding.add_argument("--config", default="wmt14-en-de-base.yaml")
    decoding.add_argument("--set", action="append", default=[])
    decoding.add_argument("--sentences", type=int, nargs="+", default=[1, 16, 64])
    decoding.add_argument("--rounds", type=int, default=8)
    arguments = parser.parse_args()
    let_segments_grow()
    if arguments.mode == "corpus":
        write_corpus(arguments.folder)
        return
    if arguments.mode == "attention":
        lines = measure_attention(arguments.heads, arguments.width, arguments.cells)
    elif arguments.mode == "decoding":
        lines = measure_decoding(arguments.config, arguments.set, arguments.sentences, arguments.rounds)
    else:
        found = measure_training(arguments.config, arguments.set, arguments.updates)
        if arguments.json is not None:
            arguments.json.write_text(json.dumps(found))
        lines = lines_of(found, arguments.kernels)
    for line in lines:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
