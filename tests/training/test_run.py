"""A whole training run from Python: what is refused, and what is said about how it ended."""

import json
import logging
import re
import shutil
import sys
import threading
import types
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from transformer_cli import Callback, Config, load_config, load_translator, train
from transformer_cli.checkpoint.checkpoints import Checkpoints
from transformer_cli.decoding import Translator
from transformer_cli.decoding.pytorch_engine import PyTorchEngine
from transformer_cli.process.device import Machine
from transformer_cli.process.errors import ConfigError, DataError, TryAgainError
from transformer_cli.training import StepReport, TrainedRun
from transformer_cli.training import run as run_module
from transformer_cli.training.loop import UpdateRunner
from transformer_cli.training.run import TrainingSession, who_received

QUICK = [
    *("data.num_pairs=50", "training.max_steps=4", "runtime.threads=1"),
    *("model.d_model=16", "model.d_ff=32", "model.encoder_layers=1", "model.decoder_layers=1"),
    *("validation.max_sentences=20", "validation.num_samples=0"),
]
"""Without samples, whose pictures of the attention would take half of the time of such a run."""
SETTINGS = [*QUICK, "validation.sequence_lengths=[5]", "training.schedule=constant"]


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.chdir(tmp_path)
    return load_config("copy.yaml", SETTINGS)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder `runs` with the finished run of `config`."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        train(load_config("copy.yaml", SETTINGS))
    return folder / "runs"


class Stop(Callback):
    def __init__(self) -> None:
        self.step = 0

    def on_step(self, step: int, report: StepReport) -> None:
        self.step = step

    def should_stop(self) -> bool:
        return self.step == 2


def test_int8_is_refused_before_anything_is_written(config: Config, tmp_path: Path) -> None:
    runtime = config.runtime.model_copy(update={"precision": "int8"})
    with pytest.raises(ConfigError, match="int8 is for translations") as refusal:
        train(config.model_copy(update={"runtime": runtime}))
    assert "tfm translate --set runtime.precision=int8" in str(refusal.value.hint)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("before", [None, "empty", "a log"])
