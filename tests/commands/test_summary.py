"""The summary of a finished run: published figures beside its own."""

import json
from pathlib import Path

from transformer_cli.commands.summary import exact_match_table, published_table
from transformer_cli.config import PublishedConfig


def test_published_figures_stand_beside_those_of_the_same_step_and_kind(tmp_path: Path) -> None:
    records = [
        {"kind": "train", "step": 10, "loss": 0.5},
        {"kind": "validation", "step": 10, "loss": 0.7},
        {"kind": "train", "step": 20, "loss": 0.25},
    ]
    file = tmp_path / "metrics.jsonl"
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    published = PublishedConfig(
        training_loss=((20, 0.2), (30, 0.1)), validation_loss=((10, 0.6), (20, 0.1))
    )
    lines = [line.split() for line in published_table(published, file)]
    assert ["20", "0.25000", "0.20000"] in lines
    assert ["10", "0.70000", "0.60000"] in lines
    assert sum(line[0].isdecimal() for line in lines) == 2  # what was not reached is left out


def test_without_published_figures_nothing_is_said(tmp_path: Path) -> None:
    assert not list(published_table(PublishedConfig(), tmp_path / "missing.jsonl"))


def test_a_message_says_that_no_sequence_has_a_requested_length() -> None:
    assert list(exact_match_table([], "memorise")) == [
        "memorise: no sequence has one of the lengths asked for"
    ]
