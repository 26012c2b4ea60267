"""`tfm train`: from a config to a trained run, or on from where the run stopped."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path

from transformer_cli.checkpoint import Checkpoints, Retention, RunLock, load_tokenizers
from transformer_cli.checkpoint.run_folder import CONFIG_FILE, RUNS
from transformer_cli.commands.summary import tell_summary
from transformer_cli.config import Config, SequencesData, load_config, to_yaml
from transformer_cli.data.preparation import PreparedData, prepare_data
from transformer_cli.errors import InterruptedBySignal
from transformer_cli.messages import log_to_file
from transformer_cli.runtime import Machine, environment, prepare_machine, signals_as_requests
from transformer_cli.storage import make_folders, replace_file
from transformer_cli.training.loop import train
from transformer_cli.training.progress import is_finished, limits_reached
from transformer_cli.training.resuming import accept_changes
from transformer_cli.training.session import TrainingSession
from transformer_cli.training.watchdog import Watchdog

logger = logging.getLogger(__name__)


def run_training(
    config_path: str, overrides: Sequence[str], *, from_scratch: bool, accept_data_change: bool
) -> None:
    """Train, or continue the run of the same name; ends with a saved checkpoint.

    Raises:
        ConfigError: the config is wrong, or harmfully different from the run's.
        DataError: the corpus cannot be used, or is not what it was.
        InterruptedBySignal: asked to stop; the state is saved.
    """
    config = load_config(config_path, overrides)
    machine = prepare_machine(config.runtime)
    run_folder = RUNS / config.name
    make_folders(run_folder)
    with RunLock(run_folder), log_to_file(run_folder / "train.log"):
        checkpoints = Checkpoints(run_folder, Retention.of(config.training))
        checkpoints.sweep()
        if from_scratch:
            _put_aside(checkpoints)
        newest = checkpoints.newest_valid()
        if newest is not None:
            _accept_changes(run_folder, config, accept_data_change=accept_data_change)
        data = prepare_data(
            config,
            run_folder / "data",
            accept_change=accept_data_change,
            has_begun=newest is not None,
            tokenizers=load_tokenizers(newest) if newest else None,
        )
        if newest is None or accept_data_change:
            for line in data.report.lines():
                logger.info("%s", line)
        replace_file(run_folder / CONFIG_FILE, to_yaml(config).encode())
        _train_in(run_folder, config, data, machine)


def _put_aside(checkpoints: Checkpoints) -> None:
    """The old checkpoints stay on disk under another name; the rest of the run is made anew."""
    place = checkpoints.move_away(along=("metrics.jsonl", "tensorboard", "data", CONFIG_FILE))
    if place is not None:
        logger.info("the earlier checkpoints are now in %s", place)


def _accept_changes(run_folder: Path, config: Config, *, accept_data_change: bool) -> None:
    """Tell what changed in the settings since the run began; refuse what is harmful."""
    earlier = run_folder / CONFIG_FILE
    if earlier.exists():
        before = load_config(earlier)
        for change in accept_changes(before, config, accept_data_change=accept_data_change):
            logger.info("changed since the run began: %s", change)


def _train_in(run_folder: Path, config: Config, data: PreparedData, machine: Machine) -> None:
    described = environment() | {"device": machine.describe(), "data": dict(data.fingerprint)}
    replace_file(run_folder / "environment.json", json.dumps(described, indent=1).encode())
    session = TrainingSession.open(run_folder, config, data, machine)
    if is_finished(session.progress, config.training):
        tell_summary(run_folder, config)
        reached = ", ".join(limits_reached(session.progress, config.training))
        is_for_good = config.training.schedule == "cosine"  # whose curve ends at max_steps
        go_on = "To train longer, take another name" if is_for_good else "To go on, raise that"
        logger.info(
            "%s is finished: %d steps, %s. %s; to begin anew, --from-scratch",
            run_folder, session.progress.step, reached, go_on,
        )  # fmt: skip
        return
    with (
        signals_as_requests() as request,
        session.console(),
        session.experiment.updates,
        Watchdog(config.runtime.stuck_after_seconds) as watchdog,
    ):
        hooks = session.hooks(lambda: request.signal_number is not None, watchdog.alive)
        progress = train(session.experiment, session.progress, session.meter, hooks)
    if request.signal_number is not None and not is_finished(progress, config.training):
        raise InterruptedBySignal(
            request.signal_number, f"stopped and saved at step {progress.step}"
        )
    tell_summary(run_folder, config)
    logger.info("finished after %d steps: %s", progress.step, run_folder)
    source = data.validation[0].source if isinstance(config.data, SequencesData) else "a sentence"
    logger.info(
        "next: tfm translate --run %s '%s', or tfm validate --run %s",
        config.name,
        source,
        config.name,
    )
