"""Updates with recorded passes equal updates without; here the passes run each time, with the interface of recordings."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from transformer_cli.acceleration import accelerate, recorded_passes
from transformer_cli.acceleration.recorded_passes import Record, RecordedPasses, Work, are_recorded, recorder_on
from transformer_cli.config import ModelConfig, TrainingConfig, load_config
from transformer_cli.data.encoded import TokenPair
from transformer_cli.data.updates import Batch, collate
from transformer_cli.model.transformer import Transformer
from transformer_cli.process.device import Machine
from transformer_cli.process.torchrun import Launch
from transformer_cli.training import loop, run
from transformer_cli.training.callbacks import StepReport
from transformer_cli.training.loop import UpdateRunner, build_objective, build_runner
from transformer_cli.training.optimizers import Optimizer
from transformer_cli.training.process_group import ALONE, GradientSums, Processes

PAD, SOS, EOS = 1, 2, 3
MACHINE = Machine(torch.device("cpu"), torch.float32)
LENGTHS = [[(3, 2), (2, 5)], [(2, 2), (9, 1), (4, 4)], [(7, 9)], [(1, 1)] * 6]
SIZES = {"d_model": 16, "num_heads": 2, "d_ff": 32, "encoder_layers": 2, "decoder_layers": 2}


def run_each_time(work: Work) -> Work:
    work()  # as in a recording, work runs beforehand
    return work


def batches() -> Iterator[Batch]:
    for number, lengths in enumerate(LENGTHS):
        pairs = [
            TokenPair([4 + number] * (source - 1) + [EOS], [5 + number] * (target - 1) + [EOS])
            for source, target in lengths
        ]
        yield collate(pairs, sos_id=SOS, pad_id=PAD)


@dataclass(frozen=True, slots=True)
class Doubles(Processes):
    """This process and another one that has the same batches."""

    size: int = 2

    def begin_sum(self, tensor: torch.Tensor) -> Callable[[], None]:
        tensor.mul_(2)
        return lambda: None

    def _reduced(self, numbers: Sequence[int], operation: str) -> list[int]:
        return [2 * number if operation == "SUM" else number for number in numbers]


class Trainer:
    """A model that is trained with recorded passes, or without."""

    def __init__(
        self,
        record: Record | None,
        *,
        machine: Machine = MACHINE,
        dtype: torch.dtype = torch.float64,
        model: dict[str, Any] | None = None,
        processes: Processes = ALONE,
        **settings: Any,
    ) -> None:
        torch.manual_seed(0)
        sizes = SIZES | {"dropout": 0.0} | (model or {})
        self.model = Transformer(ModelConfig.model_validate(sizes), 19, 19)
        accelerate(self.model, machine.device).to(machine.device, dtype).train()
        training = TrainingConfig.model_validate({"max_steps": 1, "batch_sentences": 4} | settings)
        self.optimizer = Optimizer(self.model, training)
        self.optimizer.learning_rate = 0.01
        self.objective = build_objective(training, 19, machine.device)
        self.recorded = None
        if record is not None:
            self.recorded = RecordedPasses(
                self.model,
                self.objective,
                machine,
                record,
                scaled=self.optimizer.scale and self.optimizer.scale.scaled,
            )
        self.runner = UpdateRunner(machine, processes, recorded=self.recorded)
        if not processes.is_alone:
            self.runner.gradient_sums = GradientSums(self.model.parameters_by_gradient(), processes)

    def step(self, seed: int, *batches: Batch) -> StepReport:
        return self.runner.run(
            self.model,
            self.optimizer,
            self.objective,
            batches,
            seed=seed,
            clip_norm=0.5,
        )

    def numbers(self) -> dict[str, torch.Tensor]:
        return {**self.model.state_dict(), **self.optimizer.state()}


@pytest.mark.long
@pytest.mark.parametrize("processes", [ALONE, Doubles()], ids=["alone", "two"])
@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ({}, {}),
        ({"tie_embeddings": "all", "positions": "rotary"}, {"label_smoothing": 0.1}),
        ({"norm_placement": "post"}, {"optimizer": "muon"}),
    ],
    ids=str,
)
def test_updates_equal_those_without_recordings(
    model: dict[str, Any], settings: dict[str, Any], processes: Processes
) -> None:
    plain, recorded = (
        Trainer(record, model=model, processes=processes, **settings) for record in (None, run_each_time)
    )
    one, two, three, four = batches()
    for seed, chosen in enumerate([[one, two], [three], [two, four, one], [one]]):
        expected, found = (trainer.step(seed, *chosen) for trainer in (plain, recorded))
        for name in ("objective", "negative_log_likelihood", "gradient_norm"):
            ours, theirs = getattr(found, name), getattr(expected, name)
            # Sums and factors are float32, also with weights of float64.
            torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=0.0, check_dtype=False)
    theirs = plain.numbers()
    for name, value in recorded.numbers().items():
        torch.testing.assert_close(value, theirs[name], rtol=1e-5, atol=1e-8)


@pytest.mark.long
def test_a_shape_is_recorded_once_and_leaves_no_trace_in_gradients_and_random_numbers() -> None:
    """Work runs once more when it is recorded; with dropout, another draw would change the weights."""
    num_recorded = 0

    def record(work: Work) -> Work:
        nonlocal num_recorded
        num_recorded += 1
        torch.rand(5)
        return run_each_time(work)

    first, second = (Trainer(one, model={"dropout": 0.3}) for one in (record, lambda work: work))
    for seed, chosen in enumerate([list(batches()), list(batches())[::-1]]):
        reports = [trainer.step(seed, *chosen) for trainer in (first, second)]
        assert reports[0].objective == reports[1].objective
    theirs = second.numbers()
    assert all(torch.equal(value, theirs[name]) for name, value in first.numbers().items())
    assert num_recorded == len(LENGTHS)
    assert first.recorded is not None
    assert first.recorded.num_recordings == len(LENGTHS)


def test_batches_of_further_shapes_run_without_a_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = Trainer(run_each_time)
    expected.step(1, *batches())
    monkeypatch.setattr(recorded_passes, "MOST_RECORDINGS", 2)
    few = Trainer(run_each_time)
    few.step(1, *batches())
    assert few.recorded is not None
    assert few.recorded.num_recordings == 2
    theirs = expected.numbers()
    assert all(torch.equal(value, theirs[name]) for name, value in few.numbers().items())


@pytest.mark.long
def test_a_batch_that_does_not_fit_while_it_is_recorded_is_cut_in_halves() -> None:
    """The attempt that failed may have added to gradients; the update begins again with zeros."""

    def record(work: Work) -> Work:
        work()
        sizes.append(len(sizes))
        if len(sizes) == 2:
            raise torch.OutOfMemoryError
        return work

    sizes: list[int] = []
    one, two, *_ = batches()
    whole, cut = Trainer(run_each_time), Trainer(record)
    expected, found = (trainer.step(1, one, two) for trainer in (whole, cut))
    assert found.num_halvings == 1
    torch.testing.assert_close(found.gradient_norm, expected.gradient_norm, rtol=1e-9, atol=0.0)


ON_GPU = torch.device("cuda")
TINY = "multi30k-en-de-tiny.yaml"


@pytest.mark.parametrize(
    ("settings", "device", "expected"),
    [
        ([], "cuda", True),
        ([], "cpu", False),
        ([], "mps", False),
        (["runtime.cuda_graphs=false"], "cuda", False),
        (["model.preset=big", "training.batch_tokens=25000", "runtime.cuda_graphs=true"], "cuda", True),
        (["model.preset=base"], "cuda", True),
        (["model.preset=base", "training.batch_tokens=8192"], "cuda", False),
        (["model.preset=base", "training.batch_tokens=25000"], "cuda", False),
        (["training.batch_tokens=auto", "training.update_tokens=9000"], "cuda", False),
        (["training.batch_tokens=null", "training.batch_sentences=32"], "cuda", False),
        (["model.layer_dropout=0.1"], "cuda", False),
        (["runtime.sharding=full"], "cuda", False),
    ],
    ids=str,
)
def test_auto_records_the_training_of_a_small_model_on_an_nvidia_gpu(
    settings: list[str], device: str, expected: bool
) -> None:
    config = load_config(TINY, settings)
    assert are_recorded(config, torch.device(device)) is expected


@pytest.mark.parametrize(
    ("settings", "is_recorded"),
    [
        ([], True),
        (["training.batch_tokens=auto", "training.update_tokens=9000"], False),
        (["runtime.cuda_graphs=false"], False),
    ],
    ids=str,
)
def test_the_decision_falls_before_batches_have_a_size_and_before_cuda_starts(
    settings: list[str], is_recorded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batches that `auto` finds fill the memory; recordings would need it twice."""
    config = load_config(TINY, settings)
    found: dict[str, Any] = {}

    def machine_of(runtime: Any, *, records: bool) -> Machine:
        return Machine(ON_GPU, torch.bfloat16, records_passes=found.setdefault("records", records))

    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(run, "prepare_machine", machine_of)
    monkeypatch.setattr(run, "require_memory_for_training", lambda *_: None)
    machine = run.checked_machine(config, Launch())
    assert machine.records_passes is found["records"] is is_recorded
    tried = config.model_copy(update={"training": config.training.model_copy(update={"batch_tokens": 512})})
    monkeypatch.setattr(loop, "recorder_on", lambda device: run_each_time)
    model = Trainer(run_each_time).model
    optimizer = Optimizer(model, config.training)
    runner = build_runner(tried, model, optimizer, lambda *_: None, machine, ALONE)  # type: ignore[arg-type, return-value]
    assert (runner.recorded is not None) is is_recorded


