"""Checkpoints made to harm, under a whole command: one refusal, nothing run, nothing large in memory (H1-H6)."""

import json
import os
import pickle
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.checkpoint.run_folder import open_checkpoint
from transformer_cli.checkpoint.trained_files import load_trained
from transformer_cli.config.loading import parse_yaml
from transformer_cli.process.errors import ConfigError, DataError
from transformer_cli.storage import open_sealed
from transformer_cli.storage.filesystem import MANIFEST_NAME, ListedFile

from ..faults import run_in_child
from ..launcher import Tfm
from .models import parts, save
from .test_trained_model import Canary, forge

# Three lines, 9 ** 9 leaves when written out.
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
OBJECT = "name: !!python/object/apply:os.system ['touch canary']\n"


@pytest.mark.parametrize("text", [BOMB, OBJECT, "a: " * 1000, "- " * 100_000, "&a [*a]"])
def test_a_hostile_config_is_refused_at_once(text: str) -> None:
    """H6."""
    started_at = time.process_time()
    with pytest.raises(ConfigError):
        parse_yaml(text, "config.yaml")
    assert time.process_time() - started_at < 0.1


def with_pattern(tokenizer: dict[str, Any]) -> None:
    tokenizer["pre_tokenizer"] = {
        "type": "Split",
        "pattern": {"Regex": "(a+)+b"},
        "behavior": "Isolated",
        "invert": False,
    }


HOSTILE_TOKENIZERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a regex": with_pattern,
    "an unknown type": lambda tokenizer: tokenizer["model"].update(type="Evil"),
    "an id twice": lambda tokenizer: tokenizer["model"]["vocab"].update(x=5),
    "a gap": lambda tokenizer: tokenizer["model"]["vocab"].update(x=10**9),
}


@pytest.mark.heavy
@pytest.mark.parametrize("case", HOSTILE_TOKENIZERS)
def test_a_hostile_tokenizer_is_refused_by_one_message(tfm: Tfm, tmp_path: Path, case: str) -> None:
    """H5."""
    (folder,) = save(tmp_path, parts(), 10)
    tokenizer = json.loads((folder / "tokenizer.source.json").read_bytes())
    HOSTILE_TOKENIZERS[case](tokenizer)
    forged = forge(folder, {"tokenizer.source.json": json.dumps(tokenizer).encode()})
    assert_refused(tfm, forged, 65, "tokenizer.source.json")


def assert_refused(tfm: Tfm, folder: Path, exit_code: int, said: str) -> None:
    refused = tfm("translate", "--run", str(folder), "a" * 40)
    assert refused.exit_code == exit_code, refused.talk
    assert refused.out == b""
    assert "Traceback" not in refused.talk
    assert said in refused.talk
    assert refused.talk.count("\n  hint: ") == 1


@pytest.mark.parametrize("name", ["model.safetensors", "config.yaml", "tokenizer.target.json"])
def test_code_under_the_name_of_a_file_does_not_run(tfm: Tfm, tmp_path: Path, name: str) -> None:
    """H1, H4."""
    (folder,) = save(tmp_path, parts(), 10)
    canary = tfm.folder / "canary"
    forged = forge(folder, {name: pickle.dumps(Canary(canary))})
    assert_refused(tfm, forged, 65, name)
    text = (folder / "config.yaml").read_text().replace("name: tiny\n", OBJECT)
    assert_refused(tfm, forge(folder, {"config.yaml": text.encode()}), 78, "config.yaml")
    assert not canary.exists()


@pytest.mark.parametrize("name", ["../../precious", "/etc/passwd"])
def test_a_manifest_that_points_outside_is_refused(tfm: Tfm, tmp_path: Path, name: str) -> None:
    """H3."""
    (folder,) = save(tmp_path, parts(), 10)
    with open_sealed(folder) as sealed:
        manifest = sealed.manifest
    outside = ListedFile.model_construct(name=name, size=1, sha256="0" * 64)
    forged = manifest.model_copy(update={"files": (*manifest.files, outside)})
    (folder / MANIFEST_NAME).write_bytes(forged.encode())
    assert_refused(tfm, folder, 65, MANIFEST_NAME)


@pytest.mark.process
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
@pytest.mark.parametrize(
    "name",
    [
        "tokenizer.source.json",
        "config.yaml",
        pytest.param("state.json", marks=pytest.mark.slow),
        pytest.param("model.safetensors", marks=pytest.mark.slow),
    ],
)
def test_a_file_of_200_megabytes_is_refused_before_it_is_read(tmp_path: Path, name: str) -> None:
    """H5, H2: the manifest states the size; the file is sparse and takes no space on the disk."""
    (folder,) = save(tmp_path, parts(), 10)
    size = 200 << 20
    forged = forge(folder, {name: b""})
    with open_sealed(forged) as sealed:
        manifest = sealed.manifest
    files = tuple(file.model_copy(update={"size": size}) if file.name == name else file for file in manifest.files)
    (forged / MANIFEST_NAME).write_bytes(manifest.model_copy(update={"files": files}).encode())
    os.truncate(forged / name, size)

    def work() -> int:
        in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (in_use + (100 << 20), resource.RLIM_INFINITY))
        try:
            load_trained(forged)
            open_checkpoint(forged).state()
        except DataError:
            return 0
        return 1

    assert run_in_child(work) == 0
