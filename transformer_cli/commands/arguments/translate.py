"""The options of `tfm translate` alone. As in `cli.py`, the command is imported only when it runs."""

from typing import Annotated

import typer

AlignmentOption = Annotated[
    bool,
    typer.Option(
        "--alignment",
        help="Print, after a tab, which words belong together: 0-0 1-2 links the first words, and the second with the third.",
    ),
]
DetailsOption = Annotated[
    bool,
    typer.Option(
        "--details", help="With --json: tokens, their probabilities, and the word alignment."
    ),
]
AttentionOption = Annotated[
    bool,
    typer.Option("--attention", help="With --json: as --details, and the attention weights."),
]
ResumeOption = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Keep the output so far in OUTPUT.unfinished; after an interruption, the same command goes on.",
    ),
]
