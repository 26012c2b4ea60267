"""What `tfm data diversify` says about the pairs that models have written, and the config that it writes for them."""

from pathlib import Path

import pytest

from transformer_cli.commands.diversify import that_trains
from transformer_cli.commands.synthetic_corpus import config_of_folder
from transformer_cli.config import Config, load_config
from transformer_cli.data.preparation import prepare_data
from transformer_cli.process.errors import DataError

from ..experiments import write_tiny

SOURCES = [f"one {number} two" for number in range(40)]
TARGETS = [f"uno {number} due" for number in range(40)]


def diversified(folder: Path, *written: list[str], overrides: tuple[str, ...] = ()) -> Config:
    """The config of a folder with 40 real pairs, and with the targets that models have written."""
    names = [("real-0.source", SOURCES), ("real-0.target", TARGETS)]
    names += [(f"written-{number}.target", targets) for number, targets in enumerate(written)]
    names += [
        (f"{split}.{side}", [f"{split} {side}"]) for split in ("validation", "test") for side in ("source", "target")
    ]
    for name, lines in names:
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    entries = [
        {"split": "train", "source_path": "real-0.source", "target_path": name}
        for name, _ in names
        if name.endswith(".target") and name.startswith(("real", "written"))
    ]
    entries += [
        {"split": split, "source_path": f"{split}.source", "target_path": f"{split}.target"}
        for split in ("validation", "test")
    ]
    given = load_config(str(folder / write_tiny(folder)), ["data.cleaning.drop_duplicates=true", *overrides])
    return config_of_folder(given, folder, entries, name="tiny-diversified")


def test_models_that_repeat_the_corpus_are_named_and_their_config_trains(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = [*TARGETS[:35], *(f"{target} tre" for target in TARGETS[35:])]
    given = diversified(tmp_path, TARGETS, other, TARGETS)
    with pytest.raises(DataError, match="lost 115 of its 160 pairs"):
        prepare_data(given, tmp_path / "refused")
    settings, num_written, num_new = that_trains(given, len(SOURCES))
    assert (num_written, num_new) == (120, 5)
    assert "only 5 of 120 written pairs are new" in caplog.text
    assert "--model-config" in caplog.text
    prepare_data(settings, tmp_path / "trains")
    # Of the pairs that are not equal, still no more than half may be dropped.
    assert settings.data.cleaning.max_dropped_share == pytest.approx(115 / 160 + 0.5 * 45 / 160, abs=1e-3)
    assert settings.data.cleaning.drop_duplicates


def test_a_config_whose_written_pairs_are_new_stays_as_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    given = diversified(tmp_path, [f"{target} tre" for target in TARGETS])
    assert that_trains(given, len(SOURCES)) == (given, 40, 40)
    assert not caplog.text


def test_equal_pairs_that_are_not_dropped_change_no_limit_and_are_not_new(tmp_path: Path) -> None:
    given = diversified(tmp_path, TARGETS, overrides=("data.cleaning.drop_duplicates=false",))
    assert that_trains(given, len(SOURCES)) == (given, 40, 0)


def test_a_config_does_not_allow_rubbish_of_the_models(tmp_path: Path) -> None:
    rubbish = ["x " * 150] * 40
    given = diversified(tmp_path, TARGETS, rubbish, rubbish, overrides=("data.cleaning.max_words=100",))
    settings, *_ = that_trains(given, len(SOURCES))
    with pytest.raises(DataError, match="max_words"):
        prepare_data(settings, tmp_path / "refused")
