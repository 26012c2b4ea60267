"""Translation memories in TMX and XLIFF, read as streams: entities and external references are refused, and sizes are limited."""

import codecs
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from transformer_cli.data.sources.lines import COMPRESSIONS, open_regular_file, read_chunks
from transformer_cli.extensions.corpora.pairs import (
    ImportedPair,
    ImportReport,
    one_line,
)
from transformer_cli.process.errors import DataError
from transformer_cli.text.languages import best_match, plain_code

_CODES = frozenset(["bpt", "ept", "ph", "it", "ut", "x", "bx", "ex"])


Notice = Callable[[str, str], None]
"""Takes what was left out, and its place."""


def elements_of_file(path: Path, *, names: tuple[str, ...], notice: Notice | None = None) -> Iterator[Any]:
    """The elements with these names, without regard to namespaces, each when it is complete; then it is freed.

    Comments and processing instructions are left out, and characters that XML does not allow. The root is given first,
    before its content is read.

    Args:
        notice: hears of each character that was left out.

    Raises:
        DataError: the file is not XML, declares entities, or is nested or long beyond all measure.
    """
    from lxml import etree

    with _opened(path) as file:
        # No option names a DTD, a network or a large tree: neither is ever loaded.
        events = etree.iterparse(
            _AllowedText(file, path, notice),
            events=("start", "end"),
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            dtd_validation=False,
            huge_tree=False,
            remove_comments=True,
            remove_pis=True,
        )
        try:
            yield from _complete(events, names, path)
        except etree.XMLSyntaxError as error:
            raise DataError(
                f"{path}: not well-formed XML: {error.msg}",
                hint="export the file again with the program that wrote it",
            ) from error


def _complete(events: Any, names: tuple[str, ...], path: Path) -> Iterator[Any]:
    is_first = True
    depth_of_wanted = 0
    for event, element in events:
        if is_first:
            _refuse_entities(element, path)
            is_first = False
            yield element
        if not isinstance(element.tag, str):
            raise _entity_error(path, "an entity is used")
        is_wanted = local_name(element) in names
        if event == "start":
            depth_of_wanted += is_wanted
            continue
        if is_wanted:
            depth_of_wanted -= 1
            yield element
        if not depth_of_wanted:
            _free(element)


def _free(element: Any) -> None:
    """Remove the content of an element, and the elements before it, from memory."""
    element.clear(keep_tail=False)
    while element.getprevious() is not None and element.getparent() is not None:
        del element.getparent()[0]


def _refuse_entities(root: Any, path: Path) -> None:
    internal = root.getroottree().docinfo.internalDTD
    if internal is not None and any(True for _ in internal.iterentities()):
        raise _entity_error(path, "its document type declares entities")


def _entity_error(path: Path, problem: str) -> DataError:
    return DataError(
        f"{path}: {problem}, which can make a small file endless or read other files",
        hint="no translation memory needs them; export it again, or remove the declarations",
    )


def local_name(element: Any) -> str:
    """The name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]


def children(element: Any, name: str) -> list[Any]:
    """The direct children of this name."""
    return [child for child in element if isinstance(child.tag, str) and local_name(child) == name]


def text_without_tags(element: Any, path: Path) -> str:
    """The text of a segment without its inline tags; the codes of other formats inside them are left out."""
    parts = [element.text or ""]
    for child in element:
        if not isinstance(child.tag, str):
            raise _entity_error(path, "an entity is used")
        if local_name(child) not in _CODES:
            parts.append(text_without_tags(child, path))
        parts.append(child.tail or "")
    return "".join(parts)


def language(element: Any) -> str:
    """The language of an element, by xml:lang, lang or an attribute of XLIFF 2."""
    for name, value in element.attrib.items():
        if name.rpartition("}")[2].lower() == "lang":
            return str(value)
    return ""


def _opened(path: Path) -> BinaryIO:
    if path.suffix.lower() in COMPRESSIONS:
        return io.BufferedReader(_Chunks(read_chunks(path)))
    return open_regular_file(path)


class _Chunks(io.RawIOBase):
    """A file over the pieces of a decompressed one."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._rest = chunks, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._rest = self._rest or next(self._chunks, b"")
        taken, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken)


