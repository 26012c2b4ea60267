"""Each suggestion comes in the situation that it names, with the numbers of this situation."""

from dataclasses import replace

import pytest

from transformer_cli.extensions.benchmark.measuring.peak_memory import PeakMemory
from transformer_cli.extensions.benchmark.training.training_bottleneck import limit_of, suggestions

from ..small_benchmarks import figures, machine, situation

FULL = PeakMemory(95 * 10**8, 10**10)
GIGABYTE = 10**9


def test_a_balanced_training_gets_no_suggestion() -> None:
    assert suggestions(figures(), situation()) == []


def test_the_sentence_names_the_largest_phase_and_the_share_of_the_peak() -> None:
    assert limit_of(figures()) == (
        "Backward takes 60% of an update of 500 ms; the matrix products reach 40% of this machine's peak"
    )


def test_waiting_for_data_is_named() -> None:
    found = figures({"waiting for data": 0.12, "backward": 0.88})
    assert "waiting for data takes 12%: one thread prepares the batches" in limit_of(found)


def test_the_sentence_says_what_other_work_is() -> None:
    assert limit_of(figures({"other": 0.6, "backward": 0.4})).startswith(
        "Other work (Python code of the training loop, copies of batches to the device, "
        "the moving average of the weights, logging) takes 60% of an update of 500 ms; the matrix"
    )


def test_batches_that_did_not_fit_are_named() -> None:
    assert "3 batches did not fit into memory" in limit_of(figures(num_halvings=3))


def test_a_core_is_left_for_the_data_where_threads_take_them_all() -> None:
    waiting = figures({"waiting for data": 0.2, "backward": 0.8})
    busy = situation(machine=machine(num_threads=4, num_cores=4))
    found = [one for one in suggestions(waiting, busy) if "waiting" in one.because]
    assert [one.overrides for one in found] == [("runtime.threads=3",)]
    assert found[0].because == "waiting for data takes 20% of an update"
    free = situation(machine=machine(num_threads=4, num_cores=8))
    assert not any("waiting" in one.because for one in suggestions(waiting, free))


def test_much_padding_suggests_batches_that_have_less() -> None:
    found = suggestions(figures(padding_share=0.23), situation(padding_at={2048: 0.12, 1024: 0.09}))
    assert [one.because for one in found] == ["padding is 23% of a batch"]
    assert found[0].what == "lower training.batch_tokens to 1,024, which leaves 9%"
    assert found[0].overrides == ("training.batch_tokens=1024",)
    assert found[0].expected == pytest.approx(0.91 / 0.77)


def test_batches_of_sentences_are_replaced_by_batches_of_tokens() -> None:
    by_sentences = situation(batch_setting="training.batch_sentences", padding_at={512: 0.05})
    [found] = suggestions(figures(padding_share=0.3), by_sentences)
    assert found.overrides == ("training.batch_sentences=null", "training.batch_tokens=512")


def test_no_smaller_batch_is_suggested_that_has_as_much_padding() -> None:
    found = suggestions(figures(padding_share=0.23), situation(padding_at={2048: 0.23}))
    assert found == []


def test_unused_memory_of_a_gpu_suggests_larger_batches() -> None:
    on_gpu = situation(
        machine=machine(device="cuda"), num_batches=10_000, fixed_bytes=GIGABYTE,
        is_compiled=True, may_record=False,
    )  # fmt: skip
    memory = PeakMemory(GIGABYTE, 9 * GIGABYTE, 18 * GIGABYTE, 100 * GIGABYTE)
    [found] = suggestions(figures(memory=memory, share_of_peak=0.1), on_gpu)
    assert found.because == "18% of the memory is used"
    # (80 - 1) of (18 - 1) gigabytes are 4.6 times as much.
    assert found.overrides == ("training.batch_tokens=19000",)
    assert "raise training.batch_tokens to 19,000" in found.what
    assert found.least_gain > 1.1, "larger updates change the training, so they must gain more"


def test_accumulated_batches_become_fewer_and_larger_so_that_the_update_stays() -> None:
    slow_loop = figures({"other": 0.3, "backward": 0.7}, batches_per_update=8.0)
    [found] = suggestions(slow_loop, situation(accumulate=8, num_batches=10_000))
    assert found.overrides == ("training.batch_tokens=16384", "training.accumulate=2")
    assert found.least_gain < 1.1


def test_larger_batches_leave_an_update_of_a_given_number_of_tokens_as_it_is() -> None:
    slow_loop = figures({"other": 0.3, "backward": 0.7}, batches_per_update=3.0)
    fixed = situation(update_tokens=9000, num_batches=10_000)
    [found] = suggestions(slow_loop, fixed)
    assert found.what == (
        "raise training.batch_tokens to 12,000 (an update keeps its size of about 9,000 target tokens)"
    )
    assert found.overrides == ("training.batch_tokens=12000",), "three batches become one"
    assert found.least_gain < 1.1, "the training learns the same"
    one_batch = replace(slow_loop, batches_per_update=1.0)
    assert suggestions(one_batch, fixed) == [], "a larger batch would be a larger update"


@pytest.mark.parametrize("sizes", [{"accumulate": 8}, {"update_tokens": 9000}])
def test_a_slow_optimizer_does_not_speak_for_larger_batches_if_the_update_keeps_its_size(
    sizes: dict[str, int],
) -> None:
    slow_optimizer = figures({"optimizer": 0.3, "backward": 0.7}, batches_per_update=8.0)
    assert suggestions(slow_optimizer, situation(num_batches=10_000, **sizes)) == []


def test_larger_batches_are_not_suggested_where_they_do_not_fit_or_are_the_corpus() -> None:
    slow_optimizer = {"optimizer": 0.3, "backward": 0.7}
    assert suggestions(figures(slow_optimizer), situation(num_batches=10_000)) != []
    assert suggestions(figures(slow_optimizer, memory=FULL), situation(num_batches=10_000)) == []
    assert suggestions(figures(slow_optimizer), situation(num_batches=60)) == []


def test_a_gpu_tries_compiled_layers() -> None:
    on_gpu = situation(machine=machine(device="cuda"))
    assert [one.overrides for one in suggestions(figures(), on_gpu)] == [("runtime.compile=true",)]


def test_a_gpu_that_is_far_below_its_peak_tries_cuda_graphs() -> None:
    slow = figures(share_of_peak=0.03)
    on_gpu = situation(machine=machine(device="cuda"), is_compiled=True)
    [found] = suggestions(slow, on_gpu)
    assert found.overrides == ("runtime.cuda_graphs=true",)
    assert found.because.startswith("the matrix products reach only 3% of the peak")
    assert suggestions(figures(share_of_peak=0.3), on_gpu) == []
    assert suggestions(slow, replace(on_gpu, may_record=False)) == []
    assert suggestions(slow, situation()) == [], "a CPU has no CUDA graphs"
