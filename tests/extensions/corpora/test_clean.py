"""`tfm data clean`: what is left, what was removed and why, and where each pair came from."""

import csv
import json
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_cli.config import CleaningConfig, FilesData
from transformer_cli.data.sources.local_files import find_files
from transformer_cli.extensions.corpora.checks import inspect
from transformer_cli.extensions.corpora.cleaning import clean_corpus
from transformer_cli.extensions.corpora.cleaning_rules import corpus_rules
from transformer_cli.extensions.corpora.commands.given_corpus import given_corpus
from transformer_cli.extensions.corpora.drift import WITHOUT_TRANSLATION, Stretch, realigned
from transformer_cli.extensions.corpora.pair_facts import with_encoding_mended, without_entities
from transformer_cli.extensions.corpora.pairs import NumberedPair
from transformer_cli.process.errors import ConfigError, DataError, UsageError

from ...launcher import Finished, Tfm
from .phrases import clean_lines, write_lines, write_sides

NUM_PAIRS = 400


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def rows(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in lines(path)[1:]]


def damaged() -> tuple[list[str], list[str]]:
    source, target = clean_lines(NUM_PAIRS)
    target[4] = ""
    source[9], target[9] = "Yes.", "una frase " * 20
    target[19] = "Perché è così".encode().decode("cp1252")
    source[29] = "Tea &amp; coffee, please."
    source[39], target[39] = source[38], target[38]
    return source, target


def clean(tfm: Tfm, *arguments: str) -> Finished:
    names = write_sides(tfm.folder, *damaged())
    return tfm("data", "clean", *names, "--output", "out", *arguments)


@pytest.mark.long
def test_what_is_left_is_aligned_and_traceable_to_its_lines(tfm: Tfm) -> None:
    finished = clean(tfm, "--json")
    assert finished.exit_code == 0, finished.talk
    source, target = damaged()
    left = lines(tfm.folder / "out/train.en"), lines(tfm.folder / "out/train.it")
    numbers = rows(tfm.folder / "out/train.en.line_numbers.tsv")
    assert len(left[0]) == len(left[1]) == len(numbers)
    changed = {int(row[1]): row for row in rows(tfm.folder / "out/train.en.changed.tsv")}
    assert set(changed) >= {20, 30}
    for one, other, (line, target_line) in zip(*left, numbers, strict=True):
        assert line == target_line
        before = source[int(line) - 1], target[int(line) - 1]
        assert (one, other) == before or int(line) in changed
    assert left[1][[row[0] for row in numbers].index("20")] == "Perché è così"
    assert left[0][[row[0] for row in numbers].index("30")] == "Tea & coffee, please."


@pytest.mark.long
def test_each_removed_pair_has_its_rule_and_all_pairs_are_counted(tfm: Tfm) -> None:
    finished = clean(tfm, "--json")
    [part] = json.loads(finished.text)["parts"]
    removed = rows(tfm.folder / "out/train.en.removed.tsv")
    by_line = {int(row[1]): row[0] for row in removed}
    assert by_line[5] == "drop_empty"
    assert by_line[10] == "max_length_ratio"
    assert by_line[40] == "drop_duplicates"
    assert part["rows_read"] == len(damaged()[0]) == part["rows_kept"] + len(removed)
    dropped = {rule: count["dropped"] for rule, count in part["rules"].items()}
    assert sum(dropped.values()) == len(removed)
    for rule, count in part["rules"].items():
        assert count["rows_out"] == count["rows_in"] - count["dropped"], rule
    assert all(len(count["examples"]) <= 5 for count in part["rules"].values())


@pytest.mark.long
@pytest.mark.parametrize(
    ("rule", "line"),
    [("drop_empty", 5), ("max_length_ratio", 10), ("drop_duplicates", 40)],
)
def test_a_rule_that_is_switched_off_drops_nothing(tfm: Tfm, rule: str, line: int) -> None:
    off = "null" if rule.startswith("max") else "false"
    more = ["--set", "drop_near_duplicates=false", "--set", "max_length_ratio=null"]
    finished = clean(tfm, "--set", f"{rule}={off}", *(more if rule != "max_length_ratio" else []))
    assert finished.exit_code == 0, finished.talk
    assert str(line) not in {row[1] for row in rows(tfm.folder / "out/train.en.removed.tsv")}


