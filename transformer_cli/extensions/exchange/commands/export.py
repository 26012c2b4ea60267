"""`tfm export`: a run in the format of another program, checked with that program before it appears."""

import logging
from pathlib import Path
from typing import Annotated, Literal

import typer

from transformer_cli.checkpoint.trained_files import find_run, load_trained
from transformer_cli.commands.command_line import JsonOption, RunOption
from transformer_cli.commands.output import show
from transformer_cli.commands.score import given_lines
from transformer_cli.extensions.exchange.commands.card import (
    BaseModelOption,
    DatasetsOption,
    LicenseOption,
)
from transformer_cli.process.errors import UsageError
from transformer_cli.storage.filesystem import size_in_words

logger = logging.getLogger(__name__)


def export_command(
    to: Annotated[
        Literal["ctranslate2", "hf", "onnx", "argos", "marian", "bergamot", "browser"],
        typer.Option("--to", help="The format."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder that is made; for argos, the file.")],
    run: RunOption = None,
    quantize: Annotated[
        Literal["int8"] | None,
        typer.Option("--quantize", help="Store the matrices in 8 bits: a quarter of the size."),
    ] = None,
    input_file: Annotated[
        Path | None,
        typer.Option(
            "--input",
            "-i",
            help="Sentences for the check, one per line. Default: the validation split of the run.",
        ),
    ] = None,
    engine: Annotated[
        Path | None,
        typer.Option(
            "--engine",
            help="For browser: the folder of the npm package @browsermt/bergamot-translator. Default: in node_modules here or above.",
        ),
    ] = None,
    license_: LicenseOption = None,
    datasets: DatasetsOption = None,
    base_model: BaseModelOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a run in the format of another program. It is checked: that program translates the same."""
    from transformer_cli.commands.sentence_progress import sentence_progress
    from transformer_cli.extensions.exchange.browser import BrowserFormat
    from transformer_cli.extensions.exchange.export import FORMATS, export_run
    from transformer_cli.extensions.exchange.model_card import CardOptions

    [wanted] = [one for one in FORMATS if one.name == to]
    if isinstance(wanted, BrowserFormat):
        wanted = BrowserFormat(engine=engine)
    elif engine is not None:
        raise UsageError(f"--engine is for --to browser, not for --to {to}")
    lines = None if input_file is None else given_lines(input_file, "--input")
    trained = load_trained(find_run(run))
    logger.info("%s, step %d", trained.folder, trained.step)
    with sentence_progress():
        exported = export_run(
            trained,
            wanted,
            output,
            quantization=quantize,
            lines=lines,
            card_options=CardOptions(license_, tuple(datasets or ()), base_model),
        )
    shown = [f"exported   {exported.path} ({size_in_words(exported.num_bytes)})"]
    facts = {
        "output": str(exported.path),
        "format": wanted.name,
        "bytes": exported.num_bytes,
        "checks": [one.as_json() for one in exported.agreements],
    }
    for agreement in exported.agreements:
        shown += agreement.lines()
    show(facts, shown, as_json=as_json)
