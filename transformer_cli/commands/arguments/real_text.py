"""The options of `tfm translate` for real text: protected spans, and sentences that are too long."""

from typing import Annotated

import typer

ProtectOption = Annotated[
    bool,
    typer.Option(
        "--protect",
        help="Keep URLs, e-mail addresses, numbers, placeholders such as {name}, paths and tags unchanged.",
    ),
]
StrictOption = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Refuse a sentence that is too long for the model. Default: translate it in parts.",
    ),
]
