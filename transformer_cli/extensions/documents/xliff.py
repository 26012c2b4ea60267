"""XLIFF 1.2, the exchange format of translators: each unit without a translation gets one."""

import logging
import re
from collections.abc import Sequence
from functools import partial

from transformer_cli.extensions.documents.formats import DEFAULTS, ReadingOptions, ReadingWatch
from transformer_cli.extensions.documents.segments import (
    Edit,
    Segment,
    Slot,
    SplicedDocument,
    TranslatedSegment,
    has_letter,
    plain_text,
    rendered,
)
from transformer_cli.extensions.documents.strings import with_icu_branches
from transformer_cli.extensions.documents.xml import (
    LINE_BREAKS,
    Element,
    Inline,
    XmlText,
    escaped_xml,
    inline_runs,
    language_edits,
    paired_tag,
    read_xml,
    white_space_before,
)
from transformer_cli.process.errors import DataError

logger = logging.getLogger(__name__)

_RANGES = frozenset(["g", "mrk"])
_WORDS = frozenset(["ph"])
# A value in a template of Angular takes the place of a word, as {{ name }} does elsewhere. It has such an id, or stands for
# code: {{ name }} or this.name, not for a tag such as <b>.
_CODE = re.compile(r"[\w${]")
_VALUE = re.compile(r"(?:INTERPOLATION|ICU|PH)(?:_\d+)?")
# The types of <mrk> whose text is not translated.
_PROTECTED = frozenset(["protected", "x-protected", "x-dnt"])
# The state of a target in which no person has touched it yet.
_OPEN_STATES = frozenset(["new", "needs-translation"])


def read_xliff(data: bytes, options: ReadingOptions = DEFAULTS) -> SplicedDocument:
    """An XLIFF 1.2 file: its units without a target, with an empty one, or with one whose state is new.

    A unit with translate="no" stays, and so does every translation that is there. A translation that a person should look
    at has the state needs-review-translation, every other one the state translated.

    Raises:
        DataError: it is no XLIFF 1.2 file, or is damaged, too large, or made to harm.
    """
    xml = read_xml(data, options)
    if xml.root.local != "xliff":
        raise DataError(f"this is no XLIFF file: its root is <{xml.root.name}>")
    version = xml.root.attributes.get("version", "")
    if not version.startswith("1."):
        raise DataError(
            f"this is XLIFF {version or 'of no version'}; only 1.2 is read",
            hint="save it as XLIFF 1.2: most tools for translators offer both versions",
        )
    slots: list[Slot] = []
    edits: list[Edit] = []
    units: list[Element] = []
    keeping = _starts_of_units_that_keep_spaces(xml.root)
    for file in xml.root.walk():
        if file.local == "file":
            of_file = _units(file)
            found = [
                slot
                for unit in of_file
                for slot in _slots_of(xml, unit, options.watch, keeps_spaces=unit.start in keeping)
            ]
            names = ("source-language", "target-language")
            edits += language_edits(xml, file, names, has_open_units=bool(found))
            units += of_file
            slots += found
    _warn_of_targets(xml, units)
    return SplicedDocument(xml.content, tuple(slots), tuple(edits))


def _units(element: Element) -> list[Element]:
    """The units that may be translated; a group may forbid it for all of its units."""
    if element.attributes.get("translate") == "no":
        return []
    if element.local == "trans-unit":
        return [element]
    return [unit for child in element.elements for unit in _units(child)]


def _starts_of_units_that_keep_spaces(root: Element) -> set[int]:
    """Where the units begin whose white space has a meaning: they, their source or an element around them says so."""
    found: set[int] = set()
    waiting = [(root, False)]
    while waiting:
        element, keeps = waiting.pop()
        given = element.attributes.get("xml:space")
        keeps = keeps if given is None else given == "preserve"
        if element.local == "trans-unit":
            source = element.child("source")
            of_source = None if source is None else source.attributes.get("xml:space")
            if keeps if of_source is None else of_source == "preserve":
                found.add(element.start)
        else:
            waiting += [(child, keeps) for child in element.elements]
    return found


def _warn_of_targets(xml: XmlText, units: Sequence[Element]) -> None:
    """Say which targets stay although they are probably no translations."""
    copied, half_empty = [], []
    for unit in units:
        source, target = unit.child("source"), unit.child("target")
        if source is None or target is None or unit.attributes.get("approved") == "yes" or _is_open(xml, target):  # fmt: skip
            continue
        text = xml.whole_text(source)
        if has_letter(text) and xml.whole_text(target).strip() == text.strip():
            copied.append(unit)
        elif any(mark.local == "mrk" and not xml.whole_text(mark).strip() for mark in target.elements):  # fmt: skip
            half_empty.append(unit)
    for found, what in (
        (copied, "targets that are equal to their sources"),
        (half_empty, "targets in which some sentences are empty"),
    ):
        if found:
            logger.warning(
                'units with %s: %d (the first is %s); they stay, as every target does; a target with state="new" is translated',
                what,
                len(found),
                found[0].attributes.get("id", "?"),
            )


def _slots_of(
    xml: XmlText, unit: Element, watch: ReadingWatch, *, keeps_spaces: bool
) -> list[Slot]:
    source, target = unit.child("source"), unit.child("target")
    if source is None or unit.attributes.get("approved") == "yes":
        return []
    if target is not None and not _is_open(xml, target):
        return []
    # Where the tool has marked the sentences, the target gets the same marks.
    marked = unit.child("seg-source") or source
    runs = inline_runs(xml, marked, _kind_of, paired_tag, has_places=False)
    if len(runs) != 1 or not has_letter(plain_text([part.piece for part in runs[0]])):
        return []
    place = f"unit {unit.attributes.get('id', '?')}"
    pieces = with_icu_branches([part.piece for part in runs[0]], place, escaped_xml)
    segment = watch.counted(Segment(pieces, place, keeps_spaces=keeps_spaces, is_label=True))
    if target is not None:
        return [Slot(target.start, target.end, segment, partial(_target, unit, ""))]
    after = unit.child("seg-source") or source
    gap = white_space_before(xml.content.text, source.start)
    return [Slot(after.end, after.end, segment, partial(_target, unit, gap))]


def _is_open(xml: XmlText, target: Element) -> bool:
    state = target.attributes.get("state")
    return state in _OPEN_STATES or not (xml.whole_text(target).strip() or target.elements)


def _target(unit: Element, gap: str, found: TranslatedSegment) -> str:
    """The target element of a unit, with the prefix of its other elements."""
    name = unit.name.removesuffix("trans-unit") + "target"
    state = "needs-review-translation" if found.doubts else "translated"
    return f'{gap}<{name} state="{state}">{rendered(found.pieces, escaped_xml)}</{name}>'


def _kind_of(element: Element) -> Inline:
    if element.local == "mrk" and element.attributes.get("mtype") in _PROTECTED:
        return Inline.WORD
    if element.local in _RANGES:
        return Inline.RANGE
    given = element.attributes
    if given.get("ctype") in LINE_BREAKS:
        return Inline.SPACES
    if element.local == "x" and (_VALUE.fullmatch(given.get("id", "")) or _CODE.match(given.get("equiv-text", ""))):  # fmt: skip
        return Inline.WORD
    return Inline.WORD if element.local in _WORDS else Inline.POINT
