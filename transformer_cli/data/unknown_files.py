"""Finds out how to read unknown files: the data section of a config that reads them, and their encoding."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import ValidationError

from transformer_cli.config import FileCorpus, FilesData, SplitName
from transformer_cli.config.data import known_encoding
from transformer_cli.config.loading import shipped_configs
from transformer_cli.config.refusal import plain_reason
from transformer_cli.data.columns import (
    NUM_SAMPLED_ROWS,
    Column,
    choose_columns,
    columns_of,
    looks_like_names,
    names_by_length_alone,
    require_line_feeds,
    spoken_language,
)
from transformer_cli.data.sources.lines import UTF_16_MARKS, read_chunks, read_lines, refuse_binary, refuse_utf_16
from transformer_cli.data.sources.local_files import (
    corpus_format,
    find_files,
    hint_for_unknown_format,
    without_compression,
    without_records,
)
from transformer_cli.data.sources.tables import first_rows
from transformer_cli.process.errors import DataError, MissingInputError, TfmError, UsageError
from transformer_cli.process.messages import counted, for_shell, on_one_line
from transformer_cli.storage import require_name_in_utf8
from transformer_cli.text.languages import (
    LANGUAGE_OF_NAME,
    best_match,
    code_of_language,
    has_name,
    language_code,
    language_in,
    shortest_code,
)
from transformer_cli.text.legacy_encodings import (
    Reading,
    hint_for,
    is_mixed,
    is_not_utf_8,
    likely_readings,
    lines_not_utf_8,
)

_NUM_GUESSED_LINES = 300
_SPLIT_OF_NAME: dict[str, SplitName] = {
    "train": "train",
    "training": "train",
    "dev": "validation",
    "devel": "validation",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "test": "test",
    "tst": "test",
}


class GivenFacts(NamedTuple):
    """Facts that the user gives; the survey finds the ones that are None."""

    source_field: str | None = None
    target_field: str | None = None
    source_language: str | None = None
    target_language: str | None = None
    encoding: str | None = None

    def with_codes(self) -> Self:
        """The facts with the code of each language, which may be given by its name.

        Raises:
            UsageError: a language is neither a code nor a name that is known.
        """
        return self._replace(
            source_language=_code_of(self.source_language, "source_language"),
            target_language=_code_of(self.target_language, "target_language"),
        )


@dataclass(frozen=True, slots=True)
class FoundCorpus:
    """How to read a corpus."""

    data: FilesData
    columns: list[Column] = field(default_factory=list)
    """The columns of the first table; empty for plain text."""
    doubts: list[str] = field(default_factory=list)
    """What is odd about the corpus, such as a column whose name says another language than its text."""
    left_out: list[str] = field(default_factory=list)
    """The names of the files of a folder that are not read."""


def find_corpus(paths: Sequence[str], facts: GivenFacts) -> FoundCorpus:
    """The data section that reads a corpus, found from its names and its first rows.

    Args:
        paths: one table or folder, or the two sides of plain text.

    Raises:
        MissingInputError: a path does not exist.
        UsageError: a path is a config.
        DataError: the files are no corpus, or cannot be read.
    """
    require_no_config(paths)
    facts = facts.with_codes()
    wanted = facts.source_language, facts.target_language
    here, there = (None if code is None else shortest_code(code) for code in wanted)
    found = _found_corpus(paths, facts._replace(source_language=here, target_language=there))
    unknown = [code for code in (here, there) if code is not None and not has_name(code)]
    doubts = [
        f"{code}: no language that is known here has this code, so its rules for sentences, numbers and the like are not known; it is used as given"
        for code in dict.fromkeys(unknown)
    ]
    return replace(found, doubts=[*found.doubts, *doubts]) if doubts else found


def _found_corpus(paths: Sequence[str], facts: GivenFacts) -> FoundCorpus:
    for path in paths:
        require_name_in_utf8(path)
        if not Path(path).exists():
            raise MissingInputError(f"{Path(path).absolute()}: no such file or folder")
    if len(paths) == 2:
        return _two_texts(paths[0], paths[1], facts)
    if Path(paths[0]).is_dir():
        return _folder(Path(paths[0]), facts)
    return _table(Path(paths[0]), paths[0], facts)


def require_no_config(paths: Iterable[str]) -> None:
    """Refuse a config, where the files of a corpus are meant.

    Raises:
        UsageError: a file has the name of one, or there is none and a config that comes with tfm is called so.
    """
    for path in paths:
        is_file = Path(path).suffix.lower() in (".yaml", ".yml") and Path(path).is_file()
        if is_file or (not Path(path).exists() and path in shipped_configs()):
            raise UsageError(
                f"{path}: a config, where the files of a corpus are expected",
                hint=f"name the corpus; commands that read it from a config take --config {for_shell(path)}",
            )


def _code_of(given: str | None, setting: str) -> str | None:
    code = None if given is None else language_code(given)
    if given is not None and code is None:
        raise UsageError(
            f"{setting}: {given!r} cannot be used: it is no code of a language, and no name that tfm knows",
            hint="a language is a code such as en, it or zh-CN, or a name such as English",
        )
    return code


def _two_texts(source: str, target: str, facts: GivenFacts) -> FoundCorpus:
    _require_no_fields(facts)
    for path in (source, target):
        if (kind := corpus_format(Path(path))) is not None:
            raise DataError(
                f"{path}: a {kind.upper()} file has both sides, so give this file alone",
                hint=f"tfm init {for_shell(path)}",
            )
    if Path(source).samefile(target):
        raise DataError(
            f"{source} and {target} are the same file, where the source and the target are needed",
            hint="give two files: line N of the second translates line N of the first",
        )
    encoding, how = encoding_of([Path(source), Path(target)], facts.encoding)
    spoken = [_spoken_in(Path(path), encoding) for path in (source, target)]
    wanted = (facts.source_language, facts.target_language)
    languages = wanted[0] or spoken[0][0], wanted[1] or spoken[1][0]
    doubts = [doubt for doubt in (how, *(doubt for _, doubt in spoken)) if doubt]
    corpus = {"source_path": source, "target_path": target} | _named(encoding)
    return FoundCorpus(_data([corpus], languages), doubts=doubts)


def _require_no_fields(facts: GivenFacts) -> None:
    if (facts.source_field, facts.target_field) != (None, None):
        raise UsageError("--source-field and --target-field are for tables, and plain text is given")


def _named(encoding: str | None) -> dict[str, str]:
    return {} if encoding is None else {"encoding": encoding}


def _spoken_in(path: Path, encoding: str | None) -> tuple[str, str | None]:
    """The language of a text file, and a warning if its name says another one."""
    require_line_feeds(path, encoding)
    lines = _first_lines(path, encoding)
    return spoken_language(f"file {path.name}", _language_of_file(path), lines)


def _folder(folder: Path, facts: GivenFacts) -> FoundCorpus:
    files = without_records([path for path in sorted(folder.iterdir()) if path.is_file() and path.name[0] != "."])
    sides: dict[str, dict[str, Path]] = {}
    for path in files:
        language = _language_of_file(path)
        if language and corpus_format(path) is None:
            sides.setdefault(without_compression(path).stem, {})[language] = path
    tables = [path for path in files if corpus_format(path) is not None]
    has_pair = any(len(both) == 2 for both in sides.values())
    if has_pair and len({language for both in sides.values() for language in both}) == 2:
        found = _split_texts(sides, facts)
    elif tables:
        found = _table(tables[0], str(folder), facts, others=tables[1:])
        splits = _splits_by_name(path.name for path in tables)
        if any(splits.values()):
            [template] = found.data.corpora
            corpora = [template.model_copy(update={"path": str(path), "split": splits[path.name]}) for path in tables]
            found = replace(found, data=found.data.model_copy(update={"corpora": corpora}))
    else:
        found_files = ", ".join(map(_name_and_length, files[:8])) or "nothing"
        two = f": tfm init {' '.join(map(for_shell, files))}" if len(files) == 2 else ", as in tfm init FILE FILE"
        raise DataError(
            f"{folder}: no corpus in this folder, found {found_files}",
            hint="a folder holds tables (.csv, .tsv, .jsonl, .parquet), or text in pairs of files of one name and two "
            f"languages, such as train.en and train.it; two other files can be given by name{two}",
        )
    read = {
        path.resolve()
        for index in range(len(found.data.corpora))
        for corpus_files in find_files(found.data, index)
        for path in (corpus_files.source, corpus_files.target)
    }
    return replace(found, left_out=[one.name for one in files if one.resolve() not in read])


def files_of_splits_beside(source: str, target: str, found: FilesData) -> list[str]:
    """The names of the files for validation and test beside two text files, if their folder as a corpus would take them as such.

    Args:
        source: the path of a text file.
        target: the path of its translation.
        found: the section that reads both files.
    """
    folder = Path(source).parent
    try:
        if not folder.samefile(Path(target).parent) or not any(
            _split_named(path.name) in ("validation", "test") for path in folder.iterdir()
        ):
            return []
        corpora = _folder(folder, GivenFacts(None, None, found.source_language, found.target_language)).data.corpora
    except (TfmError, OSError):
        return []
    by_split = {path: one.split for one in corpora for path in (one.source_path, one.target_path) if path}
    held_out = [Path(path).name for path, split in by_split.items() if split in ("validation", "test")]
    trained = {Path(path).name for path in by_split} - {*held_out}
    return held_out if {Path(one).name for one in (source, target)} == trained else []


def _split_named(name: str) -> SplitName | None:
    """The split that the first word of a file's name says."""
    return _SPLIT_OF_NAME.get(re.split(r"[\W_]+", name.casefold())[0])


