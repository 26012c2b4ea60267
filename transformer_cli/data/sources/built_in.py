"""The corpora that come with the tool: the English-Italian phrasebook, and synthetic tasks whose symbols are numbers."""

import lzma
import random
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib.resources import files
from io import TextIOWrapper
from itertools import dropwhile, islice, takewhile

from transformer_cli.config import SequencesData, SplitName
from transformer_cli.data.pairs import SentencePair
from transformer_cli.process.errors import ConfigError

# The built-in English-Italian corpus: a compressed table of sentence pairs in the package.
#
# A grammar made the table once; docs/phrasebook.md says how. Each row has the split, the English
# sentence and its Italian translation. The rows of a split stand together, in the order in which they are read.


NUM_TRAINING_PAIRS = 60_000

# SHA-256 of the grammar from which the table comes. It is part of the fingerprint of every run that was
# trained on these pairs, also of those for which the grammar still made them; another table needs another one.
_GRAMMAR = "4abe7e7fb529cfab68626bc59048d267b696c85092a7a6170d8de46d08d6415a"
_SEED = 1  # with which the grammar made the training pairs


def read_phrasebook(
    split: SplitName, num_pairs: int = NUM_TRAINING_PAIRS
) -> Iterator[SentencePair]:
    """The pairs of a split, the same for every run.

    Args:
        num_pairs: size of the training split: its first pairs. The other splits have a fixed size.

    Raises:
        ConfigError: the table has fewer training pairs.
    """
    if split == "train":
        _require_pairs(num_pairs)
        return islice(_rows(split), num_pairs)
    return _rows(split)


def phrasebook_fingerprint(num_pairs: int) -> str:
    """SHA-256 that says which training pairs are read.

    Raises:
        ConfigError: the table has fewer training pairs.
    """
    _require_pairs(num_pairs)
    return sha256(f"{_GRAMMAR} {num_pairs} {_SEED}".encode()).hexdigest()


def _require_pairs(num_pairs: int) -> None:
    if num_pairs > NUM_TRAINING_PAIRS:
        raise ConfigError(
            f"data.num_pairs: the built-in corpus has {NUM_TRAINING_PAIRS:,} training pairs, found {num_pairs:,}",
            hint=f"set data.num_pairs to {NUM_TRAINING_PAIRS} or less, or train on a corpus of your own: "
            "tfm init FILE writes a config for it",
        )


def _rows(split: SplitName) -> Iterator[SentencePair]:
    table = files("transformer_cli.data.sources").joinpath("phrasebook.tsv.xz")
    with table.open("rb") as file, lzma.open(file) as content:
        lines = TextIOWrapper(content, encoding="utf-8", newline="\n")
        rows = (line.rstrip("\n").split("\t") for line in lines)
        from_split = dropwhile(lambda row: row[0] != split, rows)
        for _, source, target in takewhile(lambda row: row[0] == split, from_split):
            yield SentencePair(source, target)


# Synthetic tasks, whose symbols are numbers.


NUM_HELD_OUT_PAIRS = 1000
NUM_PER_LENGTH = 100

_VERSION = 1  # to be raised when a seed gives other pairs than before
_TARGETS: dict[str, Callable[[list[str]], list[str]]] = {
    "copy": list,
    "drop-first": lambda symbols: symbols[1:],
    "reverse": lambda symbols: symbols[::-1],
    "sort": lambda symbols: sorted(symbols, key=int),
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
    lengths = range(data.min_length, data.max_length + 1)
    first = ["1"] if data.task == "drop-first" else []
    symbols = [str(symbol) for symbol in range(1 + len(first), data.num_symbols + 1)]
    for _ in range(data.num_pairs if split == "train" else NUM_HELD_OUT_PAIRS):
        while True:
            words = [*first, *numbers.choices(symbols, k=numbers.choice(lengths) - len(first))]
            source = " ".join(words)
            if _share(source) in share:
                break
        yield SentencePair(source, " ".join(_TARGETS[data.task](words)))


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


def sequences_fingerprint(data: SequencesData, *, seed: int) -> str:
    """SHA-256 that changes whenever the generated pairs do."""
    return sha256(f"{_VERSION} {data.num_pairs} {_seed(data, 'train', seed)}".encode()).hexdigest()


def _seed(data: SequencesData, split: str, seed: int) -> int:
    settings = (data.task, data.num_symbols, data.min_length, data.max_length)
    digest = sha256(f"{seed} {split} {settings}".encode()).digest()
    return int.from_bytes(digest[:8], "big")


def _splits_are_apart(data: SequencesData) -> bool:
    """Whether there are enough different sequences for each split to have its own."""
    num_choices, length = data.num_symbols, data.max_length
    if data.task == "drop-first":
        num_choices, length = num_choices - 1, length - 1
    return data.task != "memorise" and num_choices**length >= _NUM_SHARES * NUM_HELD_OUT_PAIRS


def _share(source: str) -> int:
    return int.from_bytes(sha256(source.encode()).digest()[:8], "big") % _NUM_SHARES
