"""The option of `tfm translate` for a glossary."""

from pathlib import Path
from typing import Annotated

import typer

GlossaryOption = Annotated[
    Path | None,
    typer.Option(
        "--glossary",
        help="A file of terms that translations must contain: on each line a source term, a tab, a target term.",
    ),
]
