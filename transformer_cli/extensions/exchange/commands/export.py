"""`tfm export`: a run in the format of another program, checked with that program before it appears."""

import logging
from pathlib import Path
from typing import NamedTuple

from transformer_cli.checkpoint import find_run, load_trained
from transformer_cli.commands.output import show
from transformer_cli.commands.score import lines_of
from transformer_cli.commands.sentence_progress import sentence_progress
from transformer_cli.extensions.exchange.porting.card.model_card import CardWishes
from transformer_cli.extensions.exchange.porting.exporting.export_format import Quantization
from transformer_cli.extensions.exchange.porting.exporting.export_formats import FORMATS
from transformer_cli.extensions.exchange.porting.exporting.export_run import export_run
from transformer_cli.storage.filesystem import size_in_words

logger = logging.getLogger(__name__)


class Export(NamedTuple):
    """What the user asks for."""

    format_name: str
    output: Path
    quantization: Quantization | None
    input_file: Path | None
    """Sentences for the check; None: those of the run."""
    wishes: CardWishes


def run_export(run: str | None, export: Export, *, as_json: bool) -> None:
    """Export a run, and print what was compared."""
    [wanted] = [one for one in FORMATS if one.name == export.format_name]
    lines = None if export.input_file is None else lines_of(export.input_file, "--input")
    trained = load_trained(find_run(run))
    logger.info("%s, step %d", trained.folder, trained.step)
    with sentence_progress():
        exported = export_run(
            trained,
            wanted,
            export.output,
            quantization=export.quantization,
            lines=lines,
            wishes=export.wishes,
        )
    shown = [f"exported   {exported.path} ({size_in_words(exported.num_bytes)})"]
    facts = {
        "output": str(exported.path),
        "format": wanted.name,
        "bytes": exported.num_bytes,
        "checks": [one.as_json() for one in exported.agreements],
    }
    for agreement in exported.agreements:
        shown += agreement.lines()
    show(facts, shown, as_json=as_json)
