"""What `tfm verify` finds in the folder of an export."""

import json
import shutil
from pathlib import Path

import pytest

from transformer_cli.checkpoint import load_trained
from transformer_cli.commands.verify import verify_command
from transformer_cli.extensions.exchange.ctranslate2 import CTranslate2Format
from transformer_cli.extensions.exchange.export import export_run
from transformer_cli.extensions.exchange.exported_files import check_export
from transformer_cli.extensions.exchange.own_folder import RECORD
from transformer_cli.process.errors import DataError
from transformer_cli.storage import DamagedError

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


def test_changed_missing_and_surplus_files_are_named(
    export: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
