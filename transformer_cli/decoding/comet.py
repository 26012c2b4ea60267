"""COMET models in a folder of this computer: they score translations, and are the utility of minimum Bayes risk decoding.

Source: Rei et al. 2020, "COMET: A Neural Framework for MT Evaluation"; for the choice of translations: Fernandes et al.
2022, "Quality-Aware Decoding for Neural Machine Translation".
"""

import logging
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_cli.decoding.minimum_bayes_risk import Utility
from transformer_cli.process.errors import DataError, MissingInputError, UsageError
from transformer_cli.process.messages import on_one_line

_INSTALLATION = 'in the folder of this project: pip install ".[comet]"'
_BATCH_SIZE = 16  # as in the command comet-score: the padding of a batch changes the last digits


class CometModel(NamedTuple):
    """A model that is ready to score.

    It is a network that scores translations, given sources and references.
    """

    name: str
    """For signatures: the name of its folder, or that of a model in the cache of the Hugging Face hub."""
    reads_references: bool
    """False for a model that judges a translation by its source alone."""
    network: Any
    """A model of the library unbabel-comet."""

    @property
    def version(self) -> str:
        """The version of the library."""
        return metadata.version("unbabel-comet")

    def scores(self, sources: Sequence[str], translations: Sequence[str], references: Sequence[str]) -> list[float]:
        """One score for each translation; higher is better, and most models give 0 to 1.

        Args:
            sources: the texts that were translated.
            translations: one for each source.
            references: one for each source; a model that reads no references ignores them.
        """
        import torch

        samples = [
            {"src": source.strip(), "mt": translation.strip(), "ref": reference.strip()}
            for source, translation, reference in zip(sources, translations, references, strict=True)
        ]
        gpus = 1 if torch.cuda.is_available() else 0
        with _quiet():
            found = self.network.predict(samples, batch_size=_BATCH_SIZE, gpus=gpus, progress_bar=False)
        return [float(score) for score in found.scores]


def load_comet(folder: Path, *, as_command: bool = False) -> CometModel:
    """The COMET model in a folder; nothing is downloaded.

    Args:
        folder: with hparams.yaml, and with the weights in checkpoints/model.ckpt, as COMET's own download makes it.
        as_command: compute as the command `comet-score` of unbabel-comet 2.2.7 does, in float16; else in float32.

    Raises:
        MissingInputError: one of the two files is missing.
        DataError: the library cannot load them, or the encoder that hparams.yaml names.
        UsageError: unbabel-comet is not installed, or it cannot be imported.
    """
    weights = folder / "checkpoints" / "model.ckpt"
    for path in (folder / "hparams.yaml", weights):
        if not path.is_file():
            raise MissingInputError(
                f"{path}: no such file, so {folder} is no COMET model",
                hint="name the folder that has hparams.yaml and checkpoints/model.ckpt",
            )
    with _quiet():
        load_from_checkpoint = _library().load_from_checkpoint
        try:
            network = load_from_checkpoint(str(weights), local_files_only=True)
        except Exception as error:  # of many kinds: a pickle, YAML, and the encoder's own files
            raise DataError(
                f"{folder}: COMET cannot load this model: {on_one_line(str(error))}",
                hint=f"{_encoder_of(folder)} must be on this computer, too: "
                "in the cache of the Hugging Face hub, or in a folder",
            ) from error
    if as_command:
        network.half()
        network.set_embedding_cache()  # another system on the same sources then takes less time
    return CometModel(_name_of(folder), network.requires_references(), network)


def _library() -> Any:
    try:
        import comet
    except ModuleNotFoundError as error:
        if error.name == "comet":
            raise UsageError(
                "a COMET model needs the package unbabel-comet, which is not installed",
                hint=f"{_INSTALLATION}, best in a virtual environment of its own",
            ) from error
        raise UsageError(
            f"unbabel-comet is installed, but it cannot be imported: {error}", hint=_INSTALLATION
        ) from error
    return comet


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the notices and warnings of the libraries below COMET; their errors are told."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)


def _encoder_of(folder: Path) -> str:
    """For messages: the encoder that a model is built on."""
    text = (folder / "hparams.yaml").read_text(encoding="utf-8", errors="replace")
    named = re.search(r"^pretrained_model: *(\S.*)$", text, re.MULTILINE)
    return f"its encoder {on_one_line(named[1])}" if named else "its encoder"


def _name_of(folder: Path) -> str:
    """The folder's name; for a snapshot of the hub, the name of the model: Unbabel/wmt22-comet-da."""
    path = folder.absolute()
    if path.parent.name == "snapshots" and path.parent.parent.name.startswith("models--"):
        return path.parent.parent.name.removeprefix("models--").replace("--", "/")
    return path.name


def comet_utility(folder: Path) -> Utility:
    """The utility that a COMET model gives; nothing is downloaded.

    Args:
        folder: with hparams.yaml, and with the weights in checkpoints/model.ckpt, as COMET's own download makes it.

    Raises:
        MissingInputError, UsageError: as in `load_comet`.
        UsageError: the model reads no references.
    """
    model = load_comet(folder)
    if not model.reads_references:
        raise UsageError(
            f"{folder}: this COMET model reads no references, so it cannot compare two translations",
            hint="use a model such as wmt22-comet-da",
        )

    def utility(source: str, texts: Sequence[str]) -> NDArray[np.float64]:
        hypotheses = [text for text in texts for _ in texts]
        references = [text for _ in texts for text in texts]
        found = model.scores([source] * len(hypotheses), hypotheses, references)
        return np.array(found, dtype=np.float64).reshape(len(texts), len(texts))

    return utility
