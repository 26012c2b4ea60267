"""From YAML and overrides to a config: what is accepted, and what each refusal says."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.config import (
    Config,
    load_config,
    load_stored_config,
    loading,
    shipped_configs,
    to_yaml,
)
from transformer_cli.config.loading import check_settings, parse_yaml, stored_config
from transformer_cli.config.refusal import setting_paths
from transformer_cli.config.section import meanings
from transformer_cli.process.errors import ConfigError, MissingInputError

MINIMAL = """\
name: a
data: {source: phrasebook}
training: {max_steps: 10, batch_sentences: 4}
"""


def refusal(text: str, *overrides: str) -> str:
    """The message of the ConfigError that a config file with this text gives."""
    with pytest.raises(ConfigError) as caught:
        check_settings_of(text, *overrides)
    return str(caught.value)


def check_settings_of(text: str, *overrides: str) -> Config:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.yaml"
        path.write_text(text, encoding="utf-8")
        return load_config(path, overrides)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(shipped_configs()))
def test_every_shipped_config_is_valid_and_survives_a_round_trip(name: str) -> None:
    config = load_config(name)
    again = check_settings(parse_yaml(to_yaml(config), name), name)
    assert again == config


def test_a_null_that_differs_from_the_default_survives_a_round_trip() -> None:
    config = check_settings_of(MINIMAL, "training.clip_norm=null", "data.cleaning.max_words=null")
    again = check_settings(parse_yaml(to_yaml(config), "x"), "x")
    assert again == config
    assert again.training.clip_norm is None


def test_a_shipped_config_is_found_without_its_ending() -> None:
    assert load_config("copy") == load_config("copy.yaml")


def test_a_config_may_be_named_after_its_corpus(tmp_path: Path) -> None:
    file = tmp_path / "phrases.csv.yaml"
    file.write_text("name: a\ndata: {source: phrasebook}\ntraining: {max_steps: 1, batch_sentences: 1}\n")
    assert load_config(file).name == "a"


def test_an_override_replaces_one_value_and_keeps_the_rest() -> None:
    config = load_config("copy.yaml", ["training.max_steps=7", "training.betas=[0.8, 0.9]"])
    assert config.training.max_steps == 7
    assert config.training.betas == (0.8, 0.9)
    assert config.model == load_config("copy.yaml").model


def test_an_override_reaches_into_a_list() -> None:
    config = load_config("multi30k-en-de.yaml", ["data.corpora.0.weight=2.5"])
    assert config.data.source == "files"
    assert config.data.corpora[0].weight == 2.5


def test_a_preset_fills_in_what_is_not_given() -> None:
    config = check_settings_of(MINIMAL + "model: {preset: tiny, d_ff: 99}\n")
    assert (config.model.d_model, config.model.d_ff, config.model.encoder_layers) == (128, 99, 4)


def test_a_misspelt_setting_is_named_with_its_line_and_the_right_spelling() -> None:
    message = refusal(MINIMAL + "model:\n  d_modle: 8\n")
    assert "a.yaml:5: model.d_modle is not a setting; did you mean model.d_model?" in message


def test_a_setting_of_another_section_is_suggested() -> None:
    assert "did you mean training.max_steps?" in refusal(MINIMAL + "max_steps: 3\n")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("model: {d_model: 65}", "multiple of num_heads"),
        ("model: {positions: rotary, d_model: 24}", "even head width"),
        ("model: {num_kv_heads: 3}", "multiple of num_kv_heads"),
        ("model: {tie_embeddings: all}", "needs tokenizer.shared"),
        ("model: {dropout: 1.0}", "less than 1"),
        ("tokenizer: {kind: unigram, min_frequency: 2}", "no effect"),
        ("decoding: {num_best: 9}", "above beam_size"),
        ("seed: -1", "at least 0 is expected"),
        ("seed: 1.5", "a whole number is expected"),
        ("seed: yes", "a whole number is expected"),
        ("runtime: {device: tpu}", "'auto', 'cpu', 'cuda' or 'mps'"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_with_a_reason(line: str, reason: str) -> None:
    assert reason in refusal(MINIMAL + line)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ("batch_sentences: 4", "max_steps or max_epochs"),
        ("max_steps: 3", "neither batch_tokens nor batch_sentences is given"),
        ("max_steps: 3, batch_sentences: 4, schedule: noam, learning_rate: 1e-3", "no effect"),
        ("max_steps: 3, batch_sentences: 4, noam_factor: 2", "no effect"),
        ("max_epochs: 3, batch_sentences: 4, schedule: cosine", "needs max_steps"),
        ("max_steps: 3, batch_sentences: 4, weight_decay: 0.1", "no effect"),
        (
            "max_steps: 3, batch_sentences: 4, optimizer: adafactor, betas: [0.9, 0.99]",
            "betas has no effect with optimizer adafactor",
        ),
        ("max_steps: 3, batch_sentences: 4, optimizer: adafactor, epsilon: 1e-8", "epsilon has no effect"),
        ("max_epochs: 3, batch_sentences: 4, schedule: linear", "schedule linear needs max_steps, where it reaches 0"),
        ("max_steps: 3, batch_sentences: 4, min_learning_rate: 0.0", "remove it, or set schedule: cosine or linear or"),
        (
            "max_steps: 30, batch_sentences: 4, schedule: cosine, min_learning_rate: 7e-4",
            "must be below learning_rate (0.0007)",
        ),
        ("max_steps: 30, batch_sentences: 4, decay_steps: 3", "decay_steps has no effect with schedule inverse_sqrt"),
        ("max_steps: 30, batch_sentences: 4, plateau_factor: 0.3", "set schedule: plateau"),
        ("max_steps: 30, batch_sentences: 4, schedule: constant, plateau_patience: 3", "no effect"),
        ("max_steps: 30, batch_sentences: 4, schedule: warmup_stable_decay", "needs decay_steps"),
        (
            "max_steps: 30, batch_sentences: 4, schedule: warmup_stable_decay, decay_steps: 9, warmup_steps: 22",
            "are more than max_steps (30)",
        ),
        ("max_epochs: 3, batch_sentences: 4, schedule: warmup_stable_decay, decay_steps: 9", "needs max_steps"),
        (
            "max_steps: 30, batch_sentences: 4, schedule: plateau, patience: 3",
            "after 3 validations (plateau_patience); raise patience",
        ),
        ("max_steps: 30, batch_sentences: 4, ema_decay: 1.0", "less than 1"),
        ("max_steps: 3, batch_sentences: 4, best_metric: ter", "not among validation.scores"),
    ],
)
def test_training_settings_that_contradict_each_other_are_refused(settings: str, reason: str) -> None:
    assert reason in refusal(f"name: a\ndata: {{source: phrasebook}}\ntraining: {{{settings}}}\n")


@pytest.mark.long
@pytest.mark.parametrize("value", ["-1", "0", ".nan", ".inf", "1e300", "'text'", "[1]", "{a: 1}"])
@pytest.mark.parametrize(
    "field",
    [
        "training.max_steps",
        "training.batch_tokens",
        "model.d_model",
        "model.num_heads",
        "model.encoder_layers",
        "training.clip_norm",
    ],
)
def test_absurd_numbers_are_refused_for_sizes(field: str, value: str) -> None:
    with pytest.raises(ConfigError):
        load_config("en-it.yaml", [f"{field}={value}"])


def test_numbers_in_scientific_notation_are_numbers() -> None:
    config = check_settings_of(MINIMAL, "training.learning_rate=1e-4")
    assert config.training.learning_rate == 1e-4


@pytest.mark.parametrize(("text", "number"), [(".01", 0.01), ("-.5", -0.5), (".5e-1", 0.05)])
def test_a_number_may_begin_with_its_point(text: str, number: float) -> None:
    assert parse_yaml(text, "x") == number
    assert parse_yaml(f"a{text}", "x") == f"a{text}"


def test_a_character_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"a\.yaml: not YAML"):
        parse_yaml('"\\UFFFFFFFF"', "a.yaml")


@pytest.mark.parametrize("text", ["no", "on", "off", "yes", "12:30", "0777", "1_000"])
def test_only_true_false_and_null_are_special_words(text: str) -> None:
    assert parse_yaml(text, "x") == text


@pytest.mark.parametrize(("text", "found"), [("", "nothing"), ("- 1\n", "a list"), ("a", "text")])
def test_a_stored_config_that_is_no_mapping_is_refused_with_its_place(text: str, found: str) -> None:
    with pytest.raises(ConfigError, match=rf"step-3/config\.yaml: a config is .*, found {found}"):
        stored_config(text, "step-3/config.yaml")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: 1\na: 2\n", "a.yaml:2: a is given twice, first in line 1"),
        ("a: &x 1\n", "anchors"),
        ("a: *x\n", "alias"),
        ("a: !!python/object:os.system {}\n", "tags"),
        ("\ta: 1\n", "a.yaml:1"),
        ("a:\n    b: 1\n  c: 2\n", "a.yaml:3: the indentation of this line does not fit the lines above it"),
        ("a:\n  b: x\n    c: y\n", "a.yaml:3: the indentation of this line does not fit"),
        ("a: b: c\n", "a.yaml:1: a second colon in one line"),
        ("", "a mapping of sections, found nothing"),
        ("- 1\n", "found a list"),
        ("1: 2\n", "a key must be text"),
        ("a: " + "[" * 50 + "]" * 50, "nested deeper"),
        ("a: ${HOME}\n", "is not a setting"),
        ("data:\nmodle: 1\n", "modle is not a setting"),
        ("data: 5\nmodle: 1\n", "modle is not a setting"),
        ("data.both_directions: true\n", "write both_directions below data:"),
        ("data.source: hub\ndata.split: a\n", "data.split is not a setting"),
        ("data: {source: hub, cleaning.max_words: 3}\n", "write max_words below data.cleaning:"),
        ("model: {}\ntraining.max_steps: 5\n", "write max_steps below training:"),
        ("data: {streaming: true}\n", "data.source is missing"),
        ("_target_: os.system\n", "is not a setting"),
    ],
)
def test_the_traps_of_yaml_are_refused(text: str, reason: str) -> None:
    assert reason in refusal(text)


def test_a_config_of_ten_megabytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    path.write_bytes(b"#" * 10_000_000)
    with pytest.raises(ConfigError, match="more than"):
        load_config(path)


def test_a_missing_config_names_the_nearest_shipped_one() -> None:
    with pytest.raises(MissingInputError, match=r"did you mean en-it\.yaml"):
        load_config("en-itt.yaml")


@pytest.mark.parametrize("override", ["training.max_steps", "=3", ".=3", "training..x=3"])
def test_an_override_without_a_field_and_a_value_is_refused(override: str) -> None:
    with pytest.raises(ConfigError, match="NAME=VALUE"):
        load_config("copy.yaml", [override])


def test_every_setting_has_a_sentence() -> None:
    from pydantic import BaseModel

    def undocumented(section: type[BaseModel], prefix: str) -> list[str]:
        found = []
        for name, field in section.model_fields.items():
            if name not in meanings(section):
                found.append(f"{prefix}{name}")
            if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
                found += undocumented(field.annotation, f"{prefix}{name}.")
        return found

    assert undocumented(Config, "") == []
    assert "training.warmup_steps" in set(setting_paths())


@pytest.mark.long
@given(st.text(max_size=200))
def test_any_text_is_a_value_or_a_clean_refusal(text: str) -> None:
    try:
        value = parse_yaml(text, "x")
    except ConfigError:
        return
    assert not isinstance(value, float) or not math.isnan(value)


@pytest.mark.parametrize(
    ("overrides", "blamed"),
    [
        (["name=junk", "model.tie_embeddings=all"], "(with --set model.tie_embeddings=all)"),
        (["seed=2", "model.num_heads=5"], "(with --set model.num_heads=5)"),
        (
            ["data.streaming=true"],
            "data.streaming is a setting of data.source: files or hub, but data.source is sequences",
        ),
        (
            ["tokenizer.min_frequency=null"],
            "a whole number is expected, in digits, such as 1000, found null",
        ),
        (["modle.positions=rotary"], "--set modle.positions=rotary: modle is not a setting"),
        (["model.d_model=: :"], "--set model.d_model=: :: expected"),
        (["model.d_model=1e3"], "a whole number is expected, in digits"),
        (["validation.sequence_lengths=[]"], "at least one item is expected"),
    ],
)
def test_the_override_that_is_at_fault_is_named_and_no_other(overrides: list[str], blamed: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config("copy.yaml", overrides)
    assert blamed in refused.value.message
    assert "name=junk" not in refused.value.message
    assert "seed=2" not in refused.value.message


CORPORA = """
name: mine
data:
  source: files
  source_language: en
  target_language: it
  corpora:
    - path: pairs.tsv
      split: train
