"""`tfm train`: what it says behind a training about the translations that are to be expected."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.commands.train import train_command
from transformer_cli.process import plain_form
from transformer_cli.training import run as training

TO_TRUST = "to learn which translations can be trusted: tfm calibrate --run"


def said(
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    *bleu: float | None,
    config: str = "en-it.yaml",
    limit: str = "training.max_steps=2",
    chrf: float = 0.0,
    losses: Sequence[float] = (),
    reported: Sequence[float] = (),
    overrides: Sequence[str] = (),
    num_validation_pairs: int = 500,
    num_updates: int = 2,
) -> list[str]:
    """The messages behind a training whose validations had these scores."""
    records: list[dict[str, Any]] = [
        {
            "kind": "validation",
            "step": step,
            "scores": [{"name": "BLEU", "value": value}, {"name": "chrF", "value": chrf}],
        }
        for step, value in enumerate(bleu)
    ]
    for step, loss in enumerate(losses):
        records[step] |= {"loss": loss}
    records += [{"kind": "train", "step": step, "loss": loss} for step, loss in enumerate(reported)]
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in records))
    done = training.TrainedRun(folder, num_updates, False, (limit,), "1 2 3", num_validation_pairs)
    monkeypatch.setattr(training, "train", lambda *_, **__: done)
    with caplog.at_level(logging.INFO):
        train_command(config, list(overrides))
    return caplog.messages


def test_a_poor_model_is_called_so_with_what_helps(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    step, poor = said(caplog, monkeypatch, tmp_path, 3.0, 11.34, None, 11.0)
    assert step.startswith("next: tfm translate --run en-it 'a sentence'")
    assert poor.startswith("BLEU 11.3 on the validation sentences: many translations will be wrong")


@pytest.mark.parametrize(("number", "words"), [(1, "1 sentence,"), (7, "7 sentences,"), (99, "99 sentences,")])
def test_the_scores_of_few_sentences_are_called_chance(
    number: int, words: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    last = said(caplog, monkeypatch, tmp_path, 87.0, num_validation_pairs=number)[-1]
    assert last.startswith(f"the validation split has only {words} so its scores are partly chance")
    caplog.clear()
    assert said(caplog, monkeypatch, tmp_path, 87.0, num_validation_pairs=100)[-1].startswith(TO_TRUST)


def test_what_helps_follows_from_the_loss_that_the_run_has_measured(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """More pairs are no help to a run of few updates, nor more updates to one that has learned all it can."""

    def advice(*bleu: float, **measured: Sequence[float]) -> str:
        caplog.clear()
        return said(caplog, monkeypatch, tmp_path, *bleu, **measured)[-1]  # type: ignore[arg-type]

    falling = advice(1.0, 2.0, 3.0, losses=[5.0, 4.5, 4.0], reported=[5.0, 5.0, 5.0])
    assert "What helps first: more than 2 updates: the loss fell by 0.50 in the" in falling
    assert falling.index("more than 2 updates") < falling.index("more pairs")
    for ended in ([5.0, 4.5, 4.49], [5.0, 4.5, 6.0]):
        assert "more updates are no help. What helps: more pairs" in advice(1, 2, 3, losses=ended)
    assert "fell by 0.50" in advice(1.0, losses=[5.0], reported=[6.0, 5.5, 5.0])  # one validation
    assert "first: more than 2 updates. Then more pairs" in advice(1.0)  # nothing measured


def test_one_update_is_one(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "first: more than 1 update. Then more pairs" in said(caplog, monkeypatch, tmp_path, 1.0, num_updates=1)[-1]


def test_a_poor_model_that_was_fine_tuned_is_compared_with_the_one_that_it_began_from(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A recipe of three epochs is no mistake of few updates."""
    poor = said(caplog, monkeypatch, tmp_path, 3.0, losses=[5.0], overrides=["training.init_from=my run"])[-1]
    assert "more than" not in poor
    assert poor.endswith("tfm validate --run en-it --against 'my run'")


def test_behind_a_good_model_the_next_step_is_a_calibration(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told = said(caplog, monkeypatch, tmp_path, 95.0)
    assert told[-1] == f"{TO_TRUST} en-it, then tfm translate --run en-it --mark"
    assert not [line for line in told if "will be wrong" in line]


def test_right_translations_of_single_words_are_not_called_wrong(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Lines of fewer than four words have BLEU 0, whatever they say."""
    told = said(caplog, monkeypatch, tmp_path, 0.0, 0.0, chrf=97.0)
    assert told[-1].startswith(TO_TRUST)


def test_a_run_that_will_go_on_is_judged_only_if_it_is_poor_so_far(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its user translates with it, too."""
    told = said(caplog, monkeypatch, tmp_path, 14.27, limit="training.max_minutes=1")
    assert told[-1].startswith(
        "BLEU 14.3 on the validation sentences: many translations will be wrong. What helps first: the rest of the training"
    )
    told = said(caplog, monkeypatch, tmp_path, 30.0, limit="training.max_minutes=1")
    assert told[-1].startswith("next: tfm translate --run en-it")


def test_a_model_of_two_directions_is_calibrated_in_one_of_them(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told = said(caplog, monkeypatch, tmp_path, config="tatoeba-en-it-both.yaml")
    assert told[-1].startswith(f"{TO_TRUST} tatoeba-en-it-both --to it, then")


def test_a_synthetic_task_has_nothing_to_calibrate(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    [step] = said(caplog, monkeypatch, tmp_path, 0.0, config="copy.yaml")
    assert step == "next: tfm translate --run copy '1 2 3', or tfm validate --run copy"


def test_after_a_training_in_the_plain_form_the_model_translates_in_it_too(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(plain_form, "IS_PLAIN", True)
    [step] = said(caplog, monkeypatch, tmp_path, 0.0, config="copy.yaml")
    plain = "TFM_PLAIN=1 tfm"
    assert step == f"next: {plain} translate --run copy '1 2 3', or {plain} validate --run copy"
