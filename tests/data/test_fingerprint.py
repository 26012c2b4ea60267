import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.config import Config
from transformer_cli.data.preparation import (
    FILE_NAME,
    changed_data_error,
    changes,
    fingerprint,
    fingerprint_digest,
    needs_other_tokenizers,
    read_seal,
    seal,
)


def config_of(folder: Path, **sections: Any) -> Config:
    data = {"source": "files", "root": str(folder), "corpora": [{"path": "a.tsv"}]} | sections.pop("data", {})
    training = {"max_steps": 1, "batch_sentences": 2}
    return Config.model_validate({"name": "a", "data": data, "training": training} | sections)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "a.tsv").write_text("uno\tone\n", encoding="utf-8")
    return tmp_path


# What is changed -> whether that decides the ids, and the name that the message gives.
CHANGED: dict[str, tuple[dict[str, Any], str | None]] = {
    "cleaning": ({"data": {"cleaning": {"max_words": 9}}}, "data.cleaning.max_words"),
    "invisible characters": (
        {"data": {"cleaning": {"normalize_invisible": False}}},
        "data.cleaning.normalize_invisible",
    ),
    "share": ({"data": {"validation_share": 0.1}}, "data.validation_share"),
    "tokenizer": ({"tokenizer": {"kind": "bpe"}}, "tokenizer.kind"),
    "length": ({"model": {"max_length": 9}}, "model.max_length"),
    "weight": ({"data": {"corpora": [{"path": "a.tsv", "weight": 2.0}]}}, None),
    "schedule": (
        {"data": {"corpora": [{"path": "a.tsv", "weight": [[0, 2.0], [3, 0.5]]}]}},
        None,
    ),
    "threshold": ({"data": {"cleaning": {"max_dropped_share": 0.9}}}, None),
    "seed": ({"seed": 9}, None),
    "training": ({"training": {"max_steps": 2, "batch_tokens": 99}}, None),
    "width": ({"model": {"d_model": 64}}, None),
}


@pytest.mark.parametrize("case", CHANGED)
def test_what_decides_the_ids_is_in_the_fingerprint_and_nothing_else(case: str, corpus: Path) -> None:
    sections, name = CHANGED[case]
    changed = changes(fingerprint(config_of(corpus)), fingerprint(config_of(corpus, **sections)))
    assert [line.split(":")[0] for line in changed] == ([name] if name else [])


def test_a_corpus_may_move_but_not_change(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    before = fingerprint(config_of(corpus))
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "a.tsv").write_bytes((corpus / "a.tsv").read_bytes())
    assert fingerprint(config_of(elsewhere)) == before
    with (elsewhere / "a.tsv").open("a", encoding="utf-8") as file:
        file.write("due\ttwo\n")
    (line,) = changes(before, fingerprint(config_of(elsewhere)))
    assert line.startswith("a.tsv: was ")
    assert "..., now " in line


def test_a_run_of_an_earlier_version_has_the_fingerprint_that_it_had(corpus: Path) -> None:
    as_it_began = {"data": {"cleaning": {"normalize_invisible": None}}}
    assert "data.cleaning.normalize_invisible" not in fingerprint(config_of(corpus, **as_it_began))
    assert "data.cleaning.normalize_invisible" in fingerprint(config_of(corpus))


def test_generated_data_depend_on_the_seed() -> None:
    data = {"source": "sequences", "task": "copy"}
    training = {"max_steps": 1, "batch_sentences": 2}
    one, other = (
        fingerprint(Config.model_validate({"name": "a", "seed": seed, "data": data, "training": training}))
        for seed in (1, 2)
    )
    assert changes(one, other)


def test_old_and_new_values_are_named() -> None:
    assert changes({"a": "1", "b": "2", "c": "3"}, {"b": "2", "c": "4", "d": "5"}) == [
        "a: was 1, now not there",
        "c: was 3, now 4",
        "d: was not there, now 5",
    ]


def test_a_setting_without_a_value_is_as_good_as_none() -> None:
    assert changes({"a": "null"}, {"b": "null"}) == []
    assert changes({"a": "null"}, {"a": "1"}) == ["a: was not there, now 1"]


def test_the_hint_offers_only_what_can_be_done() -> None:
    settings = {"tokenizer.kind": "bpe", "a.tsv": "1"}
    other_corpus, other_kind = settings | {"a.tsv": "2"}, settings | {"tokenizer.kind": "unigram"}
    assert "--accept-data-change" in str(changed_data_error(Path("runs/a/data"), settings, other_corpus))
    assert not needs_other_tokenizers(settings, other_corpus)
    assert "--accept-data-change" not in str(changed_data_error(Path("runs/a/data"), settings, other_kind))
    assert "--from-scratch" in str(changed_data_error(Path("runs/a/data"), settings, other_kind))
    assert needs_other_tokenizers(settings, other_kind)


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    (tmp_path / "train.arrow").write_bytes(b"ids")
    (tmp_path / "report.json").write_bytes(b"{}")
    seal(tmp_path, {"a": "1"})
    return tmp_path


def test_a_sealed_folder_says_what_it_was_made_from(sealed: Path) -> None:
    assert read_seal(sealed) == {"a": "1"}


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no seal": lambda folder: (folder / FILE_NAME).unlink(),
    "a seal cut off": lambda folder: (folder / FILE_NAME).write_text('{"made_from": {'),
    "a seal that is a list": lambda folder: (folder / FILE_NAME).write_text("[]"),
    "a seal of numbers": lambda folder: (folder / FILE_NAME).write_text(
        json.dumps({"made_from": {"a": 1}, "files": {}})
    ),
    "a file lost": lambda folder: (folder / "train.arrow").unlink(),
    "a file cut off": lambda folder: (folder / "train.arrow").write_bytes(b"id"),
    "a bit flipped": lambda folder: (folder / "train.arrow").write_bytes(b"ide"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_folder_says_nothing(damage: str, sealed: Path) -> None:
    DAMAGES[damage](sealed)
    assert read_seal(sealed) is None


def test_a_missing_folder_says_nothing(tmp_path: Path) -> None:
    assert read_seal(tmp_path / "missing") is None


def test_a_checkpoint_holds_the_digest_of_the_fingerprint_and_none_of_its_names() -> None:
    first = fingerprint_digest({"/home/canary/a": "1", "b": "2"})
    assert len(first) == 64
    assert first == fingerprint_digest({"b": "2", "/home/canary/a": "1"})
    assert first != fingerprint_digest({"/home/canary/a": "1", "b": "3"})
