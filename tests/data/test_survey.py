"""How many pairs each split will have, counted before a run."""

from pathlib import Path

from transformer_cli.config.loading import check_settings
from transformer_cli.data.survey import num_pairs_by_split


def test_pairs_of_a_held_out_split_do_not_count_for_training(tmp_path: Path) -> None:
    lines = [f"one {number}\tuno {number}\n" for number in range(9)]
    (tmp_path / "train.tsv").write_text("".join([*lines, " \t \n"]), encoding="utf-8")
    (tmp_path / "held.tsv").write_text("".join(lines[:2]) + "other\taltro\n", encoding="utf-8")
    corpora = [
        {"path": str(tmp_path / "train.tsv"), "split": "train"},
        {"path": str(tmp_path / "held.tsv"), "split": "validation"},
    ]
    data = {"source": "files", "source_language": "en", "target_language": "it", "corpora": corpora}
    settings = {"name": "n", "data": data, "training": {"max_steps": 1, "batch_tokens": 100}}
    config = check_settings(settings, "test")
    assert num_pairs_by_split(config) == {"train": 7, "validation": 3}
    assert list(num_pairs_by_split(config)) == ["train", "validation"]
