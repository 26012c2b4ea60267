"""The export format `browser`: a folder with a page that translates by itself, in a web space or opened from a disk.

The engine is the WebAssembly of the npm package @browsermt/bergamot-translator, which the user installs; the model is in the form
of `--to bergamot`; the page is that of `tfm serve`. A page that was opened from a disk may read nothing but scripts. So all files
are scripts that hold their content packed (gzip, then base64), and the engine runs in a worker that is made from text. In a
web space the same files are used.
"""

import base64
import gzip
import hashlib
import html
import json
import re
import shutil
import subprocess
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import yaml

from transformer_cli.checkpoint.trained_files import TrainedModel
from transformer_cli.config import Config
from transformer_cli.extensions.exchange.bergamot import (
    CONFIG_FILE,
    MODEL_FILE,
    SHORTLIST,
    BergamotFolder,
    BergamotFormat,
    bergamot_files,
)
from transformer_cli.extensions.exchange.export_format import (
    OtherEngine,
    Quantization,
    add_to_folder,
)
from transformer_cli.process.errors import DataError, MissingInputError
from transformer_cli.text.languages import name_of_language

PACKAGE = "@browsermt/bergamot-translator"
KNOWN_VERSION = "0.4.9"
"""The version of the package with which this format was tested."""
PAGE, FILES = "index.html", "files"
_INSTALL = f"npm install {PACKAGE}@{KNOWN_VERSION}"
_USAGE = """\
Open `{name}/index.html` in a browser, from a disk or a USB stick; or copy the folder into any web space. No server translates,
and no network is needed: {engine} runs in the page. The browser must be of 2023 or newer.

The engine in `files/` is the npm package [{package}](https://www.npmjs.com/package/{package}) {version}, unchanged, under the Mozilla
Public License 2.0; its source is at <https://github.com/browsermt/bergamot-translator>.
"""


class BrowserEngine(NamedTuple):
    """The WebAssembly engine of the npm package."""

    version: str
    script: str
    """Its JavaScript."""
    wasm: bytes


def read_engine(given: Path | None) -> BrowserEngine:
    """The engine in an installed npm package.

    Args:
        given: the folder of the package, or one with the package in its `node_modules`; None: the current folder or one above it.

    Raises:
        MissingInputError: the package is not there, or lacks a file.
    """
    if given is None:
        here = Path.cwd()
        places = [folder / "node_modules" / PACKAGE for folder in (here, *here.parents)]
    else:
        places = [given, given / PACKAGE, given / "node_modules" / PACKAGE]
    folder = next((one for one in places if (one / "worker").is_dir()), None)
    if folder is None:
        where = f"in {given}" if given else "in node_modules of this folder, or of one above it"
        raise MissingInputError(
            f"--to browser needs the npm package {PACKAGE}, which is not {where}",
            hint=f"run `{_INSTALL}` here (Node: https://nodejs.org), or name its folder with --engine",
        )
    name = "worker/bergamot-translator-worker"
    try:
        version = json.loads((folder / "package.json").read_text(encoding="utf-8"))["version"]
        script = (folder / f"{name}.js").read_text(encoding="utf-8")
        return BrowserEngine(str(version), script, (folder / f"{name}.wasm").read_bytes())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise MissingInputError(
            f"{folder}: this is not the package {PACKAGE}, or it is damaged: {error}",
            hint=f"install it again: {_INSTALL}",
        ) from error


@dataclass(frozen=True)
class BrowserFormat(BergamotFormat):
    """A folder with a page."""

    name = "browser"
    engine: Path | None = None
    """The folder of the npm package; None: it is looked for."""

    def write(self, trained: TrainedModel, path: Path, *, quantization: Quantization | None) -> None:
        engine = read_engine(self.engine)
        files = bergamot_files(trained, is_rounded=quantization is not None)
        add_to_folder(path, browser_files(trained.config, files, engine))

    def open(self, path: Path) -> OtherEngine:
        return BrowserFolder(path)

    def usage(self, trained: TrainedModel, name: str) -> str:
        engine = read_engine(self.engine)
        return _USAGE.format(name=name, engine="the engine of Bergamot", package=PACKAGE, version=engine.version)


