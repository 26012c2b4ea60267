"""Sizes of files for people: bytes, kB, MB and GB, each 1000 times the one before."""


def size_in_words(num_bytes: int) -> str:
    """A size with three digits, in bytes, kB, MB or GB."""
    if num_bytes < 1000:
        return f"{num_bytes} bytes"
    size, unit = float(num_bytes), "bytes"
    for larger in ("kB", "MB", "GB"):
        if size >= 999.5:
            size, unit = size / 1000, larger
    digits = 2 if size < 9.995 else 1 if size < 99.95 else 0
    return f"{size:.{digits}f} {unit}"
