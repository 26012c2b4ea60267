import json
import logging
import re
import signal
import subprocess
import sys
import unicodedata
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.config import Config, to_yaml
from transformer_cli.data import preparation
from transformer_cli.data.encoded import DataReport
from transformer_cli.data.order import epoch_order
from transformer_cli.data.pairs import SentencePair
from transformer_cli.data.preparation import (
    PreparedData,
    prepare_data,
    seen_words_of_corpus,
)
from transformer_cli.data.updates import StoredUpdates, Updates
from transformer_cli.process.errors import ConfigError, DataError
from transformer_cli.text import seen_words
from transformer_cli.text.seen_words import KNOWS_POSSESSED, SeenWords

TRAIN = [
    ("Il gatto dorme.", "The cat sleeps."),
    ("Il cane dorme.", "The dog sleeps."),
    ("Il gatto dorme.", "The cat sleeps."),
    ("L'acqua e\u0300 blu.", "The water is blue."),
    ("L'isola è bella.", "The island is beautiful."),
    ("", "Nothing."),
    ("Segreto.", "Secret."),
]
VALIDATION = [("Segreto.", "Secret."), ("Il topo dorme.", "The mouse sleeps.")]
TEST = [("Il gatto beve.", "The cat drinks.")]
CLEAN = [
    SentencePair(unicodedata.normalize("NFC", source), target, 0)
    for source, target in (TRAIN[0], TRAIN[1], TRAIN[3], TRAIN[4])
]


def write(path: Path, rows: list[tuple[str, str]]) -> None:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in rows), encoding="utf-8")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    write(folder / "train.tsv", TRAIN)
    write(folder / "val.tsv", VALIDATION)
    write(folder / "test.tsv", TEST)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "a" / "data"


def config_of(corpus: Path, **sections: Any) -> Config:
    splits = [("train.tsv", "train"), ("val.tsv", "validation"), ("test.tsv", "test")]
    corpora = [{"path": path, "split": split} for path, split in splits]
    data = {"source": "files", "root": str(corpus), "corpora": corpora} | sections.pop("data", {})
    training = {"max_steps": 1, "batch_sentences": 2}
    return Config.model_validate({"name": "a", "data": data, "training": training} | sections)


def texts(data: PreparedData) -> list[tuple[str, str]]:
    tokenizers = data.source_tokenizer, data.target_tokenizer
    return [
        tuple(tokenizer.decode(ids.tolist()) for tokenizer, ids in zip(tokenizers, data.train[index], strict=True))  # type: ignore[misc, union-attr]
        for index in range(len(data.train))
    ]


def modified(folder: Path) -> dict[str, int]:
    return {file.name: file.stat().st_ino for file in sorted(folder.iterdir())}


# --- what is made ---


def test_the_cleaned_training_pairs_come_back_from_their_ids(corpus: Path, folder: Path) -> None:
    data = prepare_data(config_of(corpus), folder)
    assert texts(data) == [(pair.source, pair.target) for pair in CLEAN]
    assert list(data.train_text()) == CLEAN
    for index in range(len(data.train)):
        assert data.train[index].source_ids[-1] == data.source_tokenizer.eos_id
        assert data.train[index].target_ids[-1] == data.target_tokenizer.eos_id


def test_held_out_text_is_kept_as_it_is_scored(corpus: Path, folder: Path) -> None:
    config = config_of(corpus)
    expected = [SentencePair(*row, 1) for row in VALIDATION]
    assert prepare_data(config, folder).validation == expected
    assert prepare_data(config, folder).validation == expected


def test_no_word_of_held_out_text_gets_into_the_vocabulary(corpus: Path, folder: Path) -> None:
    data = prepare_data(config_of(corpus), folder)
    for text in ("topo", "Segreto", "beve"):
        assert data.source_tokenizer.encode(text) == [data.source_tokenizer.unk_id]
    assert data.source_tokenizer.decode(data.source_tokenizer.encode("gatto")) == "gatto"


