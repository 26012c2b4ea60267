"""`tfm calibrate` writes what `tfm translate --mark` and `--only-green` need, and refuses what makes no sense."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from transformer_cli.checkpoint.run_folder import CALIBRATION_FILE, RunFolder
from transformer_cli.commands import calibrate as calibrate_module
from transformer_cli.commands.calibrate import calibrate_command, words_seen_by_training
from transformer_cli.commands.translate_lines import TranslateOptions, translate_lines
from transformer_cli.config import load_stored_config
from transformer_cli.config.data import FilesData
from transformer_cli.data import preparation
from transformer_cli.data.preparation import fingerprint
from transformer_cli.data.sources.corpus import read_pairs
from transformer_cli.decoding.checks.quality import read_quality
from transformer_cli.decoding.given_pairs import pair_likelihoods
from transformer_cli.decoding.loading import load_run, load_translator
from transformer_cli.process.errors import CannotCreateError, DataError, MissingInputError, UsageError
from transformer_cli.text.seen_words import SeenWords

from ..experiments import forge

NUM_TRAINED_ON = preparation.num_trained_on
DOCS_RUN = Path(__file__).parents[2] / "docs" / "run"
NOUNS = ["dog", "cat", "house", "car", "book", "table", "garden", "train", "ticket", "letter"]
LINES = [
    f"The {noun} is {kind}."
    for noun in NOUNS
    for kind in ("big", "small", "new", "old", "red", "on the table", "here", "white", "black", "beautiful", "not here")
]


@pytest.fixture(scope="module", autouse=True)
def unknown_pairs() -> Iterator[None]:
    """To generate the training text of docs/run takes as long as the rest of a calibration; one test looks for its pairs there."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(preparation, "num_trained_on", lambda *_: 0)
        yield


