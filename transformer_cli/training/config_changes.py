"""Whether a run may be resumed with a changed config: harmless changes are accepted, harmful ones refused."""

import json
import logging
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from transformer_cli.checkpoint.checkpoints import Checkpoints, portable_config
from transformer_cli.checkpoint.limits import is_finished
from transformer_cli.checkpoint.run_folder import CONFIG_FILE, Checkpoint, RunFolder
from transformer_cli.config import Config, TrainingConfig, load_stored_config
from transformer_cli.config.schema import ENDS_AT_MAX_STEPS
from transformer_cli.config.section import flat_settings
from transformer_cli.process.errors import ConfigError
from transformer_cli.training.batch_size import with_recorded_batches
from transformer_cli.training.loop import Progress
from transformer_cli.training.optimizers import last_stable_step

logger = logging.getLogger(__name__)

# These settings do not influence the updates done so far, so they may change when a run is resumed.
HARMLESS = (
    "name",  # the folder of the run was renamed or copied
    "training.max_steps",
    "training.max_epochs",
    "training.max_minutes",
    "training.log_every",
    "training.validate_every",
    "training.save_every",
    "training.keep_last",
    "training.average_last",
    "training.average_of",
    "training.patience",
    "training.max_skipped_in_a_row",
    "validation",
    "decoding",
    "runtime",
    "published",
    "data.root",
    "data.cleaning.max_dropped_share",
)
# The position in a stream has a part for each of these, so it has no meaning after a change.
_FIXED = ("data.stream_parts",)
# What the config says of a corpus for the model card changes no pair.
_SAID_OF_A_CORPUS = re.compile(r"data\.corpora\.\d+\.(origin|license)\b")
# With some schedules, past learning rates depend on these.
_SETTINGS_OF_RATES = ("training.max_steps", "training.decay_steps")
# The fields that say where a corpus lies.
_PLACES = ("path", "source_path", "target_path", "alignment_path", "dataset", "config", "data_files")


# Of the settings of a search, those with which a validation finds the same translations.
_WITHOUT_EFFECT = {"engine", "batch_tokens", "keep_text", "repair", "shortlist"}


def accepted_config(
    folder: RunFolder, config: Config, newest: Checkpoint | None, *, accept_data_change: bool
) -> Config:
    """The config with which a run that has begun goes on; the main process logs what has changed.

    Args:
        newest: its newest checkpoint; None in the other processes.
    """
    before = _recorded_config(folder, newest)
    config = with_recorded_batches(with_recorded_cleaning(_with_recorded_graphs(config, before), before), before)
    if newest is not None:
        progress = Progress.from_json(newest.training_state().part("progress"))
        trains_on = not is_finished(progress, config.training)
        # The config of a checkpoint has only the last part of each path.
        now = config if folder.config_file.exists() else portable_config(config)
        changes = accept_changes(before, now, step=newest.step, accept_data_change=accept_data_change)
        refuse_passed_limits(before, config, progress)
        what = "changed since the last command" if trains_on else "not recorded, because the run is finished"
        for change in changes:
            logger.info("%s: %s", what, change, extra={"is_no_record": not trains_on})
        if trains_on and progress.best_goodness and _scores_change(before, config):
            logger.warning(
                "validations are now of other sentences, or of another search, than until now, so the scores before and after step %d "
                "cannot be compared: which checkpoint is the best, and training.patience, may be chance; tfm validate --run with the "
                "folder of a checkpoint measures it anew",
                progress.step,
            )
    return config


def _scores_change(before: Config, now: Config) -> bool:
    """Whether a validation gives the same model another score than until now."""
    if before.validation.max_sentences != now.validation.max_sentences:
        return True
    if now.training.best_metric in ("loss", "perplexity"):
        return False
    searches = [
        one.decoding.best_of_beam(one.validation.beam_size).model_dump(exclude=_WITHOUT_EFFECT) for one in (before, now)
    ]
    return searches[0] != searches[1]


def _recorded_config(folder: RunFolder, newest: Checkpoint | None) -> Config:
    """The config of a run that has a checkpoint; from the checkpoint if the file of the run was lost."""
    if folder.config_file.exists():
        return load_stored_config(folder.config_file)
    newest = newest or Checkpoints(folder.path).newest_valid()  # None: the main process looked for it
    assert newest is not None
    return load_stored_config(newest.folder / CONFIG_FILE)


