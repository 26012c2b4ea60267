"""Two files of benchmarks compared: before and after, and their ratio."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from transformer_cli.extensions.benchmark.benchmark_file import read_benchmark
from transformer_cli.extensions.benchmark.decoding.engine_turns import OTHER
from transformer_cli.process.errors import DataError

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


class Row(NamedTuple):
    """A figure of both files."""

    name: str
    before: float
    after: float

    @property
    def ratio(self) -> float | None:
        """after / before; None if the figure was 0."""
        return self.after / self.before if self.before else None


class Comparison(NamedTuple):
    """Two benchmarks."""

    rows: list[Row]
    differences: list[str]
    """Conditions that differ; the ratios then show more than one change."""


def compare(before: Path, after: Path) -> Comparison:
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
            rows.append(Row(name, of_first, of_second))
    return Comparison(rows, list(_differences(first, second)))


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
