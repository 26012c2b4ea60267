"""Text changed at random in training: words are cut into subwords in several ways, and letters are changed as people mistype them."""

import math
import re
from bisect import bisect
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from random import Random
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from transformer_cli.config import NoiseConfig
from transformer_cli.text import tokenizer_file
from transformer_cli.text.normalization import TYPED_MARKS, UNK, without_accents
from transformer_cli.text.tokenizer import Tokenizer
from transformer_cli.text.tokenizer_file import BYTE_TOKENS, TokenizerParts

# Subword regularisation: words are cut into subwords at random, so a model sees several segmentations of a word.


MAX_KNOWN_PARTS = 100_000
_APOSTROPHES = ("'", "\u2019")


class PieceSampler(Protocol):
    """A way to cut one word into subwords at random."""

    def prepare(self, piece: str) -> Any:
        """A word in the characters of the vocabulary, in the form that the other methods take."""

    def ordinary(self, piece: Any) -> list[int]:
        """The ids of the word without sampling, as the tokenizer gives them."""

    def sample(self, piece: Any, numbers: Random) -> list[int]:
        """The ids of one segmentation of the word; the caller must not change the list."""


class _Part(NamedTuple):
    """The text from one space to the next."""

    fixed_ids: list[int]
    """The ids of a part that is never sampled, such as [EOS]; else empty."""
    pieces: list[Any]
    """Its words and marks."""
    pieces_before_word: list[Any]
    """The same if a word follows; they differ where the part ends with an apostrophe."""
    is_word: bool
    """Whether it begins with a space and a letter."""


class WordSampler:
    """Cuts the words of encoded texts into subwords at random.

    The ids determine the text, so the text itself is not needed. They are divided into parts before each space. A table maps
    each part to its words and punctuation marks; only a part that is not in the table is decoded and split.

    Args:
        tokenizer: of subwords; it encoded the texts.
        sampler: cuts one word.
    """

    def __init__(self, tokenizer: Tokenizer, sampler: PieceSampler) -> None:
        layout = tokenizer.parts.layout
        engine = tokenizer_file.build(tokenizer.parts)
        pieces = [engine.id_to_token(index) or "" for index in range(tokenizer.vocab_size)]
        self._bytes = [layout.bytes_of(piece) for piece in pieces]
        self._begins_part = np.array([text.startswith(b" ") for text in self._bytes])
        self._num_special = len(tokenizer.special_tokens)
        self._symbols = {index for index, piece in enumerate(pieces) if piece in layout.symbols}
        self._begins_part[: self._num_special] = True
        assert engine.pre_tokenizer is not None
        self._splitter = engine.pre_tokenizer
        self._sampler = sampler
        self._known: dict[bytes, _Part] = {}

    def sample(self, ids: Sequence[int] | NDArray[np.integer[Any]], numbers: Random) -> NDArray[np.uint32]:
        """Other ids of the same text; special tokens, such as [EOS], stay where they are.

        Args:
            ids: of one text, as the tokenizer encodes it.
            numbers: the same random numbers give the same ids.
        """
        parts = self._parts(np.asarray(ids, np.uint32))
        sample, found = self._sampler.sample, list[int]()
        for place, part in enumerate(parts):
            pieces = part.pieces
            if part.pieces_before_word is not pieces and _has_word(parts, place + 1):
                pieces = part.pieces_before_word
            found += part.fixed_ids
            for piece in pieces:
                found += sample(piece, numbers)
        return np.array(found, np.uint32)

    def _parts(self, ids: NDArray[np.uint32]) -> list[_Part]:
        begins_part = self._begins_part[ids]
        begins_part[1:] |= ids[:-1] < self._num_special  # the first word follows a tag
        begins_part[:1] = True
        starts = np.flatnonzero(begins_part).tolist()
        data, size = ids.tobytes(), ids.itemsize
        bounds = [start * size for start in (*starts, len(ids))]
        known = self._known
        keys = [data[start:end] for start, end in pairwise(bounds)]
        return [known.get(key) or self._learn(key) for key in keys]

    def _learn(self, key: bytes) -> _Part:
        part = self._part_of(np.frombuffer(key, np.uint32).tolist())
        if len(self._known) >= MAX_KNOWN_PARTS:
            self._known.clear()
        self._known[key] = part
        return part

    def _part_of(self, ids: list[int]) -> _Part:
        fixed = _Part(ids, [], [], is_word=False)
        if any(index < self._num_special or index in self._symbols for index in ids):
            return fixed
        try:
            text = b"".join(self._bytes[index] for index in ids).decode()
        except UnicodeDecodeError:
            return fixed
        pieces = self._pieces(text)
        before_word = self._pieces(f"{text} a")[:-1] if text.endswith(_APOSTROPHES) else pieces
        # Entries that were added to a vocabulary by hand cannot be found by merges or scores.
        if ids not in (self._ordinary(pieces), self._ordinary(before_word)):
            return fixed
        # An apostrophe belongs to the word before it if a space and a letter follow.
        is_word = self._split(f"a'{text}")[0] == "a'"
        return _Part([], pieces, before_word, is_word)

    def _split(self, text: str) -> list[str]:
        return [piece for piece, _ in self._splitter.pre_tokenize_str(text)]

    def _pieces(self, text: str) -> list[Any]:
        return [self._sampler.prepare(piece) for piece in self._split(text)]

    def _ordinary(self, pieces: list[Any]) -> list[int]:
        return [index for piece in pieces for index in self._sampler.ordinary(piece)]


