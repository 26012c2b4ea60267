"""Which pairs are trained on: rules that alter or drop pairs; held-out pairs, which must not be in the training split; a set of digests."""

import logging
import mmap
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import get_args

from transformer_cli.config import CleaningConfig, Config, FilesData, HubData, SequencesData, SplitName
from transformer_cli.data.pairs import (
    CleaningReport,
    Finding,
    ReadingReport,
    SentencePair,
    finding_rows,
    pair_digest,
    table_lines,
)
from transformer_cli.data.sources.corpus import (
    HeldOutSplit,
    HeldOutSplits,
    KeptPairs,
    has_split,
    read_held_out,
    read_pairs,
)
from transformer_cli.data.sources.lines import TOO_LONG
from transformer_cli.process.errors import DataError
from transformer_cli.process.messages import shortened
from transformer_cli.text.normalization import (
    compose,
    has_letter,
    is_blank,
    is_clean_ascii,
    normalize_invisible,
    remove_control_characters,
    with_single_spaces,
)

logger = logging.getLogger(__name__)

# Characters added to both lengths before their ratio is taken, so that short sentences may differ more.
_RATIO_MARGIN = 15
_EXAMPLE_CHARACTERS = 60


Alteration = Callable[[str, str], tuple[str, str]]
"""Makes other texts of a source and its target."""


def clean(
    pairs: Iterable[SentencePair],
    rules: CleaningConfig,
    report: CleaningReport,
    *,
    held_out: Collection[bytes] = frozenset(),
    seen: "DigestSet | None" = None,
) -> Iterator[SentencePair]:
    """Yield the pairs that no rule drops, in their order, with the text as the rules alter it.

    Args:
        report: counts what the rules do; it is complete when the last pair was taken.
        held_out: digests (`pair_digest` of `compared`) of validation and test pairs, which are dropped as leakage.
        seen: receives the digests of the pairs, to find duplicates; None: they are kept in memory.
    """
    altering = [(alter, report.altered.setdefault(rule, Finding())) for rule, alter in alterations(rules)]
    dropping = [
        (must_drop, report.dropped.setdefault(rule, Finding()))
        for rule, must_drop in drops(rules, held_out, DigestSet() if seen is None else seen)
    ]
    for pair in pairs:
        report.num_read += 1
        is_clean = is_clean_ascii(pair.source) and is_clean_ascii(pair.target)
        for alter, finding in () if is_clean else altering:
            source, target = alter(pair.source, pair.target)
            altered = pair._replace(source=source, target=target)
            if altered != pair:
                finding.count += 1
                finding.example = finding.example or excerpt(pair)
                pair = altered
        for must_drop, finding in dropping:
            if must_drop(pair):
                finding.count += 1
                finding.example = finding.example or excerpt(pair)
                break
        else:
            report.num_kept += 1
            yield pair


def check_dropped_share(report: CleaningReport, rules: CleaningConfig, reading: ReadingReport) -> None:
    """Raise an error if `clean` dropped too many pairs of a corpus; call it after the last pair.

    Args:
        reading: the pairs that reading skipped count as dropped too.

    Raises:
        DataError: no pair is left, or more than `max_dropped_share` of the pairs were dropped.
    """
    num_dropped = reading.num_skipped + report.num_read - report.num_kept
    num_pairs = reading.num_skipped + report.num_read
    if not report.num_kept:
        problem = "no training pair is left"
    elif num_dropped > rules.max_dropped_share * num_pairs:
        problem = f"data.cleaning.max_dropped_share allows {rules.max_dropped_share:.0%}"
    else:
        return
    table = "\n".join(table_lines([*reading.table(), *report.table()]))
    if not num_pairs:
        raise DataError(
            f"the corpus has no training pair:\n{table}",
            hint="equal pairs come into one split together; give more different pairs, or lower data.validation_share and data.test_share",
        )
    raise DataError(
        f"the training corpus lost {num_dropped:,} of its {num_pairs:,} pairs, {problem}:\n{table}",
        hint="look at the examples (tfm data shows more); change the rule that dropped too much "
        "under data.cleaning, or give the right files and columns",
    )


