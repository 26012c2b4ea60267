"""The language that a text has in office documents and subtitles, by which programs check its spelling: that of the translation afterwards."""

from collections.abc import Callable, Iterator
from functools import partial

from transformer_cli.config.data import Direction
from transformer_cli.extensions.documents.segments import Edit
from transformer_cli.extensions.documents.xml import Element, XmlText, place_of_attribute
from transformer_cli.text.languages import primary_language

_WORD_ATTRIBUTES = ("val", "eastAsia", "bidi")
# Word and LibreOffice check no spelling there.
_NO_LANGUAGE = frozenset(["x", "zxx", "none", ""])
# Each kind of script in an OpenDocument file has a language and a country of its own.
_ODF_ATTRIBUTES = (
    ("fo:language", "fo:country"),
    ("style:language-asian", "style:country-asian"),
    ("style:language-complex", "style:country-complex"),
)


def word_language_edits(xml: XmlText) -> list[Edit]:
    """The languages in a part of a DOCX file that are the source language.

    What a paragraph has where nothing else is said is the target language afterwards, whatever it was: all text is translated.
    """
    edits = []
    usual = {each.start for element in _usual_formats(xml.root) for each in element.walk()}
    for element in xml.root.walk():
        if element.local == "lang":
            for name in element.attributes:
                if (local := name.rpartition(":")[2]) in _WORD_ATTRIBUTES:
                    is_usual = local == "val" and element.start in usual
                    edits += _edit_of(xml, element, name, partial(language_after, is_usual=is_usual))
        elif element.local in ("rPr", "endParaRPr", "defRPr"):
            edits += language_edits_of(xml, element, "lang")
    return edits


def _usual_formats(styles: Element) -> Iterator[Element]:
    for element in styles.elements:
        given = {name.rpartition(":")[2]: value for name, value in element.attributes.items()}
        is_style = element.local == "style" and given.get("type") == "paragraph"
        if element.local == "docDefaults" or (is_style and given.get("default") in ("1", "true", "on")):
            yield element


def odf_language_edits(xml: XmlText) -> list[Edit]:
    """The languages in the styles of an OpenDocument file that are the source language; see `word_language_edits`."""
    edits = []
    for group in xml.root.elements:
        for style in group.elements:
            is_usual = style.local == "default-style"
            for element in (each for each in style.elements if each.local == "text-properties"):
                for names in _ODF_ATTRIBUTES:
                    is_text_language = is_usual and names[0] == "fo:language"
                    language = element.attributes.get(names[0], "")
                    edits += _edit_of(xml, element, names[0], partial(_language, is_usual=is_text_language))
                    edits += _edit_of(xml, element, names[1], partial(_country, language, is_usual=is_text_language))
    return edits


def language_edits_of(xml: XmlText, element: Element, name: str) -> list[Edit]:
    """The edit of an attribute that names the language of a text; none if the element has no such attribute."""
    return _edit_of(xml, element, name, language_after)


def _edit_of(xml: XmlText, element: Element, name: str, replacement: Callable[..., str]) -> list[Edit]:
    place = place_of_attribute(xml, element, name)
    if place is None:
        return []
    return [Edit(*place, partial(replacement, xml.content.text[place[0] : place[1]]))]


def _is_changed(given: str, languages: Direction, *, is_usual: bool) -> bool:
    source, target = map(primary_language, languages)
    named = primary_language(given.strip())
    if source == target or named == target or named in _NO_LANGUAGE:
        return False
    return is_usual or named == source


def language_after(given: str, languages: Direction, *, is_usual: bool = False) -> str:
    """The code of a language in a translated file: the target language in place of the source language.

    Args:
        is_usual: whether it is that of all text which names no other one, and changes whatever it was.
    """
    return languages.target if _is_changed(given, languages, is_usual=is_usual) else given


def _language(given: str, languages: Direction, *, is_usual: bool) -> str:
    is_changed = _is_changed(given, languages, is_usual=is_usual)
    return languages.target.replace("_", "-").partition("-")[0] if is_changed else given


def _country(language: str, given: str, languages: Direction, *, is_usual: bool) -> str:
    if not _is_changed(language, languages, is_usual=is_usual):
        return given
    country = languages.target.replace("_", "-").rpartition("-")[2]
    return country.upper() if country.isalpha() and country != languages.target and len(country) == 2 else "none"
