"""The files of a run on disk: the layout of its folder, its checkpoints, and a model loaded from them."""

from transformer_cli.checkpoint.checkpoints import Checkpoints
from transformer_cli.checkpoint.listing import list_checkpoints
from transformer_cli.checkpoint.portable import portable_config, portable_files
from transformer_cli.checkpoint.rotation import Retention
from transformer_cli.checkpoint.run_folder import CHECKPOINTS, CONFIG_FILE, RUNS, RunFolder
from transformer_cli.checkpoint.runs import find_run
from transformer_cli.checkpoint.stored import Checkpoint, Snapshot, open_checkpoint
from transformer_cli.checkpoint.trained_model import (
    TrainedModel,
    load_tokenizers,
    load_trained,
)
from transformer_cli.storage import RunLock

__all__ = [
    "CHECKPOINTS",
    "CONFIG_FILE",
    "RUNS",
    "Checkpoint",
    "Checkpoints",
    "Retention",
    "RunFolder",
    "RunLock",
    "Snapshot",
    "TrainedModel",
    "find_run",
    "list_checkpoints",
    "load_tokenizers",
    "load_trained",
    "open_checkpoint",
    "portable_config",
    "portable_files",
]