@pytest.mark.long
def test_sides_that_drifted_apart_are_paired_again(tfm: Tfm) -> None:
    source, target = clean_lines(NUM_PAIRS)
    names = write_sides(tfm.folder, source, target[:150] + target[151:])
    finished = tfm("data", "clean", *names, "--output", "out", "--set", "drop_near_duplicates=false")
    assert finished.exit_code == 0, finished.talk
    pairs = set(zip(source, target, strict=True))
    left = list(zip(lines(tfm.folder / "out/train.en"), lines(tfm.folder / "out/train.it"), strict=True))
    assert set(left) <= pairs
    assert len(left) >= len(source) - 20


@pytest.mark.long
def test_columns_of_a_table_whose_rows_have_several_lines_are_paired_again(tmp_path: Path) -> None:
    """The number of a row is not that of its line: there is a header, and 100 rows have two lines."""
    source, target = clean_lines(NUM_PAIRS)
    drifted = [*target[:200], "Una riga in più.", *target[200:-1]]
    with (tmp_path / "a.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["en", "it"])
        table.writerows(
            [f"{one}\n." if row < 100 else one, other]
            for row, (one, other) in enumerate(zip(source, drifted, strict=True))
        )
    corpus = {"path": "a.csv", "has_header": True}
    data = FilesData.model_validate({"source": "files", "root": str(tmp_path), "corpora": [corpus]})
    [found] = [found for part in inspect(data) for found in part.found if found.kind == "drift"]
    [stretch] = found.ranges
    assert abs(int(stretch["first_line"] or 0) - 302) <= 10, "a header, 100 rows of two lines and 100 of one before it"
    assert stretch["last_line"] == NUM_PAIRS + 101

    rules = corpus_rules(
        CleaningConfig(), ["drop_wrong_language=false", "mend_encoding=false", "drop_near_duplicates=false"]
    )
    [cleaned] = clean_corpus(data, rules, tmp_path / "out")
    left = [line.replace(" .\t", "\t").split("\t") for line in lines(tmp_path / "out" / cleaned.files[0])]
    assert {(one, other) for one, other in left} <= set(zip(source, target, strict=True))
    assert len(left) >= NUM_PAIRS - 20
    numbers = rows(tmp_path / "out" / f"{cleaned.files[0]}.line_numbers.tsv")
    assert numbers[-1] == [str(NUM_PAIRS + 100), str(NUM_PAIRS + 101)]


def test_lines_that_show_nothing_about_their_relation_stay_as_they_stand(tfm: Tfm) -> None:
    names = write_sides(tfm.folder, [f"dog {letter}" for letter in "abcdefghij"], ["ခွေး"] * 10)
    finished = tfm("data", "clean", *names, "--output", "out")
    assert finished.exit_code == 0, finished.talk
    assert len(lines(tfm.folder / "out/train.en")) == 10
    assert "too little to tell whether line N translates line N" in finished.talk


@pytest.mark.long
def test_sides_with_many_missing_lines_are_paired_again(tfm: Tfm) -> None:
    source, target = clean_lines(900)
    names = write_sides(tfm.folder, source, target[:300] + target[400:])
    finished = tfm("data", "clean", *names, "--output", "out", "--set", "drop_near_duplicates=false")
    assert finished.exit_code == 0, finished.talk
    left = list(zip(lines(tfm.folder / "out/train.en"), lines(tfm.folder / "out/train.it"), strict=True))
    assert set(left) <= set(zip(source, target, strict=True))
    assert len(left) >= len(source) - 120


@pytest.mark.long
@pytest.mark.parametrize("shorter", [0, 1])
def test_the_lines_behind_the_end_of_the_shorter_side_keep_their_translations(tfm: Tfm, shorter: int) -> None:
    sides = clean_lines(NUM_PAIRS)
    pairs = set(zip(*sides, strict=True))
    last = [side[-1] for side in sides]
    cut = list(sides)
    cut[shorter] = sides[shorter][:150] + sides[shorter][190:]
    names = write_sides(tfm.folder, *cut)
    rules = ("--set", "drop_near_duplicates=false", "--set", "drop_wrong_language=false")
    finished = tfm("data", "clean", *names, "--output", "out", *rules)
    assert finished.exit_code == 0, finished.talk
    kept, removed = (
        lines(tfm.folder / "out/train.en"),
        rows(tfm.folder / "out/train.en.removed.tsv"),
    )
    left = list(zip(kept, lines(tfm.folder / "out/train.it"), strict=True))
    assert set(left) <= pairs
    assert left[-1] == tuple(last)
    assert len(left) >= NUM_PAIRS - 50
    assert len(left) + len(removed) == NUM_PAIRS, "each line is either kept or listed"


def test_sides_with_different_numbers_of_lines_are_refused_without_realign(tfm: Tfm) -> None:
    source, target = clean_lines(NUM_PAIRS)
    names = write_sides(tfm.folder, source, target[1:])
    finished = tfm("data", "clean", *names, "--output", "out", "--set", "realign=false")
    assert finished.exit_code == 65
    assert "train.en has 400 lines, train.it has 399 lines" in finished.talk
    assert not (tfm.folder / "out").exists()


@pytest.mark.long
def test_the_config_lines_read_what_is_left(tfm: Tfm) -> None:
    finished = clean(tfm)
    _, _, config = finished.text.partition("write into a config:\n")
    write_lines(
        tfm.folder / "mine.yaml",
        ["name: mine", "training: {max_steps: 5, batch_sentences: 4}", *config.split("\n")],
    )
    assert [name for name in yaml.safe_load(config)["data"] if name.endswith("_share")] == []
    looked = tfm("data", "--config", "mine.yaml", "--json")
    assert looked.exit_code == 0, looked.talk
    assert json.loads(looked.text)["pairs"][0]["source"] == damaged()[0][0]


def test_the_config_lines_have_the_languages_and_the_weight_of_each_corpus(tfm: Tfm) -> None:
    source, target = clean_lines(60)
    write_sides(tfm.folder, source[:30], target[:30])
    write_sides(tfm.folder, source[30:], target[30:], "more")
    corpora = [
        "    - {source_path: train.en, target_path: train.it, split: train}",
        "    - {source_path: more.it, target_path: more.en, split: train, source_language: it, target_language: en, weight: 2.0}",
    ]
    head = ["name: mine", "training: {max_steps: 5, batch_sentences: 4}", "tokenizer: {shared: true}", "data:"]
    ways = ["  both_directions: true", "  validation_share: 0.1", "  undecodable: skip"]
    write_lines(tfm.folder / "mine.yaml", [*head, "  source: files", *ways, "  corpora:", *corpora])
    finished = tfm("data", "clean", "--config", "mine.yaml", "--output", "out", "--set", "realign=false")
    assert finished.exit_code == 0, finished.talk
    data = yaml.safe_load(finished.text.partition("write into a config:\n")[2])["data"]
    assert (data["source_language"], data["target_language"]) == ("en", "it")
    assert (data["both_directions"], data["validation_share"], "undecodable" in data) == (True, 0.1, False)
    assert "source_language" not in data["corpora"][0]
    second = {"source_language": "it", "target_language": "en", "weight": 2.0, "split": "train"}
    assert data["corpora"][1].items() >= second.items()


def test_a_table_stays_a_table_and_quoted_line_ends_become_spaces(tfm: Tfm) -> None:
    source, target = clean_lines(60)
    table = [f'"{one}","{other}"' for one, other in zip(source, target, strict=True)]
    table[5] = '"The sea\nis blue.","Il mare\nè blu."'
    write_lines(tfm.folder / "phrases.csv", ["en,it", *table])
    finished = tfm("data", "clean", "phrases.csv", "--output", "out")
    assert finished.exit_code == 0, finished.talk
    left = [line.split("\t") for line in lines(tfm.folder / "out/phrases.tsv")]
    assert ["The sea is blue.", "Il mare è blu."] in left
    assert {len(row) for row in left} == {2}


@pytest.mark.long
def test_training_pairs_are_compared_with_the_cleaned_validation_pairs(tfm: Tfm) -> None:
    source, target = clean_lines(NUM_PAIRS)
    write_sides(tfm.folder, [*source[:50], "!!!"], [*target[:50], "???"], "dev")
    write_sides(tfm.folder, [*source[50:], source[3] + " !", "!!!"], [*target[50:], target[3], "???"])
    corpora = [
        "    - {split: train, source_path: train.en, target_path: train.it}",
        "    - {split: validation, source_path: dev.en, target_path: dev.it}",
    ]
    head = ["name: mine", "training: {max_steps: 5, batch_sentences: 4}", "data:"]
    write_lines(tfm.folder / "mine.yaml", [*head, "  source: files", "  corpora:", *corpora])
    finished = tfm("data", "clean", "--config", "mine.yaml", "--output", "out")
    assert finished.exit_code == 0, finished.talk
    removed = rows(tfm.folder / "out/train.en.removed.tsv")
    last = str(len(source) - 50 + 1)
    assert ["drop_near_leakage", last] in [row[:2] for row in removed]
    assert ["leakage", str(len(source) - 50 + 2)] in [row[:2] for row in removed]  # equal, without a letter
    assert len(lines(tfm.folder / "out/dev.en")) == 51


@pytest.mark.long
@pytest.mark.parametrize(
    ("rule", "text"),
    [("drop_leaked_source", "uno tre"), ("drop_leaked_target", "uno due"), ("drop_leaked_target", "uno tre")],
)
def test_a_pair_with_both_sides_of_held_out_pairs_is_dropped_by_each_of_the_two_rules(
    tmp_path: Path, rule: str, text: str
) -> None:
    numbers = {"uno": "The sea is blue.", "due": "We eat bread.", "tre": "They sleep well."}
    italian = {"uno": "Il mare è blu.", "due": "Mangiamo il pane.", "tre": "Dormono bene."}
    source, target = text.split()
    write_lines(tmp_path / "dev.tsv", [f"{numbers[key]}\t{italian[key]}" for key in numbers])
    write_lines(
        tmp_path / "train.tsv", [f"{numbers[source]}\t{italian[target]}", "I read.\tLeggo.", "You write.\tScrivi."]
    )
    corpora = [
        {"path": f"{name}.tsv", "has_header": False, "split": split}
        for name, split in (("train", "train"), ("dev", "validation"))
    ]
    data = FilesData.model_validate({"source": "files", "root": str(tmp_path), "corpora": corpora})
    off = [f"{name}=false" for name in ("drop_wrong_language", "realign")]
    cleaned = clean_corpus(data, corpus_rules(CleaningConfig(), [*off, f"{rule}=true"]), tmp_path / "out")
    (train,) = [part for part in cleaned if part.part.split == "train"]
    assert (train.num_kept, train.counts[rule].num_dropped) == (2, 1)


@pytest.mark.long
@pytest.mark.parametrize("is_table", [False, True])
def test_the_folder_is_a_corpus_without_the_records_of_its_cleaning(tfm: Tfm, is_table: bool) -> None:
    source, target = damaged()
    if is_table:
        pairs = "".join(f"{one}\t{other}\n" for one, other in zip(source, target, strict=True))
        (tfm.folder / "a.tsv").write_text(pairs, encoding="utf-8")
        assert tfm("data", "clean", "a.tsv", "--output", "out").exit_code == 0
    else:
        assert clean(tfm).exit_code == 0
    (part,) = json.loads((tfm.folder / "out/report.json").read_text(encoding="utf-8"))["parts"]
    languages = {"source_language": "en", "target_language": "it"}
    data = FilesData.model_validate({"source": "files", "corpora": [{"path": str(tfm.folder / "out")}], **languages})
    assert [path.name for path in find_files(data, 0)[0][1:]] == (part["files"] * 2)[:2]
    assert len(find_files(data, 0)) == 1
    finished = tfm("init", "out")
    assert (finished.exit_code, "not used" in finished.talk) == (0, False), finished.talk


def test_each_way_out_of_a_refusal_goes_on(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.tsv", [f"uno\t{'uno due tre ' * 20}"] * 3 + ["due\tuno", "tre\tdue"])
    corpus = {"path": "a.tsv", "has_header": False}
    data = FilesData.model_validate({"source": "files", "root": str(tmp_path), "corpora": [corpus]})
    switched_off = ["drop_wrong_language", "mend_encoding", "drop_duplicates", "drop_near_duplicates", "realign"]

    def cleaned(name: str, *changes: str) -> int:
        rules = corpus_rules(CleaningConfig(), [*(f"{rule}=false" for rule in switched_off), *changes])
        return clean_corpus(data, rules, tmp_path / name)[0].num_kept

    with pytest.raises(DataError, match="drop 3 of 5 pairs") as refused:
        cleaned("a")
    ways = re.findall("--set ([^ ;]+)", str(refused.value.hint))
    assert ways == ["max_length_ratio=null", "max_dropped_share=0.61"]
    assert [cleaned(f"out{number}", way) for number, way in enumerate(ways)] == [5, 2]
    with pytest.raises(DataError, match="no pair is left") as refused:
        cleaned("b", "min_words=9")
    assert re.findall("--set ([^ ;]+)", str(refused.value.hint)) == ["min_words=null"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["--set", "drop_emtpy=false"], 78, "did you mean drop_empty?"),
        (["--set", "max_length_ratio=often"], 78, "max_length_ratio=often"),
        (
            ["--set", "max_length_ratio=1.0", "--set", "max_dropped_share=0.01"],
            65,
            "the rules drop",
        ),
    ],
)
def test_a_refusal_leaves_no_output(tfm: Tfm, arguments: list[str], code: int, problem: str) -> None:
    finished = clean(tfm, *arguments)
    assert finished.exit_code == code
    assert problem in finished.talk
    assert not (tfm.folder / "out").exists()


