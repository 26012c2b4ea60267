"""`runtime.cuda_graphs` on the imitated GPU: recorded passes train as passes that run each time."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from ..experiments import TINY, essence, metrics_of
from .device import HERE, answers_of, training_of
from .recorded_operations import Recording

pytestmark = pytest.mark.imitated_gpu

RECORDED = "runtime.cuda_graphs=true"
SHORT = (
    TINY.replace("max_steps: 13", "max_steps: 8")
    .replace("validate_every: 4", "validate_every: 8")
    .replace("log_every: 3", "log_every: 2")
)
TRAININGS = {
    "recorded": [RECORDED],
    "float16": [RECORDED, "runtime.precision=float16", "training.optimizer=adamw"],
    "bfloat16": [RECORDED, "runtime.precision=bfloat16", "training.optimizer=muon"],
    "r-drop": [
        *(RECORDED, "training.r_drop=1.0", "training.word_dropout=0.1"),
        *("training.ema_decay=0.9", "model.attention_dropout=0.1"),
    ],
    "rotary": [
        *(RECORDED, "model.positions=rotary", "model.num_kv_heads=1", "model.qk_norm=true"),
        *("training.batch_sentences=null", "training.batch_tokens=60"),
    ],
    "learned": [RECORDED, "model.positions=learned", "model.max_length=9"],
    "frozen": [RECORDED, "training.init_from=recorded", "training.frozen=[encoder]"],
}
WITHOUT_DROPOUT = {
    "plain": ["model.dropout=0.0"],
    "rounded": [RECORDED, "model.dropout=0.0"],
}
COMMANDS = {name: training_of(name, settings) for name, settings in (TRAININGS | WITHOUT_DROPOUT).items()}


@pytest.fixture(scope="module")
def runs(library: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of the runs of all trainings, with recordings and without."""
    found = {}
    for recorder in ("record", "run_each_time"):
        folder = tmp_path_factory.mktemp(recorder)
        (folder / "tiny.yaml").write_text(SHORT)
        answers = answers_of("imitation", library, folder, COMMANDS, recorder=recorder)
        for answer in answers.values():
            assert answer["code"] == 0, answer["messages"]
        found[recorder] = folder / "runs"
    return found


@pytest.mark.parametrize("name", TRAININGS)
def test_a_replay_computes_what_the_python_code_computes(name: str, runs: dict[str, Path]) -> None:
    """Weights, moments and metrics are equal bit for bit, with dropout."""
    recorded, run_each_time = (essence(folder / name) for folder in runs.values())
    if name == "frozen":  # contains the path of the run of `init_from`
        del recorded["state.json"], run_each_time["state.json"]
    assert recorded == run_each_time


def test_nearly_all_micro_batches_were_repetitions(runs: dict[str, Path]) -> None:
    """So the tests above compare recordings with Python code, and not one of them with itself."""
    num_repeated = (runs["record"].parent / "repeated").stat().st_size
    num_recorded_trainings = len(TRAININGS) + 1
    assert num_repeated >= 10 * num_recorded_trainings
    assert not (runs["run_each_time"].parent / "repeated").exists()


def test_padding_to_few_shapes_changes_nothing_but_rounding(runs: dict[str, Path]) -> None:
    plain, rounded = (
        [line["loss"] for line in metrics_of(runs["record"] / name) if "loss" in line] for name in WITHOUT_DROPOUT
    )
    assert len(plain) >= 4
    assert rounded == pytest.approx(plain, rel=1e-5)


def test_a_copy_that_pytorch_hides_is_noticed_too(library: Path, tmp_path: Path) -> None:
    code = (
        "import sys, torch; from pathlib import Path\n"
        "from commands_on_device import register; import recorded_operations\n"
        "register(Path(sys.argv[1]))\n"
        "recorded_operations.record(lambda: torch.ones(2, device='imitation').add_(1.0))\n"
        "recorded_operations.record(lambda: torch.tensor([1.0, 2.0], device='imitation'))"
    )
    command = [sys.executable, "-c", code, str(library)]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    assert "a recording copies nothing between the device and the CPU" in done.stderr
    assert "line 5, in <module>" in done.stderr, "the recording before it is allowed"


def test_as_on_a_gpu_a_recording_reads_no_value_and_copies_nothing_from_the_cpu() -> None:
    """So the recordings above did neither."""
    number = torch.ones((), device="meta")
    with Recording(), pytest.raises(AssertionError, match="cannot read a value"):
        number.item()
    numbers = torch.ones(2)
    with Recording(), pytest.raises(AssertionError, match="has no CPU"):
        numbers.to("meta")
    table, is_chosen = (
        torch.ones(2, 3, device="meta"),
        torch.ones(2, dtype=torch.bool, device="meta"),
    )
    with Recording(), pytest.raises(AssertionError, match="cannot read a value"):
        table[is_chosen]