def test_a_run_that_began_without_recordings_goes_on_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "recorder_on", lambda device: run_each_time)
    machine, model = Machine(ON_GPU, torch.bfloat16, records_passes=True), Trainer(run_each_time).model
    began = load_config(TINY, ["runtime.cuda_graphs=false"])
    runner = build_runner(began, model, Optimizer(model, began.training), lambda *_: None, machine, ALONE)  # type: ignore[arg-type, return-value]
    assert runner.recorded is None


def test_auto_records_no_training_of_several_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "localhost"}.items():
        monkeypatch.setenv(name, value)
    assert not are_recorded(load_config(TINY), ON_GPU)
    assert are_recorded(load_config(TINY, ["runtime.cuda_graphs=true"]), ON_GPU)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ({}, {}),
        ({"dropout": 0.2}, {"r_drop": 1.0}),
        ({}, {"simcut": {}}),
        ({}, {"optimizer": "muon"}),
    ],
    ids=str,
)
def test_a_cuda_graph_computes_what_the_python_code_computes(
    model: dict[str, Any], settings: dict[str, Any], precision: torch.dtype
) -> None:
    machine = Machine(torch.device("cuda"), precision)
    trainers = [
        Trainer(record, machine=machine, dtype=torch.float32, model=model, **settings)
        for record in (recorder_on(machine.device), lambda work: work)
    ]
    order = list(batches())
    for seed in range(6):
        reports = [trainer.step(seed, *order, *order[:seed]) for trainer in trainers]
        for name in ("objective", "gradient_norm"):
            ours, theirs = (getattr(report, name).item() for report in reports)
            assert ours == pytest.approx(theirs, rel=1e-3 if precision == torch.float32 else 0.02)
    recorded = trainers[0].recorded
    assert recorded is not None
    assert recorded.num_recordings == len(LENGTHS)