def _has_word(parts: list[_Part], place: int) -> bool:
    return place < len(parts) and parts[place].is_word


_NO_MERGE = 1 << 40
_NOTHING = (_NO_MERGE, -1)


class MergeablePiece(NamedTuple):
    """A word before any merge, and its ordinary encoding."""

    symbols: list[int]
    """The ids of its characters."""
    ranks: list[int]
    """For each two neighbours the number of the merge that joins them; `_NO_MERGE` if there is none."""
    ids: list[int]
    """The ids after all merges."""
    kept_probability: float
    """The probability that no merge is left out, so that these are the ids."""


class MergeDropout:
    """Cuts words into subwords by merges, each of which is left out with some probability.

    Source: Provilkov et al. 2020, "BPE-Dropout: Simple and Effective Subword Regularization", Algorithm 1.

    As long as symbols can be merged, each possible merge of the word is left out with this probability, and
    the best of the others is applied; if all are left out, the word is finished. (The `tokenizers` library sometimes
    tries merges again that it has left out, so it leaves out fewer merges.)

    Args:
        parts: a BPE tokenizer.
        dropout: the probability, 0 to 1; 0 gives the ordinary encoding.
    """

    def __init__(self, parts: TokenizerParts, dropout: float) -> None:
        model: dict[str, Any] = parts.model
        self._vocabulary: dict[str, int] = model["vocab"]
        self._has_byte_fallback = parts.layout.has_byte_fallback
        self._merges = _numbered_merges(self._vocabulary, parts.layout.merges(model))
        self._keep = 1.0 - dropout
        self._log_dropout = math.log(dropout) if dropout else -math.inf
        self._log_keep = math.log(self._keep) if dropout else 0.0

    def prepare(self, piece: str) -> MergeablePiece:
        """A word in the characters of the vocabulary, ready for `sample`."""
        symbols = [index for character in piece for index in self._ids_of(character)]
        pairs = pairwise(symbols)
        ranks = [self._merges.get(pair, _NOTHING)[0] for pair in pairs]
        ids, left = symbols.copy(), ranks.copy()
        self._merge_best(ids, left, len(symbols))
        num_merges = len(symbols) - len(ids)
        return MergeablePiece(symbols, ranks, ids, self._keep**num_merges)

    def ordinary(self, piece: MergeablePiece) -> list[int]:
        """The ids of a word after all merges."""
        return piece.ids

    def sample(self, piece: MergeablePiece, numbers: Random) -> list[int]:
        """The ids of a word with some merges left out.

        Usually the best merge is kept several times in a row, then left out once. Two numbers are drawn at once: how
        often it is kept, and how many of the next best merges are left out with it.
        """
        chance = 1.0 - numbers.random()  # above 0, at most 1
        if chance <= piece.kept_probability:
            return piece.ids
        symbols, ranks = piece.symbols.copy(), piece.ranks.copy()
        while True:
            self._merge_best(symbols, ranks, int(math.log(chance) / self._log_keep))
            possible = [place for place, rank in enumerate(ranks) if rank != _NO_MERGE]
            num_left_out = 1 + int(math.log(1.0 - numbers.random()) / self._log_dropout)
            if num_left_out >= len(possible):
                return symbols
            possible.sort(key=ranks.__getitem__)
            self._merge_at(possible[num_left_out], symbols, ranks)
            chance = 1.0 - numbers.random()

    def _ids_of(self, character: str) -> list[int]:
        index = self._vocabulary.get(character)
        if index is not None:
            return [index]
        if not self._has_byte_fallback:
            raise KeyError(character)
        return [self._vocabulary[BYTE_TOKENS[byte]] for byte in character.encode()]

    def _merge_best(self, symbols: list[int], ranks: list[int], most: int) -> None:
        """Apply the best merge, then again the best one, at most `most` times."""
        while most and ranks:
            best = min(ranks)
            if best == _NO_MERGE:
                return
            self._merge_at(ranks.index(best), symbols, ranks)
            most -= 1

    def _merge_at(self, place: int, symbols: list[int], ranks: list[int]) -> None:
        merges = self._merges
        _, merged = merges[symbols[place], symbols[place + 1]]
        symbols[place : place + 2] = [merged]
        del ranks[place]
        if place:
            ranks[place - 1] = merges.get((symbols[place - 1], merged), _NOTHING)[0]
        if place < len(ranks):
            ranks[place] = merges.get((merged, symbols[place + 1]), _NOTHING)[0]


