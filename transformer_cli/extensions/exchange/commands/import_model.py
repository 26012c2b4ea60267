"""`tfm import`: a model folder of another program becomes a run."""

from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.commands.command_line import JsonOption
from transformer_cli.commands.output import show
from transformer_cli.process.messages import for_shell


def import_model_command(
    folder: Annotated[
        Path,
        typer.Argument(help="The folder of the model, such as an OPUS-MT model; or a model.npz of Marian."),
    ],
    name: Annotated[str, typer.Option("--name", help="Name of the run that is made.")],
    from_: Annotated[
        str | None,
        typer.Option("--from", help="Source language, such as en. Default: as the folder says."),
    ] = None,
    to: Annotated[
        list[str] | None,
        typer.Option(
            "--to",
            help="Target language; several times for a model of several. Default: as the folder says.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a run of a model of another program. OPUS-MT, Marian, Pegasus, BART, or an export of tfm."""
    from transformer_cli.extensions.exchange.import_folder import import_folder
    from transformer_cli.extensions.exchange.imported_model import fine_tuning_command
    from transformer_cli.extensions.exchange.model_folder import NamedLanguages

    imported, run = import_folder(folder, name, NamedLanguages(from_, tuple(to or ())))
    source, target = imported.tokenizers
    directions = [str(direction) for direction in imported.config.data.directions]
    facts = {
        "run": str(run.path),
        "origin": imported.origin,
        "parameters": run.num_parameters,
        "source_vocabulary": source.vocab_size,
        "target_vocabulary": target.vocab_size,
        "directions": directions,
        "compared": run.compared,
        "notes": list(imported.notes),
    }
    sizes = f"{source.vocab_size:,} and {target.vocab_size:,} entries"
    if imported.config.tokenizer.shared:
        sizes = f"{source.vocab_size:,} entries shared by both languages"
    shown = directions[:12] + ([f"and {len(directions) - 12} more"] if len(directions) > 12 else [])
    towards = f" --to {imported.config.data.directions[0].target}" if len(directions) > 1 else ""
    lines = [
        f"imported    {imported.origin}, {run.num_parameters:,} parameters",
        f"run         {run.path}",
        f"directions  {', '.join(shown)}",
        f"vocabulary  {sizes}",
        *(f"compared    {line}" for line in run.compared),
        *(f"note        {note}" for note in imported.notes),
        "",
        f'translate:  tfm translate --run {for_shell(name)}{towards} "..."',
        f"fine-tune:  {fine_tuning_command(imported.config)}",
    ]
    show(facts, lines, as_json=as_json)