def _name_and_length(file: Path) -> str:
    try:
        return f"{file.name} ({counted(sum(1 for _ in read_lines(file)), 'line')})"
    except DataError:  # in another encoding, or damaged
        return file.name


def _split_texts(sides: dict[str, dict[str, Path]], facts: GivenFacts) -> FoundCorpus:
    _require_no_fields(facts)
    whole = {name: both for name, both in sides.items() if len(both) == 2}
    first = next(iter(whole.values()))
    text_files = [path for both in whole.values() for path in both.values()]
    encoding, how = encoding_of(text_files, facts.encoding)
    spoken = {name: _spoken_in(path, encoding) for name, path in first.items()}
    source, target = _sides(spoken, facts)
    splits = _splits_by_name(whole)
    corpora = [
        {"source_path": str(both[source]), "target_path": str(both[target])}
        | _named(encoding)
        | ({"split": split} if (split := splits[name]) is not None else {})
        for name, both in whole.items()
    ]
    doubts = [doubt for doubt in (how, *(doubt for _, doubt in spoken.values())) if doubt]
    languages = (facts.source_language or spoken[source][0], facts.target_language or spoken[target][0])
    return FoundCorpus(_data(corpora, languages), doubts=doubts)


def _splits_by_name(names: Iterable[str]) -> dict[str, SplitName | None]:
    """The split of each file of a folder, by the first word of its name; None: its pairs are divided among the splits.

    Where files for validation or test stand beside others, they keep their pairs: a model is not trained with its test.
    """
    named = {name: _split_named(name) for name in names}
    held_out = {split for split in named.values() if split in ("validation", "test")}
    if not held_out or held_out.issuperset(named.values()):
        return dict.fromkeys(named)
    other_split: SplitName | None = "train" if "validation" in held_out else None
    return {name: split if split in held_out else other_split for name, split in named.items()}


