"""Without a usable library of kernels, PyTorch computes everything, and the log says why."""

import logging
import shutil
import subprocess
from pathlib import Path

import pytest

from transformer_cli.acceleration.native_kernels import find_kernels


def load(path: Path, caplog: pytest.LogCaptureFixture) -> str:
    """The message about a library that is not used."""
    with caplog.at_level(logging.DEBUG):
        assert find_kernels(path) is None
    return caplog.text


def test_without_a_compiler_there_is_no_library(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert "no C compiler was found" in load(tmp_path / "kernels.bin", caplog)


def test_a_damaged_library_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "kernels.bin").write_bytes(b"\x7fELF, but not really")
    assert "cannot be used" in load(tmp_path / "kernels.bin", caplog)


@pytest.mark.process
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize(
    ("version", "level", "message"),
    [(0, 2, "another version; install again"), (5, 0, "this processor has no AVX2"), (5, 2, "cannot be used")],
)
def test_a_library_of_another_version_or_processor_is_not_used(
    version: int, level: int, message: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source, library = tmp_path / "other.c", tmp_path / "kernels.bin"
    source.write_text(f"int tfm_version(void) {{ return {version}; }}\nint tfm_level(void) {{ return {level}; }}\n")
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    assert message in load(library, caplog)
