"""`tfm init`: a config that loads, trains without a warning, and says why each line is there."""

import gzip
import itertools
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.commands.init import init_command
from transformer_cli.config import Config, FilesData, load_config
from transformer_cli.config.data import CleaningConfig
from transformer_cli.config.loading import check_settings, load_stored_config, parse_yaml
from transformer_cli.config.recipe import (
    CorpusSize,
    held_out_share,
    num_steps,
    num_validated,
    recipe,
    vocabulary_size,
)
from transformer_cli.data.pairs import CleaningReport
from transformer_cli.data.preparation import prepare_data
from transformer_cli.data.selection import clean, pairs_to_validate
from transformer_cli.data.sources.corpus import read_phrasebook
from transformer_cli.data.survey import in_words
from transformer_cli.data.updates import training_pairs
from transformer_cli.process.errors import CannotCreateError, DataError, UsageError
from transformer_cli.training.advice import Plan, Vocabulary, warnings

from ..launcher import Tfm

DOCS_RUN = Path(__file__).parents[2] / "docs" / "run"


def phrases(num_pairs: int) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in read_phrasebook("train", num_pairs)]


@pytest.mark.parametrize(("num_pairs", "num_entries"), [(1_000, 1_300), (3_000, 3_900), (10_000, 8_000), (60, 300)])
def test_the_vocabulary_has_an_entry_for_ten_words(num_pairs: int, num_entries: int) -> None:
    """The sizes with which trainings of 1,000 and 3,000 pairs of six words were best (docs/experiments.md)."""
    size = CorpusSize(num_pairs, 6.3 * num_pairs, 6.7 * num_pairs, (70, 80), (3 * num_pairs, 4 * num_pairs), True, True)
    assert vocabulary_size(size) == num_entries


def csv(rows: Iterable[Sequence[str]], delimiter: str = ",") -> str:
    quoted = (delimiter.join(f'"{cell.replace(chr(34), 2 * chr(34))}"' for cell in row) for row in rows)
    return "".join(f"{row}\r\n" for row in quoted)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(*paths: str, **options: Any) -> Config:
    defaults: dict[str, Any] = {"output": Path("it.yaml"), "force": True}
    init_command([*paths], **defaults | options)
    return load_config("it.yaml")


def columns(config: Config) -> tuple[Any, Any, bool | None, str, str]:
    data: Any = config.data
    (corpus,) = data.corpora
    languages = data.source_language, data.target_language
    return corpus.source_field, corpus.target_field, corpus.has_header, *languages


PHRASES = phrases(60)
EN_IT = ("English", "Italian", True, "en", "it")
BY_NUMBER = (0, 1, False, "en", "it")
WITH_HEADER = [("English", "Italian"), *PHRASES]
MANY_COLUMNS = [
    ("id", "lang", "Inglese", "note", "Frase (IT)", "url"),
    *((f"{i}", "eng", en, "", it, f"https://example.org/{i}") for i, (en, it) in enumerate(PHRASES)),
]
TATOEBA = [(f"{i}", en, f"{i * 7}", it) for i, (en, it) in enumerate(PHRASES)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("a.csv", csv(WITH_HEADER), EN_IT),
        ("a.csv", csv(WITH_HEADER, ";"), EN_IT),
        ("a.csv", "\ufeff" + csv(WITH_HEADER, ";"), EN_IT),
        ("a.csv", "sep=;\r\n" + csv(WITH_HEADER, ";"), EN_IT),
        ("a.csv", csv([("Englisch", "Italienisch"), *PHRASES], ";"), ("Englisch", "Italienisch", True, "en", "it")),
        ("a.csv", csv(PHRASES), BY_NUMBER),
        ("a.csv", csv(MANY_COLUMNS), ("Inglese", "Frase (IT)", True, "en", "it")),
        ("a.csv", csv([("Text", "Text"), *PHRASES]), (0, 1, True, "en", "it")),
        ("a.tsv", csv(TATOEBA, "\t").replace('"', ""), (1, 3, False, "en", "it")),
        ("a.txt", csv(TATOEBA, "\t").replace('"', ""), (1, 3, False, "en", "it")),
        (
            "a.jsonl",
            "".join(
                json.dumps({"id": i, "translation": {"it": it, "en": en}}) + "\n" for i, (en, it) in enumerate(PHRASES)
            ),
            ("translation.it", "translation.en", None, "it", "en"),
        ),
        ("a.csv", csv([("phrase", "meaning"), *PHRASES]), BY_NUMBER),
        ("a.csv", csv([("English", "Inglese"), *PHRASES]), BY_NUMBER),
    ],
    ids=[
        "a header",
        "semicolons",
        "a byte-order mark",
        "a sep line",
        "German names",
        "no header",
        "six columns",
        "equal names",
        "Tatoeba",
        "a .txt with tabs",
        "JSON Lines",
        "names that say nothing",
        "two names of one language",
    ],
)
def test_the_columns_and_languages_of_a_table_are_found(
    folder: Path, file: str, content: str, expected: tuple[Any, ...]
) -> None:
    (folder / file).write_text(content, encoding="utf-8", newline="")
    assert columns(init(file)) == expected


