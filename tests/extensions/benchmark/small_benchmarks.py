"""A tiny config, its prepared data, and figures made up for tests."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from transformer_cli.config import Config, load_config
from transformer_cli.data.preparation import PreparedData, prepare_data
from transformer_cli.extensions.benchmark import decoding
from transformer_cli.extensions.benchmark.advice import MachineFacts
from transformer_cli.extensions.benchmark.measuring import Figures, Pacing
from transformer_cli.extensions.benchmark.training import PHASES, Situation

TINY = (
    "data.num_pairs=200",
    "data.num_symbols=8",
    "data.max_length=9",
    "model.d_model=16",
    "model.num_heads=2",
    "model.d_ff=16",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "runtime.device=cpu",
    "runtime.precision=float32",
    "runtime.threads=1",
    "training.batch_sentences=8",
)

AT_ONCE = Pacing(
    num_updates=3,
    warm_up_seconds=0.0,
    speed_seconds=0.0,
    phases_seconds=0.0,
    product_seconds=0.0,
    turn_seconds=0.0,
    num_trials=0,
    round_seconds=0.0,
    num_rounds=2,
)
"""As little as can be measured, without a trial."""


def script(name: str) -> ModuleType:
    """One of the folder `benchmarks`, which is no package."""
    path = Path(__file__).parents[3] / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tiny_config(*overrides: str) -> Config:
    return load_config("copy.yaml", [*TINY, *overrides])


def tiny_data(config: Config, folder: Path) -> PreparedData:
    return prepare_data(config, folder / "data", has_begun=False)


def exactly(value: float) -> Figures:
    return {"median": value, "low": value, "high": value}


def memory_of(resident: int | None, usable: int | None, *of_device: int) -> Figures:
    device, device_usable = of_device or (None, None)
    return {
        "resident": resident,
        "usable": usable,
        "device": device,
        "device_usable": device_usable,
    }


def phases_of(names: Sequence[str], shares: dict[str, float]) -> Figures:
    return {
        name: {"milliseconds": exactly(500.0 * shares.get(name, 0.0)), "share": shares.get(name, 0.0)} for name in names
    }


OF_PEAK = {"what": "large", "shape": [2, 2, 2], "flop_per_second": exactly(1e9)}


def figures(phases: dict[str, float] | None = None, **changes: Any) -> Figures:
    """A balanced training on a CPU, but for the changes; `phases` are shares."""
    shares = {"forward": 0.3, "backward": 0.6, "optimizer": 0.1} if phases is None else phases
    values: Figures = {
        "num_updates": 9,
        "target_tokens_per_second": exactly(1000.0),
        "target_tokens_per_second_together": 900.0,
        "target_tokens_per_cpu_second": exactly(1000.0),
        "target_tokens_per_update": exactly(500.0),
        "batches_per_update": 1.0,
        "padding_share": 0.05,
        "update_milliseconds": exactly(500.0),
        "phases": phases_of(PHASES, shares),
        "memory": memory_of(18 * 10**8, 10**10),
        "num_halvings": 0,
        "flop_per_target_token": 4e5,
        "flop_per_second": exactly(4e8),
        "products": [OF_PEAK],
        "peak": OF_PEAK,
        "share_of_peak": 0.4,
        "share_of_data_sheet": None,
        "busy_share": None,
    }
    return values | changes


def search_figures(phases: dict[str, float] | None = None, **changes: Any) -> Figures:
    """Of a beam search whose decoder steps take the most time, but for the changes; `phases` are shares."""
    shares = {"decoder steps": 0.8, "encoder": 0.2} if phases is None else phases
    values: Figures = {
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
        "phases": phases_of(decoding.PHASES, shares),
        "flop_per_target_token": 1e6,
        "flop_per_second": exactly(1e9),
        "share_of_peak": 0.2,
    }
    return values | changes


def decoding_report(engines: Sequence[Figures], **changes: Any) -> Figures:
    """Greedy search and beam search of equal speed, and a table of engines."""
    values: Figures = {
        "machine": "CPU, 1 thread, float32",
        "num_parameters": 7,
        "num_lines": 5,
        "is_forced": True,
        "greedy": search_figures(beam_size=1),
        "beam": search_figures(),
        "memory": memory_of(18 * 10**8, 10**10),
        "products": [OF_PEAK],
        "peak": OF_PEAK,
        "trials": [],
        "conclusion": "Nothing limits.",
        "engines": {
            "processor": "A processor",
            "num_threads": 1,
            "num_lines": 5,
            "num_rounds": 4,
            "unit": "CPU-second",
            "figures": list(engines),
            "left_out": [],
        },
    }
    return values | changes


def engine(name: str, precision: str, speed: float, ratio: float | None, *, beam_size: int = 1) -> Figures:
    """An engine; `speed` in target tokens per CPU-second, `ratio` to CTranslate2."""
    return {
        "engine": name,
        "precision": precision,
        "beam_size": beam_size,
        "target_tokens_per_second": exactly(speed),
        "target_tokens_per_cpu_second": exactly(speed),
        "ratio": None if ratio is None else exactly(ratio),
    }


def machine_facts(**changes: Any) -> MachineFacts:
    """A CPU with one core, already as fast as settings make it."""
    values: dict[str, Any] = {
        "device": "cpu",
        "num_threads": 1,
        "num_cores": 1,
        "could_use_bfloat16": False,
    }
    return MachineFacts(**values | changes)


def situation(*overrides: str, machine: MachineFacts | None = None, **changes: Any) -> Situation:
    """The tiny config with batches of 4,096 tokens, but for the changes."""
    of_tokens = ("training.batch_sentences=null", "training.batch_tokens=4096")
    values: dict[str, Any] = {"num_batches": 50}
    config = tiny_config(*of_tokens, *overrides)
    return Situation(config, machine or machine_facts(), **values | changes)
