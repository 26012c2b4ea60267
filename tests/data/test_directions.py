"""Pairs of several directions: read both ways, split together, encoded with their tags."""

from pathlib import Path
from typing import Any

import pytest

from transformer_cli.config import Config
from transformer_cli.data.pairs import SentencePair
from transformer_cli.data.preparation import fingerprint, prepare_data
from transformer_cli.data.selection import first_of_each_direction, pairs_to_validate
from transformer_cli.data.sources.corpus import read_pairs

ROWS = [(f"a cat of {n} years", f"un gatto di {n} anni") for n in range(300)]
SPLITS = ("train", "validation", "test")
Sides = tuple[str, str]


def write(path: Path, rows: list[Sides]) -> dict[str, Any]:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in rows))
    return {"path": path.name}


def config(root: Path, *corpora: dict[str, Any], **data: Any) -> Config:
    shares = {"validation_share": 0.2, "test_share": 0.1}
    given = {"source": "files", "root": str(root), "corpora": corpora, **shares, **data}
    return Config.model_validate(
        {
            "name": "a",
            "data": given,
            "tokenizer": {"shared": True},
            "training": {"max_steps": 1, "batch_sentences": 2},
        }
    )


def sides(config: Config, split: Any) -> set[Sides]:
    return {(pair.source, pair.target) for pair in read_pairs(config.data, split, seed=1)}


def turned(pairs: set[Sides]) -> set[Sides]:
    return {(target, source) for source, target in pairs}


def test_both_directions_are_the_pairs_of_one_direction_and_their_reverses(tmp_path: Path) -> None:
    corpus = write(tmp_path / "a.tsv", ROWS)
    one, both = config(tmp_path, corpus), config(tmp_path, corpus, both_directions=True)
    for split in SPLITS:
        assert sides(both, split) == sides(one, split) | turned(sides(one, split))
        for pair in read_pairs(both.data, split, seed=1):
            assert pair.direction == pair.source.startswith("un gatto")


def test_corpora_of_opposite_directions_draw_the_same_splits(tmp_path: Path) -> None:
    there = write(tmp_path / "there.tsv", ROWS)
    back = write(tmp_path / "back.tsv", [(target, source) for source, target in ROWS])
    back |= {"source_language": "it", "target_language": "en"}
    opposite = config(tmp_path, there, back)
    for split in SPLITS:
        found = sides(config(tmp_path, there), split)
        assert sides(opposite, split) == found | turned(found)


def test_the_reverse_of_a_held_out_pair_never_gets_into_training(tmp_path: Path) -> None:
    held_out = ROWS[:40]
    validation = write(tmp_path / "val.tsv", held_out) | {"split": "validation"}
    train = write(tmp_path / "train.tsv", [(target, source) for source, target in ROWS])
    train |= {"split": "train", "source_language": "it", "target_language": "en"}
    train_too = write(tmp_path / "more.tsv", [("a dog", "un cane")]) | {"split": "train"}
    data = prepare_data(config(tmp_path, validation, train, train_too), tmp_path / "data")
    assert data.report.num_pairs["train"] == 300 - 40 + 1
    kept = {(pair.target, pair.source) for pair in data.train_text()}
    assert not kept & set(held_out)


def test_a_text_is_changed_where_it_is_the_source_and_stays_where_it_is_the_target(
    tmp_path: Path,
) -> None:
    rows = [(f"a\u00a0cat of {n} ye\u00adars", f"un\u00a0gatto di {n} anni") for n in range(60)]
    corpus = write(tmp_path / "a.tsv", rows)
    data = prepare_data(config(tmp_path, corpus, both_directions=True), tmp_path / "data")
    plain = {side.replace("\u00a0", " ").replace("\u00ad", "") for row in rows for side in row}
    for pairs in (data.train_text(), data.validation):
        for pair in pairs:
            assert pair.source in plain
            assert "\u00a0" in pair.target


def test_the_reverse_of_a_held_out_pair_is_found_whatever_its_spaces(tmp_path: Path) -> None:
    rows = [(source.replace(" ", "\u00a0"), f"{target}\u00ad") for source, target in ROWS]
    validation = write(tmp_path / "val.tsv", rows[:40]) | {"split": "validation"}
    train = write(tmp_path / "train.tsv", [(target, source) for source, target in rows])
    train |= {"split": "train", "source_language": "it", "target_language": "en"}
    train_too = write(tmp_path / "more.tsv", [("a dog", "un cane")]) | {"split": "train"}
    data = prepare_data(config(tmp_path, validation, train, train_too), tmp_path / "data")
    assert data.report.num_pairs["train"] == 300 - 40 + 1


def test_ids_begin_with_the_tag_of_the_target_language(tmp_path: Path) -> None:
    corpus = write(tmp_path / "a.tsv", ROWS)
    prepared = prepare_data(config(tmp_path, corpus, both_directions=True), tmp_path / "data")
    tokenizer = prepared.source_tokenizer
    assert tokenizer is prepared.target_tokenizer
    for index, pair in enumerate(prepared.train_text()):
        source_ids, target_ids = prepared.train[index]
        tag = "<2en>" if pair.direction else "<2it>"
        ids = tokenizer.encode(pair.source), tokenizer.encode(pair.target)
        assert source_ids.tolist() == [tokenizer.tag_id(tag), *ids[0], tokenizer.eos_id]
        assert target_ids.tolist() == [*ids[1], tokenizer.eos_id]
    assert {pair.direction for pair in prepared.validation} == {0, 1}


def test_several_sources_of_one_target_language_need_no_tag(tmp_path: Path) -> None:
    corpora = [write(tmp_path / f"{name}.tsv", ROWS[:100]) for name in "ab"]
    corpora[1] |= {"source_language": "de"}
    prepared = prepare_data(config(tmp_path, *corpora), tmp_path / "data")
    assert len(prepared.source_tokenizer.tag_ids) == 0
    # The same texts in two directions are no duplicates.
    assert prepared.report.num_pairs["train"] == 2 * len(sides(config(tmp_path, corpora[0]), "train"))


def test_one_direction_has_the_fingerprint_of_earlier_versions(tmp_path: Path) -> None:
    corpus = write(tmp_path / "a.tsv", ROWS)
    one, both = config(tmp_path, corpus), config(tmp_path, corpus, both_directions=True)
    assert "data.both_directions" not in fingerprint(one)
    assert fingerprint(both)["data.both_directions"] == "true"


@pytest.mark.parametrize("number", [1, 5, 6, 100, None])
def test_the_first_pairs_are_of_all_directions(number: int | None) -> None:
    pairs = [SentencePair(str(i), "", 0, i >= 8) for i in range(12)]
    found = first_of_each_direction(pairs, number)
    assert len(found) == min(12, number or 12)
    counts = [sum(pair.direction == one for pair in found) for one in (0, 1)]
    assert abs(counts[0] - counts[1]) <= 1 or number in (100, None)
    assert found == sorted(found, key=pairs.index)


def test_a_drawn_share_is_cut_to_as_many_pairs_of_each_direction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transformer_cli.data.selection.MAX_DRAWN_TO_VALIDATE", 10)
    both = config(tmp_path, write(tmp_path / "a.tsv", ROWS), both_directions=True)
    drawn = list(read_pairs(both.data, "validation", seed=1))
    assert len(drawn) > 20
    found = pairs_to_validate(both, drawn)
    assert [sum(pair.direction == one for pair in found) for one in (0, 1)] == [5, 5]