def alterations(rules: CleaningConfig) -> Iterator[tuple[str, Alteration]]:
    """The rules that change texts, each by its name, in the order in which they are applied."""
    # Control characters first: removing one can bring a letter and its accent together, which NFC
    # then joins. In this order, cleaning a second time changes nothing.
    if rules.remove_control_characters:
        yield "remove_control_characters", on_both_sides(remove_control_characters)
    if rules.normalize_invisible:
        # A target keeps its no-break spaces, which a translation shall have. Where pairs are read in both directions, a
        # text is changed where it is the source, and stays where it is the target.
        yield ("normalize_invisible", lambda source, target: (normalize_invisible(source), target))
    if rules.normalize_unicode:
        yield "normalize_unicode", on_both_sides(compose)
    if rules.join_white_space:  # last: other spaces are plain ones now, and there may be two where a sign has stood
        yield "join_white_space", on_both_sides(with_single_spaces)


def on_both_sides(alter: Callable[[str], str]) -> Alteration:
    """A rule that changes source and target alike."""
    return lambda source, target: (alter(source), alter(target))


def compared(pair: SentencePair, rules: CleaningConfig) -> SentencePair:
    """A pair as it is compared with held-out pairs: both sides without what a source does not keep.

    So a held-out pair is found also where it stands the other way round.
    """
    if rules.normalize_invisible:
        pair = pair._replace(source=normalize_invisible(pair.source), target=normalize_invisible(pair.target))
    if rules.join_white_space:
        pair = pair._replace(source=with_single_spaces(pair.source), target=with_single_spaces(pair.target))
    return pair


def drops(
    rules: CleaningConfig, held_out: Collection[bytes], seen: "DigestSet"
) -> Iterator[tuple[str, Callable[[SentencePair], bool]]]:
    """The rules that drop pairs, each by its name, with a function that says whether it drops a pair."""
    if rules.drop_empty:
        yield "drop_empty", lambda pair: is_blank(pair.source) or is_blank(pair.target)
    if rules.drop_equal:
        yield "drop_equal", lambda pair: pair.source == pair.target
    if (min_words := rules.min_words) is not None:
        yield "min_words", lambda pair: min(len(pair.source.split()), len(pair.target.split())) < min_words
    if (max_words := rules.max_words) is not None:
        # Counting words is slow, and more than n words need more than 2 n characters.
        yield (
            "max_words",
            lambda pair: (
                max(len(pair.source), len(pair.target)) >= 2 * max_words
                and max(len(pair.source.split()), len(pair.target.split())) > max_words
            ),
        )
    if (max_characters := rules.max_characters) is not None:
        yield "max_characters", lambda pair: max(len(pair.source), len(pair.target)) > max_characters
    if (max_ratio := rules.max_length_ratio) is not None:
        yield "max_length_ratio", lambda pair: _has_unlike_lengths(pair, max_ratio)
    digest = lru_cache(maxsize=1)(pair_digest)  # two rules use the digest of the same pair
    if held_out:
        yield "leakage", lambda pair: digest(compared(pair, rules)) in held_out
    if rules.drop_duplicates:
        yield ("drop_duplicates", lambda pair: not seen.add(_in_direction(digest(pair), pair.direction)))


def _in_direction(digest: bytes, direction: int) -> bytes:
    """A digest that differs for equal texts in two directions, such as a name that is the same in both languages."""
    if not direction:
        return digest
    return blake2b(b"%d:%b" % (direction, digest), digest_size=len(digest)).digest()


def _has_unlike_lengths(pair: SentencePair, limit: float) -> bool:
    lengths = len(pair.source) + _RATIO_MARGIN, len(pair.target) + _RATIO_MARGIN
    return max(lengths) > limit * min(lengths)


