"""XML from elsewhere, read as a stream: entities and external references are refused, and sizes are limited."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from transformer_cli.data.sources.lines import COMPRESSIONS, open_file, read_chunks
from transformer_cli.process.errors import DataError

_CODES = frozenset(["bpt", "ept", "ph", "it", "ut", "x", "bx", "ex"])


def elements(path: Path, *, names: tuple[str, ...]) -> Iterator[Any]:
    """The elements with these names, without regard to namespaces, each when it is complete; then it is freed.

    Comments and processing instructions are left out. The root is given first, before its content is read.

    Raises:
        DataError: the file is not XML, declares entities, or is nested or long beyond all measure.
    """
    from lxml import etree

    with _opened(path) as file:
        # No option names a DTD, a network or a large tree: neither is ever loaded.
        events = etree.iterparse(
            file, events=("start", "end"), resolve_entities=False, no_network=True, load_dtd=False,
            dtd_validation=False, huge_tree=False, remove_comments=True, remove_pis=True,
        )  # fmt: skip
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


def plain_text(element: Any, path: Path) -> str:
    """The text of a segment without its inline tags; the codes of other formats inside them are left out."""
    parts = [element.text or ""]
    for child in element:
        if not isinstance(child.tag, str):
            raise _entity_error(path, "an entity is used")
        if local_name(child) not in _CODES:
            parts.append(plain_text(child, path))
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
    return open_file(path)


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
