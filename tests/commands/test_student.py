"""`tfm student`: the teacher translates the sources, the student learns from that, and a table compares both."""

import json
from pathlib import Path

import pytest

from ..experiments import TINY
from ..launcher import TfmHere

pytestmark = pytest.mark.heavy

STUDENT = TINY.replace("name: tiny", "name: small").replace("max_steps: 13", "max_steps: 5")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> TfmHere:
    """A folder with a teacher, the config of a student, and what `tfm student` has made."""
    here = TfmHere(tmp_path_factory.mktemp("student"))
    (here.folder / "tiny.yaml").write_text(TINY)
    (here.folder / "small.yaml").write_text(STUDENT)
    trained = here("train", "--config", "tiny.yaml")
    assert trained.exit_code == 0, trained.talk
    return here


COMMAND = (
    "student",
    "--teacher",
    "tiny",
    "--config",
    "small.yaml",
    "--set",
    "model.decoder_layer=ssru",
)


@pytest.fixture(scope="module")
def facts(here: TfmHere) -> dict[str, object]:
    done = here(*COMMAND, "--json")
    assert done.exit_code == 0, done.talk
    found = json.loads(done.text)
    assert isinstance(found, dict)
    return found


def test_the_student_learns_what_the_teacher_writes(here: TfmHere, facts: object) -> None:
    folder = here.folder / "small-distilled"
    translated = here("translate", "--run", "tiny", "--input", str(folder / "train.source"))
    assert translated.out == (folder / "train.target").read_bytes()
    assert len((folder / "train.source").read_text().splitlines()) == 70
    config = (here.folder / "runs/small/config.yaml").read_text()
    assert "source_path: train.source" in config
    assert "decoder_layer: ssru" in config


def test_the_table_compares_both_on_the_validation_pairs(
    facts: dict[str, list[dict[str, float]]],
) -> None:
    teacher, student = facts["models"]
    assert (teacher["model"], student["model"]) == ("teacher", "student")
    assert student["parameters"] < teacher["parameters"]
    assert teacher["sentences"] == student["sentences"] > 0
    for row in (teacher, student):
        assert row["tokens_per_cpu_second"] > 0
        assert 0.0 <= row["bleu"] <= 100.0


def test_the_same_command_again_translates_and_trains_nothing(here: TfmHere, facts: object) -> None:
    before = (here.folder / "small-distilled/train.target").stat().st_mtime_ns
    again = here(*COMMAND)
    assert again.exit_code == 0, again.talk
    assert "already translated" in again.talk
    assert (here.folder / "small-distilled/train.target").stat().st_mtime_ns == before
    assert "teacher" in again.text
    assert "tokens per CPU second" in again.text


def test_another_corpus_in_the_same_folder_is_refused(here: TfmHere, facts: object) -> None:
    refused = here(
        *COMMAND, "--set", "data.num_pairs=60", "--set", "name=other", "--folder", "small-distilled"
    )
    assert refused.exit_code == 2, refused.talk
    assert "made from another corpus" in refused.talk


def test_a_missing_teacher_is_named(here: TfmHere, tmp_path: Path) -> None:
    refused = here(
        "student",
        "--teacher",
        "nobody",
        "--config",
        "small.yaml",
        "--folder",
        str(tmp_path / "new"),
    )
    assert refused.exit_code == 66, refused.talk
    assert "nobody" in refused.talk


def test_a_student_of_the_teachers_name_is_refused_before_anything_is_written(
    here: TfmHere,
) -> None:
    refused = here("student", "--teacher", "tiny", "--config", "tiny.yaml", "--folder", "new")
    assert refused.exit_code == 2, refused.talk
    assert "is that of the teacher" in refused.talk
    assert not (here.folder / "new").exists()
