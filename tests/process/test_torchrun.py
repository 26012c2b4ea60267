"""What a process reads from the environment that torchrun gives it."""

import pytest

from transformer_cli.process.errors import ConfigError, UsageError
from transformer_cli.process.torchrun import Launch, read_launch, require_single_process

from ..launcher import Tfm

OF_TORCHRUN = {
    "RANK": "5",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "4",
    "MASTER_ADDR": "node0",
    "TORCHELASTIC_RESTART_COUNT": "2",
    "TORCHELASTIC_USE_AGENT_STORE": "True",
}


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in OF_TORCHRUN:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_a_process_without_torchrun_is_alone(environment: pytest.MonkeyPatch) -> None:
    assert read_launch() == Launch(rank=0, size=1)
    environment.setenv("WORLD_SIZE", "1")
    assert read_launch().is_alone


def test_the_place_of_a_process_is_that_of_its_environment(environment: pytest.MonkeyPatch) -> None:
    for name, value in OF_TORCHRUN.items():
        environment.setenv(name, value)
    assert read_launch() == Launch(5, 8, 1, 4, attempt=2, store_holder="torchrun")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"RANK": ""}, "WORLD_SIZE is 8, .* but RANK or MASTER_ADDR is not set"),
        ({"MASTER_ADDR": ""}, "RANK or MASTER_ADDR is not set"),
        ({"RANK": "8"}, "RANK is 8, and WORLD_SIZE is 8: ranks go from 0 to 7"),
        ({"WORLD_SIZE": "many"}, "WORLD_SIZE is 'many' instead of a whole number"),
    ],
)
def test_an_environment_that_makes_no_sense_is_refused(
    environment: pytest.MonkeyPatch, changes: dict[str, str], message: str
) -> None:
    for name, value in (OF_TORCHRUN | changes).items():
        environment.setenv(name, value)
    with pytest.raises(ConfigError, match=message) as refused:
        read_launch()
    assert "torchrun --nproc-per-node 2" in str(refused.value.hint)


def test_only_training_uses_several_processes(environment: pytest.MonkeyPatch) -> None:
    require_single_process("translate")
    for name, value in OF_TORCHRUN.items():
        environment.setenv(name, value)
    require_single_process("train")
    with pytest.raises(UsageError, match="torchrun has started tfm translate 8 times"):
        require_single_process("translate")


def test_another_command_under_torchrun_says_so_before_it_does_anything(tfm: Tfm) -> None:
    finished = tfm("data", "--config", "copy.yaml", environment=OF_TORCHRUN)
    assert finished.exit_code == 2
    assert "rank 5: tfm: torchrun has started tfm data 8 times" in finished.talk
    assert finished.out == b""
