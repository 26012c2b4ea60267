"""`tfm likelihood`: the log-probability of each given translation under a trained model, line by line."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Annotated

from transformer_cli.commands import completion
from transformer_cli.commands.command_line import (
    FromOption,
    JsonOption,
    Overrides,
    RunsOption,
    SourceFileOption,
    TargetFileOption,
    ToOption,
    set_option,
)
from transformer_cli.commands.output import STANDARD, opened_output
from transformer_cli.process.errors import DataError, UsageError
from transformer_cli.process.signals import ended_after


def likelihood_command(
    source: SourceFileOption,
    target: TargetFileOption,
    run: RunsOption = None,
    overrides: Annotated[
        Overrides, set_option("runtime.device=cpu", completion.settings_of_likelihoods)
    ] = None,
    to: ToOption = None,
    from_: FromOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print how probable given translations are. For each line: log-probability, tab, number of tokens."""
    from transformer_cli.commands.input_lines import check_input
    from transformer_cli.decoding.given_pairs import pair_likelihoods
    from transformer_cli.decoding.loading import load_run
    from transformer_cli.decoding.translator import WINDOW_LINES

    if source == target == STANDARD:
        raise UsageError("--source - and --target - name the same input")
    for path, option in ((source, "--source"), (target, "--target")):
        if path != STANDARD:
            check_input(path, option)
    loaded = load_run(run, overrides or [], command="likelihood")
    translator = loaded.translator.towards(to, from_)
    with ExitStack() as opened:
        pairs = _pairs((source, target), opened)
        write = opened.enter_context(opened_output(None))
        while window := list(islice(pairs, WINDOW_LINES)):
            lines = [
                json.dumps(one._asdict())
                if as_json
                else f"{one.log_probability:.6f}\t{one.num_tokens}"
                for one in pair_likelihoods(translator, window)
            ]
            with ended_after():
                write("".join(f"{line}\n" for line in lines).encode())


def _pairs(files: tuple[Path, Path], opened: ExitStack) -> Iterator[tuple[str, str]]:
    """Line N of the source with line N of the target.

    Raises:
        DataError: the files have different numbers of lines, or none.
    """
    from transformer_cli.commands.input_lines import opened_lines

    paths = (None if path == STANDARD else path for path in files)
    sides = [chain.from_iterable(opened.enter_context(opened_lines(path))) for path in paths]
    number = 0
    for number, (source, target) in enumerate(zip_longest(*sides), start=1):
        if source is None or target is None:
            shorter, longer = files if source is None else reversed(files)
            raise DataError(
                f"{shorter} has {number - 1} lines, but {longer} has more",
                hint="line N of one must translate line N of the other; empty lines count",
            )
        yield source, target
    if number == 0:
        raise DataError(f"{files[0]} is empty, so there is no pair to score")
