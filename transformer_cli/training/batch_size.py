"""The largest batches that fit into memory, found by trial, for `training.batch_tokens: auto`.

A second model, which is deleted afterwards, trains on random ids; each sentence is as long as the longest one of the
corpus. Each trial doubles the size of the batch.
On a GPU the size is doubled until memory is too small; then bisection finds the limit. On a CPU it is doubled until
larger batches are not faster, or until the next batch would not fit into free memory: Linux kills a process that uses
too much memory, without an error that could be caught.
"""

import gc
import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from transformer_cli.acceleration import accelerate
from transformer_cli.config import Config, ModelConfig
from transformer_cli.data.order import EpochOrder
from transformer_cli.data.preparation import PreparedData
from transformer_cli.data.updates import Batch, draws_ids_anew, training_pairs
from transformer_cli.model import Transformer
from transformer_cli.process.device import Machine, free_bytes, wait_for
from transformer_cli.process.errors import TryAgainError, is_out_of_memory
from transformer_cli.text import Tokenizer
from transformer_cli.text.normalization import SPECIALS
from transformer_cli.training.loop import build_objective
from transformer_cli.training.optimizers import Optimizer
from transformer_cli.training.process_group import ALONE, Processes

logger = logging.getLogger(__name__)


SMALLEST = 512
"""Tokens of the first trial, unless a sentence is longer."""
MIN_GAIN = 0.05
"""On a CPU, the speed must grow by this share when the size is doubled."""
SAFE_SHARE = 0.9
"""This share of the largest size that fits is used, because batches have different shapes and memory is fragmented."""
ROOM = 2.0
"""On a CPU, a backward pass may need this many times the bytes that the forward pass keeps for it."""
PAIRS_AT_ONCE = 1_000_000


def with_fitting_batches(config: Config, data: PreparedData, machine: Machine, processes: Processes = ALONE) -> Config:
    """The config with a number in place of `training.batch_tokens: auto`.

    Weights, optimizer and random numbers of the training are not touched. Several processes take the smallest number
    that any of them has found.

    Raises:
        TryAgainError: not even the smallest batch fits into memory.
    """
    training = config.training
    assert training.update_tokens is not None
    _, order = training_pairs(data.train, data.tokenizers, config)
    density = target_tokens_per_cell(order)
    most = math.ceil(training.update_tokens / density)
    with _trial(config, data, machine) as trial:
        fitting = largest_size(
            trial.tokens_per_second,
            smallest=min(max(SMALLEST, trial.length), most),
            most=most,
            min_gain=MIN_GAIN if machine.device.type == "cpu" else None,
        )
    fitting = -processes.maxima(-fitting)[0]
    num_batches = processes.size * math.ceil(most / fitting / processes.size)
    batch_tokens = math.ceil(most / num_batches)
    logger.info(
        "training.batch_tokens: auto is %s on this machine: an update of %s target tokens has about %d %s of this size",
        f"{batch_tokens:,}",
        f"{training.update_tokens:,}",
        num_batches,
        "batch" if num_batches == 1 else "batches",
    )
    return _with_batch_tokens(config, batch_tokens)


def with_recorded_batches(config: Config, recorded: Config) -> Config:
    """The config of a resumed run, with the number that the run began with in place of auto."""
    number = recorded.training.batch_tokens
    is_open = config.training.batch_tokens == "auto" and isinstance(number, int)
    return _with_batch_tokens(config, number) if is_open else config


def _with_batch_tokens(config: Config, number: object) -> Config:
    training = config.training.model_copy(update={"batch_tokens": number})
    return config.model_copy(update={"training": training})


def target_tokens_per_cell(order: EpochOrder) -> float:
    """Target tokens divided by positions on the longer side, padding included; measured on some batches."""
    num_tokens = num_cells = 0
    for batch in order.pool_batches(0, 0)[:1000]:
        source, target = order.lengths_of(batch, 0)
        num_tokens += int(target.sum())
        num_cells += len(batch) * int(max(source.max(), target.max()))
    return num_tokens / num_cells


def largest_size(
    tokens_per_second: Callable[[int], float | None], *, smallest: int, most: int, min_gain: float | None
) -> int:
    """The largest size of a batch that fits, in tokens.

    Args:
        tokens_per_second: measures the speed with batches of a size; None if memory is too small.
        smallest: the first size.
        most: the largest size to try.
        min_gain: stop where doubling the size raises the speed by a smaller share than this; None: never.

    Raises:
        TryAgainError: the smallest size does not fit.
    """
    size = smallest
    speed = tokens_per_second(size)
    if speed is None:
        raise TryAgainError(
            f"training.batch_tokens: auto: memory is too small for a batch of {size} tokens",
            hint="use a smaller model or a smaller model.max_length, or close other programs",
        )
    while size < most:
        larger = min(2 * size, most)
        found = tokens_per_second(larger)
        if found is None:
            return int(SAFE_SHARE * _largest_between(tokens_per_second, size, larger))
        if min_gain is not None and found < (1.0 + min_gain) * speed:
            return size
        size, speed = larger, found
    return size


