"""On what a translation that is continued depends."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.commands.translate_lines import TranslateOptions
from transformer_cli.commands.unfinished_output import opened_unfinished, translation_conditions
from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.loading import LoadedRun
from transformer_cli.process import signals
from transformer_cli.process.errors import ConfigError
from transformer_cli.storage import MANIFEST_NAME


def conditions(options: TranslateOptions) -> dict[str, Any]:
    loaded = cast("LoadedRun", SimpleNamespace(members=()))
    return translation_conditions(loaded, DecodingConfig(), options)


def test_other_terms_are_other_conditions_and_the_name_of_their_file_is_none(
    tmp_path: Path,
) -> None:
    contents = {"one": "dog\tHund\n", "same": "dog\tHund\n", "other": "dog\tKatze\n"}
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    one, same, other = (conditions(TranslateOptions(glossary=tmp_path / name)) for name in contents)
    assert one == same
    assert one != other
    assert one != conditions(TranslateOptions())


def test_a_new_calibration_or_shortlist_is_another_condition(tmp_path: Path) -> None:
    run = tmp_path / "run"
    folder = run / "checkpoints" / "step-1"
    folder.mkdir(parents=True)
    (folder / MANIFEST_NAME).write_text("{}")
    member = SimpleNamespace(folder=folder, run=RunFolder(run))
    loaded = cast("LoadedRun", SimpleNamespace(members=(member,)))

    def now(**decoding: Any) -> dict[str, Any]:
        settings = DecodingConfig.model_validate(decoding)
        return translation_conditions(loaded, settings, TranslateOptions())

    without = now()
    (run / "calibration.json").write_text("one")
    one = now()
    (run / "calibration.json").write_text("other")
    assert without != one != now()
    before = now(), now(shortlist={})
    (run / "shortlist.npz").write_text("one")
    assert (before[0] == now(), before[1] == now(shortlist={})) == (True, False)


def test_a_file_that_was_not_there_before_is_told_without_its_digest(tmp_path: Path) -> None:
    """An earlier version of tfm did not note the calibration."""
    glossary = tmp_path / "terms.tsv"
    glossary.write_text("dog\tHund\n")
    given = TranslateOptions(glossary=glossary), TranslateOptions()
    for before, now, told in (
        (*given[::-1], "not noted before, and one is there now"),
        (*given, "noted before, and none now"),
    ):
        output = tmp_path / told
        with pytest.raises(KeyError), opened_unfinished(output, conditions(before)):
            raise KeyError  # interrupted
        with (
            pytest.raises(ConfigError, match=f"glossary: {told}\n") as refused,
            opened_unfinished(output, conditions(now)),
        ):
            pass
        assert f"to begin again from the first line, delete {output}" in str(refused.value.hint)


def test_an_interruption_says_that_the_same_command_continues(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with opened_unfinished(tmp_path / "out", {}) as unfinished:
        [_] = unfinished.remaining(iter([[("one",), ("two",)]]))
        unfinished.write(b"uno\ndue\n")
        for work in signals._ending.cleanups.values():  # what a signal calls before it ends the process
            work()
        assert capfd.readouterr().err == "tfm: the same command continues after line 2\n"
    assert (tmp_path / "out").read_bytes() == b"uno\ndue\n"
    assert not signals._ending.cleanups
