"""`tfm export`, `tfm card` and `tfm info` from the command line."""

import json
from pathlib import Path

import pytest

from transformer_cli.config import Config, load_config
from transformer_cli.extensions.exchange.export import FORMATS, possible_formats, require_open
from transformer_cli.process.errors import ConfigError

from ....launcher import Tfm
from ..small_runs import ENGLISH, random_run

pytest.importorskip("ctranslate2")


def config_with(*overrides: str) -> Config:
    return load_config("en-it.yaml", overrides)


@pytest.mark.long
def test_an_export_says_what_was_compared(tfm: Tfm) -> None:
    random_run(tfm.folder / "runs/small")
    (tfm.folder / "in.txt").write_text("\n".join(ENGLISH) + "\n", encoding="utf-8")
    arguments = ("--run", "small", "--to", "ctranslate2", "--output", "out")
    finished = tfm("export", *arguments, "--input", "in.txt", "--license", "cc0-1.0", "--json")
    assert finished.exit_code == 0, finished.talk
    facts = json.loads(finished.text)
    assert facts["checks"][0]["num_texts"] == len(ENGLISH)
    assert "license: cc0-1.0" in (tfm.folder / "out/README.md").read_text(encoding="utf-8")
    again = tfm("export", *arguments)
    assert again.exit_code == 0, again.talk
    assert again.lines[0].startswith("exported   out (")
    assert "200 texts of random words" in again.lines[1]
    assert "token" in again.lines[2]
    refused = tfm("export", "--run", "small", "--to", "argos", "--output", "out.argosmodel")
    assert refused.exit_code == ConfigError.exit_code
    assert "tokenizer.kind: wordlevel" in refused.talk
    assert sorted(path.name for path in tfm.folder.iterdir()) == ["in.txt", "out", "runs"]


def test_a_card_goes_to_standard_output(tfm: Tfm) -> None:
    random_run(tfm.folder / "runs/small")
    finished = tfm("card", "--run", "small", "--base-model", "a/b")
    assert finished.exit_code == 0, finished.talk
    assert finished.lines[0] == "---"
    assert "base_model: a/b" in finished.lines
    assert "# small" in finished.lines


def test_info_shows_the_exits_of_a_config(tfm: Tfm) -> None:
    finished = tfm("info", "--config", "en-it.yaml", "--set", "model.qk_norm=true")
    exits = [line.split(maxsplit=3)[2:] for line in finished.lines if line.startswith("export --to")]
    assert [name for name, _ in exits] == [one.name for one in FORMATS]
    shown = dict(exits)
    assert shown["onnx"] == "possible"
    assert shown["ctranslate2"] == "not with model.qk_norm: true"
    assert "model.qk_norm: true" in shown["hf"]
    as_json = json.loads(tfm("info", "--config", "en-it.yaml", "--json").text)["exports"]
    assert [name for name, found in as_json.items() if not found] == ["ctranslate2", "hf", "onnx"]
    assert as_json["argos"][0]["setting"] == "tokenizer.kind: wordlevel"


@pytest.mark.parametrize(
    "setting", ["model.num_kv_heads=1", "model.norm=std_layernorm", "model.norm_placement=residual_of_normed"]
)
def test_a_refusal_names_the_setting_and_the_formats_that_can(setting: str) -> None:
    config = config_with(setting)
    with pytest.raises(ConfigError) as refusal:
        require_open(config, FORMATS[0])
    name, _, value = setting.partition("=")
    assert f"{name}: {value}" in refusal.value.message
    able = [name for name, found in possible_formats(config).items() if not found]
    assert "onnx" in able
    assert refusal.value.hint is not None
    assert f"formats that can hold it: {', '.join(able)}" in refusal.value.hint


def test_exercises_without_an_end_can_go_nowhere() -> None:
    config = load_config("memorise.yaml", ())
    assert all(possible_formats(config).values())
    with pytest.raises(ConfigError) as refusal:
        require_open(config, FORMATS[0])
    assert "no format can hold it" in str(refusal.value.hint)


def test_an_unfinished_export_leaves_nothing_when_the_folder_is_missing(tfm: Tfm) -> None:
    random_run(tfm.folder / "runs/small")
    finished = tfm("export", "--run", "small", "--to", "ctranslate2", "--output", "no/out")
    assert finished.exit_code == 73
    assert "there is no folder no" in finished.talk
    assert not Path(tfm.folder, "no").exists()
