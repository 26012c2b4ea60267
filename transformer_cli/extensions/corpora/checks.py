"""The check of a corpus: all its pairs are read once, and each fault is counted."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from transformer_cli.config import CleaningConfig
from transformer_cli.config.schema import DataConfig
from transformer_cli.data.columns import NUM_SAMPLED_ROWS, is_header, looks_like_names
from transformer_cli.data.pairs import SentencePair
from transformer_cli.data.selection import DigestSet, alterations, drops
from transformer_cli.data.sources.corpus import draw_split
from transformer_cli.data.sources.lines import TOO_LONG
from transformer_cli.extensions.corpora.drift import DriftFinder, Stretch
from transformer_cli.extensions.corpora.findings import Example, Findings, Found
from transformer_cli.extensions.corpora.pair_facts import (
    REPLACEMENT_CHARACTER,
    HeldOutForms,
    SentenceLanguageDetector,
    has_few_letters,
    is_nearly_untranslated,
    plain_digest,
    plain_form,
    spoken_pair,
    with_encoding_mended,
    without_entities,
)
from transformer_cli.extensions.corpora.pairs import (
    NOT_UTF_8,
    NUL_BYTE,
    NumberedPair,
    NumberedPairs,
    NumberedPart,
    corpus_parts,
)
from transformer_cli.storage import temporary_folder

# The rules that training applies, and the faults that they mend.
_FAULT_OF_RULE = {
    "remove_control_characters": "control_characters",
    "normalize_invisible": "invisible_characters",
    "normalize_unicode": "not_nfc",
    "join_white_space": "white_space",
    "drop_empty": "empty",
    "drop_equal": "equal",
    "min_words": "too_few_words",
    "max_words": "too_many_words",
    "max_characters": "too_many_characters",
    "max_length_ratio": "length_ratio",
    "drop_duplicates": "duplicates",
}
_FAULT_OF_DAMAGE = {NOT_UTF_8: "not_utf_8", NUL_BYTE: "nul_bytes", TOO_LONG: "too_long"}
LANGUAGE_FAULTS = ("swapped", "wrong_source_language", "wrong_target_language")


class PairChecks:
    """The checks of the pairs of one part.

    Args:
        rules: gives the limits for lengths; a limit that it does not set has its default.
        held_out: the validation and test pairs, with which pairs are compared.
        folder: where to put large tables of digests; it exists.
    """

    def __init__(
        self,
        part: NumberedPart,
        rules: CleaningConfig,
        detector: SentenceLanguageDetector,
        held_out: HeldOutForms,
        folder: Path,
    ) -> None:
        self.findings = Findings()
        self.num_examined_languages = 0
        self.num_short = 0
        self._part, self._detector, self._held_out = part, detector, held_out
        for name in ("seen", "forms"):
            (folder / name).mkdir()
        self._seen, self._seen_forms = DigestSet(folder / "seen"), DigestSet(folder / "forms")
        complete = _every_rule(rules)
        self._alterations = list(alterations(complete))
        self._drops = list(drops(complete, frozenset(), self._seen))

    def look(self, pair: NumberedPair, *, at_languages: bool, at_leakage: bool) -> None:
        """Check a pair, and note its faults."""
        if pair.damage:
            self._note(_FAULT_OF_DAMAGE[pair.damage], pair)
        if pair.damage in ("", NOT_UTF_8):
            text = SentencePair(pair.source, pair.target)
            self._look_at_text(pair, text, at_languages=at_languages, at_leakage=at_leakage)

    def _look_at_text(self, pair: NumberedPair, text: SentencePair, *, at_languages: bool, at_leakage: bool) -> None:
        faults = set(self._faults_of_rules(text))
        for fault in faults:
            self._note(fault, pair)
        for fault, note in _faults_of_texts(text, may_be_lost=not pair.damage):
            self._note(fault, pair, note)
        if "empty" in faults:
            return
        forms = plain_form(pair.source), plain_form(pair.target)
        if "duplicates" not in faults and all(forms) and self._is_repeated(forms):
            self._note("near_duplicates", pair)
        if at_leakage:
            self._look_for_leakage(pair, text, forms)
        if "equal" in faults:
            return
        if is_nearly_untranslated(source=forms[0], target=forms[1]):
            self._note("nearly_equal", pair)
        if at_languages:
            self._look_at_languages(pair, text)

    def close(self) -> None:
        """Free the tables of digests."""
        self._seen.close()
        self._seen_forms.close()

    def _note(self, fault: str, pair: NumberedPair, note: str = "") -> None:
        place = self._part.place(pair.line)
        self.findings.note(fault, Example(place, pair.source, pair.target, note))

    def _faults_of_rules(self, pair: SentencePair) -> Iterator[str]:
        for rule, alter in self._alterations:
            altered = SentencePair(*alter(pair.source, pair.target))
            if altered != pair:
                yield _FAULT_OF_RULE[rule]
                pair = altered
        is_empty = False
        for rule, must_drop in self._drops:
            # Two empty sides are equal, and one empty side is short: that is one fault and not three.
            if not is_empty and must_drop(pair):
                yield _FAULT_OF_RULE[rule]
                is_empty = rule == "drop_empty"

    def _is_repeated(self, forms: tuple[str, str]) -> bool:
        return not self._seen_forms.add(plain_digest(*forms))

    def _look_for_leakage(self, pair: NumberedPair, text: SentencePair, forms: tuple[str, str]) -> None:
        overlap = next(self._held_out.overlaps(text, forms), None)
        if overlap is not None and self._part.split != "test":
            self._note(overlap, pair)
        elif overlap in ("leakage", "near_leakage"):
            self._note("shared_test", pair)

    def _look_at_languages(self, pair: NumberedPair, text: SentencePair) -> None:
        self.num_examined_languages += 1
        self.num_short += sum(map(has_few_letters, text[:2]))
        spoken = spoken_pair(self._detector, text, self._part.direction)
        if spoken.is_exchanged:
            self._note("swapped", pair, spoken.note)
            return
        for is_wrong, fault in zip(spoken.are_wrong, LANGUAGE_FAULTS[1:], strict=True):
            if is_wrong:
                self._note(fault, pair, spoken.note)


def _every_rule(rules: CleaningConfig) -> CleaningConfig:
    """The rules with their own limits, and with the default where a rule is switched off."""
    defaults = CleaningConfig()
    return CleaningConfig(**{name: getattr(rules, name) or getattr(defaults, name) for name in _FAULT_OF_RULE})


def _faults_of_texts(pair: SentencePair, *, may_be_lost: bool) -> Iterator[tuple[str, str]]:
    for fault, mend in (
        ("broken_encoding", with_encoding_mended),
        ("html_entities", without_entities),
    ):
        for text in pair[:2]:
            if (mended := mend(text)) != text:
                yield fault, f"mended: {mended}"
                break
    if may_be_lost and any(REPLACEMENT_CHARACTER in text for text in pair[:2]):
        yield "lost_characters", ""


# The languages of the first pairs are all examined, and then those of every tenth.
_NUM_FIRST, _STEP = 20_000, 10
_NUM_SHOWN_LINES = 2
MAX_STRETCHES = 10
"""So many stretches of lines are described for people; programs get all."""


@dataclass(frozen=True, slots=True)
class PartReport:
    """The check of one part of a corpus."""

    part: NumberedPart
    num_pairs: int
    num_examined_languages: int
    num_short: int
    """Number of sentences of the examined pairs whose language was not judged, because they have too few letters."""
    found: list[Found]

    def to_json(self) -> dict[str, Any]:
        return {
            "split": self.part.split,
            "source": self.part.source_name,
            "target": self.part.target_name,
            "languages": str(self.part.direction),
            "num_pairs": self.num_pairs,
            "num_pairs_with_examined_languages": self.num_examined_languages,
            "num_sentences_too_short_for_languages": self.num_short,
            "findings": [found.to_json() for found in self.found],
        }


def inspect(data: DataConfig, *, seed: int = 0, all_languages: bool = False) -> Iterator[PartReport]:
    """Check a corpus part by part: validation, test, then training pairs.

    Args:
        data: says how to read it; its `cleaning` gives the limits for lengths.
        seed: random seed of a generated corpus.
        all_languages: recognise the languages of all pairs, not of a sample.

    Raises:
        MissingInputError: a file does not exist.
        DataError: a file cannot be read as a corpus.
    """
    detector = SentenceLanguageDetector()
    with temporary_folder("tfm-corpora-") as scratch:
        held_out = HeldOutForms(scratch)
        parts = corpus_parts(data)
        for part in parts:
            if part.split is None:
                _add_held_out(held_out, part, data, seed)
        for split, group in groupby(enumerate(parts), key=lambda numbered: numbered[1].split):
            split_parts = list(group)
            for number, part in split_parts:
                (scratch / str(number)).mkdir()
                checks = PairChecks(part, data.cleaning, detector, held_out, scratch / str(number))
                yield _inspected(part, data, checks, seed=seed, all_languages=all_languages)
                checks.close()
            if split in ("validation", "test"):
                # Only now: a pair that stands twice among the test pairs is no validation pair.
                for _, part in split_parts:
                    _add_held_out(held_out, part, data, seed)
        held_out.close()


def split_of(pair: SentencePair, part: NumberedPart, data: DataConfig) -> str:
    """The split of a pair: that of its part, or the one that is drawn for it."""
    if part.split is not None:
        return part.split
    shares = {name: getattr(data, name, 0.0) for name in ("validation_share", "test_share")}
    return draw_split(pair, **shares)


def _add_held_out(held_out: HeldOutForms, part: NumberedPart, data: DataConfig, seed: int) -> None:
    """Add the validation and test pairs of a part; of one without split, those that are drawn."""
    shares = getattr(data, "validation_share", 0.0), getattr(data, "test_share", 0.0)
    if part.split is None and not any(shares):
        return
    for numbered in NumberedPairs(part, data, seed=seed):
        pair = SentencePair(numbered.source, numbered.target)
        if split_of(pair, part, data) != "train":
            held_out.add(pair, (plain_form(pair.source), plain_form(pair.target)))


def _inspected(
    part: NumberedPart,
    data: DataConfig,
    checks: PairChecks,
    *,
    seed: int,
    all_languages: bool,
) -> PartReport:
    drift, num_pairs = DriftFinder(), 0
    first: list[list[str]] = []
    pairs = NumberedPairs(part, data, seed=seed)
    for num_pairs, numbered in enumerate(pairs, start=1):
        if len(first) < NUM_SAMPLED_ROWS:
            first.append([numbered.source, numbered.target])
        drift.add(numbered.source, numbered.target)
        pair = SentencePair(numbered.source, numbered.target)
        is_held_out = split_of(pair, part, data) != "train"
        checks.look(
            numbered,
            at_languages=all_languages or num_pairs <= _NUM_FIRST or num_pairs % _STEP == 0,
            at_leakage=part.split == "test" or not is_held_out,
        )
    findings = checks.findings
    if pairs.unequal is not None:
        findings.add(Found("unequal_lines", num_pairs, 1, details=[pairs.unequal.message]))
    is_list = part.files is not None and bool(first)
    if is_list and (is_header(first[0], first[1:]) or looks_like_names(first[0], first[1:])):
        findings.add(Found("header", num_pairs, 1, [Example(part.place(1), *first[0])]))
    for found in _drift_findings(drift, num_pairs, part, data):
        findings.add(found)
    examined = dict.fromkeys(LANGUAGE_FAULTS, checks.num_examined_languages)
    found_all = findings.finish(examined, num_pairs)
    return PartReport(part, num_pairs, checks.num_examined_languages, checks.num_short, found_all)


def _drift_findings(drift: DriftFinder, num_pairs: int, part: NumberedPart, data: DataConfig) -> Iterator[Found]:
    stretches = drift.finish()
    if drift.relation != "related":
        kind = {"unrelated": "unrelated", "unclear": "relation_unclear"}[drift.relation]
        yield Found(kind, num_pairs, num_pairs)
        return
    wrong = [stretch for stretch in stretches if stretch.offset != 0]
    if not wrong:
        return
    count = sum(stretch.last_line - stretch.first_line + 1 for stretch in wrong)
    examples = _examples_from(wrong[0].first_line, part, data)
    wrong = _in_lines(wrong, part, data)
    details = [_in_words(stretch, part) for stretch in wrong[:MAX_STRETCHES]]
    if len(wrong) > MAX_STRETCHES:
        details.append(f"and {len(wrong) - MAX_STRETCHES:,} stretches more")
    ranges = [stretch._asdict() for stretch in wrong]
    yield Found("drift", num_pairs, count, examples, details, ranges)


def _in_lines(stretches: list[Stretch], part: NumberedPart, data: DataConfig) -> list[Stretch]:
    """The stretches with lines of the file for rows of a table, which may have a header and line ends inside of cells."""
    if part.files is None or part.files.format == "text":
        return stretches
    wanted = {row for stretch in stretches for row in stretch[:2]}
    lines = {row: pair.line for row, pair in enumerate(NumberedPairs(part, data), start=1) if row in wanted}
    return [Stretch(lines[first], lines[last], offset) for first, last, offset in stretches]


def _in_words(stretch: Stretch, part: NumberedPart) -> str:
    lines = f"lines {stretch.first_line:,} to {stretch.last_line:,} of {part.source_name}"
    if stretch.offset is None:
        return f"{lines}: translations of none of the lines near them"
    way = "after" if stretch.offset > 0 else "before"
    number = abs(stretch.offset)
    return f"{lines}: their translations stand {number} line{'s' * (number > 1)} {way} them in {part.target_name}"


def _examples_from(first_line: int, part: NumberedPart, data: DataConfig) -> list[Example]:
    """The pairs around the line from which on the sides drift apart."""
    shown = range(max(1, first_line - _NUM_SHOWN_LINES), first_line + _NUM_SHOWN_LINES)
    examples = []
    for number, pair in enumerate(NumberedPairs(part, data), start=1):
        if number >= shown.stop:
            break
        if number in shown:
            examples.append(Example(part.place(pair.line), pair.source, pair.target))
    return examples
