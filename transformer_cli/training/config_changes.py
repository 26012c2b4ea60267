"""Whether a run may be resumed with a changed config: harmless changes are accepted, harmful ones refused."""

import json
from collections.abc import Sequence
from typing import Any

from transformer_cli.config import Config
from transformer_cli.config.flat_settings import flat_settings
from transformer_cli.errors import ConfigError

# These settings do not influence the updates done so far, so they may change when a run is resumed.
HARMLESS = (
    "name",  # the folder of the run was renamed or copied
    "training.max_steps",
    "training.max_epochs",
    "training.log_every",
    "training.validate_every",
    "training.save_every",
    "training.keep_last",
    "training.patience",
    "training.max_skipped_in_a_row",
    "validation",
    "decoding",
    "runtime",
    "published",
    "data.root",
    "data.cleaning.max_dropped_share",
)


def accept_changes(before: Config, now: Config, *, accept_data_change: bool = False) -> list[str]:
    """Compare the config of a run with the one that it is resumed with; return the changes, one line each.

    Args:
        accept_data_change: whether changes of corpora and cleaning count as harmless.

    Raises:
        ConfigError: a changed setting would make this another experiment.
    """
    old, new = (flat_settings(config.model_dump(mode="json")) for config in (before, now))
    changed = [key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)]
    harmless = (*HARMLESS, "data") if accept_data_change else HARMLESS
    harmful = [key for key in changed if not _is_harmless(key, now, harmless)]
    if harmful:
        lines = "".join(f"\n    {_change(key, old, new)}{_reason(key)}" for key in harmful)
        raise ConfigError(
            f"runs/{now.name}: this run was started with other settings:{lines}",
            hint="undo the change, give the new experiment its own name (--set name=...), "
            "or start this run again with --from-scratch",
        )
    return [_change(key, old, new) for key in changed]


def _is_harmless(key: str, now: Config, harmless: Sequence[str]) -> bool:
    if key == "training.max_steps" and now.training.schedule == "cosine":
        # The cosine curve ends at max_steps, so the learning rate of every past step depends on it.
        return False
    return any(key == prefix or key.startswith(prefix + ".") for prefix in harmless)


def _reason(key: str) -> str:
    return " (the cosine curve ends there)" if key == "training.max_steps" else ""


def _change(key: str, old: dict[str, Any], new: dict[str, Any]) -> str:
    return f"{key}: was {_as_written(old.get(key))}, now {_as_written(new.get(key))}"


def _as_written(value: Any) -> str:
    """A value as config text."""
    if value is None:
        return "absent"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
