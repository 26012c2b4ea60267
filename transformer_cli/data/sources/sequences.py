"""The synthetic tasks copy, drop-first, reverse, sort and memorise; their symbols are numbers."""

import random
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import islice

from transformer_cli.config import SequencesData, SplitName
from transformer_cli.data.pairs import SentencePair

NUM_HELD_OUT_PAIRS = 1000
NUM_PER_LENGTH = 100

_VERSION = 1  # to be raised when a seed gives other pairs than before
_TARGETS: dict[str, Callable[[list[int]], list[int]]] = {
    "copy": list,
    "drop-first": lambda symbols: symbols[1:],
    "reverse": lambda symbols: symbols[::-1],
    "sort": sorted,
    "memorise": list,
}
# The hash of a sequence decides its split: of 20 shares, validation and test have one each.
_NUM_SHARES = 20
_SHARES = {"validation": range(1), "test": range(1, 2), "train": range(2, _NUM_SHARES)}


def generate_sequences(
    data: SequencesData, split: SplitName, *, seed: int
) -> Iterator[SentencePair]:
    """Yield random sequences and their correct answers; the same seed gives the same pairs.

    The training split has no held-out sequence, unless there are too few different sequences. In
    drop-first every source begins with the symbol 1, as in the tutorial that defines the task.
    In memorise, all splits have the same pairs.
    """
    if data.task == "memorise":
        split = "train"
    numbers = random.Random(_seed(data, split, seed))
    share = _SHARES[split] if _splits_are_apart(data) else range(_NUM_SHARES)
    for _ in range(data.num_pairs if split == "train" else NUM_HELD_OUT_PAIRS):
        symbols = _draw(data, numbers)
        while _share(symbols) not in share:
            symbols = _draw(data, numbers)
        yield SentencePair(_text(symbols), _text(_TARGETS[data.task](symbols)))


def sequences_of_length(data: SequencesData, length: int, *, seed: int) -> list[SentencePair]:
    """100 test pairs with sources of `length` symbols; the same seed gives the same pairs.

    They do not occur in training, unless there are too few different sequences. In memorise, they
    are the training pairs of this length, however many these are.
    """
    if data.task == "memorise":
        pairs = generate_sequences(data, "train", seed=seed)
        return [pair for pair in pairs if len(pair.source.split()) == length]
    of_length = data.model_copy(update={"min_length": length, "max_length": length})
    return list(islice(generate_sequences(of_length, "test", seed=seed), NUM_PER_LENGTH))


def fingerprint(data: SequencesData, *, seed: int) -> str:
    """SHA-256 that changes whenever the generated pairs do."""
    return sha256(f"{_VERSION} {data.num_pairs} {_seed(data, 'train', seed)}".encode()).hexdigest()


def _seed(data: SequencesData, split: str, seed: int) -> int:
    settings = (data.task, data.num_symbols, data.min_length, data.max_length)
    digest = sha256(f"{seed} {split} {settings}".encode()).digest()
    return int.from_bytes(digest[:8], "big")


def _draw(data: SequencesData, numbers: random.Random) -> list[int]:
    length = numbers.randint(data.min_length, data.max_length)
    if data.task == "drop-first":
        return [1, *numbers.choices(range(2, data.num_symbols + 1), k=length - 1)]
    return numbers.choices(range(1, data.num_symbols + 1), k=length)


def _splits_are_apart(data: SequencesData) -> bool:
    """Whether there are enough different sequences for each split to have its own."""
    num_choices, length = data.num_symbols, data.max_length
    if data.task == "drop-first":
        num_choices, length = num_choices - 1, length - 1
    return data.task != "memorise" and num_choices**length >= _NUM_SHARES * NUM_HELD_OUT_PAIRS


def _share(symbols: list[int]) -> int:
    return int.from_bytes(sha256(_text(symbols).encode()).digest()[:8], "big") % _NUM_SHARES


def _text(symbols: list[int]) -> str:
    return " ".join(map(str, symbols))
