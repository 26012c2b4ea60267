"""The score of a COMET model as the utility of minimum Bayes risk decoding; the model lies in a folder of this computer.

Source: Rei et al. 2020, "COMET: A Neural Framework for MT Evaluation"; for the choice of translations: Fernandes et al.
2022, "Quality-Aware Decoding for Neural Machine Translation".
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transformer_cli.decoding.comet_model import load_comet
from transformer_cli.decoding.minimum_bayes_risk import Utility
from transformer_cli.process.errors import UsageError


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
        of_rows = [text for text in texts for _ in texts]
        references = [text for _ in texts for text in texts]
        found = model.scores([source] * len(of_rows), of_rows, references)
        return np.array(found, dtype=np.float64).reshape(len(texts), len(texts))

    return utility