def browser_files(config: Config, bergamot: Mapping[str, bytes], engine: BrowserEngine) -> dict[str, bytes]:
    """The files of a page that translates by itself, by their names in the folder.

    Args:
        config: of the run.
        bergamot: the files of `--to bergamot`.
    """
    [direction] = config.data.directions
    vocabularies = yaml.safe_load(bergamot[CONFIG_FILE])["vocabs"]
    contents = {
        "program": f"{_text('browser_worker.js')}\n{engine.script}".encode(),
        "wasm": engine.wasm,
        "model": bergamot[MODEL_FILE],
        "vocabulary": bergamot[vocabularies[0]],
    }
    if vocabularies[1] != vocabularies[0]:
        contents["target_vocabulary"] = bergamot[vocabularies[1]]
    for name, content in bergamot.items():
        if name.startswith(SHORTLIST):
            contents["shortlist"] = content
    scripts = {name: file_as_script(name, content) for name, content in contents.items()}
    facts = {
        "source": {"code": direction.source, "name": name_of_language(direction.source)},
        "target": {"code": direction.target, "name": name_of_language(direction.target)},
        # A browser that has the files of an earlier export asks for those of this one.
        "files": {name: hashlib.sha256(one).hexdigest()[:12] for name, one in scripts.items()},
    }
    files = {f"{FILES}/{name}.js": content for name, content in scripts.items()}
    return {PAGE: _page(facts).encode(), **files}


def file_as_script(name: str, content: bytes) -> bytes:
    """A file as a script."""
    packed = base64.b64encode(gzip.compress(content, mtime=0)).decode()
    return f'tfmTake("{name}", "{packed}");\n'.encode()


def content_of(script: Path) -> bytes:
    """The inverse of `file_as_script`.

    Raises:
        DataError: the file is damaged.
    """
    found = re.fullmatch(rb'tfmTake\("\w+", "([\w+/=]*)"\);\n', script.read_bytes())
    try:
        if found is None:
            raise ValueError("not a script of tfm export")
        return gzip.decompress(base64.b64decode(found[1], validate=True))
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise DataError(f"{script}: {error}", hint="copy the whole folder again") from error


def _page(facts: Mapping[str, object]) -> str:
    """The page, which `tfm serve` shows, too, with a script before its own that answers in place of a server."""
    page = resources.files("transformer_cli.extensions").joinpath("page.html").read_text(encoding="utf-8")
    # Without this character, nothing in the data can end the script.
    data = json.dumps(facts, ensure_ascii=False).replace("<", "\\u003c")
    added = (
        f'<script type="application/json" id="facts">{data}</script>\n<script>\n{_text("browser_page.js")}</script>\n'
    )
    page = page.replace("<script>\n", f"{added}<script>\n", 1)
    policy = html.escape(offline_page_policy(page))
    meta = f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{policy}">'
    return page.replace('<meta charset="utf-8">', meta, 1)


def offline_page_policy(page: str) -> str:
    """A policy that lets the page load its own scripts and nothing else: no text can leave it.

    Args:
        page: HTML; its inline scripts and styles are allowed by their hashes.
    """

    def hashes(element: str) -> str:
        contents = re.findall(f"<{element}>(.*?)</{element}>", page, flags=re.DOTALL)
        digests = [hashlib.sha256(content.encode()).digest() for content in contents]
        return " ".join(f"'sha256-{base64.b64encode(one).decode()}'" for one in digests)

    return "; ".join(
        [
            "default-src 'none'",
            "img-src data:",
            f"style-src {hashes('style')}",
            # The engine makes functions from text when it starts; file: are the scripts of a page that was opened from a disk.
            f"script-src 'self' file: 'unsafe-eval' {hashes('script')}",
            "worker-src blob:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


class BrowserFolder(BergamotFolder):
    """An `OtherEngine`: the model in the scripts of a folder, computed in numpy."""

    def _contents(self, folder: Path) -> tuple[bytes, Sequence[bytes]]:
        names = ["vocabulary", "vocabulary"]
        if (folder / FILES / "target_vocabulary.js").exists():
            names[1] = "target_vocabulary"
        scripts = [folder / FILES / f"{name}.js" for name in ("model", *names)]
        model, *vocabularies = map(content_of, scripts)
        return model, vocabularies


# The engine itself, in Node: it reads the same scripts as a browser.


def node() -> str | None:
    """The program of Node, with which npm installs packages; None: it is not in PATH."""
    return shutil.which("node")


def translated_in_node(folder: Path, texts: Sequence[str]) -> list[str]:
    """Translate with the engine and the model of a folder, in Node.

    Args:
        folder: of `--to browser`.

    Raises:
        MissingInputError: there is no Node.
        DataError: the engine failed.
    """
    program = node()
    if program is None:
        raise MissingInputError("node is not in PATH", hint="install Node: https://nodejs.org")
    finished = subprocess.run(
        [program, "-e", _text("browser_node.js"), str(folder / FILES)],
        input=json.dumps(list(texts)).encode(),
        capture_output=True,
        check=False,
    )
    if finished.returncode:
        said = finished.stderr.decode(errors="replace").strip().splitlines()
        problem = next((one for one in said if "Error" in one), said[-1] if said else "no output")
        raise DataError(f"{folder}: the engine failed in Node: {problem}")
    found: list[str] = json.loads(finished.stdout)
    return found
