"""The settings that `--set` can change for a trained model, and the commands on which they have an effect."""

from typing import Literal, get_args

from transformer_cli.config.overrides import overridden_setting
from transformer_cli.config.refusal import setting_paths, similar_setting
from transformer_cli.process.errors import ConfigError

Command = Literal[
    "translate",
    "serve",
    "validate",
    "validate --source",
    "next",
    "likelihood",
    "align",
    "explain",
    "benchmark --decode",
]
_ALL: tuple[Command, ...] = get_args(Command)
# What `--set` can change for a trained model: settings, or sections of them, and the commands on which they have
# an effect. For each setting the longest matching name counts. Settings without a match are for training only.
OVERRIDABLE: dict[str, tuple[Command, ...]] = {
    "decoding": (
        "translate",
        "serve",
        "validate",
        "validate --source",
        "explain",
        "benchmark --decode",
    ),
    "decoding.engine": ("translate", "serve", "validate", "validate --source"),
    "decoding.keep_layout": (
        "translate",
        "serve",
        "validate",
        "validate --source",
        "benchmark --decode",
    ),
    "decoding.keep_text": (
        "translate",
        "serve",
        "validate",
        "validate --source",
        "benchmark --decode",
    ),
    "decoding.num_best": ("translate", "explain"),
    "decoding.batch_tokens": (
        "translate",
        "serve",
        "validate",
        "validate --source",
        "likelihood",
        "benchmark --decode",
    ),
    "decoding.sampling": ("translate", "serve", "validate", "validate --source"),
    "decoding.mbr": ("translate", "serve", "validate", "validate --source"),
    "decoding.diversity": ("translate", "serve", "validate", "validate --source"),
    "runtime.device": _ALL,
    "runtime.precision": _ALL,
    "runtime.threads": _ALL,
    "data.root": ("validate", "benchmark --decode"),
    "validation.max_sentences": ("validate", "validate --source"),
    "validation.scores": ("validate", "validate --source"),
    "validation.num_samples": ("validate", "validate --source"),
    "validation.sequence_lengths": ("validate",),
}
# Settings of the validations during training, and the settings that replace them in `tfm validate`.
INSTEAD = {"validation.beam_size": "decoding.beam_size"}


def commands_that_take(setting: str) -> tuple[Command, ...]:
    """The commands on which an override of this setting has an effect; none for settings of the training."""
    known = [name for name in OVERRIDABLE if f"{setting}.".startswith(f"{name}.")]
    # A whole section is refused: the settings that it does not name would get their defaults.
    return OVERRIDABLE[max(known, key=len)] if known and "." in setting else ()


def overridable_setting(override: str, command: Command) -> str:
    """The name of the setting that an override such as decoding.beam_size=8 changes.

    Raises:
        ConfigError: it is no setting, a trained model cannot change it, or it has no effect on the command.
    """
    setting = overridden_setting(override)
    commands = commands_that_take(setting)
    if command in commands:
        return setting
    sections = [name for name in OVERRIDABLE if "." not in name and command in OVERRIDABLE[name]]
    single = [
        name
        for name, takers in OVERRIDABLE.items()
        if command in takers and name.partition(".")[0] not in sections
    ]
    taken = ", ".join([*(f"{section}.*" for section in sections), *single])
    hint = f"tfm {command} takes {taken}"
    if setting in INSTEAD:
        problem = "this setting is for the validations during training"
        if command in commands_that_take(INSTEAD[setting]):
            hint = f"tfm {command} takes {INSTEAD[setting]} instead"
    elif commands:
        problem = f"this setting has no effect on tfm {command}"
        others = [name for name in commands if not ("validate" in commands and " " in name)]
        *first, last = (f"tfm {name}" for name in others)
        listed = f"{', '.join(first)} and {last}" if first else last
        hint = f"it has one on {listed}; {hint}"
    else:
        problem = "this setting cannot be changed for a trained model"
        if setting not in {*setting_paths(), *setting_paths({"source": "files"})}:
            problem = "this is not a setting"
            known = [path for path in setting_paths() if command in commands_that_take(path)]
            meant = similar_setting(setting.split("."), known)
            hint = f"did you mean {meant}?" if meant else hint
    raise ConfigError(f"--set {override}: {problem}", hint=hint)