def _largest_between(tokens_per_second: Callable[[int], float | None], fitting: int, too_large: int) -> int:
    """Bisect until the two sizes differ by a sixteenth."""
    while too_large - fitting > max(1, fitting // 16):
        middle = (fitting + too_large) // 2
        if tokens_per_second(middle) is None:
            too_large = middle
        else:
            fitting = middle
    return fitting


@dataclass(slots=True)
class _Trial:
    """A second model, which trains on random sentences that are as long as the longest one of the corpus."""

    model: Transformer
    optimizer: Optimizer
    config: Config
    machine: Machine
    length: int
    vocab_sizes: tuple[int, int]
    kept_bytes_per_token: float = 0.0

    def tokens_per_second(self, size: int) -> float | None:
        """Train on a batch of at most so many tokens, or of one pair; None if memory is too small."""
        device = self.machine.device
        free = free_bytes(device) if device.type == "cpu" else None
        if free is not None and ROOM * size * self.kept_bytes_per_token > SAFE_SHARE * free:
            return None
        try:
            seconds = [self._timed_update(size) for _ in range(3 if device.type == "cpu" else 2)]
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        else:
            # The first update also allocates memory and chooses kernels.
            return size / min(seconds[1:])
        # After the `except` block the exception is gone, and with it the last reference to the tensors.
        self.optimizer.zero_grad()
        gc.collect()
        torch.cuda.empty_cache()
        return None

    def _timed_update(self, size: int) -> float:
        batch = longest_batch(size, self.length, self.vocab_sizes).to(self.machine.device)
        wait_for(self.machine.device)
        started_at = time.perf_counter()
        kept: dict[int, int] = {}

        def count(tensor: Tensor) -> Tensor:
            storage = tensor.untyped_storage()
            kept[storage.data_ptr()] = storage.nbytes()
            return tensor

        self.optimizer.zero_grad()
        objective = build_objective(self.config.training, self.vocab_sizes[1], self.machine.device)
        counting = torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor)
        with counting, self.machine.autocast():
            sums = objective(self.model, batch)
        (sums.objective / batch.num_target_tokens).backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step_if(torch.isfinite(norm))
        wait_for(self.machine.device)
        self.kept_bytes_per_token = sum(kept.values()) / batch.num_cells
        return time.perf_counter() - started_at


@contextmanager
def _trial(config: Config, data: PreparedData, machine: Machine) -> Iterator[_Trial]:
    source_size, target_size = data.source_tokenizer.vocab_size, data.target_tokenizer.vocab_size
    devices = [machine.device] if machine.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        model = accelerate(Transformer(config.model, source_size, target_size), machine.device)
        model.to(machine.device)
        model.train()
        optimizer = Optimizer(model, config.training)
        length = _longest_side(config.model, data, config)
        trial = _Trial(model, optimizer, config, machine, length, (source_size, target_size))
        del model, optimizer
        try:
            yield trial
        finally:
            del trial.model, trial.optimizer  # the caller still has the trial itself
            gc.collect()
            torch.cuda.empty_cache()


def _longest_side(model: ModelConfig, data: PreparedData, config: Config) -> int:
    """The number of tokens of the longest side of a training pair."""
    training = config.training
    if draws_ids_anew(training):
        return model.max_length
    longest = 1
    for start in range(0, len(data.train), PAIRS_AT_ONCE):
        indices = np.arange(start, min(start + PAIRS_AT_ONCE, len(data.train)), dtype=np.int64)
        longest = max(longest, *(int(side.max()) for side in data.train.lengths(indices)))
    return longest


def longest_batch(size: int, length: int, vocab_sizes: tuple[int, int]) -> Batch:
    """Random pairs with `length` tokens on each side: as many as fit into `size` tokens, but at least one."""
    num_pairs = max(1, size // length)
    source, target = (
        torch.randint(len(SPECIALS), max(vocab, len(SPECIALS) + 1), (num_pairs, length)) for vocab in vocab_sizes
    )
    return Batch(
        source_ids=source,
        source_mask=torch.ones_like(source, dtype=torch.bool),
        decoder_input_ids=target.roll(1, dims=1),
        target_ids=target,
        num_source_tokens=source.numel(),
        num_target_tokens=target.numel(),
        pad_id=Tokenizer.pad_id,
    )
