"""COMET as a score of a corpus, with a small stand-in for the library."""

import json
import logging
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from transformer_cli.commands.score import score_command
from transformer_cli.commands.validate import validate_command
from transformer_cli.decoding.comet import load_comet
from transformer_cli.evaluation.comet_score import measure_comet
from transformer_cli.evaluation.metrics import Interval, Score
from transformer_cli.evaluation.system_comparison import compare_systems
from transformer_cli.process.errors import DataError, UsageError

from .scored_texts import REFERENCES, damaged, write_lines

RUN = str(Path(__file__).parents[2] / "docs" / "run")
FEW = ["validation.max_sentences=6", "decoding.beam_size=1"]
SOURCES = [f"source {number}" for number in range(len(REFERENCES))]
HYPOTHESES = damaged(REFERENCES, 0.3, seed=1)
OTHERS = damaged(REFERENCES, 0.4, seed=2)


def score_of(sample: dict[str, str]) -> float:
    """Some number from 0 to 1 that depends on all three texts."""
    return float(sum(map(ord, sample["src"] + 3 * sample["mt"])) * len(sample["ref"]) % 1009) / 1009


class SmallNetwork:
    """The part of the interface of a COMET model that is used."""

    reads_references = True
    is_half = False

    def requires_references(self) -> bool:
        return self.reads_references

    def half(self) -> None:
        self.is_half = True

    def set_embedding_cache(self) -> None:
        pass

    def predict(self, samples: list[dict[str, str]], **_: Any) -> SimpleNamespace:
        logging.getLogger("pytorch_lightning").warning("a notice of the library")
        return SimpleNamespace(scores=[score_of(sample) for sample in samples])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a model, and a stand-in for the library."""
    library: Any = ModuleType("comet")
    library.load_from_checkpoint = lambda path, **_: SmallNetwork()
    monkeypatch.setitem(sys.modules, "comet", library)
    monkeypatch.setattr("transformer_cli.decoding.comet.metadata.version", lambda _: "2.2.7")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "wmt-small"
    (folder / "checkpoints").mkdir(parents=True)
    for name in ("hparams.yaml", "checkpoints/model.ckpt"):
        (folder / name).write_text("")
    for name, lines in (("source", SOURCES), ("system", HYPOTHESES), ("other", OTHERS)):
        write_lines(Path(name), lines)
    write_lines(Path("reference"), REFERENCES)
    return folder


def expected(hypotheses: list[str]) -> list[float]:
    return [
        score_of({"src": source, "mt": text, "ref": reference})
        for source, text, reference in zip(SOURCES, hypotheses, REFERENCES, strict=True)
    ]


def texts(folder: Path | None, **changes: Any) -> dict[str, Any]:
    files = {"hypothesis": Path("system"), "references": [Path("reference")]}
    return files | {"against": Path("other"), "source": Path("source"), "comet": folder} | changes


def scored(files: dict[str, Any], capfd: pytest.CaptureFixture[str]) -> Any:
    score_command(**files, scores="chrf", breakdown=True, as_json=True)
    return json.loads(capfd.readouterr().out)


def test_the_score_is_the_mean_over_the_sentences_and_names_the_model(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = scored(texts(folder), capfd)
    comet = found["scores"][-1]
    assert comet["name"] == "COMET"
    assert comet["value"] == pytest.approx(np.mean(expected(HYPOTHESES)))
    assert comet["signature"] == "nrefs:1|model:wmt-small|library:unbabel-comet|version:2.2.7"
    groups = found["breakdown"][0]["groups"]
    total = sum(group["num_sentences"] * group["scores"]["COMET"] for group in groups)
    assert total / len(SOURCES) == pytest.approx(comet["value"])


@pytest.mark.long
def test_the_interval_and_the_p_value_are_those_of_a_bootstrap_of_means(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = scored(texts(folder), capfd)
    mine, its = np.array(expected(HYPOTHESES)), np.array(expected(OTHERS))
    rng = np.random.default_rng(12345)
    draws = [rng.choice(len(mine), len(mine)) for _ in range(1000)]
    means = np.array([mine[rows].mean() for rows in draws])
    ordered = np.sort(means)
    interval = found["scores"][-1]["interval"]
    assert interval["half_width"] == pytest.approx((ordered[974] - ordered[25]) / 2, rel=1e-4)
    differences = np.abs(means - [its[rows].mean() for rows in draws])
    real = abs(mine.mean() - its.mean())
    p_value = (np.sum(differences - differences.mean() > real) + 1) / 1001
    compared = found["against"]["scores"][-1]
    assert compared["name"] == "COMET"
    assert compared["other"] == pytest.approx(its.mean())
    assert compared["p_value"] == pytest.approx(p_value, abs=0.002)


def test_randomisation_is_possible_with_comet(folder: Path) -> None:
    model = load_comet(folder)
    measured = [measure_comet(model, SOURCES, lines, REFERENCES) for lines in (HYPOTHESES, OTHERS)]
    [difference] = compare_systems([measured[0]], [measured[1]], "other", "randomization").differences
    assert 0 < difference.p_value <= 1
    [same] = compare_systems([measured[0]], [measured[0]], "same", "randomization").differences
    assert same.p_value == 1


def test_a_model_without_references_says_so_in_its_signature(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SmallNetwork, "reads_references", False)
    measured = measure_comet(load_comet(folder), SOURCES, HYPOTHESES, REFERENCES)
    assert measured.score().signature.startswith("nrefs:0|")


def test_four_digits_are_shown_with_a_space_before_the_signature() -> None:
    line = Score("COMET", 0.84123, "nrefs:1", Interval(0.84, 0.00512)).line()
    assert line.split() == ["COMET", "0.8412", "±", "0.0051", "nrefs:1"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": None}, "--comet needs --source"),
        ({"comet": None}, "--source needs --comet"),
        ({"references": (Path("reference"), Path("other"))}, "--comet reads one reference, and 2"),
    ],
)
def test_what_comet_cannot_score_is_refused(folder: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        score_command(**texts(folder, **changes))


def test_a_source_of_another_length_is_refused(folder: Path) -> None:
    write_lines(Path("source"), SOURCES[1:])
    with pytest.raises(DataError, match="source has"):
        score_command(**texts(folder))


def test_the_notices_of_the_library_are_not_shown(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    load_comet(folder).scores(["a"], ["b"], ["c"])
    assert caplog.records == []
    logging.getLogger("elsewhere").warning("still told")
    assert len(caplog.records) == 1


def test_the_score_computes_in_float16_as_the_command_does(folder: Path) -> None:
    assert load_comet(folder, as_command=True).network.is_half
    assert not load_comet(folder).network.is_half


def test_a_snapshot_of_the_hub_is_named_by_its_model(folder: Path) -> None:
    snapshot = folder.parent / "models--Unbabel--wmt22-comet-da" / "snapshots" / "1a2b"
    snapshot.parent.mkdir(parents=True)
    folder.rename(snapshot)
    assert load_comet(snapshot).name == "Unbabel/wmt22-comet-da"


def test_a_model_that_the_library_cannot_load_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: str, **_: Any) -> None:
        raise OSError("no tokenizer\nhere")

    monkeypatch.setattr(sys.modules["comet"], "load_from_checkpoint", broken)
    (folder / "hparams.yaml").write_text("layer: mix\npretrained_model: xlm-roberta-large\n")
    with pytest.raises(DataError, match="wmt-small: COMET cannot load this model: no tokenizer") as e:
        load_comet(folder)
    assert "its encoder xlm-roberta-large must be on this computer" in (e.value.hint or "")


def test_a_library_that_lacks_a_package_is_not_called_missing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "comet.py").write_text("import pkg_resources_of_nobody\n")
    monkeypatch.delitem(sys.modules, "comet")
    monkeypatch.syspath_prepend(folder)
    with pytest.raises(UsageError, match="installed, but it cannot be imported: No module named"):
        load_comet(folder)


@pytest.mark.long
def test_a_validation_has_comet_in_scores_comparison_and_report(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    report = Path("report.html")
    validate_command(RUN, against=RUN, comet=folder, report=report, overrides=FEW, as_json=True)
    found = json.loads(capfd.readouterr().out)
    assert [score["name"] for score in found["scores"]][-1] == "COMET"
    assert 0 < found["scores"][-1]["value"] < 1
    assert found["scores"][-1]["interval"]["half_width"] > 0
    assert found["against"]["scores"][-1] == {
        "name": "COMET",
        "value": found["scores"][-1]["value"],
        "other": found["scores"][-1]["value"],
        "p_value": 1.0,
    }
    assert f"{found['scores'][-1]['value']:.4f}" in Path("report.html").read_text()


def test_a_validation_without_scores_has_nothing_for_comet(folder: Path) -> None:
    with pytest.raises(UsageError, match="--comet needs a score"):
        validate_command(RUN, comet=folder, overrides=[*FEW, "validation.scores=[]"])
