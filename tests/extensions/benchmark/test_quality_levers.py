"""benchmarks/quality_levers.py: every lever is a config that loads; nothing is trained."""

from typing import get_args

import pytest

from transformer_cli.config import load_config
from transformer_cli.config.schema import ScheduleName

from .small_benchmarks import script

quality_levers = script("quality_levers")


@pytest.mark.long
@pytest.mark.parametrize("lever", quality_levers.LEVERS)
def test_the_config_of_a_lever_loads_and_differs_from_the_baseline(lever: str) -> None:
    baseline, config = (
        load_config(quality_levers.CONFIG, quality_levers.settings_of(one, 2, "somewhere"))
        for one in ("baseline", lever)
    )
    assert (config.name, config.seed) == (quality_levers.run_of(lever, 2), 2)
    assert quality_levers.SCORED_LANGUAGE in {direction.target for direction in config.data.directions}
    same_name = config.model_copy(update={"name": baseline.name})
    assert (same_name == baseline) == (lever == "baseline")


def test_a_setting_of_all_runs_gives_way_to_that_of_a_lever() -> None:
    shared = ["training.max_steps=1500", "model.dropout=0.2"]
    configs = [
        load_config(quality_levers.CONFIG, quality_levers.settings_of(lever, 1, ".", shared))
        for lever in ("baseline", "dropout 0.3", "warm-up-stable-decay")
    ]
    assert [config.training.max_steps for config in configs] == [1500, 1500, 1500]
    assert [config.model.dropout for config in configs] == [0.2, 0.3, 0.2]
    assert [config.training.decay_steps for config in configs] == [None, None, 300]


def test_each_lever_has_a_run_of_its_own() -> None:
    assert len({quality_levers.run_of(lever, 1) for lever in quality_levers.LEVERS}) == len(quality_levers.LEVERS)


@pytest.mark.long
def test_every_schedule_is_a_lever() -> None:
    configs = (
        load_config(quality_levers.CONFIG, quality_levers.settings_of(lever, 1, ".")) for lever in quality_levers.LEVERS
    )
    assert {config.training.schedule for config in configs} == {*get_args(ScheduleName)}
