"""Translation memories in TMX (Translation Memory eXchange 1.1 to 1.4), read as a stream."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from transformer_cli.extensions.corpora.importing.imported_segments import (
    ImportReport,
    Segment,
    best_match,
    one_line,
)
from transformer_cli.extensions.corpora.importing.secure_xml import (
    children,
    elements,
    language,
    local_name,
    plain_text,
)
from transformer_cli.process.errors import DataError
from transformer_cli.text.languages import primary_language

_NUM_SAMPLED_UNITS = 1000


def read_tmx(
    path: Path, source_language: str, target_language: str, report: ImportReport
) -> Iterator[Segment]:
    """One pair of each translation unit that has both languages.

    Raises:
        DataError: the file is no TMX, or not well-formed.
    """
    for line, variants in _units(path):
        report.num_units += 1
        codes = [code for code, _ in variants]
        source, target = best_match(source_language, codes), best_match(target_language, codes)
        if source is None or target is None or source == target:
            missing = source_language if source is None else target_language
            report.skip(f"no text in {missing}", f"{path}:{line}")
            continue
        matches = sum(primary_language(code) == primary_language(target_language) for code in codes)
        if matches > 1:
            report.notice(
                f"several texts in {target_language}, of which one is taken", f"{path}:{line}"
            )
        yield Segment(line, one_line(variants[source][1]), one_line(variants[target][1]))


def languages_of_tmx(path: Path) -> tuple[str, ...]:
    """The languages of the first 1,000 units: the source language first, then the most frequent."""
    counts: Counter[str] = Counter()
    source = ""
    for root_or_unit in islice(elements(path, names=("header", "tu")), _NUM_SAMPLED_UNITS):
        if local_name(root_or_unit) == "header":
            source = root_or_unit.get("srclang", "")
            continue
        counts.update({language(variant) for variant in children(root_or_unit, "tuv")})
    found = [code for code, _ in counts.most_common() if code]
    first = best_match(source, found) if source and source.lower() != "*all*" else None
    if first is not None:
        found.insert(0, found.pop(first))
    return tuple(found)


def _units(path: Path) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """The line of each translation unit, and its texts with their languages."""
    for number, element in enumerate(elements(path, names=("tu",))):
        if number == 0 and local_name(element) != "tu":
            if local_name(element) != "tmx":
                raise DataError(f"{path}: no TMX: its root is <{local_name(element)}>")
            continue
        variants = []
        for variant in children(element, "tuv"):
            segments = children(variant, "seg")
            text = plain_text(segments[0], path) if segments else ""
            variants.append((language(variant), text))
        yield element.sourceline or 0, variants
