"""Training, translating and scoring need no network (H8)."""

import pytest

from ..experiments import write_tiny
from ..launcher import Tfm

pytestmark = pytest.mark.kills


def test_nothing_reaches_for_the_network(tfm: Tfm) -> None:
    record = tfm.folder / "network.txt"
    faults = [("block_network", str(record))]
    config = write_tiny(tfm.folder)
    for command in (
        ("train", "--config", config),
        ("train", "--config", config, "--set", "training.max_steps=14"),
        ("translate", "1 2 3"),
        ("validate", "--json"),
        ("info",),
        ("data", "--config", config),
    ):
        finished = tfm(*command, faults=faults)
        assert finished.exit_code == 0, finished.talk
    assert not record.exists(), record.read_text()


def test_the_comparison_notices_a_call(tfm: Tfm) -> None:
    """The negative control."""
    record = tfm.folder / "network.txt"
    faults = [("block_network", str(record)), ("at", "step", 2, "call", "127.0.0.1")]
    finished = tfm("train", "--config", write_tiny(tfm.folder), faults=faults)
    assert finished.exit_code == 74
    assert "socket." in record.read_text()
