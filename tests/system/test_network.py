"""Training, translating and scoring need no network (H8)."""

import json

from ..experiments import write_tiny
from ..launcher import Tfm


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


def test_the_network_of_these_tests_is_really_blocked(tfm: Tfm) -> None:
    """The negative control: a corpus of the hub is asked for, and that is noticed."""
    record = tfm.folder / "network.txt"
    hub = {"source": "hub", "corpora": [{"dataset": "someone/something", "config": "en-it"}]}
    config = {"name": "far", "data": hub, "training": {"max_steps": 1, "batch_sentences": 2}}
    (tfm.folder / "far.yaml").write_text(json.dumps(config))
    online = {"HF_HUB_OFFLINE": "0", "HF_DATASETS_OFFLINE": "0"}
    faults = [("block_network", str(record)), ("allow_hub",)]
    finished = tfm("train", "--config", "far.yaml", faults=faults, environment=online)
    assert finished.exit_code == 66
    assert "Traceback" not in finished.talk
    assert "socket.getaddrinfo" in record.read_text()
