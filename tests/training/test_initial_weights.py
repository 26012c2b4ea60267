"""The weights with which fine-tuning starts: which are copied, which are new, which are frozen."""

import hashlib
import json
import logging
import re
import shutil
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from safetensors.torch import load_file

from transformer_cli import Config, load_config, train
from transformer_cli.checkpoint import run_folder
from transformer_cli.checkpoint.run_folder import RunFolder, open_checkpoint
from transformer_cli.checkpoint.trained_files import load_trained, seen_lengths_of
from transformer_cli.config import TokenizerConfig
from transformer_cli.config.loading import check_settings
from transformer_cli.data.encoded import EncodedCorpus
from transformer_cli.data.preparation import PreparedData, lengths_seen_in
from transformer_cli.model.transformer import Transformer
from transformer_cli.process.errors import ConfigError, DataError, MissingInputError, StorageError
from transformer_cli.text import train_tokenizer
from transformer_cli.text.added_entries import with_added_entries
from transformer_cli.text.seen_words import read_seen_words
from transformer_cli.text.sentences import UNKNOWN_LENGTHS
from transformer_cli.training.initial_weights import (
    checked_origin,
    compositions,
    frozen_names,
    load_initial_model,
    new_model,
    shrunk_weights,
    with_new_rows,
)
from transformer_cli.training.run import all_seen_lengths

from ..experiments import forge

PAIRS = [
    ("the cat sleeps", "il gatto dorme"),
    ("the dog eats", "il cane mangia"),
    ("a cat eats", "un gatto mangia"),
    ("the sun shines", "il sole splende"),
]
NEW_PAIRS = [("the zebra sleeps", "la zebra dorme"), ("a zebra eats the cat", "una zebra mangia il gatto")]


def write_pairs(path: Path, pairs: list[tuple[str, str]]) -> None:
    # Different numbers make different pairs, of which none is a duplicate.
    lines = [f"{source} {n}\t{target} {n}\n" for n in range(10) for source, target in pairs]
    path.write_text("".join(lines), encoding="utf-8")


def settings(name: str, file: str, **changed: Any) -> dict[str, Any]:
    training = {"max_steps": 6, "batch_sentences": 8, "warmup_steps": 2, "best_metric": "loss"}
    return {
        "name": name,
        "data": {"source": "files", "corpora": [{"path": file}], "validation_share": 0.2, "test_share": 0.0},
        "tokenizer": changed.get("tokenizer", {}),
        "model": {
            "d_model": 16,
            "num_heads": 2,
            "d_ff": 32,
            "encoder_layers": 2,
            "decoder_layers": 1,
            **changed.get("model", {}),
        },
        "training": training | changed.get("training", {}),
        "validation": {"max_sentences": 4, "scores": [], "num_samples": 0},
        "runtime": {"device": "cpu", "precision": "float32", "threads": 1},
    }


