"""The pairs that the model is measured on, and never trained on."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import get_args

from transformer_cli.config import CleaningConfig, Config, FilesData, HubData, SplitName
from transformer_cli.data.pairs import ReadingReport, SentencePair
from transformer_cli.data.selection.cleaning import CleaningReport, clean, pair_digest
from transformer_cli.data.sources.corpus import has_split, may_leak, read_pairs
from transformer_cli.errors import DataError

logger = logging.getLogger(__name__)

# With fewer different pairs it is luck whether a share of them holds one.
_FEW_PAIRS = 20


@dataclass(frozen=True, slots=True)
class HeldOutSplit:
    """The pairs of a split, and what became of the others."""

    pairs: list[SentencePair]
    reading: ReadingReport
    """Of the corpora that are this split."""
    drawn_reading: ReadingReport
    """Of the corpora whose splits are drawn, the rows of other splits included."""
    cleaning: CleaningReport

    def table(self) -> list[tuple[str, int, str]]:
        """Rows for people: what was skipped, noticed, dropped or altered; how many pairs; an example.

        Rows of corpora whose splits are drawn belong to no split before they are pairs; the training
        split, which reads the same rows, tells of those that were skipped or are unusual.
        """
        return [*self.reading.table()[1:], *self.cleaning.table()[1:-1]]


def held_out_pairs(config: Config, split: SplitName) -> list[SentencePair]:
    """The pairs of the validation or test split, as they are scored; warns of those that reading left out.

    Pairs of a corpus that is one split are all kept, normalised, but for empty ones; pairs drawn from
    a corpus are cleaned like the training pairs.

    Raises:
        DataError: there is no such split, or nothing in it.
    """
    found = _read(config, split)
    _refuse_nothing(config, found, split)
    for reason, finding in found.reading.skipped.items():
        logger.warning(
            "%s split: left out, %s: %d, first %s", split, reason, finding.count, finding.example
        )
    return found.pairs


def all_held_out_pairs(config: Config) -> dict[SplitName, HeldOutSplit]:
    """The held-out splits that there are.

    There is always a validation split; of a small corpus, no pair may have been drawn for the test split.

    Raises:
        DataError: there is no validation split, or nothing in it.
    """
    found: dict[SplitName, HeldOutSplit] = {"validation": _read(config, "validation")}
    _refuse_nothing(config, found["validation"], "validation")
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
            rules = config.data.cleaning if is_drawn else _normalized_only(config.data.cleaning)
            found.pairs.extend(clean(group, rules, found.cleaning))
    return found


def _refuse_nothing(config: Config, found: HeldOutSplit, split: SplitName) -> None:
    if found.pairs:
        return
    skipped = found.drawn_reading.skipped.items()
    rows = [*((f"skipped: {what}", one.count) for what, one in skipped)]
    rows += [(what, count) for what, count, _ in found.table() if count]
    lost = "; ".join(f"{what}: {count:,}" for what, count in rows)
    raise DataError(
        f"the config has no {split} pairs" + (f"; {lost}" if lost else ""),
        hint=_hint_of_nothing(config, found, split),
    )


def _hint_of_nothing(config: Config, found: HeldOutSplit, split: SplitName) -> str | None:
    data = config.data
    if not isinstance(data, FilesData | HubData):
        return None
    add = f"add a corpus with split: {split} under data.corpora"
    given = [f"data.corpora.{i}" for i, corpus in enumerate(data.corpora) if corpus.split == split]
    if given:
        return f"{', '.join(given[:3])} has no pair that can be used; mend it, or {add}"
    if all(corpus.split is not None for corpus in data.corpora):
        return add
    share = data.validation_share if split == "validation" else data.test_share
    setting = f"data.{split}_share"
    if found.drawn_reading.num_read:
        return (
            f"each pair that was drawn for it was dropped; look at the rules under data.cleaning, "
            f"raise {setting} (now {share:g}), or {add}"
        )
    num_different = _num_different_drawn(config)
    if share and num_different < _FEW_PAIRS:
        return (
            f"different pairs that it can be drawn from: {num_different}, and equal pairs are in one "
            f"split; more are needed, or {add}"
        )
    return f"{add}, or raise {setting} (now {share:g}) so that some are drawn"


def _num_different_drawn(config: Config) -> int:
    """Different pairs of the corpora whose splits are drawn, counted up to a few."""
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


def held_out_digests(config: Config, pairs: Iterable[SentencePair]) -> set[bytes]:
    """What marks training pairs that are among these held-out pairs."""
    return {pair_digest(pair) for pair in pairs} if may_leak(config.data) else set()


def _is_drawn(config: Config, pair: SentencePair) -> bool:
    data = config.data
    return isinstance(data, FilesData | HubData) and data.corpora[pair.corpus].split is None


def _normalized_only(rules: CleaningConfig) -> CleaningConfig:
    return CleaningConfig(
        normalize_unicode=rules.normalize_unicode,
        remove_control_characters=rules.remove_control_characters,
        drop_equal=False,
        drop_duplicates=False,
        max_words=None,
        max_characters=None,
        max_length_ratio=None,
    )
