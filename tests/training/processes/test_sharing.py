"""What processes agree on and share: settings, prepared data, micro-batches."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.config import TrainingConfig, load_config
from transformer_cli.process.errors import ConfigError
from transformer_cli.training import joining
from transformer_cli.training.joining import (
    data_of_main,
    require_same_settings,
)
from transformer_cli.training.loop import Progress, micro_batches_of_an_update
from transformer_cli.training.process_group import ALONE, Processes

CONFIG = load_config("multi30k-en-de.yaml", ["data.root=here"])


class _Pair:
    """Two processes; rank 0 has some other settings than this process, which is rank 1."""

    def __init__(self, **of_main: Any) -> None:
        self.of_main = of_main
        self.sent: dict[str, Any] = {}

    def gathered(self, value: dict[str, Any]) -> list[dict[str, Any]]:
        self.sent = value
        return [value | self.of_main, value]


def check(pair: _Pair, *settings: str) -> None:
    config = load_config("multi30k-en-de.yaml", ["data.root=here", *settings])
    require_same_settings(config, cast(Processes, pair), from_scratch=False)


@pytest.mark.parametrize("setting", ["data.root=there", "runtime.threads=3", "runtime.workers=3"])
def test_a_setting_of_one_machine_is_not_compared(setting: str) -> None:
    usual, changed = _Pair(), _Pair()
    check(usual)
    check(changed, setting)
    assert usual.sent == changed.sent


def test_the_first_differences_are_shown_and_the_others_counted() -> None:
    differing = {f"training.name_{number}": number for number in range(7)}
    with pytest.raises(ConfigError) as refused:
        check(_Pair(**differing))
    assert "training.name_4: 4 in rank 0, absent in rank 1" in refused.value.message
    assert refused.value.message.endswith("and 2 more")


def test_starting_from_scratch_in_one_process_only_is_refused() -> None:
    with pytest.raises(ConfigError, match="--from-scratch: true in rank 0, false in rank 1"):
        check(_Pair(**{"--from-scratch": True}))


def test_one_process_agrees_with_itself() -> None:
    require_same_settings(CONFIG, ALONE, from_scratch=True)


TRAINING = TrainingConfig(max_steps=9, batch_sentences=2, accumulate=3)


def total(progress: Progress, num_processes: int) -> int:
    total = micro_batches_of_an_update(progress, TRAINING, num_processes)
    assert total is not None
    return total


@given(st.integers(1, 64))
def test_a_new_run_accumulates_in_each_process(num_processes: int) -> None:
    assert total(Progress(), num_processes) == 3 * num_processes


@given(st.integers(1, 64), st.integers(1, 64))
def test_a_resumed_run_keeps_its_number_if_the_processes_can_share_it_out(recorded: int, num_processes: int) -> None:
    progress = Progress(step=1, num_micro_batches=recorded)
    if recorded % num_processes == 0:
        assert total(progress, num_processes) == recorded
        return
    with pytest.raises(ConfigError, match=f"of this run: {recorded}, which {num_processes} processes"):
        total(progress, num_processes)


def test_a_run_from_before_the_number_was_recorded_is_one_of_a_single_process() -> None:
    assert total(Progress(step=1), 1) == total(Progress(step=1), 3) == 3
    with pytest.raises(ConfigError, match="of this run: 3,"):
        total(Progress(step=1), 2)


def test_a_finished_run_is_open_to_any_number_of_processes() -> None:
    """It only says that it is finished."""
    assert total(Progress(step=9, validated_at=9, num_micro_batches=2), 3) == 2


class OtherThanMain(Processes):
    """Rank 1, which hears that the lock of rank 0 names a process."""

    def from_main(self, work: Callable[[], Any]) -> Any:
        return {"fingerprint": {}, "holder": {"pid": 7, "host": "node0"}}


def test_a_process_that_does_not_see_the_folder_of_rank_0_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joining, "MAX_DELAY_SECONDS", 0.0)
    config = load_config("copy.yaml")
    with pytest.raises(ConfigError, match="rank 1 does not see the run folder") as refused:
        data_of_main(pytest.fail, config, RunFolder(tmp_path), OtherThanMain(rank=1, size=2))
    assert "a file system that all machines share" in str(refused.value.hint)
