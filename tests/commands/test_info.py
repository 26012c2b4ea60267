"""What `tfm info` shows for a config that was not trained yet."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from transformer_cli.checkpoint.trained_files import load_trained
from transformer_cli.commands.info import info_command
from transformer_cli.config import SequencesData, load_config, shipped_configs
from transformer_cli.model.transformer import Transformer
from transformer_cli.process.errors import MissingInputError, UsageError


def facts(capsys: pytest.CaptureFixture[str], config: str, *overrides: str) -> dict[str, Any]:
    info_command(config=config, overrides=[*overrides], parameters=True, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


@pytest.mark.long
@pytest.mark.parametrize("name", shipped_configs())
def test_every_shipped_config_is_shown_with_its_size(capsys: pytest.CaptureFixture[str], name: str) -> None:
    found = facts(capsys, name)
    config = load_config(name)
    is_task = isinstance(config.data, SequencesData)
    size = config.data.num_symbols + 4 if is_task else config.tokenizer.vocab_size or 8000
    with torch.device("meta"):
        model = Transformer(config.model, size, size)
    assert found["parameters"] == sum(p.numel() for p in model.parameters())
    assert found["vocabulary_assumed"] == size
    assert found["settings"] == config.model_dump(mode="json")
    assert found["parameter_tree"] == {name: list(parameter.shape) for name, parameter in model.named_parameters()}


def test_an_override_shows(capsys: pytest.CaptureFixture[str]) -> None:
    small, large = (facts(capsys, "copy.yaml", f"model.d_ff={size}") for size in (8, 16))
    assert large["settings"]["model"]["d_ff"] == 16
    num_layers = 2 + 2
    assert large["parameters"] - small["parameters"] == num_layers * 8 * (64 + 64 + 1)


def test_people_get_the_settings_as_yaml_that_can_be_used_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    info_command(config="multi30k-en-de.yaml")
    head, _, settings = capsys.readouterr().out.partition("\n\n")
    assert head.splitlines()[0].split() == ["config", "multi30k-en-de.yaml"]
    (tmp_path / "again.yaml").write_text(settings)
    assert load_config(tmp_path / "again.yaml") == load_config("multi30k-en-de.yaml")


def test_a_table_of_parameters_adds_up(capsys: pytest.CaptureFixture[str]) -> None:
    info_command(config="copy.yaml", parameters=True)
    shown = capsys.readouterr().out
    rows = [line.split() for line in shown.splitlines() if line.startswith("  ") and "." in line]
    total = next(line.split()[1] for line in shown.splitlines() if line.startswith("parameters"))
    sizes = [int(row[-1].replace(",", "")) for row in rows if row[-1].replace(",", "").isdigit()]
    assert sum(sizes) == int(total.replace(",", ""))


def test_a_run_has_the_settings_that_it_has() -> None:
    with pytest.raises(UsageError, match="goes with --config"):
        info_command("some", overrides=["seed=1"])


def test_without_a_run_the_error_is_a_missing_input(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingInputError, match="no run under runs"):
        info_command()


def test_the_directions_of_a_model_are_shown_if_there_are_several(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert facts(capsys, "multi30k-en-de-fr.yaml")["directions"] == ["en-de", "en-fr"]
    assert "directions" not in facts(capsys, "multi30k-en-de.yaml")


def test_a_run_that_has_only_an_average_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    run = Path(__file__).parents[2] / "docs" / "run"
    info_command(str(run), as_json=True)
    facts = json.loads(capsys.readouterr().out)
    assert facts["checkpoint"].endswith("average-00002800")
    assert facts["parameters"] == sum(parameter.numel() for parameter in load_trained(run).model.parameters())