_CHUNK_BYTES, _FIRST_BYTES = 1 << 16, 1024
_DECLARED = re.compile(rb"""^[^<]{0,3}<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_FORBIDDEN = "\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff"
# A CDATA section has no references.
_MARK = re.compile(
    rf"(?P<cdata><!\[CDATA\[)|(?P<end>\]\]>)|(?P<forbidden>[{_FORBIDDEN}])"
    r"|&#(?:x0*(?P<hexadecimal>[0-9A-Fa-f]+)|0*(?P<decimal>[0-9]+));"
)
_SUSPECT = re.compile(rf"[{_FORBIDDEN}]|&#")
# A mark that may go on in the next chunk.
_UNFINISHED = re.compile(r"(?:<!?\[?[CDAT]{0,5}|\]{1,2}|&#?x?[0-9A-Fa-f]{0,40})\Z")
_MOST_DIGITS = 8
_LEFT_OUT = "characters that XML does not allow, left out"


class _AllowedText:
    """An XML file without the characters that XML 1.0 does not allow, neither as they are nor as references."""

    def __init__(self, file: BinaryIO, path: Path, notice: Notice | None) -> None:
        self._file, self._path, self._notice = file, path, notice
        self._first: bytes | None = file.read(_FIRST_BYTES)
        encoding, errors = _encoding_of(self._first)
        self._decode = codecs.getincrementaldecoder(encoding)(errors).decode
        self._encode = codecs.getincrementalencoder(encoding)(errors).encode
        self._rest = ""
        self._line = 1
        self._is_in_cdata = self._has_ended = False

    def read(self, _: int = -1) -> bytes:
        """The next part of the file; empty at its end."""
        while not self._has_ended:
            chunk = self._file.read(_CHUNK_BYTES) if self._first is None else self._first
            self._first = None
            self._has_ended = not chunk
            text = self._rest + self._decode(chunk, self._has_ended)
            unfinished = None if self._has_ended else _UNFINISHED.search(text, max(0, len(text) - 50))
            end = len(text) if unfinished is None else unfinished.start()
            self._rest = text[end:]
            if found := self._encode(self._allowed(text[:end]), self._has_ended):
                return found
        return b""

    def _allowed(self, text: str) -> str:
        if _SUSPECT.search(text) or (self._is_in_cdata and "]]>" in text) or "<![CDATA[" in text:
            text = _MARK.sub(self._kept, text)
        self._line += text.count("\n")
        return text

    def _kept(self, mark: re.Match[str]) -> str:
        kind = mark.lastgroup
        if kind in ("cdata", "end"):
            self._is_in_cdata = kind == "cdata"
            return mark[0]
        if kind != "forbidden":
            digits = mark[kind or 0]
            number = int(digits[:_MOST_DIGITS], 16 if kind == "hexadecimal" else 10)
            if self._is_in_cdata or (len(digits) <= _MOST_DIGITS and _is_allowed(number)):
                return mark[0]
        if self._notice is not None:
            line = self._line + mark.string.count("\n", 0, mark.start())
            self._notice(_LEFT_OUT, f"{self._path}:{line}")
        return ""


def _encoding_of(data: bytes) -> tuple[str, str]:
    """The encoding of an XML file by its first bytes, and how bytes that are no text in it are kept."""
    if data.startswith((codecs.BOM_UTF16_LE, b"<\0")):
        return "utf-16-le", "surrogatepass"
    if data.startswith((codecs.BOM_UTF16_BE, b"\0<")):
        return "utf-16-be", "surrogatepass"
    declared, errors = _DECLARED.match(data), "surrogateescape"
    name = declared[1].decode() if declared else "utf-8"
    try:
        # A file whose first bytes are ASCII is not in UTF-16, whatever it says.
        is_possible = "<?xml".encode(name, errors) == b"<?xml"
    except (LookupError, UnicodeError):
        is_possible = False  # the reader names the encoding that it does not know
    return (codecs.lookup(name).name if is_possible else "utf-8"), errors


def _is_allowed(number: int) -> bool:
    """Whether XML 1.0 allows a character (section 2.2 of its fifth edition)."""
    is_surrogate = 0xD800 <= number <= 0xDFFF
    is_control = number < 0x20 and number not in (0x9, 0xA, 0xD)
    return not (is_surrogate or is_control or number in (0xFFFE, 0xFFFF) or number > 0x10FFFF)


_NUM_SAMPLED_UNITS = 1000


def pairs_of_tmx(
    path: Path, source_language: str, target_language: str, report: ImportReport
) -> Iterator[ImportedPair]:
    """One pair of each translation unit that has both languages.

    Raises:
        DataError: the file is no TMX, or not well-formed.
    """
    for line, variants in _tmx_units(path, report.notice):
        report.num_units += 1
        codes = [code for code, _ in variants]
        source, target = best_match(source_language, codes), best_match(target_language, codes)
        if source is None or target is None or source == target:
            missing = source_language if source is None else target_language
            report.skip(f"no text in {missing}", f"{path}:{line}")
            continue
        others = codes[:source] + codes[source + 1 :]
        matches = sum(plain_code(code) == plain_code(target_language) for code in others)
        if matches > 1:
            report.notice(f"several texts in {target_language}, of which one is taken", f"{path}:{line}")
        yield ImportedPair(line, one_line(variants[source][1]), one_line(variants[target][1]))


def languages_of_tmx(path: Path) -> tuple[str, ...]:
    """The languages of the first 1,000 units: the source language first, then the most frequent."""
    counts: Counter[str] = Counter()
    source = ""
    for root_or_unit in islice(elements_of_file(path, names=("header", "tu")), _NUM_SAMPLED_UNITS):
        if local_name(root_or_unit) == "header":
            source = root_or_unit.get("srclang", "")
            continue
        counts.update({language(variant) for variant in children(root_or_unit, "tuv")})
    found = [code for code, _ in counts.most_common() if code]
    first = best_match(source, found) if source and source.lower() != "*all*" else None
    if first is not None:
        found.insert(0, found.pop(first))
    return tuple(found)


def _tmx_units(path: Path, notice: Notice) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """The line of each translation unit, and its texts with their languages."""
    for number, element in enumerate(elements_of_file(path, names=("tu",), notice=notice)):
        if number == 0 and local_name(element) != "tu":
            if local_name(element) != "tmx":
                raise DataError(f"{path}: no TMX: its root is <{local_name(element)}>")
            continue
        variants = []
        for variant in children(element, "tuv"):
            segments = children(variant, "seg")
            text = text_without_tags(segments[0], path) if segments else ""
            variants.append((language(variant), text))
        yield element.sourceline or 0, variants


_NOT_TRANSLATED = {"new", "needs-translation"}


def pairs_of_xliff(
    path: Path, source_language: str, target_language: str, report: ImportReport
) -> Iterator[ImportedPair]:
    """The pairs of each unit: its segments if both sides have the same, else the whole unit.

    Raises:
        DataError: the file is no XLIFF 1.2, or not well-formed.
    """
    for line, languages, unit in _xliff_units(path, report.notice):
        report.num_units += 1
        place = f"{path}:{line}"
        wanted = (source_language, target_language)
        if any(best_match(one, [code]) is None for one, code in zip(wanted, languages, strict=True) if code):
            report.skip(f"in other languages: {languages[0]} into {languages[1] or '?'}", place)
            continue
        targets = children(unit, "target")
        if not targets:
            report.skip("not translated", place)
        elif targets[0].get("state") in _NOT_TRANSLATED:
            report.skip(f"not translated (state {targets[0].get('state')})", place)
        else:
            for source, target in _pairs(unit, targets[0]):
                texts = text_without_tags(source, path), text_without_tags(target, path)
                yield ImportedPair(line, one_line(texts[0]), one_line(texts[1]))


def languages_of_xliff(path: Path) -> tuple[str, ...]:
    """The source and the target language of the first file inside."""
    for _, languages, _ in _xliff_units(path):
        return tuple(code for code in languages if code)
    return ()


def _xliff_units(path: Path, notice: Notice | None = None) -> Iterator[tuple[int, tuple[str, str], Any]]:
    """The line of each unit, its languages, and its element."""
    for number, element in enumerate(elements_of_file(path, names=("trans-unit",), notice=notice)):
        if number == 0:
            _check_root(element, path)
            continue
        file = next((parent for parent in element.iterancestors() if local_name(parent) == "file"), None)
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
