"""`tfm init`: inspects a corpus, and writes a config that fits it."""

from __future__ import annotations

import filecmp
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated

import typer

from transformer_cli.checkpoint.run_folder import CONFIG_FILE
from transformer_cli.checkpoint.trained_files import find_run
from transformer_cli.commands import completion
from transformer_cli.commands.command_line import (
    EncodingOption,
    SourceFieldOption,
    TargetFieldOption,
    require_run_name,
)
from transformer_cli.commands.output import show
from transformer_cli.config import Config, FilesData
from transformer_cli.config.loading import check_settings, load_stored_config, parse_yaml
from transformer_cli.config.recipe import CorpusSize, InitialRun, held_out_for_test, held_out_share, recipe, words_of
from transformer_cli.data.columns import facts_of
from transformer_cli.data.sources.local_files import without_compression
from transformer_cli.data.survey import Side, Survey, has_unknown_language, num_pairs_by_split, survey
from transformer_cli.data.unknown_files import GivenFacts, files_of_splits_beside, require_no_config
from transformer_cli.process.errors import CannotCreateError, UsageError
from transformer_cli.process.imports import require_extra
from transformer_cli.process.messages import for_shell, on_one_line
from transformer_cli.storage import replace_file, staged_file
from transformer_cli.text.languages import has_spaces, primary_language
from transformer_cli.text.normalization import is_letter

SHEET_AS_TSV = "transformer_cli.extensions.corpora.spreadsheets:sheet_as_tsv"
# A model learns little from fewer pairs.
_FEW_PAIRS = 1000
# With fewer pairs from English into French, the small model that comes along gives a better beginning than random weights.
_PAIRS_FOR_OWN_MODEL = 10_000
# Both languages share a vocabulary if at least this share of the smaller alphabet occurs in both.
_COMMON_LETTERS = 0.5
# A larger corpus is not read again to count the pairs of each split.
_MAX_COUNTED_PAIRS = 100_000
# At most this many files, and columns, are shown by name.
_NUM_NAMED, _NUM_SHOWN_COLUMNS = 5, 20


def init_command(
    corpus: Annotated[
        list[str],
        typer.Argument(
            help="A CSV, TSV, JSON Lines, Parquet or XLSX file; or a folder; or two text files, source and target."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The config to write. Default: NAME.yaml."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a config that exists already.")] = False,
    name: Annotated[
        str | None,
        typer.Option("--name", help="Name of the run. Default: from the name of the config, or of the corpus."),
    ] = None,
    source_language: Annotated[
        str | None,
        typer.Option("--source-language", help="Translate from this language, such as en."),
    ] = None,
    target_language: Annotated[
        str | None,
        typer.Option("--target-language", help="Translate into this language, such as it."),
    ] = None,
    source_field: SourceFieldOption = None,
    target_field: TargetFieldOption = None,
    encoding: EncodingOption = None,
    init_from: Annotated[
        str | None,
        typer.Option(
            "--init-from",
            metavar="RUN",
            help="Begin with the weights of this run, which translates between the same languages: better than random ones for few pairs.",
            autocompletion=completion.runs,
        ),
    ] = None,
) -> None:
    """Write a config for a corpus of your own. It has comments, and settings that fit the corpus."""
    if len(corpus) > 2:
        raise UsageError("give one file or folder, or two text files")
    if output == Path("-"):
        raise UsageError("--output -: tfm init writes a file", hint="--output mine.yaml")

    if name is not None:
        require_run_name(name)
    run = name or _name_of(corpus if output is None else [str(output)])
    file = output or Path(f"{run}.yaml")
    require_no_config(corpus)
    _require_no_corpus(file, corpus)
    if file.exists() and not force:
        raise CannotCreateError(
            f"{file}: exists already, such as from an earlier tfm init, and stays as it is",
            hint="--force replaces it; --output FURTHER.yaml writes another one, for the run FURTHER",
        )
    initial = None if init_from is None else _initial_run(init_from)
    table = _sheet_as_table(Path(corpus[0]), encoding, force=force) if len(corpus) == 1 else None
    facts = GivenFacts(source_field, target_field, source_language, target_language, encoding)
    found = survey(corpus if table is None else [str(table)], facts)
    if initial is not None:
        _require_direction(initial, found)
    size = _size(found)
    given = corpus if initial is None else [*corpus, "--init-from", initial.name]
    origin = " ".join(["tfm init", *map(for_shell, given)])
    origin = origin if origin.isprintable() else "tfm init"
    text = recipe(run, found.data, size, origin=origin, doubts=found.doubts, initial=initial)
    replace_file(file, text.encode())
    splits = _pairs_of_splits(found, check_settings(parse_yaml(text, run), run))
    written = []
    if table is not None:
        written.append(f"wrote {table}: the first sheet of {corpus[0]}; another one: tfm data import --sheet")
    show(
        {},
        [
            *written,
            *_lines(found, splits),
            "",
            *_beside(corpus, found),
            *_advice(found, size, splits, initial),
            *_next(file, splits),
        ],
        as_json=False,
    )


