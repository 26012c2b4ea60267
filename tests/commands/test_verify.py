"""What `tfm verify` finds in runs, checkpoints and exports: nothing in sound ones, and each fault by its name."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pytest

from transformer_cli.checkpoint.trained_files import read_trained_files
from transformer_cli.commands.verify import verify_command
from transformer_cli.decoding.shortlist import shortlist_content
from transformer_cli.extensions.exchange.own_folder import RECORD
from transformer_cli.process.errors import DataError, MissingInputError, UsageError
from transformer_cli.storage import MANIFEST_NAME, SIGNATURE_NAME, open_sealed

DOCS_RUN = Path(__file__).parents[2] / "docs" / "run"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "en-it"
    shutil.copytree(DOCS_RUN, folder, ignore=shutil.ignore_patterns("converted-*"))
    return folder


@pytest.fixture
def checkpoint(run: Path) -> Path:
    [folder] = (run / "checkpoints").iterdir()
    return folder


def verified(capsys: pytest.CaptureFixture[str], run: Path, *, public_key: Path | None = None) -> dict[str, Any]:
    """The facts of `--json`, which are printed also where something is wrong."""
    code = 0
    try:
        verify_command(str(run), public_key=public_key, as_json=True)
    except DataError as error:
        code = error.exit_code
    facts = json.loads(capsys.readouterr().out)
    assert isinstance(facts, dict)
    assert code == (0 if facts["is_sound"] else 65)
    return facts


def test_a_sound_run_is_told_with_the_number_and_size_of_its_files(
    run: Path, checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = verified(capsys, run)
    files = [path for path in checkpoint.iterdir() if path.name != MANIFEST_NAME]
    [found] = facts["checked"]
    assert (found["files"], found["bytes"]) == (4, sum(path.stat().st_size for path in files))
    assert facts["unknown"] == []
    assert "config.yaml" in facts["without_checksums"]
    verify_command(str(checkpoint))
    assert f"{checkpoint}: 1 checkpoint" in capsys.readouterr().out


def flip_a_bit(folder: Path) -> str:
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    return "model.safetensors: its content has changed"


def cut(folder: Path) -> str:
    path = folder / "tokenizer.json"
    path.write_bytes(path.read_bytes()[:-1])
    return "tokenizer.json: 93,395 bytes instead of 93,396"


def lose(folder: Path) -> str:
    (folder / "state.json").unlink()
    return "state.json: missing"


def add(folder: Path) -> str:
    (folder / "run.py").write_text("import os")
    return "holds 'run.py', which its manifest does not list"


def lose_the_manifest(folder: Path) -> str:
    (folder / MANIFEST_NAME).unlink()
    return "MANIFEST.json: missing"


def change_the_manifest(folder: Path) -> str:
    path = folder / MANIFEST_NAME
    path.write_text(path.read_text().replace('"step": 2800', '"step": 2801'))
    return "does not match its own checksum"


@pytest.mark.parametrize("harm", [flip_a_bit, cut, lose, add, lose_the_manifest, change_the_manifest])
def test_each_fault_of_a_checkpoint_is_named(
    harm: Callable[[Path], str], run: Path, checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = harm(checkpoint)
    [problem] = verified(capsys, run)["checked"][0]["problems"]
    assert expected in problem
    assert str(checkpoint) in problem


def test_all_faults_are_named_at_once(run: Path, checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = [harm(checkpoint) for harm in (lose, add, flip_a_bit, cut)]
    with pytest.raises(DataError, match="not as it was written: 4 problems"):
        verify_command(str(run))
    shown = capsys.readouterr().out
    assert all(one in shown for one in expected)


def test_a_checkpoint_whose_files_do_not_belong_together_is_found_under_true_checksums(
    run: Path, checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody may write a new manifest over a foreign config."""
    config = checkpoint / "config.yaml"
    config.write_text(config.read_text().replace("d_ff: ", "d_ff: 1"))
    seal_again(checkpoint)
    [problem] = verified(capsys, run)["checked"][0]["problems"]
    assert "model.safetensors" in problem


def test_files_of_a_run_without_checksums_must_be_readable_and_foreign_ones_are_named(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "notes.txt").write_text("mine")
    (run / "checkpoints" / "copy").mkdir()
    facts = verified(capsys, run)
    assert facts["unknown"] == ["checkpoints/copy", "notes.txt"]
    (run / "calibration.json").write_text("{")
    (run / "config.yaml").write_text("data: []")
    with (run / "metrics.jsonl").open("ab") as file:
        file.write(b'{"step": 1\n{"step":')
    facts = verified(capsys, run)
    first, second, *of_lines = facts["problems"]
    assert f"calibration.json: not a calibration, or damaged; make it again: tfm calibrate --run {run}" in first
    assert "config.yaml" in second
    number = len((run / "metrics.jsonl").read_bytes().splitlines())
    assert [
        f"metrics.jsonl: line {number - 1} is cut off" in of_lines[0],
        f"metrics.jsonl: line {number} is cut off" in of_lines[1],
    ] == [True, True]
    assert facts["without_checksums"] == ["learning.jsonl", "seen_words.json"], "what is broken is not readable, too"


