"""`--set`: how a setting is named, which values are refused, and what an override leaves as it was."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.config import CleaningConfig, SequencesData, load_config, shipped_configs
from transformer_cli.config.loading import find_config
from transformer_cli.config.refusal import setting_paths
from transformer_cli.process.errors import ConfigError, MissingInputError

TASK_RULES = SequencesData(source="sequences").cleaning


def refused(config: str | Path, *overrides: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load_config(config, overrides)
    return caught.value


@pytest.mark.parametrize("override", ["data.cleaning.max_words=100", "data.cleaning={max_words: 100}"])
def test_a_part_of_the_cleaning_rules_leaves_the_others_at_the_defaults_of_the_task(
    override: str,
) -> None:
    rules = load_config("copy.yaml", [override]).data.cleaning
    assert rules == TASK_RULES.model_copy(update={"max_words": 100})
    assert (rules.drop_equal, rules.drop_duplicates) == (False, False)


def test_a_rule_of_a_task_can_be_switched_on_and_a_wrong_one_is_named() -> None:
    rules = load_config("copy.yaml", ["data.cleaning.drop_duplicates=true"]).data.cleaning
    assert rules == TASK_RULES.model_copy(update={"drop_duplicates": True})
    assert "data.cleaning.max_wrds is not a setting" in str(refused("copy.yaml", "data.cleaning.max_wrds=3"))
    assert load_config("en-it.yaml").data.cleaning == CleaningConfig()


def test_a_preset_without_an_effect_is_refused_with_the_settings_that_hide_it() -> None:
    error = refused("copy.yaml", "model.preset=tiny")
    assert "--set model.preset=tiny" in error.message
    assert "model.d_model, model.num_heads, model.d_ff" in error.message
    assert "no effect" in error.message
    assert load_config("en-it.yaml", ["model.preset=tiny"]).model.d_model == 128


def test_a_preset_may_have_further_overrides_which_a_refusal_names() -> None:
    error = refused("en-it.yaml", "model.preset=tiny", "model.num_heads=5")
    assert "(with --set model.num_heads=5)" in error.message


def test_a_refusal_names_each_override_once_and_no_other() -> None:
    """copy.yaml has no section `runtime`, so the first override makes it."""
    wrong = "runtime.cuda_graphs=true", "runtime.sharding=full"
    error = refused("copy.yaml", "runtime.threads=1", *wrong)
    assert error.message.endswith(f"(with --set {wrong[0]}, --set {wrong[1]})")


@pytest.mark.parametrize("name", ["data.corpora[0].weight", "data.corpora.0.weight"])
def test_an_item_of_a_list_is_named_with_a_dot_or_in_brackets(name: str) -> None:
    config = load_config("multi30k-en-de.yaml", [f"{name}=2.5"])
    assert config.data.source == "files"
    assert [corpus.weight for corpus in config.data.corpora] == [2.5, 1.0, 1.0]


@pytest.mark.long
@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("training[max_steps]=5", "did you mean training.max_steps?"),
        ("training.[max_steps]=5", "did you mean training.max_steps?"),
        ("training[0]=5", "training is not a list"),
        ("data.corpora[9].weight=2", "9 is not an index of a list with 3 items"),
        ("data.corpora[-1].weight=2", "-1 is not an index"),
        (f"data.corpora[{'9' * 5000}].weight=2", "is not an index"),
        ("data.corpora[0=2", "bracket"),
        ("data.corpora]0[=2", "bracket"),
        ("data.corpora[0]x=2", "bracket"),
        ("[=1", "bracket"),
        ("training.max_steps=# 5", "no value after the ="),
        ("training.max_steps=---", "no value after the ="),
        (f"{'a.' * 5000}a=1", "nested deeper than"),
        (f"training.max_steps.{'a.' * 5000}a=1", "nested deeper than"),
    ],
)
def test_a_name_that_leads_nowhere_and_a_missing_value_are_refused(override: str, problem: str) -> None:
    assert problem in refused("multi30k-en-de.yaml", override).message


@pytest.mark.parametrize("key", ["a[b]", "[", "]", "data[0]", "int", "training[max_steps]", "''"])
def test_a_key_with_brackets_in_a_file_is_refused_with_its_name(key: str, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    text = "name: a\ndata: {source: phrasebook}\ntraining: {max_steps: 1, batch_sentences: 4}\n"
    file.write_text(f'{text}"{key}": 1\nmodel: {{"{key}": 2}}\n', encoding="utf-8")
    message = refused(file).message
    assert f"a.yaml:4: {key} is not a setting" in message
    assert f"a.yaml:5: model.{key} is not a setting" in message


NAMES = st.sampled_from(sorted(setting_paths({"source": "files"}))) | st.text(max_size=12)
SEPARATORS = st.sampled_from([".", "[", "]", "][", "..", "=", " ", ""])
KEYS = st.lists(st.tuples(NAMES, SEPARATORS), min_size=1, max_size=4).map(
    lambda parts: "".join(name + separator for name, separator in parts)
)
VALUES = st.text(max_size=30) | st.sampled_from(
    ["", "null", "[]", "{}", "[[[[", "{a: {b: c}}", "1e999", "9" * 5000, "- - -", "\ud800", "\0", "[1, x]", "%A", "? a"]
)


@pytest.mark.long
@given(st.sampled_from(["multi30k-en-de.yaml", "copy.yaml", "en-it.yaml"]), KEYS, VALUES)
def test_any_override_is_taken_or_refused_cleanly(config: str, key: str, value: str) -> None:
    with contextlib.suppress(ConfigError):
        load_config(config, [f"{key}={value}"])


@pytest.mark.long
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
        max_leaves=12,
    )
)
def test_any_yaml_file_is_taken_or_refused_cleanly(content: object) -> None:
    import tempfile

    import yaml

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a.yaml"
        file.write_text(yaml.safe_dump(content), encoding="utf-8", errors="surrogatepass")
        with contextlib.suppress(ConfigError):
            load_config(file)


def test_a_config_is_found_without_its_ending_and_the_own_file_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.yaml").write_text("seed: 1\n", encoding="utf-8")
    (tmp_path / "copy.yml").write_text("nme: 1\n", encoding="utf-8")
    (tmp_path / "en-it").mkdir()
    assert find_config("two") == Path("two.yaml")
    assert find_config("copy") == Path("copy.yml")
    assert find_config("copy.yaml") == shipped_configs()["copy.yaml"]
    assert find_config("en-it") == shipped_configs()["en-it.yaml"]
    assert "copy.yml:1: nme is not a setting" in refused("copy").message
    with pytest.raises(MissingInputError, match="a folder") as caught:
        find_config(".")
    assert "two.yaml" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("two.yam", "two.yaml"),
        ("tow", "two.yaml"),
        ("TWO.YAML", "two.yaml"),
        ("configs/tow.yaml", "configs/two.yml"),
        ("en-itt.yaml", "en-it.yaml"),
        ("configs/en-it.yml", "en-it.yaml"),
    ],
)
def test_a_missing_config_names_the_nearest_file_beside_it_and_then_a_shipped_one(
    name: str, suggested: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").mkdir()
    (tmp_path / "two.yaml").touch()
    (tmp_path / "two.txt").touch()
    (tmp_path / "configs" / "two.yml").touch()
    with pytest.raises(MissingInputError) as caught:
        find_config(name)
    assert caught.value.hint == f"did you mean {suggested}?"


def test_a_config_that_nothing_resembles_gets_a_short_hint_with_the_way_to_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingInputError) as caught:
        find_config("nope.yaml")
    shipped = shipped_configs()
    hint = str(caught.value.hint)
    named = hint.partition(": ")[2].partition(";")[0].split(", ")
    assert len(named) == 3
    assert set(named) <= set(shipped)
    assert hint.endswith(f"all {len(shipped)} are in the folder {shipped['copy.yaml'].parent}")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"seed": 3}, '["seed=3"]'),
        ({"training.max_steps": 9, "name": "a"}, '["training.max_steps=9", "name=\\"a\\""]'),
        ({"training": {"max_steps": 9}}, '["seed=3", "training.max_steps=100"]'),
        ([("seed", 3)], '["seed=3", "training.max_steps=100"]'),
    ],
)
def test_overrides_of_a_program_that_are_no_texts_are_answered_with_texts(given: Any, meant: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config("copy.yaml", given)
    assert "--set" not in str(caught.value)
    assert "a list of texts such as 'section.field=value' is expected" in caught.value.message
    assert caught.value.hint == f"write {meant}"
    load_config("copy.yaml", json.loads(meant))


def test_a_setting_without_a_section_is_overridden_by_its_name() -> None:
    assert load_config("copy.yaml", ["seed=3"]).seed == 3
    assert "--set seed=3" in str(refused("copy.yaml", "seed").hint)
