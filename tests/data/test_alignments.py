"""Given word alignments stay with their pair, through cleaning, subwords and batches; faulty files are refused by name and line."""

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from transformer_cli.checkpoint.checkpoints import portable_config
from transformer_cli.config import Config, FilesData, to_yaml
from transformer_cli.data.preparation import PreparedData, prepare_data
from transformer_cli.data.updates import StoredUpdates, Updates, training_pairs
from transformer_cli.process.errors import ConfigError, DataError, MissingInputError
from transformer_cli.text.normalization import word_spans, words_at

WORDS = [
    "gatto",
    "cane",
    "mare",
    "montagna",
    "libro",
    "strada",
    "finestra",
    "albero",
    "pane",
    "vino",
]


def reversed_pair(numbers: Random) -> tuple[str, str, str]:
    """Some words, the same words in capital letters and reversed, and the links between them."""
    words = numbers.choices(WORDS, k=numbers.randint(2, 7))
    last = len(words) - 1
    links = " ".join(f"{number}-{last - number}" for number in range(len(words)))
    return " ".join(words), " ".join(reversed(words)).upper(), links


def write(folder: Path, rows: list[tuple[str, str, str]], name: str = "train") -> None:
    for suffix, column in zip(("source", "target", "links"), zip(*rows, strict=True), strict=True):
        (folder / f"{name}.{suffix}").write_text("".join(f"{line}\n" for line in column))


