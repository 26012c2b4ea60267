"""What a benchmark found: as JSON for `--json`, as lines for people, and two files of it compared by `--compare`."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from transformer_cli.acceleration.native_kernels import kernel_level
from transformer_cli.commands.output import in_columns
from transformer_cli.config import Config
from transformer_cli.config.section import flat_settings
from transformer_cli.extensions.benchmark.decoding import OTHER
from transformer_cli.extensions.benchmark.measuring import UNITS, key_of_speed
from transformer_cli.process.device import environment, processor_name
from transformer_cli.process.errors import DataError, MissingInputError

_WORK = {"FLOP per target token": "flop_per_target_token", "share of the peak": "share_of_peak"}
FIGURES = {
    "training": {
        "target tokens per second": "target_tokens_per_second",
        "  all updates together": "target_tokens_per_second_together",
        "target tokens per CPU-second": "target_tokens_per_cpu_second",
        "target tokens per update": "target_tokens_per_update",
        "padding": "padding_share",
        "an update, ms": "update_milliseconds",
        **_WORK,
        "share of the data sheet's peak": "share_of_data_sheet",
        "GPU busy": "busy_share",
    },
    "decoding": {
        **{f"{side} tokens per {unit}": key_of_speed(side, unit) for side in ("source", "target") for unit in UNITS},
        "padding of the sources": "padding_share",
        "rows per decoder step": "rows_per_step",
        "a batch, ms": "batch_milliseconds",
        **_WORK,
    },
}
"""Kind of a benchmark -> names of its figures for people, in their order -> their keys in the JSON."""
MAY_BE_ABSENT = {"target_tokens_per_second_together", "share_of_data_sheet", "busy_share"}
"""Some devices do not have them, and files of earlier versions do not either."""
PARTS = {"training": ("figures",), "decoding": ("greedy", "beam")}
"""Kind of a benchmark -> the parts of its JSON that have these figures."""
FORMAT = 1
# No figure of a machine comes near it, and the ratio of a larger integer to another number may be none.
_LARGEST = 1e100
_HINT = "write such a file with: tfm benchmark --config X --json > before.json"
_AGAIN = "measure again with tfm benchmark --json"


def benchmark_json(kind: str, config: Config, found: Mapping[str, Any]) -> dict[str, Any]:
    """What was found, with its conditions: versions, hardware, and every setting but the paths of the corpus."""
    settings = config.model_dump(mode="json", exclude={"data": {"root"}})
    for corpus in settings["data"].get("corpora", ()):
        for name in [name for name in corpus if name.endswith("path")]:
            del corpus[name]
    conditions = {"processor": processor_name(), "environment": environment(kernel_level()), "settings": settings}
    return {"tfm_benchmark": FORMAT, "kind": kind, "name": config.name, **conditions, **found}


def _figures(part: str, kind: str, flat: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The names and the dotted keys of the figures of a part, in their order. A phase is indented, below the time that it is part of."""
    for name, key in FIGURES[kind].items():
        if key not in MAY_BE_ABSENT or f"{part}.{key}" in flat:
            yield name, f"{part}.{key}"
        if key.endswith("_milliseconds"):
            phases = (re.fullmatch(rf"({part}\.phases\.(.*)\.milliseconds)\.median", path) for path in flat)
            yield from ((f"  {phase[2]}", phase[1]) for phase in phases if phase)