def _initial_run(name: str) -> InitialRun:
    return InitialRun(name, load_stored_config(find_run(name) / CONFIG_FILE))


def _require_direction(initial: InitialRun, found: Survey) -> None:
    """Refuse a corpus of other languages than those of the run that is trained further."""
    data = found.data
    wanted = tuple(map(primary_language, (data.source_language, data.target_language)))
    directions = [(one.source, one.target) for one in initial.config.data.directions]
    if [tuple(map(primary_language, one)) for one in directions] != [wanted]:
        known = ", ".join(f"{source} into {target}" for source, target in directions)
        raise UsageError(
            f"--init-from {for_shell(initial.name)}: that run translates {known}; this corpus is {data.source_language} into {data.target_language}",
            hint="the columns are chosen with --source-field and --target-field, their languages named with --source-language and --target-language",
        )


def _sheet_as_table(path: Path, encoding: str | None, *, force: bool) -> Path | None:
    """The first sheet of a spreadsheet as a TSV file beside it, which the config then reads; None for any other file.

    Raises:
        CannotCreateError: there is such a file, and `force` is not given.
        UsageError: an encoding is given, which a spreadsheet states itself.
    """
    if path.suffix.lower() not in (".xlsx", ".xlsm") or not path.is_file():
        return None
    if encoding is not None:
        raise UsageError(
            f"--encoding is for text, and {path} says itself how it is encoded", hint="leave out --encoding"
        )
    table = path.with_suffix(".tsv")
    require_extra("corpora", ("openpyxl",), purpose="a spreadsheet")
    if table.exists() and not force and not _holds_sheet(table, path):
        raise CannotCreateError(
            f"{table}: exists already, and the sheet of {path} would be written there",
            hint=f"tfm init {for_shell(table)} reads that file; --force replaces it; "
            "tfm data import writes under another name",
        )
    with staged_file(table) as unfinished:
        resolve_name(SHEET_AS_TSV)(path, unfinished, None)
    return table


def _holds_sheet(table: Path, path: Path) -> bool:
    """Whether a file is what an earlier tfm init has made of the same sheet."""
    with tempfile.TemporaryDirectory(prefix="tfm-init-") as folder:
        copy = Path(folder) / table.name
        resolve_name(SHEET_AS_TSV)(path, copy, None)
        return filecmp.cmp(copy, table, shallow=False)


def _require_no_corpus(file: Path, paths: Sequence[str]) -> None:
    """Refuse to replace a file of the corpus, under whatever name or link; a config in its folder may be replaced."""
    if not file.is_file():
        return
    for path in map(Path, paths):
        members = path.rglob("*") if path.is_dir() else [path]
        for member in members:
            is_config = member is not path and member.suffix in (".yaml", ".yml")
            if _is_same(member, file) and not is_config:
                raise CannotCreateError(
                    f"{file}: is a file of the corpus, which the config would replace",
                    hint="choose another name with --output, such as mine.yaml",
                )


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # no such file, or no permission to look at it
        return False