def accept_changes(before: Config, now: Config, *, step: int = 0, accept_data_change: bool = False) -> list[str]:
    """Compare the config of a run with the one that it is resumed with; return the changes, one line each.

    Args:
        before: the config of the run.
        now: the config that it is resumed with.
        step: number of updates done so far.
        accept_data_change: whether changes of corpora and cleaning count as harmless.

    Raises:
        ConfigError: a changed setting would make this another experiment.
    """
    changes = _changes(before, now)
    harmless = (*HARMLESS, "data") if accept_data_change else HARMLESS
    past = _PastRates(before.training, now.training, step)
    harmful = [key for key in changes if not _is_harmless(key, past, harmless)]
    if harmful:
        lines = "".join(f"\n    {changes[key]}{past.reason(key)}" for key in harmful)
        raise ConfigError(f"runs/{now.name}: this run was started with other settings:{lines}", hint=_hint(harmful))
    return list(changes.values())


def _with_recorded_graphs(config: Config, recorded: Config) -> Config:
    """The config of a resumed run, which records passes as it began to, where the config does not say otherwise: dropout draws other masks then."""
    if "cuda_graphs" in config.runtime.model_fields_set:
        return config
    runtime = config.runtime.model_copy(update={"cuda_graphs": recorded.runtime.cuda_graphs})
    return config.model_copy(update={"runtime": runtime})


def with_recorded_cleaning(config: Config, recorded: Config) -> Config:
    """The config of a resumed run, which cleans as it began where the config does not say otherwise.

    Runs of earlier versions began without these rules, whose defaults are for new runs.
    """
    rules = config.data.cleaning
    later = {"normalize_invisible", "join_white_space"} - rules.model_fields_set
    if not later:
        return config
    update = {rule: getattr(recorded.data.cleaning, rule) for rule in later}
    data = config.data.model_copy(update={"cleaning": rules.model_copy(update=update)})
    return config.model_copy(update={"data": data})


def refuse_passed_limits(before: Config, now: Config, progress: Progress) -> None:
    """Refuse a new limit that the run has passed already: no config would make this model with such a limit.

    Raises:
        ConfigError: a limit differs from that of the run, and more was done than it allows.
    """
    num_epochs, *begun = progress.position.numbers()
    done = {
        "max_steps": (progress.step, "updates are done"),
        "max_epochs": (num_epochs + any(begun), "epochs are done or begun"),
        "patience": (progress.validations_without_best, "validations in a row had no new best score"),
    }
    passed = [
        f"\n    training.{name}: {limit:,}, and {done[name][0]:,} {done[name][1]}"
        for name in done
        if (limit := getattr(now.training, name)) not in (None, getattr(before.training, name))
        and limit < done[name][0]
    ]
    if passed:
        raise ConfigError(
            f"runs/{now.name}: this run has gone further than its new limit:{''.join(passed)}",
            hint="undo the change, give the new experiment its own name (--set name=...), "
            "or start this run again with --from-scratch",
        )


def _hint(harmful: Sequence[str]) -> str:
    about_data = [key.startswith("data.") for key in harmful]
    new_run = "give the new experiment its own name (--set name=...), or start this run again with --from-scratch"
    if any(key in _FIXED for key in harmful):
        return f"undo the change, {new_run}"
    if all(about_data):
        return f"undo the change, continue with the changed data (--accept-data-change), {new_run}"
    others = "; --accept-data-change is for the changes under data alone" if any(about_data) else ""
    return f"undo the change, {new_run}{others}"


def _changes(before: Config, now: Config) -> dict[str, str]:
    """Map the name of each setting that differs to a line with both values."""
    old, new = (config.model_dump(mode="json") for config in (before, now))
    corpora = [values["data"].pop("corpora", None) for values in (old, new)]
    flat_old, flat_new = flat_settings(old), flat_settings(new)
    changes = {
        key: f"{key}: {_was_and_is(flat_old.get(key), flat_new.get(key))}"
        for key in sorted(flat_old.keys() | flat_new.keys())
        if flat_old.get(key) != flat_new.get(key)
    }
    if "compile" not in now.runtime.model_fields_set:
        changes.pop("runtime.compile", None)  # a default that was another one in earlier versions
    if all(corpora):
        changes |= _corpora_changes(*corpora)
    elif any(corpora):
        changes["data.corpora"] = "data.corpora: " + ("is gone" if corpora[0] else "is new")
    return changes


