"""Applies the rules of cleaning to one pair after the other, and counts what each rule does."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from transformer_cli.config import CleaningConfig
from transformer_cli.data.pairs import SentencePair
from transformer_cli.data.selection import Alteration, DigestSet, alterations, drops, of_both_sides
from transformer_cli.extensions.corpora.cleaning_rules import CorpusRules
from transformer_cli.extensions.corpora.findings import MAX_EXAMPLES, Example
from transformer_cli.extensions.corpora.held_out_forms import HeldOutForms
from transformer_cli.extensions.corpora.likeness import (
    is_nearly_untranslated,
    plain_digest,
    plain_form,
)
from transformer_cli.extensions.corpora.numbered_pairs import CorpusPart, NumberedPair
from transformer_cli.extensions.corpora.realignment import WITHOUT_TRANSLATION
from transformer_cli.extensions.corpora.spoken_languages import LanguageDetector, spoken_pair
from transformer_cli.extensions.corpora.text_faults import (
    REPLACEMENT_CHARACTER,
    with_encoding_mended,
    without_entities,
)

UNREADABLE = "unreadable"
"""The name, in reports, for pairs that are no text: not UTF-8, a NUL byte, or a line of more than 1 MB."""
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
        part: CorpusPart,
        rules: CorpusRules,
        detector: LanguageDetector | None,
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
        if self._is_dropped("realign", pair, pair.damage == WITHOUT_TRANSLATION):
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
            drop_empty=rules.drop_empty, drop_equal=False, drop_duplicates=False,
            max_words=None, max_characters=None, max_length_ratio=None,
        )  # fmt: skip
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
                drop_empty=False, drop_equal=False,
                max_words=None, max_characters=None, max_length_ratio=None,
            )  # fmt: skip
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
        return self._held_out.overlap(pair, _forms(pair)) == overlap

    def _stands_above(self, pair: SentencePair) -> bool:
        forms = _forms(pair)
        return all(forms) and not self._seen_forms.add(plain_digest(*forms))


def _changes(rules: CorpusRules) -> Iterator[tuple[str, Alteration]]:
    if rules.mend_encoding:
        yield "mend_encoding", of_both_sides(with_encoding_mended)
    if rules.mend_entities:
        yield "mend_entities", of_both_sides(without_entities)
    yield from alterations(rules)


def _forms(pair: SentencePair) -> tuple[str, str]:
    return plain_form(pair.source), plain_form(pair.target)
