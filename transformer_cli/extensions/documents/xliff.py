"""XLIFF 1.2 and 2, the exchange formats of translators: each unit, or segment of one, without a translation gets one."""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from transformer_cli.extensions.documents.formats import DEFAULTS, ReadingOptions, ReadingWatch
from transformer_cli.extensions.documents.segments import (
    Edit,
    InlinePart,
    Piece,
    Role,
    Segment,
    Slot,
    SplicedDocument,
    TranslatedSegment,
    plain_text,
    rendered,
)
from transformer_cli.extensions.documents.strings import (
    segment_in_xml,
    string_of,
    tagged_segment,
)
from transformer_cli.extensions.documents.xml import (
    LINE_BREAKS,
    Element,
    Inline,
    XmlKind,
    XmlText,
    escaped_xml,
    has_inner_texts,
    inline_runs,
    language_edits,
    paired_tag,
    read_xml,
    white_space_before,
)
from transformer_cli.process.errors import DataError
from transformer_cli.text.normalization import has_letter

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
# What the texts of a file were, where a line break is one in the program, too; and the name of a template, where it is a space.
_PLAIN_TYPES = frozenset(["plaintext", "resx", "winres", "po", "javapropertyresourcebundle"])
_TEMPLATE_OF_ANGULAR = "ng2.template"
# Several lines that begin at the edge, perhaps behind one space; an editor of XML would indent them.
_WRITTEN_LINES = re.compile(r"\S[^\n]*+(?:(?>(?:\n[ \t\r]*+(?=\n))*)\n ?\S[^\n]*+)+\s*+")


def read_xliff(data: bytes, options: ReadingOptions = DEFAULTS) -> SplicedDocument:
    """An XLIFF file: its units, or segments, without a target, with an empty one, or with one whose state is new (in XLIFF 2: initial).

    What has translate="no" stays, and so does every translation that is there. A translation that a person should look
    at has the state needs-review-translation, every other one the state translated. XLIFF 2 has no such state: there it is
    translated, too, with this name behind a prefix as its sub-state.

    Raises:
        DataError: it is no file of XLIFF 1.2 or 2, or is damaged, too large, or made to harm.
    """
    xml = read_xml(data, options)
    if xml.root.local != "xliff":
        raise DataError(f"this is no XLIFF file: its root is <{xml.root.name}>")
    version = xml.root.attributes.get("version", "") or _version_by_elements(xml.root)
    if version.startswith("2."):
        return _read_xliff_2(xml, options)
    if not version.startswith("1."):
        raise DataError(
            f"this is XLIFF {version or 'of no version'}; 1.2 and 2 are read",
            hint="save it as XLIFF 1.2 or 2: most tools for translators offer one of them",
        )
    slots: list[Slot] = []
    edits: list[Edit] = []
    units: list[Element] = []
    keeping = _starts_of_units_that_keep_spaces(xml)
    for file in xml.root.walk():
        if file.local == "file":
            file_units = _units(file)
            found = [
                slot
                for unit in file_units
                for slot in _slots_of(xml, unit, options.watch, keeps_spaces=unit.start in keeping)
            ]
            names = ("source-language", "target-language")
            edits += language_edits(xml, file, names, has_open_units=bool(found))
            units += file_units
            slots += found
    _warn_of_targets(xml, units)
    return SplicedDocument(xml.content, tuple(slots), tuple(edits))


def _version_by_elements(root: Element) -> str:
    """The version of a file that does not name it, as some programs write them; empty if nothing in it tells."""
    names = {element.local for element in root.walk()}
    return "1.2" if "trans-unit" in names else "2.0" if "segment" in names else ""


def _units(element: Element, *, is_translated: bool = True) -> list[Element]:
    """The units that may be translated; an element decides for all in it, unless one of them says something else."""
    is_translated = element.attributes.get("translate", "yes" if is_translated else "no") == "yes"
    if element.local == "trans-unit":
        return [element] if is_translated else []
    return [unit for child in element.elements for unit in _units(child, is_translated=is_translated)]


