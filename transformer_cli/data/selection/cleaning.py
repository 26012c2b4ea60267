"""Cleaning: rules that alter or drop training pairs, with a count for each rule."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b

from transformer_cli.config.text_settings import CleaningConfig
from transformer_cli.data.pairs import (
    Finding,
    ReadingReport,
    Row,
    SentencePair,
    finding_rows,
    pair_digest,
    table_lines,
)
from transformer_cli.data.selection.digest_set import DigestSet
from transformer_cli.process.errors import DataError
from transformer_cli.process.escaping import shortened
from transformer_cli.text.normalization import (
    compose,
    is_blank,
    normalize_invisible,
    remove_control_characters,
)

# Characters added to both lengths before their ratio is taken, so that short sentences may differ more.
_RATIO_MARGIN = 15
_EXAMPLE_CHARACTERS = 60


Alteration = Callable[[str, str], tuple[str, str]]
"""Makes other texts of a source and its target."""


@dataclass(slots=True)
class CleaningReport:
    """Counts the pairs that each rule dropped or altered, in the order of the rules."""

    num_read: int = 0
    num_kept: int = 0
    dropped: dict[str, Finding] = field(default_factory=dict)
    """Rule -> number of pairs that it dropped, and the first; a pair counts for its first rule only."""
    altered: dict[str, Finding] = field(default_factory=dict)
    """Rule -> number of pairs whose text it changed, and the first, before the change."""

    @property
    def num_dropped(self) -> int:
        return sum(finding.count for finding in self.dropped.values())

    def table(self) -> list[Row]:
        """How many pairs each rule altered or dropped; the first."""
        return [
            ("pairs read", self.num_read, ""),
            *finding_rows("altered", self.altered),
            *finding_rows("dropped", self.dropped),
            ("pairs kept", self.num_kept, ""),
        ]


def clean(
    pairs: Iterable[SentencePair],
    rules: CleaningConfig,
    report: CleaningReport,
    *,
    held_out: Collection[bytes] = frozenset(),
    seen: DigestSet | None = None,
) -> Iterator[SentencePair]:
    """Yield the pairs that no rule drops, in their order, with the text as the rules alter it.

    Args:
        report: counts what the rules do; it is complete when the last pair was taken.
        held_out: digests (`pair_digest` of `compared`) of validation and test pairs, which are dropped as leakage.
        seen: receives the digests of the pairs, to find duplicates; None: they are kept in memory.
    """
    altering = [
        (alter, report.altered.setdefault(rule, Finding())) for rule, alter in alterations(rules)
    ]
    dropping = [
        (must_drop, report.dropped.setdefault(rule, Finding()))
        for rule, must_drop in drops(rules, held_out, DigestSet() if seen is None else seen)
    ]
    for pair in pairs:
        report.num_read += 1
        for alter, finding in altering:
            source, target, *numbers = pair
            altered = SentencePair(*alter(source, target), *numbers)
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


def check_dropped_share(
    report: CleaningReport, rules: CleaningConfig, reading: ReadingReport
) -> None:
    """Raise an error if `clean` dropped too many pairs of a corpus; call it after the last pair.

    Args:
        reading: the pairs that reading skipped count as dropped too.

    Raises:
        DataError: no pair is left, or more than `max_dropped_share` of the pairs were dropped.
    """
    num_dropped = reading.num_skipped + report.num_dropped
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
        yield "remove_control_characters", of_both_sides(remove_control_characters)
    if rules.normalize_invisible:
        # A target keeps its no-break spaces, which a translation shall have. Where pairs are read in both directions, a
        # text is changed where it is the source, and stays where it is the target.
        yield (
            "normalize_invisible",
            lambda source, target: (normalize_invisible(source), target),
        )
    if rules.normalize_unicode:
        yield "normalize_unicode", of_both_sides(compose)


def of_both_sides(alter: Callable[[str], str]) -> Alteration:
    """A rule that changes source and target alike."""
    return lambda source, target: (alter(source), alter(target))


def compared(pair: SentencePair, rules: CleaningConfig) -> SentencePair:
    """A pair as it is compared with held-out pairs: both sides without what a source does not keep.

    So a held-out pair is found also where it stands the other way round.
    """
    if not rules.normalize_invisible:
        return pair
    source, target = normalize_invisible(pair.source), normalize_invisible(pair.target)
    return pair._replace(source=source, target=target)


def drops(
    rules: CleaningConfig, held_out: Collection[bytes], seen: DigestSet
) -> Iterator[tuple[str, Callable[[SentencePair], bool]]]:
    """The rules that drop pairs, each by its name, with a function that says whether it drops a pair."""
    if rules.drop_empty:
        yield "drop_empty", lambda pair: is_blank(pair.source) or is_blank(pair.target)
    if rules.drop_equal:
        yield "drop_equal", lambda pair: pair.source == pair.target
    if rules.min_words is not None:
        yield "min_words", _on_either_side(lambda text, n: len(text.split()) < n, rules.min_words)
    if rules.max_words is not None:
        yield "max_words", _on_either_side(_has_more_words, rules.max_words)
    if rules.max_characters is not None:
        yield "max_characters", _on_either_side(lambda text, n: len(text) > n, rules.max_characters)
    if (max_ratio := rules.max_length_ratio) is not None:
        yield "max_length_ratio", lambda pair: _has_unlike_lengths(pair, max_ratio)
    digest = lru_cache(maxsize=1)(pair_digest)  # two rules use the digest of the same pair
    if held_out:
        yield "leakage", lambda pair: digest(compared(pair, rules)) in held_out
    if rules.drop_duplicates:
        yield (
            "drop_duplicates",
            lambda pair: not seen.add(_in_direction(digest(pair), pair.direction)),
        )


def _in_direction(digest: bytes, direction: int) -> bytes:
    """A digest that differs for equal texts in two directions, such as a name that is the same in both languages."""
    if not direction:
        return digest
    return blake2b(b"%d:%b" % (direction, digest), digest_size=len(digest)).digest()


def _on_either_side(
    applies: Callable[[str, int], bool], limit: int
) -> Callable[[SentencePair], bool]:
    return lambda pair: applies(pair.source, limit) or applies(pair.target, limit)


def _has_more_words(text: str, limit: int) -> bool:
    # Counting words is slow, and more than `limit` words need more than 2 * `limit` characters.
    return len(text) >= 2 * limit and len(text.split()) > limit


def _has_unlike_lengths(pair: SentencePair, limit: float) -> bool:
    lengths = len(pair.source) + _RATIO_MARGIN, len(pair.target) + _RATIO_MARGIN
    return max(lengths) > limit * min(lengths)


def excerpt(pair: SentencePair) -> str:
    """The beginning of both sides, for a report."""
    sides = (shortened(text, _EXAMPLE_CHARACTERS) for text in (pair.source, pair.target))
    return " | ".join(ascii(side) if not side.isprintable() else side for side in sides)
