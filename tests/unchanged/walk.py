"""Through how many files of the package one use of it goes: files, their lines, functions, and arrows between files.

    python tests/unchanged/walk.py                     # a table of all walks
    python tests/unchanged/walk.py --files translate   # also the files, by folder, of the walks that are named
    python tests/unchanged/walk.py --functions train   # also each function with its lines, its calls and its callers
    python tests/unchanged/walk.py --python /path/to/another/tree/.venv/bin/python

Walks: `translate` one sentence with the run docs/run; `train`: three updates of copy.yaml; `serve`: one POST /translate (the
start of the server does not count); `docx`: a document of two paragraphs. Each walk is a process of its own that
runs the command `tfm`, with one thread for tensors, in float32. All its threads are watched.

A file counts if at least one of its functions is called. Code at the top of a module, bodies of classes, and
functions that Python generates (those of dataclasses) do not count; the column "+ classes" also has the files of which only
the body of a class ran. A lambda or a comprehension counts for its file, but not as a function. An arrow is a pair of files:
a function of the first calls a function of the second, directly or through a library (PyTorch, which calls a layer).
The column "direct" has the arrows without a library between.

To compare two trees, run this script with the Python of each: the numbers need nothing but the package's folder.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections import defaultdict
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

SENTENCE = "Where is the station?"
WALKS = ("translate", "train", "serve", "docx")
TITLES = {
    "translate": "tfm translate, one sentence",
    "train": "tfm train copy.yaml, three updates",
    "serve": "one POST /translate",
    "docx": "tfm translate, a small docx",
}
FOLDERS = {"serve": "serving/", "docx": "documents/"}
"""The folder of an extension whose part of a walk has a row of its own."""
SECONDS_FOR_ONE_WALK = 600
IS_FUNCTION = 0x1  # inspect.CO_OPTIMIZED: modules and bodies of classes do not have it


class Counter:
    """Counts the calls of functions of one package, in all threads, from `start` to `stop`."""

    def __init__(self, package: Path) -> None:
        self._prefix = str(package) + os.sep
        self._calls: dict[CodeType, dict[CodeType | None, int]] = {}
        self._files_of_classes: set[str] = set()
        self._arrows: set[tuple[str, str]] = set()
        self._direct_arrows: set[tuple[str, str]] = set()
        self._is_of_package: dict[CodeType, bool] = {}
        self.is_counting = False

    def install(self) -> None:
        """Watch this thread, and all threads that it starts from now on."""
        threading.setprofile(self._see)
        sys.setprofile(self._see)

    def start(self) -> None:
        self.is_counting = True

    def stop(self) -> None:
        self.is_counting = False
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]

    def _see(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not self.is_counting:
            return
        code = frame.f_code
        if not self._counts(code):
            if code.co_filename.startswith(self._prefix) and code.co_name != "<module>":
                self._files_of_classes.add(code.co_filename)
            return
        if _runs_at_import(frame):
            return
        callers = self._calls.setdefault(code, defaultdict(int))
        caller, is_direct = frame.f_back, True
        while caller is not None:
            if self._counts(caller.f_code):
                callers[caller.f_code] += 1
                pair = caller.f_code.co_filename, code.co_filename
                if pair[0] != pair[1]:
                    self._arrows.add(pair)
                    if is_direct:
                        self._direct_arrows.add(pair)
                return
            if caller.f_code.co_filename.startswith(self._prefix):
                break  # code at the top of a module, which calls a function while it is imported
            caller, is_direct = caller.f_back, False
        callers[None] += 1

    def _counts(self, code: CodeType) -> bool:
        known = self._is_of_package.get(code)
        if known is None:
            in_package = code.co_filename.startswith(self._prefix)
            known = self._is_of_package[code] = in_package and bool(code.co_flags & IS_FUNCTION)
        return known

    def result(self) -> dict[str, Any]:
        """What was counted; paths are relative to the package."""
        names = {code for code in self._calls if not code.co_name.startswith("<")}
        entered = {code.co_filename for code in self._calls}
        return {
            "files": sorted(self._short(file) for file in entered),
            "with_classes": sorted(self._short(file) for file in entered | self._files_of_classes),
            "functions": sorted(self._name(one) for one in names),
            "details": sorted(
                [
                    f"{self._short(one.co_filename)}:{one.co_firstlineno:04}",
                    self._name(one),
                    1 + max(line or 0 for *_, line in one.co_lines()) - one.co_firstlineno,
                    sum(self._calls[one].values()),
                    sorted("(outside)" if by is None else self._name(by) for by in self._calls[one]),
                ]
                for one in names
            ),
            "arrows": self._relative(self._arrows),
            "direct_arrows": self._relative(self._direct_arrows),
        }

    def _relative(self, pairs: set[tuple[str, str]]) -> list[list[str]]:
        return sorted([self._short(a), self._short(b)] for a, b in pairs)

    def _name(self, code: CodeType) -> str:
        return f"{self._short(code.co_filename)}:{code.co_qualname}"

    def _short(self, file: str) -> str:
        return Path(file.removeprefix(self._prefix)).as_posix()


def _runs_at_import(frame: FrameType) -> bool:
    """Whether a lambda or a comprehension is part of the code at the top of a module, or of a class."""
    caller = frame.f_back
    return (
        frame.f_code.co_name.startswith("<")
        and caller is not None
        and caller.f_code.co_filename == frame.f_code.co_filename
        and not caller.f_code.co_flags & IS_FUNCTION
    )


# What runs in the process of a walk.


def run_command(arguments: list[str]) -> None:
    """Run `python -m transformer_cli` with these arguments in this process."""
    sys.argv = ["tfm", *arguments]
    try:
        runpy.run_module("transformer_cli", run_name="__main__", alter_sys=False)
    except SystemExit as end:
        if end.code not in (0, None):
            raise


def walk(name: str, tree: Path, counter: Counter) -> None:
    """Take one walk in the current folder; what is counted is in `counter` afterwards."""
    run = ["--run", str(tree / "docs/run")]
    plain = ["--set", "runtime.precision=float32", "--set", "runtime.threads=1"]
    counter.install()
    if name == "serve":
        _walk_into_server([*run, *plain], counter)
        return
    commands = {
        "translate": ["translate", SENTENCE, *run, *plain],
        "train": [
            "train",
            "--config",
            "copy.yaml",
            "--set",
            "training.max_steps=3",
            *plain,
            "--set",
            "runtime.device=cpu",
        ],
        "docx": ["translate", "--input", "small.docx", "--output", "small.it.docx", *run, *plain],
    }
    if name == "docx":
        write_docx(Path("small.docx"), ["The red cars are here.", SENTENCE])
    counter.start()
    try:
        run_command(commands[name])
    finally:
        counter.stop()


def _walk_into_server(options: list[str], counter: Counter) -> None:
    """Start the server in this thread; another thread sends one request, prints what was counted, and ends the process."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def visit() -> None:
        sys.setprofile(None)
        _wait_for_server(port)
        counter.start()
        answer = _post(port, {"q": SENTENCE, "source": "en", "target": "it"})
        time.sleep(0.2)  # a thread of the server may still be busy after its answer
        counter.is_counting = False
        assert answer.get("translatedText"), answer
        _print(counter.result())
        os._exit(0)

    def visit_or_end() -> None:
        try:
            visit()
        except BaseException as error:
            sys.stderr.write(f"{error!r}\n")
            os._exit(1)

    threading.Thread(target=visit_or_end, daemon=True).start()
    run_command(["serve", "--port", str(port), *options])


