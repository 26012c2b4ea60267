"""Which files `tfm validate` reads, and when it warns that they changed."""

import json
import logging
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import sacrebleu

from transformer_cli.checkpoint.checkpoints import Checkpoints, portable_files
from transformer_cli.checkpoint.run_folder import Snapshot
from transformer_cli.commands.validate import validate_command
from transformer_cli.config import DecodingConfig, Direction, FilesData, TokenizerConfig, load_config, to_yaml
from transformer_cli.data.preparation import fingerprint, prepare_data
from transformer_cli.decoding import Translator
from transformer_cli.decoding.loading import load_translator
from transformer_cli.evaluation import judgements
from transformer_cli.evaluation.validation import DirectionReport
from transformer_cli.process.errors import (
    CannotCreateError,
    DataError,
    MissingInputError,
    UsageError,
)

from ..decoding.small_translators import WORDS, config_of, random_model, tokenizer_of_words
from ..extensions.exchange.small_runs import random_run

DOCS_RUN = Path(__file__).parents[2] / "docs" / "run"


def write_run(**data: Any) -> None:
    """An untrained run in the current folder, and its corpora."""
    for name, number in (("train", 300), ("dev", 4), ("test", 3)):
        rows = [f"{WORDS[i % 8]} {WORDS[i // 8 % 8]} {i}\t{WORDS[-i % 8]}\n" for i in range(number)]
        Path(f"{name}.tsv").write_text("".join(rows))
    tokenizer = tokenizer_of_words()
    model = random_model(tokenizer).float()
    files = FilesData.model_validate({"source": "files"} | data)
    config = config_of(model, DecodingConfig(beam_size=1, repair=False), files)
    run = Path("runs/saved")
    run.mkdir(parents=True)
    (run / "config.yaml").write_text(to_yaml(config))
    (run / "environment.json").write_text(json.dumps({"data": fingerprint(config)}))
    contents = portable_files(config, tokenizer, tokenizer)
    Checkpoints(run).save(Snapshot(1, model.state_dict(), {}, {}, contents))


def warnings_of(split: Any, caplog: pytest.LogCaptureFixture) -> list[str]:
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="transformer_cli"):
        validate_command("saved", split, as_json=True)
    found = [record.getMessage() for record in caplog.records]
    of_model = ("unknown words", "line")  # a random model loses text
    return [message for message in found if not message.startswith(of_model)]


pytestmark = pytest.mark.usefixtures("few_samples")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.long
def test_a_split_in_files_of_its_own_needs_no_other_file(caplog: pytest.LogCaptureFixture) -> None:
    splits = {"train": "train", "dev": "validation", "test": "test"}
    write_run(corpora=[{"path": f"{name}.tsv", "split": split} for name, split in splits.items()])
    assert warnings_of("test", caplog) == warnings_of("validation", caplog) == []
    Path("train.tsv").unlink()
    Path("dev.tsv").write_text("uno\tdue\n")
    assert warnings_of("test", caplog) == []
    [warning] = warnings_of("validation", caplog)
    assert warning.startswith("the data has changed since the training: dev.tsv: was ")
    Path("dev.tsv").unlink()
    assert warnings_of("test", caplog) == []
    with pytest.raises(MissingInputError, match=r"dev\.tsv"):
        warnings_of("validation", caplog)


def test_a_run_whose_corpus_is_on_another_machine_takes_two_files_or_the_folder_of_its_corpus() -> None:
    write_run(corpora=[{"path": "train.tsv"}, {"path": "dev.tsv", "split": "validation"}])
    Path("dev.tsv").unlink()
    with pytest.raises(MissingInputError, match=r"no such file; the data of this run are not where") as refusal:
        validate_command("saved", as_json=True)
    assert refusal.value.hint is not None
    assert "--source FILE --reference FILE" in refusal.value.hint
    assert "--set data.root=FOLDER" in refusal.value.hint
    with pytest.raises(
        MissingInputError, match="no such file\n"
    ) as refusal:  # who names a folder asks about this folder
        validate_command("saved", overrides=["data.root=.."], as_json=True)
    assert "data.root (" in str(refusal.value.hint)