@pytest.mark.long
def test_a_shortlist_is_checked_as_a_translation_does(
    run: Path, checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = read_trained_files(checkpoint)
    tokenizers = files.source_tokenizer, files.target_tokenizer
    starts = np.zeros(tokenizers[0].vocab_size + 1, np.int64)
    content = shortlist_content(starts, np.zeros(0, np.int64), np.arange(9), tokenizers)
    path = run / "shortlist.npz"
    path.write_bytes(content)
    facts = verified(capsys, run)
    assert (facts["is_sound"], facts["unknown"]) == (True, [])
    assert "shortlist.npz" in facts["without_checksums"]
    for damaged in (
        content[:-9],
        shortlist_content(starts[1:], starts[:0], starts[:9], tokenizers),
    ):
        path.write_bytes(damaged)
        facts = verified(capsys, run)
        [problem] = facts["problems"]
        assert problem.endswith("not a shortlist, or damaged; make it again: tfm shortlist")
        assert "shortlist.npz" not in facts["without_checksums"]
    flip_a_bit(checkpoint)
    assert "none is sound" in verified(capsys, run)["problems"][0]


def test_the_hint_fits_what_is_damaged(run: Path, checkpoint: Path, tmp_path: Path) -> None:
    export = tmp_path / "exported"
    export.mkdir()
    (export / "model.bin").write_bytes(b"x")
    record = {"files": {"model.bin": "0" * 64}}
    (export / RECORD).write_text(json.dumps(record))
    with pytest.raises(DataError) as of_export:
        verify_command(str(export))
    assert str(of_export.value.hint).endswith("or export the run again: tfm export")
    (run / "calibration.json").write_text("{")
    with pytest.raises(DataError) as of_file:
        verify_command(str(run))
    assert str(of_file.value.hint).endswith("the checkpoints are sound")
    cut(checkpoint)
    with pytest.raises(DataError) as of_checkpoint:
        verify_command(str(run))
    assert "use another checkpoint" in str(of_checkpoint.value.hint)


def test_a_converted_model_counts_too(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [checkpoint] = (run / "checkpoints").iterdir()
    shutil.copytree(checkpoint, run / "converted-ctranslate2")
    assert len(verified(capsys, run)["checked"]) == 2
    lose(run / "converted-ctranslate2")
    assert [bool(one["problems"]) for one in verified(capsys, run)["checked"]] == [False, True]


def test_a_run_without_a_checkpoint_and_a_name_twice_are_refused(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(MissingInputError, match="no checkpoint yet"):
        verify_command(str(tmp_path))
    with pytest.raises(UsageError, match="named twice"):
        verify_command("a", run="b")


# Signatures. With the package they are real ones; without it, the refusals are.


def test_a_signature_beside_the_files_is_no_surplus_file_and_says_nothing_without_a_key(
    run: Path, checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkpoint / SIGNATURE_NAME).write_text("{}")
    with open_sealed(checkpoint):
        pass
    assert verified(capsys, run)["checked"][0]["signature"] == "unchecked"
    verify_command(str(run))
    assert "--public-key FILE" in capsys.readouterr().out


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A private key, its public key, and the public key of somebody else."""
    pytest.importorskip("model_signing", reason="the extra sign")
    pytest.importorskip("OpenSSL", reason="the extra sign")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    paths = tmp_path / "key.pem", tmp_path / "public.pem", tmp_path / "other.pem"
    key, other = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    private = serialization.PrivateFormat.TraditionalOpenSSL
    paths[0].write_bytes(key.private_bytes(serialization.Encoding.PEM, private, serialization.NoEncryption()))
    for path, owner in zip(paths[1:], (key, other), strict=True):
        path.write_bytes(
            owner.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )
    return paths


def sign(folder: Path, key: Path) -> None:
    config = resolve_name("model_signing.signing:Config")().use_elliptic_key_signer(private_key=key)
    config.sign(folder, folder / SIGNATURE_NAME)


@pytest.mark.long
def test_a_signature_holds_for_its_key_and_for_the_files_that_were_signed(
    run: Path,
    checkpoint: Path,
    keys: tuple[Path, Path, Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    private, public, other = keys
    [problem] = verified(capsys, run, public_key=public)["checked"][0]["problems"]
    assert "is not signed" in problem
    sign(checkpoint, private)
    assert verified(capsys, run, public_key=public)["checked"][0]["signature"] == "valid"
    [problem] = verified(capsys, run, public_key=other)["checked"][0]["problems"]
    assert "made with another key" in problem
    # A list of checksums that somebody has written anew does not help.
    config = checkpoint / "config.yaml"
    config.write_text(config.read_text() + "# mine\n")
    seal_again(checkpoint)
    assert verified(capsys, run)["checked"][0]["signature"] == "unchecked"
    [problem] = verified(capsys, run, public_key=public)["checked"][0]["problems"]
    assert "the files are not those that were signed" in problem
    (checkpoint / SIGNATURE_NAME).write_text("nothing")
    [problem] = verified(capsys, run, public_key=public)["checked"][0]["problems"]
    assert "the file is damaged" in problem
    with pytest.raises(DataError, match="not a public key in PEM format"):
        verify_command(str(run), public_key=config)
    with pytest.raises(MissingInputError, match=r"nowhere\.pem"):
        verify_command(str(run), public_key=Path("nowhere.pem"))


def test_a_key_without_the_extra_is_refused_with_the_command_that_installs_it(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"needs model_signing.*\n.*\[sign\]"):
        verify_command(str(run), public_key=Path("k.pem"))


def seal_again(folder: Path) -> None:
    """Write the manifest that fits the files as they are now."""
    import hashlib

    from transformer_cli.storage.filesystem import ListedFile, parse_manifest

    path = folder / MANIFEST_NAME
    manifest = parse_manifest(path.read_bytes(), "here")
    listed = tuple(
        ListedFile(
            name=file.name,
            size=(folder / file.name).stat().st_size,
            sha256=hashlib.sha256((folder / file.name).read_bytes()).hexdigest(),
        )
        for file in manifest.files
    )
    path.write_bytes(manifest.model_copy(update={"files": listed}).encode())