def _sides(spoken: dict[str, tuple[str, str | None]], facts: GivenFacts) -> list[str]:
    """The keys of the source and the target.

    Args:
        spoken: the language of each of the two sides of a folder, by the name in its files.

    Raises:
        UsageError: the sides are not in the languages that the user gives.
    """
    wanted, names = (facts.source_language, facts.target_language), list(spoken)
    for order in (names, names[::-1]):
        languages = [spoken[name][0] for name in order]
        if all(given is None or best_match(given, languages) == index for index, given in enumerate(wanted)):
            return order
    raise UsageError(
        f"the files of this folder are in {' and '.join(spoken[name][0] for name in names)}, where "
        f"{' and '.join(filter(None, wanted))} is given",
        hint="if the names of the files deceive, give the two files themselves, the source first",
    )


def _table(path: Path, given: str, facts: GivenFacts, others: Sequence[Path] = ()) -> FoundCorpus:
    """The corpus of a table, or of a folder of them, of which the first tells how to read all."""
    kind = corpus_format(path)
    corpus: dict[str, Any] = {"path": given}
    encoding, how = None, None
    if kind == "parquet" and facts.encoding is not None:
        raise UsageError(f"--encoding is for text, and {path}, a Parquet file, is always UTF-8")
    if kind != "parquet":
        texts = [path, *(other for other in others if corpus_format(other) == kind)]
        encoding, how = encoding_of(texts, facts.encoding)
        corpus |= _named(encoding)
    if kind is None:
        require_line_feeds(path, encoding)
        first = next(read_lines(path, encoding), b"") or b""
        if b"\t" not in first:
            raise DataError(
                f"{path}: its name does not tell its format, and its first line has no tab",
                hint=hint_for_unknown_format(
                    path,
                    "put a tab between the two sentences of a line, or give two files: tfm init train.en train.it; a spreadsheet is an "
                    ".xlsx file or saved as CSV",
                ),
            )
        kind = corpus["format"] = "tsv"
    fields = (facts.source_field, facts.target_field)
    columns, has_header = columns_of(path, kind, names=fields, encoding=encoding)
    wanted = (facts.source_language, facts.target_language)
    source, target = choose_columns(columns, fields, wanted, str(path))
    corpus |= {"source_field": source.field, "target_field": target.field}
    if kind in ("tsv", "csv"):
        corpus["has_header"] = has_header
    languages = wanted[0] or source.language, wanted[1] or target.language
    doubts = [doubt for doubt in (how, source.doubt, target.doubt) if doubt]
    if kind in ("tsv", "csv"):
        chosen = [columns.index(one) for one in (source, target)]
        is_given = any(field is not None for field in fields)
        doubts += _doubt_of_first_row(path, kind, chosen, encoding, has_header, is_given=is_given)
    return FoundCorpus(_data([corpus], languages), columns, doubts)


