"""A folder of CTranslate2 as a teacher: with the tokenizer of `tfm export`, or with SentencePiece models."""

from pathlib import Path

import pytest

from transformer_cli.checkpoint import load_trained
from transformer_cli.decoding.loading import load_run
from transformer_cli.extensions.exchange.ctranslate2 import CTranslate2Format
from transformer_cli.extensions.exchange.ctranslate2_teacher import CTranslate2Teacher
from transformer_cli.process.errors import MissingInputError

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
