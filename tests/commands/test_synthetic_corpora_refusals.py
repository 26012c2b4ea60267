"""What `tfm student`, `tfm data back-translate` and `tfm data diversify` refuse or leave out, before work begins."""

import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.checkpoint.trained_files import load_trained
from transformer_cli.commands import recorded_steps, synthetic_corpus
from transformer_cli.commands.recorded_steps import Languages, chosen_languages
from transformer_cli.commands.student_report import measured_run
from transformer_cli.commands.synthetic_corpus import GivenText
from transformer_cli.config.data import Direction
from transformer_cli.decoding.loading import load_translator
from transformer_cli.extensions.exchange.export import float32_translator
from transformer_cli.process.errors import UsageError
from transformer_cli.storage.writing import append_json_line

from ..experiments import TINY
from ..launcher import TfmHere

DOCS_RUN = str(Path(__file__).parents[2] / "docs" / "run")
"""It translates en-it."""
REVERSE = ("--set", "data.source_language=it", "--set", "data.target_language=en")


@pytest.fixture
def here(tfm_here: TfmHere) -> TfmHere:
    """A folder with a config from English into Italian, a text, and two translations of another program."""
    (tfm_here.folder / "tiny.yaml").write_text(TINY)
    (tfm_here.folder / "mono.txt").write_text("1 2 3 4 5\n6 7 8\n")
    for name in "ab":
        (tfm_here.folder / f"{name}.txt").write_text(f"{name}\n" * 70)
    return tfm_here


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "needed"),
    [
        (("data", "back-translate", "--text", "mono.txt", "--run", DOCS_RUN), "it-en"),
        (("data", "back-translate", "--text", "mono.txt", "--judge", DOCS_RUN, *REVERSE), "it-en"),
        (("student", "--teacher", DOCS_RUN, *REVERSE), "it-en"),
        (("student", "--translations", "a.txt", "--judge", DOCS_RUN), "it-en"),
        (("student", "--translations", "a.txt", "--aligner", DOCS_RUN, *REVERSE), "it-en"),
        (("data", "diversify", "--run", DOCS_RUN, "--set", "data.target_language=de"), "de-en"),
    ],
    ids=["run", "judge of back-translation", "teacher", "judge", "aligner", "diversify"],
)
def test_a_run_of_another_direction_is_refused_before_anything_is_written(
    here: TfmHere, command: tuple[str, ...], needed: str
) -> None:
    refused = here(*command, "--config", "tiny.yaml", "--folder", "new")
    assert refused.exit_code == 2, refused.talk
    assert f"{DOCS_RUN} translates en-it" in refused.talk
    assert needed in refused.talk
    assert not (here.folder / "new").exists()


@pytest.mark.parametrize(
    "command",
    [
        ("data", "back-translate", "--text", "mono.txt"),
        ("data", "diversify"),
        ("student", "--translations", "a.txt"),
    ],
    ids=["back-translate", "diversify", "student"],
)
def test_the_files_of_another_folder_are_never_replaced(here: TfmHere, command: tuple[str, ...]) -> None:
    """These commands write files such as config.yaml and validation.source: the input of a person may have these names."""
    mine = here.folder / "mine"
    mine.mkdir()
    given = {mine / "config.yaml": TINY, mine / "validation.source": "mine\n"}
    for path, text in given.items():
        path.write_text(text)
    refused = here(*command, "--config", "mine/config.yaml", "--folder", "mine")
    assert refused.exit_code == 73, refused.talk
    assert "mine: this folder is not empty, and no earlier command has made it" in refused.talk
    assert {path: path.read_text() for path in mine.iterdir()} == given


