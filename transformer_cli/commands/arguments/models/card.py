"""The options of `tfm card`. As in `cli.py`, the command is imported only when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.commands.options import DebugOption, JsonOption, RunOption

LicenseOption = Annotated[
    str | None,
    typer.Option(
        "--license",
        metavar="NAME",
        help="The licence of the model for its card, such as cc-by-4.0.",
    ),
]
DatasetsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--dataset",
        metavar="NAME=LICENCE",
        help="A data set of the training and its licence, for the card; may be repeated.",
    ),
]
BaseModelOption = Annotated[
    str | None,
    typer.Option(
        "--base-model", metavar="USER/NAME", help="The model on the hub that was fine-tuned."
    ),
]


def card(
    run: RunOption = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A folder for README.md and its pictures."),
    ] = None,
    license_: LicenseOption = None,
    datasets: DatasetsOption = None,
    base_model: BaseModelOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Print the model card of a run. Data, scores, learning curves, samples and weak spots."""
    from transformer_cli.process.messages import talk_on_stderr

    talk_on_stderr(debug=debug)
    from transformer_cli.extensions.exchange.commands.card import make_card
    from transformer_cli.extensions.exchange.porting.card.model_card import CardWishes

    wishes = CardWishes(license_, tuple(datasets or ()), base_model)
    make_card(run, output, wishes, as_json=as_json)
