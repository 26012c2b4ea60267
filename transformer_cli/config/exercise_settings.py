"""The exercises of the walk-throughs: tasks over random symbols, and the losses that others publish."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from transformer_cli.config.data import CleaningConfig, DataSection
from transformer_cli.config.section import Count, Positive, Section, Switch

SequenceLength = Annotated[int, Field(strict=True, ge=1, le=1000)]
Figures = Annotated[tuple[tuple[Count, Positive], ...], Field(max_length=1000)]


class SequencesData(DataSection):
    """Synthetic tasks over symbols that are written as numbers."""

    source: Literal["sequences"]
    """sequences: random symbols, generated."""
    task: Literal["copy", "drop-first", "reverse", "sort", "memorise"] = "copy"
    """What the target is, given the source."""
    num_pairs: Annotated[int, Field(strict=True, ge=1, le=10_000_000)] = 20_000
    """Training pairs; validation and test have 1,000 each (memorise: the training pairs themselves)."""
    num_symbols: Annotated[int, Field(strict=True, ge=2, le=10_000)] = 10
    """Symbols are the numbers from 1 to this."""
    min_length: SequenceLength = 5
    """Shortest source, in symbols."""
    max_length: SequenceLength = 20
    """Longest source, in symbols."""
    end_symbol: Switch = True
    """Sequences end with [EOS]; without it, generation takes as many steps as the task's target has symbols."""
    shift_target: Switch = True
    """While training, the decoder reads the target one place late, after [SOS], as it does when it generates; without it, the very symbols that it is to predict, as one walk-through has it: then end_symbol must be false."""
    cleaning: CleaningConfig = CleaningConfig(
        drop_equal=False, drop_duplicates=False, max_length_ratio=None
    )
    """Off where a rule would drop what the task is about."""

    @model_validator(mode="after")
    def _lengths_are_ordered(self) -> Self:
        if self.min_length > self.max_length:
            raise ValueError(
                f"min_length ({self.min_length}) is above max_length ({self.max_length})"
            )
        if self.task == "drop-first" and self.min_length < 2:
            raise ValueError(
                "drop-first leaves nothing of one symbol: min_length must be 2 or more"
            )
        if self.end_symbol and not self.shift_target:
            raise ValueError(
                "shift_target: false needs end_symbol: false, for a model that reads what it is to "
                "predict learns nothing about the end"
            )
        return self


def check_sequence_lengths(lengths: Sequence[int], data: Any) -> None:
    """Raise ValueError unless `validation.sequence_lengths` are lengths that the task of `data` has."""
    if not isinstance(data, SequencesData):
        raise ValueError("validation.sequence_lengths is for data.source: sequences")
    if data.task == "drop-first" and 1 in lengths:
        raise ValueError("validation.sequence_lengths: drop-first leaves nothing of one symbol")


class PublishedConfig(Section):
    """What others print for the same experiment; `tfm train` shows it beside its own figures."""

    training_loss: Figures = ()
    """Pairs of a step and the training loss per token there, in nats."""
    validation_loss: Figures = ()
    """Pairs of a step and the validation loss per token there, in nats."""
