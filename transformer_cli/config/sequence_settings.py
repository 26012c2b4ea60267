"""The settings of synthetic tasks over random symbols, and losses that others publish."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from transformer_cli.config.data import DataSection
from transformer_cli.config.section import Count, Positive, Section, Switch
from transformer_cli.config.text_settings import CleaningConfig

SequenceLength = Annotated[int, Field(strict=True, ge=1, le=1000)]
_TASK_RULES = CleaningConfig(drop_equal=False, drop_duplicates=False, max_length_ratio=None)
Figures = Annotated[tuple[tuple[Count, Positive], ...], Field(max_length=1000)]


class SequencesData(DataSection):
    """Synthetic tasks over symbols that are written as numbers."""

    source: Literal["sequences"]
    """sequences: random symbols, generated when they are needed."""
    task: Literal["copy", "drop-first", "reverse", "sort", "memorise"] = "copy"
    """How the target follows from the source."""
    num_pairs: Annotated[int, Field(strict=True, ge=1, le=10_000_000)] = 20_000
    """Number of training pairs; validation and test have 1,000 pairs each (memorise: the training pairs)."""
    num_symbols: Annotated[int, Field(strict=True, ge=2, le=10_000)] = 10
    """The symbols are the numbers from 1 to this."""
    min_length: SequenceLength = 5
    """Length of the shortest source, in symbols."""
    max_length: SequenceLength = 20
    """Length of the longest source, in symbols."""
    end_symbol: Switch = True
    """Sequences end with [EOS]; false: the length of the source decides when generation stops."""
    shift_target: Switch = True
    """The target that the decoder reads in training is shifted right by one position, behind [SOS], as in the paper. false: it is not shifted, so the decoder reads the symbol that it must predict, as in one tutorial; this needs end_symbol: false."""
    cleaning: CleaningConfig = _TASK_RULES
    """Rules that would drop pairs of the task are switched off, unless the config switches them on."""

    @field_validator("cleaning", mode="before")
    @classmethod
    def _fill_in_rules_of_the_task(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        return {**_TASK_RULES.model_dump(exclude_unset=True), **values}

    @model_validator(mode="after")
    def _lengths_are_ordered(self) -> Self:
        if self.min_length > self.max_length:
            raise ValueError(
                f"min_length ({self.min_length}) is above max_length ({self.max_length})"
            )
        if self.task == "drop-first" and self.min_length < 2:
            raise ValueError(
                "task drop-first needs min_length of 2 or more, because it drops one symbol"
            )
        if self.end_symbol and not self.shift_target:
            raise ValueError(
                "shift_target: false needs end_symbol: false, because a model that reads the symbol which "
                "it must predict cannot learn where a sequence ends"
            )
        return self


class PublishedConfig(Section):
    """Losses that others publish for the same experiment; `tfm train` shows them beside its own."""

    training_loss: Figures = ()
    """Pairs of a step and the training loss per token at that step, in nats."""
    validation_loss: Figures = ()
    """Pairs of a step and the validation loss per token at that step, in nats."""
