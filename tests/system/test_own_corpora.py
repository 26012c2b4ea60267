"""A user's own corpus in the usual formats, from the file to a translation."""

import json
import string
from collections.abc import Callable
from pathlib import Path

import pytest

from ..experiments import newest_checkpoint
from ..launcher import Tfm

SETTINGS = """
tokenizer: {kind: wordlevel}
model: {d_model: 16, num_heads: 2, d_ff: 32, encoder_layers: 1, decoder_layers: 1}
training:
  max_steps: 6
  batch_sentences: 16
  learning_rate: 1e-3
  warmup_steps: 2
  log_every: 2
  best_metric: loss
validation: {max_sentences: 4, scores: [bleu], num_samples: 1}
decoding: {max_length: 10}
runtime: {device: cpu, precision: float32, threads: 1}
"""
THINGS = {
    "house": "casa",
    "car": "macchina",
    "tree": "pianta",
    "bread": "focaccia",
    "water": "acqua",
}
OWNERS = {"my": "mia", "your": "tua", "his": "sua", "our": "nostra"}
STATES = {
    "new": "nuova",
    "old": "vecchia",
    "small": "piccola",
    "beautiful": "bella, anzi bellissima",
}
PAIRS = [
    (f'{owner.title()} {thing} is "{state}".', f"La {ours} {cosa} è «{stato}».")
    for owner, ours in OWNERS.items()
    for thing, cosa in THINGS.items()
    for state, stato in STATES.items()
]


def as_spreadsheet(folder: Path) -> str:
    """CSV as Excel saves it: a byte-order mark, CRLF, doubled quotes, a column that is not used."""
    cells = [("English", "Italiano", "note"), *((*pair, "") for pair in PAIRS)]
    rows = (",".join(f'"{cell.replace(chr(34), 2 * chr(34))}"' for cell in row) for row in cells)
    text = "\ufeff" + "".join(f"{row}\r\n" for row in rows)
    (folder / "phrases.csv").write_text(text, encoding="utf-8", newline="")
    return "[{path: phrases.csv, source_field: English, target_field: Italiano}]"


def as_two_text_files(folder: Path) -> str:
    for name, part in (("train", PAIRS[8:]), ("dev", PAIRS[:8])):
        for side, language in enumerate(("en", "it")):
            lines = (pair[side] + "\n" for pair in part)
            (folder / f"{name}.{language}").write_text("".join(lines), encoding="utf-8")
    return """
    - {split: train, source_path: train.en, target_path: train.it}
    - {split: validation, source_path: dev.en, target_path: dev.it}"""


def as_json_lines(folder: Path) -> str:
    rows = ({"id": i, "translation": {"en": s, "it": t}} for i, (s, t) in enumerate(PAIRS))
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (folder / "pairs.jsonl").write_text(text, encoding="utf-8")
    return "[{path: pairs.jsonl, source_field: translation.en, target_field: translation.it}]"


SHAPES: dict[str, Callable[[Path], str]] = {
    "a spreadsheet": as_spreadsheet,
    "two text files": as_two_text_files,
    "JSON Lines": as_json_lines,
}


def write_config(folder: Path, corpora: str) -> str:
    shares = "" if "split:" in corpora else "\n  validation_share: 0.1\n  test_share: 0.1"
    text = f"name: mine\ndata:\n  source: files\n  corpora: {corpora}{shares}\n{SETTINGS}"
    (folder / "mine.yaml").write_text(text, encoding="utf-8")
    return "mine.yaml"


