"""`tfm student`: from a corpus and a teacher to a small model that is measured, step by step, through every interruption."""

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.checkpoint.trained_files import load_trained

from ..experiments import TINY, newest_checkpoint
from ..faults import run_in_child
from ..launcher import Tfm, TfmHere

pytestmark = pytest.mark.heavy

STUDENT = TINY.replace("name: tiny", "name: small").replace("max_steps: 13", "max_steps: 5")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> TfmHere:
    """A folder with a teacher and the config of a student."""
    here = TfmHere(tmp_path_factory.mktemp("student"))
    (here.folder / "tiny.yaml").write_text(TINY)
    (here.folder / "small.yaml").write_text(STUDENT)
    trained = here("train", "--config", "tiny.yaml")
    assert trained.exit_code == 0, trained.talk
    return here


OPTIONS = ("--teacher", "tiny", "--config", "small.yaml", "--set", "model.decoder_layer=ssru")
COMMAND = ("student", *OPTIONS)
HAS_CHILDREN = True


@pytest.fixture(scope="module")
def facts(here: TfmHere) -> dict[str, Any]:
    starts = list[list[str]]()
    run = subprocess.run

    def started(command: list[str], **options: Any) -> None:
        """The first start is a new process; the others are copies of this one, which spares their imports."""
        starts.append(command)
        if len(starts) == 1:
            assert run(command, **options).returncode == 0
        else:
            assert command[:3] == starts[0][:3]
            assert run_in_child(lambda: here(*command[3:]).exit_code) == 0

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("transformer_cli.commands.student_report.subprocess.run", started)
        done = here(*COMMAND, "--json")
    assert done.exit_code == 0, done.talk
    assert len(starts) == 5
    found = json.loads(done.text)
    assert isinstance(found, dict)
    return found


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_each_sentence_gets_the_candidate_that_is_closest_to_its_reference(here: TfmHere, facts: object) -> None:
    folder = here.folder / "small-distilled"
    listed = here("translate", "--run", "tiny", "--input", str(folder / "sources.txt"), "--n-best", "4")
    assert listed.out == (folder / "n-best.tsv").read_bytes()
    assert len(lines(folder / "sources.txt")) == len(lines(folder / "taught-0.target")) == 70
    candidates = dict.fromkeys(line.split("\t")[2] for line in listed.lines)
    assert {*lines(folder / "taught-0.target")} <= {*candidates}


def test_the_student_learns_alignments_and_its_run_says_where_its_text_comes_from(here: TfmHere, facts: object) -> None:
    folder = here.folder / "small-distilled"
    aligned = here(
        "align",
        "--run",
        "tiny",
        "--source",
        str(folder / "taught-0.source"),
        "--target",
        str(folder / "taught-0.target"),
    )
    assert aligned.lines == lines(folder / "taught-0.alignment")
    config = (here.folder / "runs/small/config.yaml").read_text()
    assert "alignment_path: taught-0.alignment" in config
    assert "decoder_layer: ssru" in config
    assert "origin: sources of sequences of tfm, translated by tiny (" in config
    assert "sources: not stated; teacher: not stated" in config


def test_the_card_prints_origin_and_licence_of_what_a_model_wrote(here: TfmHere, facts: object) -> None:
    card = here("card", "--run", "small")
    assert card.exit_code == 0, card.talk
    [row] = [line for line in card.lines if line.startswith("| taught-0.source")]
    assert "sources of sequences of tfm, translated by tiny (" in row
    assert row.endswith("| sources: not stated; teacher: not stated |")


def test_the_table_compares_teacher_and_student_in_float32_and_int8(facts: dict[str, Any]) -> None:
    names = [row["model"] for row in facts["models"]]
    assert names == ["teacher", "teacher, int8", "student", "student, int8", "  with shortlist"]
    teacher, _, student, in_int8, _ = facts["models"]
    assert student["parameters"] < teacher["parameters"]
    assert in_int8["bytes"] < student["bytes"] < teacher["bytes"]
    for row in facts["models"]:
        assert row["tokens_per_cpu_second"] > 0
        assert row["start_cpu_seconds"] > 0
        assert [one["name"] for one in row["scores"]] == ["BLEU", "chrF"]
        assert all(one["interval"]["half_width"] >= 0 for one in row["scores"])
    assert {"translate sources", "choose", "align", "train small", "measure"} <= {*facts["costs"]}
    assert "tokenizer" in facts["exported"]["reason"]


def test_the_same_command_again_translates_and_trains_nothing(here: TfmHere, facts: object) -> None:
    n_best = here.folder / "small-distilled/n-best.tsv"
    before = n_best.stat().st_mtime_ns, newest_checkpoint(here.folder / "runs/small")
    again = here(*COMMAND)
    assert again.exit_code == 0, again.talk
    assert "step translate sources: done already" in again.talk
    assert "step measure: done already" in again.talk
    assert before == (n_best.stat().st_mtime_ns, newest_checkpoint(here.folder / "runs/small"))
    assert "tokens per CPU second" in again.text


def test_a_way_that_is_killed_again_and_again_ends_with_the_same_student(
    here: TfmHere, facts: object, tfm: Tfm
) -> None:
    """The process dies by SIGKILL after a time that grows from try to try, so that it dies in several steps."""
    shutil.copytree(here.folder / "runs/tiny", tfm.folder / "runs/tiny")
    shutil.copy(here.folder / "small.yaml", tfm.folder)
    steps = ("student", "corpus", "translate", "choose", "align", "train", *OPTIONS)
    num_killed = 0
    while True:
        process = tfm.start(*steps)
        time.sleep(0.2 * 1.4**num_killed)
        if not process.is_running():
            break
        process.send(signal.SIGKILL)
        process.wait()
        num_killed += 1
    assert process.wait().exit_code == 0
    assert num_killed >= 3
    done, killed = here.folder / "small-distilled", tfm.folder / "small-distilled"
    for path in done.iterdir():
        if path.suffix in (".txt", ".tsv", ".source", ".target", ".alignment"):
            assert (killed / path.name).read_bytes() == path.read_bytes()
    checkpoints = [newest_checkpoint(one / "runs/small") for one in (here.folder, tfm.folder)]
    models = [(one / "model.safetensors").read_bytes() for one in checkpoints]
    assert models[0] == models[1]


