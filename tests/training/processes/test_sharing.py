"""How the micro-batches of an update are shared out, also after a resume with another number of processes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.config import TrainingConfig, load_config
from transformer_cli.errors import ConfigError
from transformer_cli.training.processes import sharing
from transformer_cli.training.processes.process_group import Processes
from transformer_cli.training.processes.sharing import data_of_main, micro_batches_of_an_update
from transformer_cli.training.progress import Progress

TRAINING = TrainingConfig(max_steps=9, batch_sentences=2, accumulate=3)


def total(progress: Progress, num_processes: int) -> int:
    return micro_batches_of_an_update(progress, TRAINING, Processes(size=num_processes))


@given(st.integers(1, 64))
def test_a_new_run_accumulates_in_each_process(num_processes: int) -> None:
    assert total(Progress(), num_processes) == 3 * num_processes


@given(st.integers(1, 64), st.integers(1, 64))
def test_a_resumed_run_keeps_its_number_if_the_processes_can_share_it_out(
    recorded: int, num_processes: int
) -> None:
    progress = Progress(step=1, num_micro_batches=recorded)
    if recorded % num_processes == 0:
        assert total(progress, num_processes) == recorded
        return
    with pytest.raises(
        ConfigError, match=f"of this run: {recorded}, which {num_processes} processes"
    ):
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
    monkeypatch.setattr(sharing, "MAX_DELAY_SECONDS", 0.0)
    config = load_config("copy.yaml")
    with pytest.raises(ConfigError, match="rank 1 does not see the run folder") as refused:
        data_of_main(pytest.fail, config, RunFolder(tmp_path), OtherThanMain(rank=1, size=2))
    assert "a file system that all machines share" in str(refused.value.hint)