@pytest.mark.parametrize("shape", SHAPES)
def test_a_corpus_of_ones_own_is_trained_on_and_translated_with(tfm: Tfm, shape: str) -> None:
    config = write_config(tfm.folder, SHAPES[shape](tfm.folder))
    look = tfm("data", "--config", config)
    assert look.exit_code == 0, look.talk
    assert "\n  SOURCE  " in look.text
    trained = tfm("train", "--config", config)
    assert trained.exit_code == 0, trained.talk
    report = json.loads((tfm.folder / "runs/mine/data/report.json").read_text())
    splits = report["num_pairs"]
    assert sum(splits.values()) == len(PAIRS), splits
    assert "UNK" not in tfm("translate", 'My house is "new".').text
    scored = tfm("validate", "--json")
    assert json.loads(scored.text)["num_sentences"] == splits["validation"]


def test_every_pair_of_the_spreadsheet_arrives_whole(tfm: Tfm) -> None:
    config = write_config(tfm.folder, as_spreadsheet(tfm.folder))
    shown = json.loads(tfm("data", "--config", config, "--json").text)["pairs"]
    assert len(shown) == 10
    assert {(pair["source"], pair["target"]) for pair in shown} < set(PAIRS)


def test_the_report_adds_up_and_tells_of_a_skipped_row_once(tfm: Tfm) -> None:
    config = write_config(tfm.folder, as_json_lines(tfm.folder))
    path = tfm.folder / "pairs.jsonl"
    row = json.dumps({"translation": {"en": "a\0b", "it": "c"}})
    path.write_text(path.read_text(encoding="utf-8") + row + "\n", encoding="utf-8")
    look = tfm("data", "--config", config, "--json")
    assert look.exit_code == 0, look.talk
    report = json.loads(look.text)["report"]
    counts = {what: count for what, count, _ in report["reading"]}
    read = {what: count for what, count, _ in report["cleaning"]}["pairs read"]
    drawn = counts["drawn for validation"] + counts["drawn for test"]
    assert drawn == report["num_pairs"]["validation"] + report["num_pairs"]["test"] > 0
    assert counts["rows read"] == len(PAIRS) + 1 == read + drawn + 1
    assert tfm("data", "--config", config).text.count("skipped: a NUL byte") == 1


def test_a_spreadsheet_with_a_stray_quote_is_not_trained_on(tfm: Tfm) -> None:
    corpora = as_spreadsheet(tfm.folder)
    path = tfm.folder / "phrases.csv"
    rows = path.read_bytes().split(b"\r\n")
    rows[3] = b'"Hello,Ciao,'
    path.write_bytes(b"\r\n".join(rows))
    refused = tfm("train", "--config", write_config(tfm.folder, corpora))
    assert refused.exit_code == 65
    assert "phrases.csv:4: a quote opens a field here" in refused.talk
    assert not (tfm.folder / "runs/mine/data").exists()


def test_a_header_that_nobody_named_is_told_once(tfm: Tfm) -> None:
    as_spreadsheet(tfm.folder)
    look = tfm("data", "--config", write_config(tfm.folder, "[{path: phrases.csv}]"))
    assert look.exit_code == 0, look.talk
    assert look.talk.count("looks like a header") == 1
    assert "data.corpora.0.has_header: true" in look.talk


def test_a_config_without_a_test_split_says_so_and_what_to_do(tfm: Tfm) -> None:
    config = write_config(tfm.folder, as_two_text_files(tfm.folder))
    assert tfm("train", "--config", config).exit_code == 0
    finished = tfm("validate", "--split", "test")
    assert finished.exit_code == 65
    assert "no test split" in finished.talk
    assert "--source FILE --reference FILE" in finished.talk


def test_folders_may_have_blanks_and_be_elsewhere(tfm: Tfm) -> None:
    place, work = tfm.folder / "my corpora", tfm.folder / "my work"
    place.mkdir()
    work.mkdir()
    config = write_config(place, as_two_text_files(place))
    options = ["--config", f"../my corpora/{config}", "--set", "data.root=../my corpora"]
    trained = tfm("train", *options, folder=work)
    assert trained.exit_code == 0, trained.talk
    assert (work / "runs/mine").is_dir()
    assert not (place / "runs").exists()
    assert tfm("validate", "--json", folder=work).exit_code == 0, "the run knows where its corpus is"
    assert tfm("train", *options, folder=work).exit_code == 0


