"""The sums between two reports, and how they go to JSON and back."""

import json
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.process.errors import DataError
from transformer_cli.training.callbacks import Meter, StepReport

CPU = torch.device("cpu")


def report(loss: float, *, is_finite: bool = True) -> StepReport:
    value = torch.tensor(loss)
    return StepReport(value + 1, value, torch.tensor(1.0), torch.tensor(is_finite), 5, 7)


def test_the_meter_sums_what_was_finite_and_counts_the_rest() -> None:
    meter = Meter(CPU)
    for one in (report(2.0), report(math.nan, is_finite=False), report(3.0)):
        meter.add(one)
    assert meter.to_json() == {
        "objective": 7.0,
        "negative_log_likelihood": 5.0,
        "num_skipped": 1.0,
        "num_skipped_in_a_row": 0.0,
        "num_target_tokens": 14.0,
    }
    assert (meter.num_source_tokens_seen, meter.num_target_tokens_seen) == (15, 21)


def test_skipped_updates_in_a_row_are_forgotten_after_a_good_one() -> None:
    meter, in_a_row = Meter(CPU), []
    for is_finite in (False, False, True, False):
        meter.add(report(1.0, is_finite=is_finite))
        in_a_row.append(meter.sums["num_skipped_in_a_row"].item())
    assert in_a_row == [1, 2, 0, 1]


def test_a_new_interval_forgets_all_but_the_skipped() -> None:
    meter = Meter(CPU)
    meter.add(report(2.0))
    meter.add(report(2.0, is_finite=False))
    ended = meter.end_interval(2, 0, report(2.0), learning_rate=1e-3, gradient_scale=None)
    assert (ended.objective, ended.loss, ended.num_target_tokens, ended.num_skipped) == (3 / 7, 2 / 7, 7, 1)
    assert {name: value for name, value in meter.to_json().items() if value} == {
        "num_skipped": 1.0,
        "num_skipped_in_a_row": 1.0,
    }


@given(st.lists(st.floats(0, 1e6, width=32), min_size=1, max_size=5))
def test_the_meter_survives_json_bit_for_bit(losses: list[float]) -> None:
    meter, other = Meter(CPU), Meter(CPU)
    for loss in losses:
        meter.add(report(loss / 3))
    other.restore(json.loads(json.dumps(meter.to_json())))
    assert other.to_json() == meter.to_json()


@pytest.mark.parametrize("key", Meter(CPU).to_json())
def test_a_meter_that_lacks_something_is_refused(key: str) -> None:
    values = Meter(CPU).to_json()
    del values[key]
    with pytest.raises(DataError, match=key):
        Meter(CPU).restore(values)
