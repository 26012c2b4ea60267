"""`tfm card`: the model card of a run, on standard output or in a folder."""

import logging
from pathlib import Path

from transformer_cli.checkpoint import find_run, load_trained
from transformer_cli.commands.output import show
from transformer_cli.extensions.exchange.porting.card.model_card import (
    CARD,
    CardSource,
    CardWishes,
    card_files,
)
from transformer_cli.extensions.exchange.porting.exporting.export_run import float32_translator
from transformer_cli.process.errors import CannotCreateError
from transformer_cli.storage import replace_file

logger = logging.getLogger(__name__)


def make_card(run: str | None, folder: Path | None, wishes: CardWishes, *, as_json: bool) -> None:
    """Print the card of a run, or write it with its pictures into a folder.

    Raises:
        CannotCreateError: there is no such folder, or it has a card.
    """
    if folder is not None and not folder.is_dir():
        raise CannotCreateError(f"{folder}: no such folder")
    if folder is not None and (folder / CARD).exists():
        raise CannotCreateError(
            f"{folder / CARD} exists, and is not overwritten",
            hint="name another folder, or move the file",
        )
    trained = load_trained(find_run(run))
    logger.info("%s, step %d", trained.folder, trained.step)
    translator = float32_translator(trained, trained.config.decoding.beam_size)
    usage = f'```sh\ntfm translate --run {trained.config.name} "Good morning."\n```'
    files = card_files(CardSource(trained, translator, wishes), usage)
    if folder is None:
        text = files[CARD].decode()
        show({"card": text}, text.removesuffix("\n").split("\n"), as_json=as_json)
        return
    for name, content in files.items():
        replace_file(folder / name, content)
    written = [str(folder / name) for name in files]
    show({"files": written}, [f"wrote {name}" for name in written], as_json=as_json)
