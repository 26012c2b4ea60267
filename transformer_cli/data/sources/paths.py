"""Expands a path or a glob of a config to the files that it names."""

import difflib
import glob
import os
from pathlib import Path

from transformer_cli.process.errors import MissingInputError


def with_home(path: str) -> Path:
    """The path, with ~ at its beginning as the home folder; it stays where no such user is known."""
    return Path(os.path.expanduser(path))


def expand_path(pattern: str, root: str) -> list[Path]:
    """The path itself if it exists, else the files that it matches as a glob, sorted.

    Raises:
        MissingInputError: no file has this name or matches this glob.
    """
    folder, given = with_home(root), with_home(pattern)
    path = folder / given
    if os.path.exists(path):
        return [path]
    if glob.has_magic(pattern):
        anchored = str(given) if given.is_absolute() else f"{glob.escape(str(folder))}/{given}"
        matches = sorted(glob.glob(anchored, recursive=True))
        files = [Path(match) for match in matches if not os.path.isdir(match)]
        if files:
            return files
    raise _missing(path, root, is_glob=glob.has_magic(pattern))


def _missing(path: Path, root: str, *, is_glob: bool) -> MissingInputError:
    folder = path.parent
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    wanted = path.relative_to(folder).parts[0] if path != folder else ""
    names = sorted(os.listdir(folder)) if os.access(folder, os.R_OK) else []
    close = difflib.get_close_matches(wanted, names, n=3, cutoff=0.5)
    hint = f"relative paths start at data.root ({root}); set another one with --set data.root=PATH"
    if close:
        hint += f"; similar names in {folder.absolute()}: {', '.join(close)}"
    kind = "no file matches" if is_glob else "no such file"
    return MissingInputError(f"{path.absolute()}: {kind}", hint=hint)


def name_under_root(path: Path, root: str) -> str:
    """The path relative to its root, so that a corpus keeps its name when the root moves."""
    folder = with_home(root)
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.as_posix()
