"""What `tfm verify` finds in the folder of an export."""

import ast
import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.checkpoint.trained_files import load_trained
from transformer_cli.commands.verify import verify_command
from transformer_cli.config import DecodingConfig, TokenizerConfig
from transformer_cli.extensions.exchange.argos import ArgosFormat
from transformer_cli.extensions.exchange.ctranslate2 import CTranslate2Format
from transformer_cli.extensions.exchange.export import FORMATS, export_run
from transformer_cli.extensions.exchange.exported_files import check_export
from transformer_cli.extensions.exchange.own_folder import RECORD
from transformer_cli.process.errors import CannotCreateError, DataError
from transformer_cli.storage import DamagedError

from .small_runs import ENGLISH, random_run, small_student

DOCS_RUN = Path(__file__).parents[3] / "docs" / "run"

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("ctranslate2", reason="the extra export")
    folder = tmp_path_factory.mktemp("export") / "en-it.ct2"
    export_run(load_trained(DOCS_RUN), CTranslate2Format(), folder, lines=["Good morning."])
    return folder


@pytest.fixture
def export(exported: Path, tmp_path: Path) -> Path:
    folder = tmp_path / exported.name
    shutil.copytree(exported, folder)
    return folder


def test_a_sound_export_is_told_with_all_of_its_files_and_its_card_may_be_edited(
    export: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [path for path in export.rglob("*") if path.is_file()]
    found = check_export(export)
    assert (found.problems, found.num_files) == ([], len(files) - 2)  # the card and the record
    (export / "README.md").write_text("Mine.")
    (export / ".gitattributes").write_text("*.bin filter=lfs")
    verify_command(str(export))
    assert f"{export}: 1 export" in capsys.readouterr().out


def test_the_card_names_the_output_by_the_path_that_was_given(exported: Path) -> None:
    assert f'folder = "{exported.as_posix()}"' in (exported / "README.md").read_text(encoding="utf-8")


def test_changed_missing_and_surplus_files_are_named(export: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = export / "model.bin"
    model.write_bytes(model.read_bytes()[:-1] + b"\0\1")
    (export / "tfm" / "config.yaml").unlink()
    (export / "tfm" / "more.py").write_text("import os")
    with pytest.raises(DataError, match="not as it was written: 3 problems"):
        verify_command(str(export))
    shown = capsys.readouterr().out
    assert f"{export}/tfm/config.yaml: missing" in shown
    assert f"holds 'tfm/more.py', which {RECORD} does not list" in shown
    assert f"{model}: its content has changed since it was exported" in shown


def test_an_export_without_checksums_and_a_damaged_record_are_refused(export: Path) -> None:
    record = json.loads((export / RECORD).read_text())
    del record["files"]
    (export / RECORD).write_text(json.dumps(record))
    with pytest.raises(DataError, match=r"has no checksums.*\n.*export the run again"):
        verify_command(str(export))
    for text in ("{", "[]", '{"files": [1]}', '{"files": {"a": 1}}'):
        (export / RECORD).write_text(text)
        with pytest.raises(DamagedError):
            check_export(export)


@pytest.mark.parametrize("name", ["two words", 'a "name"', "back\\slash", "{x}", "work/exp/out", "/data/out"])
def test_the_code_of_the_card_names_the_output_whatever_its_name(name: str, tmp_path: Path) -> None:
    trained = small_student(tmp_path / "en-it")
    for wanted in FORMATS:
        if wanted.name == "browser":
            continue
        usage = wanted.usage(trained, name)
        for code in re.findall(r"```python\n(.*?)```", usage, re.DOTALL):
            texts = [one.value for one in ast.walk(ast.parse(code)) if isinstance(one, ast.Constant)]
            assert name in texts
        for code in re.findall(r"```sh\n(.*?)```", usage, re.DOTALL):
            assert f"{name}/decoder.yml" in shlex.split(code)
        for literal in re.findall(r'"translation", ("(?:[^"\\]|\\.)*")', usage):
            [parent] = re.findall(r'localModelPath = ("(?:[^"\\]|\\.)*")', usage)
            assert Path(json.loads(parent), json.loads(literal)) == Path(name)


@pytest.mark.parametrize("format_name", ["hf", "marian", "ctranslate2"])
def test_the_settings_of_a_search_that_the_files_cannot_say_are_told(format_name: str) -> None:
    [wanted] = [one for one in FORMATS if one.name == format_name]
    assert wanted.unsaid_search(DecodingConfig(length_normalization="average")) == []
    assert wanted.unsaid_search(DecodingConfig(beam_size=1)) == []
    [note] = wanted.unsaid_search(DecodingConfig(length_penalty=0.6))
    assert "length^0.6, not as decoding.length_normalization: gnmt" in note
    covering = DecodingConfig(length_penalty=0.0, coverage_penalty=0.2)
    assert "no decoding.coverage_penalty" in wanted.unsaid_search(covering)[0]


def test_what_a_person_writes_during_an_export_is_not_replaced(export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = CTranslate2Format.write

    def written_late(self: CTranslate2Format, *given: Any, **options: Any) -> None:
        (export / "README.md").write_text("mine")
        write(self, *given, **options)

    monkeypatch.setattr(CTranslate2Format, "write", written_late)
    with pytest.raises(CannotCreateError, match=r"README.md.* would be lost"):
        export_run(load_trained(DOCS_RUN), CTranslate2Format(), export, lines=["Good morning."])
    assert (export / "README.md").read_text() == "mine"
    assert [*export.parent.iterdir()] == [export]


@pytest.mark.parametrize("format_name", ["bergamot", "browser", "onnx"])
def test_formats_whose_programs_search_greedily_say_so(format_name: str) -> None:
    """The model card then has the scores of greedy search."""
    assert [one.is_greedy for one in FORMATS if one.name == format_name] == [True]


def test_formats_whose_programs_split_text_into_sentences_say_so() -> None:
    assert {one.name for one in FORMATS if one.splits_sentences} == {"argos", "bergamot", "browser"}


def test_a_package_replaces_nothing_but_an_earlier_package(tmp_path: Path) -> None:
    output = tmp_path / "notes.argosmodel"
    trained = random_run(tmp_path / "en-it", tokenizer=TokenizerConfig(kind="sentencepiece"))
    output.write_text("of somebody else")
    with pytest.raises(CannotCreateError, match="this file is not an earlier export"):
        export_run(trained, ArgosFormat(), output, lines=ENGLISH[:1])
    assert output.read_text() == "of somebody else"
    output.unlink()
    for _ in range(2):
        export_run(trained, ArgosFormat(), output, lines=ENGLISH[:1])


@pytest.mark.parametrize("added", ["notes.txt", ".git/config", "tfm/more.txt", "README.md"])
def test_a_folder_with_files_of_a_person_is_not_replaced(export: Path, added: str) -> None:
    """What a person added to an export, or wrote into its model card, would be lost; what a file browser adds is not counted."""
    (export / "tfm" / ".DS_Store").touch()
    (export / added).parent.mkdir(exist_ok=True)
    (export / added).write_text("mine")
    with pytest.raises(CannotCreateError, match=f"{added}.* would be lost") as refused:
        export_run(load_trained(DOCS_RUN), CTranslate2Format(), export, lines=["Good morning."])
    assert "move it away, or name another --output" in str(refused.value.hint)
    assert (export / added).read_text() == "mine"