def test_a_corpus_with_a_whole_path_is_not_found_with_another_root() -> None:
    write_run(corpora=[{"path": "train.tsv"}, {"path": str(Path("dev.tsv").absolute()), "split": "validation"}])
    Path("dev.tsv").unlink()
    with pytest.raises(MissingInputError) as refusal:
        validate_command("saved", as_json=True)
    assert "data.root" not in str(refusal.value.hint)


@pytest.mark.long
def test_a_drawn_split_needs_the_corpora_that_it_is_drawn_from(
    caplog: pytest.LogCaptureFixture,
) -> None:
    corpora = [{"path": "train.tsv"}, {"path": "dev.tsv", "split": "validation"}]
    write_run(corpora=corpora, test_share=0.1, validation_share=0.0)
    Path("dev.tsv").unlink()
    assert warnings_of("test", caplog) == []
    Path("train.tsv").write_text(Path("train.tsv").read_text() + "uno\tdue\n")
    [warning] = warnings_of("test", caplog)
    assert warning.startswith("the data has changed since the training: train.tsv: was ")


@pytest.mark.long
def test_a_split_with_a_share_of_zero_is_not_drawn(caplog: pytest.LogCaptureFixture) -> None:
    corpora = [{"path": "train.tsv"}, {"path": "test.tsv", "split": "test"}]
    write_run(corpora=corpora, test_share=0.0)
    Path("train.tsv").unlink()
    assert warnings_of("test", caplog) == []


def test_the_hint_on_bad_bytes_names_no_setting_that_two_given_files_do_not_have() -> None:
    splits = {"train": "train", "dev": "validation"}
    write_run(corpora=[{"path": f"{name}.tsv", "split": split} for name, split in splits.items()])
    Path("a.txt").write_bytes(b"caff\xe8\n")
    Path("b.txt").write_bytes(b"uno\n")
    files = (Path("a.txt"), Path("b.txt"))
    with pytest.raises(DataError, match=r"a\.txt:1.* is not UTF-8") as refusal:
        validate_command("saved", source=files[0], reference=files[1], as_json=True)
    assert "iconv" in str(refusal.value.hint)
    assert "data.undecodable" not in str(refusal.value)


@pytest.mark.long
def test_an_ensemble_is_named_after_all_of_its_runs(capfd: pytest.CaptureFixture[str]) -> None:
    write_run(corpora=[{"path": "train.tsv", "split": "train"}, {"path": "dev.tsv", "split": "validation"}])
    pair = ["saved", "runs/saved/checkpoints/step-00000001"]
    for run in ("saved", pair):
        validate_command(run, as_json=True)
    alone, together = map(json.loads, capfd.readouterr().out.splitlines())
    assert together["run"] == "saved + saved"
    assert together["scores"] == alone["scores"]
    assert together["loss"] == pytest.approx(alone["loss"], rel=1e-5)
    validate_command(pair)
    assert "run saved + saved  step 1, 1  split validation" in capfd.readouterr().out


def figures_of(capfd: pytest.CaptureFixture[str], *overrides: str, **options: Any) -> Any:
    capfd.readouterr()
    validate_command("saved", "test", overrides=[*overrides], as_json=True, **options)
    return json.loads(capfd.readouterr().out)


def write_run_with_test_split() -> None:
    splits = {"train": "train", "dev": "validation", "test": "test"}
    write_run(corpora=[{"path": f"{name}.tsv", "split": split} for name, split in splits.items()])


@pytest.mark.long
def test_a_run_does_not_differ_from_itself_nor_from_a_file_with_its_translations(
    capfd: pytest.CaptureFixture[str],
) -> None:
    write_run_with_test_split()
    rows = [line.split("\t") for line in Path("test.tsv").read_text().splitlines()]
    translator = load_translator("saved")
    texts = [translation.text for translation in translator.translate(row[0] for row in rows)]
    Path("out.txt").write_text("".join(f"{text}\n" for text in texts))
    for other in ("saved", "out.txt"):
        found = figures_of(capfd, "validation.scores=[chrf, cer]", against=other)
        assert found["against"]["name"] == other
        for one, alone in zip(found["against"]["scores"], found["scores"], strict=True):
            assert one["value"] == one["other"] == alone["value"]