def _numbered_merges(
    vocabulary: dict[str, int], merges: Iterable[Sequence[str]]
) -> dict[tuple[int, int], tuple[int, int]]:
    """Map two ids to the number of the merge that joins them, and to the id of the result."""
    return {
        (vocabulary[left], vocabulary[right]): (rank, vocabulary[left + right])
        for rank, (left, right) in enumerate(merges)
    }


# The `tokenizers` library gives an unknown character the lowest score of the vocabulary minus this.
_UNKNOWN_PENALTY = 10.0


class Edge(NamedTuple):
    """A subword at a place of a word."""

    start: int
    """The number of characters before it."""
    ids: list[int]
    """Its id; several ids if it is an unknown character, which is encoded as bytes."""
    score: float
    """The logarithm of its probability."""


class Lattice(NamedTuple):
    """All segmentations of a word, and the most probable one."""

    ends: list[list[Edge]]
    """For each number of characters from 1 on, the subwords that end there."""
    shares: list[list[float]]
    """For each of these places, the cumulative probabilities of the subwords that end there, given a cut there."""
    ids: list[int]
    """The ids of the most probable segmentation."""


class LatticeSampling:
    """Draws a segmentation; its probability is proportional to the product of its subwords' probabilities ^ alpha.

    A segmentation is drawn from all segmentations (l = infinity in the paper), by forward filtering and backward sampling.

    Source: Kudo 2018, "Subword Regularization: Improving Neural Network Translation Models with Multiple Subword
    Candidates", sections 3.2 and 3.3.

    (The `tokenizers` library does the same for alpha 1. For other values it raises the probability of the first
    subwords to the power more than once.)

    Args:
        parts: a Unigram tokenizer.
        alpha: 0: all segmentations are equally probable; the larger it is, the more often the best one is drawn.
    """

    def __init__(self, parts: TokenizerParts, alpha: float) -> None:
        scores: list[tuple[str, float]] = parts.model["vocab"]
        self._entries = {piece: (index, score) for index, (piece, score) in enumerate(scores)}
        self._longest = max(map(len, self._entries))
        self._unknown_score = min(score for _, score in scores) - _UNKNOWN_PENALTY
        self._has_byte_fallback = parts.layout.has_byte_fallback
        self._alpha = alpha

    def prepare(self, piece: str) -> Lattice:
        """All segmentations of a word, which is given in the characters of the vocabulary."""
        ends = self._edges(piece)
        best, log_sums, shares = [0.0], [0.0], []
        best_edges: list[Edge] = []
        for edges in ends:
            # Of equally probable segmentations, the library takes the one whose last subword is the longest.
            totals = [best[edge.start] + edge.score for edge in edges]
            best.append(max(totals))
            best_edges.append(edges[totals.index(best[-1])])
            weights = [log_sums[edge.start] + self._alpha * edge.score for edge in edges]
            highest = max(weights)
            sums = list(accumulate(math.exp(weight - highest) for weight in weights))
            log_sums.append(highest + math.log(sums[-1]))
            shares.append([one / sums[-1] for one in sums])
        return Lattice(ends, shares, _joined(best_edges))

    def ordinary(self, piece: Lattice) -> list[int]:
        """The ids of the most probable segmentation."""
        return piece.ids

    def sample(self, piece: Lattice, numbers: Random) -> list[int]:
        """The ids of one segmentation: the last subword is drawn first, then the one before it."""
        ends, shares, chosen = piece.ends, piece.shares, list[list[int]]()
        place = len(ends)
        while place:
            number = bisect(shares[place - 1], numbers.random()) if len(shares[place - 1]) > 1 else 0
            edge = ends[place - 1][number]
            chosen.append(edge.ids)
            place = edge.start
        return [index for ids in reversed(chosen) for index in ids]

    def _edges(self, piece: str) -> list[list[Edge]]:
        ends: list[list[Edge]] = [[] for _ in piece]
        for start, character in enumerate(piece):
            for end in range(start + 1, min(len(piece), start + self._longest) + 1):
                entry = self._entries.get(piece[start:end])
                if entry is not None:
                    ends[end - 1].append(Edge(start, [entry[0]], entry[1]))
            if character not in self._entries:
                unknown = Edge(start, self._unknown_ids(character), self._unknown_score)
                ends[start].append(unknown)
        return ends

    def _unknown_ids(self, character: str) -> list[int]:
        names = [UNK]
        if self._has_byte_fallback:
            names = [BYTE_TOKENS[byte] for byte in character.encode()]
        return [self._entries[name][0] for name in names]