def excerpt(pair: SentencePair) -> str:
    """The beginning of both sides, for a report; signs that nobody would see are codes."""
    sides = (shortened(text, _EXAMPLE_CHARACTERS) for text in (pair.source, pair.target))
    return "".join(sign if sign.isprintable() or has_letter(sign) else ascii(sign)[1:-1] for sign in " | ".join(sides))


# Held-out pairs: the validation and test splits, which no model is trained on.


# With fewer different pairs, a split that is drawn by hash is often empty.
_FEW_PAIRS = 20


MAX_DRAWN_TO_VALIDATE = 3000
"""The most drawn pairs that a validation during training uses, where the config does not set a number."""


def held_out_pairs(config: Config, split: SplitName) -> list[SentencePair]:
    """The normalised pairs of the validation or test split; logs a warning if reading skipped pairs.

    All pairs of a corpus whose `split` names this split are kept except empty ones. Pairs that are
    drawn from a corpus without `split` are cleaned like training pairs.

    Raises:
        DataError: the config has no such split, or the split has no pair.
    """
    found = _read(config, [split])[split]
    if not found.pairs:
        raise _no_pairs(config, found, split)
    for reason, finding in found.reading.skipped.items():
        logger.warning("%s split: skipped: %s: %d, first at %s", split, reason, finding.count, finding.example)
    return found.pairs


def all_held_out_pairs(config: Config, kept: KeptPairs | None = None) -> HeldOutSplits:
    """The validation split, and the test split if the config has one.

    The validation split has at least one pair; a test split that is drawn may have none.

    Args:
        kept: keeps the training pairs of the corpora that are read.

    Raises:
        DataError: the config has no validation split, or the split has no pair.
    """
    splits: list[SplitName] = ["validation"]
    if has_split(config.data, "test"):
        splits.append("test")
    found = _read(config, splits, kept)
    if not found["validation"].pairs:
        raise _no_pairs(config, found["validation"], "validation")
    return found


def _read(config: Config, splits: Sequence[SplitName], kept: KeptPairs | None = None) -> HeldOutSplits:
    found = HeldOutSplits()
    for split, read in read_held_out(config.data, splits, seed=config.seed, kept=kept).items():
        cleaned: list[SentencePair] = []
        for drawn, group in groupby(read.pairs, key=lambda pair: is_drawn(config, pair)):
            # Those of training pairs for what is drawn from the same corpus.
            rules = config.applied_cleaning if drawn else rules_of_given_splits(config.applied_cleaning)
            cleaned.extend(clean(group, rules, read.cleaning))
        found[split] = replace(read, pairs=cleaned)
    return found


def _no_pairs(config: Config, found: HeldOutSplit, split: SplitName) -> DataError:
    """The error for a split without a pair."""
    for reading in (found.reading, found.drawn_reading):
        if TOO_LONG in reading.skipped and reading.num_skipped == reading.num_rows:
            return DataError(
                f"{reading.skipped[TOO_LONG].example}: {TOO_LONG}, which is no sentence; all pairs were skipped, "
                f"so the config has no {split} pairs",
                hint="give files with one sentence in each line or row; look at this one with: head -c 1000",
            )
    rows = [*finding_rows("skipped", found.drawn_reading.skipped), *found.table()]
    lost = "; ".join(f"{what}: {count:,}" for what, count, _ in rows if count)
    return DataError(
        f"the config has no {split} pairs" + (f"; {lost}" if lost else ""),
        hint=_hint_for_empty_split(config, found, split),
    )


