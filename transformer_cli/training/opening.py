"""Opening a run: its newest checkpoint or its initial weights, its data, and its records on disk."""

import json
import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

from transformer_cli.acceleration.native_kernels import kernel_level
from transformer_cli.checkpoint import Checkpoint, Checkpoints, load_tokenizers
from transformer_cli.checkpoint.run_folder import CONFIG_FILE, RunFolder
from transformer_cli.checkpoint.stored import IMPORTED
from transformer_cli.config import Config, load_stored_config, to_yaml
from transformer_cli.data.preparation import PreparedData, prepare_data, take_over
from transformer_cli.data.sources.corpus import is_streaming
from transformer_cli.data.streaming import require_shareable
from transformer_cli.process.device import Machine, environment
from transformer_cli.process.errors import ConfigError
from transformer_cli.process.memory import return_freed_memory
from transformer_cli.storage import replace_file
from transformer_cli.training.batch_size import with_fitting_batches, with_recorded_batches
from transformer_cli.training.config_changes import (
    accept_changes,
    refuse_passed_limits,
    with_recorded_cleaning,
)
from transformer_cli.training.initial_weights import (
    INIT_FROM,
    InitialModel,
    checked_origin,
    load_initial_model,
)
from transformer_cli.training.processes.process_group import Processes
from transformer_cli.training.processes.sharing import data_of_main, require_same_settings
from transformer_cli.training.progress import Progress, is_finished
from transformer_cli.training.session import TrainingSession

logger = logging.getLogger(__name__)


def open_run(
    folder: RunFolder,
    config: Config,
    machine: Machine,
    processes: Processes,
    *,
    from_scratch: bool,
    accept_data_change: bool,
) -> TrainingSession:
    """The session of a run that starts or goes on; rank 0 writes the files of the run.

    Raises:
        ConfigError: a setting has changed, so that this would be another experiment; or the processes have
            different settings.
        DataError: the corpus cannot be used, or has changed.
    """
    require_same_settings(config, processes, from_scratch=from_scratch)
    # Before the earlier checkpoints are moved away: without the other run, this one cannot start again.
    initial = load_initial_model(config, folder.path) if from_scratch else None
    _require_learnable_tokenizers(folder, config, is_new=from_scratch or not folder.is_begun())
    if processes.is_main:
        Checkpoints(folder.path).sweep()
        if from_scratch:
            _set_aside(folder)
    try:
        return _opened(folder, config, machine, processes, initial, accept_data_change)
    except BaseException:
        if processes.is_main and from_scratch:  # the earlier run is put back
            Checkpoints(folder.path).sweep()
        raise


def _opened(
    folder: RunFolder,
    config: Config,
    machine: Machine,
    processes: Processes,
    initial: InitialModel | None,
    accept_data_change: bool,
) -> TrainingSession:
    newest = Checkpoints(folder.path).newest_valid() if processes.is_main else None
    if newest is not None and IMPORTED in newest.state():
        raise _refusal_to_continue(folder, config)
    [has_begun] = processes.any_of(newest is not None)
    if has_begun:
        config = with_recorded_cleaning(config, _recorded_config(folder))
    trains_on = newest is None or not is_finished(_progress_of(newest), config.training)
    if has_begun and folder.config_file.exists():
        before = load_stored_config(folder.config_file)
        config = with_recorded_batches(config, before)
        if newest is not None:
            changes = accept_changes(
                before, config, step=newest.step, accept_data_change=accept_data_change
            )
            refuse_passed_limits(before, config, _progress_of(newest))
            what = "changed since the last command" if trains_on else "not recorded, because the run is finished"  # fmt: skip
            for change in changes:
                logger.info("%s: %s", what, change, extra={"is_no_record": not trains_on})
    if not has_begun:
        if is_streaming(config.data):  # before the corpus is read
            num_batches = config.training.accumulate * processes.size
            require_shareable(config.data, num_batches, processes.size)
        initial = initial or load_initial_model(config, folder.path)
    origin = initial.origin if initial else checked_origin(newest)
    prepare = partial(_prepared_data, folder, config, newest, initial, accept_data_change)
    data = data_of_main(prepare, config, folder, processes)
    return_freed_memory()
    config = with_fitting_batches(config, data, machine, processes)
    session = TrainingSession.open(folder, config, data, machine, processes, initial=initial)
    session.origin = origin
    # Nothing was refused; but a command that trains nothing leaves the records of the updates as they are.
    if processes.is_main and (trains_on or not folder.config_file.exists()):
        record_run(folder, session)
    return session


