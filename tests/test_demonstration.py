"""The small model that comes along, docs/demonstration: what README says of it."""

import re
from pathlib import Path

import pytest

from transformer_cli import load_translator

ROOT = Path(__file__).parents[1]


@pytest.mark.heavy
def test_as_many_everyday_sentences_are_right_as_the_readme_says() -> None:
    rows = (ROOT / "benchmarks/everyday_french.tsv").read_text(encoding="utf-8").splitlines()
    accepted = dict(row.split("\t", 1) for row in rows if not row.startswith("#"))
    found = load_translator(ROOT / "docs/demonstration").translate([*accepted])
    num_right = sum(one.text in accepted[english].split("\t") for english, one in zip(accepted, found, strict=True))
    said = re.search(
        r"of (\d+) that somebody wrote[^.]*, (\d+) came out right", (ROOT / "README.md").read_text("utf-8")
    )
    assert said is not None
    assert [*map(int, said.groups())] == [len(accepted), num_right]


def test_the_folder_names_no_path_of_a_machine() -> None:
    folder = ROOT / "docs/demonstration"
    configs = [folder / "config.yaml", *folder.glob("checkpoints/*/config.yaml")]
    assert len(configs) == 2
    assert all("\n  root: .\n" in path.read_text(encoding="utf-8") for path in configs)
