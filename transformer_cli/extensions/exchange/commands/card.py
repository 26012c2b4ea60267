"""`tfm card`: the model card of a run, on standard output or in a folder."""

import logging
from pathlib import Path
from typing import Annotated

import typer

from transformer_cli.checkpoint.run_folder import name_of_run
from transformer_cli.checkpoint.trained_files import find_run, load_trained
from transformer_cli.commands.command_line import JsonOption, RunOption
from transformer_cli.commands.output import show
from transformer_cli.process.errors import CannotCreateError
from transformer_cli.process.messages import for_shell
from transformer_cli.storage import replace_file

logger = logging.getLogger(__name__)

LicenseOption = Annotated[
    str | None,
    typer.Option(
        "--license",
        metavar="NAME",
        help="The licence of the model for its card, such as cc-by-4.0.",
    ),
]
DatasetsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--dataset",
        metavar="NAME=LICENCE",
        help="A data set of the training and its licence, for the card; may be repeated.",
    ),
]
BaseModelOption = Annotated[
    str | None,
    typer.Option("--base-model", metavar="USER/NAME", help="The model on the hub that was fine-tuned."),
]


def card_command(
    run: RunOption = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A folder for README.md and its pictures."),
    ] = None,
    license_: LicenseOption = None,
    datasets: DatasetsOption = None,
    base_model: BaseModelOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the model card of a run. Data, scores, learning curves, samples and weak spots."""
    from transformer_cli.extensions.exchange.export import float32_translator
    from transformer_cli.extensions.exchange.exported_files import CARD
    from transformer_cli.extensions.exchange.model_card import CardOptions, card_files

    if output is not None and not output.is_dir():
        raise CannotCreateError(f"{output}: no such folder")
    if output is not None and (output / CARD).exists():
        raise CannotCreateError(
            f"{output / CARD} exists, and is not overwritten",
            hint="name another folder, or move the file",
        )
    trained = load_trained(find_run(run))
    logger.info("%s, step %d", trained.folder, trained.step)
    name = name_of_run(trained.folder)
    # The card may be published: it names no folder outside of the current one.
    name = trained.name if Path(name).is_absolute() else name
    files = card_files(
        trained,
        float32_translator(trained, trained.config.decoding.beam_size),
        usage=f'```sh\ntfm translate --run {for_shell(name)} "Good morning."\n```',
        options=CardOptions(license_, tuple(datasets or ()), base_model),
    )
    if output is None:
        text = files[CARD].decode()
        show({"card": text}, text.removesuffix("\n").split("\n"), as_json=as_json)
        return
    for name, content in files.items():
        replace_file(output / name, content)
    written = [str(output / name) for name in files]
    show({"files": written}, [f"wrote {name}" for name in written], as_json=as_json)