def _recorded_config(folder: RunFolder) -> Config:
    """The config of a run that has a checkpoint; from the checkpoint if the file of the run was lost."""
    if folder.config_file.exists():
        return load_stored_config(folder.config_file)
    newest = Checkpoints(folder.path).newest_valid()
    assert newest is not None
    return load_stored_config(newest.folder / CONFIG_FILE)


def record_run(folder: RunFolder, session: TrainingSession) -> None:
    """Write the config and the environment of a run, which the main process does when its model changes."""
    machine, size = session.experiment.machine, session.experiment.worker.processes.size
    _describe(folder, session.data, machine, size, session.origin)
    # Last: a run has started when it has a config.
    replace_file(folder.config_file, to_yaml(session.config).encode())


def _require_learnable_tokenizers(folder: RunFolder, config: Config, *, is_new: bool) -> None:
    if is_new and config.tokenizer.kind == "sentencepiece" and config.training.init_from is None:
        raise ConfigError(
            f"{folder.path}: tokenizer.kind: sentencepiece is not learned: it belongs to an imported model",
            hint="set training.init_from to the imported run, or another tokenizer.kind, such as unigram",
        )


def _refusal_to_continue(folder: RunFolder, config: Config) -> ConfigError:
    changes = f"--set name={config.name}-tuned --set training.init_from={config.name}"
    return ConfigError(
        f"{folder.path}: this run was imported, so its training cannot go on",
        hint=f"fine-tune it in a new run: tfm train --config {folder.config_file} {changes}",
    )


def _set_aside(folder: RunFolder) -> None:
    """Rename the files of an earlier run, so that a new one can start."""
    place = Checkpoints(folder.path).move_away(along=[path.name for path in folder.records()])
    if place is not None:
        logger.info("the earlier checkpoints are now in %s", place)


def _prepared_data(
    folder: RunFolder,
    config: Config,
    newest: Checkpoint | None,
    initial: InitialModel | None,
    accept_data_change: bool,
) -> PreparedData:
    """The data that the newest checkpoint was trained on, or newly prepared data."""
    tokenizers = initial.tokenizers if initial else None
    if newest is None:
        take_over(config, folder.data_folder, folder.path.parent)
    data = prepare_data(
        config,
        folder.data_folder,
        accept_change=accept_data_change,
        has_begun=newest is not None,
        is_finished=newest is not None and is_finished(_progress_of(newest), config.training),
        tokenizers=load_tokenizers(newest) if newest else tokenizers,
    )
    if newest is None or accept_data_change:
        for line in data.report.lines():
            logger.info("%s", line, extra={"is_table": True})
    return data


def _progress_of(checkpoint: Checkpoint) -> Progress:
    return Progress.from_json(checkpoint.training_state().part("progress"))


def _describe(
    folder: RunFolder,
    data: PreparedData,
    machine: Machine,
    num_processes: int,
    origin: Mapping[str, Any],
) -> None:
    described = environment(kernel_level()) | {
        "device": machine.describe(),
        "processes": num_processes,
        "data": dict(data.fingerprint),
    }
    described |= {INIT_FROM: dict(origin)} if origin else {}
    replace_file(folder.environment_file, json.dumps(described, indent=1).encode())