def _wait_for_server(port: int) -> None:
    ends_at = time.monotonic() + SECONDS_FOR_ONE_WALK
    while True:
        try:
            _request(port, "GET", "/languages")
            return
        except (OSError, AssertionError):
            if time.monotonic() > ends_at:
                raise
            time.sleep(0.1)


def _post(port: int, body: dict[str, Any]) -> dict[str, Any]:
    return dict(_request(port, "POST", "/translate", body))


def _request(port: int, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    data = None if body is None else json.dumps(body)
    connection.request(method, path, data, {"Content-Type": "application/json"})
    response = connection.getresponse()
    content = response.read()
    connection.close()
    assert response.status == 200, (response.status, content[:500])
    return json.loads(content)


def write_docx(path: Path, paragraphs: list[str]) -> None:
    """Write a Word document, with nothing in it but paragraphs."""
    kinds = "http://schemas.openxmlformats.org/package/2006/content-types"
    relations = "http://schemas.openxmlformats.org/package/2006/relationships"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    packed = "application/vnd.openxmlformats-package.relationships+xml"
    text = "".join(f"<w:p><w:r><w:t>{one}</w:t></w:r></w:p>" for one in paragraphs)
    head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
    files = {
        "[Content_Types].xml": f'{head}<Types xmlns="{kinds}"><Default Extension="rels" ContentType="{packed}"/>'
        f'<Override PartName="/word/document.xml" ContentType="{main}"/></Types>',
        "_rels/.rels": f'{head}<Relationships xmlns="{relations}"><Relationship Id="rId1" Type="{office}" '
        'Target="word/document.xml"/></Relationships>',
        "word/document.xml": f'{head}<w:document xmlns:w="{word}"><w:body>{text}</w:body></w:document>',
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


# What runs in the process that a developer starts.


def package_of(python: str) -> Path:
    """The folder of the package that this Python imports."""
    code = "import importlib.util as u; print(u.find_spec('transformer_cli').submodule_search_locations[0])"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    return Path(found.stdout.strip())


def counted(python: str, package: Path, name: str) -> dict[str, Any]:
    """Take one walk in a process of its own, in an empty folder."""
    command = [python, str(Path(__file__).resolve()), "--package", str(package), "--inside", name]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "COLUMNS": "100"}
    with tempfile.TemporaryDirectory(prefix="tfm-walk-") as folder:
        ended = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            text=True,
            capture_output=True,
            check=False,
            timeout=SECONDS_FOR_ONE_WALK,
            stdin=subprocess.DEVNULL,
        )
    if ended.returncode:
        sys.exit(f"the walk {name} failed with exit code {ended.returncode}:\n{ended.stderr}")
    return dict(json.loads(ended.stdout.splitlines()[-1]))


