"""The reports of a run: metrics.jsonl and TensorBoard's file agree, and errors in them do not end a run."""

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer
from tensorboard.summary.writer.record_writer import RecordWriter

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.config import load_config
from transformer_cli.evaluation.metrics import Score
from transformer_cli.evaluation.validation import Sample, ValidationReport
from transformer_cli.storage import read_json_lines
from transformer_cli.training import callbacks
from transformer_cli.training.callbacks import Recorder, TrainingReport, _EventFile

VALIDATION = ValidationReport(
    loss=1.5,
    perplexity=4.48,
    scores=[Score("BLEU", 33.0, "nrefs:1"), Score("CER", 20.0, "library:jiwer")],
    num_sentences=7,
    num_target_tokens=70,
    samples=[Sample("the cat", "il gatto", "la gatta")],
)


def report(step: int, loss: float = 2.0) -> TrainingReport:
    return TrainingReport(step, 1, loss + 0.5, loss, 1e-3, 0.7, 1000.0, 900.0, 0, 100)


@contextmanager
def recording(folder: Path, first_step: int = 0) -> Iterator[Recorder]:
    recorder = Recorder(RunFolder(folder))
    recorder.on_start(first_step, 10)
    yield recorder
    recorder.on_end()


NO_TRANSLATOR: Any = None


@pytest.fixture(autouse=True)
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure | None]:
    """What is drawn of the attention: nothing, unless a test puts a figure here."""
    drawn: list[Figure | None] = [None]
    monkeypatch.setattr(callbacks, "attention_picture", lambda *_: drawn[0])
    return drawn


@pytest.mark.parametrize("num_samples", [0, 2])
def test_extensions_record_what_the_config_asks_for(tmp_path: Path, num_samples: int) -> None:
    config = load_config("copy.yaml", [f"validation.num_samples={num_samples}"])
    found = callbacks.recorders(config, RunFolder(tmp_path))
    names = [type(one).__name__ for one in found]
    assert names == ["Recorder", *(["LearningRecorder"] if num_samples else [])]


def curves(folder: Path, part: str = "train") -> EventAccumulator:
    sizes = {"tensors": 0, "images": 0, "scalars": 0}
    return EventAccumulator(str(folder / "tensorboard" / part), size_guidance=sizes).Reload()


def test_a_step_behind_the_estimated_end_is_told_without_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    with recording(tmp_path) as recorder:
        for step in (10, 11):
            recorder.on_report(report(step))
    assert [message.split("  ")[0] for message in caplog.messages] == ["step 10/10", "step 11"]


