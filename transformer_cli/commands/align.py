"""`tfm align`: word alignment of given pairs, that is, which words of source and target belong together."""

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path

from transformer_cli.commands.streams.input_lines import check_input, opened_lines
from transformer_cli.commands.streams.open_descriptors import STANDARD
from transformer_cli.decoding.details import pharaoh
from transformer_cli.decoding.engine import ExplainingEngine
from transformer_cli.decoding.given_pairs import AlignedPair, PairAligner
from transformer_cli.decoding.loading import load_run
from transformer_cli.process.errors import DataError, UsageError
from transformer_cli.process.escaping import escaped_in_json
from transformer_cli.process.signals import ended_after


def run_alignment(
    source: Path,
    target: Path,
    *,
    run: str | None,
    overrides: Sequence[str],
    languages: tuple[str | None, str | None] = (None, None),
    as_json: bool,
) -> None:
    """Write the word alignment of each pair of lines to standard output.

    Args:
        source, target: text files of which line N belongs to line N; one of them may be - for standard input.
        run: as of `load_run`.
        overrides: settings as in `--set`.
        languages: the target and the source language; None: the only possible one.

    Raises:
        DataError: the files have different numbers of lines, or hold no text.
        UsageError: both name standard input.
    """
    if source == target == STANDARD:
        raise UsageError("--source and --target name the same input", hint="name two files")
    for path, option in ((source, "--source"), (target, "--target")):
        if path != STANDARD:
            check_input(path, option)
    translator = load_run(run, overrides, command="align").translator.towards(*languages)
    engine = translator.engine
    if not isinstance(engine, ExplainingEngine):
        raise UsageError(
            "this engine gives no attention weights", hint="use the engine that runs on PyTorch"
        )
    aligner = PairAligner(translator.pipeline, engine, translator.decoding.batch_tokens)
    for aligned in aligner.align(_pairs(source, target)):
        line = _as_json(aligned) if as_json else pharaoh(aligned.links)
        with ended_after():
            sys.stdout.write(f"{line}\n")
    with ended_after():
        sys.stdout.flush()


def _pairs(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    with (
        opened_lines(None if source == STANDARD else source) as source_windows,
        opened_lines(None if target == STANDARD else target) as target_windows,
    ):
        sides = chain.from_iterable(source_windows), chain.from_iterable(target_windows)
        for number, (one, other) in enumerate(zip_longest(*sides), start=1):
            if one is None or other is None:
                shorter, longer = (source, target) if one is None else (target, source)
                raise DataError(
                    f"{shorter} has {number - 1} lines, {longer} has more",
                    hint="line N of one must translate line N of the other; empty lines count",
                )
            yield one, other


def _as_json(aligned: AlignedPair) -> str:
    facts = {
        "source": aligned.source,
        "target": aligned.target,
        "alignment": pharaoh(aligned.links),
        "log_probability": aligned.log_probability,
    }
    return escaped_in_json(json.dumps(facts, ensure_ascii=False))