@pytest.fixture(scope="module")
def calibrated_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the run of the documentation, calibrated with its own translations, a tenth of which are spoilt; its earlier
    calibration was damaged."""
    folder = tmp_path_factory.mktemp("calibrated")
    run = folder / "run"
    shutil.copytree(DOCS_RUN, run, ignore=shutil.ignore_patterns(CALIBRATION_FILE))
    translations = [each.text for each in load_translator(run).translate(LINES)]
    spoilt = [text[::-1] if number % 10 == 0 else text for number, text in enumerate(translations)]
    (folder / "in.en").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    (folder / "out.it").write_text("\n".join(spoilt) + "\n", encoding="utf-8")
    (run / CALIBRATION_FILE).write_text("{")
    calibrate(run, share=0.4, certainty=0.7)
    return run


def calibrate(run: Path, **options: Any) -> None:
    files = {"source": run.parent / "in.en", "reference": run.parent / "out.it"}
    calibrate_command(str(run), **files | options)


@pytest.mark.long
def test_the_file_says_how_it_was_made(calibrated_run: Path) -> None:
    facts = json.loads((calibrated_run / CALIBRATION_FILE).read_bytes())
    found = facts["directions"]["en-it"]
    assert found["promise"] == {"metric": "chrf", "below": 60.0, "share": 0.4, "certainty": 0.7}
    assert found["conditions"]["sentences"] == len(LINES)
    assert found["threshold"] is not None


@pytest.mark.long
def test_marked_lines_stay_aligned(calibrated_run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lines = ["The dog is big.", "", "42", "xkcd qqzz wwvv"]
    translate_lines(lines, None, TranslateOptions(run=str(calibrated_run), mark=True))
    first, blank, number, guess = capfd.readouterr().out.removesuffix("\n").split("\n")
    text, mark, probability = first.split("\t")
    assert (text, mark) == ("Il cane è grande.", "green")
    assert 0.0 < float(probability) <= 1.0
    assert (blank, number) == ("\t\t", "42\t\t")
    assert guess.split("\t")[1] == "-"
    options = TranslateOptions(run=str(calibrated_run), mark=True, as_json=True)
    translate_lines(lines, None, options)
    marks = [json.loads(line)["green"] for line in capfd.readouterr().out.splitlines()]
    assert marks == [True, None, None, False]


@pytest.mark.long
def test_only_green_lines_are_written(
    calibrated_run: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    lines = ["xkcd qqzz wwvv", "The dog is big."]
    translate_lines(lines, None, TranslateOptions(run=str(calibrated_run), only_green=True))
    assert capfd.readouterr().out == "\nIl cane è grande.\n"
    told = [message for message in caplog.messages if "line 1" in message]
    assert told == ["line 1: the translation is not green, so it was left out"]
    options = TranslateOptions(run=str(calibrated_run), only_green=True, as_json=True)
    translate_lines(lines, None, options)
    guess, good = map(json.loads, capfd.readouterr().out.splitlines())
    assert (guess["green"], guess["translation"]) == (False, "")
    assert (good["green"], good["translation"]) == (True, "Il cane è grande.")


@pytest.mark.long
def test_a_marked_translation_is_that_without_a_mark(calibrated_run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lines = [
        "  - The dog is big.",
        "1. THE HOUSE IS OLD!",
        "The cat is small. The car is new.",
        "42",
    ]
    for protects_spans in (False, True):
        found = []
        for mark in (False, True):
            options = TranslateOptions(run=str(calibrated_run), mark=mark, protects_spans=protects_spans)
            translate_lines(lines, None, options)
            found.append(capfd.readouterr().out.splitlines())
        assert [line.split("\t")[0] for line in found[1]] == found[0]
        assert [line.split("\t")[2] != "" for line in found[1]] == [True, True, True, False]


@pytest.mark.long
def test_translating_goes_on_without_a_damaged_calibration_but_marking_does_not(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    run = shutil.copytree(DOCS_RUN, tmp_path / "run")
    (run / CALIBRATION_FILE).write_text("{")
    translate_lines(["The dog is big."], None, TranslateOptions(run=str(run)))
    assert capfd.readouterr().out == "Il cane è grande.\n"
    assert "make it again: tfm calibrate" in caplog.text
    with pytest.raises(DataError, match="not a calibration, or damaged"):
        translate_lines(["The dog is big."], None, TranslateOptions(run=str(run), mark=True))


@pytest.mark.heavy
def test_a_text_of_another_kind_is_named(
    calibrated_run: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    options = TranslateOptions(run=str(calibrated_run), mark=True)
    translate_lines(LINES[:60], None, options)
    assert not [message for message in caplog.messages if "not like that" in message]
    longer = [f"{first[:-1]} and {second.lower()}" for first, second in zip(LINES, LINES[7:47], strict=False)]
    translate_lines(longer, None, options)
    [told] = [message for message in caplog.messages if "not like that" in message]
    assert "source tokens in a line" in told
    assert "nothing is promised about it" in told
    caplog.clear()
    (calibrated_run.parent / "longer.en").write_text("\n".join(longer * 3) + "\n")
    before = (calibrated_run / CALIBRATION_FILE).read_bytes()
    calibrate(calibrated_run, source=calibrated_run.parent / "longer.en", reference=calibrated_run.parent / "longer.en")
    assert [message for message in caplog.messages if "not like that of the calibration that is there" in message]
    (calibrated_run / CALIBRATION_FILE).write_bytes(before)


def test_a_number_needs_no_estimate(capfd: pytest.CaptureFixture[str]) -> None:
    translate_lines(["42"], None, TranslateOptions(run=str(DOCS_RUN), only_green=True))
    assert capfd.readouterr().out == "42\n"


def test_a_run_without_calibration_names_the_command(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(DOCS_RUN, run, ignore=shutil.ignore_patterns(CALIBRATION_FILE))
    with pytest.raises(UsageError, match="no calibration") as refusal:
        translate_lines(["Hi."], None, TranslateOptions(run=str(run), mark=True))
    assert refusal.value.hint == f"make one: tfm calibrate --run {run}"


def test_a_calibration_of_another_checkpoint_does_not_count(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(DOCS_RUN, run)
    path = run / CALIBRATION_FILE
    before = path.read_text()
    path.write_text(before.replace('"step": 2800', '"step": 9'))
    assert path.read_text() != before
    with pytest.raises(UsageError, match="no calibration of this checkpoint"):
        translate_lines(["Hi."], None, TranslateOptions(run=str(run), mark=True))


@pytest.mark.long
def test_a_promise_that_no_threshold_keeps_is_told(
    calibrated_run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    copied = tmp_path / "more"
    shutil.copytree(calibrated_run.parent, copied)
    path = copied / "run" / CALIBRATION_FILE
    before = path.read_bytes()
    calibrate(copied / "run", share=0.01, certainty=0.99)
    told = capfd.readouterr().out
    assert "no threshold keeps the promise" in told
    assert "stays as it was" in told
    assert path.read_bytes() == before
    path.unlink()
    calibrate(copied / "run", share=0.01, certainty=0.99)
    assert "--mark and --only-green refuse it" in capfd.readouterr().out
    with pytest.raises(UsageError, match="no threshold"):
        translate_lines(["Hi."], None, TranslateOptions(run=str(copied / "run"), mark=True))


@pytest.mark.long
def test_a_calibration_of_an_earlier_checkpoint_gives_way(
    calibrated_run: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    copied = tmp_path / "more"
    shutil.copytree(calibrated_run.parent, copied)
    path = copied / "run" / CALIBRATION_FILE
    facts = json.loads(path.read_bytes())
    facts["directions"]["en-it"]["conditions"]["step"] = 9
    path.write_text(json.dumps(facts))
    few = LINES[:60] * 2
    (copied / "in.en").write_text("\n".join(few) + "\n", encoding="utf-8")
    (copied / "out.it").write_text("\n".join(few[::-1]) + "\n", encoding="utf-8")
    calibrate(copied / "run", share=0.01, certainty=0.99)
    assert "no threshold keeps the promise" in capfd.readouterr().out
    found = json.loads(path.read_bytes())["directions"]["en-it"]
    assert (found["conditions"]["step"], found["threshold"]) == (2800, None)
    assert "is not like that of the calibration that is there" not in caplog.text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"share": 0.0}, "--share 0"),
        ({"certainty": 1.0}, "--certainty 1"),
        ({"metric": "ter"}, "--metric ter"),
        ({"source": Path("a")}, "give both"),
        ({"source": Path("a"), "reference": Path("b"), "split": "test"}, "give either"),
    ],
)
def test_options_without_sense_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        calibrate_command(str(DOCS_RUN), **options)
    assert refused.value.hint is not None


def test_the_calibration_of_the_package_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(DOCS_RUN, tmp_path / "demonstration")
    monkeypatch.setattr("transformer_cli.checkpoint.trained_files.PACKAGED_RUN", (tmp_path / "demonstration").resolve())
    monkeypatch.chdir(tmp_path)
    before = (tmp_path / "demonstration" / CALIBRATION_FILE).read_bytes()
    with pytest.raises(CannotCreateError, match="part of the installed package") as refusal:
        calibrate_command("demonstration")
    assert f"{(tmp_path / 'demonstration').resolve()}, to runs/NAME" in str(refusal.value.hint)
    assert (tmp_path / "demonstration" / CALIBRATION_FILE).read_bytes() == before


def test_too_little_text_is_refused(tmp_path: Path) -> None:
    source, reference = tmp_path / "in.en", tmp_path / "out.it"
    for path in (source, reference):
        path.write_text("Il cane.\n", encoding="utf-8")
    with pytest.raises(DataError, match="at least 100"):
        calibrate_command(str(DOCS_RUN), source=source, reference=reference, samples=0)


def test_options_that_do_not_fit_together_are_refused() -> None:
    for options in ({"num_best": 2}, {"alignment": True}):
        with pytest.raises(UsageError):
            translate_lines(["Hi."], None, TranslateOptions(mark=True, **options))  # type: ignore[arg-type]


@pytest.mark.long
def test_a_word_that_training_has_not_seen_is_named_and_not_green(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    lines = ["The quokka is on the table.", "The cat is on the table."]
    translate_lines(lines, None, TranslateOptions(run=str(DOCS_RUN), mark=True, as_json=True))
    unseen, seen = map(json.loads, capfd.readouterr().out.splitlines())
    assert (unseen["green"], seen["green"]) == (False, True)
    assert unseen["doubts"] == ["guesses what training has not seen: quokka"]
    assert "line 1: the translation guesses what training has not seen: quokka" in caplog.messages
    assert unseen["quality"] > 0.95, "the model is as sure of it as of others"


@pytest.mark.heavy
def test_a_run_without_a_record_of_its_words_gets_it_from_its_corpus_or_else_from_the_calibration(
    calibrated_run: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    copied = tmp_path / "old"
    shutil.copytree(calibrated_run.parent, copied)
    record = copied / "run" / "seen_words.json"
    record.unlink()
    config = copied / "run" / "config.yaml"
    good = config.read_text(encoding="utf-8")
    config.write_text(
        good.replace("source: phrasebook", f"source: files\n  corpora: [{{path: {tmp_path}/gone.tsv}}]").replace(
            "  num_pairs: 60000\n", ""
        ),
        encoding="utf-8",
    )
    calibrate(copied / "run", share=0.4, certainty=0.7)
    assert "it is not known which words training has seen" in caplog.text
    quality = read_quality(copied / "run")["en-it"]
    assert quality.words is not None
    assert not record.exists()
    config.write_text(good, encoding="utf-8")
    facts = {"data": fingerprint(load_stored_config(config))}
    (copied / "run" / "environment.json").write_text(json.dumps(facts), encoding="utf-8")
    calibrate(copied / "run", share=0.4, certainty=0.7)
    assert record.read_bytes() == (DOCS_RUN / "seen_words.json").read_bytes()
    assert read_quality(copied / "run")["en-it"].words is None


def test_the_words_of_a_corpus_that_has_changed_since_the_training_are_not_recorded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = tmp_path / "run"
    shutil.copytree(DOCS_RUN, run, ignore=shutil.ignore_patterns("seen_words.json"))
    facts = {"data": {"phrasebook": "other"}}
    (run / "environment.json").write_text(json.dumps(facts), encoding="utf-8")
    loaded = load_run(str(run), [], command="validate")
    assert words_seen_by_training(loaded, RunFolder(run)) is None
    assert "the data has changed since the training: " in caplog.text
    assert "phrasebook: was other, now" in caplog.text
    assert not (run / "seen_words.json").exists()


@pytest.mark.parametrize(("has_changed", "num_told"), [(False, 0), (True, 1)])
def test_where_the_records_of_a_run_are_lost_its_checkpoint_tells_whether_the_corpus_has_changed(
    has_changed: bool, num_told: int, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    shutil.copytree(DOCS_RUN, run, ignore=shutil.ignore_patterns("seen_words.json", "environment.json"))
    loaded = load_run(str(run), [], command="validate")
    words = SeenWords.of({"cat": 2}, least=1)
    monkeypatch.setattr("transformer_cli.data.preparation.seen_words_of_corpus", lambda _: words)
    digest = loaded.trained.checkpoint.manifest.data_fingerprint
    if not has_changed:
        monkeypatch.setattr("transformer_cli.data.preparation.fingerprint_digest", lambda _: digest)
    assert words_seen_by_training(loaded, RunFolder(run)) is (None if has_changed else words)
    assert caplog.text.count("the checkpoint has another digest of them") == num_told
    assert (run / "seen_words.json").exists() is not has_changed


@pytest.mark.long
def test_who_wants_marks_is_told_once_that_no_threshold_keeps_the_promise(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The prompt and the server mark what they can; a command that asks for marks is refused; one that does not hears nothing."""
    run = tmp_path / "run"
    shutil.copytree(DOCS_RUN, run)
    path = run / CALIBRATION_FILE
    facts = json.loads(path.read_text(encoding="utf-8"))
    for one in facts["directions"].values():
        one["threshold"] = None
    path.write_text(json.dumps(facts), encoding="utf-8")
    translate_lines(["Hi."], tmp_path / "out", TranslateOptions(run=str(run)))
    assert "threshold" not in caplog.text
    assert not load_translator(run).with_estimates_if_possible().estimates
    assert caplog.text.count("en-it: no threshold keeps the promise") == 1
    with pytest.raises(UsageError, match="no threshold keeps the promise"):
        translate_lines(["Hi."], None, TranslateOptions(run=str(run), only_green=True))


