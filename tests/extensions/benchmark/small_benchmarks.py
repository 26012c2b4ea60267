"""A tiny config, its prepared data, and figures made up for tests."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformer_cli.config import Config, load_config
from transformer_cli.data.preparation import PreparedData, prepare_data
from transformer_cli.extensions.benchmark import timed_translation
from transformer_cli.extensions.benchmark.advice import MachineFacts
from transformer_cli.extensions.benchmark.decoding import DecodingBenchmark, SearchFigures
from transformer_cli.extensions.benchmark.engine_turns import EngineFigures, EngineTurns
from transformer_cli.extensions.benchmark.measuring import PeakMemory, Phase, ProductSpeed, Spread
from transformer_cli.extensions.benchmark.timed_updates import PHASES
from transformer_cli.extensions.benchmark.training import Situation, TrainingFigures

TINY = (
    "data.num_pairs=200", "data.num_symbols=8", "data.max_length=9", "model.d_model=16", "model.num_heads=2",
    "model.d_ff=16", "model.encoder_layers=1", "model.decoder_layers=1", "runtime.device=cpu",
    "runtime.precision=float32", "runtime.threads=1", "training.batch_sentences=8",
)  # fmt: skip


def tiny_config(*overrides: str) -> Config:
    return load_config("copy.yaml", [*TINY, *overrides])


def tiny_data(config: Config, folder: Path) -> PreparedData:
    return prepare_data(config, folder / "data", has_begun=False)


def exactly(value: float) -> Spread:
    return Spread(value, value, value)


def figures(phases: dict[str, float] | None = None, **changes: Any) -> TrainingFigures:
    """A balanced training on a CPU, but for the changes; `phases` are shares."""
    shares = {"forward": 0.3, "backward": 0.6, "optimizer": 0.1} if phases is None else phases
    of_peak = ProductSpeed("large", (2, 2, 2), exactly(1e9))
    values: dict[str, Any] = {
        "num_updates": 9,
        "target_tokens_per_second": exactly(1000.0),
        "target_tokens_per_second_together": 900.0,
        "target_tokens_per_cpu_second": exactly(1000.0),
        "target_tokens_per_update": exactly(500.0),
        "batches_per_update": 1.0,
        "padding_share": 0.05,
        "update_milliseconds": exactly(500.0),
        "phases": {
            name: Phase(exactly(500.0 * shares.get(name, 0.0)), shares.get(name, 0.0))
            for name in PHASES
        },
        "memory": PeakMemory(18 * 10**8, 10**10),
        "num_halvings": 0,
        "flop_per_target_token": 4e5,
        "flop_per_second": exactly(4e8),
        "products": (of_peak,),
        "peak": of_peak,
        "share_of_peak": 0.4,
    }
    return TrainingFigures(**values | changes)


def search_figures(phases: dict[str, float] | None = None, **changes: Any) -> SearchFigures:
    """Of a beam search whose decoder steps take the most time, but for the changes; `phases` are shares."""
    shares = {"decoder steps": 0.8, "encoder": 0.2} if phases is None else phases
    values: dict[str, Any] = {
        "beam_size": 4,
        "num_rounds": 3,
        **{
            f"{side}_tokens_per_{unit}": exactly(1000.0)
            for side in ("source", "target")
            for unit in ("second", "cpu_second")
        },
        "padding_share": 0.0,
        "rows_per_step": 1024.0,
        "batch_milliseconds": exactly(10.0),
        "phases": {
            name: Phase(exactly(1.0), shares.get(name, 0.0)) for name in timed_translation.PHASES
        },
        "flop_per_target_token": 1e6,
        "flop_per_second": exactly(1e9),
        "share_of_peak": 0.2,
    }
    return SearchFigures(**values | changes)


def decoding_report(engines: Sequence[EngineFigures], **changes: Any) -> DecodingBenchmark:
    """Greedy search and beam search of equal speed, and a table of engines."""
    of_training = figures()
    values: dict[str, Any] = {
        "machine": "CPU, 1 thread, float32",
        "num_parameters": 7,
        "num_lines": 5,
        "is_forced": True,
        "greedy": search_figures(beam_size=1),
        "beam": search_figures(),
        "memory": of_training.memory,
        "products": of_training.products,
        "peak": of_training.peak,
        "trials": [],
        "conclusion": "Nothing limits.",
        "engines": EngineTurns("A processor", 1, 5, 4, list(engines), []),
    }
    return DecodingBenchmark(**values | changes)


def engine(
    name: str, precision: str, speed: float, ratio: float | None, *, beam_size: int = 1
) -> EngineFigures:
    """An engine; `speed` in target tokens per CPU-second, `ratio` to CTranslate2."""
    of_other = None if ratio is None else exactly(ratio)
    return EngineFigures(name, precision, beam_size, exactly(speed), exactly(speed), of_other)


def machine_facts(**changes: Any) -> MachineFacts:
    """A CPU with one core, already as fast as settings make it."""
    values: dict[str, Any] = {
        "device": "cpu", "num_threads": 1, "num_cores": 1, "could_use_bfloat16": False,
    }  # fmt: skip
    return MachineFacts(**values | changes)


def situation(*overrides: str, machine: MachineFacts | None = None, **changes: Any) -> Situation:
    """The tiny config with batches of 4,096 tokens, but for the changes."""
    of_tokens = ("training.batch_sentences=null", "training.batch_tokens=4096")
    values: dict[str, Any] = {"num_batches": 50, "fixed_bytes": 8 * 10**8, "padding_at": {}}
    config = tiny_config(*of_tokens, *overrides)
    return Situation(config, machine or machine_facts(), **values | changes)