def config(name: str, file: str, **changed: Any) -> Config:
    return check_settings(settings(name, file, **changed), "test")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the corpora and a trained run, `old`."""
    folder = tmp_path_factory.mktemp("fine-tuning")
    write_pairs(folder / "old.tsv", PAIRS)
    write_pairs(folder / "new.tsv", NEW_PAIRS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        train(config("old", "old.tsv"))
    return folder


@pytest.fixture(autouse=True)
def in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def fine_tuned(name: str, training: dict[str, Any], **changed: Any) -> Config:
    return config(name, "new.tsv", training={"init_from": "old", **training}, **changed)


def weights(run: str) -> dict[str, torch.Tensor]:
    return dict(load_trained(Path("runs") / run, which="last").model.state_dict())


@pytest.mark.long
def test_a_run_starts_with_the_weights_and_tokenizers_of_the_other_run() -> None:
    initial = load_initial_model(fine_tuned("new", {}), Path("runs/new"))
    assert initial is not None
    model = new_model(fine_tuned("new", {}), initial.trained.tokenizers, initial)
    old = weights("old")
    assert all(torch.equal(value, old[name]) for name, value in model.state_dict().items())
    train(fine_tuned("new", {}))
    trained = load_trained(Path("runs/new"))
    assert trained.source_tokenizer.to_json() == initial.trained.tokenizers[0].to_json()
    assert not torch.equal(weights("new")["output.weight"], old["output.weight"])


@pytest.mark.long
@pytest.mark.parametrize("how", ["runs/old", "runs/old/checkpoints/step-00000006"])
def test_a_run_may_be_given_by_its_folder_or_by_a_checkpoint(how: str) -> None:
    initial = load_initial_model(fine_tuned("new", {"init_from": how}), Path("runs/new"))
    assert initial is not None
    assert initial.origin["run"] == "old"
    assert initial.origin["checkpoint"] == "step-00000006"
    assert initial.origin["step"] == 6


def test_the_record_of_the_origin_names_the_file_of_the_weights() -> None:
    initial = load_initial_model(fine_tuned("new", {}), Path("runs/new"))
    assert initial is not None
    file = Path("runs/old/checkpoints/step-00000006/model.safetensors")
    assert initial.origin["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.mark.long
def test_what_is_frozen_keeps_its_weights_and_has_no_state_of_the_optimizer() -> None:
    train(fine_tuned("frozen", {"frozen": ["encoder", "decoder.layers.0.feed_forward"]}))
    old, new = weights("old"), weights("frozen")
    frozen = {name for name in old if name.startswith(("encoder.", "decoder.layers.0.feed_forward."))}
    assert {name for name in old if torch.equal(old[name], new[name])} == frozen
    state = load_file("runs/frozen/checkpoints/last/optimizer.safetensors")
    assert {name.rpartition(".")[0] for name in state} == old.keys() - frozen
    assert (
        train(fine_tuned("frozen", {"frozen": ["encoder", "decoder.layers.0.feed_forward"], "max_steps": 8})).step == 8
    )


@pytest.mark.parametrize(
    ("tied", "name", "expected"),
    [
        ("none", "embeddings", {"source_embedding.weight", "target_embedding.weight"}),
        ("target-output", "embeddings", {"source_embedding.weight", "output.weight"}),
        ("all", "embeddings", {"output.weight"}),
        ("none", "output", {"output.weight", "output.bias"}),
        ("none", "output.bias", {"output.bias"}),
    ],
)
def test_parts_are_the_parameters_that_they_use(tied: str, name: str, expected: set[str]) -> None:
    shared = {"shared": tied == "all"}
    one = config("any", "old.tsv", model={"tie_embeddings": tied}, tokenizer=shared)
    assert frozen_names(Transformer(one.model, 9, 9), [name]) == expected


def test_a_prefix_ends_where_a_name_ends() -> None:
    initial = load_initial_model(fine_tuned("new", {}), Path("runs/new"))
    assert initial is not None
    found = frozen_names(initial.trained.model, ["encoder.layers.1"])
    assert found
    assert all(name.startswith("encoder.layers.1.") for name in found)


@pytest.mark.long
@pytest.mark.parametrize(
    ("frozen", "message"),
    [
        (["encodr"], "training.frozen: no parameter's name begins with encodr.*\n.*did you mean encoder"),
        (
            ["encoder.layers.7"],
            r"no parameter's name begins with encoder.layers.7.*\n.*did you mean encoder.layers.[01]",
        ),
        (["encoder", "decoder", "embeddings", "output"], "all parameters are frozen"),
    ],
)
def test_a_frozen_name_without_effect_is_an_error(frozen: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        train(fine_tuned("refused", {"frozen": frozen}))
    assert re.search(message, str(caught.value)), str(caught.value)
    assert not Path("runs/refused/data").exists(), "it is refused before the corpus is read"


@pytest.mark.long
def test_words_are_added_with_rows_of_their_own(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        train(fine_tuned("added", {"add_words": 5}))
    assert "added entries: source 1, target 3" in caplog.text  # zebra; la, una, zebra
    trained = load_trained(Path("runs/added"))
    tokenizer = trained.source_tokenizer
    assert tokenizer.unknown_words("the zebra sleeps") == []
    assert tokenizer.entries[:-1] == load_trained(Path("runs/old")).source_tokenizer.entries
    assert train(fine_tuned("added", {"add_words": 5, "max_steps": 8})).step == 8


@pytest.mark.long
def test_the_most_frequent_unknown_words_come_first() -> None:
    train(fine_tuned("one", {"add_words": 1}))
    assert load_trained(Path("runs/one")).target_tokenizer.entries[-1] == " zebra"


@pytest.mark.long
def test_without_an_unknown_word_the_user_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        train(config("known", "old.tsv", training={"init_from": "old", "add_words": 3}))
    assert "training.add_words=3 adds nothing" in caplog.text


def test_a_new_row_of_pieces_is_their_mean() -> None:
    table = torch.arange(24, dtype=torch.float64).view(8, 3)
    found = with_new_rows(table, [[5, 7], [4]], torch.Generator().manual_seed(1))
    assert torch.equal(found[:8], table)
    torch.testing.assert_close(found[8], (table[5] + table[7]) / 2)
    torch.testing.assert_close(found[9], table[4])


def test_a_new_row_of_an_unknown_word_is_near_the_mean_of_all_words() -> None:
    torch.manual_seed(0)
    table = torch.randn(400, 16)
    rows = with_new_rows(table, [[], []], torch.Generator().manual_seed(1))[400:]
    mean, deviation = table[4:].mean(0), table[4:].std(0)
    assert ((rows - mean).abs() <= 0.5 * deviation).all()
    assert not torch.equal(rows[0], rows[1])
    bias = with_new_rows(torch.randn(400), [[]], torch.Generator().manual_seed(1))
    assert bias.shape == (401,)


def test_the_pieces_of_an_added_subword_are_old_entries() -> None:
    one = TokenizerConfig(kind="bpe", vocab_size=270)
    known = train_tokenizer(["the cat sleeps"] * 3, one)
    extended = with_added_entries(known, ["the zebra sleeps"] * 3, 4)
    spelled = ["".join(known.entries[index] for index in ids) for ids in compositions(known, extended)]
    assert spelled == extended.entries[known.vocab_size :]


@pytest.mark.long
@pytest.mark.parametrize(
    ("changed", "lines"),
    [
        ({"model": {"d_model": 32}}, ["model.d_model: 16 in the run, 32 in the config"]),
        (
            {"model": {"num_kv_heads": 1, "norm": "rmsnorm"}},
            ["model.num_kv_heads: 2 in the run, 1", "model.norm: layernorm in"],
        ),
        ({"tokenizer": {"kind": "bpe"}}, ["tokenizer.kind: wordlevel in the run, bpe in the config"]),
        ({"tokenizer": {"vocab_size": 500}}, ["tokenizer.vocab_size: absent in the run, 500"]),
    ],
)
def test_another_architecture_is_refused_with_each_difference(changed: dict[str, Any], lines: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        train(fine_tuned("refused", {}, **changed))
    assert [line for line in lines if line not in caught.value.message] == []
    assert "the config.yaml of that run" in str(caught.value)


@pytest.mark.long
@pytest.mark.parametrize(
    "same",
    [
        {"num_kv_heads": 2},
        {"head_dim": 8},
        {"final_norm": True},
        {"dropout": 0.3, "layer_dropout": 0.2},
        {"max_length": 99},
        {"alignment_head": 1, "alignment_layer": 0},
    ],
)
def test_settings_that_mean_the_same_weights_may_differ(same: dict[str, Any]) -> None:
    assert load_initial_model(fine_tuned("new", {}, model=same), Path("runs/new")) is not None


def test_a_run_that_does_not_exist_is_named_with_the_setting() -> None:
    with pytest.raises(MissingInputError) as caught:
        train(fine_tuned("refused", {"init_from": "odl"}))
    assert "training.init_from: odl: no such run" in str(caught.value)
    assert "did you mean old" in str(caught.value)


@pytest.mark.long
def test_from_scratch_without_the_other_run_leaves_the_checkpoints_where_they_are() -> None:
    shutil.copytree("runs/old", "runs/deleted")
    again = fine_tuned("again", {"init_from": "deleted"})
    train(again)
    shutil.rmtree("runs/deleted")
    with pytest.raises(MissingInputError, match=r"training.init_from: deleted: no such run"):
        train(again, from_scratch=True)
    assert load_trained(Path("runs/again"), which="last").step == 6
    assert train(again).step == 6


def test_a_run_cannot_start_from_itself() -> None:
    with pytest.raises(ConfigError, match="old is this run itself"):
        load_initial_model(fine_tuned("old", {}), Path("runs/old"))


def test_a_refused_start_leaves_no_folder_of_a_new_run_and_an_old_one_as_it_was() -> None:
    with pytest.raises(ConfigError, match="fresh is this run itself"):
        train(fine_tuned("fresh", {"init_from": "fresh"}))
    with pytest.raises(MissingInputError, match="deleted: no such run"):
        train(fine_tuned("fresh", {"init_from": "deleted"}))
    assert not Path("runs/fresh").exists()
    Path("runs/begun").mkdir()
    with pytest.raises(MissingInputError, match="deleted: no such run"):
        train(fine_tuned("begun", {"init_from": "deleted"}))
    assert "no such run" in Path("runs/begun/train.log").read_text()


def test_a_folder_that_cannot_be_removed_does_not_hide_the_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise StorageError("the disk is broken")

    monkeypatch.setattr(run_folder, "remove", fail)
    with pytest.raises(ConfigError, match="stuck is this run itself"):
        train(fine_tuned("stuck", {"init_from": "stuck"}))


@pytest.mark.long
def test_sequences_with_other_special_tokens_are_refused(tmp_path: Path) -> None:
    overrides = [
        *("data.num_pairs=50", "training.max_steps=2", "runtime.threads=1"),
        *("model.d_model=16", "model.encoder_layers=1", "model.decoder_layers=1"),
        *("validation.num_samples=0", "validation.sequence_lengths=[5]"),
    ]
    plain = load_config("drop-first.yaml", [*overrides, "name=without-end"])
    train(plain)
    other = load_config(
        "drop-first.yaml",
        [*overrides, "name=with-end", "data.task=copy", "data.end_symbol=true", "training.init_from=without-end"],
    )
    with pytest.raises(ConfigError, match="was trained on sequences with other special tokens"):
        train(other)


@pytest.mark.long
def test_the_directions_may_stand_in_another_order(caplog: pytest.LogCaptureFixture) -> None:
    shared = {"kind": "bpe", "vocab_size": 300, "shared": True}
    there = settings("both", "old.tsv", tokenizer=shared)
    there["data"]["both_directions"] = True
    train(check_settings(there, "test"))
    back = settings("back", "new.tsv", tokenizer=shared, training={"init_from": "both"})
    back["data"] |= {"both_directions": True, "source_language": "it", "target_language": "en"}
    caplog.clear()
    train(check_settings(back, "test"))
    assert "but this run translates" not in caplog.text
    tokenizer = load_trained(Path("runs/back")).source_tokenizer
    assert tokenizer.special_tokens[-2:] == ("<2it>", "<2en>")
    one_way = settings("one-way", "new.tsv", tokenizer=shared, training={"init_from": "both"})
    with pytest.raises(ConfigError) as caught:
        train(check_settings(one_way, "test"))
    found = str(caught.value)
    assert "both translates en-it, it-en and reads <2it> or <2en> before each source" in found
    assert "this config translates en-it and reads no tag before a source" in found
    assert "SequenceFormat" not in found


def test_tokenizers_with_other_special_tokens_are_refused(tmp_path: Path, folder: Path) -> None:
    shutil.copytree(folder / "runs/old/checkpoints/step-00000006", tmp_path / "copy")
    name = "tokenizer.source.json"
    text = (tmp_path / "copy" / name).read_text(encoding="utf-8").replace("[EOS]", "</s>")
    forge(tmp_path / "copy", name, text.encode())
    with pytest.raises(DataError, match=r"tokenizer.source.json: tokenizer refused"):
        train(fine_tuned("refused", {"init_from": str(tmp_path / "copy")}))


@pytest.mark.parametrize("name", ["frozen", "add_words"])
def test_settings_of_fine_tuning_without_init_from_are_an_error(name: str) -> None:
    value = {"frozen": ["encoder"], "add_words": 5}[name]
    with pytest.raises(ConfigError, match=f"{name} is for fine-tuning; give init_from"):
        config("any", "old.tsv", training={name: value})


def test_rows_that_could_not_be_learned_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"new rows of training.add_words could not be learned"):
        train(fine_tuned("refused", {"add_words": 3, "frozen": ["embeddings"]}))
    values = settings("refused", "new.tsv", training={"init_from": "old", "frozen": ["output"]})
    values["data"]["corpora"] = [{"path": "new.tsv", "split": "train", "tag": "<BT>"}]
    with pytest.raises(ConfigError, match=r"new rows of the tag <BT> could not be learned"):
        load_initial_model(check_settings(values, "test"), Path("runs/refused"))


@pytest.mark.long
def test_a_tag_that_the_old_run_does_not_know_gets_a_row_near_the_mean() -> None:
    values = settings("tagged", "new.tsv", training={"init_from": "old"})
    values["data"]["corpora"] = [
        {"path": "new.tsv", "split": "train", "tag": "<BT>"},
        {"path": "old.tsv", "split": "validation"},
    ]
    train(check_settings(values, "test"))
    tagged, old = load_trained(Path("runs/tagged")), load_trained(Path("runs/old"))
    assert tagged.source_tokenizer.entries == [*old.source_tokenizer.entries, "<BT>"]
    assert tagged.target_tokenizer.entries == old.target_tokenizer.entries
    assert compositions(old.source_tokenizer, tagged.source_tokenizer) == [[]]


@pytest.mark.parametrize(
    ("origin", "problem"),
    [
        ([], "init_from is not a JSON object"),
        ({"run": "old"}, "init_from.checkpoint is missing"),
        ({"run": 3}, "init_from.run is 3 instead of a short text"),
        ({"run": "x" * 300}, "init_from.run is 'xxx"),
    ],
)
def test_a_damaged_record_of_the_origin_is_refused(tmp_path: Path, folder: Path, origin: Any, problem: str) -> None:
    shutil.copytree(folder / "runs/old/checkpoints/step-00000006", tmp_path / "copy")
    state = json.loads((tmp_path / "copy/state.json").read_bytes()) | {"init_from": origin}
    forge(tmp_path / "copy", "state.json", json.dumps(state).encode())
    with pytest.raises(DataError, match=re.escape(problem)):
        checked_origin(open_checkpoint(tmp_path / "copy"))


def test_the_sequences_of_a_task_are_no_text_whose_lengths_are_recorded() -> None:
    of_task = {
        "name": "a",
        "data": {"source": "sequences"},
        "training": {"max_steps": 1, "batch_sentences": 1},
    }
    unread = cast(PreparedData, None)
    assert all_seen_lengths(unread, Config.model_validate(of_task), None, None) == UNKNOWN_LENGTHS


@pytest.mark.long
def test_a_fine_tuned_run_records_the_lengths_that_both_runs_have_seen() -> None:
    train(fine_tuned("lengths", {}))
    old, new = (load_trained(Path("runs") / name) for name in ("old", "lengths"))
    of_data = []
    for name in ("old", "lengths"):
        corpus = EncodedCorpus.open(Path("runs") / name / "data" / "train.arrow")
        of_data.append(lengths_seen_in(corpus))
    before, after = (seen_lengths_of(one.checkpoint, one.config) for one in (old, new))
    assert before == of_data[0]
    assert before.longest is not None
    assert after == of_data[0].joined(of_data[1])
    assert "seen_lengths" in new.checkpoint.state()
    words_of_old, words_of_new = (
        read_seen_words(RunFolder(Path("runs") / one).seen_words_file) for one in ("old", "lengths")
    )
    assert words_of_old is not None
    assert words_of_new is not None
    assert words_of_new != words_of_old
    assert words_of_new.common(words_of_old) == words_of_old
    # What a model of an earlier version has seen is not known, so nothing is known of a run that begins with it.
    (Path("runs") / "old" / "seen_words.json").rename("aside")
    try:
        train(fine_tuned("unknown", {}))
        assert read_seen_words(RunFolder(Path("runs") / "unknown").seen_words_file) is None
    finally:
        Path("aside").rename(Path("runs") / "old" / "seen_words.json")


@pytest.mark.long
def test_an_old_run_without_a_record_gets_none_when_its_data_changes() -> None:
    """What it has seen until then is not known; a run with a record has seen the words of both."""
    old, new = ([(f"{word} {source}", target) for source, target in PAIRS] for word in ("red", "blue"))
    for name in ("recorded", "unrecorded"):
        write_pairs(Path(f"{name}.tsv"), old)
        record = train(config(name, f"{name}.tsv")).folder / "seen_words.json"
        if name == "unrecorded":
            record.unlink()
        write_pairs(Path(f"{name}.tsv"), new)
        train(config(name, f"{name}.tsv", training={"max_steps": 7}), accept_data_change=True)
        found = read_seen_words(record)
        assert (found is not None) == (name == "recorded")
        assert found is None or ("red" in found and "blue" in found)


def test_other_languages_are_told(caplog: pytest.LogCaptureFixture) -> None:
    values = settings("french", "new.tsv", training={"init_from": "old"})
    values["data"]["target_language"] = "fr"
    with caplog.at_level(logging.WARNING):
        load_initial_model(check_settings(values, "test"), Path("runs/french"))
    assert "old translates en-it, but this run translates en-fr" in caplog.text


SMALLER = {"encoder_layers": 1, "decoder_layers": 1, "decoder_layer": "ssru"}


def test_a_shrunk_model_starts_from_the_last_layers_and_its_ssru_from_random_weights() -> None:
    shrunk = fine_tuned("shrunk", {"shrink": True}, model=SMALLER)
    initial = load_initial_model(shrunk, Path("runs/shrunk"))
    assert initial is not None
    found, old = new_model(shrunk, initial.trained.tokenizers, initial).state_dict(), weights("old")
    for name, value in found.items():
        if ".ssru" not in name:
            of_old = name.replace("encoder.layers.0.", "encoder.layers.1.")
            assert torch.equal(value, old[of_old]), name
    assert any(".ssru" in name for name in found)


def test_layers_are_evenly_spread_and_the_last_one_is_among_them() -> None:
    names = [f"{part}.layers.{number}.x" for part in ("encoder", "decoder") for number in range(6)]
    teacher = {name: torch.tensor(float(number)) for number, name in enumerate(names)}
    student = {f"encoder.layers.{n}.x": torch.tensor(-1.0) for n in range(4)}
    student |= {f"decoder.layers.{n}.x": torch.tensor(-1.0) for n in range(2)}
    found, said = shrunk_weights(teacher, student)
    assert [found[f"encoder.layers.{n}.x"].item() for n in range(4)] == [1, 2, 4, 5]
    assert [found[f"decoder.layers.{n}.x"].item() for n in range(2)] == [8, 11]
    assert said == "encoder 1, 2, 4, 5 of 6; decoder 2, 5 of 6"


def test_a_model_shrinks_only_in_its_layers() -> None:
    wider = fine_tuned("shrunk", {"shrink": True}, model={**SMALLER, "d_ff": 64})
    with pytest.raises(ConfigError, match=r"model.d_ff: 32 in the run, 64 in the config") as error:
        load_initial_model(wider, Path("runs/shrunk"))
    assert "encoder_layers" not in error.value.message
    deeper = fine_tuned("shrunk", {"shrink": True}, model={"encoder_layers": 3})
    with pytest.raises(ConfigError, match=r"model.encoder_layers: 2 in the run, 3"):
        load_initial_model(deeper, Path("runs/shrunk"))
