"""The lengths that a checkpoint says its model has seen: recorded, or estimated for a run of an earlier version."""

from pathlib import Path
from typing import Any

import pytest

from transformer_cli.checkpoint.checkpoints import Checkpoints, portable_files
from transformer_cli.checkpoint.run_folder import Snapshot, open_checkpoint
from transformer_cli.checkpoint.trained_files import read_trained_files, seen_lengths_of
from transformer_cli.config import FilesData
from transformer_cli.process.errors import DataError
from transformer_cli.text.sentences import UNKNOWN_LENGTHS, SeenLengths

from .models import parts


def seen_of(folder: Path, state: dict[str, Any], languages: tuple[str, str] = ("en", "it")) -> SeenLengths:
    config, source, target, model = parts()
    sides = dict(zip(("source_language", "target_language"), languages, strict=True))
    corpus = {"source": "files", "corpora": [{"source_path": "a", "target_path": "b"}]}
    config = config.model_copy(update={"data": FilesData.model_validate({**corpus, **sides})})
    snapshot = Snapshot(10, model.state_dict(), {}, state, portable_files(config, source, target))
    saved = open_checkpoint(Checkpoints(folder).save(snapshot))
    return seen_lengths_of(saved, read_trained_files(saved.folder).config)


@pytest.mark.parametrize("seen", [SeenLengths(31, 0.55), SeenLengths(31, None), UNKNOWN_LENGTHS])
def test_recorded_lengths_come_back(tmp_path: Path, seen: SeenLengths) -> None:
    assert seen_of(tmp_path, {"seen_lengths": seen._asdict()}) == seen


def test_the_sentences_of_the_validation_stand_in_for_those_of_the_training(tmp_path: Path) -> None:
    validation = {"num_sentences": 200, "num_target_tokens": 2000}
    assert seen_of(tmp_path, {"validation": validation}) == SeenLengths(25, 0.4)


@pytest.mark.parametrize(
    "validation",
    [None, [], {}, {"num_sentences": 0, "num_target_tokens": 5}, {"num_sentences": "7", "num_target_tokens": 5}],
)
def test_without_a_validation_no_sentence_is_too_long(tmp_path: Path, validation: Any) -> None:
    assert seen_of(tmp_path, {"validation": validation}) == SeenLengths(None, 0.4)


def test_what_an_imported_model_has_seen_is_not_known(tmp_path: Path) -> None:
    validation = {"num_sentences": 200, "num_target_tokens": 2000}
    state = {"imported": {}, "validation": validation}
    assert seen_of(tmp_path, state) == SeenLengths(None, 0.4)


def test_between_a_language_with_spaces_and_one_without_no_ratio_is_assumed(tmp_path: Path) -> None:
    assert seen_of(tmp_path, {}, ("en", "zh")) == UNKNOWN_LENGTHS


@pytest.mark.parametrize("recorded", [3, {"longest": "x"}, {"longest": -1}, {"smallest_ratio": []}])
def test_a_record_that_is_none_is_refused(tmp_path: Path, recorded: Any) -> None:
    with pytest.raises(DataError, match=r"state\.json: seen_lengths"):
        seen_of(tmp_path, {"seen_lengths": recorded})
