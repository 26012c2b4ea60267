"""`tfm data check`: each damage of a clean corpus is found, and a clean corpus has none."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from ...launcher import Finished, Tfm
from .phrases import clean_lines, write_lines, write_sides

Sides = tuple[list[str], list[str]]
NUM_PAIRS = 400


def findings(finished: Finished, part: int = 0) -> dict[str, Any]:
    shown = json.loads(finished.text)["parts"][part]["findings"]
    return {one["finding"]: one for one in shown}


def check(tfm: Tfm, sides: Sides, *arguments: str) -> Finished:
    return tfm("data", "check", *write_sides(tfm.folder, *sides), "--json", *arguments)


def test_a_clean_corpus_has_no_fault_and_exits_with_0(tfm: Tfm) -> None:
    finished = check(tfm, clean_lines(NUM_PAIRS))
    assert finished.exit_code == 0, finished.talk
    assert set(findings(finished)) <= {"near_duplicates"}
    assert json.loads(finished.text)["ruins_training"] is False


def test_sentences_too_short_to_tell_their_language_are_counted(tfm: Tfm) -> None:
    """Else a person takes a check that judged few sentences for one that found no fault."""
    sides = clean_lines(NUM_PAIRS)
    sides[0][0], sides[1][0] = "Where is he?", "Il cane dorme davanti alla casa."
    sides[0][1], sides[1][1] = "a" * 19 + " 1234", "b" * 20
    num_short = sum(sum(map(str.isalpha, text)) < 20 for side in sides for text in side)
    part = json.loads(check(tfm, sides).text)["parts"][0]
    assert part["num_pairs_with_examined_languages"] == NUM_PAIRS
    assert part["num_sentences_too_short_for_languages"] == num_short >= 2
    shown = tfm("data", "check", "train.en", "train.it").text
    assert f"{num_short:,} of {2 * NUM_PAIRS:,} sentences have fewer than 20 letters" in shown


def test_a_corpus_without_a_pair_is_refused_and_not_without_fault(tfm: Tfm) -> None:
    (tfm.folder / "empty.tsv").write_text("", encoding="utf-8")
    (tfm.folder / "my.yaml").write_text(
        "name: my\ndata: {source: files, corpora: [{path: empty.tsv}]}\ntraining: {max_steps: 1, batch_sentences: 4}\n"
    )
    finished = tfm("data", "check", "--config", "my.yaml")
    assert finished.exit_code == 65, finished.talk
    assert "no sentence pair in" in finished.talk
    assert "empty.tsv" in finished.talk


def test_a_corpus_that_shows_nothing_is_a_warning_that_names_what_goes_on(tfm: Tfm) -> None:
    sides = [f"dog {number}" for number in "abcdefghij"], ["ခွေး"] * 10
    finished = check(tfm, sides)
    assert finished.exit_code == 0, finished.talk
    found = findings(finished)
    assert "unrelated" not in found
    assert found["relation_unclear"]["ruins_training"] is False
    assert "--set realign=false" in found["relation_unclear"]["remedy"]


def mojibake(sides: Sides) -> None:
    for line in (30, 31, 32):
        sides[1][line] = "Perché è così".encode().decode("cp1252")


def at(line: int, source: str | None = None, target: str | None = None) -> Callable[[Sides], None]:
    def damage(sides: Sides) -> None:
        for side, text in zip(sides, (source, target), strict=True):
            if text is not None:
                side[line - 1] = text

    return damage


def swap(sides: Sides) -> None:
    sides[0][200:], sides[1][200:] = sides[1][200:], sides[0][200:]


def repeat(sides: Sides) -> None:
    for side in sides:
        side[50] = side[10]
        side[51] = side[11].upper()


DAMAGES: dict[str, tuple[Callable[[Sides], None], int | None]] = {
    "broken_encoding": (mojibake, 31),
    "empty": (at(7, target="  "), 7),
    "equal": (at(8, "Bologna Modena Parma", "Bologna Modena Parma"), 8),
    "nearly_equal": (
        at(9, "The committee adopted the report today.", "the committee adopted the report, today"),
        9,
    ),
    "lost_characters": (at(10, target="La citt\ufffd"), 10),
    "html_entities": (at(11, "Tea &amp; coffee"), 11),
    "control_characters": (at(12, "A bell\x07 rings"), 12),
    "not_nfc": (at(13, target="perche\u0301"), 13),
    "length_ratio": (at(14, "Yes.", "una frase " * 20), 14),
    "too_many_words": (at(15, "a b " * 150, "una frase " * 150), 15),
    "wrong_target_language": (
        at(16, target="Der Ausschuss hat gestern den Bericht über die Fischerei angenommen."),
        16,
    ),
    "wrong_source_language": (
        at(17, "Der Ausschuss hat gestern den Bericht über die Fischerei angenommen."),
        17,
    ),
    "swapped": (swap, None),
    "duplicates": (repeat, 51),
    "near_duplicates": (repeat, 52),
}


@pytest.mark.heavy
@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damage_is_found_at_its_line_with_what_mends_it(tfm: Tfm, kind: str) -> None:
    damage, line = DAMAGES[kind]
    sides = clean_lines(NUM_PAIRS)
    damage(sides)
    finished = check(tfm, sides)
    found = findings(finished)[kind]
    assert found["count"] >= 1
    assert found["remedy"]
    if line is not None:
        places = [example["place"] for example in found["examples"]]
        assert f"train.en:{line}" in places


@pytest.mark.long
def test_sides_that_drift_apart_are_shown_with_the_line_and_exit_with_65(tfm: Tfm) -> None:
    source, target = clean_lines(NUM_PAIRS)
    finished = check(tfm, (source, target[:150] + target[151:]))
    found = findings(finished)
    assert finished.exit_code == 65
    assert "would be ruined" in finished.talk
    assert found["unequal_lines"]["details"] == [
        f"train.en has {len(source)} lines, train.it has {len(source) - 1} lines"
    ]
    [detail] = found["drift"]["details"]
    first = int(detail.split()[1].replace(",", ""))
    assert abs(first - 150) <= 10
    assert "1 line before them" in detail
    assert found["drift"]["ranges"] == [{"first_line": first, "last_line": len(source) - 1, "offset": -1}]
    assert any(example["place"] == f"train.en:{first}" for example in found["drift"]["examples"])


@pytest.mark.long
def test_text_that_is_not_utf_8_stops_nothing(tfm: Tfm) -> None:
    names = write_sides(tfm.folder, *clean_lines(NUM_PAIRS))
    path = tfm.folder / names[1]
    path.write_bytes(path.read_bytes().replace("è".encode(), b"\xe8", 3))
    finished = tfm("data", "check", *names, "--json")
    assert finished.exit_code == 65
    assert findings(finished)["not_utf_8"]["count"] >= 1


@pytest.mark.long
@pytest.mark.parametrize("target", ["perche\u0301", "\u0a36"])
def test_what_is_not_in_nfc_is_named_whether_this_form_composes_or_divides_it(tfm: Tfm, target: str) -> None:
    """The letter SHA of Gurmukhi is one character, and two in NFC."""
    sources, targets = clean_lines(NUM_PAIRS)
    targets[12] = target
    names = write_sides(tfm.folder, sources, targets)
    assert findings(tfm("data", "check", *names, "--json"))["not_nfc"]["count"] == 1
    said = tfm("data", "check", *names).text
    assert "not in Unicode NFC" in said
    assert "normalize_unicode brings them into this form" in " ".join(said.split())
    assert "accents" not in said
    assert "composes" not in said


@pytest.mark.long
def test_training_pairs_that_are_validation_pairs_are_found_after_normalisation(tfm: Tfm) -> None:
    source, target = clean_lines(NUM_PAIRS)
    write_sides(tfm.folder, source[:50], target[:50], "dev")
    more = [source[3], source[4].upper() + " !", source[5]]
    others = [target[3], target[4].upper() + " !", "Un'altra traduzione."]
    write_sides(tfm.folder, source[50:] + more, target[50:] + others)
    write_lines(
        tfm.folder / "mine.yaml",
        [
            "name: mine",
            "training: {max_steps: 5, batch_sentences: 4}",
            "data:",
            "  source: files",
            "  corpora:",
            "    - {split: train, source_path: train.en, target_path: train.it}",
            "    - {split: validation, source_path: dev.en, target_path: dev.it}",
        ],
    )
    finished = tfm("data", "check", "--config", "mine.yaml", "--json")
    parts = json.loads(finished.text)["parts"]
    assert [part["split"] for part in parts] == ["validation", "train"]
    found = findings(finished, part=1)
    number = len(source) - 50
    places = {kind: [one["place"] for one in found[kind]["examples"]] for kind in found}
    assert f"train.en:{number + 1}" in places["leakage"]
    assert f"train.en:{number + 2}" in places["near_leakage"]
    assert f"train.en:{number + 3}" in places["leaked_source"]


def test_only_test_pairs_that_are_validation_pairs_are_shared(tfm: Tfm) -> None:
    source, target = clean_lines(60)
    write_sides(tfm.folder, source[:20], target[:20], "dev")
    again = [*range(20, 40), 25, 3]
    write_sides(tfm.folder, [source[n] for n in again], [target[n] for n in again], "test")
    write_sides(tfm.folder, source[40:] + source[21:22], target[40:] + target[21:22])
    names = {"dev": "validation", "test": "test", "train": "train"}
    corpora = [
        f"    - {{split: {split}, source_path: {name}.en, target_path: {name}.it}}" for name, split in names.items()
    ]
    head = ["name: mine", "training: {max_steps: 5, batch_sentences: 4}", "data:"]
    write_lines(tfm.folder / "mine.yaml", [*head, "  source: files", "  corpora:", *corpora])
    finished = tfm("data", "check", "--config", "mine.yaml", "--json")
    assert findings(finished, part=1)["duplicates"]["count"] == 1
    [shared] = findings(finished, part=1)["shared_test"]["examples"]
    assert shared["place"] == "test.en:22"
    assert findings(finished, part=2)["leakage"]["count"] == 1


@pytest.mark.long
def test_a_table_is_checked_by_its_rows(tfm: Tfm) -> None:
    source, target = clean_lines(NUM_PAIRS)
    target[40] = "&quot;Sì&quot;"
    rows = [f"{one}\t{other}" for one, other in zip(source, target, strict=True)]
    write_lines(tfm.folder / "phrases.tsv", rows)
    finished = tfm("data", "check", "phrases.tsv", "--source-language", "en", "--target-language", "it")
    assert finished.exit_code == 0, finished.talk
    assert "phrases.tsv:41" in finished.text
    assert "mend_entities" in finished.text


@pytest.mark.long
def test_the_check_of_a_generated_corpus_uses_its_config(tfm: Tfm) -> None:
    finished = tfm("data", "check", "--config", "en-it.yaml", "--set", "data.num_pairs=300", "--json")
    assert finished.exit_code == 0, finished.talk
    assert json.loads(finished.text)["parts"][2]["num_pairs"] == 300


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "give either files or --config"),
        (("a.en", "b.it", "c"), "give one file or folder, or two text files"),
        (("a.en", "b.it", "--config", "en-it.yaml"), "give either files or --config"),
        (("--config", "en-it.yaml", "--source-language", "en"), "are for files"),
    ],
)
def test_command_lines_that_make_no_sense_are_refused(tfm: Tfm, arguments: tuple[str, ...], problem: str) -> None:
    finished = tfm("data", "check", *arguments)
    assert finished.exit_code == 2
    assert problem in finished.talk


def test_a_missing_file_has_its_own_exit_code(tfm: Tfm) -> None:
    finished = tfm("data", "check", "none.en", "none.it")
    assert finished.exit_code == 66
    assert "none.en" in finished.talk


@pytest.mark.long
@pytest.mark.parametrize("row", [("km", "en"), ("source_text", "target_text"), ("עברית", "אנגלית")])
def test_a_header_that_is_read_as_a_pair_is_found(tfm: Tfm, row: tuple[str, str]) -> None:
    sources, targets = clean_lines(100)
    found = findings(check(tfm, ([row[0], *sources], [row[1], *targets])))
    assert found["header"]["count"] == 1
    assert found["header"]["examples"][0]["source"] == row[0]
    assert "header" not in findings(check(tfm, (sources, targets)))