def _hint_for_empty_split(config: Config, found: HeldOutSplit, split: SplitName) -> str | None:
    data = config.data
    if not isinstance(data, FilesData | HubData):
        return None
    add = f"add a corpus with split: {split} under data.corpora"
    given = [f"data.corpora.{i}" for i, corpus in enumerate(data.corpora) if corpus.split == split]
    if given:
        return f"{', '.join(given[:3])} has no usable pair; correct the files, or {add}"
    if all(corpus.split is not None for corpus in data.corpora):
        return add
    share = data.validation_share if split == "validation" else data.test_share
    setting = f"data.{split}_share"
    if found.drawn_reading.num_read:
        return (
            f"every pair drawn for this split was dropped; look at the rules under data.cleaning, "
            f"raise {setting} (now {share:g}), or {add}"
        )
    num_different = _num_different_drawn(config)
    if share and num_different < _FEW_PAIRS:
        return (
            f"too few different pairs to draw this split from: {num_different}; equal pairs are always "
            f"in the same split; add more pairs, or {add}"
        )
    return f"{add}, or raise {setting} (now {share:g}) so that pairs are drawn for it"


def _num_different_drawn(config: Config) -> int:
    """Number of different pairs in the corpora without `split`; counting stops at `_FEW_PAIRS`."""
    pairs = (
        pair
        for split in get_args(SplitName)
        if has_split(config.data, split)
        for pair in read_pairs(config.data, split, seed=config.seed)
        if is_drawn(config, pair)
    )
    different: set[bytes] = set()
    for pair in pairs:
        different.add(pair_digest(pair))
        if len(different) == _FEW_PAIRS:
            break
    return len(different)


