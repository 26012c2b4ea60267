"""What a training does with signals between its steps: in a validation, at a terminal that closes, to save only."""

import os
import re
import signal
from typing import Any

import pytest

from ..experiments import TINY, essence, metrics_of, newest_checkpoint, state_of, write_tiny
from ..launcher import Finished, Launcher, Tfm

# Each of the three pairs is a batch of its own, so that a validation reads six of them.
IN_BATCHES = TINY.replace("beam_size: 2}", "beam_size: 2, batch_tokens: 1}").replace(
    "max_sentences: 6", "max_sentences: 3, sequence_lengths: [3]"
)


def train(tfm: Tfm, *faults: Any, **options: Any) -> Finished:
    return tfm("train", "--config", "tiny.yaml", faults=faults, **options)


@pytest.fixture(scope="module")
def whole(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("whole")
    write_tiny(folder, IN_BATCHES)
    finished = train(Tfm(launcher, folder))
    assert finished.exit_code == 0, finished.talk
    return essence(folder / "runs/tiny")


@pytest.fixture
def uninterrupted(tfm: Tfm, whole: dict[str, Any]) -> dict[str, Any]:
    """The result of the training in the folder of `tfm`, which has its config, when nothing interrupts it."""
    write_tiny(tfm.folder, IN_BATCHES)
    return whole


def end_of(tfm: Tfm) -> dict[str, Any]:
    finished = train(tfm)
    assert finished.exit_code == 0, finished.talk
    lines = [(line["kind"], line["step"]) for line in metrics_of(tfm.folder / "runs/tiny")]
    assert len(set(lines)) == len(lines), "no step stands there twice"
    return essence(tfm.folder / "runs/tiny")


def saved_steps(tfm: Tfm) -> list[str]:
    return sorted(path.name for path in (tfm.folder / "runs/tiny/checkpoints").glob("step-*"))


# The fourth step is validated: three batches for the loss, three for the translations.
@pytest.mark.parametrize("batch", [1, 3, 6])
def test_a_stop_in_a_validation_waits_for_its_batch_only(tfm: Tfm, uninterrupted: dict[str, Any], batch: int) -> None:
    fault = ("at", "batch", batch, "signal", "SIGTERM")
    finished = train(tfm, fault, ("note_batches", str(tfm.folder / "batches")))
    assert finished.exit_code == 143
    assert "tfm: stopped and saved at step 4\n" in finished.talk
    assert "step 4  validation: stopped; the resumed run repeats it" in finished.talk
    assert "step 4  validation: loss" not in finished.talk
    noted = tfm.folder / "batches"
    num_batches = noted.read_text().count("\n") if noted.exists() else 0
    assert num_batches == batch - 1, "the batch of the signal is not read any more"
    assert end_of(tfm) == uninterrupted


def test_a_kill_in_a_validation_costs_nothing_where_a_save_was_due(tfm: Tfm, uninterrupted: dict[str, Any]) -> None:
    """SIGTERM and then SIGKILL, as a scheduler does it: the save has come first."""
    for step, batch in (
        (4, 2),
        (8, 6 + 4),
    ):  # the second process first does the validation of step 4
        assert train(tfm, ("at", "batch", batch, "signal", "SIGKILL")).exit_code == -9
        assert saved_steps(tfm)[-1] == f"step-{step:08d}"
        assert state_of(tfm.folder / "runs/tiny")["progress"]["validated_at"] == step - 4
    assert end_of(tfm) == uninterrupted


def test_a_kill_between_a_validation_and_its_checkpoint_repeats_it_and_no_line(
    tfm: Tfm, uninterrupted: dict[str, Any]
) -> None:
    finished = train(tfm, ("at", "save", 2, "signal", "SIGKILL"))
    assert finished.exit_code == -9
    assert metrics_of(tfm.folder / "runs/tiny")[-1]["kind"] == "validation"
    assert saved_steps(tfm) == ["step-00000004"]
    assert end_of(tfm) == uninterrupted


@pytest.mark.parametrize(
    ("point", "number", "saves"), [("step", 6, [4, 6, 8, 12, 13, 13]), ("batch", 8, [4, 8, 8, 12, 13, 13])]
)
def test_a_signal_to_save_saves_and_the_run_goes_on(
    tfm: Tfm, uninterrupted: dict[str, Any], point: str, number: int, saves: list[int]
) -> None:
    """Slurm sends it before it kills: then the kill costs only the steps since the signal."""
    write_tiny(tfm.folder, IN_BATCHES.replace("save_every: 4", "save_every: 100"))
    place = tfm.folder / "saves"
    finished = train(tfm, ("note_saves", str(place)), ("at", point, number, "signal", "SIGUSR1"))
    assert finished.exit_code == 0, finished.talk
    assert "tfm: SIGUSR1: saving after this step" in finished.talk
    assert list(map(int, place.read_text().split())) == saves
    found = essence(tfm.folder / "runs/tiny")
    for name in ("metrics", "model.safetensors", "optimizer.safetensors", "state.json", "best"):
        assert found[name] == uninterrupted[name]


def test_a_terminal_that_closes_is_survived_by_the_state(tfm: Tfm, uninterrupted: dict[str, Any]) -> None:
    """SIGHUP, and from then on no write to the terminal succeeds: the bar, the log lines, the last message."""
    reader, writer = os.openpty()
    place = tfm.folder / "paused"
    process = tfm.start(
        "train",
        "--config",
        "tiny.yaml",
        terminal=os.ttyname(writer),
        faults=[("at", "step", 6, "pause", str(place))],
    )
    process.wait_until(lambda: place.exists() or not process.is_running())
    os.close(writer)
    os.close(reader)
    process.send(signal.SIGHUP)
    process.send(signal.SIGHUP)
    place.unlink()
    assert process.wait().exit_code == 129
    assert newest_checkpoint(tfm.folder / "runs/tiny").name == "step-00000006"
    log = (tfm.folder / "runs/tiny/train.log").read_text()
    assert re.search(r"stopped and saved at step 6\n  hint: the same command continues", log)
    assert end_of(tfm) == uninterrupted


def test_a_request_before_the_first_step_claims_no_save(tfm: Tfm) -> None:
    write_tiny(tfm.folder)
    finished = train(tfm, ("at", "board", 1, "signal", "SIGTERM"))
    assert finished.exit_code == 143
    assert "tfm: stopped before the first step\n  hint: the same command" in finished.talk
    assert saved_steps(tfm) == []


def test_a_cap_on_the_validation_pairs_is_told(tfm: Tfm) -> None:
    rows = "".join(f"{n} {n + 1}\t{n + 1} {n}\n" for n in range(6400))
    (tfm.folder / "pairs.tsv").write_text(rows)
    data = "{source: files, validation_share: 0.5, corpora: [{path: pairs.tsv}]}"
    config = re.sub(r"data: .*", f"data: {data}", TINY).replace("max_sentences: 6, ", "")
    config = config.replace("max_steps: 13", "max_steps: 1")
    write_tiny(tfm.folder, config)
    finished = train(tfm)
    assert finished.exit_code == 0, finished.talk
    told = re.search(r"validating on 3,000 of the (3,\d\d\d) validation pairs; --set", finished.talk)
    assert told
    assert metrics_of(tfm.folder / "runs/tiny")[-1]["num_sentences"] == 3000
    validated = tfm("validate", "--json", "-b", "1")
    assert f'"num_sentences": {told[1].replace(",", "")}' in validated.text
