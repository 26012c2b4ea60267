"""Folders of `save_to_disk`, as a corpus of the library and as local files."""

from pathlib import Path
from typing import Any

import pytest

from transformer_cli.config.data import FilesData, HubData
from transformer_cli.data.pairs import ReadingReport
from transformer_cli.data.sources.hub import fingerprint_hub, read_hub
from transformer_cli.data.sources.local_files import fingerprint_files, read_pair_files
from transformer_cli.process.errors import DataError

PAIRS = [(f"sentence {number}", f"frase {number}") for number in range(1200)]


def dataset_of(pairs: list[tuple[str, str]]) -> Any:
    import datasets

    return datasets.Dataset.from_dict(
        {"id": list(range(len(pairs))), "translation": [{"en": en, "it": it} for en, it in pairs]}
    )


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A folder with a saved Dataset, `one`, and a saved DatasetDict, `both`."""
    import datasets

    datasets.disable_progress_bars()
    dataset_of(PAIRS).save_to_disk(tmp_path / "one", num_shards=2)
    splits = {"train": dataset_of(PAIRS[:1000]), "test": dataset_of(PAIRS[1000:])}
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "both")
    return tmp_path


def hub(root: Path, **corpus: Any) -> HubData:
    return HubData.model_validate({"source": "hub", "root": str(root), "corpora": [corpus]})


def files(root: Path, path: str) -> FilesData:
    values = {"source": "files", "root": str(root), "corpora": [{"path": path}]}
    return FilesData.model_validate(values)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("folder", "split", "expected"),
    [
        ("one", "train", PAIRS),
        ("one", "train[:25%]", PAIRS[:300]),
        ("both", "train", PAIRS[:1000]),
        ("both", "test", PAIRS[1000:]),
        ("both", "train[:1%]+test[-2:]", PAIRS[:10] + PAIRS[-2:]),
        ("both/test", "test", PAIRS[1000:]),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_saved_data_set_is_read_by_split_and_slice(
    saved: Path, folder: str, split: str, expected: list[tuple[str, str]], streamed: bool
) -> None:
    for root, dataset in ((saved, folder), (Path("."), str(saved / folder))):
        data = hub(root, dataset=dataset, dataset_split=split, streamed=streamed)
        assert list(read_hub(data, 0, ReadingReport())) == expected


def test_a_split_that_was_not_saved_is_named(saved: Path) -> None:
    data = hub(saved, dataset="both", dataset_split="validation")
    with pytest.raises(DataError, match=r'Unknown split "validation".*train') as refused:
        list(read_hub(data, 0, ReadingReport()))
    assert "dataset_split (validation)" in str(refused.value.hint)


@pytest.mark.long
def test_a_saved_data_set_is_read_as_local_files_too(saved: Path) -> None:
    for path, expected in (("one", PAIRS), ("both/test", PAIRS[1000:])):
        assert list(read_pair_files(files(saved, path), 0, ReadingReport())) == expected
    with pytest.raises(DataError, match="a saved DatasetDict") as refused:
        list(read_pair_files(files(saved, "both"), 0, ReadingReport()))
    assert f"path: {saved}/both/test" in str(refused.value.hint)
    assert "its splits: test, train" in str(refused.value.hint)


@pytest.mark.long
def test_the_fingerprint_follows_the_files_of_a_saved_data_set(saved: Path) -> None:
    def fingerprints() -> list[dict[str, str]]:
        return [fingerprint_hub(hub(saved, dataset="one"), 0), fingerprint_files(files(saved, "one"), 0)]

    before = fingerprints()
    assert all("one/data-00001-of-00002.arrow" in found for found in before)
    dataset_of(PAIRS[::-1]).save_to_disk(saved / "one", num_shards=2)
    assert all(old != new for old, new in zip(before, fingerprints(), strict=True))


@pytest.mark.long
def test_a_damaged_saved_data_set_is_an_error(saved: Path) -> None:
    (saved / "one" / "data-00000-of-00002.arrow").write_bytes(b"no arrow")
    with pytest.raises(DataError, match="one: a saved data set that cannot be read"):
        list(read_pair_files(files(saved, "one"), 0, ReadingReport()))
    with pytest.raises(DataError, match="the datasets library cannot read it"):
        list(read_hub(hub(saved, dataset="one"), 0, ReadingReport()))
