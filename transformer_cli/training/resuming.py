"""Whether a run may go on with a changed config: harmless changes are taken, harmful ones refused."""

import json
from collections.abc import Sequence
from typing import Any

from transformer_cli.config import Config
from transformer_cli.config.flat_settings import flat_settings
from transformer_cli.errors import ConfigError

# A change of these does not change what the steps already done would have been.
HARMLESS = (
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
    """What changed, one line each, if a run of `before` may go on as `now`.

    Args:
        accept_data_change: other corpora and other cleaning are harmless too.

    Raises:
        ConfigError: a changed setting would make it another experiment; names old and new values.
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
            "or put the old run aside with --from-scratch",
        )
    return [_change(key, old, new) for key in changed]


def _is_harmless(key: str, now: Config, harmless: Sequence[str]) -> bool:
    if key == "training.max_steps" and now.training.schedule == "cosine":
        return False  # the curve ends at max_steps, so every step would have been another
    return any(key == prefix or key.startswith(prefix + ".") for prefix in harmless)


def _reason(key: str) -> str:
    return " (the cosine curve ends there)" if key == "training.max_steps" else ""


def _change(key: str, old: dict[str, Any], new: dict[str, Any]) -> str:
    return f"{key}: was {_as_written(old.get(key))}, now {_as_written(new.get(key))}"


def _as_written(value: Any) -> str:
    """As it stands in a config."""
    if value is None:
        return "absent"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
