"""The laboratory: configs of the variants, trainings that variants share, and runs that no other command finds."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from transformer_cli.checkpoint import find_run
from transformer_cli.extensions.lessons.ablations.ablation import Ablation, Variant
from transformer_cli.extensions.lessons.ablations.known_ablations import ABLATIONS, ablation_named
from transformer_cli.extensions.lessons.ablations.laboratory import (
    configs_of,
    remove_replaced,
    try_variants,
)
from transformer_cli.extensions.lessons.ablations.measurements import MEASURES
from transformer_cli.extensions.lessons.ablations.replaced_parts import REPLACEMENTS
from transformer_cli.process.errors import ConfigError, MissingInputError, UsageError
from transformer_cli.storage import read_json_lines

TWO_STEPS = (
    "training.max_steps=2", "training.log_every=1", "data.num_pairs=200", "validation.max_sentences=4",
    "validation.sequence_lengths=[5]",
)  # fmt: skip
WHOLE = pytest.mark.parametrize("ablation", ABLATIONS, ids=lambda one: one.name)


@WHOLE
def test_each_ablation_has_valid_configs_that_differ(ablation: Ablation) -> None:
    configs = configs_of(ablation)
    trained = {
        (config.model_dump_json(), v.replaced, v.decoding)
        for config, v in zip(configs, ablation.variants, strict=True)
    }
    assert len(trained) == len(ablation.variants)
    assert all(config.runtime.threads == 1 for config in configs)


@WHOLE
def test_each_ablation_names_known_measures_and_parts(ablation: Ablation) -> None:
    assert set(ablation.measures) <= set(MEASURES)
    assert {one.replaced for one in ablation.variants} - {None} <= set(REPLACEMENTS)


@WHOLE
def test_each_ablation_asks_a_question_with_one_right_answer(ablation: Ablation) -> None:
    assert 2 <= len(set(ablation.options)) == len(ablation.options)
    assert 1 <= ablation.right <= len(ablation.options)
    texts = ablation.subject, ablation.question, ablation.came_out, ablation.why, ablation.read_on
    assert all(texts)
    assert ablation.question.endswith("?")


def test_ablations_have_different_names() -> None:
    assert len({one.name for one in ABLATIONS}) == len(ABLATIONS) >= 10


def test_an_unknown_ablation_is_refused_with_a_similar_name() -> None:
    with pytest.raises(UsageError, match="did you mean no-positions"):
        ablation_named("no-position")


def test_an_override_holds_for_all_variants_but_not_against_them() -> None:
    configs = configs_of(ablation_named("no-positions"), ["seed=7", "model.positions=learned"])
    assert [config.seed for config in configs] == [7, 7]
    assert [config.model.positions for config in configs] == ["learned", "none"]


def test_a_wrong_override_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"did you mean training\.max_steps"):
        configs_of(ablation_named("no-positions"), ["training.max_step=7"])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_runs_of_an_ablation_are_not_found_as_the_newest_run(here: Path) -> None:
    try_variants(ablation_named("no-positions"), Path("ablations/no-positions"), TWO_STEPS)
    with pytest.raises(MissingInputError, match="no run under runs/"):
        find_run()
    assert find_run("ablations/no-positions/no-positions").is_dir()


def test_a_finished_training_is_measured_again_with_the_same_result(here: Path) -> None:
    ablation, folder = ablation_named("no-positions"), Path("ablations/x")
    first = try_variants(ablation, folder, TWO_STEPS)
    again = try_variants(ablation, folder, TWO_STEPS)
    assert [one.figures for one in again] == [one.figures for one in first]
    assert len(list(read_json_lines(folder / "with-positions/metrics.jsonl"))) == 3


def test_variants_that_differ_in_decoding_share_one_training(here: Path) -> None:
    search = Variant("greedy"), Variant("beam", decoding=("decoding.beam_size=4",))
    ablation = replace(ablation_named("no-label-smoothing"), variants=search)
    outcomes = try_variants(ablation, Path("x"), TWO_STEPS[:-1])
    assert len({one.folder for one in outcomes}) == ablation.num_trainings == 1
    assert len(outcomes) == len(ablation.variants) > 1


def test_checkpoints_of_a_model_with_a_replaced_part_are_removed(here: Path) -> None:
    ablation = ablation_named("no-scaling")
    usual, changed = outcomes = try_variants(ablation, Path("x"), TWO_STEPS)
    assert remove_replaced(ablation, outcomes) == [changed.folder]
    assert find_run(str(usual.folder)) == usual.folder
    with pytest.raises(MissingInputError, match="no checkpoint yet"):
        find_run(str(changed.folder))


def test_another_seed_gives_other_figures(here: Path) -> None:
    ablation = ablation_named("no-positions")
    one, other = (
        try_variants(ablation, Path(seed), [*TWO_STEPS, f"seed={seed}"])[0].figures["loss"]
        for seed in ("1", "2")
    )
    assert one != other


def test_an_outcome_is_plain_json(here: Path) -> None:
    [outcome, *_] = try_variants(ablation_named("no-positions"), Path("x"), TWO_STEPS)
    facts = json.loads(json.dumps(outcome.as_json()))
    assert facts["variant"] == "with positions"
    assert set(facts["figures"]) == set(ablation_named("no-positions").measures)