def _is_harmless(key: str, past: "_PastRates", harmless: Sequence[str]) -> bool:
    if key in _SETTINGS_OF_RATES and past.is_of_stable_phase():
        return True
    if _SAID_OF_A_CORPUS.match(key):
        return True
    if past.reason(key) or key in _FIXED:
        return False
    return any(key == prefix or key.startswith(prefix + ".") for prefix in harmless)


class _PastRates(NamedTuple):
    """The learning rates of past updates, which a changed setting must not alter."""

    before: TrainingConfig
    now: TrainingConfig
    step: int

    def is_of_stable_phase(self) -> bool:
        """Whether all past updates of a warm-up-stable-decay run are before the decay, in the old and the new config.

        The rates of such updates do not depend on where the decay begins, so the run may be made longer.
        """
        configs = self.before, self.now
        return all(one.schedule == "warmup_stable_decay" and self.step <= last_stable_step(one) for one in configs)

    def reason(self, key: str) -> str:
        """Why a changed setting would alter past learning rates; empty if it would not."""
        schedule = self.now.schedule
        if key not in _SETTINGS_OF_RATES or schedule not in ENDS_AT_MAX_STEPS:
            return ""
        if schedule != "warmup_stable_decay" or self.before.schedule != schedule:
            return f" (the learning rate of each past step depends on it, with schedule: {schedule})"
        begins_at = min(last_stable_step(self.before), last_stable_step(self.now))
        return (
            f" (with schedule: {schedule} it may change up to step {begins_at:,}, before the learning rate "
            f"falls; the run is at step {self.step:,})"
        )


def _corpora_changes(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> dict[str, str]:
    """As `_changes`, for two lists of corpora; a corpus that only moved in the list is still the same one."""
    old, new = _by_place(before), _by_place(now)
    renamed = {
        place: other
        for (place, (_, was)), (other, (_, is_now)) in zip(old.items(), new.items(), strict=False)
        if place not in new and other not in old and _given_places(was) == _given_places(is_now)
    }
    old = {renamed.get(place, place): item for place, item in old.items()}
    changes: dict[str, str] = {}
    orders = [[place for place in one if place in other] for one, other in ((old, new), (new, old))]
    if orders[0] != orders[1]:
        was, is_now = (", ".join(places) for places in orders)
        changes["data.corpora"] = f"data.corpora: was in the order {was}; now {is_now}"
    for place in {**old, **new}:
        if place not in new or place not in old:
            index, _ = (old | new)[place]
            what = "is new" if place in new else "is gone"
            changes[f"data.corpora.{index} ({place})"] = f"data.corpora.{index}: {place} {what}"
            continue
        (_, had), (index, has) = old[place], new[place]
        name = "" if place in renamed.values() else f" ({place})"
        for field in (field for field in {**had, **has} if had.get(field) != has.get(field)):
            key = f"data.corpora.{index}.{field}{name}"
            changes[key] = f"{key}: {_was_and_is(had.get(field), has.get(field))}"
    return changes


def _by_place(corpora: list[dict[str, Any]]) -> dict[str, tuple[int, dict[str, Any]]]:
    """Map the path or the data set of each corpus to its index and its settings."""
    found: dict[str, tuple[int, dict[str, Any]]] = {}
    for index, corpus in enumerate(corpora):
        place = " + ".join(corpus[field] for field in _given_places(corpus))
        found[f"{place} (number {index})" if place in found else place] = index, corpus
    return found


def _given_places(corpus: dict[str, Any]) -> list[str]:
    return [field for field in _PLACES if corpus.get(field) is not None]


def _was_and_is(old: Any, new: Any) -> str:
    return f"was {as_written(old)}, now {as_written(new)}"


def as_written(value: Any) -> str:
    """A value as config text."""
    if value is None:
        return "absent"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
