"""The files of a run on disk: the layout of its folder, its checkpoints, and a model loaded from them."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformer_cli.checkpoint.checkpoints import Checkpoints as Checkpoints
    from transformer_cli.checkpoint.checkpoints import portable_config as portable_config
    from transformer_cli.checkpoint.checkpoints import portable_files as portable_files
    from transformer_cli.checkpoint.run_folder import Checkpoint as Checkpoint
    from transformer_cli.checkpoint.run_folder import Retention as Retention
    from transformer_cli.checkpoint.run_folder import Snapshot as Snapshot
    from transformer_cli.checkpoint.run_folder import list_checkpoints as list_checkpoints
    from transformer_cli.checkpoint.run_folder import open_checkpoint as open_checkpoint
    from transformer_cli.checkpoint.trained_files import TrainedFiles as TrainedFiles
    from transformer_cli.checkpoint.trained_files import TrainedModel as TrainedModel
    from transformer_cli.checkpoint.trained_files import find_run as find_run
    from transformer_cli.checkpoint.trained_files import (
        find_run_or_demonstration as find_run_or_demonstration,
    )
    from transformer_cli.checkpoint.trained_files import first_usable as first_usable
    from transformer_cli.checkpoint.trained_files import load_trained as load_trained
    from transformer_cli.checkpoint.trained_files import load_weights as load_weights
    from transformer_cli.checkpoint.trained_files import read_files as read_files
    from transformer_cli.checkpoint.trained_files import tokenizers_of as tokenizers_of

# Imported when asked for: `tfm runs` must not wait for PyTorch.
_MODULES = {
    "Checkpoints": "checkpoints",
    "list_checkpoints": "run_folder",
    "portable_config": "checkpoints",
    "portable_files": "checkpoints",
    "Retention": "run_folder",
    "find_run": "trained_files",
    "find_run_or_demonstration": "trained_files",
    "Checkpoint": "run_folder",
    "Snapshot": "run_folder",
    "open_checkpoint": "run_folder",
    "TrainedFiles": "trained_files",
    "first_usable": "trained_files",
    "tokenizers_of": "trained_files",
    "read_files": "trained_files",
    "TrainedModel": "trained_files",
    "load_trained": "trained_files",
    "load_weights": "trained_files",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