def _starts_of_units_that_keep_spaces(xml: XmlText) -> set[int]:
    """Where the units begin whose white space has a meaning: they, their source or an element around them says so.

    Where none says anything, the lines of a source of plain text have one if nobody can have broken them for the look of the file.
    """
    found: set[int] = set()
    waiting: list[tuple[Element, bool | None, bool]] = [(xml.root, None, False)]
    while waiting:
        element, keeps, is_plain = waiting.pop()
        given = element.attributes.get("xml:space")
        keeps = keeps if given is None else given == "preserve"
        if element.local == "file":
            is_template = element.attributes.get("original") == _TEMPLATE_OF_ANGULAR
            is_plain = element.attributes.get("datatype") in _PLAIN_TYPES and not is_template
        if element.local == "trans-unit":
            source = element.child("source")
            source_space = None if source is None else source.attributes.get("xml:space")
            keeps = keeps if source_space is None else source_space == "preserve"
            if keeps is None and source is not None and is_plain:
                content = xml.content.text[source.inner_start : source.inner_end]
                keeps = _WRITTEN_LINES.fullmatch(content) is not None
            if keeps:
                found.add(element.start)
        else:
            waiting += [(child, keeps, is_plain) for child in element.elements]
    return found


def _warn_of_targets(xml: XmlText, units: Sequence[Element]) -> None:
    """Say which targets stay although they are probably no translations."""
    copied, half_empty = [], []
    for unit in units:
        source, target = unit.child("source"), unit.child("target")
        if source is None or target is None or unit.attributes.get("approved") == "yes" or _is_open(xml, target):
            continue
        text = xml.whole_text(source)
        if has_letter(text) and xml.whole_text(target).strip() == text.strip():
            copied.append(unit)
        elif any(mark.local == "mrk" and not xml.whole_text(mark).strip() for mark in target.elements):
            half_empty.append(unit)
    _warn(copied, "targets that are equal to their sources", 'state="new"')
    _warn(half_empty, "targets in which some sentences are empty", 'state="new"')


def _warn(units: Sequence[Element], what: str, state: str) -> None:
    if units:
        logger.warning(
            "units with %s: %d (the first is %s); they stay, as every target does; a target with %s is translated",
            what,
            len(units),
            units[0].attributes.get("id", "?"),
            state,
        )


def _slots_of(xml: XmlText, unit: Element, watch: ReadingWatch, *, keeps_spaces: bool) -> list[Slot]:
    source, target = unit.child("source"), unit.child("target")
    if source is None or unit.attributes.get("approved") == "yes":
        return []
    if target is not None and not _is_open(xml, target):
        return []
    # Where the tool has marked the sentences, the target gets the same marks.
    marked = unit.child("seg-source") or source
    place = f"unit {unit.attributes.get('id', '?')}"
    runs = inline_runs(xml, marked, partial(_kind_of, xml), paired_tag, has_places=False, place_of_codes=place)
    if len(runs) != 1 or not _has_text([part.piece for part in runs[0]]):
        return []
    is_cdata = _is_cdata(marked)
    segment = watch.counted(_segment(xml, marked, runs[0], place, keeps_spaces=keeps_spaces))
    if target is not None:
        tag = xml.content.text[target.start + 1 + len(target.name) : target.inner_start]
        kept = _OLD_TARGET_ATTRIBUTES.sub("", tag.rstrip("/>")).rstrip()
        return [Slot(target.start, target.end, segment, partial(_target, unit, "", is_cdata, kept))]
    after = unit.child("seg-source") or source
    gap = white_space_before(xml.content.text, source.start)
    return [Slot(after.end, after.end, segment, partial(_target, unit, gap, is_cdata, ""))]


def _has_text(pieces: Sequence[Piece]) -> bool:
    return has_letter(plain_text(pieces)) or has_inner_texts(pieces)


def _is_open(xml: XmlText, target: Element) -> bool:
    return target.attributes.get("state") in _OPEN_STATES or _is_empty(xml, target)


def _is_empty(xml: XmlText, target: Element) -> bool:
    """Whether a target has no text, and nothing else than the marks of its sentences, as programs prepare it for a translator."""
    is_marks = all(each is target or each.local == "mrk" for each in target.walk())
    return is_marks and not xml.whole_text(target).strip()


def _is_cdata(source: Element) -> bool:
    """Whether the text of an element is one CDATA section, in which tags of HTML are written as text."""
    return [not isinstance(child, Element) and child.kind for child in source.children] == [XmlKind.CDATA]


