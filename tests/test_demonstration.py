"""The small model that comes along, docs/demonstration: what README says of it."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from transformer_cli import load_translator
from transformer_cli.cli import app
from transformer_cli.commands.validate import pairs_to_score
from transformer_cli.decoding.checks.doubts import LEAVES
from transformer_cli.decoding.loading import load_run
from transformer_cli.process.errors import MissingInputError

ROOT = Path(__file__).parents[1]


@pytest.mark.heavy
def test_as_many_everyday_sentences_are_right_as_the_readme_says() -> None:
    rows = (ROOT / "benchmarks/everyday_french.tsv").read_text(encoding="utf-8").splitlines()
    accepted = dict(row.split("\t", 1) for row in rows if not row.startswith("#"))
    found = load_translator(ROOT / "docs/demonstration").translate([*accepted])
    num_right = sum(one.text in accepted[english].split("\t") for english, one in zip(accepted, found, strict=True))
    readme = (ROOT / "README.md").read_text("utf-8")
    said = re.search(r"of (\d+) sentences that somebody wrote, (\d+) came out right", readme)
    assert said is not None
    assert [*map(int, said.groups())] == [len(accepted), num_right]


@pytest.mark.long
def test_files_are_scored_in_the_languages_of_the_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A French file was said to be French where the config says Italian, which is the language of a config without any."""
    lines = ["Where is the station?", "The dog is in the garden.", "My sister is reading a book."] * 20
    references = ["Où est la gare ?", "Le chien est dans le jardin.", "Ma sœur est en train de lire un livre."] * 20
    (tmp_path / "a.en").write_text("".join(f"{line} {n}\n" for n, line in enumerate(lines)), encoding="utf-8")
    (tmp_path / "a.fr").write_text("".join(f"{line} {n}\n" for n, line in enumerate(references)), encoding="utf-8")
    loaded = load_run(str(ROOT / "docs/demonstration"), ["decoding.repair=false"])
    pairs = pairs_to_score(loaded, loaded.translator, None, tmp_path / "a.en", tmp_path / "a.fr")
    assert len(pairs) == 60
    assert "looks like" not in caplog.text


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "instead"),
    [
        ("validate", "--source FILE --reference FILE"),
        ("validate --split validation --beam-size 1", "--source FILE --reference FILE"),
        ("calibrate --split validation", "--source FILE --reference FILE"),
        ("benchmark --decode", "--config"),
        ("shortlist", "where this run was trained"),
    ],
)
def test_a_command_that_needs_its_data_says_that_they_do_not_come_along(
    command: str, instead: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app, [*command.split(), "--run", "demonstration"])
    assert isinstance(found.exception, MissingInputError)
    assert "the data of the small model that comes with tfm do not come along" in str(found.exception)
    assert instead in str(found.exception.hint)


@pytest.mark.long
def test_its_card_has_the_scores_of_its_training_and_the_name_that_people_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app, ["card", "--run", "demonstration"])
    assert found.exit_code == 0
    assert "\n# demonstration\n" in found.output
    assert "tfm translate --run demonstration " in found.output
    metrics = (ROOT / "docs/demonstration/metrics.jsonl").read_text("utf-8").splitlines()
    scores = json.loads(metrics[-1])["scores"]
    assert [one["name"] for one in scores] == ["BLEU", "chrF"]
    for score in scores:
        assert f"| {score['name']} | {score['value']:.1f} |" in found.output
    assert f"at step {json.loads(metrics[-1])['step']:,}, on 500 sentences of the validation split" in found.output


def test_the_folder_names_no_path_of_a_machine() -> None:
    folder = ROOT / "docs/demonstration"
    configs = [folder / "config.yaml", *folder.glob("checkpoints/*/config.yaml")]
    assert len(configs) == 2
    assert all("\n  root: .\n" in path.read_text(encoding="utf-8") for path in configs)


@pytest.mark.parametrize("protects", [False, True])
@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("Use -wait to wait for the dog.", "-wait"),
        ("Use the option -silent now.", "-silent"),
        ("-h, --help show this help", "-h, --help"),
        ("-silent\timport silently", "-silent\t"),
        ("CHAPTER V.", "CHAPITRE V."),
        ("Chapter II", "Chapitre II"),
        ("CHAPTER XII. THE RED HOUSE", "CHAPITRE XII. LA MAISON ROUGE"),
        ("CHAPTER 5", "CHAPITRE 5"),
        ("CHAPTER II: The Red House", "Chapitre II : la maison rouge"),
        ("-o FILE  write to it", "-o FILE  "),
        ("THE {n} DOGS ARE RED", "LES {n} CHIENS SONT ROUGES"),
        ("Elizabeth II was a queen.", "Elizabeth II "),
        (r"Not enough\ningredients", "Pas assez\\ningr\u00e9dients"),
        (r"Read the book\nand the letter.", r"Lis le livre\net la lettre."),
    ],
)
def test_options_roman_numerals_and_written_line_ends_stay(line: str, kept: str, *, protects: bool) -> None:
    translator = load_translator(ROOT / "docs/demonstration")
    [found] = replace(translator, protects_spans=protects, reports_lines=False).translate([line])
    assert kept in found.text
    assert found.text != line


@pytest.mark.parametrize("line", ["--wait  wait for the dog", "--help  show this help"])
def test_an_option_that_stays_is_no_copied_word(line: str) -> None:
    [found] = load_translator(ROOT / "docs/demonstration").translate([line])
    assert not [doubt for doubt in found.doubts if doubt.startswith(LEAVES)]


@pytest.mark.parametrize(
    ("line", "copied"),
    [("Made of 100% cotton", "Made"), ("changes saved", "changes"), ("Changes:", "Changes"), ("the table", None)],
)
def test_a_word_of_a_label_that_is_only_copied_is_named(line: str, copied: str | None) -> None:
    """*Changes* is a French word, too, but no translation of itself; *table* is one."""
    [found] = load_translator(ROOT / "docs/demonstration").translate([line])
    named = [doubt for doubt in found.doubts if doubt.startswith(LEAVES)]
    assert named == ([f"{LEAVES}: {copied}"] if copied else [])


@pytest.mark.parametrize("protects", [False, True])
@pytest.mark.parametrize(
    ("line", "written"),
    [
        ('"Frobnicate"', '"Frobnicate"'),
        ('The word "Frobnicate" is new.', "Le mot \u00ab Frobnicate \u00bb est nouveau."),
        ('Use "Frobnicate Wibble" here.', 'Utilise "Frobnicate Wibble" ici.'),
        ('"hello', '"bonjour'),
        ('The "dog is red.', 'Le "chien est rouge.'),
        ("The dog \u00abis red.", "Le chien \u00abest rouge."),
        ("The dog is red.'", "Le chien est rouge.'"),
    ],
)
def test_quotation_marks_are_neither_doubled_nor_moved(line: str, written: str, *, protects: bool) -> None:
    translator = load_translator(ROOT / "docs/demonstration")
    [found] = replace(translator, protects_spans=protects, reports_lines=False).translate([line])
    assert found.text == written


def test_an_apostrophe_behind_code_is_no_quotation_mark() -> None:
    [found] = load_translator(ROOT / "docs/demonstration").translate(["`dogs`' `houses` are red."])
    assert found.text.startswith("`dogs`' `houses` ")