def test_the_words_of_the_translations_are_recorded_if_they_are_many(
    corpus: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen_words, "_FEWEST_WORDS", 3)
    found = prepare_data(config_of(corpus), folder).seen_words
    assert found is not None
    assert found.written is not None
    words = {match[0].casefold() for pair in CLEAN for match in re.finditer(r"[^\W\d_]+", pair.target)}
    assert all(word in found.written for word in words)


def test_the_words_of_the_training_text_are_recorded(corpus: Path, folder: Path) -> None:
    config = config_of(corpus)
    data = prepare_data(config, folder)
    words = {match[0].casefold() for pair in CLEAN for match in re.finditer(r"[^\W\d_]+", pair.source)}
    words.add(KNOWS_POSSESSED)  # the language of the sources is said to be English
    assert data.seen_words == SeenWords.of(dict.fromkeys(words, 1)) == seen_words_of_corpus(config)
    for name in ("seen_words.json", preparation.FILE_NAME):  # as of an earlier version
        (folder / name).unlink()
    preparation.seal(folder, preparation.fingerprint(config))
    assert prepare_data(config, folder).seen_words is None


@pytest.mark.long
@pytest.mark.parametrize(("num_pairs", "is_known"), [(3, False), (len(TRAIN), False), (99, True)])
def test_the_words_of_a_stream_are_known_only_if_it_ended_within_the_first_pairs(
    corpus: Path, folder: Path, num_pairs: int, is_known: bool
) -> None:
    write(corpus / "train.tsv", [(source or "Niente.", target) for source, target in TRAIN])
    config = config_of(corpus, data={"streaming": True, "tokenizer_pairs": num_pairs})
    found = prepare_data(config, folder).seen_words
    assert (found is not None) == is_known
    assert seen_words_of_corpus(config) == found
    assert found is None or ("gatto" in found and "isola" in found)


def test_the_folder_holds_these_files_and_nothing_beside_it(corpus: Path, folder: Path) -> None:
    prepare_data(config_of(corpus), folder)
    names = ["fingerprint.json", "report.json", "seen_words.json"]
    names += ["tokenizer.source.json", "tokenizer.target.json", "train.arrow", "validation.jsonl"]
    assert sorted(modified(folder)) == names
    assert sorted(path.name for path in folder.parent.iterdir()) == ["data"]


def test_a_shared_vocabulary_is_one_file_and_knows_both_languages(corpus: Path, folder: Path) -> None:
    config = config_of(corpus, tokenizer={"shared": True})
    for _ in range(2):
        data = prepare_data(config, folder)
        assert data.source_tokenizer is data.target_tokenizer
        assert data.source_tokenizer.decode(data.source_tokenizer.encode("gatto cat")) == "gatto cat"
    assert "tokenizer.json" in modified(folder)
    assert texts(data) == [(pair.source, pair.target) for pair in CLEAN]


@pytest.mark.long
def test_sequences_without_an_end_symbol_have_none(folder: Path) -> None:
    task = {"source": "sequences", "task": "drop-first", "num_pairs": 20, "end_symbol": False}
    training = {"max_steps": 1, "batch_sentences": 2}
    data = prepare_data(Config.model_validate({"name": "a", "data": task, "training": training}), folder)
    pair = next(data.train_text())
    assert data.train[0].source_ids.tolist() == data.source_tokenizer.encode(pair.source)  # type: ignore[union-attr]
    assert len(data.train[0].target_ids) == len(data.train[0].source_ids) - 1


def test_the_pairs_can_be_trained_on(corpus: Path, folder: Path) -> None:
    config = config_of(corpus)
    train = prepare_data(config, folder).train
    order = epoch_order(train.lengths, train.corpus_sizes, config)
    with Updates(StoredUpdates(train, order)) as updates:
        seen: Counter[tuple[int, ...]] = Counter()
        while updates.position.epoch == 0:
            for batch in next(updates):
                seen.update(
                    tuple(row[mask].tolist()) for row, mask in zip(batch.source_ids, batch.source_mask, strict=True)
                )
    assert seen == Counter(tuple(train[index].source_ids.tolist()) for index in range(4))  # type: ignore[union-attr]


