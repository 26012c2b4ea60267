"""The options of `tfm translate` about hypotheses. As in `cli.py`, the command is imported only when it runs."""

from pathlib import Path
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
PrefixOption = Annotated[
    str | None,
    typer.Option(
        "--prefix", metavar="TEXT", help="Whole words with which each translation begins."
    ),
]
PrefixesOption = Annotated[
    Path | None,
    typer.Option(
        "--prefixes",
        help="A text file: line N is the --prefix of line N of the input; an empty line means no prefix.",
    ),
]
CometOption = Annotated[
    Path | None,
    typer.Option(
        "--comet",
        metavar="FOLDER",
        help="With decoding.mbr: choose by the COMET model in this folder, not by chrF. Needs unbabel-comet.",
    ),
]
