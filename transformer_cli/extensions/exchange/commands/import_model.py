"""`tfm import`: a model folder of another program becomes a run."""

from pathlib import Path

from transformer_cli.commands.output import show
from transformer_cli.extensions.exchange.porting.importing.import_folder import import_folder
from transformer_cli.extensions.exchange.porting.importing.imported_model import Wishes
from transformer_cli.extensions.exchange.porting.importing.imported_run import fine_tuning_command


def run_import(folder: Path, name: str, wishes: Wishes, *, as_json: bool) -> None:
    """Import a folder, and print what was made of it."""
    imported, run = import_folder(folder, name, wishes)
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
    shared = " shared by both languages" if imported.config.tokenizer.shared else ""
    sizes = f"{source.vocab_size:,} entries{shared}" if shared else f"{source.vocab_size:,} and {target.vocab_size:,} entries"  # fmt: skip
    shown = directions[:12] + ([f"and {len(directions) - 12} more"] if len(directions) > 12 else [])
    to = f" --to {imported.config.data.directions[0].target}" if len(directions) > 1 else ""
    lines = [
        f"imported    {imported.origin}, {run.num_parameters:,} parameters",
        f"run         {run.path}",
        f"directions  {', '.join(shown)}",
        f"vocabulary  {sizes}",
        *(f"compared    {line}" for line in run.compared),
        *(f"note        {note}" for note in imported.notes),
        "",
        f'translate:  tfm translate --run {name}{to} "..."',
        f"fine-tune:  {fine_tuning_command(imported.config)}",
    ]
    show(facts, lines, as_json=as_json)