def test_several_corpora_keep_their_pairs_apart_for_their_weights(corpus: Path, folder: Path) -> None:
    write(corpus / "more.tsv", [("Ciao.", "Hello."), ("Grazie.", "Thanks.")])
    corpora = [
        {"path": "train.tsv", "split": "train"},
        {"path": "val.tsv", "split": "validation"},
        {"path": "more.tsv", "split": "train", "weight": 3.0},
    ]
    config = config_of(corpus, data={"corpora": corpora})
    train = prepare_data(config, folder).train
    assert train.corpus_sizes == [4, 0, 2]
    order = epoch_order(train.lengths, train.corpus_sizes, config)
    assert order.num_pairs() == 4 + 3 * 2


# --- the report ---


def test_the_report_counts_what_became_of_each_pair(corpus: Path, folder: Path) -> None:
    report = prepare_data(config_of(corpus), folder).report
    assert report.num_pairs == {"train": 4, "validation": 2, "test": 1}
    cleaning = {what: (count, example) for what, count, example in report.cleaning}
    assert cleaning["pairs read"][0] == 7
    assert cleaning["pairs kept"][0] == 4
    assert cleaning["dropped: drop_duplicates"] == (1, "Il gatto dorme. | The cat sleeps.")
    assert cleaning["dropped: leakage"] == (1, "Segreto. | Secret.")
    assert cleaning["dropped: drop_empty"][0] == 1
    assert cleaning["altered: normalize_unicode"][0] == 1


def test_a_held_out_pair_is_found_in_training_text_that_cleaning_alters(corpus: Path, folder: Path) -> None:
    write(corpus / "val.tsv", [("Caff\u00e8\u0007.", "Coffee.")])
    write(corpus / "train.tsv", [*TRAIN, ("Caffe\u0300.", "\ufeffCoffee.")])
    report = prepare_data(config_of(corpus), folder).report
    assert ("dropped: leakage", 1) in [row[:2] for row in report.cleaning]


def test_the_report_counts_tokens_and_unknown_words(corpus: Path, folder: Path) -> None:
    data = prepare_data(config_of(corpus), folder)
    report = data.report.source
    assert report.vocab_size == data.source_tokenizer.vocab_size
    assert (report.train.num_tokens, report.train.num_sentences) == (4 + 4 + 5 + 5, 4)
    assert report.train.unknown_rate == 0
    # Segreto . Il topo dorme . : two of six are unknown.
    assert report.validation.unknown_rate == pytest.approx(2 / 6)


def test_the_report_survives_a_reload_and_reads_as_text(corpus: Path, folder: Path) -> None:
    config = config_of(corpus)
    report = prepare_data(config, folder).report
    reloaded = prepare_data(config, folder).report
    assert reloaded == report
    assert DataReport.from_json(json.loads(json.dumps(asdict(report)))) == report
    text = "\n".join(report.lines())
    assert "pairs: train 4, validation 2, test 1" in text
    assert "dropped: leakage" in text
    assert "33.33%" in text


def test_pairs_with_more_tokens_than_the_model_takes_are_dropped_and_counted(corpus: Path, folder: Path) -> None:
    write(corpus / "train.tsv", [*TRAIN, ("uno due tre quattro cinque", "one")])
    cleaning = {"cleaning": {"max_dropped_share": 1.0}}
    exactly = config_of(corpus, data=cleaning, model={"max_length": 6})  # five words and [EOS]
    data = prepare_data(exactly, folder)
    assert (data.report.num_too_long, len(data.train)) == (0, 5)
    one_less = config_of(corpus, data=cleaning, model={"max_length": 5})
    data = prepare_data(one_less, folder, has_begun=False)
    assert data.report.num_too_long == 3
    assert len(data.train) == 2
    assert max(len(side) for index in range(2) for side in data.train[index]) <= 5
    assert "model.max_length" in "\n".join(data.report.lines())