def _segment(xml: XmlText, source: Element, run: Sequence[InlinePart], place: str, *, keeps_spaces: bool) -> Segment:
    if _is_cdata(source):
        return tagged_segment(xml.whole_text(source), place, keeps_spaces=keeps_spaces)
    return segment_in_xml([part.piece for part in run], place, keeps_spaces=keeps_spaces)


def _content(found: TranslatedSegment, *, is_cdata: bool) -> str:
    """A translation as it stands in the file."""
    if is_cdata:
        return f"<![CDATA[{string_of(found).replace(']]>', ']]]]><![CDATA[>')}]]>"
    return rendered(found.pieces, escaped_xml)


# What the attributes of a target say of the translation that was in it.
_OLD_TARGET_ATTRIBUTES = re.compile(r"""\s+(?:state|state-qualifier|equiv-trans)\s*=\s*(?:"[^"]*"|'[^']*')""")


def _target(unit: Element, gap: str, is_cdata: bool, kept: str, found: TranslatedSegment) -> str:
    """The target element of a unit, with the prefix of its other elements.

    Args:
        kept: its further attributes, such as xml:lang.
    """
    name = unit.name.removesuffix("trans-unit") + "target"
    state = "needs-review-translation" if found.doubts else "translated"
    return f'{gap}<{name}{kept} state="{state}">{_content(found, is_cdata=is_cdata)}</{name}>'


def _kind_of(xml: XmlText, element: Element) -> Inline:
    if element.local == "mrk" and element.attributes.get("mtype") in _PROTECTED:
        return _kind_of_protected(xml, element)
    if element.local in _RANGES:
        return Inline.RANGE
    given = element.attributes
    if given.get("ctype") in LINE_BREAKS:
        return Inline.SPACES
    if element.local == "x" and (_VALUE.fullmatch(given.get("id", "")) or _CODE.match(given.get("equiv-text", ""))):
        return Inline.WORD
    return Inline.WORD if element.local in _WORDS else Inline.POINT


def _kind_of_protected(xml: XmlText, mark: Element) -> Inline:
    """A word; but some programs protect the space between two sentences."""
    return Inline.WORD if xml.whole_text(mark).strip() else Inline.RANGE


# XLIFF 2: units have segments, and each segment has its state.

# As a person has touched it: it stays even if it is empty.
_DONE = frozenset(["reviewed", "final"])
_NEEDS_REVIEW = "tfm:needs-review-translation"
_STATE = re.compile(r"""\s+(?:state|subState)\s*=\s*(?:"[^"]*"|'[^']*')""")
_BREAKS_2 = frozenset(["xlf:lb", "xlf:pb"])
_BREAK_IN_CODE = re.compile(r"<(?:\w+:)?br\b|\\n\Z|\n\Z", re.IGNORECASE)


def _read_xliff_2(xml: XmlText, options: ReadingOptions) -> SplicedDocument:
    slots: list[Slot] = []
    copied: list[Element] = []
    for unit, keeps_spaces in _units_2(xml.root):
        codes = _codes(xml, unit)
        segments = [each for each in unit.elements if each.local == "segment"]
        for number, segment in enumerate(options.watch.over(segments), 1):
            source, target = segment.child("source"), segment.child("target")
            if source is None:
                continue
            if target is not None and not _is_open_2(xml, segment, target):
                text = xml.whole_text(source).strip()
                is_same = has_letter(text) and xml.whole_text(target).strip() == text
                if is_same and segment.attributes.get("state") not in _DONE:
                    copied.append(unit)
                continue
            source_space = source.attributes.get("xml:space")
            keeps = keeps_spaces if source_space is None else source_space == "preserve"
            place = f"unit {unit.attributes.get('id', '?')}"
            place += f", segment {number}" if len(segments) > 1 else ""
            found = _segment_2(xml, source, codes, place, keeps_spaces=keeps)
            if found is not None:
                options.watch.counted(found)
                slots.append(_slot_2(xml, segment, source, target, found))
    _warn(copied, "targets that are equal to their sources", 'the segment state="initial"')
    edits = language_edits(xml, xml.root, ("srcLang", "trgLang"), has_open_units=bool(slots))
    return SplicedDocument(xml.content, tuple(slots), tuple(edits))