def config_of(folder: Path, **data: Any) -> Config:
    corpus = {"source_path": "train.source", "target_path": "train.target"}
    training = {**corpus, "alignment_path": "train.links", "split": "train"}
    validation = {"source_path": "val.source", "target_path": "val.target", "split": "validation"}
    cleaning = {"max_dropped_share": 1.0, "max_length_ratio": None}
    files = {"source": "files", "root": str(folder), "corpora": [training, validation]}
    return Config.model_validate(
        {
            "name": "aligned",
            "data": {**files, "cleaning": cleaning, **data},
            "tokenizer": {"kind": "bpe", "vocab_size": 300, "shared": True},
            "model": {"preset": "tiny", "alignment_head": 0},
            "training": {"max_steps": 1, "batch_sentences": 4, "guided_alignment": 0.1},
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A corpus of which cleaning drops pairs: empty ones, duplicates, and one that is a validation pair."""
    numbers = Random(1)
    rows = [reversed_pair(numbers) for _ in range(40)]
    held_out = reversed_pair(numbers)
    rows[3], rows[7] = ("", "", ""), rows[5]
    rows[11], rows[20] = held_out, ("", "NIENTE", "")
    rows[30] = (rows[30][0], rows[30][1], "")  # a pair without links
    write(tmp_path, rows)
    write(tmp_path, [held_out], "val")
    return tmp_path


def words_of_tokens(data: PreparedData, ids: list[int]) -> list[str | None]:
    """The word of each token, in small letters; None for tags and [EOS]."""
    tokenizer = data.source_tokenizer
    text = tokenizer.decode(ids)
    spans = word_spans(text)
    words = words_at(tokenizer.decoded_spans(ids), spans)
    is_text = [index >= len(tokenizer.special_tokens) for index in ids]
    return [
        text[slice(*spans[of_token[0]])].lower() if known and of_token else None
        for of_token, known in zip(words, is_text, strict=True)
    ]


@pytest.mark.long
@pytest.mark.parametrize("both_directions", [False, True])
def test_links_stay_with_their_pair_and_join_the_subwords_of_its_words(folder: Path, both_directions: bool) -> None:
    config = config_of(folder, both_directions=both_directions)
    data = prepare_data(config, folder / "data")
    train = data.train
    assert len(train) == 36 * (1 + both_directions)
    without_links = 0
    for number in range(len(train)):
        source, target = (side.tolist() for side in train[number])
        found = train.links(np.array([number]))
        assert found is not None
        links = set(zip(found[0][0::2].tolist(), found[0][1::2].tolist(), strict=True))
        words = [words_of_tokens(data, side) for side in (source, target)]
        names, others = ([word for word in side if word] for side in words)
        assert len(names) >= 2
        assert len(others) >= 2
        if not links:
            without_links += 1
            continue
        # Each token of the text has a link, only to tokens of the same word, and to all tokens of one such word.
        for position, word in enumerate(words[1]):
            linked = [words[0][other] for at, other in links if at == position]
            assert set(linked) == ({word} if word else set())
        assert {words[0][other] for _, other in links} == set(names)
    assert without_links == 1 + both_directions


def test_the_matrix_of_a_batch_has_the_links_of_its_rows(folder: Path) -> None:
    config = config_of(folder)
    data = prepare_data(config, folder / "data")
    pairs, order = training_pairs(data.train, data.tokenizers, config)
    with Updates(StoredUpdates(pairs, order)) as updates:
        [batch] = next(updates)
    assert batch.alignment is not None
    assert batch.alignment.shape == (4, batch.target_ids.size(1), batch.source_ids.size(1))
    for row, alignment in enumerate(batch.alignment):
        of_row = [
            number
            for number in range(len(data.train))
            if data.train[number].source_ids.tolist() == batch.source_ids[row][batch.source_mask[row]].tolist()
        ]
        [links] = data.train.links(np.array(of_row[:1])) or []
        found = [[int(t), int(s)] for t, s in alignment.nonzero()]
        assert found == links.reshape(-1, 2).tolist()
    first, second = batch.halves()
    assert first.alignment is not None
    assert second.alignment is not None
    assert (len(first.alignment), len(second.alignment)) == (2, 2)
    assert batch.without_targets().alignment is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0-0 1", r"train\.links: line 3: '1' is not a link"),
        ("0-x", r"train\.links: line 3: '0-x' is not a link"),
        ("0:0", r"train\.links: line 3: '0:0' is not a link"),
        ("9-0", r"line 3: the link 9-0 names word 9 of the source, which has only 2 words"),
        ("0-0 1-2", r"line 3: the link 1-2 names word 2 of the target, which has only 2 words"),
    ],
)
def test_a_faulty_line_is_refused_with_its_number(folder: Path, line: str, message: str) -> None:
    rows = [("uno due", "UNO DUE", "0-0")] * 2 + [("due tre", "DUE TRE", line), ("sei", "SEI", "")]
    write(folder, rows)
    with pytest.raises(DataError, match=message):
        prepare_data(config_of(folder), folder / "data")


@pytest.mark.parametrize(("num_lines", "found"), [(38, "38"), (43, "43")])
def test_another_number_of_lines_is_refused(folder: Path, num_lines: int, found: str) -> None:
    lines = (folder / "train.links").read_text().splitlines() + [""] * 3
    (folder / "train.links").write_text("".join(f"{line}\n" for line in lines[:num_lines]))
    with pytest.raises(DataError, match=rf"train\.links has {found} lines, but its corpus has"):
        prepare_data(config_of(folder), folder / "data")


def test_a_missing_file_is_named(folder: Path) -> None:
    (folder / "train.links").unlink()
    with pytest.raises(MissingInputError, match=r"train\.links: no such file"):
        prepare_data(config_of(folder), folder / "data")


def test_a_changed_file_is_a_changed_corpus(folder: Path) -> None:
    prepare_data(config_of(folder), folder / "data")
    (folder / "train.links").write_text("\n" * 40)
    with pytest.raises(DataError, match=r"train\.links"):
        prepare_data(config_of(folder), folder / "data")


def test_a_checkpoint_keeps_only_the_name_of_the_file() -> None:
    data = portable_config(config_of(Path("/home/canary"))).data
    assert isinstance(data, FilesData)
    assert data.corpora[0].alignment_path == "train.links"
    elsewhere = config_of(Path("/home/canary")).model_dump(mode="json", exclude_none=True)
    elsewhere["data"]["corpora"][0]["alignment_path"] = "/home/canary/train.links"
    assert "canary" not in to_yaml(portable_config(Config.model_validate(elsewhere)))


def test_words_that_cleaning_removes_take_the_links_of_their_pair_with_them(folder: Path) -> None:
    """A soft hyphen alone is a word for the writer of the links, and nothing for the model."""
    write(folder, [("uno \u00ad due", "UNO DUE", "0-0 2-1"), ("tre sei", "TRE SEI", "0-0 1-1")])
    data = prepare_data(config_of(folder), folder / "data")
    found = data.train.links(np.arange(2))
    assert found is not None
    assert [bool(len(one)) for one in found] == [False, True]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"training": {"guided_alignment": None}}, "alignment_path has no effect without"),
        ({"model": {"alignment_head": None}}, r"needs model\.alignment_head"),
        ({"model": {"alignment_head": 4}}, r"alignment_head \(4\) must be below num_heads \(4\)"),
        ({"model": {"alignment_layer": 4}}, r"alignment_layer \(4\) must be below decoder_layers"),
        ({"training": {"r_drop": 1.0}}, r"training\.r_drop runs each batch twice"),
        ({"training": {"bpe_dropout": 0.1}}, r"training\.bpe_dropout cuts words anew"),
        ({"runtime": {"compile": True}}, r"runtime\.compile"),
    ],
)
def test_settings_that_cannot_stand_together_are_refused(
    changes: dict[str, dict[str, Any]], message: str, tmp_path: Path
) -> None:
    values = config_of(tmp_path).model_dump(mode="json", exclude_none=True)
    for section, settings in changes.items():
        values[section] = {**values[section], **settings}
    with pytest.raises((ConfigError, ValueError), match=message):
        Config.model_validate(values)
