"""Which sentences stand in training, validation and test.

No split has one of the sentences of everyday_sentences.tsv, with which benchmarks/everyday_sentences.py
measures what a run has learnt: people wrote them without a look at the grammar.

No training sentence has a combination (pattern, lemma) for which `is_held_out` is true; every
validation and test sentence has at least one. These two splits depend neither on the seed nor on
the size of the training split, so that scores of different runs can be compared.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import accumulate, islice
from operator import itemgetter
from typing import Literal

from transformer_cli.phrasebook.grammar.draw import DeadEndError, RandomDraw, is_held_out
from transformer_cli.phrasebook.patterns.all_patterns import PATTERNS
from transformer_cli.phrasebook.words import lexicon
from transformer_cli.phrasebook.words.english import contracted

PACKAGE = "transformer_cli.phrasebook"
Split = Literal["train", "validation", "test"]

NUM_VALIDATION_PAIRS = 1_000
NUM_TEST_PAIRS = 1_200
HELD_OUT_SEED = 20_170_612
# Validation and test have new combinations, but no unknown words: each word occurs at least
# MIN_FAMILIAR_COUNT times in NUM_FAMILIAR_PAIRS sentences drawn for training.
NUM_FAMILIAR_PAIRS = 30_000
MIN_FAMILIAR_COUNT = 3
WORD = re.compile(r"\w+")
# After this many repeated sentences in a row, generation gives up.
MAX_REPEATED_DRAWS = 200_000


@dataclass(frozen=True, slots=True)
class PhrasebookPair:
    """An English sentence and its Italian translation.

    pattern: the name of the sentence pattern.
    lemmas: the content words that fill the pattern, each once.
    """

    source: str
    target: str
    pattern: str
    lemmas: tuple[str, ...]


def generate_split(split: Split, *, num_pairs: int, seed: int) -> Iterator[PhrasebookPair]:
    """The pairs of a split; equal arguments give equal pairs on every machine.

    Args:
        num_pairs: size of the training split; the other splits have a fixed size.
        seed: seeds the training split; the other splits are always the same.

    Raises:
        ValueError: the grammar cannot make `num_pairs` distinct pairs.
    """
    if split == "test":
        yield from _held_out_pairs()[:NUM_TEST_PAIRS]
    elif split == "validation":
        yield from _held_out_pairs()[NUM_TEST_PAIRS:]
    else:
        yield from _training_pairs(num_pairs, seed)


def _draws(seed: int, *, is_training: bool) -> Iterator[PhrasebookPair]:
    """An endless stream of pairs, in which a pair may occur again."""
    draw = RandomDraw(seed, is_training=is_training)
    bounds = list(accumulate(pattern.weight for pattern in PATTERNS))
    while True:
        pattern = PATTERNS[bisect(bounds, draw.position(bounds[-1]))]
        draw.start(pattern.name)
        try:
            source, target = pattern.build(draw)
        except DeadEndError:
            continue
        if len(set(draw.lemmas)) < len(draw.lemmas):
            continue  # a word occurs twice: "The dog is behind the dog."
        if source.lower() in _kept_out():
            continue
        yield PhrasebookPair(source, target, pattern.name, tuple(draw.lemmas))


def everyday_sentences() -> dict[str, list[str]]:
    """English sentences that no split contains, each with the Italian ones that are right."""
    text = files(PACKAGE).joinpath("everyday_sentences.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    return {row[0]: row[1:] for row in rows}


def written_alike(english: str) -> str:
    """The sentence with contractions and without capital letters: "What is" and "What's" are one."""
    if not english.startswith("I "):
        english = english[0].lower() + english[1:]
    return contracted(english).lower()


@cache
def _kept_out() -> frozenset[str]:
    """Each sentence in lower case, with and without contractions: patterns use all or none."""
    sentences = everyday_sentences()
    return frozenset(x.lower() for x in sentences) | frozenset(map(written_alike, sentences))


def _words(text: str) -> list[str]:
    return WORD.findall(text)


@cache
def _familiar_words() -> tuple[frozenset[str], frozenset[str]]:
    """The English and the Italian words that are frequent enough in training sentences."""
    counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for pair in islice(_draws(HELD_OUT_SEED, is_training=True), NUM_FAMILIAR_PAIRS):
        counts[0].update(_words(pair.source))
        counts[1].update(_words(pair.target))
    english, italian = (
        frozenset(word for word, count in side.items() if count >= MIN_FAMILIAR_COUNT)
        for side in counts
    )
    return english, italian


@cache
def _held_out_pairs() -> tuple[PhrasebookPair, ...]:
    pairs: list[PhrasebookPair] = []
    sources: set[str] = set()
    targets: set[str] = set()
    english, italian = _familiar_words()
    for pair in _draws(HELD_OUT_SEED, is_training=False):
        if pair.source in sources or pair.target in targets:
            continue
        is_familiar = english.issuperset(_words(pair.source)) and italian.issuperset(
            _words(pair.target)
        )
        if is_familiar and any(is_held_out(pair.pattern, lemma) for lemma in pair.lemmas):
            sources.add(pair.source)
            targets.add(pair.target)
            pairs.append(pair)
        if len(pairs) == NUM_TEST_PAIRS + NUM_VALIDATION_PAIRS:
            break
    return tuple(pairs)


def _training_pairs(num_pairs: int, seed: int) -> Iterator[PhrasebookPair]:
    sources = {pair.source for pair in _held_out_pairs()}
    targets = {pair.target for pair in _held_out_pairs()}
    num_made = num_repeated = 0
    if num_pairs <= 0:
        return
    for pair in _draws(seed, is_training=True):
        if pair.source in sources or pair.target in targets:
            num_repeated += 1
            if num_repeated == MAX_REPEATED_DRAWS:
                raise ValueError(
                    f"the phrasebook was asked for {num_pairs} training pairs, but found only "
                    f"{num_made} distinct ones; ask for fewer"
                )
            continue
        num_repeated = 0
        sources.add(pair.source)
        yield pair
        num_made += 1
        if num_made == num_pairs:
            return


def fingerprint() -> str:
    """SHA-256, in hexadecimal, of the code and the tables; if it changes, sentences may differ."""
    digest = hashlib.sha256()
    for path, file in sorted(_files_below(files(PACKAGE)), key=itemgetter(0)):
        if path.endswith((".py", ".tsv")):
            digest.update(path.encode() + b"\0")
            digest.update(file.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return digest.hexdigest()


def _files_below(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, Traversable]]:
    """The files in a folder and its subfolders, each with its relative path."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files_below(entry, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name, entry


def count_patterns_and_lemmas() -> tuple[int, int]:
    """How many sentence patterns and how many lemmas the phrasebook has."""
    tables_of_words = (
        lexicon.NOUNS,
        lexicon.ADJECTIVES,
        lexicon.VERBS,
        lexicon.ADVERBS,
        lexicon.NAMES,
    )
    return len(PATTERNS), sum(len(words) for words in tables_of_words)
