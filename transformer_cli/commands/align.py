"""`tfm align`: word alignment of given pairs, that is, which words of source and target belong together."""

import json
import sys
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
from transformer_cli.commands.input_lines import check_given_pairs, given_pairs
from transformer_cli.process.errors import UsageError
from transformer_cli.process.messages import escaped_in_json
from transformer_cli.process.signals import ended_after


def align_command(
    source: SourceFileOption,
    target: TargetFileOption,
    run: RunOption = None,
    overrides: Annotated[Overrides, set_option("runtime.device=cpu", completion.settings_of_the_machine)] = None,
    to: ToOption = None,
    from_: FromOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print which words of given pairs belong together. For each pair a line such as 0-0 1-2."""
    from transformer_cli.decoding.details import pharaoh
    from transformer_cli.decoding.engine import ExplainingEngine
    from transformer_cli.decoding.given_pairs import PairAligner
    from transformer_cli.decoding.loading import load_run

    check_given_pairs(source, target)
    translator = load_run(run, overrides or [], command="align").translator.towards(to, from_)
    engine = translator.engine
    if not isinstance(engine, ExplainingEngine):
        raise UsageError("this engine gives no attention weights", hint="use the engine that runs on PyTorch")
    aligner = PairAligner(translator.pipeline, engine, translator.decoding.batch_tokens)
    for aligned in aligner.align(given_pairs(source, target)):
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