def _doubt_of_first_row(
    path: Path, kind: str, chosen: Sequence[int], encoding: str | None, has_header: bool, *, is_given: bool
) -> list[str]:
    """A warning if the first row is read as a pair, and may hold the names of the columns; or the other way round."""
    rows = [
        [row[number] if number < len(row) else "" for number in chosen]
        for row in first_rows(path, kind, NUM_SAMPLED_ROWS, encoding)
    ]
    shown = " and ".join(on_one_line(cell, 50) for cell in rows[0])
    if has_header:
        if is_given or not names_by_length_alone(rows[0], rows[1:]):
            return []
        return [
            f"the first row, {shown}, is taken for the names of the columns, because it is shorter than all other rows; "
            f"if it is a pair, set under data.corpora: source_field: {chosen[0]}, target_field: {chosen[1]}, has_header: false"
        ]
    if not looks_like_names(rows[0], rows[1:]):
        return []
    return [
        f"the first row, {shown}, is read as a pair; if it holds the names of the columns, "
        f"give --source-field {for_shell(rows[0][0])} --target-field {for_shell(rows[0][1])}, "
        "or set has_header: true under data.corpora"
    ]


def _data(corpora: Sequence[dict[str, Any]], languages: tuple[str, str]) -> FilesData:
    try:
        return FilesData(
            source="files",
            source_language=languages[0],
            target_language=languages[1],
            corpora=tuple(FileCorpus(**corpus) for corpus in corpora),
        )
    except ValidationError as error:
        what = error.errors()[0]
        place = ".".join(map(str, what["loc"]))
        raise UsageError(
            f"{place}: {what['input']!r} cannot be used: {plain_reason(what)}",
            hint="a language is a code such as en, it or zh-CN",
        ) from error


def _language_of_file(path: Path) -> str | None:
    """The language in a file name: at its end, as in train.en.gz, or before it, as in english.txt."""
    bare = without_compression(path)
    given = bare.suffix.removeprefix(".")
    suffix = given.casefold()
    if suffix in LANGUAGE_OF_NAME:
        return suffix if len(suffix) == 2 else LANGUAGE_OF_NAME[suffix]
    return code_of_language(given) or code_of_language(suffix) or language_in(bare.stem)


def _first_lines(path: Path, encoding: str | None) -> list[str]:
    lines = islice(read_lines(path, encoding), _NUM_GUESSED_LINES)
    return [line.decode(errors="replace") for line in lines if line]


# In which encoding unknown files are written: UTF-8 if they can be read so, else the reading that looks most like a language.


_MAX_BYTES = 1 << 26
"""Of a larger file, this much is looked at."""


class FoundEncoding(NamedTuple):
    """The encoding of files."""

    name: str | None
    """As a config has it; None: UTF-8."""
    doubt: str | None = None
    """How it was found out, in words, for a person to check."""


