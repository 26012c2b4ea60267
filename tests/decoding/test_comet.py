"""COMET as the utility of minimum Bayes risk: with a small stand-in for the library, or with a model on this computer."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from transformer_cli.commands.translate_lines import TranslateOptions, translate_lines
from transformer_cli.decoding.comet import comet_utility
from transformer_cli.process.errors import MissingInputError, UsageError

from .small_translators import WORDS, tokenizer_of_words, translator

LINES = [f"{one} {other}" for one in WORDS[:4] for other in WORDS]


def score_of(source: str, text: str, reference: str) -> float:
    """Some number that depends on all three."""
    return float((sum(map(ord, source)) * 7 + sum(map(ord, text)) * 3 + len(reference)) % 101) / 101


class SmallModel:
    """The part of the interface of a COMET model that is used."""

    has_references = True

    def requires_references(self) -> bool:
        return self.has_references

    def predict(self, samples: list[dict[str, str]], **_: Any) -> SimpleNamespace:
        scores = [score_of(one["src"], one["mt"], one["ref"]) for one in samples]
        return SimpleNamespace(scores=scores)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """A stand-in for the library; returns the calls that load a model."""
    calls: list[tuple[str, dict[str, Any]]] = []
    library: Any = ModuleType("comet")

    def load_from_checkpoint(path: str, **options: Any) -> SmallModel:
        calls.append((path, options))
        return SmallModel()

    library.load_from_checkpoint = load_from_checkpoint
    monkeypatch.setitem(sys.modules, "comet", library)
    return calls


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "checkpoints").mkdir()
    for name in ("hparams.yaml", "checkpoints/model.ckpt"):
        (tmp_path / name).write_text("")
    return tmp_path


def test_the_matrix_holds_the_score_of_each_text_against_each_reference(loaded: list[Any], folder: Path) -> None:
    texts = ["uno", "due tre", "sei"]
    found = comet_utility(folder)("otto", texts)
    expected = [[score_of("otto", text, other) for other in texts] for text in texts]
    assert found == pytest.approx(np.array(expected))
    assert loaded == [(str(folder / "checkpoints" / "model.ckpt"), {"local_files_only": True})]


@pytest.mark.usefixtures("loaded")
def test_the_choice_is_that_of_a_double_loop(folder: Path) -> None:
    search: dict[str, object] = {"beam_size": 6, "max_length": 6}
    by_score = translator(tokenizer_of_words(), num_best=6, **search)
    by_chrf = translator(tokenizer_of_words(), mbr={}, **search)
    by_comet = replace(by_chrf, utility=comet_utility(folder))
    num_changed = 0
    for found, one, other in zip(
        by_comet.translate(LINES), by_score.translate(LINES), by_chrf.translate(LINES), strict=True
    ):
        texts = [each.text for each in one.alternatives]
        means = [np.mean([score_of(found.source, text, ref) for ref in texts]) for text in texts]
        assert found.text == texts[int(np.argmax(means))]
        num_changed += found.text != other.text
    assert num_changed > 3


def test_a_folder_that_is_no_model_is_refused_before_the_library_is_imported(
    tmp_path: Path,
) -> None:
    with pytest.raises(MissingInputError, match=r"hparams\.yaml: no such file, so .* is no COMET"):
        comet_utility(tmp_path)
    (tmp_path / "hparams.yaml").write_text("")
    with pytest.raises(MissingInputError, match=r"model\.ckpt: no such file"):
        comet_utility(tmp_path)


def test_without_the_library_the_command_to_install_it_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "comet", None)
    with pytest.raises(UsageError, match="needs the package unbabel-comet") as refused:
        comet_utility(folder)
    assert 'pip install ".[comet]", best in a virtual environment' in (refused.value.hint or "")


@pytest.mark.usefixtures("loaded")
def test_a_model_without_references_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SmallModel, "has_references", False)
    with pytest.raises(UsageError, match="reads no references"):
        comet_utility(folder)


@pytest.mark.long
@pytest.mark.usefixtures("loaded")
def test_the_command_chooses_by_the_model_and_only_with_minimum_bayes_risk(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def printed(comet: Path | None, **settings: object) -> Sequence[str]:
        of = translator(tokenizer_of_words(), beam_size=6, max_length=6, **settings)
        run = SimpleNamespace(translator=of, overridden=frozenset(), members=())
        monkeypatch.setattr("transformer_cli.commands.translate_lines.load_run", lambda *_, **__: run)
        options = TranslateOptions(comet=comet)
        translate_lines(LINES, None, options)
        return capfd.readouterr().out.splitlines()

    assert len(printed(folder, mbr={})) == len(LINES)
    assert printed(folder, mbr={}) != printed(None, mbr={})
    with pytest.raises(UsageError, match="--comet works only with"):
        printed(folder)


@pytest.mark.slow
def test_a_model_on_this_computer_prefers_the_translation_to_nonsense() -> None:
    folder = os.environ.get("TFM_COMET")
    if folder is None:
        pytest.skip("TFM_COMET names no folder of a COMET model")
    pytest.importorskip("comet")
    texts = ["Il gatto dorme.", "Il gatto sta dormendo.", "Sette treni verdi!"]
    means = comet_utility(Path(folder))("The cat is sleeping.", texts).mean(1)
    assert means.argmin() == 2
