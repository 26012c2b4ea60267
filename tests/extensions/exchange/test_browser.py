"""`--to browser`: a page that translates by itself; its files are whole, and nothing that is missing or damaged goes unnoticed."""

import base64
import hashlib
import html
import json
import re
from pathlib import Path

import pytest

from transformer_cli.extensions.exchange.bergamot import BergamotFolder, bergamot_files
from transformer_cli.extensions.exchange.browser import (
    BrowserFolder,
    BrowserFormat,
    browser_files,
    content_of,
    file_as_script,
    read_engine,
)
from transformer_cli.extensions.exchange.export import export_run, possible_formats
from transformer_cli.extensions.exchange.export_format import add_to_folder
from transformer_cli.process.errors import DataError, MissingInputError, UsageError

from ...launcher import Tfm
from .small_runs import ENGLISH, small_student


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder in which something like the npm package is installed."""
    folder = tmp_path / "node_modules" / "@browsermt" / "bergamot-translator"
    (folder / "worker").mkdir(parents=True)
    (folder / "package.json").write_text('{"version": "9.9.9"}')
    (folder / "worker" / "bergamot-translator-worker.js").write_text("var engine = '</script>è';")
    (folder / "worker" / "bergamot-translator-worker.wasm").write_bytes(b"\0asm\1\2")
    return folder


def test_a_file_comes_back_from_its_script(tmp_path: Path) -> None:
    content = bytes(range(256)) * 7
    path = tmp_path / "wasm.js"
    path.write_bytes(file_as_script("wasm", content))
    assert content_of(path) == content
    assert file_as_script("wasm", content) == path.read_bytes()  # without a time stamp


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_a_damaged_script_is_named(damage: str, tmp_path: Path) -> None:
    path, whole = tmp_path / "model.js", file_as_script("model", b"weights " * 200)
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    path.write_bytes({"cut": whole[:middle], "flipped": flipped, "empty": b""}[damage])
    with pytest.raises(DataError, match=r"model\.js"):
        content_of(path)


def test_the_engine_is_found_in_node_modules_here_or_above_or_where_it_is_named(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = package.parents[2]
    below = root / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    for given in (None, package, root, root / "node_modules"):
        found = read_engine(given)
        assert (found.version, found.wasm) == ("9.9.9", b"\0asm\1\2")


def test_without_the_engine_a_command_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingInputError, match="which is not in node_modules") as caught:
        read_engine(None)
    assert "npm install @browsermt/bergamot-translator@0.4.9" in str(caught.value.hint)
    trained = small_student(tmp_path / "run")
    with pytest.raises(MissingInputError):
        export_run(trained, BrowserFormat(), tmp_path / "out", lines=ENGLISH)
    assert not (tmp_path / "out").exists()


def test_a_package_that_lacks_a_file_is_named(package: Path) -> None:
    (package / "worker" / "bergamot-translator-worker.wasm").unlink()
    with pytest.raises(MissingInputError, match=re.escape(str(package))):
        read_engine(package)


def test_the_engine_is_an_option_of_this_format_only(tfm: Tfm) -> None:
    refused = tfm("export", "--to", "marian", "--engine", "a", "--output", "b")
    assert refused.exit_code == UsageError.exit_code
    assert "--engine is for --to browser, not for --to marian" in refused.talk


@pytest.mark.long
def test_the_folder_has_the_model_of_the_bergamot_format(package: Path, tmp_path: Path) -> None:
    trained = small_student(tmp_path / "run")
    written = bergamot_files(trained, is_rounded=True)
    (tmp_path / "plain").mkdir()
    (tmp_path / "page").mkdir()
    add_to_folder(tmp_path / "plain", written)
    add_to_folder(tmp_path / "page", browser_files(trained.config, written, read_engine(package)))
    files = tmp_path / "page" / "files"
    assert {path.stem for path in files.iterdir()} == {"program", "wasm", "model", "vocabulary"}
    assert content_of(files / "wasm.js") == b"\0asm\1\2"
    assert content_of(files / "program.js").decode().endswith("var engine = '</script>è';")
    folders = BergamotFolder(tmp_path / "plain"), BrowserFolder(tmp_path / "page")
    plain, packed = (one.decode(ENGLISH, [8] * len(ENGLISH)) for one in folders)
    assert plain == packed


@pytest.mark.long
def test_two_vocabularies_are_two_files(package: Path, tmp_path: Path) -> None:
    trained = small_student(tmp_path / "run")
    written = bergamot_files(trained, is_rounded=True)
    config = b"vocabs: [vocab.spm, b.spm]\n"
    both = {**written, "config.intgemm8bitalpha.yml": config, "b.spm": b"of the target"}
    add_to_folder(tmp_path, browser_files(trained.config, both, read_engine(package)))
    assert content_of(tmp_path / "files" / "target_vocabulary.js") == b"of the target"


@pytest.mark.long
def test_the_page_allows_its_own_scripts_and_nothing_else(package: Path, tmp_path: Path) -> None:
    trained = small_student(tmp_path / "run")
    files = browser_files(trained.config, bergamot_files(trained, is_rounded=True), read_engine(package))
    page = files["index.html"].decode()
    [policy] = re.findall('<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    rules = dict(one.split(" ", 1) for one in html.unescape(policy).split("; "))
    assert rules["default-src"] == "'none'"  # no connection to anywhere
    assert "connect-src" not in rules
    assert not re.search(r"\*|https?:", policy)
    scripts = re.findall("<script>(.*?)</script>", page, flags=re.DOTALL)
    assert len(scripts) == 2
    assert "window.tfmLocal = " in scripts[0]
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in rules["script-src"]
    [facts] = re.findall(r'id="facts">(.*?)</script>', page)
    found = json.loads(facts)
    assert found["source"] == {"code": "en", "name": "English"}
    assert found["files"].keys() == {"program", "wasm", "model", "vocabulary"}
    # Another model is another address, whatever a browser has kept.
    other = small_student(tmp_path / "other", d_ff=64)
    files = browser_files(other.config, bergamot_files(other, is_rounded=True), read_engine(package))
    [facts] = re.findall(r'id="facts">(.*?)</script>', files["index.html"].decode())
    changed = json.loads(facts)["files"]
    assert {name for name in changed if changed[name] != found["files"][name]} == {"model"}


def test_what_bergamot_lacks_the_page_lacks(tmp_path: Path) -> None:
    trained = small_student(tmp_path / "run", decoder_layer="attention")
    formats = possible_formats(trained.config)
    assert formats["browser"] == formats["bergamot"] != []
