"""`tfm` works from any folder after `pip install .` and after `pip install -e .` alike."""

import os
import shutil
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PARTS = (
    "transformer_cli",
    "configs",
    "docs/run",
    "hatch_build.py",
    "pyproject.toml",
    "README.md",
    "LICENSE",
)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout, so that building does not write into the original."""
    folder = tmp_path_factory.mktemp("a checkout")
    for part in PARTS:
        source = CHECKOUT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy(source, folder / part)
    return folder


@pytest.mark.network
@pytest.mark.parametrize("options", [["."], ["-e", "."]], ids=["installed", "editable"])
def test_tfm_finds_its_configs_from_any_folder(checkout: Path, tmp_path: Path, options: list[str]) -> None:
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    python = environment / "bin/python"
    # The dependencies are those of the present environment; only tfm itself is installed.
    borrowed = sysconfig.get_paths()["purelib"]
    (site,) = environment.glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(borrowed + "\n")
    outside = os.environ | {"PYTHONNOUSERSITE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    outside.pop("PYTHONPATH", None)

    def run(*command: str | Path, folder: Path = tmp_path) -> str:
        finished = subprocess.run(command, cwd=folder, env=outside, capture_output=True, text=True, check=False)
        assert finished.returncode == 0, finished.stderr
        return finished.stdout

    install = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--ignore-installed"]
    run(*install, *options, folder=checkout)
    found = run(python, "-c", "import transformer_cli; print(transformer_cli.__file__)").strip()
    home = checkout if "-e" in options else site
    assert Path(found) == home / "transformer_cli/__init__.py"
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    shown = run(environment / "bin/tfm", "info", "--config", "en-it.yaml", folder=elsewhere)
    assert shown.startswith("config")
    assert "name: en-it" in shown
    page = "from transformer_cli.extensions.serving.page import page_file, views_file"
    sizes = run(python, "-c", f"{page}; print(len(page_file().body), len(views_file().body))")
    assert all(int(size) > 10_000 for size in sizes.split())
    assert "source: phrasebook" in shown
    preview = run(
        environment / "bin/tfm",
        "data",
        "--config",
        "en-it",
        "--set",
        "data.num_pairs=500",
        "--split",
        "test",
        folder=elsewhere,
    )
    assert "SOURCE  " in preview, "the built-in corpus came along too"
    sentence = "Where is the station?"
    translated = run(environment / "bin/tfm", "translate", sentence, folder=elsewhere)
    assert translated == "Où se trouve la gare ?\n", "a small model came along, too"
