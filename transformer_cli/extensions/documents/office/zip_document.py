"""Documents that are zip files: some of their parts hold text, and all other parts stay byte for byte."""

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO

from transformer_cli.extensions.documents.segments import (
    Document,
    Languages,
    Segment,
    TranslatedSegment,
)


@dataclass(frozen=True, slots=True)
class ZipDocument:
    """A `Document` in several parts of a zip file."""

    data: bytes
    parts: Mapping[str, Document]
    """The parts with text, by their names in the zip file, in the order of reading."""

    @property
    def segments(self) -> Sequence[Segment]:
        """See `Document.segments`; each place names its part."""
        return [
            replace(segment, place=f"{name}, {segment.place}")
            for name, part in self.parts.items()
            for segment in part.segments
        ]

    def write(self, translations: Sequence[TranslatedSegment], languages: Languages) -> bytes:
        """See `Document.write`; if no part changes, the file stays as it is."""
        changed = {}
        place = 0
        for name, part in self.parts.items():
            end = place + len(part.segments)
            changed[name] = part.write(translations[place:end], languages)
            place = end
        with zipfile.ZipFile(BytesIO(self.data)) as archive:
            if all(archive.read(name) == content for name, content in changed.items()):
                return self.data
            return _with_parts(archive, changed)


def _with_parts(archive: zipfile.ZipFile, changed: Mapping[str, bytes]) -> bytes:
    """The zip file with other contents of some parts; order, dates and kinds of compression stay."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as written:
        written.comment = archive.comment
        for info in archive.infolist():
            content = changed.get(info.filename)
            written.writestr(info, archive.read(info) if content is None else content)
    return buffer.getvalue()
