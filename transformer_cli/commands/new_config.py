"""The work of `tfm init`: inspect a corpus, and write a config that fits it."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from transformer_cli.commands.output import show
from transformer_cli.config.recipe import CorpusSize, recipe, words_of
from transformer_cli.data.columns import facts_of, on_one_line
from transformer_cli.data.sources.local_files import without_compression
from transformer_cli.data.survey import Side, Survey, Wishes, has_unknown_language, survey
from transformer_cli.errors import CannotCreateError
from transformer_cli.storage import replace_file
from transformer_cli.text.languages import has_spaces

# A model learns little from fewer pairs.
_FEW_PAIRS = 1000
# Both languages share a vocabulary if at least this share of the smaller alphabet occurs in both.
_COMMON_LETTERS = 0.5
_RULES = {
    "drop_empty": "a side is empty",
    "drop_equal": "both sides are equal",
    "drop_duplicates": "the pair occurs earlier, too",
    "min_words": "a side has too few words",
    "max_words": "a side has too many words",
    "max_characters": "a side has too many characters",
    "max_length_ratio": "one side is much longer than the other",
}


def write_config(
    paths: Sequence[str], wishes: Wishes, *, name: str | None, output: Path | None, force: bool
) -> None:
    """Print what the corpus contains, write the config, and print the next commands.

    Raises:
        CannotCreateError: the config exists already.
    """
    run = name or _name_of(paths)
    file = output or Path(f"{run}.yaml")
    if file.exists() and not force:
        raise CannotCreateError(
            f"{file}: exists already", hint="choose another name with --output, or add --force"
        )
    found = survey(paths, wishes)
    size = _size(found)
    origin = " ".join(["tfm init", *map(shlex.quote, paths)])
    text = recipe(run, found.data, size, origin=origin if origin.isprintable() else "tfm init")
    replace_file(file, text.encode())
    show({}, [*_lines(found), "", *_advice(found, size), *_next(file)], as_json=False)


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
    )


def _letters(side: Side) -> set[str]:
    """The letters of which each makes up more than a thousandth of all characters."""
    least = side.characters.total() / 1000
    return {
        char.casefold() for char, count in side.characters.items() if char.isalpha() and count > least
    }  # fmt: skip


def _lines(found: Survey) -> list[str]:
    data, lines = found.data, []
    if found.columns:
        lines.append("columns:")
        rows = [facts_of(column) for column in found.columns]
        widths = [max(len(row[key]) for row in rows) for key in ("name", "holds")]
        lines += [
            f"  {row['name']:{widths[0]}}  {row['holds']:{widths[1]}}  {row['example']}".rstrip()
            for row in rows
        ]
    for corpus in data.corpora:
        where = on_one_line(corpus.path or f"{corpus.source_path} and {corpus.target_path}", 200)
        how = ""
        if corpus.source_field is not None:
            how = f": {_column(corpus.source_field)} into {_column(corpus.target_field)}"
        if corpus.has_header is not None:
            how += ", the first row is a header" if corpus.has_header else ", no header"
        lines.append(f"{corpus.split or 'pairs'} from {where}{how}")
    lines.append(f"languages: {data.source_language} into {data.target_language}")
    lines.append(
        f"rows: {found.num_rows:,}; usable pairs: "
        + ", ".join(f"{split} {count:,}" for split, count in found.num_pairs.items())
    )
    lines += [f"  dropped, {_in_words(why)}: {count:,}" for why, count in found.dropped.items()]
    lines.append("the first pairs:")
    for pair in found.examples:
        lines += [
            f"  SOURCE  {on_one_line(pair.source, 100)}",
            f"  TARGET  {on_one_line(pair.target, 100)}",
        ]
    return lines


def _column(field: int | str | None) -> str:
    return f"column {field}" if isinstance(field, int) else on_one_line(str(field), 50)


def _advice(found: Survey, size: CorpusSize) -> list[str]:
    data, lines = found.data, []
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
    if size.num_pairs < _FEW_PAIRS:
        lines.append(
            f"{size.num_pairs:,} pairs are few: a model learns them by heart, and translates little else. "
            "Several thousand give first useful translations."
        )
    return lines


def _next(file: Path) -> list[str]:
    name = shlex.quote(str(file))
    return [f"wrote {file}", f"next: tfm data --config {name}, then: tfm train --config {name}"]


def _in_words(reason: str) -> str:
    """Why pairs were dropped: a rule of cleaning in words, with the name of its setting."""
    return f"{_RULES[reason]} (data.cleaning.{reason})" if reason in _RULES else reason