def _name_of(paths: Sequence[str]) -> str:
    """The name of the run, from the names of the files."""
    bare = [without_compression(Path(path).absolute()) for path in paths]
    first = bare[0].name if Path(paths[0]).is_dir() else bare[0].stem
    if len(bare) == 2:
        first += "".join(f"-{path.suffix.removeprefix('.') or path.name}" for path in bare)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", first).strip("._-")
    return name[:100] or "mine"


def _size(found: Survey) -> CorpusSize:
    languages = found.data.source_language, found.data.target_language
    words = [
        words_of(side.num_words, side.num_characters, is_spaced=has_spaces(language))
        for side, language in zip((found.source, found.target), languages, strict=True)
    ]
    letters = [_letters(side) for side in (found.source, found.target)]
    common = letters[0] & letters[1]
    return CorpusSize(
        num_pairs=found.num_pairs["train"],
        source_words=words[0],
        target_words=words[1],
        num_characters=(len(found.source.characters), len(found.target.characters)),
        num_different_words=(len(found.source.words), len(found.target.words)),
        share_a_script=len(common) >= _COMMON_LETTERS * min(map(len, letters)),
        has_splits=found.has_splits,
        num_validation=found.num_pairs.get("validation") if found.has_splits else None,
    )


def _letters(side: Side) -> set[str]:
    """The letters of which each makes up more than a thousandth of all characters."""
    least = side.characters.total() / 1000
    return {char.casefold() for char, count in side.characters.items() if is_letter(char) and count > least}


def _pairs_of_splits(found: Survey, config: Config) -> dict[str, str]:
    """How many pairs each split will have, in words; a large corpus is not read again, so its numbers are shares."""
    counts, about = found.num_pairs, ""
    total = counts["train"]
    if not found.has_splits and total <= _MAX_COUNTED_PAIRS:
        counts = num_pairs_by_split(config)
    elif not found.has_splits:
        held_out = round(held_out_share(total) * total), round(held_out_for_test(total) * total)
        about = "about "
        if (num_test := counts.get("test")) is not None:  # of files of its own
            held_out = held_out[0], 0
        counts = {"train": total - sum(held_out), "validation": held_out[0], "test": num_test or held_out[1]}
    return {split: f"{about}{count:,}" for split, count in counts.items()}


def _lines(found: Survey, splits: Mapping[str, str]) -> list[str]:
    data, lines = found.data, []
    if found.columns:
        lines.append("columns:")
        rows = [facts_of(column) for column in found.columns[:_NUM_SHOWN_COLUMNS]]
        widths = [max(len(row[key]) for row in rows) for key in ("name", "holds")]
        lines += [f"  {row['name']:{widths[0]}}  {row['holds']:{widths[1]}}  {row['example']}".rstrip() for row in rows]
        more = len(found.columns) - len(rows)
        lines += [f"  and {more:,} more"] if more else []
    for corpus in data.corpora:
        where = on_one_line(corpus.path or f"{corpus.source_path} and {corpus.target_path}", 200)
        how = ""
        if corpus.source_field is not None:
            how = f": {_column(corpus.source_field)} into {_column(corpus.target_field)}"
        if corpus.has_header is not None:
            how += ", the first row is a header" if corpus.has_header else ", no header"
        lines.append(f"{corpus.split or 'pairs'} from {where}{how}")
    if found.left_out:
        first = ", ".join(on_one_line(name, 50) for name in found.left_out[:_NUM_NAMED])
        more = len(found.left_out) - _NUM_NAMED
        left = f"{len(found.left_out):,} file{'s' * (len(found.left_out) > 1)}"
        lines.append(f"left out, {left} of the folder: {first}" + (f" and {more:,} more" * (more > 0)))
    lines.append(f"languages: {data.source_language} into {data.target_language}")
    usable = ", ".join(f"{split} {count}" for split, count in splits.items())
    lines.append(f"rows: {found.num_rows:,}; usable pairs: {usable}")
    lines += [f"  dropped, {why}: {count:,}" for why, count in found.dropped.items()]
    lines.append("the first pairs:")
    for pair in found.examples:
        lines += [
            f"  SOURCE  {on_one_line(pair.source, 100)}",
            f"  TARGET  {on_one_line(pair.target, 100)}",
        ]
    return lines


