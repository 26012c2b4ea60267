"""Files with the line ends of old Macs: carriage returns, alone or mixed with line feeds."""

import gzip
import json
from pathlib import Path

import pytest
import zstandard

from transformer_cli.config import Config, SplitName
from transformer_cli.data.pairs import ReadingReport
from transformer_cli.data.selection import held_out_pairs
from transformer_cli.data.sources.corpus import read_pairs
from transformer_cli.data.sources.lines import MAX_LINE_BYTES
from transformer_cli.data.sources.local_files import read_pair_files
from transformer_cli.process.errors import DataError

ROWS = [("Italian", "English"), *((f"mare {n}", f"sea {n}") for n in range(500))]


def config_of(folder: Path, corpus: dict[str, object]) -> Config:
    data = {"source": "files", "root": str(folder), "corpora": [corpus], "validation_share": 0.5}
    training = {"max_steps": 1, "batch_sentences": 2}
    return Config.model_validate({"name": "a", "data": data, "training": training})


def read(folder: Path, corpus: dict[str, object]) -> list[tuple[str, str]]:
    data = config_of(folder, corpus).data
    return list(read_pair_files(data, 0, ReadingReport()))  # type: ignore[arg-type]


def table(separator: str, end: str, *, num_rows: int = 501) -> bytes:
    return "".join(f"{separator.join(row)}{end}" for row in ROWS[:num_rows]).encode()


def assert_told(error: DataError, file: str) -> None:
    assert error.exit_code == 65
    assert "carriage returns" in error.message
    assert "old Mac" in error.message
    assert "\r" not in error.message
    assert f"tr '\\r' '\\n' < {file} > new file" in str(error.hint)


NAMED = {"source_field": "Italian", "target_field": "English"}


@pytest.mark.parametrize(
    ("fields", "num_rows"),
    [({}, 3), ({}, 4), ({}, 501), (NAMED, 2), (NAMED, 3), (NAMED, 501)],
)
@pytest.mark.parametrize(("kind", "separator"), [("tsv", "\t"), ("csv", ","), ("csv", ";")])
def test_a_table_whose_lines_end_with_carriage_returns_is_told(
    kind: str, separator: str, fields: dict[str, str], num_rows: int, tmp_path: Path
) -> None:
    (tmp_path / f"a.{kind}").write_bytes(table(separator, "\r", num_rows=num_rows))
    with pytest.raises(DataError) as caught:
        read(tmp_path, {"path": f"a.{kind}"} | fields)
    assert_told(caught.value, f"a.{kind}")


@pytest.mark.parametrize("name", ["a.it", "a.it.gz", "a.it.zst"])
def test_text_whose_lines_end_with_carriage_returns_is_told(name: str, tmp_path: Path) -> None:
    source, target = ("\r".join(side).encode() for side in zip(*ROWS, strict=True))
    packed = {"gz": gzip.compress, "zst": zstandard.compress}.get(name[5:], bytes)
    (tmp_path / name).write_bytes(packed(source))
    (tmp_path / "a.en").write_bytes(target)
    with pytest.raises(DataError) as caught:
        read(tmp_path, {"source_path": name, "target_path": "a.en"})
    assert_told(caught.value, name)


@pytest.mark.parametrize("kind", ["tsv", "csv"])
def test_a_row_that_fails_because_of_mixed_line_ends_tells_of_them(kind: str, tmp_path: Path) -> None:
    separator = {"tsv": "\t", "csv": ","}[kind]
    mixed = table(separator, "\n") + table(separator, "\r", num_rows=3)
    (tmp_path / f"a.{kind}").write_bytes(mixed)
    with pytest.raises(DataError, match=rf"a\.{kind}:502: \d+ columns, where the first row has 2;") as caught:
        read(tmp_path, {"path": f"a.{kind}"} | NAMED)
    assert_told(caught.value, f"a.{kind}")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_few_carriage_returns_inside_sentences_are_no_line_ends(end: str, tmp_path: Path) -> None:
    rows = [*ROWS[:50], ("a\rb", "c"), ("d", "e\r\rf")]
    (tmp_path / "a.tsv").write_text("".join(f"{a}\t{b}{end}" for a, b in rows), newline="")
    assert len(read(tmp_path, {"path": "a.tsv"} | NAMED)) == 51


def test_a_giant_line_is_named_before_what_follows_from_it(tmp_path: Path) -> None:
    text = b"Italian\tEnglish\n" + b"x" * (3 * MAX_LINE_BYTES)
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(text, 1))
    with pytest.raises(DataError) as caught:
        held_out_pairs(config_of(tmp_path, {"path": "a.tsv.gz"} | NAMED), "validation")
    cause, consequence = caught.value.message.split("; ")
    assert cause.endswith("a.tsv.gz:2: a side of more than 1,048,576 bytes, which is no sentence")
    assert "no validation pairs" in consequence


def _files(end: str) -> dict[str, str]:
    """The rows in each format, with this behind each line, and in JSON behind each text."""
    quoted = "".join(f'"{source}","{target}"{end}' for source, target in ROWS)
    texts = end.removesuffix("\n")
    records = [{"it": f"{source}{texts}", "en": f"{target}{texts}"} for source, target in ROWS[1:]]
    return {
        "a.tsv": "".join(f"{source}\t{target}{end}" for source, target in ROWS),
        "a.csv": "".join(f"{source};{target}{end}" for source, target in ROWS),
        "quoted.csv": quoted,
        "a.it": "".join(f"{source}{end}" for source, _ in ROWS[1:]),
        "a.en": "".join(f"{target}{end}" for _, target in ROWS[1:]),
        "a.jsonl": "".join(f"{json.dumps(record)}{end}" for record in records),
    }


@pytest.mark.long
@pytest.mark.parametrize("split", ["train", "validation"])
@pytest.mark.parametrize(
    "corpus",
    [
        {"path": "a.tsv"} | NAMED,
        {"path": "a.csv"} | NAMED,
        {"path": "quoted.csv"} | NAMED,
        {"path": "a.jsonl", "source_field": "it", "target_field": "en"},
        {"source_path": "a.it", "target_path": "a.en"},
    ],
)
def test_line_ends_that_were_saved_twice_give_the_same_pairs_in_the_same_splits(
    corpus: dict[str, object], split: SplitName, tmp_path: Path
) -> None:
    found = []
    for name, end in (("unix", "\n"), ("twice", "\r\r\n")):
        (tmp_path / name).mkdir()
        for file, text in _files(end).items():
            (tmp_path / name / file).write_bytes(text.encode())
        data = config_of(tmp_path / name, corpus).data
        found.append([*read_pairs(data, split, seed=1, report=ReadingReport())])
    assert found[0] == found[1]
    assert 100 < len(found[0]) < 400
    assert not any("\r" in text for pair in found[1] for text in (pair.source, pair.target))