def test_a_limit_that_drops_most_pairs_is_an_error(corpus: Path, folder: Path) -> None:
    with pytest.raises(DataError, match=r"4 of 4 training pairs have more than 3 tokens \(model\.max_length\)"):
        prepare_data(config_of(corpus, model={"max_length": 3}), folder)
    assert not folder.exists()


def test_a_corpus_without_training_or_validation_pairs_is_an_error(corpus: Path, folder: Path) -> None:
    write(corpus / "val.tsv", [])
    with pytest.raises(DataError):
        prepare_data(config_of(corpus), folder)
    write(corpus / "val.tsv", VALIDATION)
    write(corpus / "train.tsv", VALIDATION)  # all of it leaks
    with pytest.raises(DataError, match="leakage"):
        prepare_data(config_of(corpus), folder)
    assert not folder.exists()


# --- using it again ---


def test_prepared_data_is_used_again(corpus: Path, folder: Path) -> None:
    config = config_of(corpus)
    first = prepare_data(config, folder)
    before = modified(folder)
    second = prepare_data(config, folder)
    assert modified(folder) == before
    assert texts(second) == texts(first)
    assert second.fingerprint == first.fingerprint


def test_the_same_corpus_gives_the_same_files(corpus: Path, folder: Path) -> None:
    prepare_data(config_of(corpus), folder)
    prepare_data(config_of(corpus), folder.with_name("again"))
    for name in modified(folder):
        assert (folder / name).read_bytes() == (folder.with_name("again") / name).read_bytes()


def add_pairs(corpus: Path) -> None:
    write(corpus / "train.tsv", [*TRAIN, ("Il topo beve.", "The mouse drinks.")])


def test_a_changed_corpus_is_refused_and_named(corpus: Path, folder: Path) -> None:
    config = config_of(corpus)
    prepare_data(config, folder)
    before = modified(folder)
    add_pairs(corpus)
    with pytest.raises(DataError, match=r"train\.tsv: was [0-9a-f]{12}\.\.\., now") as refusal:
        prepare_data(config, folder)
    assert refusal.value.exit_code == 65
    assert refusal.value.hint is not None
    assert "--accept-data-change" in refusal.value.hint
    assert modified(folder) == before


def test_an_accepted_change_keeps_the_tokenizers(corpus: Path, folder: Path) -> None:
    config = config_of(corpus)
    first = prepare_data(config, folder)
    add_pairs(corpus)
    second = prepare_data(config, folder, accept_change=True)
    assert second.source_tokenizer.to_json() == first.source_tokenizer.to_json()
    assert texts(second)[-1] == ("Il [UNK] [UNK].", "The [UNK] [UNK].")
    assert second.report.source.train.unknown_rate > 0
    # From now on this is the run's data.
    before = modified(folder)
    prepare_data(config, folder)
    assert modified(folder) == before