def test_the_run_to_compare_with_gets_only_settings_that_change_its_translations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`tfm validate` takes settings of what is measured that a text of its own, `--source`, refuses."""
    given = ["data.root=a", "validation.sequence_lengths=[5]", "validation.scores=[chrf]", "decoding.beam_size=2"]
    taken: list[str] = []

    def load(run: str, overrides: list[str], *, command: Any) -> None:
        taken.extend(overrides)
        raise MissingInputError(f"no {run}")

    monkeypatch.setattr(judgements, "load_run", load)
    part = DirectionReport(Direction("en", "it"), 0.0, [], 0, 0)
    with pytest.raises(MissingInputError):
        judgements._translations("other", part, given)
    assert taken == ["decoding.beam_size=2"]


def test_a_run_of_other_languages_is_refused_before_anything_is_translated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_run(corpora=[{"path": "train.tsv"}], source_language="en", target_language="de")
    Path("runs/saved").rename("runs/other")
    write_run_with_test_split()
    monkeypatch.setattr(Translator, "translate", None)
    with pytest.raises(UsageError, match="this run translates en-de, but the sentences are en-it"):
        validate_command("saved", against="other")


@pytest.mark.long
def test_a_file_with_too_few_translations_is_refused_before_the_validation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_run_with_test_split()
    Path("out.txt").write_text("uno\n")
    monkeypatch.setattr("transformer_cli.evaluation.validate", None)
    with pytest.raises(DataError, match=r"out\.txt has 1 lines, but 3 sentences are scored"):
        validate_command("saved", "test", against="out.txt")


@pytest.mark.long
def test_a_breakdown_is_by_length_rarest_word_and_corpus(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    corpora = [
        {"path": f"{name}.tsv", "split": None if name == "train" else "test"} for name in ("train", "dev", "test")
    ]
    write_run(corpora=corpora, validation_share=0.1, test_share=0.0)
    with caplog.at_level(logging.WARNING):
        found = figures_of(capfd, breakdown=True)["breakdown"]
    assert [one["by"] for one in found] == ["words of source", "words of reference", "corpus"]
    assert "the breakdown by the rarest word is left out" in caplog.text
    by_corpus = {group["label"]: group["num_sentences"] for group in found[2]["groups"]}
    assert by_corpus == {"dev.tsv": 4, "test.tsv": 3}
    config = load_config("runs/saved/config.yaml")
    prepare_data(config, Path("runs/saved/data"), tokenizers=(tokenizer_of_words(),) * 2)
    found = figures_of(capfd, breakdown=True)["breakdown"]
    assert [one["by"] for one in found][2:] == ["rarest word of source, in training", "corpus"]
    assert sum(group["num_sentences"] for group in found[2]["groups"]) == 7


@pytest.mark.long
def test_a_report_is_a_page_with_the_scores_of_the_table(
    capfd: pytest.CaptureFixture[str],
) -> None:
    write_run_with_test_split()
    found = figures_of(capfd, against="saved", report=Path("report.html"))
    assert {"breakdown", "calibration", "confidence", "against"} <= set(found)
    assert sum(quarter["num_lines"] for quarter in found["confidence"]["quarters"]) == 3
    page = Path("report.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    for score in found["scores"]:
        assert f"<code>{score['signature']}</code>" in page


def test_what_cannot_work_is_refused_before_the_model_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_run_with_test_split()
    monkeypatch.setattr("transformer_cli.decoding.loading.load_run", None)
    with pytest.raises(CannotCreateError, match="there is no folder lost"):
        validate_command("saved", report=Path("lost/a.html"))
    with pytest.raises(MissingInputError, match="other"):
        validate_command("saved", against="other")


def test_a_comparison_without_a_score_is_refused() -> None:
    write_run_with_test_split()
    none = ["validation.scores=[]"]
    with pytest.raises(UsageError, match="--breakdown needs a score"):
        validate_command("saved", "test", breakdown=True, overrides=none)


@pytest.mark.long
def test_the_heading_names_every_setting_of_decoding_that_is_not_as_by_default(
    capsys: pytest.CaptureFixture[str],
) -> None:
    splits = {"train": "train", "test": "test"}
    write_run(corpora=[{"path": f"{name}.tsv", "split": split} for name, split in splits.items()])

    def heading(*overrides: str) -> str:
        validate_command("saved", "test", overrides=[*overrides])
        return capsys.readouterr().out.splitlines()[0]

    plain = heading()
    settings = "beam_size 1  length_penalty 0.6  split_sentences true  repair false"
    assert plain.endswith(f"split test  {settings}")
    assert heading("decoding.batch_tokens=100") == plain
    overrides = ["decoding.sampling.top_k=5", "decoding.keep_layout=false"]
    changed = heading(*overrides)
    told = {"sampling.top_k 5", "sampling.seed 1", "keep_layout false", *plain.split("  ")}
    assert told < set(changed.split("  "))


def lines_in(folder: str, name: str) -> list[str]:
    """The lines of a file as sacrebleu's command reads them."""
    with Path(folder, name).open(encoding="utf-8") as file:
        return [line.rstrip() for line in file]