def test_the_needed_direction_is_chosen_of_a_run_with_several(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both = [Direction("en-GB", "it"), Direction("it", "en-GB")]
    monkeypatch.setattr(recorded_steps, "find_run", lambda run: run)
    monkeypatch.setattr(recorded_steps, "first_usable", lambda *_: _With(directions=both))
    needed = Direction("it", "en")
    assert chosen_languages(["both"], needed, "--run") == Languages(to="en-GB", from_="it")
    with pytest.raises(UsageError, match="with these --from and --to"):
        chosen_languages(["both"], needed, "--run", Languages(to="it"))


class _With:
    """Files of a run, as far as its directions are read."""

    def __init__(self, directions: list[Direction]) -> None:
        self.config = self.data = self
        self.directions = directions


OTHERS = {
    "choose": (("--translations", "b.txt"), "translate sources", "translations"),
    "translate": (("--text", "mono.txt"), "sources", "texts"),
    "align": (("--drop", "0.5"), "choose", "drop"),
    "train": (("--drop", "0.5"), "choose", "drop"),
}


@pytest.mark.long
@pytest.mark.parametrize("step", OTHERS)
def test_a_single_step_checks_what_came_before_it(here: TfmHere, step: str) -> None:
    options = {"--config": "tiny.yaml", "--set": "name=small", "--translations": "a.txt"}
    command = [part for pair in options.items() for part in pair]
    done = here("student", "corpus", "translate", "choose", *command, "--no-align")
    assert done.exit_code == 0, done.talk
    changed, before, what = OTHERS[step]
    options[changed[0]] = changed[1]
    command = [part for pair in options.items() for part in pair]
    refused = here("student", step, *command, "--no-align")
    assert refused.exit_code == 2, refused.talk
    assert f"the step {before} was done from another corpus or with other options: {what}" in refused.talk


BAD_LINES = {
    "word": "1 ||| x ||| F0= -1 ||| abc",
    "nan": "1 ||| x ||| F0= -1 ||| nan",
    "inf": "1 ||| x ||| F0= -1 ||| -inf",
    "alignment without score": "1 ||| x ||| F0= -1 ||| ||| 0-0",
    "bytes": "1 ||| \udcff ||| F0= -1 ||| -1",
}


def moses(line: str, count: int = 70) -> str:
    """An n-best list of `count` sources with this second line."""
    good = [f"{number} ||| x ||| F0= -1 ||| -1" for number in range(count)]
    return "".join(f"{one}\n" for one in [good[0], line, *good[2:]])


def translated(here: TfmHere, text: str) -> Any:
    given = here.folder / "given.txt"
    given.write_text(text, encoding="utf-8", errors="surrogateescape")
    options = ("--config", "tiny.yaml", "--set", "name=small", "--translations", "given.txt")
    return here("student", "corpus", "translate", *options, "--no-align")


@pytest.mark.long
@pytest.mark.parametrize("line", BAD_LINES.values(), ids=BAD_LINES)
def test_a_foreign_line_without_a_finite_score_is_refused(here: TfmHere, line: str) -> None:
    refused = translated(here, moses(line))
    assert refused.exit_code == 65, refused.talk
    assert "given.txt:2: " in refused.talk


@pytest.mark.long
@pytest.mark.parametrize("line", ["1\tnan\tx", "1\t1.2.3\tx", "no tab"])
def test_a_bad_line_in_a_list_of_tfm_is_refused(here: TfmHere, line: str) -> None:
    refused = translated(here, f"1\t-1\tx\n{line}\n" + "1\t-1\tx\n" * 68)
    assert refused.exit_code == 65, refused.talk
    assert "given.txt:2: " in refused.talk


@pytest.mark.long
def test_word_alignment_may_stand_before_or_after_the_score(here: TfmHere) -> None:
    for number, fields in enumerate(("0-0 ||| F0= -1 ||| -2.5", "F0= -1 ||| -2.5 ||| 0-0", "F=1")):
        done = translated(here, moses(f"1 ||| x y ||| {fields}"))
        assert done.exit_code == 0, done.talk
        found = (here.folder / "small-distilled/n-best.tsv").read_text().splitlines()[1]
        assert found == f"1\t{'-2.500000' if number < 2 else '0.000000'}\tx y"
        shutil.rmtree(here.folder / "small-distilled")


def test_lines_that_are_not_utf_8_are_left_out_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "mono.it"
    path.write_bytes(b"good\n\xff\xfe bad\ncitt\xe0\nbuono\n")
    found = synthetic_corpus.new_sentences([GivenText(path, None)], [], [], max_words=9)
    assert found == [["good", "buono"]]
    [warning] = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
    assert "left out, because they are not UTF-8: 2 lines" in warning
    assert "--encoding" not in warning
    assert "tfm translate" not in warning


def forbid_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def train(*_: object, **__: object) -> None:
        raise UsageError("training begins")

    monkeypatch.setattr("transformer_cli.training.run.train", train)


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "translated_before", "changed"),
    [
        (("back-translate", "--text", "a.txt"), "nothing", "texts"),
        (("back-translate", "--text", "mono.txt", "--n-best", "3"), "text-0", "n_best"),
        (("diversify", "--teacher-set", "decoding.beam_size=1"), "written-2-real-0", "set"),
    ],
    ids=["text", "n-best", "diversify"],
)
def test_conditions_are_checked_before_a_model_is_trained(
    here: TfmHere,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    translated_before: str,
    changed: str,
) -> None:
    forbid_training(monkeypatch)
    options = ("--config", "tiny.yaml", "--folder", "made")
    first = ("back-translate", "--text", "mono.txt") if "--text" in command else ("diversify",)
    begun = here("data", *first, *options)
    assert "training begins" in begun.talk
    conditions = {"source": "", "models": [], "n_best": 1, "set": [], "from": None, "to": None}
    record = {"step": f"translate {translated_before}", "conditions": conditions, "facts": {}}
    append_json_line(here.folder / "made/steps.jsonl", record)
    refused = here("data", *command, *options)
    assert refused.exit_code == 2, refused.talk
    assert "was done from another corpus or with other options: " in refused.talk
    assert changed in refused.talk
    assert "training begins" not in refused.talk


def test_a_text_without_a_new_sentence_is_refused_before_a_model_is_trained(here: TfmHere) -> None:
    (here.folder / "mono.txt").write_text("\n")
    refused = here("data", "back-translate", "--text", "mono.txt", "--config", "tiny.yaml", "--folder", "made")
    assert refused.exit_code == 65, refused.talk
    assert "mono.txt: no sentence that the corpus does not have" in refused.talk
    assert "training begins" not in refused.talk


def translate_for_report(lines: list[str]) -> None:
    measured_run("student", [DOCS_RUN], ["runtime.device=cpu"], (None, None)).translate(lines)


def translate_for_export(lines: list[str]) -> None:
    list(float32_translator(load_trained(Path(DOCS_RUN)), 1).translate(lines))


@pytest.mark.long
@pytest.mark.parametrize("translate", [translate_for_report, translate_for_export])
def test_nothing_is_said_about_lines_that_nobody_has_given(
    translate: Callable[[list[str]], None], caplog: pytest.LogCaptureFixture
) -> None:
    long = ["zzz qqq " * 60]
    list(load_translator(DOCS_RUN).translate(long))
    assert "line 1" in caplog.text, "the text of this test is one that a translator warns of"
    caplog.clear()
    translate(long)
    assert "line 1" not in caplog.text
