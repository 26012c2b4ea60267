"""`tfm likelihood`: the log-probability of each given translation under a trained model, line by line."""

import json
from itertools import chain, islice
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
from transformer_cli.commands.input_lines import check_given_pairs, given_pairs
from transformer_cli.commands.output import opened_output
from transformer_cli.config.decoding import WINDOW_LINES
from transformer_cli.process.errors import DataError
from transformer_cli.process.signals import ended_after


def likelihood_command(
    source: SourceFileOption,
    target: TargetFileOption,
    run: RunsOption = None,
    overrides: Annotated[Overrides, set_option("runtime.device=cpu", completion.settings_of_likelihoods)] = None,
    to: ToOption = None,
    from_: FromOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print how probable given translations are. For each line: log-probability, tab, number of tokens."""
    from transformer_cli.decoding.given_pairs import pair_likelihoods
    from transformer_cli.decoding.loading import load_run

    check_given_pairs(source, target)
    translator = load_run(run, overrides or [], command="likelihood").translator.towards(to, from_)
    pairs = given_pairs(source, target)
    if (first := next(pairs, None)) is None:
        raise DataError(f"{source} is empty, so there is no pair to score")
    pairs = chain([first], pairs)
    with opened_output(None) as write:
        while window := list(islice(pairs, WINDOW_LINES)):
            lines = [
                json.dumps(one._asdict()) if as_json else f"{one.log_probability:.6f}\t{one.num_tokens}"
                for one in pair_likelihoods(translator, window)
            ]
            with ended_after():
                write("".join(f"{line}\n" for line in lines).encode())
