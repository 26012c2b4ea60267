"""Two files of `tfm benchmark --decode` are compared, with their tables of engines."""

import json
from pathlib import Path

import pytest

from transformer_cli.extensions.benchmark.measuring import Figures
from transformer_cli.extensions.benchmark.report import (
    benchmark_json,
    compare_benchmarks,
    report_lines,
)
from transformer_cli.process.device import processor_name
from transformer_cli.process.errors import DataError

from .small_benchmarks import decoding_report, engine, exactly, search_figures, tiny_config

CTRANSLATE2 = engine("ctranslate2", "float32", 500.0, 1.0)


def written(path: Path, *engines: Figures, beam_speed: float = 1000.0) -> Path:
    beam = search_figures(target_tokens_per_cpu_second=exactly(beam_speed))
    report = decoding_report(engines, beam=beam)
    path.write_text(json.dumps(benchmark_json("decoding", tiny_config(), report)), encoding="utf-8")
    return path


def is_of_engine(name: str) -> bool:
    return name.startswith(("greedy, ", "beam 4, "))


def test_each_search_and_each_engine_has_its_rows(tmp_path: Path) -> None:
    before = written(
        tmp_path / "a.json",
        engine("torch", "float32", 300.0, 0.6),
        engine("torch", "bfloat16", 400.0, None),
        CTRANSLATE2,
        engine("torch", "float32", 100.0, None, beam_size=4),
    )
    after = written(
        tmp_path / "b.json",
        engine("torch", "float32", 450.0, 0.9),
        engine("torch", "bfloat16", 400.0, None),
        CTRANSLATE2,
        engine("torch", "float32", 200.0, None, beam_size=4),
        beam_speed=3000.0,
    )
    found = compare_benchmarks(before, after)
    assert found["differences"] == []
    ratios = {row["name"]: row["ratio"] for row in found["figures"]}
    assert ratios["beam: target tokens per CPU-second"] == 3.0
    assert ratios["greedy: decoder steps, ms"] == 1.0
    of_engines = {name: ratio for name, ratio in ratios.items() if is_of_engine(name)}
    assert of_engines == pytest.approx(
        {
            "greedy, torch, float32: target tokens per CPU-second": 1.5,
            "greedy, torch, float32: times as fast as ctranslate2": 1.5,
            "greedy, torch, bfloat16: target tokens per CPU-second": 1.0,
            "greedy, ctranslate2, float32: target tokens per CPU-second": 1.0,
            "beam 4, torch, float32: target tokens per CPU-second": 2.0,
        }
    )


def test_an_engine_that_only_one_file_has_is_named(tmp_path: Path) -> None:
    before = written(tmp_path / "a.json", engine("torch", "int8", 300.0, None))
    after = written(tmp_path / "b.json", CTRANSLATE2)
    found = compare_benchmarks(before, after)
    assert found["differences"] == [
        "engines measured only before: greedy, torch, int8",
        "engines measured only after: greedy, ctranslate2, float32",
    ]
    assert not any(is_of_engine(row["name"]) for row in found["figures"])


def test_a_file_without_a_table_of_engines_is_compared_too(tmp_path: Path) -> None:
    """As older versions have written it, without the name of the processor too."""
    before, after = (written(tmp_path / name, CTRANSLATE2) for name in ("a.json", "b.json"))
    older = json.loads(before.read_text())
    del older["engines"], older["processor"]
    before.write_text(json.dumps(older))
    assert compare_benchmarks(before, after)["differences"] == [
        f"processor: absent before, {processor_name()} after",
        "engines measured only after: greedy, ctranslate2, float32",
    ]


@pytest.mark.parametrize(
    ("engines", "message"),
    [
        (3, "engines.figures is missing"),
        ({"figures": 3}, "engines.figures is missing, or is not a list of objects"),
        ({"figures": ["fast"]}, "engines.figures is missing, or is not a list of objects"),
        (
            {"figures": [{"engine": "ctranslate2", "precision": "float32", "beam_size": 1}]},
            r"target_tokens_per_cpu_second\.median is missing",
        ),
    ],
)
def test_a_damaged_table_of_engines_is_refused(tmp_path: Path, engines: object, message: str) -> None:
    before, after = (written(tmp_path / name, CTRANSLATE2) for name in ("a.json", "b.json"))
    after.write_text(json.dumps(json.loads(after.read_text()) | {"engines": engines}))
    with pytest.raises(DataError, match=message):
        compare_benchmarks(before, after)


def test_the_file_names_the_processor(tmp_path: Path) -> None:
    found = json.loads(written(tmp_path / "a.json").read_text())
    assert found["processor"] == processor_name()


def test_the_table_says_what_its_ratios_are() -> None:
    measured = decoding_report([engine("torch", "float32", 300.0, 0.6)])
    lines = [*report_lines(benchmark_json("decoding", tiny_config(), measured))]
    assert sum(line.endswith("  times as fast as ctranslate2, same precision") for line in lines) == 1
    [row] = [line for line in lines if line.startswith("greedy, torch, float32")]
    assert row.endswith("  0.60 (0.60 to 0.60)")
