"""The JSON of a benchmark: written by `--json`, and two files of it compared by `--compare`."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

from transformer_cli.acceleration.native_kernels import kernel_level
from transformer_cli.config import Config
from transformer_cli.extensions.benchmark.decoding import DecodingBenchmark
from transformer_cli.extensions.benchmark.engine_turns import OTHER
from transformer_cli.extensions.benchmark.measuring import Spread, processor_name
from transformer_cli.extensions.benchmark.training import TrainingBenchmark
from transformer_cli.process.device import environment
from transformer_cli.process.errors import DataError, MissingInputError

OF_TRAINING = {
    "target tokens per second": "figures.target_tokens_per_second.median",
    "target tokens per CPU-second": "figures.target_tokens_per_cpu_second.median",
    "target tokens per update": "figures.target_tokens_per_update.median",
    "padding": "figures.padding_share",
    "an update, ms": "figures.update_milliseconds.median",
    "FLOP per target token": "figures.flop_per_target_token",
    "share of the peak": "figures.share_of_peak",
    "peak memory, resident, bytes": "figures.memory.resident",
    "peak memory, device, bytes": "figures.memory.device",
    "peak of matrix products, FLOP/s": "figures.peak.flop_per_second.median",
}
OF_SEARCH = {
    "source tokens per second": "source_tokens_per_second.median",
    "target tokens per second": "target_tokens_per_second.median",
    "target tokens per CPU-second": "target_tokens_per_cpu_second.median",
    "padding of the sources": "padding_share",
    "a batch, ms": "batch_milliseconds.median",
    "share of the peak": "share_of_peak",
}
OF_DECODING = {
    **{f"{kind}: {name}": f"{kind}.{path}" for kind in ("greedy", "beam") for name, path in OF_SEARCH.items()},
    "peak memory, resident, bytes": "memory.resident",
    "peak memory, device, bytes": "memory.device",
    "peak of matrix products, FLOP/s": "peak.flop_per_second.median",
}  # fmt: skip
ENGINES = "engines"
PHASES = {"training": ("figures",), "decoding": ("greedy", "beam")}


class ComparedFigure(NamedTuple):
    """A figure of both files."""

    name: str
    before: float
    after: float

    @property
    def ratio(self) -> float | None:
        """after / before; None if the figure was 0."""
        return self.after / self.before if self.before else None


class BenchmarkComparison(NamedTuple):
    """Two benchmarks."""

    rows: list[ComparedFigure]
    differences: list[str]
    """Conditions that differ; the ratios then show more than one change."""

    def lines(self) -> Iterator[str]:
        """A table for people."""
        width = max((len(row.name) for row in self.rows), default=0)
        yield f"{'':{width}}{'before':>18}{'after':>18}{'after/before':>14}"
        for row in self.rows:
            ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
            yield f"{row.name:{width}}{row.before:>18,.4g}{row.after:>18,.4g}{ratio:>14}"


def compare_benchmarks(before: Path, after: Path) -> BenchmarkComparison:
    """Compare two files of `tfm benchmark --json`.

    Raises:
        MissingInputError: there is no such file.
        DataError: a file is not of a benchmark, or one is of training and the other of translating.
    """
    first, second = (_with_named_engines(read_benchmark(file), file) for file in (before, after))
    kinds = first.get("kind"), second.get("kind")
    if kinds[0] != kinds[1] or kinds[0] not in PHASES:
        raise DataError(
            f"{before} is a benchmark of {kinds[0]}, {after} of {kinds[1]}",
            hint="compare two of training, or two of decoding",
        )
    paths = _paths(str(kinds[0]), first, before)
    paths |= _paths_of_engines(first[ENGINES], second[ENGINES])
    rows = []
    for name, path in paths.items():
        of_first, of_second = _number(first, path, before), _number(second, path, after)
        if of_first is not None and of_second is not None:
            rows.append(ComparedFigure(name, of_first, of_second))
    return BenchmarkComparison(rows, list(_differences(first, second)))


def _paths(kind: str, found: Mapping[str, Any], file: Path) -> dict[str, str]:
    paths = dict(OF_TRAINING if kind == "training" else OF_DECODING)
    for part in PHASES[kind]:
        for phase in _value(found, f"{part}.phases", file):
            name = f"{phase}, ms" if kind == "training" else f"{part}: {phase}, ms"
            paths[name] = f"{part}.phases.{phase}.milliseconds.median"
    return paths


def _with_named_engines(found: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """The content of a file; its table of engines maps search, engine and precision to the figures.

    Training has no such table, and files of older versions have none either: it is empty then.
    """
    figures = _value(found, f"{ENGINES}.figures", file) if ENGINES in found else []
    named = {}
    for one in figures if isinstance(figures, list) else [figures]:
        if not isinstance(one, Mapping):
            raise DataError(f"{file}: {ENGINES}.figures holds {one!r} instead of an object")
        search = "greedy" if one.get("beam_size") == 1 else f"beam {one.get('beam_size')}"
        named[f"{search}, {one.get('engine')}, {one.get('precision')}"] = one
    return {**found, ENGINES: named}


def _paths_of_engines(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, str]:
    """The speeds of the engines that both files have, and their ratios to CTranslate2."""
    paths = {}
    for name in (name for name in first if name in second):
        path = f"{ENGINES}.{name}"
        paths[f"{name}: target tokens per CPU-second"] = (
            f"{path}.target_tokens_per_cpu_second.median"
        )
        is_compared = first[name].get("ratio") and second[name].get("ratio")
        if is_compared and first[name].get("engine") != OTHER:
            paths[f"{name}: times as fast as {OTHER}"] = f"{path}.ratio.median"
    return paths


def _value(found: Mapping[str, Any], path: str, file: Path) -> Any:
    value: Any = found
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            raise DataError(
                f"{file}: {path} is missing", hint="measure again with tfm benchmark --json"
            )
        value = value[key]
    return value


def _number(found: Mapping[str, Any], path: str, file: Path) -> float | None:
    value = _value(found, path, file)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise DataError(f"{file}: {path} is {value!r} instead of a number")
    return value


def _differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    for part in ("machine", "processor", "environment", "settings"):
        flat = [_flat(part, one[part]) if part in one else {} for one in (first, second)]
        for name in {**flat[0], **flat[1]}:
            values = [one.get(name, "absent") for one in flat]
            if values[0] != values[1]:
                yield f"{name}: {values[0]} before, {values[1]} after"
    for when, one, other in (("before", first, second), ("after", second, first)):
        if alone := [name for name in one[ENGINES] if name not in other[ENGINES]]:
            yield f"engines measured only {when}: {'; '.join(alone)}"


def _flat(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {name: value}
    found: dict[str, Any] = {}
    for key, one in value.items():
        found |= _flat(f"{name}.{key}".removeprefix("settings."), one)
    return found


FORMAT = 1


def benchmark_json(config: Config, report: TrainingBenchmark | DecodingBenchmark) -> dict[str, Any]:
    """The report with its conditions: versions, hardware, and every setting but the paths of the corpus."""
    kind = "training" if isinstance(report, TrainingBenchmark) else "decoding"
    settings = config.model_dump(mode="json", exclude={"data": {"root"}})
    for corpus in settings["data"].get("corpora", ()):
        for name in [name for name in corpus if name.endswith("path")]:
            del corpus[name]
    conditions = {
        "processor": processor_name(),
        "environment": environment(kernel_level()),
        "settings": settings,
    }
    about = {"tfm_benchmark": FORMAT, "kind": kind, "name": config.name}
    return about | conditions | _plain(report)


def _plain(value: Any) -> Any:
    """Dataclasses and spreads as objects of JSON."""
    if is_dataclass(value):
        return {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, Spread):
        return value._asdict()
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def read_benchmark(path: Path) -> dict[str, Any]:
    """The content of a file that `tfm benchmark --json` has written.

    Raises:
        MissingInputError: there is no such file.
        DataError: the file is no JSON, or not of a benchmark.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MissingInputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise DataError(f"{path}: not JSON ({error})", hint=_HINT) from error
    if not isinstance(found, dict) or "tfm_benchmark" not in found:
        raise DataError(f"{path}: JSON, but not of a benchmark", hint=_HINT)
    if found["tfm_benchmark"] != FORMAT:
        version = found["tfm_benchmark"]
        raise DataError(
            f"{path}: format {version!r} of a benchmark; this tfm reads format {FORMAT}",
            hint="measure again with this version of tfm",
        )
    return found


_HINT = "write such a file with: tfm benchmark --config X --json > before.json"