def report_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """One line per figure of a benchmark, then the conclusion; from what `benchmark_json` returns."""
    machine_figures, kind, flat = found, found["kind"], flat_settings(found)
    if kind == "training":
        machine_figures = found["figures"]
        about, size, parts = "", f"{machine_figures['num_updates']} updates", {"figures": "updates"}
    else:
        about = " (random weights, lengths forced to those of the sources)" if found["is_forced"] else " (trained)"
        size, beam = f"{found['num_lines']:,} lines", found["beam"]
        searches = {"greedy": "greedy search", "beam": f"beam size {beam['beam_size']}"}
        parts = {part: f"{beam['num_rounds']} rounds, {search}" for part, search in searches.items()}
    yield f"{found['num_parameters']:,} parameters{about}; {found['machine']}; {size}"
    for part, of in parts.items():
        yield from ("", _line("", "median", f"10 % to 90 % of {of}"))
        for name, path in _figures(part, kind, flat):
            if f"{path}.median" in flat:
                low, median, high = (_rounded(flat[f"{path}.{place}"]) for place in ("low", "median", "high"))
                share = flat.get(path.replace(".milliseconds", ".share"))
                yield _line(name, median, f"{low} to {high}" + (f"   {share:.1%}" if share is not None else ""))
            elif (value := flat[path]) is not None:
                shown = f"{value / 1e6:,.1f} M" if "flop" in path else f"{value:,.0f}"
                yield _line(name, f"{value:.1%}" if "share" in path else shown)
    yield ""
    for what, limit in (("resident", "usable"), ("device", "device_usable")):
        used, usable = machine_figures["memory"][what], machine_figures["memory"][limit]
        if used is not None:
            of = f"{used / usable:.0%} of {usable / 1e6:,.0f} MB" if usable else ""
            yield _line(f"peak memory, {what}", f"{used / 1e6:,.0f} MB", of)
    yield f"matrix products, GFLOP per {'CPU-second' if found['machine'].startswith('CPU') else 'second'}"
    for product in machine_figures["products"]:
        shape = " x ".join(f"{size:,}" for size in product["shape"])
        note = ", the peak" if product == machine_figures["peak"] else ""
        yield _line(f"  {product['what']}", f"{product['flop_per_second']['median'] / 1e9:,.0f}", f"{shape}{note}")
    yield ""
    if kind == "decoding":
        yield from (*_engine_lines(found["engines"]), "")
    yield found["conclusion"]


def _line(name: str, value: str, note: str = "") -> str:
    return f"{name:32}{value:>14}   {note}".rstrip()


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def _engine_lines(turns: Mapping[str, Any]) -> Iterator[str]:
    threads = "1 thread" if turns["num_threads"] == 1 else f"{turns['num_threads']} threads"
    yield (
        f"engines in turns, without the text pipeline: {turns['num_lines']:,} lines, {turns['num_rounds']} rounds, "
        f"{turns['processor']}, {threads}"
    )
    unit = turns["unit"]
    rows = [(f"target tokens per {unit}", "median", "10 % to 90 %", f"times as fast as {OTHER}, same precision")]
    for found in turns["figures"]:
        speed, ratio, shown = found[key_of_speed("target", unit)], found["ratio"], ""
        if ratio is not None and found["engine"] != OTHER:
            shown = f"{ratio['median']:.2f} ({ratio['low']:.2f} to {ratio['high']:.2f})"
        spread = f"{speed['low']:,.0f} to {speed['high']:,.0f}"
        rows.append((_name_of_engine(found), f"{speed['median']:,.0f}", spread, shown))
    yield from in_columns(rows, 1)
    yield from (f"not measured: {reason}" for reason in turns["left_out"])


def _name_of_engine(found: Mapping[str, Any]) -> str:
    search = "greedy" if found.get("beam_size") == 1 else f"beam {found.get('beam_size')}"
    return f"{search}, {found.get('engine')}, {found.get('precision')}"


def compare_benchmarks(before: Path, after: Path) -> dict[str, Any]:
    """Two files of `tfm benchmark --json`: `figures` that both have, and conditions with `differences`, which may explain the ratios."""
    first, second = read_benchmark(before), read_benchmark(after)
    kind, other_kind = first.get("kind"), second.get("kind")
    if kind != other_kind or kind not in [*PARTS]:
        fault = f"{before} is a benchmark of {kind}, {after} of {other_kind}"
        raise DataError(fault, hint="compare two of training, or two of decoding")
    old, new = _numbers(first, before), _numbers(second, after)
    both = [(name, one, new[name]) for name, one in old.items() if name in new]
    rows = [{"name": name, "before": one, "after": two, "ratio": two / one if one else None} for name, one, two in both]
    differences = list(_differences(first, second))
    return {"before": str(before), "after": str(after), "differences": differences, "figures": rows}


