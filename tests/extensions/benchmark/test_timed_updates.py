"""Updates are those of `tfm train`; measuring them changes no number and leaves nothing behind."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from transformer_cli.data.preparation import PreparedData
from transformer_cli.extensions.benchmark.training import (
    PHASES,
    PHASES_OF_REPLAYS,
    Trainee,
)
from transformer_cli.process.device import prepare_machine
from transformer_cli.training import loop
from transformer_cli.training.run import train

from .small_benchmarks import tiny_config, tiny_data

CONFIG = tiny_config("training.accumulate=2")


@pytest.fixture
def data(tmp_path: Path) -> PreparedData:
    return tiny_data(CONFIG, tmp_path)


@pytest.fixture
def trainee(data: PreparedData, tmp_path: Path) -> Iterator[Trainee]:
    trainee = Trainee(CONFIG, data, tmp_path / "run")
    yield trainee
    trainee.close()


@pytest.fixture(autouse=True)
def _threads_stay_as_they_are() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.long
def test_the_phases_of_each_update_sum_up_to_its_time(trainee: Trainee) -> None:
    updates = trainee.train(0.0, at_least=4, phases=True)
    assert len(updates) == 4
    for update in updates:
        assert tuple(update.phases) == PHASES
        assert sum(update.phases.values()) == pytest.approx(update.seconds)
        computed = {name: seconds for name, seconds in update.phases.items() if name != "other"}
        assert min(computed.values()) > 0.0, computed
    without = trainee.train(0.0, at_least=1)
    assert without[0].seconds > 0.0
    assert set(without[0].phases.values()) == {0.0, without[0].phases["other"]}


@pytest.mark.heavy
def test_with_cuda_graphs_a_replay_is_one_phase_and_all_shapes_are_recorded_beforehand(
    data: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "recorder_on", lambda device: lambda work: work)
    config = tiny_config("training.accumulate=2", "runtime.cuda_graphs=true")
    trainee = Trainee(config, data, tmp_path / "recorded")
    try:
        trainee.prepare_shapes()
        recorded = trainee.session.experiment.runner.recorded
        assert recorded is not None
        num_recordings = recorded.num_recordings
        updates = trainee.train(0.0, at_least=20, phases=True)
    finally:
        trainee.close()
    assert recorded.num_recordings == num_recordings
    for update in updates:
        assert tuple(update.phases) == PHASES_OF_REPLAYS
        assert sum(update.phases.values()) == pytest.approx(update.seconds)
        assert min(update.phases.values()) > 0.0


@pytest.mark.long
def test_tokens_and_padding_are_those_of_the_batches(trainee: Trainee, data: PreparedData) -> None:
    updates = trainee.train(0.0, at_least=13, at_most=13)  # 25 batches of 8 pairs: one epoch
    sources, targets = data.train.lengths(torch.arange(200).numpy())
    assert sum(update.work[0] for update in updates) == sources.sum()
    assert sum(update.target_tokens for update in updates) == targets.sum()
    assert [update.num_batches for update in updates] == 12 * [2] + [1]
    assert all(update.num_tokens <= update.num_cells for update in updates)


@pytest.mark.long
def test_measuring_trains_the_weights_of_an_ordinary_training(
    trainee: Trainee, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    limits = "training.max_steps=5", "training.schedule=constant"
    ordinary = tiny_config("training.accumulate=2", "name=ordinary", *limits)
    run = train(ordinary.model_copy(update={"validation": CONFIG.validation}))
    with_constant_rate = Trainee(
        tiny_config("training.accumulate=2", *limits), trainee.session.data, tmp_path / "other"
    )
    try:
        with_constant_rate.train(0.0, at_least=2, at_most=2)
        with_constant_rate.train(0.0, at_least=3, at_most=3, phases=True)
    finally:
        with_constant_rate.close()
    from transformer_cli.checkpoint.trained_files import load_trained

    trained = load_trained(run.folder, which="last").model.state_dict()
    measured = with_constant_rate.session.experiment.model.state_dict()
    assert all(torch.equal(trained[name], measured[name]) for name in trained)


@pytest.mark.long
def test_no_hook_and_no_file_is_left(trainee: Trainee, tmp_path: Path) -> None:
    trainee.train(0.0, at_least=1, phases=True)
    model = trainee.session.experiment.model
    assert not model._forward_hooks
    assert not model._forward_pre_hooks
    for parameter in model.parameters():
        assert not getattr(parameter, "_post_accumulate_grad_hooks", None)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.long
def test_the_number_of_threads_is_that_of_the_config(data: PreparedData, tmp_path: Path) -> None:
    one, two = (Trainee(tiny_config(f"runtime.threads={number}"), data, tmp_path / "run") for number in (1, 2))
    try:
        for trainee in (one, two, one):
            trainee.train(0.0, at_least=1)
            assert torch.get_num_threads() == trainee.num_threads
    finally:
        one.close(), two.close()
    assert (one.num_threads, two.num_threads) == (1, 2)
    prepare_machine(CONFIG.runtime)