def test_a_compressed_table_and_a_parquet_file_are_read(folder: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    (folder / "a.csv.gz").write_bytes(gzip.compress(csv(WITH_HEADER).encode()))
    assert columns(init("a.csv.gz")) == EN_IT
    sides = list(zip(*PHRASES, strict=True))
    table = {"id": list(range(60)), "en": list(sides[0]), "it": list(sides[1])}
    parquet.write_table(pyarrow.table(table), folder / "a.parquet")
    assert columns(init("a.parquet")) == ("en", "it", None, "en", "it")


@pytest.mark.long
def test_the_user_decides_the_columns_and_the_direction(folder: Path) -> None:
    (folder / "a.csv").write_text(csv(MANY_COLUMNS), encoding="utf-8")
    assert columns(init("a.csv", source_language="it", target_language="en")) == (
        "Frase (IT)",
        "Inglese",
        True,
        "it",
        "en",
    )
    assert columns(init("a.csv", source_field="4", target_field="Inglese")) == (
        "Frase (IT)",
        "Inglese",
        True,
        "it",
        "en",
    )
    with pytest.raises(DataError, match="no column Latin, found id, lang, Inglese"):
        init("a.csv", source_field="Latin")
    with pytest.raises(UsageError, match="source_language: 'e n' cannot be used"):
        init("a.csv", source_language="e n")


def write_sides(folder: Path, pairs: Sequence[tuple[str, str]], **names: str) -> None:
    for side, name in enumerate(names.values()):
        text = "".join(pair[side] + "\n" for pair in pairs)
        (folder / name).write_text(text, encoding="utf-8")


def test_two_text_files_are_taken_by_their_order_and_named_by_their_ends(folder: Path) -> None:
    write_sides(folder, PHRASES, source="phrases.en", target="phrases.it")
    init_command(["phrases.it", "phrases.en"])
    config = load_config("phrases-it-en.yaml")
    assert isinstance(config.data, FilesData)
    assert (config.name, config.data.source_language) == ("phrases-it-en", "it")
    assert config.data.corpora[0].source_path == "phrases.it"


def test_a_folder_keeps_the_splits_that_its_files_name(folder: Path) -> None:
    for name, part in (("train", PHRASES[:40]), ("dev", PHRASES[40:50]), ("test", PHRASES[50:])):
        write_sides(folder, part, source=f"{name}.en", target=f"{name}.it")
    config = init(".")
    assert isinstance(config.data, FilesData)
    splits = {corpus.split: corpus.source_path for corpus in config.data.corpora}
    assert splits == {"train": "train.en", "validation": "dev.en", "test": "test.en"}


@pytest.mark.parametrize("kind", ["text", "table"])
def test_a_file_for_the_test_is_not_trained_with_though_none_is_for_validation(folder: Path, kind: str) -> None:
    for name, part in (("corpus", PHRASES[:50]), ("test", PHRASES[50:])):
        if kind == "text":
            write_sides(folder, part, source=f"{name}.en", target=f"{name}.it")
        else:
            rows = "".join(f"{source}\t{target}\n" for source, target in part)
            (folder / f"{name}.tsv").write_text(rows, encoding="utf-8")
    data: Any = init(".").data
    splits = {Path(str(corpus.source_path or corpus.path)).stem: corpus.split for corpus in data.corpora}
    assert splits == {"corpus": None, "test": "test"}
    assert data.validation_share > 0.0
    assert data.test_share == 0.0


def test_tables_of_a_folder_keep_the_splits_that_they_name(folder: Path) -> None:
    for name, part in (("train", PHRASES[:40]), ("validation", PHRASES[40:50]), ("test", PHRASES[50:])):
        rows = "".join(f"{source}\t{target}\n" for source, target in part)
        (folder / f"{name}.tsv").write_text(rows, encoding="utf-8")
    data: Any = init(".").data
    assert {corpus.path: corpus.split for corpus in data.corpora} == {
        "train.tsv": "train",
        "validation.tsv": "validation",
        "test.tsv": "test",
    }


@pytest.mark.long
@pytest.mark.parametrize("validation", ["dev", "valid"])
def test_files_for_validation_and_test_beside_two_text_files_are_told(
    folder: Path, capsys: pytest.CaptureFixture[str], validation: str
) -> None:
    parts = {"train": PHRASES[:40], validation: PHRASES[40:50], "test": PHRASES[50:]}
    for name, part in parts.items():
        write_sides(folder, part, source=f"{name}.en", target=f"{name}.it")
    init("train.it", "train.en")
    (told,) = (line for line in capsys.readouterr().out.splitlines() if "beside" in line)
    names, _, command = told.partition(" lie beside: tfm init ")
    assert {*names.split(", ")} == {f"{name}.{end}" for name in (validation, "test") for end in ("en", "it")}
    assert command.startswith(". --source-language it --target-language en takes each for its split;")
    data: Any = init(".", source_language="it", target_language="en").data
    splits = {corpus.source_path: corpus.split for corpus in data.corpora}
    assert splits == {"train.it": "train", f"{validation}.it": "validation", "test.it": "test"}


@pytest.mark.long
def test_a_test_file_alone_beside_two_text_files_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_sides(folder, PHRASES[:40], source="train.en", target="train.it")
    write_sides(folder, PHRASES[40:], source="test.en", target="test.it")
    init("train.en", "train.it")
    (told,) = (line for line in capsys.readouterr().out.splitlines() if "beside" in line)
    assert {*told.partition(" lie beside: ")[0].split(", ")} == {"test.en", "test.it"}
    assert "tfm init . --source-language en --target-language it takes each for its split;" in told


def test_other_files_beside_two_text_files_are_not_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only what the folder as a corpus would take so: text for validation or test in both languages, beside two files for training."""
    write_sides(folder, PHRASES, source="train.en", target="train.it")
    (folder / "dev.en").write_text("Yes.\n", encoding="utf-8")
    init("train.en", "train.it")
    write_sides(folder, PHRASES, source="phrases.en", target="phrases.it")
    write_sides(folder, PHRASES[:9], source="dev.en", target="dev.it")
    init("phrases.en", "phrases.it")
    init(".")
    assert "lie beside" not in capsys.readouterr().out


@pytest.mark.long
def test_text_of_a_corpus_does_not_control_the_terminal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("English\x1b[2J", "Italian"), ("The \x1b]0;x\x07 cat\nsleeps.", "Il gatto."), *PHRASES]
    (folder / "a.csv").write_text(csv(rows), encoding="utf-8", newline="")
    assert columns(init("a.csv"))[0] == "English\x1b[2J"
    out = capsys.readouterr().out
    assert r"text, en  The \x1b]0;x\x07 cat\x0asleeps." in out
    assert "SOURCE  The ]0;x cat sleeps." in out  # cleaning removes control characters, and joins white space
    assert all(char.isprintable() or char == "\n" for char in out)


def test_a_language_that_is_not_recognised_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(f"zub{i} kalo", f"pim{i} durru") for i in range(60)]
    (folder / "a.csv").write_text(csv(rows), encoding="utf-8")
    assert columns(init("a.csv"))[3:] == ("und", "und")
    assert "give it with --source-language and --target-language" in capsys.readouterr().out


def test_a_table_without_two_columns_of_text_is_refused_with_what_it_holds(folder: Path) -> None:
    (folder / "a.csv").write_text(csv((str(i), en) for i, (en, _) in enumerate(PHRASES)))
    with pytest.raises(DataError, match="its columns hold: 0: numbers; 1: text") as refused:
        init("a.csv")
    assert "--source-field" in str(refused.value)


@pytest.mark.long
def test_utf_16_is_known_by_its_byte_order_mark_and_else_refused(folder: Path) -> None:
    (folder / "a.csv").write_bytes(csv(WITH_HEADER, "\t").encode("utf-16"))
    assert init("a.csv").data.corpora[0].encoding == "utf-16"
    Path("it.yaml").unlink()
    (folder / "a.csv").write_bytes(csv(WITH_HEADER, "\t").encode("utf-16-le"))
    with pytest.raises(DataError, match="UTF-16 text") as refused:
        init("a.csv")
    assert "--encoding utf-16" in str(refused.value)
    assert "iconv" in str(refused.value)
    assert not Path("it.yaml").exists()


def test_an_existing_config_is_kept_unless_forced(folder: Path) -> None:
    (folder / "a.csv").write_text(csv(WITH_HEADER))
    Path("it.yaml").write_text("mine")
    with pytest.raises(CannotCreateError, match=r"it\.yaml: exists already"):
        init("a.csv", force=False)
    assert Path("it.yaml").read_text() == "mine"
    assert columns(init("a.csv")) == EN_IT


def test_every_line_has_a_reason_and_odd_names_survive(folder: Path) -> None:
    name = "my: phrases #1 [é].csv"
    rows = [("true", "sì: it"), *PHRASES]
    (folder / name).write_text(csv(rows), encoding="utf-8")
    init_command(
        [name],
        source_field="true",
        target_field="sì: it",
        source_language="en",
        target_language="it",
    )
    (written,) = folder.glob("*.yaml")
    data: Any = load_config(written).data
    assert data.corpora[0].path == name
    settings = [line for line in written.read_text(encoding="utf-8").splitlines() if ": " in line]
    assert [line for line in settings if "# " not in line] == []


def test_a_run_that_begins_with_another_one_has_its_architecture_and_its_vocabularies(folder: Path) -> None:
    (folder / "few.csv").write_text(csv([("English", "Italian"), *phrases(60)]))
    config = init("few.csv", init_from=str(DOCS_RUN))
    was = load_stored_config(DOCS_RUN / "config.yaml")
    assert (config.training.init_from, config.model, config.tokenizer) == (str(DOCS_RUN), was.model, was.tokenizer)
    assert config.data.cleaning.normalize_invisible == was.data.cleaning.normalize_invisible
    assert 60 <= (config.training.max_steps or 0) < 400  # a run that begins with random weights has more


@pytest.mark.parametrize("run", [None, str(DOCS_RUN)])
def test_few_pairs_are_said_to_be_few_with_what_helps(
    folder: Path, capfd: pytest.CaptureFixture[str], run: str | None
) -> None:
    (folder / "few.csv").write_text(csv([("English", "Italian"), *phrases(60)]))
    init("few.csv", init_from=run)
    said = capfd.readouterr().out
    assert "60 pairs are few" in said
    assert ("--memory" in said, "--init-from" in said) == (True, run is None)
    assert (f"tfm validate --against {DOCS_RUN}" in said) == (run is not None)
    assert ("sentences like them better, and others worse" in said) == (run is not None)


@pytest.mark.long
@pytest.mark.parametrize(
    ("languages", "num_pairs", "is_told"),
    [(("en", "fr"), 3000, True), (("en", "fr"), 10_000, False), (("en", "it"), 3000, False)],
)
def test_the_small_model_is_named_where_it_is_the_better_beginning(
    folder: Path,
    capfd: pytest.CaptureFixture[str],
    languages: tuple[str, str],
    num_pairs: int,
    is_told: bool,
) -> None:
    (folder / "some.csv").write_text(csv([("English", "Other"), *phrases(num_pairs)]))
    init("some.csv", source_language=languages[0], target_language=languages[1])
    assert ("--init-from demonstration" in capfd.readouterr().out) == is_told


def test_a_run_of_other_languages_is_refused(folder: Path) -> None:
    (folder / "few.csv").write_text(csv([("Italian", "English"), *((it, en) for en, it in phrases(60))]))
    with pytest.raises(UsageError, match="that run translates en into it; this corpus is it into en"):
        init("few.csv", init_from=str(DOCS_RUN))


@pytest.mark.heavy
@pytest.mark.parametrize(("num_pairs", "num_epochs"), [(200, 60), (3_583, 40), (12_000, 25)])
def test_training_on_the_config_is_not_warned_of(folder: Path, num_pairs: int, num_epochs: int) -> None:
    (folder / "a.csv").write_text(csv([("en", "it"), *phrases(num_pairs)]), encoding="utf-8")
    config = init("a.csv")
    data = prepare_data(config, folder / "data")
    assert config.training.max_steps is not None
    _, order = training_pairs(data.train, data.tokenizers, config)
    num_validated = len(pairs_to_validate(config, data.validation))
    one = Plan.of(config, data, order, num_validated, config.training.max_steps)
    assert warnings(one, config) == []
    assert 9 <= one.times(config.training.validate_every) <= 21
    # The built-in corpus has few different words, so its tokens are longer than those of others.
    # With reversed pairs, the first epoch has twice the updates.
    of_pairs = one.updates_per_epoch / (2 if getattr(config.data, "reversed_epochs", None) else 1)
    assert one.num_steps / of_pairs == pytest.approx(num_epochs, rel=0.3)
    assert one.num_validation_sentences >= 25


def test_the_plan_alone_says_how_many_passes_a_training_makes(folder: Path) -> None:
    """An estimate in the config would be another number than that of the plan, which knows the tokens."""
    (folder / "a.csv").write_text(csv([("en", "it"), *phrases(200)]), encoding="utf-8")
    init("a.csv")
    comments = {
        line.split(":")[0].strip(): line.partition("# ")[2]
        for line in Path("it.yaml").read_text(encoding="utf-8").splitlines()
    }
    assert "tfm train says how many passes" in comments["max_steps"]
    assert not re.search(r"\d", comments["max_steps"] + comments["batch_tokens"])


@pytest.mark.long
@pytest.mark.parametrize("num_pairs", [30, 200, 3_583, 30_000, 160_000, 1_000_000, 50_000_000])
@pytest.mark.parametrize("words", [4.0, 12.0, 25.0])
def test_the_recipe_fits_corpora_of_any_size(num_pairs: int, words: float) -> None:
    different = min(100_000, round(30 * (num_pairs * words) ** 0.5))
    size = CorpusSize(
        num_pairs=num_pairs,
        source_words=words * num_pairs,
        target_words=1.1 * words * num_pairs,
        num_characters=(70, 80),
        num_different_words=(different, different),
        share_a_script=True,
        has_splits=False,
    )
    data = FilesData(source="files", corpora=({"path": "a.csv", "source_field": 0, "target_field": 1},))  # type: ignore[arg-type]
    config = check_settings(parse_yaml(recipe("a", data, size, origin="tfm init a.csv"), "a"), "a")
    held_out = held_out_share(num_pairs) * num_pairs
    num_train = num_pairs - 2 * held_out
    vocab_size = config.tokenizer.vocab_size
    assert vocab_size is not None
    per_word = 0.94 + 40 / vocab_size**0.5  # as measured
    num_tokens = round(num_train * words * 2.1 * per_word)
    per_epoch = num_train * (words * 1.1 * per_word + 1) * 1.1 / (config.training.batch_tokens or 1)
    one = Plan(
        num_pairs=round(num_train),
        num_target_tokens=num_tokens // 2,
        updates_per_epoch=max(1, round(per_epoch)),
        num_steps=num_steps(size),
        num_validation_sentences=min(round(held_out), config.validation.max_sentences or 0),
        vocabularies=(Vocabulary("shared", vocab_size, num_tokens),),
    )
    assert num_pairs < 200 or warnings(one, config) == []
    assert held_out < 2001


@pytest.mark.parametrize(
    ("num_pairs", "share_a_script", "is_reversed"),
    [(1_999, True, False), (2_000, True, True), (3_000, False, False), (19_999, True, True), (20_000, True, False)],
)
def test_a_small_corpus_with_one_vocabulary_begins_with_both_directions(
    num_pairs: int, share_a_script: bool, is_reversed: bool
) -> None:
    words = 7.0 * num_pairs
    size = CorpusSize(num_pairs, words, words, (70, 70), (3_000, 3_000), share_a_script, has_splits=True)
    data = FilesData(source="files", corpora=({"path": "a.csv", "split": "train"},))  # type: ignore[arg-type]
    text = recipe("a", data, size, origin="tfm init a.csv")
    config: Any = check_settings(parse_yaml(text, "a"), "a")
    if not is_reversed:
        assert config.data.reversed_epochs is None
        return
    # These epochs have twice the updates, and take about 60 % of all.
    num_words = config.training.max_steps * config.training.batch_tokens
    tokens_per_pair = num_words * 0.6 / (2 * config.data.reversed_epochs * num_pairs)
    assert 9 < tokens_per_pair < 20


@pytest.mark.parametrize(
    ("num_pairs", "num_validation", "expected"),
    [
        (3_000, 2_000, 1_000),  # 40 passes, 12 validations: 10,000 pairs between two of them
        (3_000, 70, 70),  # not more than there are
        (3_000, None, 150),  # a twentieth is held out
        (100_000, 5_000, 2_000),
        (60, 40, 40),
    ],
)
def test_a_validation_has_a_tenth_of_the_pairs_that_are_read_before_it(
    num_pairs: int, num_validation: int | None, expected: int
) -> None:
    words = 7.0 * num_pairs
    size = CorpusSize(
        num_pairs=num_pairs,
        source_words=words,
        target_words=words,
        num_characters=(70, 80),
        num_different_words=(10 * round(words**0.5),) * 2,
        share_a_script=True,
        has_splits=num_validation is not None,
        num_validation=num_validation,
    )
    assert num_validated(size, num_steps(size)) == pytest.approx(expected, rel=0.06)


@pytest.mark.parametrize(("sentence", "metric"), [("{}", "chrf"), ("I see the {} there.", "bleu")])
def test_a_corpus_of_single_words_is_judged_by_their_letters(folder: Path, sentence: str, metric: str) -> None:
    """BLEU of lines of fewer than four words is 0, so it could choose no checkpoint."""
    words = ["".join(one) for one in itertools.product("kpt", "aei", "lmn", "ou")]
    rows = [(sentence.format(word), sentence.format(word[::-1])) for word in words]
    (folder / "words.csv").write_text(csv(rows), encoding="utf-8")
    assert init("words.csv").training.best_metric == metric


@pytest.mark.heavy
def test_init_data_train_and_translate_follow_each_other(tfm: Tfm) -> None:
    (tfm.folder / "phrases.csv").write_text(csv([("English", "Italian"), *phrases(200)]))
    made = tfm("init", "phrases.csv")
    assert made.exit_code == 0, made.talk
    assert "English  text, en" in made.text
    assert "200 pairs are few" in made.text
    assert made.lines[-1].startswith("next: tfm data --config phrases.yaml")
    assert tfm("data", "--config", "phrases.yaml").exit_code == 0
    quick = [
        "--set",
        "training.max_steps=70",
        "--set",
        "training.warmup_steps=6",
        "--set",
        "runtime.threads=1",
    ]
    trained = tfm("train", "--config", "phrases.yaml", *quick)
    assert trained.exit_code == 0, trained.talk
    assert "plan: " in trained.talk
    assert "warning:" not in trained.talk
    assert tfm("init", "phrases.csv").exit_code == 73
    assert tfm("init", "none.csv").exit_code == 66
    assert tfm("init", "a", "b", "c").exit_code == 2
    assert tfm("init", "phrases.csv", "--output", "no/where.yaml").exit_code in (73, 74)
    assert tfm("init", "phrases.csv", "--name", "../x", "--output", "x.yaml").exit_code == 2


def test_each_cleaning_rule_that_drops_pairs_is_told_in_words() -> None:
    report = CleaningReport()
    every_rule = CleaningConfig(min_words=1, max_words=9, max_characters=99, max_length_ratio=2.0)
    list(clean(iter(()), every_rule, report))
    for rule in report.dropped:
        assert in_words(rule).endswith(f" (data.cleaning.{rule})")
    assert in_words("a NUL byte") == "a NUL byte"


def test_a_script_that_python_does_not_know_shares_no_letters(folder: Path) -> None:
    """Sunuwar came with Unicode 16."""
    words = ["".join(one) for one in itertools.product("kpt", "aei", "lmn", "ou")]
    rows = [(f"{word} {word}", "".join(chr(0x11BC0 + ord(one) % 32) for one in word[::-1])) for word in words]
    (folder / "words.csv").write_text(csv(rows), encoding="utf-8")
    assert not init("words.csv").tokenizer.shared