def comparison_lines(found: Mapping[str, Any]) -> list[str]:
    """A table for people, from what `compare_benchmarks` returns."""
    rows = [("", "before", "after", "after/before")]
    for row in found["figures"]:
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
        rows.append((row["name"], f"{row['before']:,.4g}", f"{row['after']:,.4g}", ratio))
    return in_columns(rows, 1)


def _numbers(found: Mapping[str, Any], file: Path) -> dict[str, float]:
    """The figures of a file that are compared, by their names; of one with a spread, the median."""
    kind, flat, paths = found["kind"], flat_settings(found), dict[str, str]()
    for part in PARTS[kind]:
        prefix = "" if kind == "training" else f"{part}: "
        for name, path in _figures(part, kind, flat):
            paths[f"{prefix}{name.strip()}{', ms' if '.phases.' in path else ''}"] = path
    machine = "figures." if kind == "training" else ""
    paths["peak memory, resident, bytes"] = f"{machine}memory.resident"
    paths["peak memory, device, bytes"] = f"{machine}memory.device"
    paths["peak of matrix products, FLOP/s"] = f"{machine}peak.flop_per_second"
    for name, engine in found["engines"].items():
        paths[f"{name}: target tokens per CPU-second"] = f"engines.{name}.target_tokens_per_cpu_second.median"
        if engine.get("ratio") and engine.get("engine") != OTHER:
            paths[f"{name}: times as fast as {OTHER}"] = f"engines.{name}.ratio"
    numbers = {name: _number(flat, path, file) for name, path in paths.items()}
    return {name: number for name, number in numbers.items() if number is not None}


def _number(flat: Mapping[str, Any], path: str, file: Path) -> float | None:
    """The number, or the median, at a path in a file; None where the file says that there is none."""
    value = flat.get(f"{path}.median", flat.get(path))
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST
    if is_number or (value is None and path in flat):
        return value
    fault = "is missing" if value is None else f"is {value!r:.60} instead of a number"
    raise DataError(f"{file}: {path} {fault}", hint=_AGAIN)


def _differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    conditions = "machine", "processor", "environment", "settings"
    before, after = (flat_settings({name: one[name] for name in conditions if name in one}) for one in (first, second))
    for name in before | after:
        values = [one.get(name, "absent") for one in (before, after)]
        if values[0] != values[1]:
            yield f"{name.removeprefix('settings.')}: {values[0]} before, {values[1]} after"
    for when, one, other in (("before", first, second), ("after", second, first)):
        if alone := [name for name in one["engines"] if name not in other["engines"]]:
            yield f"engines measured only {when}: {'; '.join(alone)}"


def read_benchmark(path: Path) -> dict[str, Any]:
    """The content of a file that `tfm benchmark --json` has written; its engines are named after search, engine and precision.

    Training has no engines, and files of older versions have none either.
    """
    try:
        found = json.loads(path.read_bytes())  # PowerShell writes UTF-16, or UTF-8 with a byte-order mark
        flat_settings(found)
    except OSError as error:
        raise MissingInputError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON of a benchmark ({error})", hint=_HINT) from error
    if not isinstance(found, dict) or "tfm_benchmark" not in found:
        raise DataError(f"{path}: JSON, but not of a benchmark", hint=_HINT)
    if (number := found["tfm_benchmark"]) != FORMAT:
        fault = f"{path}: format {number!r} of a benchmark; this tfm reads format {FORMAT}"
        raise DataError(fault, hint="measure again with this version of tfm")
    try:
        engines = found.get("engines", {"figures": []})["figures"]
        return found | {"engines": {_name_of_engine(one): one for one in engines}}
    except (AttributeError, KeyError, TypeError) as error:
        raise DataError(f"{path}: engines.figures is missing, or is not a list of objects", hint=_AGAIN) from error