def _column(field: int | str | None) -> str:
    return f"column {field}" if isinstance(field, int) else on_one_line(str(field), 50)


def _advice(found: Survey, size: CorpusSize, splits: Mapping[str, str], initial: InitialRun | None) -> list[str]:
    data, lines = found.data, [f"warning: {doubt}" for doubt in found.doubts]
    if has_unknown_language(data):
        lines.append(
            "A language was not recognised and is written as und: give it with --source-language "
            "and --target-language, such as en and it."
        )
    elif data.source_language == data.target_language:
        lines.append(
            f"Both sides look like {data.source_language}: check the columns, or name them with "
            "--source-field and --target-field."
        )
    lines += [
        f"No {split} pair is left, so tfm train will refuse this config: add more pairs."
        for split in _empty_splits(splits)
    ]
    if size.num_pairs < _FEW_PAIRS:
        few = f"{size.num_pairs:,} {'pair is' if size.num_pairs == 1 else 'pairs are'} few"
        lines.append(f"{few}: {_way_with_few_pairs(data, initial)} (docs/own_corpus.md).")
    elif size.num_pairs < _PAIRS_FOR_OWN_MODEL and initial is None and _is_demonstrated(data):
        lines.append(
            f"With fewer than {_PAIRS_FOR_OWN_MODEL:,} pairs from English into French, begin with the small model that comes along: write this "
            "config again with --init-from demonstration --force (docs/own_corpus.md)."
        )
    return lines


def _beside(paths: Sequence[str], found: Survey) -> list[str]:
    """That files for validation and test lie beside two text files, and how they are taken, too."""
    if len(paths) < 2 or not (names := files_of_splits_beside(paths[0], paths[1], found.data)):
        return []
    languages = f"--source-language {found.data.source_language} --target-language {found.data.target_language}"
    shown = ", ".join(on_one_line(name, 50) for name in names[:_NUM_NAMED]) + ", ..." * (len(names) > _NUM_NAMED)
    return [
        f"{shown} lie beside: tfm init {for_shell(Path(paths[0]).parent)} {languages} takes each for its split; "
        "this config draws validation and test from these two files."
    ]


def _is_demonstrated(data: FilesData) -> bool:
    """Whether the small model that comes along translates so."""
    return (data.source_language, data.target_language) == ("en", "fr")


def _way_with_few_pairs(data: FilesData, initial: InitialRun | None) -> str:
    if initial is not None:
        return (
            "further training with so few makes sentences like them better, and others worse. "
            f"Compare it afterwards: tfm validate --against {for_shell(initial.name)}; or take {for_shell(initial.name)} as it is, and these pairs as its --memory"
        )
    run = "demonstration" if _is_demonstrated(data) else "RUN"
    return (
        "a model learns them by heart, and translates little else. Several thousand give first useful translations. "
        f"With fewer, take a model that exists, and these pairs as its --memory; or train it further: --init-from {run}"
    )


def _next(file: Path, splits: Mapping[str, str]) -> list[str]:
    name = for_shell(file)
    check = f"tfm data --config {name}"
    if _empty_splits(splits):
        return [f"wrote {file}", f"next: add pairs, then: {check}"]
    return [f"wrote {file}", f"next: {check}, then: tfm train --config {name}"]


def _empty_splits(splits: Mapping[str, str]) -> list[str]:
    """Of the splits that every training needs, those without a pair."""
    return [split for split in ("train", "validation") if splits.get(split, "0") == "0"]
