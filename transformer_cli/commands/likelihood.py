"""`tfm likelihood`: the log-probability of each given translation under a trained model, line by line."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import chain, islice, zip_longest
from pathlib import Path

from transformer_cli.commands.streams.input_lines import check_input, opened_lines
from transformer_cli.commands.streams.open_descriptors import STANDARD
from transformer_cli.commands.streams.output_file import opened_output
from transformer_cli.decoding.given_pairs import PairLikelihood, pair_likelihoods
from transformer_cli.decoding.loading import load_run
from transformer_cli.decoding.translator import WINDOW_LINES
from transformer_cli.process.errors import DataError, UsageError
from transformer_cli.process.signals import ended_after


def print_likelihoods(
    run: str | Sequence[str] | None,
    files: tuple[Path, Path],
    *,
    overrides: Sequence[str],
    languages: tuple[str | None, str | None] = (None, None),
    as_json: bool,
) -> None:
    """Print log P(target | source) and the number of target tokens for each pair of lines.

    Args:
        run: as in `load_run`; several are an ensemble.
        files: source and target; one of them may be `-`, standard input.
        languages: the target and the source language; None: the only possible one.

    Raises:
        DataError: the files have different numbers of lines.
    """
    if files[0] == files[1] == STANDARD:
        raise UsageError("--source - and --target - name the same input")
    for path, option in zip(files, ("--source", "--target"), strict=True):
        if path != STANDARD:
            check_input(path, option)
    translator = load_run(run, overrides, command="likelihood").translator.towards(*languages)
    with ExitStack() as opened:
        pairs = _pairs(files, opened)
        write = opened.enter_context(opened_output(None))
        while window := list(islice(pairs, WINDOW_LINES)):
            lines = [_line(one, as_json=as_json) for one in pair_likelihoods(translator, window)]
            with ended_after():
                write("".join(f"{line}\n" for line in lines).encode())


def _pairs(files: tuple[Path, Path], opened: ExitStack) -> Iterator[tuple[str, str]]:
    """Line N of the source with line N of the target."""
    paths = (None if path == STANDARD else path for path in files)
    sides = [chain.from_iterable(opened.enter_context(opened_lines(path))) for path in paths]
    for number, (source, target) in enumerate(zip_longest(*sides), start=1):
        if source is None or target is None:
            shorter, longer = files if source is None else reversed(files)
            raise DataError(
                f"{shorter} has {number - 1} lines, but {longer} has more",
                hint="line N of one must translate line N of the other; empty lines count",
            )
        yield source, target


def _line(likelihood: PairLikelihood, *, as_json: bool) -> str:
    if as_json:
        return json.dumps(likelihood._asdict())
    return f"{likelihood.log_probability:.6f}\t{likelihood.num_tokens}"
