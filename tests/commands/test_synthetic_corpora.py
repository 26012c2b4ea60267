"""`tfm data back-translate` and `tfm data diversify`: corpora that models write, from text and from the training pairs."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.checkpoint.trained_files import load_trained
from transformer_cli.commands.recorded_steps import Steps
from transformer_cli.commands.student import student_command
from transformer_cli.commands.synthetic_corpus import (
    Candidate,
    Chosen,
    NoisyCopy,
    Writer,
    choose,
    noisy_copy,
    translate_file,
)
from transformer_cli.config.data import NoiseConfig
from transformer_cli.process.errors import UsageError
from transformer_cli.storage.writing import append_json_line

from ..experiments import TINY
from ..launcher import TfmHere

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> TfmHere:
    """A folder with the config of a tiny experiment, and text of the target language."""
    here = TfmHere(tmp_path_factory.mktemp("synthetic"))
    (here.folder / "tiny.yaml").write_text(TINY)
    (here.folder / "mono.it").write_text("1 2 3 4 5\n\n6 7 8\n6 7 8.\n9 9 1\n")
    return here


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def back(here: TfmHere) -> dict[str, Any]:
    done = here("data", "back-translate", "--config", "tiny.yaml", "--text", "mono.it=cc0-1.0", "--json")
    assert done.exit_code == 0, done.talk
    found = json.loads(done.text)
    assert isinstance(found, dict)
    return found


def test_text_of_the_target_language_is_translated_by_a_model_of_the_reverse_direction(
    here: TfmHere, back: dict[str, Any]
) -> None:
    folder = here.folder / "tiny-back-translated"
    assert lines(folder / "back-0.target") == ["1 2 3 4 5", "6 7 8", "9 9 1"]
    reverse = load_trained(here.folder / "runs/tiny-reverse").config.data
    assert (reverse.source_language, reverse.target_language) == ("it", "en")
    again = here("translate", "--run", "tiny-reverse", "--input", str(folder / "back-0.target"))
    assert again.lines == lines(folder / "back-0.source")
    assert back["pairs"] == {"mono.it": 3}


def test_the_model_reads_a_tag_before_each_source_that_a_model_wrote(here: TfmHere, back: dict[str, Any]) -> None:
    trained = here("train", "--config", back["config"])
    assert trained.exit_code == 0, trained.talk
    forward = load_trained(here.folder / "runs/tiny-back-translated")
    assert forward.source_tokenizer.entries[-1] == "<BT>"
    assert "<BT>" not in forward.target_tokenizer.entries
    corpora: Any = forward.config.data
    real, written = [one for one in corpora.corpora if one.split == "train"]
    assert (real.weight, real.tag, written.weight, written.tag) == (2.0, None, 1.0, "<BT>")
    assert written.origin.startswith("mono.it, translated back by tiny-reverse (")
    assert written.license == "targets: cc0-1.0"


def test_back_translation_again_does_nothing_again(here: TfmHere, back: dict[str, Any]) -> None:
    again = here("data", "back-translate", "--config", "tiny.yaml", "--text", "mono.it=cc0-1.0")
    assert again.exit_code == 0, again.talk
    for step in ("corpus", "texts", "translate text-0", "choose text-0"):
        assert f"step {step}: done already" in again.talk
    other = here("data", "back-translate", "--config", "tiny.yaml", "--text", "tiny.yaml")
    assert other.exit_code == 2, other.talk
    assert "the step texts was done from another corpus" in other.talk


def test_a_judge_chooses_what_makes_the_text_most_probable(here: TfmHere, back: dict[str, Any]) -> None:
    """The judge is the run of the forward direction; its own command gives the same likelihoods."""
    trained = here("train", "--config", "tiny.yaml")
    assert trained.exit_code == 0, trained.talk
    done = here(
        "data",
        "back-translate",
        "--config",
        "tiny.yaml",
        "--text",
        "mono.it",
        "--run",
        "tiny-reverse",
        "--n-best",
        "3",
        "--judge",
        "tiny",
        "--drop",
        "0.34",
        "--folder",
        "judged",
    )
    assert done.exit_code == 0, done.talk
    folder = here.folder / "judged"
    listed = [line.split("\t") for line in lines(folder / "text-0.n-best.tsv")]
    firsts = [number for number, (rank, _, _) in enumerate(listed) if rank == "1"]
    groups = [range(*ends) for ends in pairwise([*firsts, len(listed)])]
    candidates, targets = [text for _, _, text in listed], lines(folder / "text-0.target")
    repeated = [target for target, group in zip(targets, groups, strict=True) for _ in group]
    (here.folder / "a.txt").write_text("".join(f"{one}\n" for one in candidates))
    (here.folder / "b.txt").write_text("".join(f"{one}\n" for one in repeated))
    likelihoods = here("likelihood", "--run", "tiny", "--source", "a.txt", "--target", "b.txt")
    values = [float(one) / int(two) for one, two in (line.split("\t") for line in likelihoods.lines)]
    best = [max(group, key=values.__getitem__) for group in groups]
    worst = min(best, key=values.__getitem__)
    [written] = folder.glob("text-0.likelihoods-*.txt")
    assert [float(line) for line in lines(written)] == pytest.approx(values, abs=1e-5)
    assert lines(folder / "back-0.source") == [candidates[one] for one in best if one != worst]


def test_models_of_both_directions_write_further_pairs(here: TfmHere) -> None:
    command = ("data", "diversify", "--config", "tiny.yaml", "--models", "2", "--set", "training.max_steps=2")
    done = here(*command, "--json")
    assert done.exit_code == 0, done.talk
    # The newest run is the one that a translation takes, so the last line says which that is.
    assert "tfm translate without --run takes tiny-reverse-2, which translates" in here(*command).text
    facts = json.loads(done.text)
    assert facts["runs"] == ["tiny-forward-1", "tiny-reverse-1", "tiny-forward-2", "tiny-reverse-2"]
    for number in (1, 2):
        assert load_trained(here.folder / f"runs/tiny-reverse-{number}").config.seed == number
    folder = here.folder / "tiny-diversified"
    again = here("translate", "--run", "tiny-reverse-2", "--input", str(folder / "real-0.target"))
    assert again.lines == lines(folder / "written-4-real-0.source")
    trained = here("train", "--config", facts["config"])
    assert trained.exit_code == 0, trained.talk
    (read,) = (line for line in trained.talk.splitlines() if "pairs read" in line)
    assert read.split()[-1] == str(5 * 70)


def test_runs_that_are_there_may_diversify(here: TfmHere, back: dict[str, Any]) -> None:
    done = here("data", "diversify", "--config", "tiny.yaml", "--run", "tiny-reverse", "--folder", "given")
    assert done.exit_code == 0, done.talk
    config = (here.folder / "given/config.yaml").read_text()
    assert "source_path: written-1-real-0.source" in config
    assert "origin: the targets of sequences of tfm, translated by tiny-reverse (" in config


def test_a_run_of_both_directions_writes_the_targets_and_the_sources(here: TfmHere) -> None:
    corpora = [f"{{split: {split}, path: {split}.tsv}}" for split in ("train", "validation", "test")]
    for split, first in (("train", 100), ("validation", 200), ("test", 300)):
        pairs = (f"{number} {number % 7}\t{number % 7} {number}\n" for number in range(first, first + 30))
        (here.folder / f"{split}.tsv").write_text("".join(pairs))
    data = f"{{source: files, source_language: en, target_language: it, corpora: [{', '.join(corpora)}]}}"
    config = re.sub("(?m)^data:.*", lambda _: f"data: {data}\ntokenizer: {{shared: true}}", TINY)
    (here.folder / "files.yaml").write_text(config)
    trained = here("train", "--config", "files.yaml", "--set", "name=both", "--set", "data.both_directions=true")
    assert trained.exit_code == 0, trained.talk
    command = ("data", "diversify", "--config", "files.yaml", "--run", "both", "--folder", "by-both", "--json")
    done = here(*command)
    assert done.exit_code == 0, done.talk
    assert json.loads(done.text)["runs"] == ["both"]
    folder = here.folder / "by-both"
    for read, languages, written in (
        ("source", ("--from", "en", "--to", "it"), "written-1-real-0.target"),
        ("target", ("--from", "it", "--to", "en"), "written-2-real-0.source"),
    ):
        again = here("translate", "--run", "both", *languages, "--input", str(folder / f"real-0.{read}"))
        assert again.lines == lines(folder / written)
    # The last model may begin with the weights of the run that has written.
    begins = ("name=after-both", "data.target_tag=true", "training.init_from=both", "data.cleaning.drop_equal=false")
    settings = [one for given in begins for one in ("--set", given)]
    trained = here("train", "--config", str(folder / "config.yaml"), *settings)
    assert trained.exit_code == 0, trained.talk


CANDIDATES = [
    [Candidate(-0.1, "a dog"), Candidate(-0.2, "the cat sat")],
    [Candidate(-0.1, "no"), Candidate(-0.2, "yes")],
    [Candidate(-0.1, "one"), Candidate(-0.2, "two")],
    [Candidate(-0.1, "three"), Candidate(-0.2, "four")],
]


def test_a_reference_chooses_by_chrf_and_a_judge_by_likelihood() -> None:
    sources, references = ["1", "2", "3", "4"], ["the cat sits", "no"]
    found = choose(sources, references, CANDIDATES, [[-2.0, -1.0], [-0.5, -3.0]], 0.0)
    assert found == Chosen([0, 1, 2, 3], ["the cat sat", "no", "two", "three"])
    without_judge = choose(sources, references, CANDIDATES, None, 0.0)
    assert without_judge.texts == ["the cat sat", "no", "one", "three"]


def test_the_worst_share_is_left_out_of_both_kinds_of_sources() -> None:
    """The first source is less like its reference, and the third less likely, than the other of its kind."""
    sources, references = ["1", "2", "3", "4"], ["the cat sits", "no"]
    found = choose(sources, references, CANDIDATES, [[-2.0, -1.0], [-0.5, -3.0]], 0.5)
    assert found == Chosen([1, 3], ["no", "three"])


def test_noise_keeps_the_links_of_pairs_whose_words_stay_in_their_places() -> None:
    noise = NoiseConfig(capitals=0.999999)
    copy = noisy_copy(["a b", "A"], ["c d", "B"], ["0-1 1-0", "0-0"], noise, seed=1)
    assert copy == NoisyCopy(["A B"], ["C D"], ["0-1 1-0"])
    ends = NoiseConfig(missing_end=0.999999)
    apart = noisy_copy(["a b ?", "a b?"], ["c d ?", "c d?"], ["0-0", "1-1"], ends, seed=1)
    assert apart == NoisyCopy(["a b", "a b"], ["c d", "c d"], ["", "1-1"])


def test_a_killed_step_shows_its_cost_as_a_lower_bound(tmp_path: Path) -> None:
    def fail() -> None:
        raise KeyboardInterrupt

    steps = Steps(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        steps.timed("stopped", fail)
    append_json_line(tmp_path / "steps.jsonl", {"step": "killed", "begun": True})
    costs = Steps(tmp_path).costs()
    assert not costs["stopped"].is_lower_bound
    assert costs["killed"].is_lower_bound


def test_a_student_without_a_teacher_is_told_the_option() -> None:
    with pytest.raises(UsageError, match="needs one teacher") as refused:
        student_command("copy.yaml")
    assert "--teacher en-it" in str(refused.value.hint)


def test_several_candidates_are_those_of_the_search_without_repairs(tmp_path: Path) -> None:
    """Repairs search again; here, a reference or a model chooses among the candidates."""
    source, run = tmp_path / "in.en", str(Path(__file__).parents[2] / "docs/run")
    source.write_text("tHe DoG iS bIg.\n")
    here, found = TfmHere(tmp_path), {}
    for repair in ("true", "false"):
        done = here(
            "translate", "--run", run, "--input", "in.en", "--n-best", "2", "--set", f"decoding.repair={repair}"
        )
        found[repair] = done.lines
    writer = Writer(runs=(run,))
    translate_file(source, tmp_path / "n-best.tsv", writer, 2, Steps(tmp_path / "steps"))
    assert lines(tmp_path / "n-best.tsv") == found["false"] != found["true"]
    writer = Writer(runs=(run,), overrides=("decoding.repair=true",))
    translate_file(source, tmp_path / "asked.tsv", writer, 2, Steps(tmp_path / "asked"))
    assert lines(tmp_path / "asked.tsv") == found["true"]
