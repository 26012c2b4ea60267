"""Translation units in XLIFF 1.2, read as a stream."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transformer_cli.extensions.corpora.importing.imported_segments import (
    ImportReport,
    Segment,
    best_match,
    one_line,
)
from transformer_cli.extensions.corpora.importing.secure_xml import (
    children,
    elements,
    local_name,
    plain_text,
)
from transformer_cli.process.errors import DataError

_NOT_TRANSLATED = {"new", "needs-translation"}


def read_xliff(
    path: Path, source_language: str, target_language: str, report: ImportReport
) -> Iterator[Segment]:
    """The pairs of each unit: its segments if both sides have the same, else the whole unit.

    Raises:
        DataError: the file is no XLIFF 1.2, or not well-formed.
    """
    for line, languages, unit in _units(path):
        report.num_units += 1
        place = f"{path}:{line}"
        wanted = (source_language, target_language)
        if any(best_match(one, [code]) is None for one, code in zip(wanted, languages, strict=True) if code):  # fmt: skip
            report.skip(f"in other languages: {languages[0]} into {languages[1] or '?'}", place)
            continue
        targets = children(unit, "target")
        if not targets:
            report.skip("not translated", place)
        elif targets[0].get("state") in _NOT_TRANSLATED:
            report.skip(f"not translated (state {targets[0].get('state')})", place)
        else:
            for source, target in _pairs(unit, targets[0]):
                texts = plain_text(source, path), plain_text(target, path)
                yield Segment(line, one_line(texts[0]), one_line(texts[1]))


def languages_of_xliff(path: Path) -> tuple[str, ...]:
    """The source and the target language of the first file inside."""
    for _, languages, _ in _units(path):
        return tuple(code for code in languages if code)
    return ()


def _units(path: Path) -> Iterator[tuple[int, tuple[str, str], Any]]:
    """The line of each unit, its languages, and its element."""
    for number, element in enumerate(elements(path, names=("trans-unit",))):
        if number == 0:
            _check_root(element, path)
            continue
        file = next(
            (parent for parent in element.iterancestors() if local_name(parent) == "file"), None
        )
        attributes = file.attrib if file is not None else {}
        languages = attributes.get("source-language", ""), attributes.get("target-language", "")
        yield element.sourceline or 0, languages, element


def _check_root(root: Any, path: Path) -> None:
    if local_name(root) != "xliff":
        raise DataError(f"{path}: no XLIFF: its root is <{local_name(root)}>")
    version = root.get("version", "")
    if not version.startswith("1."):
        raise DataError(
            f"{path}: XLIFF {version or 'without a version'}, where XLIFF 1.2 is expected",
            hint="export it as XLIFF 1.2 or TMX",
        )


def _pairs(unit: Any, target: Any) -> list[tuple[Any, Any]]:
    """The segments of both sides with equal numbers; or the whole source and target."""
    segmented = children(unit, "seg-source")
    if segmented:
        marked = [_segments(side) for side in (segmented[0], target)]
        if marked[0] and marked[0].keys() == marked[1].keys():
            return [(marked[0][number], marked[1][number]) for number in marked[0]]
    sources = children(unit, "source")
    return [(sources[0], target)] if sources else []


def _segments(side: Any) -> dict[str, Any]:
    marks = [one for one in side.iter() if isinstance(one.tag, str) and local_name(one) == "mrk"]
    return {one.get("mid", ""): one for one in marks if one.get("mtype") == "seg"}
