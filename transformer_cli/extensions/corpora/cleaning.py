"""Cleans a corpus: applies the rules to one pair after the other, and writes what they leave and what they removed."""

import json
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self, TextIO

from transformer_cli.config import CleaningConfig
from transformer_cli.config.schema import DataConfig
from transformer_cli.data.pairs import SentencePair
from transformer_cli.data.selection import Alteration, DigestSet, alterations, drops, on_both_sides
from transformer_cli.data.sources.local_files import CLEANING_RECORDS, CLEANING_REPORT, without_compression
from transformer_cli.extensions.corpora.cleaning_rules import CorpusRules
from transformer_cli.extensions.corpora.drift import (
    WITHOUT_TRANSLATION,
    DriftFinder,
    Stretch,
    realigned,
)
from transformer_cli.extensions.corpora.findings import MAX_EXAMPLES, Example
from transformer_cli.extensions.corpora.pair_facts import (
    REPLACEMENT_CHARACTER,
    HeldOutForms,
    SentenceLanguageDetector,
    is_nearly_untranslated,
    plain_digest,
    plain_form,
    spoken_pair,
    with_encoding_mended,
    without_entities,
)
from transformer_cli.extensions.corpora.pairs import (
    NO_SOURCE,
    NO_TARGET,
    NumberedPair,
    NumberedPairs,
    NumberedPart,
    corpus_parts,
)
from transformer_cli.process.errors import DataError
from transformer_cli.storage import staged_folder, temporary_folder

logger = logging.getLogger(__name__)

UNREADABLE = "unreadable"
"""The name, in reports, for pairs that are no text: not UTF-8, a NUL byte, or a line of more than 1 MB."""
_ALONE = (WITHOUT_TRANSLATION, NO_SOURCE, NO_TARGET)
_Drop = Callable[[SentencePair], bool]


