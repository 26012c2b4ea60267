"""Train a neural machine translator from a parallel corpus, and translate with it.

From Python:

    from transformer_cli import load_config, load_translator, train
    run = train(load_config("en-it.yaml"))
    for translation in load_translator(run.folder).translate(["Good morning."]):
        print(translation.text)
"""

from __future__ import annotations

import os
import sys

__version__ = "0.1.0"

# OpenMP threads that wait for others sleep. By default they spin, so they keep cores busy, and where other programs
# use the cores too, the thread that has work gets none. OpenMP reads the variable when torch is imported.
if "torch" not in sys.modules:
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# This file runs before the command line takes over the signals, so it imports only what every Python has imported already.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Imported when asked for: `tfm --help` must not wait for PyTorch.
_PUBLIC = {
    "TfmError": "transformer_cli.process.errors",
    "InterruptedBySignal": "transformer_cli.process.errors",
    "Config": "transformer_cli.config",
    "DecodingConfig": "transformer_cli.config",
    "load_config": "transformer_cli.config",
    "Tokenizer": "transformer_cli.text.tokenizer",
    "Transformer": "transformer_cli.model.transformer",
    "Translator": "transformer_cli.decoding",
    "load_translator": "transformer_cli.decoding.loading",
    "score_corpus": "transformer_cli.evaluation.metrics",
    "Callback": "transformer_cli.training.callbacks",
    "TrainedRun": "transformer_cli.training.run",
    "train": "transformer_cli.training.run",
}
__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    """The public names, for the Tab key of notebooks."""
    return [*globals(), *_PUBLIC]