def pairs_to_validate(config: Config, pairs: Sequence[SentencePair]) -> list[SentencePair]:
    """The pairs of the validation split that each validation during training uses, always the same ones.

    With `validation.max_sentences` they are the first ones. Without it they are all pairs of the corpora whose
    `split` names this split, and at most `MAX_DRAWN_TO_VALIDATE` drawn pairs, evenly spread: a share of a large corpus
    may be more text than the training reads until the next validation. Several directions share these numbers.
    """
    if config.validation.max_sentences is not None:
        return first_of_each_direction(pairs, config.validation.max_sentences)
    drawn = [i for i, pair in enumerate(pairs) if is_drawn(config, pair)]
    if len(drawn) <= MAX_DRAWN_TO_VALIDATE:
        return list(pairs)
    # Sorted by direction, because pairs of two directions alternate: every second pair would be of one direction.
    drawn.sort(key=lambda i: pairs[i].direction)
    used = {drawn[i * len(drawn) // MAX_DRAWN_TO_VALIDATE] for i in range(MAX_DRAWN_TO_VALIDATE)}
    left_out = set(drawn) - used
    return [pair for i, pair in enumerate(pairs) if i not in left_out]


def first_of_each_direction(pairs: Sequence[SentencePair], number: int | None) -> list[SentencePair]:
    """The first pairs, about equally many of each direction; None: all of them."""
    if number is None:
        return list(pairs)
    num_before: Counter[int] = Counter()
    turns = []
    for pair in pairs:
        turns.append(num_before[pair.direction])
        num_before[pair.direction] += 1
    used = sorted(sorted(range(len(pairs)), key=turns.__getitem__)[:number])
    return [pairs[i] for i in used]


def held_out_digests(config: Config, held_out: HeldOutSplits) -> set[bytes]:
    """Digests to find held-out pairs among training pairs; empty for the synthetic tasks.

    Their splits have no pair in common if possible; in `memorise` all splits are the same.
    """
    if isinstance(config.data, SequencesData):
        return set()
    pairs = [pair for found in held_out.values() for pair in found.pairs]
    if len(config.data.directions) > 1:  # another corpus may have a held-out pair the other way round
        pairs += [SentencePair(pair.target, pair.source) for pair in pairs]
    return {pair_digest(compared(pair, config.applied_cleaning)) for pair in pairs}


def is_drawn(config: Config, pair: SentencePair) -> bool:
    """Whether a hash decides the split of a pair, because its corpus has none."""
    data = config.data
    return isinstance(data, FilesData | HubData) and data.corpora[pair.corpus].split is None


def rules_of_given_splits(rules: CleaningConfig) -> CleaningConfig:
    """The rules for validation and test pairs that are not drawn: those that change text, and the one that drops empty pairs."""
    return CleaningConfig(
        normalize_unicode=rules.normalize_unicode,
        remove_control_characters=rules.remove_control_characters,
        normalize_invisible=rules.normalize_invisible,
        join_white_space=rules.join_white_space,
        drop_equal=False,
        drop_duplicates=False,
        max_words=None,
        max_characters=None,
        max_length_ratio=None,
    )


# A set of digests that takes 16 bytes for each and moves to the disk when it is large.
#
# A Python set takes about 100 bytes for each digest of 16 bytes. This is a hash table with open addressing in one block of
# bytes: the digest itself says where to look, and the next free slot takes it. A block of more than `MAX_BYTES_IN_MEMORY`
# is a mapped file, of which the system may write parts to the disk when memory is short.


DIGEST_BYTES = 16
MAX_BYTES_IN_MEMORY = 64 << 20
_FIRST_SLOTS = 1 << 10
_EMPTY = bytes(DIGEST_BYTES)  # no digest is expected to be zero in all of its 128 bits


class DigestSet:
    """Digests of 16 bytes, such as those of `pair_digest`.

    Args:
        folder: where to put a large table; None: all of it stays in memory.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._size = 0
        self._file: Path | None = None
        self._table: bytearray | mmap.mmap = bytearray(_FIRST_SLOTS * DIGEST_BYTES)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[bytes]:
        return _digests(self._table)

    def __contains__(self, digest: object) -> bool:
        return isinstance(digest, bytes) and self._offset(digest)[1]

    def add(self, digest: bytes) -> bool:
        """Add a digest; whether it is new."""
        if not self._insert(digest):
            return False
        self._size += 1
        if 2 * self._size * DIGEST_BYTES > len(self._table):
            self._grow()
        return True

    def close(self) -> None:
        """Free the table and delete its file."""
        if isinstance(self._table, mmap.mmap):
            self._table.close()
        if self._file is not None:
            with suppress(FileNotFoundError):
                self._file.unlink()
        self._table, self._file = bytearray(), None

    def _insert(self, digest: bytes) -> bool:
        offset, is_present = self._offset(digest)
        if not is_present:
            self._table[offset : offset + DIGEST_BYTES] = digest
        return not is_present

    def _offset(self, digest: bytes) -> tuple[int, bool]:
        """The offset in the table where a digest stands or would be put, and whether it stands there."""
        table = self._table
        end = len(table)
        offset = int.from_bytes(digest[:8], "little") * DIGEST_BYTES % end
        while (found := table[offset : offset + DIGEST_BYTES]) != digest:
            if found == _EMPTY:
                return offset, False
            offset = (offset + DIGEST_BYTES) % end
        return offset, True

    def _grow(self) -> None:
        old, old_file = self._table, self._file
        self._table = self._new_table(2 * len(old))
        for digest in _digests(old):
            self._insert(digest)
        if isinstance(old, mmap.mmap):
            old.close()
        if old_file is not None:
            old_file.unlink()

    def _new_table(self, num_bytes: int) -> bytearray | mmap.mmap:
        if self._folder is None or num_bytes <= MAX_BYTES_IN_MEMORY:
            return bytearray(num_bytes)
        self._file = self._folder / f"digests-{num_bytes}"
        with self._file.open("w+b") as file:
            # Written and not only reserved: a full disk must be an error here, not a signal at a later access.
            for _ in range(num_bytes // mmap.PAGESIZE):
                file.write(bytes(mmap.PAGESIZE))
            file.flush()
            return mmap.mmap(file.fileno(), num_bytes)


def _digests(table: bytearray | mmap.mmap) -> Iterator[bytes]:
    for offset in range(0, len(table), DIGEST_BYTES):
        digest = bytes(table[offset : offset + DIGEST_BYTES])
        if digest != _EMPTY:
            yield digest