@dataclass(slots=True)
class RuleCount:
    """What a rule did."""

    num_in: int = 0
    """Pairs that came to this rule."""
    num_dropped: int = 0
    num_changed: int = 0
    examples: list[Example] = field(default_factory=list)
    """The first pairs that it dropped or changed, before the change."""

    @property
    def num_out(self) -> int:
        return self.num_in - self.num_dropped

    def to_json(self) -> dict[str, Any]:
        return {
            "rows_in": self.num_in,
            "changed": self.num_changed,
            "dropped": self.num_dropped,
            "rows_out": self.num_out,
            "examples": [example.to_json() for example in self.examples],
        }


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A pair after cleaning."""

    pair: NumberedPair
    """With its text as the rules changed it."""
    dropped_by: str | None
    """The rule that dropped it; None: it is kept."""
    changed_by: tuple[str, ...]


class PairCleaner:
    """The rules for one part of a corpus, with their counts in `counts`, in order.

    Args:
        rules: which rules are applied; only changes, `realign` and drop_empty for validation and test pairs.
        held_out: the validation and test pairs, with which training pairs are compared.
        folder: where to put large tables of digests; it exists.
    """

    def __init__(
        self,
        part: NumberedPart,
        rules: CorpusRules,
        detector: SentenceLanguageDetector | None,
        held_out: HeldOutForms,
        folder: Path,
    ) -> None:
        self._part, self._detector, self._held_out = part, detector, held_out
        for name in ("seen", "forms"):
            (folder / name).mkdir()
        self._seen, self._seen_forms = DigestSet(folder / "seen"), DigestSet(folder / "forms")
        self._changes = list(_changes(rules))
        is_held_out = part.split in ("validation", "test")
        self._drops = list(self._held_out_drops(rules) if is_held_out else self._all_drops(rules))
        realign = ["realign"] if rules.realign else []
        names = [*realign, UNREADABLE, *dict(self._changes), *dict(self._drops)]
        self.counts = {name: RuleCount() for name in names}

    def clean(self, pair: NumberedPair) -> Cleaned:
        """Change the texts of a pair, and find the first rule that drops it."""
        if self._is_dropped("realign", pair, pair.damage in _ALONE):
            return Cleaned(pair, "realign", ())
        if self._is_dropped(UNREADABLE, pair, bool(pair.damage)):
            return Cleaned(pair, UNREADABLE, ())
        changed_by = ("realign",) if pair.offset else ()
        if pair.offset:
            self._count_change("realign", pair)
        for rule, change in self._changes:
            self.counts[rule].num_in += 1
            source, target = change(pair.source, pair.target)
            changed = pair._replace(source=source, target=target)
            if changed != pair:
                self._count_change(rule, pair)
                changed_by, pair = (*changed_by, rule), changed
        text = SentencePair(pair.source, pair.target)
        for rule, must_drop in self._drops:
            if self._is_dropped(rule, pair, must_drop(text)):
                return Cleaned(pair, rule, changed_by)
        if self._part.split in ("validation", "test"):
            self._held_out.add(text, _forms(text))
        return Cleaned(pair, None, changed_by)

    def close(self) -> None:
        """Free the tables of digests."""
        self._seen.close()
        self._seen_forms.close()

    def _is_dropped(self, rule: str, pair: NumberedPair, is_dropped: bool) -> bool:
        if (count := self.counts.get(rule)) is None:
            return False
        count.num_in += 1
        if is_dropped:
            count.num_dropped += 1
            self._show(count, pair)
        return is_dropped

    def _count_change(self, rule: str, pair: NumberedPair) -> None:
        self.counts[rule].num_changed += 1
        self._show(self.counts[rule], pair)

    def _show(self, count: RuleCount, pair: NumberedPair) -> None:
        if len(count.examples) < MAX_EXAMPLES:
            place = self._part.place(pair.line)
            count.examples.append(Example(place, pair.source, pair.target, pair.damage))

    def _held_out_drops(self, rules: CorpusRules) -> Iterator[tuple[str, _Drop]]:
        only_empty = CleaningConfig(
            drop_empty=rules.drop_empty,
            drop_equal=False,
            drop_duplicates=False,
            max_words=None,
            max_characters=None,
            max_length_ratio=None,
        )
        yield from drops(only_empty, frozenset(), self._seen)

    def _all_drops(self, rules: CorpusRules) -> Iterator[tuple[str, _Drop]]:
        if rules.drop_lost_characters:
            yield (
                "drop_lost_characters",
                lambda pair: REPLACEMENT_CHARACTER in pair.source + pair.target,
            )
        # The rule about duplicates must be the last: it remembers each pair that comes to it.
        without_duplicates = rules.model_copy(update={"drop_duplicates": False})
        yield from drops(without_duplicates, frozenset(), self._seen)
        if rules.drop_nearly_equal:
            yield "drop_nearly_equal", lambda pair: is_nearly_untranslated(*_forms(pair))
        if rules.drop_wrong_language and (detector := self._detector) is not None:
            direction = self._part.direction
            yield (
                "drop_wrong_language",
                lambda pair: any(spoken_pair(detector, pair, direction).are_wrong),
            )
        yield from self._leakage_drops(rules)
        if rules.drop_duplicates:
            only = CleaningConfig(
                drop_empty=False,
                drop_equal=False,
                max_words=None,
                max_characters=None,
                max_length_ratio=None,
            )
            yield from drops(only, frozenset(), self._seen)
        if rules.drop_near_duplicates:
            yield "drop_near_duplicates", self._stands_above

    def _leakage_drops(self, rules: CorpusRules) -> Iterator[tuple[str, _Drop]]:
        kinds = {
            "leakage": "leakage",
            "drop_near_leakage": "near_leakage",
            "drop_leaked_source": "leaked_source",
            "drop_leaked_target": "leaked_target",
        }
        for rule, overlap in kinds.items():
            if self._held_out and getattr(rules, rule, True):
                yield rule, partial(self._overlaps, overlap)

    def _overlaps(self, overlap: str, pair: SentencePair) -> bool:
        return overlap in self._held_out.overlaps(pair, _forms(pair))

    def _stands_above(self, pair: SentencePair) -> bool:
        forms = _forms(pair)
        return all(forms) and not self._seen_forms.add(plain_digest(*forms))


def _changes(rules: CorpusRules) -> Iterator[tuple[str, Alteration]]:
    if rules.mend_encoding:
        yield "mend_encoding", on_both_sides(with_encoding_mended)
    if rules.mend_entities:
        yield "mend_entities", on_both_sides(without_entities)
    yield from alterations(rules)


def _forms(pair: SentencePair) -> tuple[str, str]:
    return plain_form(pair.source), plain_form(pair.target)


_BREAKS = re.compile("[\\t\\n\\r\\x0b\\x0c\\x1c-\\x1e\\x85\\u2028\\u2029]+")


@dataclass(frozen=True, slots=True)
class CleanedPart:
    """What cleaning made of one part of a corpus."""

    part: NumberedPart
    counts: dict[str, RuleCount]
    num_read: int
    num_kept: int
    files: tuple[str, ...]
    """Names of the files with the pairs that are left: two text files, or one TSV file."""

    def to_json(self) -> dict[str, Any]:
        return {
            "split": self.part.split,
            "source": self.part.source_name,
            "target": self.part.target_name,
            "rows_read": self.num_read,
            "rows_kept": self.num_kept,
            "files": list(self.files),
            "rules": {rule: count.to_json() for rule, count in self.counts.items()},
        }


def clean_corpus(data: DataConfig, rules: CorpusRules, folder: Path, *, seed: int = 0) -> list[CleanedPart]:
    """Clean all parts of a corpus into a folder, which appears whole or not at all.

    Raises:
        DataError: the two sides of a part have no relation, or different numbers of lines without `rules.realign`; or
            more than `rules.max_dropped_share` of its pairs would be dropped.
    """
    detector = SentenceLanguageDetector() if rules.drop_wrong_language else None
    cleaned: list[CleanedPart] = []
    with temporary_folder("tfm-corpora-") as scratch, staged_folder(folder) as unfinished:
        held_out = HeldOutForms(scratch)
        names = _FreeNames(data)
        for number, part in enumerate(corpus_parts(data)):
            (scratch / str(number)).mkdir()
            cleaner = PairCleaner(part, rules, detector, held_out, scratch / str(number))
            pairs = NumberedPairs(part, data, seed=seed, has_surplus=rules.realign)
            writer = _PartWriter(part, unfinished, names.of(part))
            one = _clean_part(pairs, cleaner, writer, realigns=rules.realign)
            _check_share(one, rules)
            cleaned.append(one)
        held_out.close()
        report = {"parts": [one.to_json() for one in cleaned], "rules": rules.model_dump()}
        text = json.dumps(report, ensure_ascii=False, indent=1)
        (unfinished / CLEANING_REPORT).write_text(text + "\n", encoding="utf-8", newline="\n")
    return cleaned


def _clean_part(pairs: NumberedPairs, cleaner: PairCleaner, writer: "_PartWriter", *, realigns: bool) -> CleanedPart:
    stretches = _stretches(pairs) if realigns else []
    num_read = num_kept = 0
    with writer:
        for pair in realigned(pairs, stretches):
            num_read += 1
            one = cleaner.clean(pair)
            writer.write(pair, one)
            num_kept += one.dropped_by is None
    cleaner.close()
    if pairs.unequal is not None and not realigns:
        raise pairs.unequal
    return CleanedPart(writer.part, cleaner.counts, num_read, num_kept, writer.names)


def _stretches(pairs: NumberedPairs) -> list[Stretch]:
    """The offsets of the two sides of a part.

    Raises:
        DataError: no line of the part translates a line near it.
    """
    finder = DriftFinder()
    for pair in pairs:
        finder.add(
            None if pair.damage == NO_SOURCE else pair.source,
            None if pair.damage == NO_TARGET else pair.target,
        )
    stretches = finder.finish()
    if finder.relation == "unclear":
        logger.warning(
            "%s: too little to tell whether line N translates line N; the lines stay as they stand (rule realign)",
            pairs.part.name,
        )
    if finder.relation == "unrelated":
        raise DataError(
            f"{pairs.part.name}: no relation between the two sides, so nothing can be cleaned",
            hint="give the right files; or, if they are right: --set realign=false",
        )
    return stretches


def _check_share(one: CleanedPart, rules: CorpusRules) -> None:
    num_dropped = one.num_read - one.num_kept
    if one.num_kept and num_dropped <= rules.max_dropped_share * one.num_read:
        return
    if not one.num_read:
        raise DataError(f"no sentence pair in {one.part.name}", hint="give files with text")
    allowed = f"max_dropped_share allows {rules.max_dropped_share:.0%}"
    reasons = sorted(one.counts.items(), key=lambda item: -item[1].num_dropped)[:3]
    shown = ", ".join(f"{rule} {count.num_dropped:,}" for rule, count in reasons if count.num_dropped)
    raise DataError(
        f"{one.part.name}: the rules drop {num_dropped:,} of {one.num_read:,} pairs ({shown}), and "
        f"{allowed if one.num_kept else 'no pair is left'}; nothing was written",
        hint="; ".join(["look at the corpus with tfm data check", *_ways_out(one, rules)]),
    )


def _ways_out(one: CleanedPart, rules: CorpusRules) -> Iterator[str]:
    """What lets the cleaning of a part of which too much is dropped go on: without the rule that drops most, or with more dropped."""
    most = max(one.counts, key=lambda rule: one.counts[rule].num_dropped)
    if most in type(rules).model_fields:
        off = "false" if isinstance(getattr(rules, most), bool) else "null"
        yield f"switch a rule off: --set {most}={off}"
    if one.num_kept:
        share = (100 * (one.num_read - one.num_kept) // one.num_read + 1) / 100
        yield f"or allow more: --set max_dropped_share={share}"


class _FreeNames:
    """The names of the files of each part: those of the corpus, each used once."""

    def __init__(self, data: DataConfig) -> None:
        self._data, self._used = data, {CLEANING_REPORT}

    def of(self, part: NumberedPart) -> tuple[str, ...]:
        if part.files is None:
            wanted: tuple[str, ...] = (f"{part.split}.tsv",)
        elif part.files.format == "text":
            wanted = (_bare(part.files.source), _bare(part.files.target))
        else:
            wanted = (f"{Path(_bare(part.files.source)).stem}.tsv",)
        number = 1
        names = wanted
        while self._used & {*names} or len({*names}) < len(names):
            number += 1
            names = tuple(f"{number}-{side}-{name}" for side, name in enumerate(wanted))
        self._used |= {*names}
        return names


def _bare(path: Path) -> str:
    return without_compression(path).name


class _PartWriter:
    """Writes the pairs of a part that are left, the numbers of their lines, and what the rules did."""

    def __init__(self, part: NumberedPart, folder: Path, names: tuple[str, ...]) -> None:
        self.part, self.names = part, names
        stem = f"{names[0]}."
        self._paths = [
            *(folder / name for name in names),
            *(folder / (stem + ending) for ending in CLEANING_RECORDS),
        ]
        self._opened = ExitStack()
        self._files: list[TextIO] = []

    def __enter__(self) -> Self:
        for path in self._paths:
            file = path.open("w", encoding="utf-8", errors="surrogatepass", newline="\n")
            self._files.append(self._opened.enter_context(file))
        _row(self._numbers, "source_line", "target_line")
        _row(self._removed, "rule", "source_line", "target_line", "source", "target")
        _row(self._changed, "rules", "source_line", "target_line", "source_before", "target_before")
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @property
    def _numbers(self) -> TextIO:
        return self._files[-3]

    @property
    def _removed(self) -> TextIO:
        return self._files[-2]

    @property
    def _changed(self) -> TextIO:
        return self._files[-1]

    def write(self, before: NumberedPair, after: Cleaned) -> None:
        """Write a pair to the files of those that are left, or to that of the removed ones."""
        line, target_line = str(before.line), str(before.target_line)
        if after.dropped_by is not None:
            _row(self._removed, after.dropped_by, line, target_line, before.source, before.target)
            return
        source, target = after.pair.source, after.pair.target
        if len(self.names) == 2:
            _row(self._files[0], source)
            _row(self._files[1], target)
        else:
            _row(self._files[0], source, target)
        _row(self._numbers, line, target_line)
        if after.changed_by:
            _row(self._changed, ",".join(after.changed_by), line, target_line, before.source, before.target)


def _row(file: TextIO, *cells: str) -> None:
    """Write a row; line ends and tabs inside a cell become spaces."""
    file.write("\t".join(_BREAKS.sub(" ", cell) for cell in cells) + "\n")