def test_an_accepted_change_prepares_nothing_for_a_run_that_is_finished(corpus: Path, folder: Path) -> None:
    config = config_of(corpus)
    prepare_data(config, folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    write(corpus / "train.tsv", TRAIN[1:])
    with pytest.raises(ConfigError, match=r"is finished.*\n    train.tsv: was") as refused:
        prepare_data(config, folder, accept_change=True, is_finished=True)
    assert "--accept-data-change --set training.max_steps=N" in str(refused.value.hint)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_other_tokenizer_settings_are_refused_even_if_changes_are_accepted(corpus: Path, folder: Path) -> None:
    prepare_data(config_of(corpus), folder)
    with pytest.raises(DataError, match=r"tokenizer\.min_frequency: was 1, now 2"):
        prepare_data(config_of(corpus, tokenizer={"min_frequency": 2}), folder, accept_change=True)


def test_before_training_has_begun_every_change_is_accepted(corpus: Path, folder: Path) -> None:
    prepare_data(config_of(corpus), folder)
    add_pairs(corpus)
    config = config_of(corpus, tokenizer={"kind": "bpe", "vocab_size": 300})
    data = prepare_data(config, folder, has_begun=False)
    assert '"type": "BPE"' in data.source_tokenizer.to_json()
    assert texts(data)[-1] == ("Il topo beve.", "The mouse drinks.")


@pytest.mark.long
def test_the_tokenizers_of_a_trained_model_are_kept_where_the_folder_was_lost(corpus: Path, folder: Path) -> None:
    config = config_of(corpus)
    first = prepare_data(config, folder)
    tokenizers = first.source_tokenizer, first.target_tokenizer
    add_pairs(corpus)
    elsewhere = folder.with_name("again")
    second = prepare_data(config, elsewhere, tokenizers=tokenizers)
    assert second.source_tokenizer.to_json() == first.source_tokenizer.to_json()
    # Negative control: without them, the new words are learned.
    third = prepare_data(config, folder.with_name("third"))
    assert third.source_tokenizer.to_json() != first.source_tokenizer.to_json()
    # And ids of other tokenizers are not taken for those of the model.
    fourth = prepare_data(config, folder.with_name("third"), tokenizers=tokenizers)
    assert fourth.source_tokenizer.to_json() == first.source_tokenizer.to_json()


@pytest.mark.long
@pytest.mark.parametrize("name", ["train.arrow", "fingerprint.json", "tokenizer.source.json", "validation.jsonl"])
def test_damaged_data_are_made_anew(name: str, corpus: Path, folder: Path) -> None:
    config = config_of(corpus)
    prepare_data(config, folder)
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])
    data = prepare_data(config, folder)
    assert (folder / name).read_bytes() == content
    assert texts(data) == [(pair.source, pair.target) for pair in CLEAN]


KILLED = """
import os, signal, sys
from pathlib import Path
from transformer_cli.config import load_config
from transformer_cli.data import preparation

setattr(preparation, sys.argv[3], lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
preparation.prepare_data(load_config(sys.argv[1]), Path(sys.argv[2]))
"""


@pytest.mark.process
@pytest.mark.parametrize("step", ["train_tokenizer", "tokenizer_files"])
def test_a_build_killed_midway_leaves_nothing_that_counts(step: str, corpus: Path, folder: Path) -> None:
    config = config_of(corpus)
    (corpus / "config.yaml").write_text(to_yaml(config), encoding="utf-8")
    command = [sys.executable, "-c", KILLED, str(corpus / "config.yaml"), str(folder), step]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    (leftover,) = (path for path in folder.parent.iterdir() if path.is_dir())  # and its mark
    assert leftover.name.startswith(".tmp-data-")
    assert texts(prepare_data(config, folder)) == [(pair.source, pair.target) for pair in CLEAN]


def test_a_failed_build_leaves_no_file(corpus: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(preparation, "tokenizer_files", fail)
    with pytest.raises(KeyboardInterrupt):
        prepare_data(config_of(corpus), folder)
    assert list(folder.parent.iterdir()) == []


def test_changes_that_were_accepted_are_logged(corpus: Path, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    prepare_data(config_of(corpus), folder)
    add_pairs(corpus)
    with caplog.at_level(logging.INFO):
        prepare_data(config_of(corpus), folder, accept_change=True)
    assert "train.tsv: was" in caplog.text


def test_text_that_is_not_normalized_has_other_ids(corpus: Path, folder: Path) -> None:
    pairs = [("caff\u00e8", "coffee"), ("caffe\u0300", "a coffee"), ("il topo", "the mouse")]
    write(corpus / "train.tsv", pairs)
    for normalize, num_forms in ((True, 1), (False, 2)):
        cleaning = {"normalize_unicode": normalize}
        config = config_of(corpus, data={"cleaning": cleaning})
        data = prepare_data(config, folder / str(normalize))
        ids = [tuple(data.train[index].source_ids) for index in range(len(pairs))]
        assert len(set(ids[:2])) == num_forms
        assert [text for text, _ in texts(data)][:2] == [
            pairs[0][0],
            pairs[0][0] if normalize else pairs[1][0],
        ]
