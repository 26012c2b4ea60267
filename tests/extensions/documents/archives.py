"""Zip documents for tests, from the texts of their parts."""

import zipfile
from io import BytesIO


def packed(parts: dict[str, str], *, stored: tuple[str, ...] = ()) -> bytes:
    """A zip file with these parts, in their order."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            kind = zipfile.ZIP_STORED if name in stored else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name, (2024, 5, 6, 7, 8, 10)), content, kind)
    return buffer.getvalue()


def unpacked(data: bytes) -> dict[str, str]:
    """The parts of a zip file, in their order."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name).decode() for name in archive.namelist()}
