"""On what a translation that is continued depends."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from transformer_cli.commands.translate_lines import TranslateOptions
from transformer_cli.commands.unfinished_output import translation_conditions
from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.loading import LoadedRun


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
