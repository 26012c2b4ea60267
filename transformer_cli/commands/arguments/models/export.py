"""The options of `tfm export`. As in `cli.py`, the command is imported only when it runs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from transformer_cli.commands.arguments.models.card import (
    BaseModelOption,
    DatasetsOption,
    LicenseOption,
)
from transformer_cli.commands.options import DebugOption, JsonOption, RunOption


def export(
    to: Annotated[
        Literal["ctranslate2", "hf", "onnx", "argos"], typer.Option("--to", help="The format.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder that is made; for argos, the file.")
    ],
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
    license_: LicenseOption = None,
    datasets: DatasetsOption = None,
    base_model: BaseModelOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Write a run in the format of another program. It is checked: that program translates the same."""
    from transformer_cli.process.messages import talk_on_stderr

    talk_on_stderr(debug=debug)
    from transformer_cli.extensions.exchange.commands.export import Export, run_export
    from transformer_cli.extensions.exchange.porting.card.model_card import CardWishes

    wishes = CardWishes(license_, tuple(datasets or ()), base_model)
    wanted = Export(to, output, quantize, input_file, wishes)
    run_export(run, wanted, as_json=as_json)
