"""The pictures of the documentation: what makes each, and whether it still shows what that draws today."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from making.blocks import ROOT, pages

FOLDER = ROOT / "docs" / "pictures"
INDEX = FOLDER / "index.yaml"


def index() -> dict[str, Mapping[str, str]]:
    """What is known about each picture, by its file name."""
    return yaml.safe_load(INDEX.read_text(encoding="utf-8"))


def unlisted() -> Iterator[str]:
    """What is wrong with the table of pictures and with the files."""
    listed = index()
    files = {path.name for path in FOLDER.iterdir() if path.suffix != ".yaml"}
    shown = "\n".join(page.read_text(encoding="utf-8") for page in pages())
    for name in sorted(files | listed.keys()):
        if name not in listed:
            yield f"docs/pictures/{name}: docs/pictures/index.yaml does not say what makes it"
        elif name not in files:
            yield f"docs/pictures/{name}: the table has it, and the file is missing"
        elif f"pictures/{name}" not in shown:
            yield f"docs/pictures/{name}: no page shows it"
        elif (script := listed[name].get("script")) and name not in _text(ROOT / script):
            yield f"docs/pictures/{name}: {script} does not name it"


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""
