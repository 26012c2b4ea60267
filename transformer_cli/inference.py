"""A trained run, made ready for translating and scoring."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transformer_cli.checkpoint import CHECKPOINTS, TrainedModel, find_run, load_trained
from transformer_cli.config import Config, load_config
from transformer_cli.config.loading import override_settings
from transformer_cli.decoding.translator import Translator
from transformer_cli.runtime import Machine, prepare_machine

logger = logging.getLogger(__name__)

RUNS = Path("runs")
CONFIG_FILE = "config.yaml"
OVERRIDABLE = ("decoding.", "runtime.", "data.root=", "validation.")


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """What a command needs of a run."""

    trained: TrainedModel
    config: Config  # the run's, with this command's overrides
    translator: Translator
    machine: Machine


def load_for_inference(run: str | None, overrides: Sequence[str]) -> LoadedRun:
    """The named run or checkpoint, or the newest usable run, with its best checkpoint.

    Raises:
        MissingInputError: there is no such run.
        ConfigError: an override of what a trained model cannot change.
    """
    folder = find_run(run, RUNS)
    trained = load_trained(folder)
    config = override_settings(_with_own_paths(trained), overrides, allowed=OVERRIDABLE)
    machine = prepare_machine(config.runtime)
    logger.info("%s, step %d (%s)", trained.folder, trained.step, machine.describe())
    model = trained.model.to(machine.device)
    translator = Translator(
        model,
        trained.source_tokenizer,
        trained.target_tokenizer,
        config.decoding,
        config.data,
        machine,
    )
    return LoadedRun(trained, config, translator, machine)


def run_folder_of(checkpoint: Path) -> Path | None:
    """The run that a checkpoint lies in; none for one that was copied elsewhere."""
    run_folder = checkpoint.absolute().parent.parent
    is_in_run = checkpoint.absolute().parent == run_folder / CHECKPOINTS
    return checkpoint.parent.parent if is_in_run else None


def _with_own_paths(trained: TrainedModel) -> Config:
    """The checkpoint's config; of a checkpoint in a run, with the corpora as that run's config names them."""
    run_folder = run_folder_of(trained.folder)
    if run_folder is None or not (run_folder / CONFIG_FILE).is_file():
        return trained.config
    return trained.config.model_copy(update={"data": load_config(run_folder / CONFIG_FILE).data})
