"""Writes what cleaning leaves of a corpus: text files or a table, the numbers of the lines, and what was removed."""

import json
import re
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TextIO

from transformer_cli.config.tree import DataConfig
from transformer_cli.data.sources.local_files import without_compression
from transformer_cli.extensions.corpora.alignment.drift import DriftFinder, Stretch
from transformer_cli.extensions.corpora.cleaning_rules import CorpusRules
from transformer_cli.extensions.corpora.held_out_forms import HeldOutForms
from transformer_cli.extensions.corpora.numbered_pairs import (
    CorpusPart,
    NumberedPair,
    NumberedPairs,
    corpus_parts,
    scratch_folder,
)
from transformer_cli.extensions.corpora.pair_cleaner import Cleaned, PairCleaner, RuleCount
from transformer_cli.extensions.corpora.realignment import realigned
from transformer_cli.extensions.corpora.spoken_languages import LanguageDetector
from transformer_cli.process.errors import DataError
from transformer_cli.storage import staged_folder

REMOVED, CHANGED, NUMBERS, REPORT = "removed.tsv", "changed.tsv", "line_numbers.tsv", "report.json"
_BREAKS = re.compile("[\\t\\n\\r\\x0b\\x0c\\x1c-\\x1e\\x85\\u2028\\u2029]+")


@dataclass(frozen=True, slots=True)
class CleanedPart:
    """What cleaning made of one part of a corpus."""

    part: CorpusPart
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


def clean_corpus(
    data: DataConfig, rules: CorpusRules, folder: Path, *, seed: int = 0
) -> list[CleanedPart]:
    """Clean all parts of a corpus into a folder, which appears whole or not at all.

    Raises:
        DataError: the two sides of a part have no relation, or more than `rules.max_dropped_share` of its
            pairs would be dropped.
    """
    detector = LanguageDetector() if rules.drop_wrong_language else None
    cleaned: list[CleanedPart] = []
    with scratch_folder() as scratch, staged_folder(folder) as unfinished:
        held_out = HeldOutForms(scratch)
        names = _FreeNames(data)
        for number, part in enumerate(corpus_parts(data)):
            (scratch / str(number)).mkdir()
            cleaner = PairCleaner(part, rules, detector, held_out, scratch / str(number))
            pairs = NumberedPairs(part, data, seed=seed)
            writer = _PartWriter(part, unfinished, names.of(part))
            one = _clean_part(pairs, cleaner, writer, realigns=rules.realign)
            _check_share(one, rules)
            cleaned.append(one)
        held_out.close()
        report = {"parts": [one.to_json() for one in cleaned], "rules": rules.model_dump()}
        text = json.dumps(report, ensure_ascii=False, indent=1)
        (unfinished / REPORT).write_text(text + "\n", encoding="utf-8", newline="\n")
    return cleaned


def _clean_part(
    pairs: NumberedPairs, cleaner: PairCleaner, writer: "_PartWriter", *, realigns: bool
) -> CleanedPart:
    stretches = _stretches(pairs) if realigns else []
    num_read = num_kept = 0
    with writer:
        for pair in realigned(pairs, stretches):
            num_read += 1
            one = cleaner.clean(pair)
            writer.write(pair, one)
            num_kept += one.dropped_by is None
    cleaner.close()
    return CleanedPart(writer.part, cleaner.counts, num_read, num_kept, writer.names)


def _stretches(pairs: NumberedPairs) -> list[Stretch]:
    """The offsets of the two sides of a part.

    Raises:
        DataError: no line of the part translates a line near it.
    """
    finder = DriftFinder()
    for pair in pairs:
        finder.add(pair.source, pair.target)
    stretches = finder.finish()
    if all(stretch.offset is None for stretch in stretches) and stretches:
        raise DataError(
            f"{pairs.part.name}: no relation between the two sides, so nothing can be cleaned",
            hint="give the right files; or, if they are right: --set realign=false",
        )
    return stretches


def _check_share(one: CleanedPart, rules: CorpusRules) -> None:
    num_dropped = one.num_read - one.num_kept
    if one.num_kept and num_dropped <= rules.max_dropped_share * one.num_read:
        return
    reasons = sorted(one.counts.items(), key=lambda item: -item[1].num_dropped)[:3]
    shown = ", ".join(
        f"{rule} {count.num_dropped:,}" for rule, count in reasons if count.num_dropped
    )
    raise DataError(
        f"{one.part.name}: the rules drop {num_dropped:,} of {one.num_read:,} pairs ({shown}), and "
        f"max_dropped_share allows {rules.max_dropped_share:.0%}; nothing was written",
        hint="look at the corpus with tfm data check; switch a rule off, such as --set drop_wrong_language=false, "
        "or allow more: --set max_dropped_share=0.9",
    )


class _FreeNames:
    """The names of the files of each part: those of the corpus, each used once."""

    def __init__(self, data: DataConfig) -> None:
        self._data, self._used = data, {REPORT}

    def of(self, part: CorpusPart) -> tuple[str, ...]:
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

    def __init__(self, part: CorpusPart, folder: Path, names: tuple[str, ...]) -> None:
        self.part, self.names = part, names
        stem = f"{names[0]}."
        self._paths = [
            *(folder / name for name in names),
            *(folder / (stem + ending) for ending in (NUMBERS, REMOVED, CHANGED)),
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
        lines = str(before.line), str(before.target_line)
        if after.dropped_by is not None:
            _row(self._removed, after.dropped_by, *lines, before.source, before.target)
            return
        texts = after.pair.source, after.pair.target
        if len(self.names) == 2:
            for file, text in zip(self._files, texts, strict=False):
                _row(file, text)
        else:
            _row(self._files[0], *texts)
        _row(self._numbers, *lines)
        if after.changed_by:
            _row(self._changed, ",".join(after.changed_by), *lines, before.source, before.target)


def _row(file: TextIO, *cells: str) -> None:
    """Write a row; line ends and tabs inside a cell become spaces."""
    file.write("\t".join(_BREAKS.sub(" ", cell) for cell in cells) + "\n")