@pytest.fixture(scope="module")
def reverse_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model of the documentation as a run that is said to translate from Italian."""
    run = tmp_path_factory.mktemp("reverse") / "it-en"
    shutil.copytree(DOCS_RUN, run, ignore=shutil.ignore_patterns(CALIBRATION_FILE))
    [checkpoint] = (run / "checkpoints").iterdir()
    config = (checkpoint / "config.yaml").read_text(encoding="utf-8")
    config = config.replace("source_language: en", "source_language: it")
    config = config.replace("target_language: it", "target_language: en")
    config = config.replace("source: phrasebook", "source: files\n  corpora: [{path: a.tsv}]")
    forge(checkpoint, "config.yaml", config.replace("  num_pairs: 60000\n", "").encode())
    return run


@pytest.mark.long
def test_a_calibration_with_a_reverse_model_needs_it_whenever_it_is_used(
    calibrated_run: Path, reverse_run: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    copied = tmp_path / "copy"
    shutil.copytree(calibrated_run.parent, copied)
    run, reverse = copied / "run", copied / "it-en"
    shutil.copytree(reverse_run, reverse)
    calibrate(run, share=0.4, certainty=0.7, reverse=str(reverse))
    quality = read_quality(run)["en-it"]
    assert quality.reverse == str(reverse)
    assert quality.conditions["reverse_step"] == 2800
    assert quality.weights["reverse"] > 0.0
    translator = replace(load_translator(run), estimates=True)
    [translation] = translator.translate(["The dog is big."])
    [expected] = pair_likelihoods(load_translator(reverse), [(translation.text, "The dog is big.")])
    mean = expected.log_probability / expected.num_tokens
    assert translation.reverse_log_prob == pytest.approx(mean, abs=1e-4)
    assert [one.reverse_log_prob for one in load_translator(run).translate(["The dog is big."])] == [None]
    reverse.rename(copied / "away")
    assert [one.text for one in load_translator(run).translate(["The dog is big."])] == [translation.text]
    with pytest.raises(MissingInputError, match=r"the reverse model of the calibration, .*it-en") as missing:
        translate_lines(["Hi."], None, TranslateOptions(run=str(run), mark=True))
    assert "calibrate again" in str(missing.value.hint)
    assert not load_translator(run).with_estimates_if_possible().estimates
    assert "so translations are not marked" in caplog.text
    (copied / "away").rename(reverse)
    path = run / CALIBRATION_FILE
    path.write_text(path.read_text().replace('"reverse_step": 2800', '"reverse_step": 7'))
    with pytest.raises(DataError, match="was at step 7, and is at step 2800 now"):
        translate_lines(["Hi."], None, TranslateOptions(run=str(run), mark=True))


def test_a_calibration_whose_record_of_words_is_missing_is_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = tmp_path / "run"
    shutil.copytree(DOCS_RUN, run)
    assert load_translator(run).pipeline.quality is not None
    (run / "seen_words.json").unlink()
    assert load_translator(run).pipeline.quality is None
    assert "seen_words.json is missing, which the calibration reads" in caplog.text


@pytest.mark.long
def test_a_reverse_model_of_the_same_direction_is_refused(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(DOCS_RUN, run, ignore=shutil.ignore_patterns(CALIBRATION_FILE))
    (tmp_path / "in.en").write_text("Hi.\n" * 100)
    (tmp_path / "out.it").write_text("Ciao.\n" * 100)
    with pytest.raises(UsageError, match=r"the reverse model .* translates en-it; it is to translate it-en"):
        calibrate(run, reverse=str(DOCS_RUN))


@pytest.mark.long
@pytest.mark.parametrize("option", ["mark", "only_green"])
def test_several_models_together_have_no_calibration(option: str, tmp_path: Path) -> None:
    shutil.copytree(DOCS_RUN, tmp_path / "run")
    options = TranslateOptions(run=[str(DOCS_RUN), str(tmp_path / "run")], **{option: True})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="a calibration describes one model, and 2 translate together") as refusal:
        translate_lines(["Hi."], None, options)
    assert "tfm calibrate" not in str(refusal.value.hint)


def test_the_command_for_a_calibration_names_the_checkpoint_that_was_named(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(DOCS_RUN, run, ignore=shutil.ignore_patterns(CALIBRATION_FILE))
    [checkpoint] = (run / "checkpoints").iterdir()
    with pytest.raises(UsageError, match="no calibration") as refusal:
        translate_lines(["Hi."], None, TranslateOptions(run=str(checkpoint), mark=True))
    assert refusal.value.hint == f"make one: tfm calibrate --run {checkpoint}"


def test_a_line_that_is_not_green_and_has_no_doubt_is_named_with_the_reason(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = ["The dog is big.", "The boy sees the small dog.", "Hello."]
    translate_lines(lines, None, TranslateOptions(run=str(DOCS_RUN), mark=True))
    marks = [line.split("\t")[1] for line in capfd.readouterr().out.splitlines()]
    assert marks == ["green", "-", "-"]
    told = [message for message in caplog.messages if "not green: " in message]
    assert [message.split(":")[0] for message in sorted(told)] == ["line 2", "line 3"]


@pytest.mark.long
def test_pairs_of_the_training_are_noticed_and_a_corpus_that_is_gone_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparation, "num_trained_on", NUM_TRAINED_ON)
    config = load_stored_config(DOCS_RUN / "config.yaml")
    loaded: Any = SimpleNamespace(config=config)
    trained_on = [pair for pair, _ in zip(read_pairs(config.data, "train", seed=config.seed), range(100), strict=False)]
    new = [pair._replace(target=f"{pair.target} {pair.target}") for pair in trained_on]
    assert calibrate_module._are_of_training(loaded, trained_on)
    assert calibrate_module._are_of_training(loaded, [*trained_on, *new[:90]])
    assert not calibrate_module._are_of_training(loaded, [*trained_on[:90], *new])
    files = FilesData.model_validate(
        {
            "source": "files",
            "root": str(tmp_path),
            "source_language": "en",
            "target_language": "it",
            "corpora": [{"path": "a.tsv"}],
        }
    )
    gone: Any = SimpleNamespace(config=config.model_copy(update={"data": files}))
    assert not calibrate_module._are_of_training(gone, trained_on)