def test_a_hint_for_two_commands_names_no_option_that_one_of_them_reads_as_something_else() -> None:
    """`--set` of `tfm data clean` takes rules, that of `tfm data check` settings."""
    with pytest.raises(UsageError) as refused:
        given_corpus([], "en-it.yaml", [], languages=("en", None))
    assert "--set" not in str(refused.value.hint)


@pytest.mark.parametrize(
    ("text", "problem"),
    [("", "no sentence pair in train.en and train.it"), (" \n", "(drop_empty 1), and no pair is left")],
)
def test_files_of_which_nothing_is_left_are_refused_for_that(tfm: Tfm, text: str, problem: str) -> None:
    for side in ("en", "it"):
        (tfm.folder / f"train.{side}").write_text(text)
    rules = ("--set", "realign=false", "--set", "max_dropped_share=1.0")
    finished = tfm("data", "clean", "train.en", "train.it", "--output", "out", *rules)
    assert (finished.exit_code, problem in finished.talk) == (65, True), finished.talk


@pytest.mark.long
def test_a_folder_is_replaced_only_if_it_holds_a_cleaned_corpus(tfm: Tfm) -> None:
    assert clean(tfm).exit_code == 0
    again = clean(tfm)
    assert (again.exit_code, "exists already" in again.talk) == (73, True)
    assert clean(tfm, "--force").exit_code == 0
    for content in ('{"rules": {}, "parts": []}', "[1]", "no JSON", "null", None):
        (tfm.folder / "out/report.json").unlink()
        if content is not None:
            (tfm.folder / "out/report.json").write_text(content, encoding="utf-8")
        refused = clean(tfm, "--force")
        assert (refused.exit_code, "no folder of tfm data clean" in refused.talk) == (73, True), content


