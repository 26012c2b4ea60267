"""The hook of the installation compiles the kernels, and an installation without a compiler goes on without them."""

import importlib.util
import os
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from transformer_cli.acceleration.native_kernels import find_kernels

ROOT = Path(__file__).resolve().parents[2]
HAS_COMPILER = shutil.which("cc") is not None

pytestmark = pytest.mark.compiler


@pytest.fixture
def hook_file() -> ModuleType:
    pytest.importorskip("hatchling", reason="a build dependency")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Talk:
    """What the hook says during an installation."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def display_warning(self, message: str) -> None:
        self.warnings.append(message)


def sources_in(folder: Path, hook_file: ModuleType) -> Path:
    """A project with the sources alone, in a folder with a space in its name."""
    root = folder / "a project"
    shutil.copytree(ROOT / hook_file.FOLDER, root / hook_file.FOLDER, ignore=shutil.ignore_patterns("*.bin"))
    return root


def install(root: Path, hook_file: ModuleType) -> tuple[dict[str, Any], list[str]]:
    """What the hook says of the wheel, and its warnings."""
    talk, build_data = Talk(), {"artifacts": list[str]()}
    hook = hook_file.BuildHook(str(root), {}, None, None, str(root), "wheel", app=talk)
    hook.add_kernels(build_data)
    return build_data, talk.warnings


@pytest.mark.heavy
@pytest.mark.skipif(not HAS_COMPILER, reason="no C compiler")
def test_an_installation_compiles_the_kernels(tmp_path: Path, hook_file: ModuleType) -> None:
    root = sources_in(tmp_path, hook_file)
    build_data, warnings = install(root, hook_file)
    if warnings:  # such as a processor without a form of the kernels
        pytest.skip(warnings[0])
    assert build_data["artifacts"] == [hook_file.LIBRARY.as_posix()]
    assert build_data["pure_python"] is False
    assert build_data["tag"].startswith("py3-none-")
    kernels = find_kernels(root / hook_file.LIBRARY)
    installed = find_kernels(ROOT / hook_file.LIBRARY)
    if installed is not None:
        assert kernels is not None
        assert kernels.level == installed.level
    leftovers = [path.name for path in (root / hook_file.FOLDER).glob("*.partial")]
    assert leftovers == []


@pytest.mark.parametrize(
    ("compiler", "is_found"),
    [("/no/such/compiler", False), ("", False), ("false", True), ("gcc 'x", True)],
)
def test_without_a_working_compiler_the_wheel_is_for_all_platforms(
    compiler: str,
    is_found: bool,
    tmp_path: Path,
    hook_file: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = sources_in(tmp_path, hook_file)
    monkeypatch.setenv("CC", compiler)
    if not is_found:
        monkeypatch.setenv("PATH", os.fspath(tmp_path))
    build_data, [warning] = install(root, hook_file)
    assert build_data == {"artifacts": []}
    assert "no kernels in C" in warning
    assert not (root / hook_file.LIBRARY).exists()
