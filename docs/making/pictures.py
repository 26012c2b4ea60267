"""The pictures of the documentation: what makes each, and whether it still shows what that draws today."""

import hashlib
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from making.blocks import ROOT, MarkerError, pages
from making.jobs import answers_of

FOLDER = ROOT / "docs" / "pictures"
INDEX = FOLDER / "index.yaml"
HEAD = """\
# Every picture of docs/pictures, and what makes it. CONTRIBUTING.md explains the three kinds:
#   command, content   a drawing: the command of tfm, and the SHA-256 of what is drawn, which python docs/make.py writes
#   slow               drawing it takes long, so only the slow tests do it; the value says why
#   script             what a browser shows, or what a training takes minutes for: the script that makes the picture
#   by_hand            a picture of a screen, and why no command makes it
"""


def index() -> dict[str, dict[str, str]]:
    """What is known about each picture, by its path from docs/pictures, such as ablations/no-positions.png."""
    return yaml.safe_load(INDEX.read_text(encoding="utf-8"))


def unlisted() -> Iterator[str]:
    """What is wrong with the table of pictures and with the files."""
    listed = index()
    files = {
        path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file() and path.suffix != ".yaml"
    }
    shown = "\n".join(page.read_text(encoding="utf-8") for page in pages())
    for name in sorted(files | listed.keys()):
        script = listed.get(name, {}).get("script")
        if name not in listed:
            yield f"docs/pictures/{name}: docs/pictures/index.yaml does not say what makes it"
        elif name not in files:
            yield f"docs/pictures/{name}: the table has it, and the file is missing"
        elif f"pictures/{name}" not in shown:
            yield f"docs/pictures/{name}: no page shows it"
        elif script and not (ROOT / script).is_file():
            yield f"docs/pictures/{name}: there is no {script}"
        elif script and not _names(ROOT / script, name):
            yield f"docs/pictures/{name}: {script} does not name it"


def _names(script: Path, picture: str) -> bool:
    """Whether a script has the name of a picture, or a pattern of it such as explain-{name}.png."""
    named = re.findall(r"[\w{}.-]+\.png", script.read_text(encoding="utf-8"))
    patterns = (re.sub(r"\\\{.*?\\\}", ".+", re.escape(one)) for one in named)
    return any(re.fullmatch(pattern, Path(picture).name) for pattern in patterns)


def drawings(*, is_slow: bool | None = None) -> dict[str, str]:
    """The commands of all pictures that have one, by file name; of the slow or of the other ones, if this is asked."""
    return {
        name: one["command"] for name, one in index().items() if "command" in one and is_slow in (None, "slow" in one)
    }


def redrawn(commands: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Draw pictures into a folder.

    Args:
        commands: by the file names of the pictures.
        folder: exists.

    Returns:
        The SHA-256 of what each shows, by its file name; for a picture of a model, of what it shows apart from its
        numbers, and of the weights.

    Raises:
        MarkerError: a command fails, or draws no picture of this name.
    """
    for name in commands:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    jobs = [_job(name, command, folder) for name, command in commands.items()]
    contents = {}
    for name, answer in zip(commands, answers_of(jobs), strict=True):
        if answer["failure"] or not answer["drawn"]:
            raise MarkerError(f"{INDEX.name}: {name}: {answer['failure'] or 'nothing was drawn'}")
        model = model_digest() if "--run" in commands[name] else ""
        contents[name] = hashlib.sha256(f"{answer['drawn']}{model}".encode()).hexdigest()
    return contents


def model_digest() -> str:
    """The SHA-256 of the weights of docs/run: a picture of a model is drawn again for other weights."""
    [weights] = FOLDER.parent.glob("run/checkpoints/*/model.safetensors")
    return hashlib.sha256(weights.read_bytes()).hexdigest()


def drifted_pictures(commands: Mapping[str, str], *, is_written: bool) -> list[str]:
    """The pictures that show something else than their commands draw today.

    Args:
        commands: by the file names of the pictures; of `drawings`.
        is_written: whether the new pictures, and their content in the table, replace the old ones.
    """
    with tempfile.TemporaryDirectory() as folder:
        contents = redrawn(commands, Path(folder))
        listed = index()
        changed = [
            name
            for name, content in contents.items()
            if listed[name].get("content") != content or not (FOLDER / name).exists()
        ]
        if is_written and changed:
            for name in changed:
                listed[name]["content"] = contents[name]
                shutil.copyfile(Path(folder) / name, FOLDER / name)
            _write(listed)
    return changed


def _job(name: str, command: str, folder: Path) -> Mapping[str, object]:
    path = f"docs/pictures/{name}"
    program, *arguments = shlex.split(command)
    if program != "tfm" or path not in arguments:
        raise MarkerError(f"{INDEX.name}: {name}: its command must be of tfm, and write {path}")
    here = [str(folder / name) if word == path else word for word in arguments]
    return {"tfm": here, "draws": "without numbers" if "--run" in here else "with numbers"}


def _write(listed: Mapping[str, Mapping[str, str]]) -> None:
    lines = yaml.safe_dump({**listed}, sort_keys=True, width=1000, allow_unicode=True)
    INDEX.write_text(f"{HEAD}{lines}", encoding="utf-8")