@pytest.mark.long
def test_another_program_finds_the_scores_of_validate_in_the_files_that_it_writes(
    capfd: pytest.CaptureFixture[str],
) -> None:
    validate_command(
        str(DOCS_RUN),
        "test",
        overrides=["validation.max_sentences=25"],
        scores="bleu,chrf",
        write=Path("texts"),
        as_json=True,
    )
    bleu, chrf = json.loads(capfd.readouterr().out)["scores"]
    hypotheses = lines_in("texts", "test.hypotheses.it")
    references = [lines_in("texts", "test.reference.it")]
    assert len(hypotheses) == len(lines_in("texts", "test.source.en")) == 25
    assert bleu["value"] == sacrebleu.corpus_bleu(hypotheses, references).score
    assert chrf["value"] == sacrebleu.corpus_chrf(hypotheses, references).score
    assert 0 < bleu["value"] < 100
    assert json.loads(Path("texts/tfm-validate.json").read_text())["scores"] == [bleu, chrf]


@pytest.mark.long
def test_each_direction_has_files_of_its_own(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = random_run(
        tmp_path / "run",
        tokenizer=TokenizerConfig(kind="bpe", vocab_size=300),
        both_directions=True,
    )
    settings = ["validation.max_sentences=6", "validation.scores=[chrf]"]
    validate_command(str(run.folder), "test", overrides=settings, write=Path("texts"), as_json=True)
    found = json.loads(capfd.readouterr().out)["directions"]
    assert [figures["direction"] for figures in found] == ["en-it", "it-en"]
    assert len(list(Path("texts").iterdir())) == 7
    for figures in found:
        stem, target = f"test.{figures['direction']}", figures["direction"][-2:]
        hypotheses = lines_in("texts", f"{stem}.hypotheses.{target}")
        references = [lines_in("texts", f"{stem}.reference.{target}")]
        assert figures["scores"][0]["value"] == sacrebleu.corpus_chrf(hypotheses, references).score
    settings[-1] = "validation.scores=[length_ratio]"
    validate_command(str(run.folder), "test", overrides=settings)
    rows = capfd.readouterr().out.splitlines()
    assert all(re.search(r"  \d+\.\d{3}$", row) for row in rows if row.startswith(("en-it ", "it-en ")))


@pytest.mark.long
def test_a_line_end_inside_a_sentence_moves_no_line(caplog: pytest.LogCaptureFixture) -> None:
    rows = [{"en": "uno\ndue", "it": "tre\u2028due"}, {"en": "cane", "it": "gatto"}]
    Path("test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    corpora = [{"path": "train.tsv"}, {"path": "test.jsonl", "split": "test"}]
    write_run(corpora=corpora, test_share=0.0, cleaning={"join_white_space": False})
    validate_command("saved", "test", write=Path("texts"))
    assert lines_in("texts", "test.source.en") == ["uno due", "cane"]
    assert Path("texts/test.reference.it").read_text().splitlines() == ["tre due", "gatto"]
    assert "sentences with a line end in them, written with a space: 2" in caplog.text


@pytest.mark.long
def test_texts_replace_only_texts_of_an_earlier_time_and_say_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="transformer_cli")
    write_run_with_test_split()
    Path("texts").mkdir()
    for is_replaced in (False, True):
        caplog.clear()
        validate_command("saved", "test", write=Path("texts"))
        assert ("texts: texts, which replaces the earlier ones" in caplog.text) is is_replaced
    monkeypatch.setattr("transformer_cli.decoding.loading.load_run", None)
    Path("mine").mkdir()
    Path("mine/test.source.en").touch()
    Path("texts/other.source.en").touch()
    for folder, problem in (
        ("texts", "other.source.en, which is no file of .* would be lost"),
        ("mine", "not empty, and not one of tfm validate --write"),
        ("lost/texts", "there is no folder lost"),
    ):
        with pytest.raises(CannotCreateError, match=problem):
            validate_command("saved", "test", write=Path(folder))


@pytest.mark.long
def test_texts_of_another_validation_are_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    write_run_with_test_split()
    shutil.copytree("runs/saved", "runs/other")
    validate_command("saved", "test", beam_size=2, overrides=["decoding.keep_text=false"], write=Path("texts"))
    given = {path: path.read_bytes() for path in Path("texts").iterdir()}
    monkeypatch.setattr("transformer_cli.evaluation.validate", None)
    run: dict[str, Any] = {"run": "saved", "split": "test", "beam_size": 2, "overrides": ["decoding.keep_text=false"]}
    few = ["decoding.keep_text=false", "validation.max_sentences=1"]
    for change, problem in (
        ({"split": "validation"}, "split test, not validation"),
        ({"run": "other"}, "run saved, not other"),
        ({"beam_size": 3}, "beam_size 2, not 3"),
        ({"overrides": None}, "keep_text false, not by default"),
        ({"overrides": few}, r"num_sentences \d+, not 1"),
    ):
        with pytest.raises(CannotCreateError, match=f"texts of another validation, which would be lost: {problem}"):
            validate_command(**run | change, write=Path("texts"))
    assert {path: path.read_bytes() for path in Path("texts").iterdir()} == given


@pytest.mark.long
def test_texts_that_a_person_has_changed_are_not_replaced() -> None:
    write_run_with_test_split()
    validate_command("saved", "test", write=Path("texts"))
    [changed] = Path("texts").glob("*.hypotheses.*")
    changed.write_text("mine\n")
    with pytest.raises(CannotCreateError, match=f"{changed.name}: was changed after it was written, and would be lost"):
        validate_command("saved", "test", write=Path("texts"))
    changed.rename("mine")
    validate_command("saved", "test", write=Path("texts"))
    assert changed.is_file()


@pytest.mark.long
def test_the_files_that_a_validation_reads_are_not_replaced_by_its_texts() -> None:
    write_run_with_test_split()
    validate_command("saved", "test", write=Path("texts"))
    given = {path: path.read_bytes() for path in Path("texts").iterdir()}
    [source] = Path("texts").glob("*.source.*")
    [reference] = Path("texts").glob("*.reference.*")
    Path("link").symlink_to("texts", target_is_directory=True)
    for read in (Path("texts"), Path("link")):
        with pytest.raises(UsageError, match="is read from this folder, which would be replaced"):
            validate_command("saved", source=read / source.name, reference=read / reference.name, write=Path("texts"))
    assert {path: path.read_bytes() for path in Path("texts").iterdir()} == given


def test_texts_without_a_score_are_refused_because_only_samples_would_be_translated() -> None:
    write_run_with_test_split()
    with pytest.raises(UsageError, match="--write needs a score"):
        validate_command("saved", overrides=["validation.scores=[]"], write=Path("texts"))


def test_one_of_two_files_is_refused_with_what_each_has() -> None:
    with pytest.raises(UsageError, match="give both") as refused:
        validate_command(source=Path("in.en"))
    assert "--reference FILE" in str(refused.value.hint)
    with pytest.raises(UsageError, match="give either") as refused:
        validate_command(source=Path("in.en"), reference=Path("in.it"), split="test")
    assert "leave out --split" in str(refused.value.hint)
