"""The settings that `--set` can change for a trained model, and the commands on which they have an effect."""

from typing import Literal

Command = Literal[
    "translate", "validate", "validate --source", "next", "likelihood", "benchmark --decode"
]
_ALL: tuple[Command, ...] = (
    "translate",
    "validate",
    "validate --source",
    "next",
    "likelihood",
    "benchmark --decode",
)
# What `--set` can change for a trained model: settings, or sections of them, and the commands on which they have
# an effect. For each setting the longest matching name counts. Settings without a match are for training only.
OVERRIDABLE: dict[str, tuple[Command, ...]] = {
    "decoding": ("translate", "validate", "validate --source", "benchmark --decode"),
    "decoding.num_best": ("translate",),
    "decoding.batch_tokens": (
        "translate",
        "validate",
        "validate --source",
        "likelihood",
        "benchmark --decode",
    ),
    "decoding.sampling": ("translate", "validate", "validate --source"),
    "decoding.mbr": ("translate", "validate", "validate --source"),
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
