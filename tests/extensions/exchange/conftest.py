"""A fixture for tests of models that other programs read."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from .students import NPM_PACKAGE


@pytest.fixture(scope="session")
def installed_engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the npm package: of TFM_BERGAMOT_TRANSLATOR, or installed now; without it, the test is skipped."""
    if named := os.environ.get("TFM_BERGAMOT_TRANSLATOR"):
        return Path(named)
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("bergamot-translator: needs npm, or TFM_BERGAMOT_TRANSLATOR with the folder of the package")
    folder = tmp_path_factory.mktemp("npm")
    command = [npm, "install", "--prefix", str(folder), "--no-save", NPM_PACKAGE]
    if subprocess.run(command, capture_output=True, timeout=120, check=False).returncode:
        pytest.skip(f"bergamot-translator: npm cannot install {NPM_PACKAGE}")
    return folder