def test_another_corpus_in_the_same_folder_is_refused(here: TfmHere, facts: object) -> None:
    refused = here(*COMMAND, "--set", "data.num_pairs=60", "--set", "name=other", "--folder", "small-distilled")
    assert refused.exit_code == 2, refused.talk
    assert "from another corpus or with other options: real-0.source, real-0.target" in refused.talk


def test_other_options_of_the_translation_are_refused(here: TfmHere, facts: object) -> None:
    refused = here("student", "translate", *OPTIONS, "--n-best", "2")
    assert refused.exit_code == 2, refused.talk
    assert "other options: n_best" in refused.talk


def test_a_step_needs_the_one_before_it(here: TfmHere) -> None:
    refused = here("student", "translate", *OPTIONS, "--folder", "empty")
    assert refused.exit_code == 2, refused.talk
    assert "the step corpus writes it" in refused.talk
    unknown = here("student", "translation", *OPTIONS)
    assert unknown.exit_code == 2
    assert "the steps are corpus, translate" in unknown.talk


def test_further_text_is_taught_without_held_out_and_known_sentences(here: TfmHere) -> None:
    """A line that is repeated, is known, or stands in the validation split is left out; the licence is kept."""
    base = ("--config", "small.yaml", "--teacher", "tiny", "--folder", "more", "--set", "name=more", "--n-best", "1")
    first = here("student", "corpus", *base, "--folder", "first")
    assert first.exit_code == 2, "an option that is given twice"
    assert here("student", "corpus", *base[:4], "--folder", "first", *base[6:]).exit_code == 0
    known = lines(here.folder / "first/real-0.source")[0]
    held_out = lines(here.folder / "first/validation.source")[0]
    text = here.folder / "more.txt"
    text.write_text(f"{known}\n{held_out}!\n1 1 1 2\n1 1 1 2.\n\n3 3 3 3\n", encoding="utf-8")
    done = here(
        "student",
        "corpus",
        "translate",
        "choose",
        "train",
        *base,
        "--text",
        "more.txt=cc0-1.0",
        "--with-real",
        "--no-align",
    )
    assert done.exit_code == 0, done.talk
    assert lines(here.folder / "more/taught-text-0.source") == ["1 1 1 2", "3 3 3 3"]
    config = load_trained(here.folder / "runs/more").config
    corpora: Any = config.data
    assert [one.license for one in corpora.corpora if one.split == "train"] == [
        "sources: not stated; teacher: not stated",
        "sources: cc0-1.0; teacher: not stated",
        None,
    ]
    assert corpora.corpora[1].origin.startswith("sources of more.txt, translated by tiny (")


@pytest.mark.parametrize("form", ["lines", "n-best", "moses"])
def test_another_program_may_be_the_teacher(here: TfmHere, facts: object, form: str) -> None:
    source = here.folder / "small-distilled/sources.txt"
    texts = [line[::-1] for line in lines(source)]
    shown = {
        "lines": [*texts],
        "n-best": [row for one in texts for row in (f"1\t-0.5\t{one}", "2\t-1.5\t7")],
        "moses": [
            row
            for n, one in enumerate(texts)
            for row in (f"{n} ||| {one} ||| F0= -1 ||| -0.5", f"{n} ||| 7 ||| F0= -2 ||| -1.5")
        ],
    }[form]
    given = here.folder / f"{form}.txt"
    given.write_text("".join(f"{line}\n" for line in shown), encoding="utf-8")
    options = ("--config", "small.yaml", "--set", f"name={form}", "--translations", given.name)
    done = here("student", "corpus", "translate", "choose", *options)
    assert done.exit_code == 0, done.talk
    folder = here.folder / f"{form}-distilled"
    found = [line.split("\t") for line in lines(folder / "n-best.tsv")]
    assert [text for rank, _, text in found if rank == "1"] == texts
    given.write_text("one line\n", encoding="utf-8")
    refused = here("student", "corpus", "translate", *options, "--folder", f"{form}-again")
    assert refused.exit_code == 65, refused.talk
    assert "sources.txt has 70" in refused.talk


def test_one_teacher_is_needed(here: TfmHere) -> None:
    for teachers in ((), ("--teacher", "tiny", "--translations", "tiny.yaml")):
        refused = here("student", "--config", "small.yaml", *teachers)
        assert refused.exit_code == 2, refused.talk
        assert "a student needs one teacher" in refused.talk


def test_a_missing_teacher_is_named(here: TfmHere, tmp_path: Path) -> None:
    refused = here("student", "--teacher", "nobody", "--config", "small.yaml", "--folder", str(tmp_path / "new"))
    assert refused.exit_code == 66, refused.talk
    assert "nobody" in refused.talk


def test_a_student_of_the_teachers_name_is_refused_before_anything_is_written(
    here: TfmHere,
) -> None:
    refused = here("student", "--teacher", "tiny", "--config", "tiny.yaml", "--folder", "new")
    assert refused.exit_code == 2, refused.talk
    assert "is that of the teacher" in refused.talk
    assert not (here.folder / "new").exists()
