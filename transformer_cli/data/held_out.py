"""The pairs that the model is measured on, and never trained on."""

from collections.abc import Iterable
from itertools import groupby

from transformer_cli.config import CleaningConfig, Config, FilesData, HubData, SplitName
from transformer_cli.data.cleaning import CleaningReport, clean, pair_digest
from transformer_cli.data.corpus import has_split, may_leak, read_pairs
from transformer_cli.data.pairs import ReadingReport, SentencePair
from transformer_cli.errors import DataError


def held_out_pairs(
    config: Config, split: SplitName, report: CleaningReport | None = None
) -> list[SentencePair]:
    """The pairs of the validation or test split, as they are scored.

    Pairs of a corpus that is one split are all kept, normalised, but for empty ones; pairs drawn from
    a corpus are cleaned like the training pairs.

    Raises:
        DataError: there is no such split, or nothing in it.
    """
    pairs = _read(config, split, CleaningReport() if report is None else report)
    if not pairs:
        raise DataError(
            f"the config has no {split} pairs",
            hint=f"add a corpus with split: {split} under data.corpora, "
            f"or raise data.{split}_share so that some are drawn",
        )
    return pairs


def _read(config: Config, split: SplitName, report: CleaningReport) -> list[SentencePair]:
    pairs: list[SentencePair] = []
    if has_split(config.data, split):
        rows = read_pairs(config.data, split, seed=config.seed, report=ReadingReport())
        for is_drawn, group in groupby(rows, key=lambda pair: _is_drawn(config, pair)):
            rules = config.data.cleaning if is_drawn else _normalized_only(config.data.cleaning)
            pairs += clean(group, rules, report)
    return pairs


def all_held_out_pairs(
    config: Config,
) -> dict[SplitName, tuple[list[SentencePair], CleaningReport]]:
    """The held-out splits that there are, with what was dropped from them.

    There is always a validation split; of a small corpus, no pair may have been drawn for the test split.
    """
    report = CleaningReport()
    found: dict[SplitName, tuple[list[SentencePair], CleaningReport]] = {
        "validation": (held_out_pairs(config, "validation", report), report)
    }
    if has_split(config.data, "test"):
        report = CleaningReport()
        found["test"] = (_read(config, "test", report), report)
    return found


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
