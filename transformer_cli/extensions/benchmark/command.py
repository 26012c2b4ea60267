"""`tfm benchmark`: measures training or translating on this machine, or compares two measurements."""

import logging
from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.command_line import OptionalConfigOption, Overrides, set_option
from transformer_cli.process.errors import UsageError

logger = logging.getLogger(__name__)


def benchmark(
    config: OptionalConfigOption = None,
    overrides: Annotated[Overrides, set_option("runtime.threads=1", completion.settings)] = None,
    decode: Annotated[
        bool,
        typer.Option(
            "--decode",
            help="Measure translating the validation split: with --config by random weights, with --run by a trained model.",
        ),
    ] = False,
    run: Annotated[
        str | None,
        typer.Option("--run", help="With --decode: name or folder of a run.", autocompletion=completion.runs),
    ] = None,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            "--compare",
            metavar="BEFORE AFTER",
            help="Compare two files that --json has written: ratios, and conditions that differ.",
        ),
    ] = None,
    updates: Annotated[
        int | None,
        typer.Option(
            "--updates",
            min=3,
            max=100_000,
            help="Updates to measure, twice: for the speed, then for the phases. Default: 10 and 5 seconds.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for other programs and for --compare.")] = False,
) -> None:
    """Measure how fast this machine trains or translates. Say what limits it, and what to change."""
    if sum(given is not None for given in (config, run, compare)) != 1:
        raise UsageError("give one of --config, --run and --compare")
    if run is not None and not decode:
        raise UsageError("--run goes with --decode; to measure training, give --config")
    if updates is not None and (decode or compare):
        raise UsageError("--updates is for the benchmark of training")
    if compare is not None and (decode or overrides):
        raise UsageError("--compare only reads two files: it takes neither --decode nor --set")
    from transformer_cli.commands.output import show
    from transformer_cli.extensions.benchmark import report
    from transformer_cli.extensions.benchmark.decoding import measure_decoding
    from transformer_cli.extensions.benchmark.training import measure_training

    if compare is not None:
        found = report.compare_benchmarks(*compare)
        for difference in found["differences"]:
            logger.warning("the conditions differ: %s", difference)
        show(found, report.comparison_lines(found), as_json=as_json)
        return
    if config is None or decode:
        found = report.benchmark_json("decoding", *measure_decoding(config, run, overrides or []))
    else:
        found = report.benchmark_json("training", *measure_training(config, overrides or [], num_updates=updates))
    show(found, report.report_lines(found), as_json=as_json)
