"""Held-out pairs: the validation and test splits, which no model is trained on."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import get_args

from transformer_cli.config import (
    CleaningConfig,
    Config,
    FilesData,
    HubData,
    SequencesData,
    SplitName,
)
from transformer_cli.data.pairs import ReadingReport, Row, SentencePair, finding_rows, pair_digest
from transformer_cli.data.selection.cleaning import CleaningReport, clean, compared
from transformer_cli.data.sources.corpus import has_split, read_pairs
from transformer_cli.data.sources.lines import TOO_LONG
from transformer_cli.process.errors import DataError

logger = logging.getLogger(__name__)

# With fewer different pairs, a split that is drawn by hash is often empty.
_FEW_PAIRS = 20


@dataclass(frozen=True, slots=True)
class HeldOutSplit:
    """The pairs of a split, and reports on the pairs that were skipped, dropped or altered."""

    pairs: list[SentencePair]
    reading: ReadingReport
    """For corpora whose `split` names this split."""
    drawn_reading: ReadingReport
    """For corpora without `split`, whose splits are drawn; it counts the rows of all splits."""
    cleaning: CleaningReport

    def table(self) -> list[Row]:
        """Counts of the pairs.

        `drawn_reading` is left out: the training split reads the same rows, and its table has them.
        """
        return [*self.reading.table()[1:], *self.cleaning.table()[1:-1]]


HeldOutSplits = dict[SplitName, HeldOutSplit]

MAX_DRAWN_TO_VALIDATE = 3000
"""The most drawn pairs that a validation during training uses, where the config does not set a number."""


def held_out_pairs(config: Config, split: SplitName) -> list[SentencePair]:
    """The normalised pairs of the validation or test split; logs a warning if reading skipped pairs.

    All pairs of a corpus whose `split` names this split are kept except empty ones. Pairs that are
    drawn from a corpus without `split` are cleaned like training pairs.

    Raises:
        DataError: the config has no such split, or the split has no pair.
    """
    found = _read(config, split)
    _require_pairs(config, found, split)
    for reason, finding in found.reading.skipped.items():
        logger.warning(
            "%s split: skipped: %s: %d, first at %s", split, reason, finding.count, finding.example
        )
    return found.pairs


def all_held_out_pairs(config: Config) -> HeldOutSplits:
    """The validation split, and the test split if the config has one.

    The validation split has at least one pair; a test split that is drawn may have none.

    Raises:
        DataError: the config has no validation split, or the split has no pair.
    """
    found: HeldOutSplits = {"validation": _read(config, "validation")}
    _require_pairs(config, found["validation"], "validation")
    if has_split(config.data, "test"):
        found["test"] = _read(config, "test")
    return found


def _read(config: Config, split: SplitName) -> HeldOutSplit:
    found = HeldOutSplit([], ReadingReport(), ReadingReport(), CleaningReport())
    if has_split(config.data, split):
        rows = read_pairs(
            config.data,
            split,
            seed=config.seed,
            report=found.reading,
            report_of_drawn=found.drawn_reading,
        )
        for is_drawn, group in groupby(rows, key=lambda pair: _is_drawn(config, pair)):
            rules = config.cleaning if is_drawn else _normalized_only(config.cleaning)
            found.pairs.extend(clean(group, rules, found.cleaning))
    return found


def _require_pairs(config: Config, found: HeldOutSplit, split: SplitName) -> None:
    if found.pairs:
        return
    for reading in (found.reading, found.drawn_reading):
        if TOO_LONG in reading.skipped and reading.num_skipped == reading.num_rows:
            raise DataError(
                f"{reading.skipped[TOO_LONG].example}: {TOO_LONG}, which is no sentence; all pairs were skipped, "
                f"so the config has no {split} pairs",
                hint="give files with one sentence in each line or row; look at this one with: head -c 1000",
            )
    rows = [*finding_rows("skipped", found.drawn_reading.skipped), *found.table()]
    lost = "; ".join(f"{what}: {count:,}" for what, count, _ in rows if count)
    raise DataError(
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
        if _is_drawn(config, pair)
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
        return first_pairs(pairs, config.validation.max_sentences)
    drawn = [i for i, pair in enumerate(pairs) if _is_drawn(config, pair)]
    if len(drawn) <= MAX_DRAWN_TO_VALIDATE:
        return list(pairs)
    # Sorted by direction, because pairs of two directions alternate: every second pair would be of one direction.
    drawn.sort(key=lambda i: pairs[i].direction)
    used = {drawn[i * len(drawn) // MAX_DRAWN_TO_VALIDATE] for i in range(MAX_DRAWN_TO_VALIDATE)}
    left_out = set(drawn) - used
    return [pair for i, pair in enumerate(pairs) if i not in left_out]


def first_pairs(pairs: Sequence[SentencePair], number: int | None) -> list[SentencePair]:
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
    if (
        len(config.data.directions) > 1
    ):  # another corpus may have a held-out pair the other way round
        pairs += [SentencePair(pair.target, pair.source) for pair in pairs]
    return {pair_digest(compared(pair, config.cleaning)) for pair in pairs}


def _is_drawn(config: Config, pair: SentencePair) -> bool:
    data = config.data
    return isinstance(data, FilesData | HubData) and data.corpora[pair.corpus].split is None


def _normalized_only(rules: CleaningConfig) -> CleaningConfig:
    return CleaningConfig(
        normalize_unicode=rules.normalize_unicode,
        remove_control_characters=rules.remove_control_characters,
        normalize_invisible=rules.normalize_invisible,
        drop_equal=False,
        drop_duplicates=False,
        max_words=None,
        max_characters=None,
        max_length_ratio=None,
    )
