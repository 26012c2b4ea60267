"""The check of a corpus: all its pairs are read once, and each fault is counted."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from transformer_cli.config.tree import DataConfig
from transformer_cli.data.columns import NUM_SAMPLED_ROWS, is_header, looks_like_names
from transformer_cli.data.pairs import SentencePair
from transformer_cli.data.sources.corpus import draw_split
from transformer_cli.extensions.corpora.alignment.drift import DriftFinder, Stretch
from transformer_cli.extensions.corpora.findings import Example, Found
from transformer_cli.extensions.corpora.held_out_forms import HeldOutForms
from transformer_cli.extensions.corpora.likeness import plain_form
from transformer_cli.extensions.corpora.numbered_pairs import (
    CorpusPart,
    NumberedPairs,
    corpus_parts,
    scratch_folder,
)
from transformer_cli.extensions.corpora.pair_checks import LANGUAGE_FAULTS, PairChecks
from transformer_cli.extensions.corpora.spoken_languages import LanguageDetector

# The languages of the first pairs are all examined, and then those of every tenth.
_NUM_FIRST, _STEP = 20_000, 10
_NUM_SHOWN_LINES = 2
MAX_STRETCHES = 10
"""So many stretches of lines are described for people; programs get all."""


@dataclass(frozen=True, slots=True)
class PartReport:
    """The check of one part of a corpus."""

    part: CorpusPart
    num_pairs: int
    num_examined_languages: int
    found: list[Found]

    def to_json(self) -> dict[str, Any]:
        return {
            "split": self.part.split,
            "source": self.part.source_name,
            "target": self.part.target_name,
            "languages": str(self.part.direction),
            "num_pairs": self.num_pairs,
            "num_pairs_with_examined_languages": self.num_examined_languages,
            "findings": [found.to_json() for found in self.found],
        }


def inspect(
    data: DataConfig, *, seed: int = 0, all_languages: bool = False
) -> Iterator[PartReport]:
    """Check a corpus part by part: validation, test, then training pairs.

    Args:
        data: says how to read it; its `cleaning` gives the limits for lengths.
        seed: random seed of a generated corpus.
        all_languages: recognise the languages of all pairs, not of a sample.

    Raises:
        MissingInputError: a file does not exist.
        DataError: a file cannot be read as a corpus.
    """
    detector = LanguageDetector()
    with scratch_folder() as scratch:
        held_out = HeldOutForms(scratch)
        parts = corpus_parts(data)
        for part in parts:
            if part.split is None:
                _add_drawn(held_out, part, data)
        for number, part in enumerate(parts):
            (scratch / str(number)).mkdir()
            checks = PairChecks(part, data.cleaning, detector, held_out, scratch / str(number))
            yield _inspected(part, data, checks, held_out, seed=seed, all_languages=all_languages)
            checks.close()
        held_out.close()


def split_of(pair: SentencePair, part: CorpusPart, data: DataConfig) -> str:
    """The split of a pair: that of its part, or the one that is drawn for it."""
    if part.split is not None:
        return part.split
    shares = {name: getattr(data, name, 0.0) for name in ("validation_share", "test_share")}
    return draw_split(pair, **shares)


def _add_drawn(held_out: HeldOutForms, part: CorpusPart, data: DataConfig) -> None:
    """Add the validation and test pairs that are drawn from a part without split."""
    if not (getattr(data, "validation_share", 0.0) or getattr(data, "test_share", 0.0)):
        return
    for numbered in NumberedPairs(part, data):
        pair = SentencePair(numbered.source, numbered.target)
        if split_of(pair, part, data) != "train":
            held_out.add(pair, (plain_form(pair.source), plain_form(pair.target)))


def _inspected(
    part: CorpusPart,
    data: DataConfig,
    checks: PairChecks,
    held_out: HeldOutForms,
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
        if part.split in ("validation", "test"):
            held_out.add(pair, (plain_form(pair.source), plain_form(pair.target)))
    findings = checks.findings
    if pairs.unequal is not None:
        findings.add(Found("unequal_lines", num_pairs, 1, details=[pairs.unequal.message]))
    is_list = part.files is not None and bool(first)
    if is_list and (is_header(first[0], first[1:]) or looks_like_names(first[0], first[1:])):
        findings.add(Found("header", num_pairs, 1, [Example(part.place(1), *first[0])]))
    for found in _drift_findings(drift.finish(), num_pairs, part, data):
        findings.add(found)
    examined = dict.fromkeys(LANGUAGE_FAULTS, checks.num_examined_languages)
    return PartReport(
        part, num_pairs, checks.num_examined_languages, findings.finish(examined, num_pairs)
    )


def _drift_findings(
    stretches: list[Stretch], num_pairs: int, part: CorpusPart, data: DataConfig
) -> Iterator[Found]:
    wrong = [stretch for stretch in stretches if stretch.offset != 0]
    if not wrong:
        return
    count = sum(stretch.last_line - stretch.first_line + 1 for stretch in wrong)
    if len(stretches) == 1 and wrong[0].offset is None:
        yield Found("unrelated", num_pairs, count)
        return
    details = [_in_words(stretch, part) for stretch in wrong[:MAX_STRETCHES]]
    if len(wrong) > MAX_STRETCHES:
        details.append(f"and {len(wrong) - MAX_STRETCHES:,} stretches more")
    examples = _examples_from(wrong[0].first_line, part, data)
    ranges = [stretch._asdict() for stretch in wrong]
    yield Found("drift", num_pairs, count, examples, details, ranges)


def _in_words(stretch: Stretch, part: CorpusPart) -> str:
    lines = f"lines {stretch.first_line:,} to {stretch.last_line:,} of {part.source_name}"
    if stretch.offset is None:
        return f"{lines}: translations of none of the lines near them"
    way = "after" if stretch.offset > 0 else "before"
    number = abs(stretch.offset)
    return f"{lines}: their translations stand {number} line{'s' * (number > 1)} {way} them in {part.target_name}"


def _examples_from(first_line: int, part: CorpusPart, data: DataConfig) -> list[Example]:
    """The pairs around the line from which on the sides drift apart."""
    shown = range(max(1, first_line - _NUM_SHOWN_LINES), first_line + _NUM_SHOWN_LINES)
    examples = []
    for pair in NumberedPairs(part, data):
        if pair.line >= shown.stop:
            break
        if pair.line in shown:
            examples.append(Example(part.place(pair.line), pair.source, pair.target))
    return examples
