"""A model that memory cannot hold is refused before anything of its size is allocated."""

import re
from pathlib import Path

import pytest

from transformer_cli.checkpoint.trained_files import load_trained
from transformer_cli.process import device as memory
from transformer_cli.process.errors import TryAgainError

from ..checkpoint.models import parts, save
from ..experiments import write_tiny
from ..launcher import Tfm

pytestmark = pytest.mark.kills

HUGE = ("model.d_model=32768", "model.d_ff=65536")


def test_training_a_model_larger_than_memory_is_refused_and_leaves_no_run(tfm: Tfm) -> None:
    sets = [word for setting in HUGE for word in ("--set", setting)]
    refused = tfm("train", "--config", write_tiny(tfm.folder), *sets)
    assert refused.exit_code == 75, refused.talk
    assert re.search(r"tfm: model: .* parameters.*GB of memory needed, .* GB free", refused.talk)
    assert re.search(r"hint: lower model\.d_model", refused.talk)
    assert not (tfm.folder / "runs").exists()


def test_weights_that_memory_cannot_hold_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "run", parts(), 1)
    load_trained(tmp_path / "run")
    monkeypatch.setattr(memory, "free_bytes", lambda device: 100)
    monkeypatch.setattr(memory, "_SURELY_FREE", 0)  # for so few bytes nobody asks
    with pytest.raises(TryAgainError, match=r"model\.safetensors: the weights.*of memory needed"):
        load_trained(tmp_path / "run")
