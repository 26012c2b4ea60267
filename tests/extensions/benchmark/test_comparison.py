"""Files of benchmarks: written, read and compared."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transformer_cli.extensions.benchmark import report
from transformer_cli.extensions.benchmark.report import (
    benchmark_json,
    compare_benchmarks,
    comparison_lines,
    read_benchmark,
    report_lines,
)
from transformer_cli.extensions.benchmark.training import PHASES_OF_REPLAYS
from transformer_cli.process.device import processor_name
from transformer_cli.process.errors import DataError, MissingInputError

from .small_benchmarks import exactly, figures, tiny_config


def written(path: Path, *overrides: str, machine: str = "CPU, 1 thread, float32", **changes: Any) -> Path:
    measured = {
        "machine": machine,
        "num_parameters": 7,
        "figures": figures(**changes),
        "trials": [],
        "conclusion": "Nothing limits.",
    }
    found = benchmark_json("training", tiny_config(*overrides), measured)
    path.write_text(json.dumps(found), encoding="utf-8")
    return path


def test_a_report_is_read_back_with_its_conditions(tmp_path: Path) -> None:
    found = read_benchmark(written(tmp_path / "a.json"))
    assert found["kind"] == "training"
    assert found["figures"]["target_tokens_per_second"] == {"median": 1000.0, "low": 1000.0, "high": 1000.0}
    assert found["figures"]["phases"]["backward"]["share"] == 0.6
    assert found["settings"]["model"]["d_model"] == 16
    assert found["environment"]["packages"]["torch"]
    assert found["processor"] == processor_name()


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_report_is_read_as_powershell_has_written_it(tmp_path: Path, encoding: str) -> None:
    plain, other = written(tmp_path / "a.json"), tmp_path / "b.json"
    other.write_text(plain.read_text(encoding="utf-8"), encoding=encoding)
    assert read_benchmark(other) == read_benchmark(plain)


def test_another_processor_is_a_condition_that_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = written(tmp_path / "a.json")
    monkeypatch.setattr(report, "processor_name", lambda: "Another one")
    difference = f"processor: {processor_name()} before, Another one after"
    assert compare_benchmarks(before, written(tmp_path / "b.json"))["differences"] == [difference]


def test_no_path_of_the_corpus_is_written(tmp_path: Path) -> None:
    corpus = "{source: files, root: /secret, corpora: [{path: secret.tsv}]}"
    assert "secret" not in written(tmp_path / "a.json", f"data={corpus}").read_text()


def test_ratios_are_after_to_before(tmp_path: Path) -> None:
    before = written(tmp_path / "a.json")
    after = written(tmp_path / "b.json", target_tokens_per_second=exactly(1500.0))
    found = compare_benchmarks(before, after)
    assert found["differences"] == []
    ratios = {row["name"]: row["ratio"] for row in found["figures"]}
    assert ratios["target tokens per second"] == pytest.approx(1.5)
    assert ratios["target tokens per CPU-second"] == 1.0
    assert ratios["backward, ms"] == 1.0
    assert ratios["output and loss, ms"] is None, "it was 0"
    assert "peak memory, device, bytes" not in ratios, "there is no such memory"


@pytest.mark.parametrize(
    ("overrides", "machine", "difference"),
    [
        (["model.d_ff=32"], "CPU, 1 thread, float32", "model.d_ff: 16 before, 32 after"),
        (["training.betas=[0.9, 0.99]"], "CPU, 1 thread, float32", "training.betas.1: 0.98 before, 0.99 after"),
        ([], "CPU, 1 thread, bfloat16", "machine: CPU, 1 thread, float32 before, CPU, 1 thread, bfloat16 after"),
    ],
)
def test_conditions_that_differ_are_named(tmp_path: Path, overrides: list[str], machine: str, difference: str) -> None:
    before = written(tmp_path / "a.json")
    after = written(tmp_path / "b.json", *overrides, machine=machine)
    assert compare_benchmarks(before, after)["differences"] == [difference]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (None, MissingInputError, "cannot be read"),
        ("no JSON", DataError, "not JSON"),
        ("[1]", DataError, "not of a benchmark"),
        ("{}", DataError, "not of a benchmark"),
        ('{"tfm_benchmark": 99}', DataError, "format 99"),
        ('{"tfm_benchmark": 1, "kind": "decoding"}', DataError, "of training, .* of decoding"),
        ('{"tfm_benchmark": 1, "kind": "training"}', DataError, "figures.* is missing"),
        (
            '{"tfm_benchmark": 1, "kind": "training", "figures": 3}',
            DataError,
            "figures.* is missing",
        ),
        (b"\xff\xfe", DataError, "not JSON"),
    ],
)
def test_a_file_that_is_no_benchmark_is_refused(
    tmp_path: Path, content: str | bytes | None, error: type[Exception], message: str
) -> None:
    other = tmp_path / "b.json"
    if content is not None:
        other.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(error, match=message):
        compare_benchmarks(written(tmp_path / "a.json"), other)


def test_a_figure_that_is_no_number_is_refused(tmp_path: Path) -> None:
    before = written(tmp_path / "a.json")
    damaged = json.loads(before.read_text())
    damaged["figures"]["padding_share"] = "much"
    after = tmp_path / "b.json"
    after.write_text(json.dumps(damaged))
    with pytest.raises(DataError, match="padding_share is 'much' instead of a number"):
        compare_benchmarks(before, after)


def test_a_file_of_an_earlier_version_is_compared_without_the_figures_that_it_lacks(
    tmp_path: Path,
) -> None:
    before, after = written(tmp_path / "a.json"), written(tmp_path / "b.json")
    found = json.loads(before.read_text())
    for name in ("target_tokens_per_second_together", "busy_share", "share_of_data_sheet"):
        del found["figures"][name]
    before.write_text(json.dumps(found))
    names = {row["name"] for row in compare_benchmarks(before, after)["figures"]}
    assert "target tokens per second" in names
    assert "all updates together" not in names
    assert "all updates together" in {row["name"] for row in compare_benchmarks(after, after)["figures"]}
    assert not any("busy" in line for line in report_lines(json.loads(after.read_text())))


def test_a_training_with_recorded_passes_is_compared_in_the_phases_that_both_have(
    tmp_path: Path,
) -> None:
    before, after = written(tmp_path / "a.json"), written(tmp_path / "b.json")
    found = json.loads(after.read_text())
    plain = found["figures"]["phases"]
    found["figures"]["phases"] = {name: plain.get(name, plain["forward"]) for name in PHASES_OF_REPLAYS}
    after.write_text(json.dumps(found))
    names = {row["name"] for row in compare_benchmarks(before, after)["figures"]}
    assert {"optimizer, ms", "other, ms", "waiting for data, ms"} <= names
    assert not names & {"forward, ms", "replay of CUDA graphs, ms"}


def test_a_gpu_has_lines_for_both_peaks_and_for_how_busy_it_is(tmp_path: Path) -> None:
    file = written(tmp_path / "a.json", busy_share=0.75, share_of_data_sheet=0.25)
    text = "\n".join(report_lines(json.loads(file.read_text())))
    assert re.search(r"share of the data sheet's peak +25\.0%", text)
    assert re.search(r"GPU busy +75\.0%", text)
    assert re.search(r"  all updates together +900", text)


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "gpu", 10**400])
ANY_JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab.", max_size=3), inner),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("benchmark") / "whole.json")


def places_in(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place, *(each for key, one in inner for each in places_in(one, (*place, key)))]


@pytest.mark.long
@given(data=st.data(), damage=ANY_JSON)
def test_a_damaged_file_is_compared_or_refused_with_its_name(whole: Path, data: st.DataObject, damage: Any) -> None:
    found = json.loads(whole.read_text())
    *path, last = data.draw(st.sampled_from(places_in(found)[1:]))
    holder = found
    for key in path:
        holder = holder[key]
    holder[last] = damage
    damaged = whole.with_name("damaged.json")
    damaged.write_text(json.dumps(found))
    refused: list[str] = []
    for files in ((whole, damaged), (damaged, whole), (damaged, damaged)):
        try:
            compared = compare_benchmarks(*files)
        except DataError as error:
            refused.append(error.message)
        else:
            assert [*comparison_lines(compared)]
    assert all("damaged.json" in message for message in refused)


@pytest.mark.long
@given(content=st.dictionaries(st.sampled_from(["kind", "figures", "engines", "memory"]), ANY_JSON))
@example(content={"kind": "training", "figures": {"phases": 5}})
@example(content={"kind": ["training"]})
@example(content={"kind": "decoding", "greedy": {"phases": None}})
def test_what_is_no_benchmark_is_refused(whole: Path, content: dict[str, Any]) -> None:
    path = whole.with_name("other.json")
    path.write_text(json.dumps({"tfm_benchmark": 1, **content}))
    with pytest.raises(DataError, match=r"other\.json"):
        compare_benchmarks(path, path)


@pytest.mark.parametrize("depth", [800, 100_000])
def test_objects_in_objects_without_an_end_are_refused(tmp_path: Path, depth: int) -> None:
    path = tmp_path / "deep.json"
    inner = '{"a":' * depth + "1" + "}" * depth
    path.write_text(f'{{"tfm_benchmark": 1, "kind": "training", "figures": {inner}}}')
    with pytest.raises(DataError, match=r"deep\.json"):
        compare_benchmarks(path, path)
