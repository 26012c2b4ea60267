"""Findings: what is wrong with a corpus, how often, where, and what mends it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from transformer_cli.process.messages import on_one_line

MAX_EXAMPLES = 5
_EXCERPT_CHARACTERS = 70


class FindingKind(NamedTuple):
    """A kind of fault."""

    what: str
    """The fault, as a plural or a statement."""
    remedy: str
    """The setting or command that mends it."""
    ruins_from: float = 1.1
    """The share of pairs from which on this fault ruins a training; above 1: it never does."""


def _dropped_by(setting: str) -> str:
    return f"data.cleaning.{setting} drops these pairs before training"


def _cleaned_by(rule: str) -> str:
    return f"tfm data clean (its rule {rule})"


KINDS = {
    "unequal_lines": FindingKind(
        "the two sides have different numbers of lines",
        "find the missing line where the sides drift apart, and repair the file",
        0.0,
    ),
    "drift": FindingKind(
        "the two sides have drifted apart: line N does not translate line N",
        "repair the file from this line on, or: tfm data clean (its rule realign)",
        0.0,
    ),
    "unrelated": FindingKind(
        "no relation between the two sides: line N does not translate line N",
        "give the right files; if one of them was sorted or shuffled, get it again",
        0.0,
    ),
    "relation_unclear": FindingKind(
        "too little to tell whether line N translates line N: few lines, or lines that are all alike",
        "look at some lines yourself; if they belong together, go on: tfm train needs nothing, and tfm data clean has --set realign=false",
    ),
    "header": FindingKind(
        "a first pair that looks like the names of the columns",
        "set has_header: true for this corpus, or remove the first line of both files",
    ),
    "not_utf_8": FindingKind(
        "text that is not UTF-8",
        "name its encoding (encoding: windows-1252 under data.corpora; --encoding for files), or convert the file with iconv",
        0.0,
    ),
    "swapped": FindingKind(
        "source and target are exchanged",
        _cleaned_by("drop_wrong_language") + "; if all are: exchange source_path and target_path",
        0.02,
    ),
    "wrong_source_language": FindingKind("a source in another language", _cleaned_by("drop_wrong_language"), 0.1),
    "wrong_target_language": FindingKind("a target in another language", _cleaned_by("drop_wrong_language"), 0.1),
    "equal": FindingKind("not translated: the target equals the source", _dropped_by("drop_equal"), 0.3),
    "nearly_equal": FindingKind(
        "not translated: most words of the target are those of the source",
        _cleaned_by("drop_nearly_equal"),
        0.1,
    ),
    "broken_encoding": FindingKind("an encoding broken twice, such as Ã© for é", _cleaned_by("mend_encoding"), 0.05),
    "lost_characters": FindingKind("characters that were lost (U+FFFD)", _cleaned_by("drop_lost_characters"), 0.05),
    "html_entities": FindingKind("entities of HTML, such as &quot;", _cleaned_by("mend_entities"), 0.2),
    "leakage": FindingKind(
        "a training pair that is also a validation or test pair",
        "training drops these pairs by itself",
    ),
    "near_leakage": FindingKind(
        "a training pair that differs from a validation or test pair only in case, punctuation or spaces",
        _cleaned_by("drop_near_leakage"),
        0.05,
    ),
    "leaked_source": FindingKind(
        "a training pair with the source of a validation or test pair, and another target",
        "tfm data clean --set drop_leaked_source=true",
    ),
    "leaked_target": FindingKind(
        "a training pair with the target of a validation or test pair, and another source",
        "tfm data clean --set drop_leaked_target=true",
    ),
    "shared_test": FindingKind(
        "a test pair that is also a validation pair, apart from case, punctuation and spaces",
        "remove it from one of the two files",
    ),
    "duplicates": FindingKind("a pair that stands above already", _dropped_by("drop_duplicates"), 0.5),
    "near_duplicates": FindingKind(
        "a pair that differs from one above only in case, punctuation or spaces",
        _cleaned_by("drop_near_duplicates"),
    ),
    "empty": FindingKind("an empty side", _dropped_by("drop_empty"), 0.2),
    "length_ratio": FindingKind("one side much longer than the other", _dropped_by("max_length_ratio"), 0.1),
    "too_many_words": FindingKind("a side of too many words", _dropped_by("max_words"), 0.1),
    "too_many_characters": FindingKind("a side of too many characters", _dropped_by("max_characters"), 0.1),
    "too_few_words": FindingKind("a side of too few words", _dropped_by("min_words")),
    "too_long": FindingKind("a line of more than 1 MB", "tfm skips these lines", 0.01),
    "nul_bytes": FindingKind("a NUL byte in a line", "tfm skips these lines", 0.01),
    "control_characters": FindingKind(
        "control characters or byte-order marks inside a line",
        "data.cleaning.remove_control_characters removes them before training",
    ),
    "invisible_characters": FindingKind(
        "a source with other spaces than the plain one, or with characters that nobody sees, such as soft hyphens",
        "data.cleaning.normalize_invisible changes them before training",
    ),
    "not_nfc": FindingKind(
        "characters that are not in Unicode NFC",
        "data.cleaning.normalize_unicode brings them into this form before training",
    ),
    "white_space": FindingKind(
        "tabs, line ends or several spaces in a row inside a text, or spaces at its ends",
        "data.cleaning.join_white_space makes one space of them before training",
    ),
}


class Example(NamedTuple):
    """A pair that shows a fault."""

    place: str
    source: str
    target: str
    note: str = ""

    def to_json(self) -> dict[str, str]:
        facts = {"place": self.place, "source": self.source, "target": self.target}
        return facts | ({"note": self.note} if self.note else {})


@dataclass(slots=True)
class Found:
    """One kind of fault in one part of a corpus."""

    kind: str
    num_looked_at: int
    """The number of pairs that were examined for this fault."""
    count: int = 0
    examples: list[Example] = field(default_factory=list)
    details: list[str] = field(default_factory=list)
    """Sentences about it, such as from which line on."""
    ranges: list[dict[str, int | None]] = field(default_factory=list)
    """For drift: `first_line` and `last_line` of the source, and the `offset` of their translations."""

    @property
    def share(self) -> float:
        return self.count / max(1, self.num_looked_at)

    @property
    def ruins(self) -> bool:
        """Whether a training on this corpus would be ruined."""
        return bool(self.count) and self.share >= KINDS[self.kind].ruins_from

    def to_json(self) -> dict[str, Any]:
        kind = KINDS[self.kind]
        return {
            "finding": self.kind,
            "what": kind.what,
            "count": self.count,
            "share": round(self.share, 6),
            "ruins_training": self.ruins,
            "remedy": kind.remedy,
            "details": self.details,
            "examples": [example.to_json() for example in self.examples],
        } | ({"ranges": self.ranges} if self.ranges else {})

    def lines(self) -> list[str]:
        """The finding for people."""
        kind = KINDS[self.kind]
        lines = [f"  {self.count:>9,}  {self.share:>7.2%}  {kind.what}"]
        indent = " " * 22
        lines += [indent + detail for detail in self.details]
        for example in self.examples:
            texts = [on_one_line(text, _EXCERPT_CHARACTERS) for text in example[1:3]]
            note = f"  ({on_one_line(example.note, _EXCERPT_CHARACTERS)})" if example.note else ""
            lines.append(f"{indent}{example.place}: {' | '.join(texts)}{note}")
        return [*lines, f"{indent}mended by: {kind.remedy}"]


class Findings:
    """The findings about one part of a corpus, in the order of `KINDS`."""

    def __init__(self) -> None:
        self._found: dict[str, Found] = {}

    def note(self, kind: str, example: Example) -> None:
        """Count a pair with this fault; the first ones are kept as examples."""
        found = self._found.setdefault(kind, Found(kind, 0))
        found.count += 1
        if len(found.examples) < MAX_EXAMPLES:
            found.examples.append(example)

    def add(self, found: Found) -> None:
        """Add a finding that was made about the part as a whole."""
        self._found[found.kind] = found

    def finish(self, num_looked_at: dict[str, int], num_pairs: int) -> list[Found]:
        """The findings, with the number of pairs that were examined for each."""
        for kind, found in self._found.items():
            found.num_looked_at = num_looked_at.get(kind, num_pairs)
        return [self._found[kind] for kind in KINDS if kind in self._found]


def ruining(findings: Iterable[Found]) -> list[Found]:
    """Those that ruin a training."""
    return [found for found in findings if found.ruins]
