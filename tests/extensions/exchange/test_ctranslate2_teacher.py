"""A folder of CTranslate2 as a teacher: with the tokenizer of `tfm export`, or with SentencePiece models."""

from pathlib import Path

import pytest

from transformer_cli.checkpoint.trained_files import load_trained
from transformer_cli.config import TokenizerConfig
from transformer_cli.decoding.loading import load_run
from transformer_cli.extensions.exchange.ctranslate2 import CTranslate2Format
from transformer_cli.extensions.exchange.ctranslate2_teacher import CTranslate2Teacher
from transformer_cli.process.errors import DataError, MissingInputError

from .small_runs import random_run

pytest.importorskip("ctranslate2")

RUN = Path(__file__).parents[3] / "docs/run"
LINES = ["Where is the station?", "", "The red cars are in front of the house."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small run in the format of CTranslate2."""
    folder = tmp_path_factory.mktemp("ct2")
    CTranslate2Format().write(load_trained(RUN), folder, quantization=None)
    return folder


@pytest.mark.long
def test_its_best_translations_are_those_of_the_run(folder: Path) -> None:
    found = CTranslate2Teacher(folder).translate(LINES, 3)
    settings = ["decoding.beam_size=4", "runtime.device=cpu", "decoding.length_penalty=0"]
    of_run = [one.text for one in load_run(str(RUN), settings).translator.translate(LINES)]
    assert [candidates[0][1] for candidates in found] == of_run
    assert found[1] == [(0.0, "")]
    for candidates in (found[0], found[2]):
        scores = [score for score, _ in candidates]
        assert len(candidates) == len({text for _, text in candidates}) == 3
        assert scores == sorted(scores, reverse=True)


def test_a_folder_without_a_tokenizer_is_refused(folder: Path, tmp_path: Path) -> None:
    for name in ("config.json", "model.bin", "shared_vocabulary.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    with pytest.raises(MissingInputError, match="no tokenizer"):
        CTranslate2Teacher(tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("has_bytes", [False, True])
def test_the_export_of_a_run_with_sentencepiece_is_a_teacher(has_bytes: bool, tmp_path: Path) -> None:
    of_tokens = TokenizerConfig(
        kind="sentencepiece", vocab_size=400 if has_bytes else 120, byte_fallback=has_bytes or None
    )
    trained = random_run(tmp_path / "run", tokenizer=of_tokens)
    (tmp_path / "out").mkdir()
    CTranslate2Format().write(trained, tmp_path / "out", quantization=None)
    teacher = CTranslate2Teacher(tmp_path / "out")
    target = trained.target_tokenizer
    ids = target.encode("Dov'è la 火 «stazione»?")
    assert has_bytes is (target.unk_id not in ids)
    names = [target.entries[index] for index in ids if index != target.unk_id]
    assert teacher._text([*names, "[EOS]"]) == target.decode([index for index in ids if index != target.unk_id])
    [[(_, text)]] = teacher.translate(LINES[:1], 1)
    assert "<0x" not in text


@pytest.mark.long
def test_a_line_longer_than_the_positions_of_the_model_does_not_end_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("transformer_cli.extensions.exchange.ctranslate2.MIN_POSITIONS", 0)
    trained = random_run(tmp_path / "run", positions="learned", max_length=32)
    (tmp_path / "out").mkdir()
    CTranslate2Format().write(trained, tmp_path / "out", quantization=None)
    teacher = CTranslate2Teacher(tmp_path / "out")
    line = "The cat sleeps on the chair. "
    beginning, other = ([text for _, text in one] for one in teacher.translate([9 * line, line], 2))
    assert other == [text for _, text in teacher.translate([line], 2)[0]]
    assert beginning == [text for _, text in teacher.translate([40 * line], 2)[0]]
    assert "1 lines have more than 31 tokens" in caplog.text


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("config.json", MissingInputError, "config.json: no such file"),
        ("model.bin", DataError, "CTranslate2 cannot read the model"),
        ("tokenizer.json", DataError, "its tokenizer cannot be read"),
    ],
)
def test_a_damaged_folder_is_named(
    name: str, error: type[Exception], message: str, folder: Path, tmp_path: Path
) -> None:
    for path in folder.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / name).unlink()
    if error is DataError:
        (tmp_path / name).write_bytes(b"damaged")
    with pytest.raises(error, match=message):
        CTranslate2Teacher(tmp_path)
