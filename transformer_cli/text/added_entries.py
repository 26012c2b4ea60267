"""Entries that are added to the vocabulary of a tokenizer for new texts; the old entries keep their ids."""

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from transformer_cli.text.normalization import SPECIALS
from transformer_cli.text.sentencepiece_model import library_parts, with_control_symbols
from transformer_cli.text.tokenizer import Tokenizer
from transformer_cli.text.tokenizer_file import (
    BYTE_TOKENS,
    MAX_ENTRIES,
    TokenizerParts,
    tokenizer_errors_explained,
)
from transformer_cli.text.vocabulary import MAX_LEARNED_CHARACTERS

MIN_MERGE_FREQUENCY = 2
"""A merge that occurs once is not worth an entry, as in the learning of a new vocabulary."""
_FIXED = frozenset({*SPECIALS, *BYTE_TOKENS})

Pair = tuple[str, str]


def with_added_entries(
    tokenizer: Tokenizer, texts: Iterable[str], num_added: int, *, min_frequency: int = 1
) -> Tokenizer:
    """The tokenizer with at most `num_added` further entries, learned from texts.

    A tokenizer of words gets the most frequent unknown words. A BPE tokenizer gets further merges: the texts are
    cut by the merges that it has, then the most frequent pair of neighbours becomes a merge, again and again. New
    merges come after all old ones, so the old merges are applied first. A unigram tokenizer gets the most frequent
    words that consist of several subwords, with the logarithm of their relative frequency as their score, if
    this is better than the score of the subwords.

    Args:
        texts: lines of the training split, read once.
        min_frequency: words and merges that occur less often are left out.

    Source: BPE: Purason et al. 2025, "Teaching Old Tokenizers New Words", continued training.
    """
    counts = Counter(word for text in texts for word in tokenizer.words(text))
    words = {word: count for word, count in counts.items() if len(word) <= MAX_LEARNED_CHARACTERS}
    layout, model = tokenizer.parts
    num_added = min(num_added, MAX_ENTRIES - tokenizer.vocab_size)
    if layout.kind == "WordLevel":
        model = _with_words(model, words, num_added, min_frequency)
    elif layout.kind == "BPE":
        cut = {word: tokenizer.pieces(word) for word in words}
        model = _with_merges(model, words, cut, num_added, max(min_frequency, MIN_MERGE_FREQUENCY))
    else:
        cut = {word: tokenizer.pieces(word) for word in words}
        model = _with_scores(model, words, cut, num_added)
    with tokenizer_errors_explained("the vocabulary cannot be extended"):
        return Tokenizer(TokenizerParts(layout, model))


def with_tags(tokenizer: Tokenizer, tags: Iterable[str]) -> Tokenizer:
    """The tokenizer with an entry for each tag, such as <BT>, that it does not have.

    No text is encoded as a tag, even if it contains these characters: `<` is a piece of its own, and no merge and
    no subword crosses the border of a piece. So a tag occurs only where training puts its id.
    """
    layout, model = tokenizer.parts
    missing = [tag for tag in tags if tag not in tokenizer.entries]
    if not missing:
        return tokenizer
    if layout.is_of_library:
        content = with_control_symbols(tokenizer.to_file(), missing)
        return Tokenizer(library_parts(content, "the tokenizer with its tags"))
    if layout.kind == "Unigram":
        vocabulary: Any = [
            *model["vocab"],
            *([layout.mark + tag, 0.0] for tag in missing),
        ]
    else:
        vocabulary = _numbered(model["vocab"], missing)
    with tokenizer_errors_explained("the vocabulary cannot be extended"):
        return Tokenizer(TokenizerParts(layout, model | {"vocab": vocabulary}))


def is_extension(tokenizer: Tokenizer, of: Tokenizer) -> bool:
    """Whether a tokenizer begins with all entries of another one, with the same ids."""
    return tokenizer.entries[: of.vocab_size] == of.entries


def _most_frequent_first(words: dict[str, int]) -> list[str]:
    return sorted(words, key=lambda word: (-words[word], word))


def _with_words(model: dict[str, Any], words: dict[str, int], num_added: int, min_frequency: int) -> dict[str, Any]:
    known = model["vocab"]
    unknown = [word for word in _most_frequent_first(words) if word not in known and words[word] >= min_frequency]
    return model | {"vocab": _numbered(known, unknown[:num_added])}