def test_a_first_start_that_is_refused_for_its_corpus_leaves_no_folder_that_it_has_made(
    before: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.en").write_text("The dog\n" * 9)
    Path("a.it").write_text("Il cane\n" * 8)
    data = (
        "{source: files, source_language: en, target_language: it, corpora: [{source_path: a.en, target_path: a.it}]}"
    )
    settings = "training: {max_steps: 4, batch_tokens: 99}\nmodel: {preset: small}\ntokenizer: {kind: wordlevel}\nruntime: {threads: 1}\n"
    Path("mine.yaml").write_text(f"name: en-it\nseed: 1\ndata: {data}\n{settings}")
    run = Path("runs/en-it")
    if before is not None:
        run.mkdir(parents=True)
    if before == "a log":
        (run / "train.log").write_text("of an earlier start\n")
    with pytest.raises(DataError, match=r"a\.en has 9 lines, a\.it has 8 lines"):
        train(load_config("mine.yaml"))
    assert run.exists() == (before is not None)
    if before == "a log":
        assert (run / "train.log").read_text().startswith("of an earlier start")


@pytest.mark.parametrize(
    ("received", "said"),
    [
        ([15], ""),
        ([0, 15], ", because rank 1 received SIGTERM"),
        ([2, 15], ", because rank 1 received SIGTERM"),  # the exit code is that of SIGTERM, too
    ],
)
def test_the_rank_that_received_a_signal_is_named(received: list[int], said: str) -> None:
    assert who_received(received) == said


@pytest.mark.long
def test_a_run_that_a_callback_ends_says_so_in_its_log(config: Config, tmp_path: Path) -> None:
    run = train(config, callbacks=Stop())
    assert run == TrainedRun(tmp_path / "runs/copy", 2, False, (), run.example, 50)
    assert "stopped by a callback after 2 steps" in (run.folder / "train.log").read_text()
    assert train(config).step == 4
    assert "finished after 4 steps: runs/copy" in (run.folder / "train.log").read_text()


@pytest.mark.long
def test_a_finished_run_says_which_of_its_steps_translates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    diverges = [
        "training.learning_rate=10",
        *("model.d_ff=256", "model.encoder_layers=2", "model.decoder_layers=2"),
        "training.max_steps=3",
        "training.validate_every=1",
        "training.best_metric=loss",
        "training.save_every=1",
    ]
    folder = train(load_config("copy.yaml", [*SETTINGS, *diverges])).folder
    best = Checkpoints(folder).best()
    assert best is not None
    assert best.step < 3
    line = f"finished after 3 steps: runs/copy; tfm translate uses step {best.step}, the best one"
    assert line in (folder / "train.log").read_text()


def test_a_class_instead_of_an_instance_is_refused_before_anything_is_made(config: Config, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"callbacks: .*Stop.* is no instance of a subclass of Callback"):
        train(config, callbacks=[Stop])  # type: ignore[list-item]
    assert not (tmp_path / "runs").exists()


def test_a_name_instead_of_a_config_is_refused_with_what_makes_one(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"'copy\.yaml' is no Config; load_config makes one"):
        train("copy.yaml")  # type: ignore[arg-type]


class FakeService(types.ModuleType):
    """wandb or mlflow, as far as the examples of docs/training_from_python.md use them: notes what is sent."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.sent: list[tuple[int, dict[str, float]]] = []
        self.begun: list[dict[str, Any]] = []
        self.num_ended = 0

    def init(self, **options: Any) -> "FakeService":
        self.begun.append(options)
        return self

    start_run = init

    def log(self, values: dict[str, float], *, step: int) -> None:
        if self.__name__ == "mlflow":
            assert all(re.fullmatch(r"[\w./ -]+", name) for name in values), "MLflow refuses it"
        self.sent.append((step, values))

    log_metrics = log

    def finish(self) -> None:
        self.num_ended += 1

    end_run = finish


PAGE = Path(__file__).parents[2] / "docs" / "training_from_python.md"


@pytest.mark.long
@pytest.mark.parametrize(
    ("service", "named"), [("wandb", "WandbLog"), ("mlflow", "MlflowLog")], ids=["wandb", "mlflow"]
)
def test_the_callbacks_of_the_documentation_send_losses_and_scores_to_a_service(
    service: str, named: str, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeService(service)
    monkeypatch.setitem(sys.modules, service, fake)
    [code] = [one for one in _code_of(PAGE) if f"class {named}" in one]
    made: dict[str, Any] = {}
    exec(code, made)
    overrides = [
        *("training.log_every=2", "training.validate_every=4", "validation.scores=[bleu, chrf++]"),
        *QUICK,
        *("validation.sequence_lengths=[5]", "training.schedule=constant"),
    ]
    config = load_config("copy.yaml", overrides)
    train(config, callbacks=[made[named](config)])
    assert [step for step, _ in fake.sent] == [2, 4, 4]
    assert {"loss", "learning_rate"} == fake.sent[0][1].keys()
    assert len(fake.sent[2][1]) == 3
    lines = [json.loads(line) for line in Path("runs/copy/metrics.jsonl").read_text().splitlines()]
    assert fake.sent[1][1]["loss"] == lines[1]["loss"]
    assert lines[2]["loss"] in fake.sent[2][1].values()
    assert {one["value"] for one in lines[2]["scores"]} <= {*fake.sent[2][1].values()}
    assert "copy" in fake.begun[0].values()
    assert fake.num_ended == 1
    # Each field of the file is in the table of the page.
    fields = {field for line in lines for field in line} - {"kind"}
    assert all(f"`{field}`" in PAGE.read_text(encoding="utf-8") for field in fields)


def _code_of(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.long
def test_a_checkpoint_that_gets_a_score_is_saved_and_told_a_second_time(config: Config) -> None:
    told: list[int] = []

    class Saved(Callback):
        def on_save(self, step: int, folder: Path) -> None:
            told.append(step)

    train(config, callbacks=Saved())
    assert told == [4, 4]


@pytest.mark.long
def test_a_second_training_in_the_same_process_is_refused(config: Config) -> None:
    """Its steps would seed the random numbers of the first one's dropout."""
    refusals: list[str] = []

    class Other(Callback):
        def on_start(self, first_step: int, num_steps: int | None) -> None:
            thread = threading.Thread(target=self.train_another)
            thread.start()
            thread.join()

        def train_another(self) -> None:
            try:
                train(config.model_copy(update={"name": "other"}))
            except TryAgainError as error:
                refusals.append(str(error))

    assert train(config, callbacks=[Other()]).step == 4
    (refusal,) = refusals
    assert not Path("runs/other").exists()
    assert "this process is training already" in refusal
    assert train(config.model_copy(update={"name": "other"})).step == 4, "afterwards it may"


@pytest.mark.long
@pytest.mark.parametrize(("level", "is_heard"), [(logging.INFO, True), (logging.WARNING, False)])
def test_the_caller_hears_the_messages_that_it_asks_for(
    config: Config, caplog: pytest.LogCaptureFixture, level: int, is_heard: bool
) -> None:
    package = logging.getLogger("transformer_cli")
    before = package.level, package.propagate, list(package.handlers)
    with caplog.at_level(level):
        train(config)
    assert ("finished after 4 steps" in caplog.text) is is_heard
    assert "finished after 4 steps" in Path("runs/copy/train.log").read_text()
    assert (package.level, package.propagate, list(package.handlers)) == before


def spaced_config(folder: Path, name: str, *overrides: str) -> Config:
    """A run on a corpus with no-break spaces, soft hyphens and several spaces in its sources."""
    rows = (f"the\u00a0ca\u00adt  of {n}\til gatto di {n}\n" for n in range(60))
    (folder / "a.tsv").write_text("".join(rows), encoding="utf-8")
    (folder / "a.yaml").write_text(
        "data: {source: files, corpora: [{path: a.tsv}], validation_share: 0.2}\n"
        "model: {d_model: 16, num_heads: 2, d_ff: 16, encoder_layers: 1, decoder_layers: 1}\n"
        "training: {max_steps: 4, batch_sentences: 4}\nruntime: {device: cpu, threads: 1}\n"
    )
    return load_config(folder / "a.yaml", [f"name={name}", *overrides])


@pytest.mark.heavy
def test_a_run_of_an_earlier_version_goes_on_as_it_began_bit_for_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    as_before = "data.cleaning.normalize_invisible=null", "data.cleaning.join_white_space=false"
    whole = train(spaced_config(tmp_path, "whole", *as_before))
    parted = train(spaced_config(tmp_path, "parted", *as_before), callbacks=Stop())
    assert parted.step == 2
    file = parted.folder / "config.yaml"
    earlier = (
        file.read_text().replace("    normalize_invisible: null\n", "").replace("    join_white_space: false\n", "")
    )
    assert "normalize_invisible" not in earlier  # as earlier versions wrote it
    assert "join_white_space" not in earlier
    file.write_text(earlier)
    train(spaced_config(tmp_path, "parted"))  # the setting has its default, as in every config of a user
    weights = [run.folder / "checkpoints/step-00000004/model.safetensors" for run in (whole, parted)]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    translator = load_translator(parted.folder)
    assert translator.pipeline.data.cleaning.normalize_invisible is None
    assert not translator.pipeline.data.cleaning.join_white_space
    assert translator.pipeline.removes_invisible


@pytest.mark.long
def test_a_run_of_an_earlier_version_is_not_changed_in_its_midst(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    train(spaced_config(tmp_path, "a", "data.cleaning.normalize_invisible=null"), callbacks=Stop())
    with pytest.raises(ConfigError, match=r"normalize_invisible: was absent, now true"):
        train(spaced_config(tmp_path, "a", "data.cleaning.normalize_invisible=true"))


@pytest.mark.long
def test_a_run_whose_config_or_data_were_lost_still_refuses_another_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    train(spaced_config(tmp_path, "a"), callbacks=Stop())
    run = tmp_path / "runs" / "a"
    (run / "config.yaml").unlink()
    with pytest.raises(ConfigError, match=r"other settings:\n    seed: was 1, now 7\n"):
        train(spaced_config(tmp_path, "a", "seed=7"))
    config = spaced_config(tmp_path, "a")
    at_once = Stop()
    at_once.step = 2
    assert train(config, callbacks=at_once).step == 2
    shutil.rmtree(run / "data")
    lines = (tmp_path / "a.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "a.tsv").write_text("".join(lines[:40]), encoding="utf-8")
    with pytest.raises(DataError, match=r"differs from the data on which this run was trained:\n    a\.tsv: was"):
        train(config)
    assert not (run / "data").exists()
    (run / "environment.json").unlink()  # then the checkpoint alone knows the data
    for text, warnings in (("".join(lines[:40]), 1), ("".join(lines), 0)):
        (tmp_path / "a.tsv").write_text(text, encoding="utf-8")
        caplog.clear()
        assert train(config, callbacks=at_once).step == 2
        assert caplog.text.count("the data may differ from those on which this run was trained") == warnings
        shutil.rmtree(run / "data")
        (run / "environment.json").unlink()
    (tmp_path / "a.tsv").write_text("".join(lines[:40]), encoding="utf-8")
    assert train(config, accept_data_change=True).step == 4


@pytest.mark.long
def test_other_validations_after_a_resume_are_told_because_the_best_score_may_be_chance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = ["training.best_metric=loss", "training.validate_every=1"]
    train(spaced_config(tmp_path, "a", *settings, "validation.max_sentences=2"), callbacks=Stop())
    at_once = Stop()
    at_once.step = 2
    for change, is_told in {
        "validation.max_sentences=2": False,
        "decoding.beam_size=2": False,
        "validation.beam_size=2": False,  # the loss knows no search
        "validation.max_sentences=3": True,
    }.items():
        caplog.clear()
        given = [*settings, "validation.max_sentences=2", change]
        train(spaced_config(tmp_path, "a", *given), callbacks=at_once)
        said = "scores before and after step 2 cannot be compared" in caplog.text
        assert said is is_told, change


@pytest.mark.long
def test_a_new_run_learns_from_plain_sources_and_its_checkpoint_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = train(spaced_config(tmp_path, "new"))
    translator = load_translator(run.folder)
    assert translator.pipeline.data.cleaning.normalize_invisible is True
    assert not {"\u00a0", "\u00ad"} & set("".join(translator.pipeline.source_tokenizer.entries))
    [checkpoint] = (run.folder / "checkpoints").glob("step-*/config.yaml")
    assert "normalize_invisible: true" in checkpoint.read_text()


def with_settings(config: Config, **settings: object) -> Config:
    training = config.training.model_copy(update=settings)
    return config.model_copy(update={"training": training})


def records_of(folder: Path, *, with_log: bool) -> dict[str, bytes]:
    """The content of every file of a run."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and (with_log or path.name != "train.log")
    }


@pytest.mark.long
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"log_every": 1},
        {"validate_every": 3, "save_every": 3, "keep_last": 1},
        {"max_minutes": 5.0, "patience": 9},
        {"max_epochs": 50},
    ],
)
def test_a_finished_run_keeps_all_its_records_if_nothing_is_trained(
    config: Config,
    finished: Path,
    settings: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    shutil.copytree(finished, "runs", symlinks=True)
    run = Path("runs/copy")
    before = records_of(run, with_log=True)
    assert "max_steps: 4" in before["config.yaml"].decode()
    # Another machine must not appear in the record of this training either.
    monkeypatch.setattr("transformer_cli.training.run.environment", lambda: {"host": "other"})
    with caplog.at_level(logging.INFO, logger="transformer_cli"):
        again = train(with_settings(config, **settings))
    assert (again.was_finished, again.step) == (True, 4)
    assert records_of(run, with_log=True) == before
    told = [line for line in caplog.messages if "was " in line]
    assert len(told) == len(settings)
    assert all("not recorded, because the run is finished: training." in line for line in told)


PASSED_LIMITS: list[tuple[dict[str, object], str]] = [
    ({"max_steps": 1}, "training.max_steps: 1, and {step} updates are done"),
    ({"max_steps": None, "max_epochs": 1}, "training.max_epochs: 1, and {epochs} epochs"),
]


@pytest.mark.long
@pytest.mark.parametrize("is_finished", [True, False])
def test_a_limit_that_the_run_has_passed_is_refused_and_changes_no_record(config: Config, *, is_finished: bool) -> None:
    config = with_settings(config, batch_sentences=10, max_steps=12)
    run = train(config, callbacks=() if is_finished else StopAt(9))
    before = records_of(run.folder, with_log=False)  # the log tells of the refusal
    for limit, said in PASSED_LIMITS:
        with pytest.raises(ConfigError, match="gone further than its new limit") as refusal:
            train(with_settings(config, **limit))
        epochs = next(
            number for number in range(2, 100) if f"and {number} epochs" in str(refusal.value) or "updates" in said
        )
        assert said.format(step=run.step, epochs=epochs) in str(refusal.value)
        assert records_of(run.folder, with_log=False) == before


class StopAt(Callback):
    def __init__(self, step: int) -> None:
        self.last, self.step = step, 0

    def on_step(self, step: int, report: StepReport) -> None:
        self.step = step

    def should_stop(self) -> bool:
        return self.step >= self.last


@pytest.mark.long
def test_a_run_may_be_ended_at_the_step_where_it_stands(config: Config) -> None:
    assert train(config, callbacks=Stop()).step == 2
    run = train(with_settings(config, max_steps=2))
    assert (run.step, run.was_finished) == (2, False)  # the last validation was still to be done
    assert "max_steps: 2" in (run.folder / "config.yaml").read_text()


@pytest.mark.long
def test_an_average_that_a_finished_run_makes_later_is_recorded_in_its_config(
    config: Config,
) -> None:
    run = train(with_settings(config, save_every=2))
    assert "average_last: 2" not in (run.folder / "config.yaml").read_text()
    assert train(with_settings(config, save_every=2, average_last=2)).was_finished
    assert "average_last: 2" in (run.folder / "config.yaml").read_text()


@dataclass
class Translating:
    """The part of a translator that a validation changes."""

    engine: Any


@pytest.mark.long
def test_a_validation_translates_with_the_engine_that_its_device_wants(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[tuple[PyTorchEngine, PyTorchEngine]] = []
    plain_validate = run_module.validate

    def for_validation(engine: PyTorchEngine) -> PyTorchEngine:
        used.append((engine, replace(engine)))
        return used[-1][1]

    def validate(translator: Translator, *given: Any, **named: Any) -> Any:
        assert translator.engine is used[-1][1]
        return plain_validate(translator, *given, **named)

    monkeypatch.setattr(PyTorchEngine, "for_validation", for_validation)
    monkeypatch.setattr(run_module, "validate", validate)
    train(config)
    assert used


def test_a_validation_is_asked_before_each_batch_whether_it_must_stop(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    model: Any = nn.Module()
    model.encoder = nn.Identity()
    answers, encoded = [False, False, True, False], []

    def encode_until_stopped(*_: object, **__: object) -> None:
        while True:
            encoded.append(model.encoder(torch.zeros(1)))

    monkeypatch.setattr(run_module, "validate", encode_until_stopped)
    world = types.SimpleNamespace(
        runner=UpdateRunner(Machine(torch.device("cpu"), torch.float32)), average=None, model=model
    )
    session: Any = types.SimpleNamespace(
        config=config, experiment=world, translator=lambda model: Translating(None), validation_pairs=[]
    )
    assert TrainingSession._validate(session, 3, lambda: answers.pop(0)) is None
    assert (len(encoded), answers) == (2, [False])
    model.encoder(torch.zeros(1))
    assert answers == [False], "nobody asks after the validation"