def num_lines(package: Path, files: list[str]) -> int:
    return sum((package / file).read_bytes().count(b"\n") for file in files)


def part_of(result: dict[str, Any], folder: str) -> dict[str, Any]:
    """What was counted in the folders of one name, wherever they lie; of the arrows, those that stay in them."""

    def lies_in(name: str) -> bool:
        return f"/{folder}" in f"/{name}"

    return {
        **{kind: [name for name in result[kind] if lies_in(name)] for kind in ("files", "with_classes", "functions")},
        **{
            kind: [pair for pair in result[kind] if all(lies_in(end) for end in pair)]
            for kind in ("arrows", "direct_arrows")
        },
    }


WIDTHS = {"files": 7, "lines": 8, "+ classes": 11, "functions": 11, "arrows": 8, "direct": 8}


def row(title: str, package: Path, result: dict[str, Any]) -> str:
    counts = {
        "files": len(result["files"]),
        "lines": num_lines(package, result["files"]),
        "+ classes": len(result["with_classes"]),
        "functions": len(result["functions"]),
        "arrows": len(result["arrows"]),
        "direct": len(result["direct_arrows"]),
    }
    return f"{title:36}" + "".join(f"{counts[name]:>{width}}" for name, width in WIDTHS.items())


def by_folder(files: list[str]) -> list[str]:
    """The files, one line per folder."""
    folders: dict[str, list[str]] = defaultdict(list)
    for file in files:
        folder, _, name = file.rpartition("/")
        folders[folder].append(name)
    return [f"  {folder or '.'}/ ({len(names)}): {', '.join(names)}" for folder, names in sorted(folders.items())]


def by_function(details: list[tuple[str, str, int, int, list[str]]]) -> list[str]:
    """One line per function, in the order of the source: lines, calls, callers, name, and the caller if it is one."""
    lines = ["  lines  calls  callers"]
    for _, name, num_lines, num_calls, callers in details:
        only = f"  <- {callers[0]}" if len(callers) == 1 else ""
        lines.append(f"  {num_lines:5}  {num_calls:5}  {len(callers):7}  {name}{only}")
    return lines


def _print(result: dict[str, Any]) -> None:
    sys.stdout.write("\n" + json.dumps(result) + "\n")
    sys.stdout.flush()


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="of the tree that is measured")
    parser.add_argument("--package", type=Path, help="its folder; default: what that Python imports")
    parser.add_argument("--walks", nargs="+", choices=WALKS, default=WALKS)
    parser.add_argument("--files", nargs="*", choices=WALKS, help="list the files of these walks, or of all")
    parser.add_argument("--functions", nargs="*", choices=WALKS, help="list the functions of these walks, or of all")
    parser.add_argument("--json", type=Path, help="also write all that was counted to this file")
    parser.add_argument("--inside", choices=WALKS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    package = options.package or package_of(options.python)
    if options.inside:
        counter = Counter(package)
        walk(options.inside, package.parent, counter)
        _print(counter.result())
        return
    all_files = [str(file.relative_to(package)) for file in package.rglob("*.py")]
    _say(f"{package}: {len(all_files)} files, {num_lines(package, all_files):,} lines\n")
    _say(f"{'walk':36}" + "".join(f"{name:>{width}}" for name, width in WIDTHS.items()))
    results = {}
    for name in options.walks:
        result = results[name] = counted(options.python, package, name)
        _say(row(TITLES[name], package, result))
        if name in FOLDERS:
            part = part_of(result, FOLDERS[name])
            _say(row(f"  of it, files of {FOLDERS[name]}", package, part))
    for name in options.walks if options.files == [] else options.files or ():
        _say(f"\n{TITLES[name]}:")
        _say("\n".join(by_folder(results[name]["files"])))
    for name in options.walks if options.functions == [] else options.functions or ():
        _say(f"\n{TITLES[name]}:")
        _say("\n".join(by_function(results[name]["details"])))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