def test_all_rules_of_training_are_rules_of_cleaning() -> None:
    rules = corpus_rules(CleaningConfig(max_words=7), ["mend_encoding=false"])
    assert (rules.max_words, rules.mend_encoding, rules.drop_empty) == (7, False, True)
    with pytest.raises(ConfigError, match="no rule of tfm data clean"):
        corpus_rules(CleaningConfig(), ["nonsense=1"])


@given(st.text(max_size=60))
def test_text_that_was_read_as_another_encoding_is_mended_and_other_text_stays(text: str) -> None:
    mended = with_encoding_mended(text)
    if text.isascii():
        assert mended == text
    assert without_entities(text.replace("&", "")) == text.replace("&", "")


@pytest.mark.parametrize("text", ["perché è così", "Füße größer", "l'été — déjà « vu »", "日本語。"])
def test_the_mended_text_is_the_original(text: str) -> None:
    assert with_encoding_mended(text) == text
    try:
        broken = text.encode().decode("cp1252")
    except UnicodeDecodeError:
        return
    assert with_encoding_mended(broken) == text


@settings(max_examples=60)
@given(st.integers(30, 80), st.integers(10, 20), st.integers(-15, 15))
def test_realigned_pairs_are_those_of_the_offsets(size: int, change: int, offset: int) -> None:
    pairs = [NumberedPair(n, f"s{n}", f"t{n}") for n in range(1, size + 1)]
    stretches = [Stretch(1, change, 0), Stretch(change + 1, size, offset)]
    found = list(realigned(pairs, stretches))
    assert [pair.line for pair in found] == list(range(1, size + 1))
    for pair in found:
        if pair.damage:
            assert pair.damage == WITHOUT_TRANSLATION
            is_outside = pair.line > change and not 1 <= pair.line + offset <= size
            assert abs(pair.line - change) <= 5 or is_outside
        else:
            wanted = pair.line if pair.line <= change else pair.line + offset
            assert pair.target == f"t{wanted}"
            assert pair.target_line == wanted