training: {max_steps: 5, batch_sentences: 2}
"""


@pytest.mark.parametrize(
    ("line", "overrides", "told"),
    [
        (
            "      wieght: 2",
            [],
            "a.yaml:10: data.corpora.0.wieght is not a setting; did you mean data.corpora.0.weight?",
        ),
        ("      source_feild: 0", [], "did you mean data.corpora.0.source_field?"),
        ("      tag: BT", [], "a.yaml:10: data.corpora.0.tag: a tag in angle brackets is expected, such as <BT>"),
        ("      weight: -1", [], "a.yaml:10: data.corpora.0.weight: "),
        (
            "",
            ["data.corpora=[{path: pairs.tsv, weight: -1}]"],
            "--set data.corpora=[{path: pairs.tsv, weight: -1}]: data.corpora.0.weight: ",
        ),
        (
            "",
            ["data.corpora=[{path: pairs.tsv, wieght: 1}]"],
            "--set data.corpora=[{path: pairs.tsv, wieght: 1}]: data.corpora.0.wieght is not a setting",
        ),
        (
            "",
            ["data.source_language=english language"],
            "the code of a language is expected, such as en or pt-BR, found 'english language'",
        ),
        ("", ["name=a/b"], "--set name=a/b: name: at most 100 letters, digits, '.', '_' and '-' are expected"),
        ("", ["training.betas=[0.9]"], "training.betas: number 2 of the list is missing, found [0.9]"),
    ],
)
def test_a_fault_in_a_list_is_named_with_its_place_and_what_is_expected(
    tmp_path: Path, line: str, overrides: list[str], told: str
) -> None:
    config = tmp_path / "a.yaml"
    config.write_text(CORPORA.replace("      split: train\n", f"      split: train\n{line}\n"))
    with pytest.raises(ConfigError) as refused:
        load_config(config, overrides)
    assert told in refused.value.message
    assert refused.value.message.count("\n") == 0


def test_a_score_that_nobody_computes_is_refused_with_both_ways_out() -> None:
    with pytest.raises(ConfigError) as refused:
        load_config("copy.yaml", ["validation.scores=[ter]", "training.best_metric=bleu"])
    assert refused.value.hint == "add bleu to validation.scores, or set training.best_metric to ter or loss"


@pytest.mark.parametrize("split", ["null", "train"])
def test_shares_that_leave_nothing_for_training_are_refused(tmp_path: Path, split: str) -> None:
    config = tmp_path / "a.yaml"
    config.write_text(CORPORA.replace("split: train", f"split: {split}"))
    shares = ["data.validation_share=0.5", "data.test_share=0.5"]
    if split == "train":  # all of this corpus is for training
        load_config(config, shares)
        return
    with pytest.raises(ConfigError, match="1 together, so no training pair is left"):
        load_config(config, shares)


def test_a_setting_that_an_earlier_version_did_not_write_is_as_that_version_worked(
    tmp_path: Path,
) -> None:
    file = tmp_path / "config.yaml"
    for text in (MINIMAL, MINIMAL.replace("phrasebook}", "phrasebook, cleaning: {max_words: 9}}")):
        file.write_text(text)
        assert load_stored_config(file).data.cleaning.normalize_invisible is None
        assert load_config(file).data.cleaning.normalize_invisible is True  # for a new run
        assert load_stored_config(file).data.cleaning.join_white_space is False
        assert load_config(file).data.cleaning.join_white_space is True
    for config in (load_config(file), load_stored_config(file)):
        file.write_text(to_yaml(config))
        assert load_stored_config(file) == config


def test_an_imported_tokenizer_normalises_its_text_itself(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(MINIMAL)
    assert load_config(file).applied_cleaning.normalize_invisible is True
    imported = load_config(file, ["tokenizer.kind=sentencepiece", "training.init_from=b"])
    assert imported.applied_cleaning.normalize_invisible is False


def values_and_lines(value: object) -> object:
    if isinstance(value, loading.Mapping):
        return {key: (value.lines[key], values_and_lines(one)) for key, one in value.items()}
    return [values_and_lines(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", ["copy.yaml", "en-it.yaml", "multi30k-en-de.yaml"])
def test_the_parser_in_c_reads_what_that_in_python_reads(name: str) -> None:
    shipped = loading.find_config(name).read_text(encoding="utf-8")
    for text in (shipped, to_yaml(load_config(name))):
        found = loading._FastLoader(text).get_single_data()
        assert values_and_lines(found) == values_and_lines(loading._Loader(text).get_single_data())


@pytest.mark.parametrize("text", ["a: [1, 2\nb: 3\n", "a: 'b\n", "a: b: c\n", "- 1\nb: 2\n", "a: \tb\t:c\n"])
def test_an_error_has_the_words_of_the_parser_in_python(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError) as fast:
        stored_config(text, "a.yaml")
    monkeypatch.setattr(loading.yaml, "__with_libyaml__", False)
    with pytest.raises(ConfigError) as slow:
        stored_config(text, "a.yaml")
    assert str(fast.value) == str(slow.value)


@pytest.mark.parametrize("parse", [parse_yaml, stored_config])
@pytest.mark.parametrize("has_c", [False, True])
def test_what_only_the_parser_in_c_accepts_is_refused_on_every_machine(
    parse: Callable[[str, str], object], has_c: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "name: [true? , 1]\n"
    assert loading._FastLoader(text).get_single_data() == {"name": ["true?", 1]}
    monkeypatch.setattr(loading.yaml, "__with_libyaml__", has_c)
    with pytest.raises(ConfigError, match=r"^a\.yaml:1: "):
        parse(text, "a.yaml")


def test_a_stored_config_is_read_by_the_parser_in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    text = to_yaml(load_config("copy.yaml"))
    monkeypatch.setattr(loading, "_Loader", None)  # the one in Python
    assert stored_config(text, "x").name == "copy"
