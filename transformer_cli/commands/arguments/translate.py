"""The options that only `tfm translate` has. As in `cli.py`, the command is imported only when it runs."""

from pathlib import Path
from typing import Annotated

import typer

InputOption = Annotated[
    Path | None,
    typer.Option(
        "--input",
        help="A text file, one sentence per line; may be compressed. - is standard input.",
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", help="A file for the translations. Default, or -: standard output."),
]
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
ReplaceUnknownOption = Annotated[
    bool,
    typer.Option(
        "--replace-unknown",
        help="Show the word of the source that the model read, instead of [UNK]. For tokenizer.kind wordlevel.",
    ),
]
DictionaryOption = Annotated[
    Path | None,
    typer.Option(
        "--dictionary",
        help="With --replace-unknown: a file of lines WORD, tab, TRANSLATION for these words.",
    ),
]
