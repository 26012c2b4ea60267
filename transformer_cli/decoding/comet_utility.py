"""The score of a COMET model as the utility of minimum Bayes risk decoding; the model lies in a folder of this computer.

Source: Rei et al. 2020, "COMET: A Neural Framework for MT Evaluation"; for the choice of translations: Fernandes et al.
2022, "Quality-Aware Decoding for Neural Machine Translation".
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transformer_cli.decoding.minimum_bayes_risk import Utility
from transformer_cli.errors import MissingInputError, UsageError

_BATCH_SIZE = 16


def comet_utility(folder: Path) -> Utility:
    """The utility that a COMET model gives; nothing is downloaded.

    Args:
        folder: with hparams.yaml, and with the weights in checkpoints/model.ckpt, as COMET's own download makes it.

    Raises:
        MissingInputError: one of the two files is missing.
        UsageError: unbabel-comet is not installed, or the model reads no references.
    """
    weights = folder / "checkpoints" / "model.ckpt"
    for path in (folder / "hparams.yaml", weights):
        if not path.is_file():
            raise MissingInputError(
                f"{path}: no such file, so {folder} is no COMET model",
                hint="name the folder that has hparams.yaml and checkpoints/model.ckpt",
            )
    try:
        from comet import load_from_checkpoint
    except ImportError as error:
        raise UsageError(
            "a COMET model needs the package unbabel-comet, which is not installed",
            hint="pip install unbabel-comet",
        ) from error
    import torch

    model = load_from_checkpoint(str(weights), local_files_only=True)
    if not model.requires_references():
        raise UsageError(
            f"{folder}: this COMET model reads no references, so it cannot compare two translations",
            hint="use a model such as wmt22-comet-da",
        )
    gpus = 1 if torch.cuda.is_available() else 0

    def utility(source: str, texts: Sequence[str]) -> NDArray[np.float64]:
        samples = [{"src": source, "mt": text, "ref": other} for text in texts for other in texts]
        found = model.predict(samples, batch_size=_BATCH_SIZE, gpus=gpus, progress_bar=False)
        return np.array(found.scores, dtype=np.float64).reshape(len(texts), len(texts))

    return utility
