"""The comparison of continued runs: what counts as equal, and which runs there are."""

import hashlib
import itertools
import json
import struct
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from transformer_cli import load_config

from .resume_old_runs import CASES, MIDDLE, Case, config_of, first_difference, hashes_of, result_of

RESULT: dict[str, Any] = {
    "reports": [{"kind": "train", "step": 31, "loss": 2.5}, {"kind": "train", "step": 32, "loss": 2.25}],
    "tensors": {"model.safetensors": {"a": "1", "b": "2"}},
}


def changed(*path: Any, value: Any) -> dict[str, Any]:
    result = deepcopy(RESULT)
    place: Any = result
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return result


def test_equal_results_have_no_difference() -> None:
    assert first_difference(RESULT, deepcopy(RESULT)) is None


@pytest.mark.parametrize(
    ("now", "message"),
    [
        (
            changed("reports", 1, "loss", value=2.2500000000000004),
            "step 32, train: loss was 2.25, is 2.2500000000000004",
        ),
        (changed("reports", 0, "norm", value=1), "step 31, train: norm was None, is 1"),
        (changed("reports", value=RESULT["reports"][:1]), "2 reports before, 1 now"),
        (
            changed("tensors", "model.safetensors", "b", value="3"),
            "the losses are equal, but the tensor b of model.safetensors differs",
        ),
        (changed("tensors", "model.safetensors", "c", value="3"), "tensor c of model.safetensors is only in one"),
        (changed("tensors", value={}), "files of tensors"),
    ],
)
def test_the_first_difference_is_named(now: dict[str, Any], message: str) -> None:
    assert message in (first_difference(RESULT, now) or "")


def tensors(**values: bytes) -> bytes:
    header, data = {}, b""
    for name, value in values.items():
        header[name] = {"dtype": "U8", "shape": [len(value)], "data_offsets": [len(data), len(data) + len(value)]}
        data += value
    encoded = json.dumps(header).encode()
    return struct.pack("<Q", len(encoded)) + encoded + data


def test_the_hash_of_a_tensor_is_that_of_its_values_wherever_it_lies(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(tensors(x=b"12", y=b"3"))
    (tmp_path / "b").write_bytes(tensors(y=b"3", x=b"12"))
    (tmp_path / "c").write_bytes(tensors(y=b"4", x=b"12"))
    found = [dict(hashes_of(tmp_path / name)) for name in "abc"]
    assert found[0] == found[1]
    assert found[0]["x"] == found[2]["x"] == hashlib.sha256(b"U8[2]12").hexdigest()
    assert found[0]["y"] != found[2]["y"]


def test_speeds_and_the_updates_before_the_middle_do_not_count(tmp_path: Path) -> None:
    run = tmp_path / "runs/resumed"
    checkpoint = run / "checkpoints/step-00000080"
    checkpoint.mkdir(parents=True)
    (checkpoint / "model.safetensors").write_bytes(tensors(x=b"1"))
    lines = [{"step": step, "loss": 1.0, "target_tokens_per_second": 9.0} for step in (MIDDLE, MIDDLE + 1)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = result_of(tmp_path)
    assert result["reports"] == [{"step": MIDDLE + 1, "loss": 1.0}]
    assert list(result["tensors"]) == ["model.safetensors"]


def test_each_two_choices_meet_in_a_run() -> None:
    rows = [(case.precision, case.optimizer, case.tokenizer, case.num_processes) for case in CASES]
    rows = [row for row in rows if row[2] != "symbols"]
    for first, second in itertools.combinations(range(4), 2):
        pairs = {(row[first], row[second]) for row in rows}
        assert len(pairs) == len({row[first] for row in rows}) * len({row[second] for row in rows}) == 4


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_config_of_each_run_is_valid(case: Case, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(config_of(case), encoding="utf-8")
    config = load_config(tmp_path / "run.yaml")
    assert (config.runtime.precision, config.training.optimizer) == (case.precision, case.optimizer)
    assert config.training.log_every == 1
