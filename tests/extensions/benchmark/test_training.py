"""The benchmark of training: each suggestion comes in the situation that it names, and the report has every figure."""

from dataclasses import replace
from pathlib import Path

import pytest

from transformer_cli.extensions.benchmark import measuring, training
from transformer_cli.extensions.benchmark.advice import Suggestion
from transformer_cli.extensions.benchmark.training import (
    benchmark_training,
    training_limit,
    training_suggestions,
)

from .small_benchmarks import (
    AT_ONCE,
    figures,
    machine_facts,
    memory_of,
    situation,
    tiny_config,
    tiny_data,
)

FULL = memory_of(95 * 10**8, 10**10)
GIGABYTE = 10**9


def test_a_balanced_training_gets_no_suggestion() -> None:
    assert training_suggestions(figures(), situation()) == []


def test_the_sentence_names_the_largest_phase_and_the_share_of_the_peak() -> None:
    assert training_limit(figures()) == (
        "Backward takes 60% of an update of 500 ms; the matrix products reach 40% of this machine's peak"
    )


def test_waiting_for_data_is_named() -> None:
    found = figures({"waiting for data": 0.12, "backward": 0.88})
    assert "waiting for data takes 12%: one thread prepares the batches" in training_limit(found)


def test_the_sentence_says_what_other_work_is() -> None:
    assert training_limit(figures({"other": 0.6, "backward": 0.4})).startswith(
        "Other work (Python code of the training loop, copies of batches to the device, "
        "the moving average of the weights, logging) takes 60% of an update of 500 ms; the matrix"
    )


def test_batches_that_did_not_fit_are_named() -> None:
    assert "3 batches did not fit into memory" in training_limit(figures(num_halvings=3))


def test_a_core_is_left_for_the_data_where_threads_take_them_all() -> None:
    waiting = figures({"waiting for data": 0.2, "backward": 0.8})
    busy = situation(machine=machine_facts(num_threads=4, num_cores=4))
    found = [one for one in training_suggestions(waiting, busy) if "waiting" in one.because]
    assert [one.overrides for one in found] == [("runtime.threads=3",)]
    assert found[0].because == "waiting for data takes 20% of an update"
    free = situation(machine=machine_facts(num_threads=4, num_cores=8))
    assert not any("waiting" in one.because for one in training_suggestions(waiting, free))


@pytest.mark.parametrize(
    ("settings", "override"),
    [
        ([], "training.batch_tokens=2000"),
        (["training.batch_tokens=null", "training.batch_sentences=8"], "training.batch_sentences=4"),
        (["training.batch_tokens=null", "training.batch_sentences=1"], "training.batch_sentences=1"),
    ],
)
def test_much_padding_suggests_batches_of_half_the_size(settings: list[str], override: str) -> None:
    [found] = training_suggestions(figures(padding_share=0.23), situation(*settings))
    assert found.because == "padding is 23% of a batch"
    assert found.what.startswith("lower training.batch_")
    assert found.overrides == (override,)
    assert found.expected == pytest.approx(0.885 / 0.77)
    assert training_suggestions(figures(padding_share=0.09), situation(*settings)) == []


def test_unused_memory_of_a_gpu_suggests_larger_batches() -> None:
    on_gpu = situation(
        "runtime.compile=true",
        machine=machine_facts(device="cuda"),
        are_passes_recorded=True,
        num_batches=10_000,
    )
    memory = memory_of(GIGABYTE, 9 * GIGABYTE, 18 * GIGABYTE, 100 * GIGABYTE)
    [found] = training_suggestions(figures(memory=memory, share_of_peak=0.1, busy_share=0.9), on_gpu)
    assert found.because == "18% of the memory is used"
    # 80 gigabytes are 4.4 times as much as 18.
    assert found.overrides == ("training.batch_tokens=18000",)
    assert "raise training.batch_tokens to 18,000" in found.what
    assert found.least_gain > 1.1, "larger updates change the training, so they must gain more"


def test_accumulated_batches_become_fewer_and_larger_so_that_the_update_stays() -> None:
    slow_loop = figures({"other": 0.3, "backward": 0.7}, batches_per_update=8.0)
    [found] = training_suggestions(slow_loop, situation("training.accumulate=8", num_batches=10_000))
    assert found.overrides == ("training.batch_tokens=16384", "training.accumulate=2")
    assert found.least_gain < 1.1


def test_larger_batches_leave_an_update_of_a_given_number_of_tokens_as_it_is() -> None:
    slow_loop = figures({"other": 0.3, "backward": 0.7}, batches_per_update=3.0)
    fixed = situation("training.update_tokens=9000", num_batches=10_000)
    [found] = training_suggestions(slow_loop, fixed)
    assert found.what == (
        "raise training.batch_tokens to 12,000 (an update keeps its size of about 9,000 target tokens)"
    )
    assert found.overrides == ("training.batch_tokens=12000",), "three batches become one"
    assert found.least_gain < 1.1, "the training learns the same"
    one_batch = slow_loop | {"batches_per_update": 1.0}
    assert training_suggestions(one_batch, fixed) == [], "a larger batch would be a larger update"


@pytest.mark.parametrize("size", ["training.accumulate=8", "training.update_tokens=9000"])
def test_a_slow_optimizer_does_not_speak_for_larger_batches_if_the_update_keeps_its_size(
    size: str,
) -> None:
    slow_optimizer = figures({"optimizer": 0.3, "backward": 0.7}, batches_per_update=8.0)
    assert training_suggestions(slow_optimizer, situation(size, num_batches=10_000)) == []


