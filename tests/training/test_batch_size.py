"""`training.batch_tokens: auto`: the largest batch that a machine can train on."""

import logging
import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from transformer_cli.config import Config, load_config
from transformer_cli.data.order import Budget, EpochOrder
from transformer_cli.data.preparation import prepare_data
from transformer_cli.data.updates import Batch, training_pairs
from transformer_cli.process.device import prepare_machine
from transformer_cli.process.errors import ConfigError, TryAgainError
from transformer_cli.training import batch_size
from transformer_cli.training.batch_size import (
    largest_size,
    longest_batch,
    target_tokens_per_cell,
    with_fitting_batches,
    with_recorded_batches,
)
from transformer_cli.training.process_group import ALONE, Processes
from transformer_cli.training.run import train

CONFIG = """\
name: a
data: {source: phrasebook, num_pairs: 200}
model: {d_model: 16, num_heads: 2, d_ff: 32, encoder_layers: 1, decoder_layers: 1, dropout: 0.1}
training: {max_steps: 6, batch_tokens: auto, update_tokens: 900, warmup_steps: 2, log_every: 2, validate_every: 6, save_every: 3, best_metric: loss}
validation: {max_sentences: 4, scores: [bleu], num_samples: 0}
decoding: {max_length: 8}
runtime: {device: cpu, precision: float32, threads: 1}
"""


@pytest.fixture
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text(CONFIG, encoding="utf-8")
    # The machine of the tests is busy, so the speed says nothing.
    monkeypatch.setattr(batch_size, "MIN_GAIN", -1.0)
    monkeypatch.setattr(batch_size, "SMALLEST", 64)
    return tmp_path / "a.yaml"


def weights_of(name: str, step: int) -> dict[str, torch.Tensor]:
    return load_file(Path(f"runs/{name}/checkpoints/step-{step:08}/model.safetensors"))


# --- the search ---


@given(st.integers(512, 200_000), st.integers(512, 200_000))
def test_the_largest_size_that_fits_is_found_with_a_margin(limit: int, most: int) -> None:
    tried = []

    def fits(size: int) -> float | None:
        tried.append(size)
        return None if size > limit else 1.0

    found = largest_size(fits, smallest=512, most=most, min_gain=None)
    assert max(tried) <= most
    if most <= limit:
        assert found == most
    else:
        assert 0.9 * limit * 15 / 16 - 2 <= found <= 0.9 * limit


