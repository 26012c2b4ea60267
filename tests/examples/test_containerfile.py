"""The container file copies what a build needs; the wheel that it builds holds the kernels."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.pages

ROOT = Path(__file__).resolve().parents[2]
LINES = re.sub(
    r"\\\n", "", (ROOT / "examples/serving/Containerfile").read_text()
).splitlines()  # continued lines are one


def copies() -> list[tuple[list[str], str]]:
    """The sources and the target of each COPY from the folder of the project."""
    found = []
    for line in LINES:
        if line.startswith("COPY ") and "--from" not in line:
            *sources, target = line.split()[1:]
            found.append((sources, target))
    return found


def instruction(name: str) -> str:
    """The last instruction of a name, without the name."""
    return [line for line in LINES if line.startswith(f"{name} ")][-1].removeprefix(f"{name} ")


def needed_files() -> list[str]:
    """The files and folders of the project from which a wheel is built."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project, hatch = settings["project"], settings["tool"]["hatch"]
    wheel = hatch["build"]["targets"]["wheel"]
    hooks = wheel.get("hooks", {}) | hatch["build"].get("hooks", {})
    return [
        "pyproject.toml",
        project["readme"],
        *project["license-files"],
        hatch["version"]["path"],
        *wheel["packages"],
        *wheel["force-include"],
        *(hook.get("path", "hatch_build.py") for name, hook in hooks.items() if name == "custom"),
    ]


def test_everything_that_a_build_needs_is_copied() -> None:
    copied = [source for sources, _ in copies() for source in sources]
    missing = [name for name in needed_files() if not any(name == one or name.startswith(f"{one}/") for one in copied)]
    assert len(needed_files()) >= 7
    assert missing == []


def test_everything_that_is_copied_is_sent_to_the_builder_and_nothing_else() -> None:
    ignored, *kept = [
        line for line in (ROOT / ".dockerignore").read_text().splitlines() if line == "*" or line.startswith("!")
    ]
    assert ignored == "*"
    copied = [source for sources, _ in copies() for source in sources]
    assert sorted(line[1:] for line in kept) == sorted(copied)
    assert all((ROOT / source).exists() for source in copied)


def test_the_locked_packages_have_hashes_no_addresses_and_no_newer_version_than_is_tested() -> None:
    lock = (ROOT / ".ci/container.txt").read_text().replace("\\\n", " ").splitlines()
    locked = [line for line in lock if line and not line.startswith("#")]
    assert not re.search(r"https?:|file:|--(extra-)?index-url", "\n".join(lock))
    assert [line for line in locked if "--hash=sha256:" not in line] == []
    versions = {Requirement(line.split(" --hash")[0]).name: line for line in locked}
    newest = [
        Requirement(line) for line in (ROOT / ".ci/newest.txt").read_text().splitlines() if not line.startswith("#")
    ]
    for limit in newest:
        if limit.name in versions:
            [exact] = Requirement(versions[limit.name].split(" --hash")[0]).specifier
            assert limit.specifier.contains(exact.version), versions[limit.name]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["serve"], *extras["documents"], *extras["ctranslate2"]]
    names = {canonicalize_name(Requirement(one).name) for one in needed}
    assert names - versions.keys() == {"torch"}, "run .ci/lock"


def test_the_user_is_a_number() -> None:
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", instruction("USER"))


def test_the_entry_point_gives_the_port_and_further_options_to_the_server(tmp_path: Path) -> None:
    tfm = tmp_path / "tfm"
    tfm.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    tfm.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "TFM_PORT": "5001"}
    command = [*json.loads(instruction("ENTRYPOINT")), "--run", "en it"]
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    given = ["serve", "--host", "0.0.0.0", "--port", "5001", "--run", "en it"]
    assert shown.stdout.splitlines() == given


@contextmanager
def answering(status: int) -> Iterator[int]:
    """The port of a server that answers each request with a status."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/ready" else 404)
            self.end_headers()

        def log_message(self, *arguments: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(("status", "is_healthy"), [(200, True), (503, False)])
def test_the_health_check_asks_the_port_of_the_server(status: int, is_healthy: bool) -> None:
    options, _, command = instruction("HEALTHCHECK").partition(" CMD ")
    assert "--timeout=" in options
    arguments = json.loads(command)
    assert arguments[0] == "python"
    with answering(status) as port:
        environment = {**os.environ, "TFM_PORT": str(port), "no_proxy": "127.0.0.1"}
        checked = subprocess.run([sys.executable, *arguments[1:]], env=environment, capture_output=True, check=False)
    assert (checked.returncode == 0) == is_healthy


@pytest.mark.slow
def test_the_copied_files_make_a_wheel_with_configs_and_kernels(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for names, target in copies():
        for name in () if target.startswith("/") else names:  # that is for the image
            place = source / target / (name if target.endswith("/") else "")
            if (ROOT / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "kernels.bin")
                shutil.copytree(ROOT / name, source / target, ignore=ignored)
            else:
                shutil.copy(ROOT / name, place)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(tmp_path),
        ".",
    ]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "transformer_cli/__main__.py" in names
    assert any(name.startswith("transformer_cli/configs/") for name in names)
    if shutil.which("gcc") and "x86_64" in os.uname().machine:
        assert "transformer_cli/acceleration/kernels/kernels.bin" in names