def test_larger_batches_are_not_suggested_where_they_do_not_fit_or_are_the_corpus() -> None:
    slow_optimizer = {"optimizer": 0.3, "backward": 0.7}
    assert training_suggestions(figures(slow_optimizer), situation(num_batches=10_000)) != []
    assert training_suggestions(figures(slow_optimizer, memory=FULL), situation(num_batches=10_000)) == []
    assert training_suggestions(figures(slow_optimizer), situation(num_batches=60)) == []


def test_a_gpu_tries_compiled_layers() -> None:
    on_gpu = situation(machine=machine_facts(device="cuda"))
    found = training_suggestions(figures(busy_share=0.9), on_gpu)
    assert [one.overrides for one in found] == [("runtime.compile=true",)]


def test_a_gpu_that_waits_for_the_cpu_tries_cuda_graphs_first_and_a_busy_one_compiled_layers() -> None:
    on_gpu = situation(machine=machine_facts(device="cuda"))
    waiting, *rest = training_suggestions(figures(busy_share=0.4, share_of_peak=0.03), on_gpu)
    assert waiting.overrides == ("runtime.cuda_graphs=true",)
    assert waiting.because.startswith("the GPU computes only 40% of the time")
    assert waiting.expected == pytest.approx(2.5)
    assert [one.overrides for one in rest] == [("runtime.compile=true",)]
    [busy] = training_suggestions(figures(busy_share=0.97, share_of_peak=0.03), on_gpu)
    assert busy.overrides == ("runtime.compile=true",)
    compiled = on_gpu._replace(are_layers_compiled=True)
    assert training_suggestions(figures(busy_share=0.97), compiled) == []


def test_the_limit_names_both_peaks_and_how_busy_the_gpu_is() -> None:
    told = training_limit(figures(share_of_data_sheet=0.31, busy_share=0.9))
    assert "reach 40% of this machine's peak and 31% of that of its data sheet" in told
    assert "the GPU computes 90% of the time" in told


@pytest.mark.long
def test_all_updates_together_have_the_slow_ones_too(tmp_path: Path) -> None:
    """A median hides compilations and recordings in a few updates."""
    config = tiny_config("training.accumulate=2")
    found = benchmark_training(config, tiny_data(config, tmp_path), tmp_path / "run", AT_ONCE)
    measured = found["figures"]
    highest = measured["target_tokens_per_second"]["high"]
    assert 0.0 < measured["target_tokens_per_second_together"] < 10 * highest
    assert (measured["busy_share"], measured["share_of_data_sheet"]) == (None, None)


def test_cuda_graphs_are_tried_only_where_passes_can_be_recorded() -> None:
    waiting, compiled = figures(busy_share=0.4), "runtime.compile=true"
    on_gpu = machine_facts(device="cuda")
    [found] = training_suggestions(waiting, situation(compiled, machine=on_gpu))
    assert found.overrides == ("runtime.cuda_graphs=true",)
    with_dropped_layers = situation(compiled, "model.layer_dropout=0.1", machine=on_gpu)
    assert training_suggestions(waiting, with_dropped_layers) == []
    assert training_suggestions(waiting, situation(compiled, machine=on_gpu, are_passes_recorded=True)) == []
    assert training_suggestions(waiting, situation()) == [], "a CPU has no CUDA graphs"


SHORT = replace(AT_ONCE, num_turns=2, num_trials=1)


@pytest.fixture(autouse=True)
def _small_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "SIDES", {"cpu": (16, 32)})


@pytest.mark.long
def test_a_report_has_every_figure_and_a_trial_of_what_it_suggests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = "training.batch_sentences=16"
    suggested = Suggestion("batches are small", f"set {change}", (change,), 2.0)
    monkeypatch.setattr(training, "training_suggestions", lambda *_: [suggested] * 2)
    config = tiny_config()
    report = benchmark_training(config, tiny_data(config, tmp_path), tmp_path / "run", SHORT)
    figures = report["figures"]
    assert figures["num_updates"] == 3
    assert sum(phase["share"] for phase in figures["phases"].values()) == pytest.approx(1.0)
    assert 0.0 <= figures["padding_share"] < 1.0
    assert figures["peak"] in figures["products"]
    assert figures["share_of_peak"] == pytest.approx(
        figures["flop_per_second"]["median"] / figures["peak"]["flop_per_second"]["median"]
    )
    [trial] = report["trials"]
    assert trial["suggestion"] == suggested._asdict()
    assert trial["unit"] == "CPU-second"
    assert trial["ratio"] is not None
    has_helped = trial["ratio"] >= suggested.least_gain and trial["low"] > 1.0
    assert has_helped == (f"set {change}. A trial" in report["conclusion"])
    assert not (tmp_path / "run").exists()


@pytest.mark.long
def test_the_figures_of_a_training_in_bfloat16_have_their_own_peak(tmp_path: Path) -> None:
    config = tiny_config("runtime.precision=bfloat16")
    short = replace(SHORT, num_trials=0)
    report = benchmark_training(config, tiny_data(config, tmp_path), tmp_path / "run", short)
    assert report["machine"] == "CPU, 1 thread, bfloat16"


@pytest.mark.long
def test_an_update_with_r_drop_needs_twice_the_products(tmp_path: Path) -> None:
    # An update is an epoch, so all updates have the same work.
    settings = "data.num_pairs=40", "training.batch_sentences=20", "training.accumulate=2", "model.dropout=0.1"
    plain, twice = tiny_config(*settings), tiny_config(*settings, "training.r_drop=1.0")
    data, short = tiny_data(plain, tmp_path), replace(SHORT, num_trials=0)
    once, both = (benchmark_training(config, data, tmp_path / "run", short)["figures"] for config in (plain, twice))
    assert both["flop_per_target_token"] == 2 * once["flop_per_target_token"]
    assert once["batches_per_update"] == both["batches_per_update"] == 2
    assert both["target_tokens_per_update"] == once["target_tokens_per_update"]
