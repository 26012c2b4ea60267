"""The options of `tfm translate` about documents."""

from typing import Annotated

import typer

FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="The format of the input: txt translates it line by line, html and others as a document. "
        "Default: by the ending of its name.",
    ),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="NAMES",
        help="For csv and tsv: which columns are translated, by name or by number from 1, such as title,3.",
    ),
]
ValuesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--values",
        metavar="PATTERN",
        help="For json and yaml: which values are translated, such as items.*.title; may be repeated. "
        "Default: all strings but names for programs, such as en_US.",
    ),
]
EncodingOption = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="For text files that are not UTF-8: their encoding, such as windows-1252; the output has it, too.",
    ),
]
