"""The navigation of the site: pages that are not written yet are left out, patterns become pages."""

from fnmatch import fnmatchcase
from typing import Any

# An entry of `nav`: a path or a pattern, {title: path}, or {title: entries}.
Entry = Any


def filled(entries: list[Entry], pages: list[str]) -> list[Entry]:
    """The navigation with only pages that exist.

    Args:
        entries: `nav` of mkdocs.yml; a path with a `*` stands for all matching pages that no
            other entry names.
        pages: the paths of all pages, relative to docs/.
    """
    return _filled(entries, sorted(pages), set(_paths(entries)))


def ungrouped(entries: list[Entry], pages: list[str]) -> list[str]:
    """The pages that no entry of the navigation names or matches."""
    paths = _paths(entries)
    return [page for page in sorted(pages) if not any(fnmatchcase(page, path) for path in paths)]


def _paths(entries: list[Entry]) -> list[str]:
    paths: list[str] = []
    for entry in entries:
        value = next(iter(entry.values())) if isinstance(entry, dict) else entry
        paths += _paths(value) if isinstance(value, list) else [value]
    return paths


def _filled(entries: list[Entry], pages: list[str], named: set[str]) -> list[Entry]:
    result: list[Entry] = []
    for entry in entries:
        title, value = next(iter(entry.items())) if isinstance(entry, dict) else (None, entry)
        if isinstance(value, list):
            inside = _filled(value, pages, named)
            result += [{title: inside}] if inside else []
        elif "*" in value:
            result += [page for page in pages if fnmatchcase(page, value) and page not in named]
        elif value in pages:
            result.append({title: value} if title else value)
    return result