def encoding_of(paths: Sequence[Path], given: str | None) -> FoundEncoding:
    """The one encoding of all these files of text.

    Args:
        given: the encoding that the user names; None: it is found out.

    Raises:
        UsageError: there is no encoding of the given name.
        DataError: two readings are nearly as likely, or the files are in different encodings.
    """
    texts = {path: _beginning(path) for path in dict.fromkeys(paths)}
    if given is not None:
        name = known_encoding(given)
        if name is None:
            raise UsageError(
                f"--encoding {given}: no such encoding is known",
                hint="such as windows-1252, iso-8859-2, shift_jis or utf-16",
            )
        doubt = None if name.startswith("utf") else _doubt_of_utf_8(texts, given)
        return FoundEncoding(None if name == "utf-8" else given, doubt)
    marked = [path for path, text in texts.items() if text.startswith(UTF_16_MARKS)]
    if marked and len(marked) == len(texts):
        return FoundEncoding("utf-16")
    for path, text in texts.items():
        if path not in marked:
            refuse_utf_16(text, path)
            refuse_binary(text, path)
    legacy = {path: text for path, text in texts.items() if is_not_utf_8(text)}
    if marked or not legacy:  # UTF-16 beside another encoding is refused where the lines are read
        return FoundEncoding(None)
    _refuse_mixture(texts, legacy)
    readings = likely_readings(b"\n".join(legacy.values()))
    if len(readings) != 1:
        raise not_certain(", ".join(map(str, legacy)), readings)
    [reading] = readings
    _require_one_encoding(legacy, reading)
    return FoundEncoding(
        reading.encoding,
        f"{', '.join(on_one_line(path.name, 50) for path in legacy)}: not UTF-8, and read as {reading}; "
        "if these words are wrong, name the right encoding with --encoding",
    )


def encoding_of_table(path: Path, given: str | None) -> FoundEncoding:
    """As `encoding_of`, where the given encoding may be that of another file: a table that shows its own keeps it."""
    found = encoding_of([path], given)
    if given is not None:
        text = _beginning(path)
        if text.startswith(UTF_16_MARKS) or not is_not_utf_8(text):
            return encoding_of([path], None)
    return found


def _doubt_of_utf_8(texts: dict[Path, bytes], given: str) -> str | None:
    """A warning if texts can be read as UTF-8, letters beyond ASCII included: hardly any other text can."""
    are_utf_8 = [path.name for path, text in texts.items() if not (text.isascii() or is_not_utf_8(text))]
    if not are_utf_8:
        return None
    shown = ", ".join(on_one_line(name, 50) for name in are_utf_8)
    return f"{shown}: looks like UTF-8, and is read as {given}, as --encoding says: leave out --encoding, unless its words are right so"


def not_certain(where: str, readings: Sequence[Reading]) -> DataError:
    """The error for a text that is not UTF-8, and of which no reading is clearly the best."""
    if not readings:
        return DataError(f"{where}: not UTF-8, and no encoding is known that makes words of it")
    shown = "".join(f"\n    {reading}" for reading in readings)
    return DataError(f"{where}: not UTF-8, and it can be read in {len(readings)} ways:{shown}", hint=hint_for(readings))


def _beginning(path: Path) -> bytes:
    text = bytearray()
    for chunk in read_chunks(path):
        text += chunk
        if len(text) > _MAX_BYTES:
            # The last line may be cut in the middle of a character.
            return bytes(text[: text.rfind(b"\n") + 1] or text)
    return bytes(text)


def _refuse_mixture(texts: dict[Path, bytes], legacy: dict[Path, bytes]) -> None:
    for path, text in texts.items():
        is_utf_8 = path not in legacy and not text.isascii()
        if (legacy.get(path) and is_mixed(text)) or is_utf_8:
            first = likely_readings(lines_not_utf_8(next(iter(legacy.values()))))
            likely = first[0].encoding if first else "windows-1252"
            what = (
                f"{path} is UTF-8, and {next(iter(legacy))} is not"
                if is_utf_8
                else f"{path}: some of its lines are UTF-8, and others are not"
            )
            raise DataError(
                what,
                hint=f"convert what is not UTF-8: iconv -f {likely} -t UTF-8 OLD > NEW; "
                "or name one encoding for all of it with --encoding, and what is no text in it counts as damaged",
            )


def _require_one_encoding(legacy: dict[Path, bytes], reading: Reading) -> None:
    alone = {path: likely_readings(text)[:1] for path, text in legacy.items()}
    if len(legacy) > 1 and any(
        not found
        or legacy[path].decode(found[0].encoding, "replace") != legacy[path].decode(reading.encoding, "replace")
        for path, found in alone.items()
    ):
        shown = "".join(f"\n    {path}: {found[0] if found else 'not known'}" for path, found in alone.items())
        raise DataError(
            f"the files are in different encodings:{shown}",
            hint="convert them to UTF-8: iconv -f ENCODING -t UTF-8 OLD > NEW",
        )
