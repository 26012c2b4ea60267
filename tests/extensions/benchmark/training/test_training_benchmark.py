from dataclasses import replace
from pathlib import Path

import pytest

from transformer_cli.extensions.benchmark.advice.trials import Suggestion
from transformer_cli.extensions.benchmark.measuring import matrix_products
from transformer_cli.extensions.benchmark.training import training_benchmark
from transformer_cli.extensions.benchmark.training.training_benchmark import (
    Pacing,
    benchmark_training,
)

from ..small_benchmarks import tiny_config, tiny_data

SHORT = Pacing(
    num_updates=3, warm_up_seconds=0.0, product_seconds=0.0, turn_seconds=0.0, num_turns=2, num_trials=1
)  # fmt: skip


@pytest.fixture(autouse=True)
def _small_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_products, "SIDES", {"cpu": (16, 32)})


def test_a_report_has_every_figure_and_a_trial_of_what_it_suggests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = "training.batch_sentences=16"
    suggested = Suggestion("batches are small", f"set {change}", (change,), 2.0)
    monkeypatch.setattr(training_benchmark, "suggestions", lambda *_: [suggested] * 2)
    config = tiny_config()
    report = benchmark_training(config, tiny_data(config, tmp_path), tmp_path / "run", SHORT)
    figures = report.figures
    assert figures.num_updates == 3
    assert sum(phase.share for phase in figures.phases.values()) == pytest.approx(1.0)
    assert 0.0 <= figures.padding_share < 1.0
    assert figures.peak in figures.products
    assert figures.share_of_peak == pytest.approx(
        figures.flop_per_second.median / figures.peak.flop_per_second.median
    )
    [trial] = report.trials
    assert trial.suggestion == suggested
    assert trial.unit == "CPU-second"
    assert trial.ratio is not None
    assert trial.has_helped == (f"set {change}. A trial" in report.conclusion)
    assert not (tmp_path / "run").exists()


def test_the_figures_of_a_training_in_bfloat16_have_their_own_peak(tmp_path: Path) -> None:
    config = tiny_config("runtime.precision=bfloat16")
    short = replace(SHORT, num_trials=0)
    report = benchmark_training(config, tiny_data(config, tmp_path), tmp_path / "run", short)
    assert report.machine == "CPU, 1 thread, bfloat16"


def test_an_update_with_r_drop_needs_twice_the_products(tmp_path: Path) -> None:
    # An update is an epoch, so all updates have the same work.
    settings = "training.batch_sentences=100", "training.accumulate=2", "model.dropout=0.1"
    plain, twice = tiny_config(*settings), tiny_config(*settings, "training.r_drop=1.0")
    data, short = tiny_data(plain, tmp_path), replace(SHORT, num_trials=0)
    once, both = (
        benchmark_training(config, data, tmp_path / "run", short).figures
        for config in (plain, twice)
    )
    assert both.flop_per_target_token == 2 * once.flop_per_target_token
    assert once.batches_per_update == both.batches_per_update == 2
    assert both.target_tokens_per_update == once.target_tokens_per_update
