"""Model cards: what they say comes from the run, from its validation sentences, or from the user."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml

from transformer_cli.checkpoint.trained_files import TrainedModel, load_trained
from transformer_cli.config import DecodingConfig
from transformer_cli.data.pairs import SentencePair, write_validation_pairs
from transformer_cli.data.preparation import REPORT, VALIDATION
from transformer_cli.evaluation.metrics import score_corpus
from transformer_cli.extensions.exchange.ctranslate2 import CTranslate2Format
from transformer_cli.extensions.exchange.export import export_run, float32_translator
from transformer_cli.extensions.exchange.imported_model import FINE_TUNING, ImportedModel, write_run
from transformer_cli.extensions.exchange.model_card import (
    CARD,
    CardOptions,
    card_files,
    hours_until,
    read_records,
    weak_spots,
)

from .small_runs import ENGLISH, ITALIAN, random_run

huggingface_hub = pytest.importorskip("huggingface_hub")
PAIRS = [SentencePair(*pair) for pair in zip(ENGLISH, ITALIAN, strict=True)]
LOG = """2026-11-22 10:00:00 training
2026-11-22 10:00:00 model: 9 parameters; CPU
2026-11-22 10:20:00 step 100/400  epoch 0
2026-11-22 10:40:00 step 200/400  epoch 0
2026-11-22 10:50:00 step 300/400  epoch 0
2026-11-22 11:10:00 config: training.keep_last: 2 -> 3
2026-11-22 11:20:00 resuming en-it at step 250; CPU
2026-11-22 11:25:00 step 300/400  epoch 0
2026-11-22 11:26:00 step 300  validation: loss 1.0
2026-11-22 11:36:00 step 400/400  epoch 0
2026-11-22 15:00:00 resuming en-it at step 400; CPU
2026-11-22 15:10:00 step 500/500  epoch 0
2026-11-22 15:11:00 finished after 500 steps: en-it
"""
NO_OPTIONS = CardOptions()


@pytest.fixture
def trained(tmp_path: Path) -> TrainedModel:
    """A run with the files that a training leaves."""
    run = tmp_path / "en-it"
    made = random_run(run)
    (run / "data").mkdir()
    write_validation_pairs(run / "data" / VALIDATION, PAIRS)
    report = {
        "cleaning": [
            ["pairs read", 12, ""],
            ["dropped: drop_equal", 2, ""],
            ["dropped: drop_empty", 0, ""],
            ["pairs kept", 10, ""],
        ],
        "num_pairs": {"train": 10, "validation": 6},
    }
    (run / "data" / REPORT).write_text(json.dumps(report))
    (run / "train.log").write_text(LOG)
    (run / "environment.json").write_text(
        json.dumps({"tfm": "0.0.9", "device": "a device", "packages": {"torch": "2.0"}})
    )
    points = [{"kind": "train", "step": step, "loss": 5.0 / step} for step in (1, 2, 3)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(point) + "\n" for point in points))
    return made


def card_of(trained: TrainedModel, options: CardOptions = NO_OPTIONS) -> dict[str, bytes]:
    return card_files(trained, float32_translator(trained, 1), "use it", options=options)


@pytest.mark.long
def test_a_card_says_what_the_files_of_the_run_say(trained: TrainedModel) -> None:
    files = card_of(trained)
    text = files[CARD].decode()
    assert "English to Italian" in text
    assert "Trained with tfm 0.0.9; this is step 1." in text
    assert "| pairs read | 12 |" in text
    assert "| dropped: drop_equal | 2 |" in text
    assert "drop_empty |" not in text
    assert "1 update; seed 1; 0 minutes" in text, "later updates do not count"
    assert "a device" in text
    assert "PyTorch 2.0" in text
    for name in ("single words", "all in capitals", "numbers", "sentences in a line"):
        assert name in text
    assert "not stated" in text, "no licence is invented"
    for name, picture in files.items():
        if name.endswith(".svg"):
            assert ET.fromstring(picture).tag.endswith("svg")
            assert f"]({name})" in text
    assert len(files) == 2


@pytest.mark.long
def test_the_metadata_is_a_valid_model_index_with_the_scores_of_the_validation(
    trained: TrainedModel, tmp_path: Path
) -> None:
    options = CardOptions(license="cc-by-4.0", datasets=("mine=cc0",), base_model="a/b")
    files = card_of(trained, options)
    (tmp_path / CARD).write_bytes(files[CARD])
    data = huggingface_hub.ModelCard.load(tmp_path / CARD).data
    assert data.license == "cc-by-4.0"
    assert data.base_model == "a/b"
    assert data.language == ["en", "it"]
    assert data.pipeline_tag == "translation"
    texts = [one.text for one in float32_translator(trained, 1).translate(ENGLISH)]
    expected = {one.name: one for one in score_corpus(texts, ITALIAN, ["bleu", "chrf"])}
    assert {one.metric_name: one.metric_value for one in data.eval_results} == {
        name: pytest.approx(score.value, abs=0.01) for name, score in expected.items()
    }
    signatures = {one.metric_args["signature"] for one in data.eval_results}
    assert signatures == {
        f"{score.signature}|keep_text:no|repair:no|split_sentences:yes" for score in expected.values()
    }
    assert "| mine | cc0 |" in files[CARD].decode()


@pytest.mark.long
def test_the_card_of_an_export_has_the_scores_of_a_program_without_repairs(tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    made = random_run(tmp_path / "en-it", decoding=DecodingConfig(beam_size=2))
    (tmp_path / "en-it" / "data").mkdir()
    write_validation_pairs(tmp_path / "en-it" / "data" / VALIDATION, PAIRS)
    folder = export_run(made, CTranslate2Format(), tmp_path / "out", lines=ENGLISH[:2]).path
    text = (folder / CARD).read_text()
    data = huggingface_hub.ModelCard.load(folder / CARD).data
    texts = [one.text for one in float32_translator(made, 2, CTranslate2Format()).translate(ENGLISH)]
    expected = {one.name: one.value for one in score_corpus(texts, ITALIAN, ["bleu", "chrf"])}
    found = {one.metric_name: one.metric_value for one in data.eval_results}
    assert found == {name: pytest.approx(value, abs=0.01) for name, value in expected.items()}
    assert "without the repairs of `tfm`, which other programs do not have" in text
    assert "each line read at once" in text
    signatures = {one.metric_args["signature"].partition("|keep_text:")[2] for one in data.eval_results}
    assert signatures == {"no|repair:no|split_sentences:no|keep_layout:no|known_spellings:no"}
    assert "(not split)" in text


def test_a_copied_checkpoint_has_a_card_without_scores(trained: TrainedModel, tmp_path: Path) -> None:
    copied = load_trained(trained.folder.rename(tmp_path / "copied"))
    text = card_of(copied)[CARD].decode()
    metadata = yaml.safe_load(text.split("---")[1])
    assert "model-index" not in metadata
    assert "Not measured" in text


@pytest.mark.parametrize(
    ("step", "minutes"), [(100, 20), (150, 30), (200, 40), (300, 51), (400, 61), (500, 72), (600, 72)]
)
def test_the_time_of_a_checkpoint_ends_at_its_step_and_has_no_pauses_and_no_lost_updates(
    step: int, minutes: float, tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    log.write_text(LOG)
    hours = hours_until(log, step)
    assert hours is not None
    assert 60 * hours == pytest.approx(minutes)


def test_updates_before_a_run_that_began_anew_do_not_count(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(
        "2026-11-22 10:00:00 model: 9 parameters\n2026-11-22 10:20:00 step 50\n"
        "2026-11-22 10:30:00 model: 9 parameters\n2026-11-22 10:40:00 step 100\n"
    )
    assert hours_until(log, 100) == pytest.approx(1 / 6)


def test_damaged_records_are_left_out(trained: TrainedModel) -> None:
    run = trained.folder.parent.parent
    for name in ("data/" + VALIDATION, "data/" + REPORT, "environment.json"):
        (run / name).write_text("{broken")
    (run / "train.log").write_bytes(b"\xff\xfe")
    records = read_records(trained)
    assert records.cleaning == []
    assert records.num_pairs == {}
    assert records.validation_pairs == []
    assert records.environment == {}
    assert records.hours is None


def test_rows_of_a_record_that_are_no_counts_are_left_out(trained: TrainedModel) -> None:
    report = {
        "cleaning": [5, ["read"], ["kept", "x"], ["pairs read", 3, ""]],
        "num_pairs": {"train": "many", "test": 2},
    }
    (trained.folder.parent.parent / "data" / REPORT).write_text(json.dumps(report))
    records = read_records(trained)
    assert records.cleaning == [("pairs read", 3)]
    assert records.num_pairs == {"test": 2}


@pytest.mark.long
def test_the_card_of_an_imported_run_claims_no_training(trained: TrainedModel, tmp_path: Path) -> None:
    config = trained.config.model_copy(update={"name": "foreign", "training": FINE_TUNING})
    tokenizers = trained.source_tokenizer, trained.target_tokenizer
    model = ImportedModel("SomeModel", config, trained.model.state_dict(), tokenizers, lambda _: [])
    imported = load_trained(write_run(model, tmp_path / "runs").path)
    text = card_of(imported)[CARD].decode()
    assert "Trained with" not in text
    assert "Imported by tfm " in text
    assert "imported, not trained here: SomeModel." in text
    assert "## Data\n\nNot known: another program has trained the model." in text
    given = card_of(imported, CardOptions(datasets=("Tatoeba=cc-by",)))[CARD].decode()
    assert "| Tatoeba | cc-by |" in given
    assert "generated by tfm" not in given


def test_weak_spots_count_what_was_lost(trained: TrainedModel) -> None:
    class Copying:
        """Translates by copying; it is right about everything but capitals."""

        pipeline = float32_translator(trained, 1).pipeline

        def translate(self, lines):  # type: ignore[no-untyped-def]
            from types import SimpleNamespace

            return [SimpleNamespace(text="x" if line.isupper() else line) for line in lines]

    pairs = [SentencePair(text, text) for text in ENGLISH]
    found = {one.name: one.result for one in weak_spots(Copying(), pairs)}  # type: ignore[arg-type]
    assert found["as they are"].startswith("chrF 100.0")
    assert found["all in capitals"].startswith("chrF 0.")
    assert found["numbers"].startswith("2 of 2 sentences with numbers")
    assert found["single words"].startswith("0 of ")
