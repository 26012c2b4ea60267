"""What a folder of CTranslate2 tells of its direction, before a student learns from it."""

import json
import logging
from pathlib import Path

import pytest

from transformer_cli.commands.recorded_steps import require_direction_of_ctranslate2
from transformer_cli.config import Direction
from transformer_cli.process.errors import UsageError

ENGLISH_ITALIAN = Direction("en", "it")
UNKNOWN = "nothing in it says which languages it translates"


def checked(folder: Path, files: dict[str, object], needed: Direction = ENGLISH_ITALIAN) -> None:
    folder.mkdir()
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name).write_text(text, encoding="utf-8")
    require_direction_of_ctranslate2(folder, needed, "--teacher")


@pytest.mark.parametrize(
    "files",
    [
        {"tfm-export.json": {"languages": ["it-en"]}},
        {"tfm-export.json": {"languages": ["it-en", "en-zh-Hans"]}},
        {"metadata.json": {"from_code": "it", "to_code": "en"}},
    ],
)
def test_a_folder_that_names_another_direction_is_refused(files: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"translates it-en.*, but en-it is needed"):
        checked(tmp_path / "en-it", files)


@pytest.mark.parametrize(
    ("name", "files", "needed"),
    [
        ("x", {"tfm-export.json": {"languages": ["it-en", "en-it"]}}, ENGLISH_ITALIAN),
        ("x", {"tfm-export.json": {"languages": ["en-zh-Hans"]}}, Direction("en", "zh")),
        ("x", {"metadata.json": {"from_code": "en", "to_code": "it"}}, Direction("en-US", "it")),
        ("opus-mt-en-it", {"shared_vocabulary.json": ["</s>", "__it__"]}, ENGLISH_ITALIAN),
        ("ct2_en_it_int8", {}, ENGLISH_ITALIAN),
    ],
)
def test_a_folder_of_the_direction_is_taken_without_a_word(
    name: str,
    files: dict[str, object],
    needed: Direction,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    checked(tmp_path / name, files, needed)
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("shared_vocabulary.json", ["a", ">>ita<<", ">>fra<<"]),
        ("source_vocabulary.json", ["ita_Latn", "a", "eng_Latn"]),
        ("shared_vocabulary.txt", "a\n__it__\n__fr__\n"),
    ],
)
def test_a_model_of_several_languages_is_refused_because_no_tag_is_written(
    file: str, content: object, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="is a model of several languages") as refused:
        checked(tmp_path / "en-it", {file: content})
    assert refused.value.hint is not None
    assert "--translations" in refused.value.hint


@pytest.mark.parametrize(
    ("name", "files", "reason"),
    [
        ("model", {}, UNKNOWN),
        ("opus-mt-it-en", {}, "its name says it-en"),
        ("co-op", {}, UNKNOWN),
        ("model", {"tfm-export.json": "{", "shared_vocabulary.json": "[1"}, UNKNOWN),
    ],
)
def test_a_direction_that_nothing_tells_is_named(
    name: str,
    files: dict[str, object],
    reason: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        checked(tmp_path / name, files)
    [message] = caplog.messages
    assert reason in message
    assert "en-it is needed" in message
