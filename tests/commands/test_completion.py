"""What the Tab key offers."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

from transformer_cli.checkpoint import run_folder
from transformer_cli.commands import completion
from transformer_cli.config import load_config
from transformer_cli.config.loading import shipped_configs
from transformer_cli.config.refusal import setting_paths
from transformer_cli.process.errors import ConfigError
from transformer_cli.storage import MANIFEST_NAME

from ..checkpoint.snapshots import saved


def names(offers: list[completion.Offer]) -> list[str]:
    return [name for name, _ in offers]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_names_of_files_are_those_of_checkpoints() -> None:
    """They are written twice, because the modules that define them import PyTorch."""
    assert str(run_folder.RUNS) == completion.RUNS
    assert run_folder.CHECKPOINTS == completion.CHECKPOINTS
    assert completion.MANIFEST == MANIFEST_NAME


def test_runs_are_offered_the_newest_first_with_step_and_score(here: Path) -> None:
    for name in ("en-it", "spoken", "en-de"):
        saved(here / "runs" / name, 10)
    saved(here / "runs/spoken", 20)
    (here / "runs/empty/checkpoints").mkdir(parents=True)
    (here / "runs/README.md").write_text("")
    offers = completion.runs("")
    assert names(offers) == ["spoken", "en-de", "en-it"]
    assert offers[0][1].startswith("step 20")
    assert names(completion.runs("en")) == ["en-de", "en-it"]
    assert completion.runs("x") == []


def test_checkpoints_are_offered_behind_the_folder_of_the_runs(here: Path) -> None:
    saved(here / "runs/en-it", 10)
    offers = names(completion.runs("runs/en"))
    assert offers[0] == "runs/en-it"
    assert "runs/en-it/checkpoints/step-00000010" in offers
    assert all((here / offer).is_dir() for offer in offers)


@pytest.mark.long
@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"step": "x"}', b"[" * 200_000, b"\xff"])
def test_a_damaged_manifest_is_passed_over(here: Path, content: bytes) -> None:
    for name, number in (("good", 10), ("bad", 20)):
        (folder,) = saved(here / "runs" / name, number)
    (folder / MANIFEST_NAME).write_bytes(content)
    assert names(completion.runs("")) == ["good"]


def test_no_runs_are_no_error(here: Path) -> None:
    assert completion.runs("") == []


def test_configs_are_offered_from_here_and_from_the_package(here: Path) -> None:
    (here / "mine.yaml").write_text("")
    (here / "mine.txt").write_text("")
    (here / ".hidden.yaml").write_text("")
    (here / "more").mkdir()
    (here / "more/deep.yml").write_text("")
    offers = names(completion.configs(""))
    assert offers[:2] == ["mine.yaml", "more/deep.yml"]
    assert set(offers[2:]) == set(shipped_configs())
    assert names(completion.configs("m")) == [
        "mine.yaml",
        "more/deep.yml",
        *(name for name in sorted(shipped_configs()) if name[0] == "m"),
    ]
    assert names(completion.configs("more/d")) == ["more/deep.yml"]
    assert names(completion.configs("en-i")) == ["en-it.yaml"]
    assert completion.configs("no/such/folder") == []


def test_every_setting_is_offered() -> None:
    offered = {name.removesuffix("=") for name in names(completion.settings(""))}
    for source in ("phrasebook", "sequences", "files", "hub"):
        known = [*setting_paths({"source": source})]
        leaves = {path for path in known if not any(p.startswith(f"{path}.") for p in known)}
        assert leaves <= offered


def test_settings_have_a_sentence_about_them() -> None:
    offers = dict(completion.settings("training."))
    assert offers["training.max_steps="] == "Stop after this many updates."


def test_values_are_offered_for_a_setting_that_has_few() -> None:
    assert names(completion.settings("training.opt")) == [
        f"training.optimizer={name}" for name in ("adam", "adamw", "adafactor", "muon")
    ]
    assert names(completion.settings("training.optimizer=adamw")) == ["training.optimizer=adamw"]
    assert names(completion.settings("runtime.compile=")) == [
        "runtime.compile=true",
        "runtime.compile=false",
        "runtime.compile=auto",
    ]
    assert names(completion.settings("data.source=")) == [
        f"data.source={name}" for name in ("phrasebook", "sequences", "files", "hub")
    ]
    assert completion.settings("training.max_steps=") == []
    assert completion.settings("training.optimizer=x") == []
    assert completion.settings("no.such") == []


def complaint(override: str) -> str:
    try:
        load_config("en-it.yaml", [override])
    except ConfigError as error:
        return error.message
    return ""


@pytest.mark.long
def test_every_value_that_is_offered_is_allowed_for_its_setting() -> None:
    """It may not fit the other settings of a config; but it is a value of the right kind."""
    for name, setting in completion._all_settings().items():
        for value in completion._choices(setting.type):
            found = complaint(f"{name}={value}")
            assert "Input should be" not in found
            assert "is not a setting" not in found or name.startswith("data.")


def test_choices_are_found_in_any_annotation() -> None:
    assert completion._choices(Literal["a", "b"] | None) == ["a", "b"]
    assert completion._choices(int | Literal["auto"] | bool) == ["auto", "true", "false"]
    assert completion._choices(int) == []


ANSWERS = [
    ("bash", "tfm translate --run sp", ["spoken"]),
    ("bash", "tfm info -c en-", ["en-it.yaml"]),
    ("bash", "tfm train -c x --set training.max_s", ["training.max_steps=", "training.max_skipped_in_a_row="]),
    ("zsh", "tfm validate --set runtime.dev", ["runtime.device=cpu", "auto\\\\: a CUDA device"]),
    ("zsh", "tfm next --run sp", ['"spoken":"step 10']),
    ("bash", "tfm\ntrain\n--set\nmodel.preset\n=", ["tiny\nsmall"]),
    ("bash", "tfm\ndata\n-c\nx\n--set\ntokenizer.kind\n=\nw", ["wordlevel"]),
    ("fish", "tfm data --set tokenizer.kind=w", ["tokenizer.kind=wordlevel"]),
]

SCRIPT = """\
import contextlib, io, json, os, sys
sys.argv = ["tfm"]
from transformer_cli.cli import main
for line in sys.stdin:
    os.environ.update(json.loads(line))
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
        main()
    heavy = {"torch", "numpy", "datasets", "pyarrow", "tqdm"} & {*sys.modules}
    print(json.dumps([said.getvalue(), sorted(heavy)]))
"""


@pytest.mark.process
def test_a_shell_gets_its_answer_without_a_heavy_import(here: Path) -> None:
    saved(here / "runs/spoken", 10)
    questions = [
        {
            "_TFM_COMPLETE": f"complete_{shell}",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split()) - 1),
            "_TYPER_COMPLETE_ARGS": line,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        }
        for shell, line, _ in ANSWERS
    ]
    finished = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input="".join(f"{json.dumps(one)}\n" for one in questions),
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.stderr == ""
    given = [json.loads(line) for line in finished.stdout.splitlines()]
    for (_, line, expected), (said, heavy) in zip(ANSWERS, given, strict=True):
        assert (line, heavy) == (line, [])
        for text in expected:
            assert text in said, line


def test_exercises_and_metrics_are_offered_with_a_word_about_them() -> None:
    assert ("heads", "split_heads, join_heads") in completion.exercises("h")
    assert names(completion.plotted_metrics("grad")) == ["gradient_norm", "gradient_scale"]
    assert ("bleu", "a score") in completion.plotted_metrics("")
