"""Files that survive crashes: atomic writes, checksums, safetensors, JSON Lines, locks."""

from transformer_cli.storage.filesystem import REAL, FileSystem, errors_explained
from transformer_cli.storage.json_lines import append_json_line, cut_json_lines, read_json_lines
from transformer_cli.storage.lock import RunLock
from transformer_cli.storage.manifest import MANIFEST_NAME, DamagedError, Manifest
from transformer_cli.storage.reading import open_sealed
from transformer_cli.storage.writing import (
    Content,
    make_folders,
    move,
    point_link,
    remove,
    replace_file,
    require_space,
    staged_file,
    staged_folder,
    sweep,
    write_folder,
)

__all__ = [
    "MANIFEST_NAME",
    "REAL",
    "Content",
    "DamagedError",
    "FileSystem",
    "Manifest",
    "RunLock",
    "append_json_line",
    "cut_json_lines",
    "errors_explained",
    "make_folders",
    "move",
    "open_sealed",
    "point_link",
    "read_json_lines",
    "remove",
    "replace_file",
    "require_space",
    "staged_file",
    "staged_folder",
    "sweep",
    "write_folder",
]
