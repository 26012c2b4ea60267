"""COMET with the library of Unbabel itself, and a tiny model with random weights."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from transformer_cli.commands.score import score_command
from transformer_cli.decoding.comet import comet_utility

from .scored_texts import REFERENCES, damaged, write_lines

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
SOURCES = [f"The sentence {number} of the source." for number in range(len(REFERENCES))]


@pytest.fixture(autouse=True)
def _library() -> None:
    """Skips without the library."""
    pytest.importorskip(
        "comet",
        reason='needs unbabel-comet: pip install ".[comet]"',
        exc_type=ImportError,
    )


def by_command(model: Path, *arguments: str) -> list[float]:
    """The score of each sentence, as `comet-score` writes them into a file."""
    subprocess.run(
        [
            *(sys.executable, "-m", "comet.cli.score", "-s", "source", "-t", "system", "--quiet"),
            *("--model", str(model / "checkpoints" / "model.ckpt"), "--to_json", "scores.json"),
            *arguments,
        ],
        check=True,
        capture_output=True,
    )
    said = json.loads(Path("scores.json").read_text())
    return [sentence["COMET"] for sentence in said["system"]]


@pytest.mark.parametrize("kind", ["regression_metric", "referenceless_regression_metric"])
def test_the_score_is_that_of_the_command_comet_score(
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    from .tiny_comet import save_comet

    monkeypatch.chdir(tmp_path)
    model = save_comet(tmp_path / "tiny", kind=kind)
    system = damaged(REFERENCES, 0.3, seed=1)
    for name, lines in (("source", SOURCES), ("system", system), ("reference", REFERENCES)):
        write_lines(Path(name), lines)
    has_references = kind == "regression_metric"
    said = by_command(model, *(("-r", "reference") if has_references else ()))
    assert len(set(said)) > len(said) / 2
    files = {"source": Path("source"), "comet": model}
    score_command(Path("system"), [Path("reference")], scores="chrf", as_json=True, **files)
    comet = json.loads(capfd.readouterr().out)["scores"][-1]
    assert comet["value"] == sum(said) / len(said)
    assert comet["signature"].startswith(f"nrefs:{int(has_references)}|model:tiny|")


def test_blank_lines_are_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from .tiny_comet import save_comet

    monkeypatch.chdir(tmp_path)
    write_lines(Path("blank"), ["", "", ""])
    files = {"source": Path("blank"), "comet": save_comet(tmp_path / "m")}
    score_command(Path("blank"), [Path("blank")], scores="chrf", as_json=True, **files)
    assert np.isfinite(json.loads(capfd.readouterr().out)["scores"][-1]["value"])


def test_the_utility_is_the_score_of_each_pair(tmp_path: Path) -> None:
    from comet import load_from_checkpoint

    from .tiny_comet import save_comet

    model = save_comet(tmp_path / "tiny")
    texts = ["Il gatto dorme.", "Sette treni verdi!", "Il gatto sta dormendo."]
    network = load_from_checkpoint(str(model / "checkpoints" / "model.ckpt"))
    samples = [{"src": "The cat.", "mt": one, "ref": other} for one in texts for other in texts]
    alone = [network.predict([each], gpus=0, progress_bar=False).scores[0] for each in samples]
    found = comet_utility(model)("The cat.", texts)
    np.testing.assert_allclose(found, np.reshape(alone, (3, 3)), rtol=1e-4)