def test_a_checkpoint_tells_nothing_about_where_it_was_made(tfm: Tfm) -> None:
    """H10: no absolute path, no user, no variable."""
    place = tfm.folder / "Mallory's canary"
    place.mkdir()
    config = write_config(tfm.folder, as_json_lines(place))
    options = ["--set", f"data.root={place}"]
    environment = {"USER": "canary-user", "SECRET": "canary-secret"}
    trained = tfm("train", "--config", config, *options, environment=environment)
    assert trained.exit_code == 0, trained.talk
    checkpoint = newest_checkpoint(tfm.folder / "runs/mine")
    everything = b"".join(file.read_bytes() for file in checkpoint.iterdir())
    for canary in ("canary", str(tfm.folder), "Mallory"):
        assert canary.encode() not in everything
    assert str(place) in (tfm.folder / "runs/mine/config.yaml").read_text(), "the run itself knows"


def test_a_second_run_in_the_same_folder_is_another_run(tfm: Tfm) -> None:
    config = write_config(tfm.folder, as_two_text_files(tfm.folder))
    for options in ([], ["--set", "name=again", "--set", "model.d_model=32"]):
        assert tfm("train", "--config", config, *options).exit_code == 0
    assert sorted(path.name for path in (tfm.folder / "runs").iterdir()) == ["again", "mine"]
    assert tfm("info", "--run", "mine", "--json").text != tfm("info", "--json").text


def test_from_scratch_puts_the_earlier_run_aside(tfm: Tfm) -> None:
    config = write_config(tfm.folder, as_two_text_files(tfm.folder))
    tfm("train", "--config", config)
    before = newest_checkpoint(tfm.folder / "runs/mine") / "model.safetensors"
    weights = before.read_bytes()
    options = ["--set", "model.d_model=32", "--from-scratch"]
    finished = tfm("train", "--config", config, *options)
    assert finished.exit_code == 0, finished.talk
    aside = tfm.folder / "runs/mine/checkpoints-old-1"
    assert f"the earlier checkpoints are now in {aside.relative_to(tfm.folder)}" in finished.talk
    assert (aside / before.parent.name / "model.safetensors").read_bytes() == weights
    assert (aside / "metrics.jsonl").is_file()
    assert tfm("info", "--json").text.count('"d_model": 32') == 1


@pytest.mark.parametrize("refused", ["data.corpora.0.source_path=none.en", "model.max_length=1"])
def test_an_earlier_run_stays_if_from_scratch_is_refused(tfm: Tfm, refused: str) -> None:
    config = write_config(tfm.folder, as_two_text_files(tfm.folder))
    tfm("train", "--config", config)
    run = tfm.folder / "runs/mine"
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    again = tfm("train", "--config", config, "--set", refused, "--from-scratch")
    assert again.exit_code != 0
    assert "no new run has started, so runs/mine/checkpoints-old-1 is runs/mine/checkpoints again" in again.talk
    after = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    changed = {path.name for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert changed == {"train.log"}
    assert tfm("translate", "a b").exit_code == 0


def test_several_files_of_one_language_pair_may_be_a_folder(tfm: Tfm) -> None:
    place = tfm.folder / "corpus"
    place.mkdir()
    for number, letters in enumerate((string.ascii_lowercase[:13], string.ascii_lowercase[13:])):
        rows = (f"{a} {b}\t{b} {a}\n" for a in letters for b in letters)
        (place / f"part-{number}.tsv").write_text("".join(rows))
    config = write_config(tfm.folder, "[{path: corpus}]")
    finished = tfm("train", "--config", config)
    assert finished.exit_code == 0, finished.talk
    report = json.loads((tfm.folder / "runs/mine/data/report.json").read_text())
    assert sum(report["num_pairs"].values()) == 2 * (13 * 13 - 13), "equal sides are dropped"
