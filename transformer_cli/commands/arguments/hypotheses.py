"""The options of `tfm translate` about its hypotheses. As in `cli.py`, the command is imported only when it runs."""

from typing import Annotated

import typer

NBestOption = Annotated[
    int | None,
    typer.Option(
        "--n-best",
        metavar="N",
        min=1,
        max=64,
        help="Print the N best translations of each line: rank, score and text, separated by tabs.",
    ),
]