def _units_2(root: Element) -> Iterator[tuple[Element, bool]]:
    """The units that may be translated, and whether their white space has a meaning; an element decides for all in it."""
    waiting = [(root, True, False)]
    while waiting:
        element, is_translated, keeps = waiting.pop()
        given = element.attributes
        is_translated = given.get("translate", "yes" if is_translated else "no") == "yes"
        keeps = given.get("xml:space", "preserve" if keeps else "default") == "preserve"
        if element.local == "unit":
            if is_translated:
                yield element, keeps
        elif element.local in ("xliff", "file", "group"):
            waiting += [(child, is_translated, keeps) for child in reversed(element.elements)]


def _is_open_2(xml: XmlText, segment: Element, target: Element) -> bool:
    state = segment.attributes.get("state")
    return state == "initial" or (state not in _DONE and _is_empty(xml, target))


def _codes(xml: XmlText, unit: Element) -> dict[str, str]:
    """The code of the original document that each <data> holds, by its id."""
    kept = unit.child("originalData")
    data = [] if kept is None else kept.elements
    return {each.attributes.get("id", ""): xml.whole_text(each) for each in data}


def _segment_2(
    xml: XmlText, source: Element, codes: Mapping[str, str], place: str, *, keeps_spaces: bool
) -> Segment | None:
    runs = inline_runs(xml, source, partial(_kind_of_2, xml, codes), _pair_2, has_places=False)
    if len(runs) != 1 or not has_letter(plain_text([part.piece for part in runs[0]])):
        return None
    return _segment(xml, source, runs[0], place, keeps_spaces=keeps_spaces)


def _kind_of_2(xml: XmlText, codes: Mapping[str, str], element: Element) -> Inline:
    given = element.attributes
    if element.local in ("pc", "mrk"):
        return _kind_of_protected(xml, element) if given.get("translate") == "no" else Inline.RANGE
    if element.local != "ph":
        return Inline.POINT
    code = codes.get(given.get("dataRef", ""), "") or given.get("disp", "") or given.get("equiv", "")
    if given.get("subType") in _BREAKS_2 or given.get("equiv") == "LINE_BREAK" or _BREAK_IN_CODE.match(code):
        return Inline.SPACES
    is_value = given.get("subType") == "xlf:var" or not (given.get("type") == "image" or code.startswith("<"))
    return Inline.WORD if is_value else Inline.POINT


def _pair_2(element: Element) -> tuple[Role, str] | None:
    """The codes and annotations that begin or end a range: sc and ec, sm and em."""
    given = element.attributes
    if element.local in ("sc", "sm"):
        return Role.OPEN, f"{element.local[-1]} {given.get('id', '')}"
    if element.local in ("ec", "em"):
        return Role.CLOSE, f"{element.local[-1]} {given.get('startRef', '')}"
    return None


def _slot_2(xml: XmlText, segment: Element, source: Element, target: Element | None, found: Segment) -> Slot:
    """From the start tag of a segment, which has the state, to the end of its target."""
    text = xml.content.text
    if target is None:
        start, end = source.end, source.end
        gap = white_space_before(text, source.start)
        tag = f"{gap}<{source.name.removesuffix('source')}target>"
    else:
        start, end = target.start, target.end
        tag = text[target.start : target.inner_start]
        tag = f"{tag.removesuffix('/>').rstrip()}>" if tag.endswith("/>") else tag
    segment_tag = text[segment.start : segment.inner_start]
    between = text[segment.inner_start : start]
    return Slot(segment.start, end, found, partial(_written_2, segment_tag, between, tag, _is_cdata(source)))


def _written_2(segment_tag: str, between: str, target_tag: str, is_cdata: bool, found: TranslatedSegment) -> str:
    state = ' state="translated"' + (f' subState="{_NEEDS_REVIEW}"' if found.doubts else "")
    name = target_tag.strip().strip("<>").split()[0]
    tag = _STATE.sub("", segment_tag).removesuffix(">").rstrip()
    return f"{tag}{state}>{between}{target_tag}{_content(found, is_cdata=is_cdata)}</{name}>"
