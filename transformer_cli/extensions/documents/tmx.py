"""TMX, the memories of translators: each unit without the target language gets a translation."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from transformer_cli.config.data import Direction
from transformer_cli.extensions.documents.formats import DEFAULTS, ReadingOptions
from transformer_cli.extensions.documents.segments import (
    Segment,
    Slot,
    SplicedDocument,
    TranslatedSegment,
    plain_text,
    rendered,
)
from transformer_cli.extensions.documents.strings import segment_in_xml
from transformer_cli.extensions.documents.xml import (
    LINE_BREAKS,
    Element,
    Inline,
    XmlText,
    escaped_xml,
    has_inner_texts,
    inline_runs,
    paired_tag,
    read_xml,
    white_space_before,
)
from transformer_cli.process.errors import DataError
from transformer_cli.text.languages import primary_language
from transformer_cli.text.normalization import has_letter

logger = logging.getLogger(__name__)

_SEVERAL = ("*all*", "")


class _Unit(NamedTuple):
    """A unit in one language only."""

    source: Element
    """Its variant."""
    segment: Segment


@dataclass(frozen=True, slots=True)
class TmxDocument:
    """A `Document` of a memory; each new variant stands behind that of the source."""

    xml: XmlText
    units: tuple[_Unit, ...]

    @property
    def segments(self) -> Sequence[Segment]:
        """See `Document.segments`."""
        return [unit.segment for unit in self.units]

    def write(self, translations: Sequence[TranslatedSegment], languages: Direction) -> bytes:
        """See `Document.write`."""
        target = self._written_language(languages.target)
        slots = (
            Slot(
                unit.source.end,
                unit.source.end,
                unit.segment,
                partial(_variant, self.xml, unit.source, target),
            )
            for unit in self.units
        )
        return SplicedDocument(self.xml.content, tuple(slots)).write(translations, languages)

    def _written_language(self, target: str) -> str:
        """The code of the target language, as most of the file writes it: fr-FR for fr."""
        codes = (_language(element) for element in self.xml.root.walk() if element.local == "tuv")
        usual = Counter(code for code in codes if primary_language(code) == target)
        return max(usual, key=lambda code: usual[code], default=target)


def read_tmx(data: bytes, options: ReadingOptions = DEFAULTS) -> TmxDocument:
    """A TMX file: its units in one language only, which is the language of the source.

    Raises:
        DataError: it is no TMX file, or is damaged, too large, or made to harm.
    """
    xml = read_xml(data, options)
    if xml.root.local != "tmx":
        raise DataError(f"this is no TMX file: its root is <{xml.root.name}>")
    header = xml.root.child("header")
    if header is None:
        raise DataError(
            "this is no TMX file: it has no <header>, which names the language of its sources",
            hint=f'put <header srclang="{options.language or "en"}"/> before its <body>',
        )
    language = header.attributes.get("srclang", "").lower()
    elements = (element for element in xml.root.walk() if element.local == "tu")
    units = []
    for number, element in enumerate(options.watch.over(elements), 1):
        unit = _unit(xml, element, language, number)
        if unit is not None:
            units.append(unit)
    units = _in_language_of_model(units, options.language)
    for unit in units:
        options.watch.counted(unit.segment)
    return TmxDocument(xml, tuple(units))


def _in_language_of_model(units: list[_Unit], language: str | None) -> list[_Unit]:
    """The units in the language that the model reads; all of them while this is not known.

    Raises:
        DataError: all are in other languages.
    """
    if language is None:
        return units
    kept = [unit for unit in units if primary_language(_language(unit.source)) == primary_language(language)]
    others = dict.fromkeys(_language(unit.source) for unit in units if unit not in kept)
    if others and not kept:
        raise DataError(
            f"the units without a translation are in {', '.join(others)}, but the model translates from {language}",
            hint="use a model of these languages (--run), or correct xml:lang",
        )
    if others:
        logger.warning(
            "%d unit(s) in %s stay: the model translates from %s", len(units) - len(kept), ", ".join(others), language
        )
    return kept


def _unit(xml: XmlText, unit: Element, language: str, number: int) -> _Unit | None:
    variants = [each for each in unit.elements if each.local == "tuv"]
    language = unit.attributes.get("srclang", language).lower()
    if len(variants) != 1 or (segment_element := variants[0].child("seg")) is None:
        return None
    source = variants[0]
    if language not in _SEVERAL and primary_language(language) != primary_language(_language(source)):
        return None
    place = f"unit {number}"
    runs = inline_runs(xml, segment_element, _kind_of, paired_tag, has_places=False, place_of_codes=place)
    if len(runs) != 1:
        return None
    pieces = [part.piece for part in runs[0]]
    if not (has_letter(plain_text(pieces)) or has_inner_texts(pieces)):
        return None
    return _Unit(source, segment_in_xml(pieces, place))


def _language(variant: Element) -> str:
    given = variant.attributes
    return given.get("xml:lang", given.get("lang", ""))


def _variant(xml: XmlText, source: Element, target: str, found: TranslatedSegment) -> str:
    """A new variant, written as that of the source is."""
    gap = white_space_before(xml.content.text, source.start)
    seg = f"<seg>{rendered(found.pieces, escaped_xml)}</seg>"
    return f'{gap}<tuv xml:lang="{escaped_xml(target)}">{seg}</tuv>'


def _kind_of(element: Element) -> Inline:
    if element.local == "hi":
        return Inline.RANGE
    if element.attributes.get("type") in LINE_BREAKS:
        return Inline.SPACES
    return Inline.WORD if element.local == "ph" else Inline.POINT
