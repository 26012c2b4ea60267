"""The work of `tfm explain --over-time`: how a run has learned, from what its validations have kept."""

import sys
from collections.abc import Sequence
from pathlib import Path

from transformer_cli.checkpoint import find_run
from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.commands.streams.output import show
from transformer_cli.commands.streams.output_file import check_output
from transformer_cli.commands.streams.written_file import write_and_tell
from transformer_cli.config import load_stored_config
from transformer_cli.decoding.engines.pytorch import aligning_layer
from transformer_cli.extensions.lessons.commands.explaining.learning_lines import learning_lines
from transformer_cli.extensions.lessons.commands.explaining.paint import Paint
from transformer_cli.extensions.lessons.explaining.learning import Moment, read_moments
from transformer_cli.extensions.lessons.explaining.standalone_page import page_of_learning
from transformer_cli.process.errors import MissingInputError
from transformer_cli.process.messages import terminal_width
from transformer_cli.process.signals import ended_after

_WIDTH_OF_A_FILE = 110


def show_learning(run: str | None, html: Path | None, png: Path | None, *, as_json: bool) -> None:
    """Show the sentences that each validation of a run has kept.

    Raises:
        MissingInputError: there is no such run, or it has kept no sentence.
        DataError: its file was not written by a training.
    """
    for path in (html, png):
        check_output(path)
    found = find_run(run)
    folder = RunFolder.of_checkpoint(found) or RunFolder(found)
    moments = read_moments(folder.learning_file)
    if not moments:
        raise MissingInputError(
            f"{folder.learning_file}: this run has kept no sentence",
            hint="a training keeps some at each validation, if validation.num_samples is not 0; runs of earlier versions have none",
        )
    name = folder.path.resolve().name
    if html is not None:
        page = page_of_learning(name, moments).encode("utf-8", "replace")
        write_and_tell(html, page)
    if png is not None:
        _write_film(folder, moments, png)
    if as_json:
        show({"run": name, "moments": [one.to_json() for one in moments]}, (), as_json=True)
        return
    width = terminal_width(sys.stdout) or _WIDTH_OF_A_FILE
    with ended_after():
        for line in learning_lines(name, moments, Paint.of(sys.stdout), width):
            sys.stdout.write(f"{line}\n")


def _write_film(folder: RunFolder, moments: Sequence[Moment], path: Path) -> None:
    from transformer_cli.extensions.lessons.commands.explaining.film_strip import (
        chosen_moments,
        draw_film,
    )
    from transformer_cli.extensions.lessons.commands.explaining.slide import png_of

    chosen = chosen_moments(moments)
    figure = draw_film(folder.path.resolve().name, chosen, _kept_attention(folder))
    steps = ", ".join(str(moment.step) for moment in chosen)
    more = f": {len(chosen)} of {len(moments)} validations, steps {steps}"
    write_and_tell(path, png_of(figure), more)


def _kept_attention(folder: RunFolder) -> str:
    """Which attention learning.jsonl holds, in words."""
    num_layers = load_stored_config(folder.config_file).model.decoder_layers
    layer = aligning_layer(num_layers)
    return f"cross-attention of decoder layer {layer} (the layers are 0 to {num_layers - 1}), mean over its heads"