def _joined(last_edges: list[Edge]) -> list[int]:
    """The ids of the best segmentation; edge i is the last subword of the best segmentation of i + 1 characters."""
    ids: list[int] = []
    place = len(last_edges)
    while place:
        edge = last_edges[place - 1]
        ids[:0] = edge.ids
        place = edge.start
    return ids


# Training noise: a pair of sentences, changed as people change a text when they type it.
#
# The changes are those of OpusTrainer's modifiers (Bogoychev et al. 2023, "OpusCleaner and OpusTrainer, open source
# toolkits for training Machine Translation and Large Language Models"), as far as they concern typing.


# A typing error in a word of less than four letters often gives another word.
_WORD = re.compile(r"[^\W\d_]{4,}")
_END_MARK = re.compile(r"(?:(?<!\s)\s++)?[.!?。！？]$")  # noqa: RUF001 - marks of Chinese and Japanese
# Without hyphens: with them, the noise of older runs would be another one.
_STRAIGHT_MARKS = str.maketrans({mark: typed for mark, typed in TYPED_MARKS.items() if mark not in "\u2010\u2011"})
_OPENING_QUOTE = re.compile(r'(?<!\S)"|(?<=[(\[])"')
_OPENING_APOSTROPHE = re.compile(r"(?<!\S)'")


def with_noise(source: str, target: str, noise: NoiseConfig, numbers: Random) -> tuple[str, str]:
    """A pair with the changes that are drawn for it.

    Args:
        source, target: one pair of sentences.
        noise: the probability of each change.
        numbers: the same random numbers give the same pair.
    """
    if numbers.random() < noise.typographic_marks:
        source = _with_other_marks(source)
    if numbers.random() < noise.missing_accents:
        source = without_accents(source)
    if numbers.random() < noise.missing_end and _END_MARK.search(target):
        source, target = _without_end(source, target)
    if noise.typos:
        source = _with_typos(source, noise.typos, numbers)
    if numbers.random() < noise.small_letters:
        source = source.lower()
    elif numbers.random() < noise.capitals:
        source, target = source.upper(), target.upper()
    return source, target


def _with_other_marks(text: str) -> str:
    straight = text.translate(_STRAIGHT_MARKS)
    if straight != text:
        return straight
    text = _OPENING_QUOTE.sub("\u201c", text).replace('"', "\u201d")
    text = _OPENING_APOSTROPHE.sub("\u2018", text).replace("'", "\u2019")
    return text.replace("...", "\u2026").replace(" - ", " \u2013 ")


def _without_end(source: str, target: str) -> tuple[str, str]:
    shorter = _END_MARK.sub("", source), _END_MARK.sub("", target)
    # A text such as "..." would be empty, and a source without a mark loses nothing.
    return shorter if all(shorter) and shorter[0] != source else (source, target)


def _with_typos(text: str, share: float, numbers: Random) -> str:
    letters = sorted({sign for word in _WORD.findall(text) for sign in word.lower()})

    def typed(match: re.Match[str]) -> str:
        word = match[0]
        if numbers.random() >= share:
            return word
        place = numbers.randrange(1, len(word) - 1)  # the first letter is rarely wrong
        before, at, after = word[:place], word[place], word[place + 1 :]
        kind = numbers.randrange(4)
        if kind == 0:
            return before + after[0] + at + after[1:]
        middle = ["", at + at, numbers.choice(letters)][kind - 1]
        return before + middle + after

    return _WORD.sub(typed, text)