def test_a_size_that_is_not_faster_is_not_taken() -> None:
    """Half of the largest speed is reached at 1,000 tokens; doubling gains 5 % up to about 9,000."""
    speeds = {size: size / (size + 1000) for size in (512 * 2**n for n in range(9))}
    found = largest_size(speeds.__getitem__, smallest=512, most=131_072, min_gain=0.05)
    gains = {size: speeds[2 * size] / speeds[size] - 1 for size in list(speeds)[:-1]}
    assert gains[found] < 0.05 <= gains[found // 2]


def test_where_nothing_fits_the_error_says_what_to_do() -> None:
    with pytest.raises(TryAgainError, match="too small for a batch of 600 tokens") as refused:
        largest_size(lambda size: None, smallest=600, most=1000, min_gain=None)
    assert "smaller model" in str(refused.value)


def test_a_trial_holds_nothing_but_the_longest_sentences() -> None:
    batch = longest_batch(1000, 30, (50, 70))
    assert batch.source_ids.shape == batch.target_ids.shape == (33, 30)
    assert batch.num_cells == batch.num_target_tokens == 990
    assert 4 <= int(batch.source_ids.min()) <= int(batch.source_ids.max()) < 50
    assert 50 <= int(batch.target_ids.max()) < 70
    assert longest_batch(10, 30, (50, 70)).target_ids.shape == (1, 30), "one pair at least"


def test_the_density_is_target_tokens_by_positions() -> None:
    def lengths(indices: Any) -> Any:
        return indices * 0 + 10, indices * 0 + 6

    assert target_tokens_per_cell(EpochOrder(lengths, [50], [1.0], Budget(tokens=100), 1)) == 0.6


# --- in a run ---


@pytest.mark.heavy
def test_the_number_is_recorded_and_the_run_is_the_one_that_the_number_gives(
    config_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """So the trial changes neither weights nor optimizer nor random numbers."""
    caplog.set_level(logging.INFO, logger="transformer_cli")
    train(load_config(config_file))
    number = load_config("runs/a/config.yaml").training.batch_tokens
    assert isinstance(number, int)
    [line] = [line for line in caplog.messages if "batch_tokens: auto" in line]
    assert f"auto is {number:,} on this machine" in line
    assert "an update of 900 target tokens has about" in line
    train(load_config(config_file, ["name=b", f"training.batch_tokens={number}"]))
    first, second = weights_of("a", 6), weights_of("b", 6)
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.heavy
def test_a_resumed_run_keeps_the_number_although_the_machine_is_another(
    config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(load_config(config_file))
    train(load_config(config_file, ["name=b", "training.max_steps=3"]))
    number = load_config("runs/b/config.yaml").training.batch_tokens
    monkeypatch.setattr(batch_size, "free_bytes", lambda device: 1)
    train(load_config(config_file, ["name=b"]))
    assert load_config("runs/b/config.yaml").training.batch_tokens == number
    first, second = weights_of("a", 6), weights_of("b", 6)
    assert all(torch.equal(first[name], second[name]) for name in first)


def found_where(config_file: Path, name: str) -> int:
    train(load_config(config_file, [f"name={name}", "training.max_steps=1"]))
    number = load_config(f"runs/{name}/config.yaml").training.batch_tokens
    assert isinstance(number, int)
    return number


def tried_sizes(monkeypatch: pytest.MonkeyPatch, first: Callable[[int], None] = lambda size: None) -> list[int]:
    """The sizes for which a batch will be made, after a call of `first`."""
    sizes: list[int] = []

    def noted(size: int, *others: Any) -> Any:
        sizes.append(size)
        first(size)
        return longest_batch(size, *others)

    monkeypatch.setattr(batch_size, "longest_batch", noted)
    return sizes


@pytest.mark.heavy
def test_a_cpu_with_little_memory_gets_a_smaller_number(config_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = found_where(config_file, "large")
    sizes = tried_sizes(monkeypatch)
    monkeypatch.setattr(batch_size, "free_bytes", lambda device: 2**21)
    small = found_where(config_file, "small")
    assert small <= max(sizes) < large, "a size that may not fit is not even tried"


@pytest.mark.long
def test_each_batch_of_a_trial_has_the_size_that_is_tried_and_the_longest_sentences(
    config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes: list[tuple[int, ...]] = []
    made = batch_size.longest_batch

    def noted(*arguments: Any) -> Batch:
        batch = made(*arguments)
        shapes.append(tuple(batch.target_ids.shape))
        return batch

    monkeypatch.setattr(batch_size, "longest_batch", noted)
    found_where(config_file, "a")
    assert len({length for _, length in shapes}) == 1, "of the longest sentence"
    sizes = [number * length for number, length in dict.fromkeys(shapes)]
    assert len(sizes) > 1
    assert sizes == sorted(sizes)
    assert 32 < sizes[0] <= 64, "the smallest size"
    assert all(later <= 2.2 * size for size, later in pairwise(sizes)), "doubled, at most"


@pytest.mark.heavy
def test_an_error_out_of_memory_ends_the_search(config_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def limited(size: int) -> None:
        if size > 200:
            raise torch.OutOfMemoryError("CUDA out of memory")

    tried_sizes(monkeypatch, limited)
    assert 80 <= found_where(config_file, "a") <= 180


@pytest.mark.long
def test_another_error_is_no_lack_of_memory(config_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(size: int) -> None:
        raise RuntimeError("a mistake in a formula")

    tried_sizes(monkeypatch, broken)
    with pytest.raises(RuntimeError, match="a mistake in a formula"):
        found_where(config_file, "a")


class OneOfTwo(Processes):
    """A process that trains with another one, which has found 320."""

    def maxima(self, *numbers: int) -> list[int]:
        return [max(number, -320) for number in numbers]


@pytest.mark.long
def test_two_processes_take_the_smaller_number_and_share_out_evenly(config_file: Path, tmp_path: Path) -> None:
    config = load_config(config_file)
    data, machine = prepare_data(config, tmp_path / "data"), prepare_machine(config.runtime)
    found = [
        with_fitting_batches(config, data, machine, processes).training.batch_tokens
        for processes in (ALONE, OneOfTwo(0, 2))
    ]
    alone, of_two = map(int, map(str, found))
    assert of_two <= 320 < alone
    _, order = training_pairs(data.train, data.tokenizers, config)
    most = math.ceil(900 / target_tokens_per_cell(order))
    assert math.ceil(most / of_two) % 2 == 0


def test_only_auto_takes_the_recorded_number(config_file: Path) -> None:
    def config(number: int | str) -> Config:
        return load_config(config_file, [f"training.batch_tokens={number}"])

    assert with_recorded_batches(config("auto"), config(500)).training.batch_tokens == 500
    assert with_recorded_batches(config(400), config(500)).training.batch_tokens == 400
    assert with_recorded_batches(config("auto"), config("auto")).training.batch_tokens == "auto"


def test_auto_without_the_size_of_an_update_is_refused(config_file: Path) -> None:
    with pytest.raises(ConfigError, match="auto needs update_tokens") as refused:
        load_config(config_file, ["training.update_tokens=null"])
    assert "give training.update_tokens" in str(refused.value)
    with pytest.raises(ConfigError, match="either accumulate or update_tokens"):
        load_config(config_file, ["training.accumulate=2"])
