"""`tfm align`: word alignment of given pairs, that is, which words of source and target belong together."""

import json
import sys
from collections.abc import Iterator
from itertools import chain, zip_longest
from pathlib import Path
from typing import Annotated

from transformer_cli.commands import completion
from transformer_cli.commands.command_line import (
    FromOption,
    JsonOption,
    Overrides,
    RunOption,
    SourceFileOption,
    TargetFileOption,
    ToOption,
    set_option,
)
from transformer_cli.commands.output import STANDARD
from transformer_cli.process.errors import DataError, UsageError
from transformer_cli.process.messages import escaped_in_json
from transformer_cli.process.signals import ended_after


def align_command(
    source: SourceFileOption,
    target: TargetFileOption,
    run: RunOption = None,
    overrides: Annotated[
        Overrides, set_option("runtime.device=cpu", completion.settings_of_the_machine)
    ] = None,
    to: ToOption = None,
    from_: FromOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print which words of given pairs belong together. For each pair a line such as 0-0 1-2."""
    from transformer_cli.commands.input_lines import check_input
    from transformer_cli.decoding.details import pharaoh
    from transformer_cli.decoding.engine import ExplainingEngine
    from transformer_cli.decoding.given_pairs import PairAligner
    from transformer_cli.decoding.loading import load_run

    if source == target == STANDARD:
        raise UsageError("--source and --target name the same input", hint="name two files")
    for path, option in ((source, "--source"), (target, "--target")):
        if path != STANDARD:
            check_input(path, option)
    translator = load_run(run, overrides or [], command="align").translator.towards(to, from_)
    engine = translator.engine
    if not isinstance(engine, ExplainingEngine):
        raise UsageError(
            "this engine gives no attention weights", hint="use the engine that runs on PyTorch"
        )
    aligner = PairAligner(translator.pipeline, engine, translator.decoding.batch_tokens)
    for aligned in aligner.align(_pairs(source, target)):
        line = pharaoh(aligned.links)
        if as_json:
            facts = {
                "source": aligned.source,
                "target": aligned.target,
                "alignment": line,
                "log_probability": aligned.log_probability,
            }
            line = escaped_in_json(json.dumps(facts, ensure_ascii=False))
        with ended_after():
            sys.stdout.write(f"{line}\n")
    with ended_after():
        sys.stdout.flush()


def _pairs(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Line N of the source with line N of the target.

    Raises:
        DataError: the files have different numbers of lines.
    """
    from transformer_cli.commands.input_lines import opened_lines

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