def _with_merges(
    model: dict[str, Any],
    words: dict[str, int],
    cut: dict[str, list[str]],
    num_added: int,
    min_frequency: int,
) -> dict[str, Any]:
    merges = list(_learned_merges(set(model["vocab"]), words, cut, num_added, min_frequency))
    added = [left + right for left, right in merges]
    return model | {
        "vocab": _numbered(model["vocab"], added),
        "merges": [*model["merges"], *map(list, merges)],
    }


def _numbered(known: dict[str, int], added: Iterable[str]) -> dict[str, int]:
    return {**known, **{entry: index for index, entry in enumerate(added, start=len(known))}}


def _learned_merges(
    known: set[str],
    words: dict[str, int],
    cut: dict[str, list[str]],
    num_added: int,
    min_frequency: int,
) -> Iterator[Pair]:
    """The merges of byte-pair encoding, from words that are cut already; `known` entries are not made again.

    Source: Sennrich et al. 2016, algorithm 1; here only the words with the merged pair are counted again.
    """
    neighbours, num_left = _Neighbours(words, cut), num_added
    while num_left and (pair := neighbours.most_frequent(min_frequency)):
        if "".join(pair) in known or not _FIXED.isdisjoint(pair):
            continue
        known.add("".join(pair))
        num_left -= 1
        yield pair
        neighbours.merge(pair)


class _Neighbours:
    """How often two pieces are neighbours in the words of a text."""

    def __init__(self, words: dict[str, int], cut: dict[str, list[str]]) -> None:
        self._words = words
        self._cut = dict(cut)
        self._counts: Counter[Pair] = Counter()
        self._places: defaultdict[Pair, set[str]] = defaultdict(set)
        for word, pieces in cut.items():
            self._add(word, pieces)
        self._heap = [(-count, pair) for pair, count in self._counts.items()]
        heapq.heapify(self._heap)

    def most_frequent(self, least: int) -> Pair | None:
        """The most frequent pair, each only once until its count changes; None if no pair occurs `least` times."""
        while self._heap:
            negative_count, pair = heapq.heappop(self._heap)
            # An entry of the heap may be from before the last change of this count.
            if -negative_count == self._counts[pair]:
                return pair if -negative_count >= least else None
        return None

    def merge(self, pair: Pair) -> None:
        """Join the pair to one piece wherever it occurs."""
        changed: set[Pair] = set()
        for word in self._places.pop(pair):
            before, after = self._cut[word], _merged(self._cut[word], pair)
            for one in pairwise(before):
                self._counts[one] -= self._words[word]
            self._add(word, after)
            self._cut[word] = after
            changed |= {*pairwise(before), *pairwise(after)}
        for one in changed:
            heapq.heappush(self._heap, (-self._counts[one], one))

    def _add(self, word: str, pieces: list[str]) -> None:
        for one in pairwise(pieces):
            self._counts[one] += self._words[word]
            self._places[one].add(word)


def _merged(pieces: list[str], pair: Pair) -> list[str]:
    merged: list[str] = []
    for piece in pieces:
        # The piece before may be a merged one, which is never the left part of its own pair.
        if merged and (merged[-1], piece) == pair:
            merged[-1] += piece
        else:
            merged.append(piece)
    return merged


def _with_scores(
    model: dict[str, Any], words: dict[str, int], cut: dict[str, list[str]], num_added: int
) -> dict[str, Any]:
    scores = dict(model["vocab"])
    num_pieces = sum(count * len(cut[word]) for word, count in words.items())
    added: list[list[Any]] = []
    for word in _most_frequent_first(words):
        if len(added) == num_added or words[word] < MIN_MERGE_FREQUENCY:
            break
        score = round(math.log(words[word] / num_pieces), 4)
        # An unknown character is encoded as bytes, with a score below that of any word.
        has_unknown = not _FIXED.isdisjoint(cut[word])
        pieces_score = -math.inf if has_unknown else sum(scores[piece] for piece in cut[word])
        if word not in scores and score > pieces_score:
            added.append([word, score])
    return model | {"vocab": [*model["vocab"], *added]}