def test_a_report_goes_to_both_files(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        for step in (1, 2, 3):
            recorder.on_report(report(step, loss=4.0 - step))
    lines = list(read_json_lines(tmp_path / "metrics.jsonl"))
    assert [(line["kind"], line["step"], line["loss"]) for line in lines] == [
        ("train", 1, 3.0),
        ("train", 2, 2.0),
        ("train", 3, 1.0),
    ]
    shown = curves(tmp_path)
    assert [(event.step, event.value) for event in shown.Scalars("loss")] == [(1, 3.0), (2, 2.0), (3, 1.0)]
    assert {
        "training/objective",
        "training/learning_rate",
        "training/gradient_norm",
        "training/target_tokens_per_second",
        "training/skipped_updates",
    } <= set(shown.Tags()["scalars"])


def test_a_validation_shows_curves_scores_and_sentences(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with recording(tmp_path) as recorder, caplog.at_level(logging.INFO, logger="transformer_cli"):
        recorder.on_validation(4, VALIDATION, NO_TRANSLATOR)
    (line,) = read_json_lines(tmp_path / "metrics.jsonl")
    assert (line["kind"], line["step"], line["loss"]) == ("validation", 4, 1.5)
    shown = curves(tmp_path, "validation")
    for tag, value in (
        ("loss", 1.5),
        ("perplexity", pytest.approx(4.48)),
        ("scores/BLEU", 33.0),
        ("scores/CER", 20.0),
    ):
        (event,) = shown.Scalars(tag)
        assert (event.step, event.value) == (4, value)
    (text,) = shown.Tensors("samples/0/text_summary")
    assert b"PREDICTED  la gatta" in text.tensor_proto.string_val[0]
    assert caplog.messages[0] == "step 4  validation: loss 1.5000  perplexity 4.48  BLEU 33.00  CER 20.00"
    assert "SOURCE     the cat" in caplog.messages[1]


def test_a_picture_can_be_looked_at(tmp_path: Path, figures: list[Figure | None]) -> None:
    figure = Figure(figsize=(2, 1), dpi=100)
    figure.add_subplot().plot([1, 2])
    figures[0] = figure
    with recording(tmp_path) as recorder:
        recorder.on_validation(4, VALIDATION, NO_TRANSLATOR)
    (image,) = curves(tmp_path, "validation").Images("attention/0")
    assert (image.step, image.width, image.height) == (4, 200, 100)
    assert image.encoded_image_string.startswith(b"\x89PNG")


def test_a_resumed_run_takes_back_what_came_after_its_checkpoint(tmp_path: Path) -> None:
    """C11, with no wait between the processes."""
    for first_step, loss in ((0, 9.0), (2, 5.0), (2, 1.0)):
        with recording(tmp_path, first_step) as recorder:
            for step in range(first_step + 1, first_step + 4):
                recorder.on_report(report(step, loss))
    expected = [(1, 9.0), (2, 9.0), (3, 1.0), (4, 1.0), (5, 1.0)]
    lines = read_json_lines(tmp_path / "metrics.jsonl")
    assert [(line["step"], line["loss"]) for line in lines] == expected
    assert [(e.step, e.value) for e in curves(tmp_path).Scalars("loss")] == expected


def test_every_report_is_written_to_disk_at_once(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        recorder.on_report(report(1))
        assert [event.step for event in curves(tmp_path).Scalars("loss")] == [1]


@pytest.mark.parametrize("name", ["metrics.jsonl", "tensorboard"])
def test_a_file_that_cannot_be_written_costs_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    """A6: an error while curves are written must not end the run."""
    if name == "tensorboard":
        (tmp_path / name).write_text("no folder")
    else:
        (tmp_path / name).mkdir()
    with recording(tmp_path) as recorder:
        for step in (1, 2, 3):
            recorder.on_report(report(step))
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "the run goes on" in warnings[0].getMessage()


def test_a_disk_that_fills_up_later_costs_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with recording(tmp_path) as recorder:
        recorder.on_report(report(1))
        with Path("/dev/full").open("wb", buffering=0) as full:
            for board in recorder.boards.values():
                board.file.close()
                board.file, board.events = full, RecordWriter(full)
            for step in (2, 3):
                recorder.on_report(report(step))
                recorder.on_validation(step, VALIDATION, NO_TRANSLATOR)
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1
    assert len(list(read_json_lines(tmp_path / "metrics.jsonl"))) == 5


def test_a_validation_that_a_resumed_run_does_again_stands_there_once(tmp_path: Path) -> None:
    """A process was killed after the validation and before the checkpoint that knows it."""
    with recording(tmp_path) as recorder:
        recorder.on_report(report(4))
        recorder.on_validation(4, VALIDATION, NO_TRANSLATOR)
    before = (tmp_path / "metrics.jsonl").read_bytes()
    with recording(tmp_path, first_step=4) as recorder:
        assert (tmp_path / "metrics.jsonl").read_bytes() == before
        recorder.on_validation(4, VALIDATION, NO_TRANSLATOR)
    assert (tmp_path / "metrics.jsonl").read_bytes() == before


def test_training_and_validation_loss_share_one_chart(tmp_path: Path) -> None:
    """TensorBoard draws one chart for each tag, and in it one curve for each folder of event files."""
    with recording(tmp_path) as recorder:
        recorder.on_report(report(4, loss=2.0))
        recorder.on_validation(4, VALIDATION, NO_TRANSLATOR)
    shown = EventMultiplexer().AddRunsFromDirectory(str(tmp_path)).Reload()
    of_tag = {
        tag: {
            name: [event.value for event in shown.Scalars(name, tag)]
            for name, tags in shown.Runs().items()
            if tag in tags["scalars"]
        }
        for tag in ("loss", "perplexity", "training/learning_rate")
    }
    assert of_tag["loss"] == {"tensorboard/train": [2.0], "tensorboard/validation": [1.5]}
    assert list(of_tag["perplexity"]) == ["tensorboard/validation"]
    assert list(of_tag["training/learning_rate"]) == ["tensorboard/train"]


def test_the_curves_of_an_earlier_version_stay_without_the_steps_that_are_trained_again(
    tmp_path: Path,
) -> None:
    old = _EventFile(tmp_path / "tensorboard", first_step=0)
    for step in (1, 2, 3):
        old.add(step, "scalar", "loss/train", 9.0)
    old.file.close()
    with recording(tmp_path, 2) as recorder:
        recorder.on_report(report(3, loss=1.0))
    assert [e.step for e in curves(tmp_path, ".").Scalars("loss/train")] == [1, 2]
    assert [(e.step, e.value) for e in curves(tmp_path).Scalars("loss")] == [(3, 1.0)]


def test_event_files_that_were_deleted_do_not_stop_the_curves(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A name that is already used could not be created; an older name would be read too early."""
    folder = tmp_path / "tensorboard" / "train"
    for step in (1, 2, 3):
        with recording(tmp_path, step - 1) as recorder:
            recorder.on_report(report(step))
        if step == 2:
            min(folder.iterdir()).unlink()
    assert [event.step for event in curves(tmp_path).Scalars("loss")] == [2, 3]
    (folder / "notes.txt").write_text("mine")
    with recording(tmp_path, 3) as recorder:
        recorder.on_report(report(4))
    assert [event.step for event in curves(tmp_path).Scalars("loss")] == [2, 3, 4]
    assert [record for record in caplog.records if record.levelno == logging.WARNING] == []


@pytest.mark.parametrize("change", ["renamed", "removed", "replaced"])
def test_nothing_is_recorded_in_a_folder_that_is_not_the_run_any_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, change: str
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    with recording(run) as recorder:
        recorder.on_report(report(1))
        assert not recorder.should_stop()
        run.rename(tmp_path / "other")
        if change == "removed":
            shutil.rmtree(tmp_path / "other")
        if change == "replaced":
            run.mkdir()
        recorder.on_report(report(2))
        recorder.on_report(report(3))
        assert recorder.should_stop()
    assert not run.exists() or not list(run.iterdir())
    if change != "removed":
        lines = read_json_lines(tmp_path / "other" / "metrics.jsonl")
        assert [line["step"] for line in lines] == [1, 2, 3]
    assert [r.message for r in caplog.records if "renamed or removed" in r.message] == [
        f"{run} was renamed or removed: saving and stopping"
    ]


def test_control_characters_of_samples_do_not_reach_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    hostile = Sample("a\x1b[2Jb\nfake line", "c\u202ed", "e\x9b1mf\tg")
    with recording(tmp_path) as recorder, caplog.at_level(logging.INFO, logger="transformer_cli"):
        recorder.on_validation(4, replace(VALIDATION, samples=[hostile]), NO_TRANSLATOR)
    assert caplog.messages[1].splitlines() == [
        r"    SOURCE     a\x1b[2Jb\x0afake line",
        r"    TARGET     c\u202ed",
        r"    PREDICTED  e\x9b1mf\x09g",
    ]
    text = (tmp_path / "metrics.jsonl").read_text(encoding="utf-8")
    assert text.count("\n") == 1
    assert text.removesuffix("\n").isprintable()
