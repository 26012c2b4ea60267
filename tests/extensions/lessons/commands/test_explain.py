"""`tfm explain` as a person runs it, on a run that was just trained."""

import json
import re
from pathlib import Path

import pytest

from transformer_cli.extensions.lessons.explaining.learning import read_moments

from ....experiments import TINY, write_tiny
from ....launcher import TfmHere

pytestmark = pytest.mark.long

TEXT = TINY.replace("num_samples: 0", "num_samples: 3")


@pytest.fixture(scope="module")
def trained(memory_folder: Path) -> TfmHere:
    """A folder with a run of the tiny experiment, whose validations have kept sentences."""
    tfm = TfmHere(memory_folder)
    finished = tfm("train", "--config", write_tiny(memory_folder, TEXT))
    assert finished.exit_code == 0, finished.talk
    return tfm


@pytest.fixture(scope="module")
def sentence(trained: TfmHere) -> str:
    moments = read_moments(trained.folder / "runs/tiny/learning.jsonl")
    return moments[0].sentences[0].source


@pytest.mark.heavy
def test_the_first_line_is_what_translate_prints(trained: TfmHere, sentence: str) -> None:
    explained = trained("explain", sentence, "--run", "tiny")
    translated = trained("translate", sentence, "--run", "tiny")
    assert (explained.exit_code, translated.exit_code) == (0, 0), explained.talk
    assert explained.text.splitlines()[0] == translated.text.rstrip("\n")
    assert "\x1b" not in explained.text


def test_json_is_one_object_on_one_line(trained: TfmHere, sentence: str) -> None:
    explained = trained("explain", sentence, "--json", "--beam-size", "3", "--n-best", "2", "--top", "4")
    assert explained.exit_code == 0, explained.talk
    [line] = explained.text.splitlines()
    value = json.loads(line)
    assert value["search"]["beam_size"] == 3
    [of_sentence] = value["sentences"]
    assert len(of_sentence["hypotheses"]) == 2
    assert {len(token["alternatives"]) for token in of_sentence["hypotheses"][0]["tokens"]} == {4}


def test_page_and_picture_are_written_and_the_text_is_printed_all_the_same(trained: TfmHere, sentence: str) -> None:
    explained = trained("explain", sentence, "--html", "page.html", "--png", "slide.png")
    assert explained.exit_code == 0, explained.talk
    assert "6. decoding, step by step" in explained.text
    assert (trained.folder / "slide.png").read_bytes().startswith(b"\x89PNG")
    page = (trained.folder / "page.html").read_text(encoding="utf-8")
    match = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert match is not None
    data = json.loads(match[1])
    assert set(data["explanations"]) >= {"1", "2", "4", "8"}
    assert f"{data['explanations'][data['first']]['translation']}\n" == explained.text.splitlines(keepends=True)[0]


def test_what_a_run_has_learned_is_shown_for_each_validation(trained: TfmHere) -> None:
    shown = trained("explain", "--over-time", "--html", "film.html", "--png", "film.png")
    assert shown.exit_code == 0, shown.talk
    moments = read_moments(trained.folder / "runs/tiny/learning.jsonl")
    assert shown.text.splitlines()[0] == f"tiny: {len(moments)} validations"
    for moment in moments:
        assert f"step {moment.step}" in shown.text
        for one in moment.sentences:
            assert one.translation in shown.text
    steps_of_film = ", ".join(str(moment.step) for moment in moments)
    of_film = f"{len(moments)} of {len(moments)} validations, steps {steps_of_film}"
    assert re.search(rf"wrote film\.png \([\d.]+ kB\): {of_film}$", shown.talk, re.MULTILINE)
    assert (trained.folder / "film.png").read_bytes().startswith(b"\x89PNG")
    page = (trained.folder / "film.html").read_text(encoding="utf-8")
    assert "tfmViews.film(" in page
    as_json = json.loads(trained("explain", "--over-time", "--json").text)
    assert [one["step"] for one in as_json["moments"]] == [moment.step for moment in moments]
    metrics = (trained.folder / "runs/tiny/metrics.jsonl").read_text(encoding="utf-8")
    validated = [json.loads(line) for line in metrics.splitlines()]
    steps = [one["step"] for one in validated if one["kind"] == "validation"]
    assert [moment.step for moment in moments] == steps


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        ([], 2, "there is no sentence"),
        (["  "], 2, "the sentence is blank"),
        (["a", "--over-time"], 2, "--over-time shows what a training has kept"),
        (["--over-time", "--beam-size", "2"], 2, "--over-time shows what a training has kept"),
        (["a", "--html", "missing/page.html"], 73, "there is no folder missing"),
        (["a", "--set", "decoding.keep_layout=false"], 78, "has no effect on tfm explain"),
        (["a", "--set", "decoding.mbr={}"], 78, ""),
        (["a", "--run", "nothing"], 66, "nothing"),
    ],
)
def test_a_mistake_is_one_clear_message(trained: TfmHere, arguments: list[str], exit_code: int, message: str) -> None:
    finished = trained("explain", *arguments)
    assert finished.exit_code == exit_code, finished.talk
    assert message in finished.talk
    assert finished.text == ""
    assert "Traceback" not in finished.talk


def test_a_run_that_kept_nothing_says_so(trained: TfmHere) -> None:
    file = trained.folder / "runs/tiny/learning.jsonl"
    kept = file.read_bytes()
    file.unlink()
    try:
        finished = trained("explain", "--over-time")
    finally:
        file.write_bytes(kept)
    assert finished.exit_code == 66
    assert "this run has kept no sentence" in finished.talk


@pytest.mark.parametrize(
    ("option", "file", "message", "hint"),
    [
        ("--html", "-", "--html -: this option takes a file", "--html page.html"),
        ("--png", "-", "--png -: this option takes a file", "--png attention.png"),
        ("--png", "a.jpg", "--png a.jpg: the picture is a PNG file", "--png a.png"),
    ],
)
def test_a_name_that_does_not_fit_its_content_is_refused(
    trained: TfmHere, option: str, file: str, message: str, hint: str
) -> None:
    refused = trained("explain", "a sentence", option, file)
    assert refused.exit_code == 2
    assert message in refused.talk
    assert hint in refused.talk
    assert not (trained.folder / file).exists()
