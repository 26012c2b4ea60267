"""The settings of training noise: how training pairs are changed so that the model learns what people type."""

from typing import Self

from pydantic import model_validator

from transformer_cli.config.section import Probability, Section


class NoiseConfig(Section):
    """Probabilities of changes, drawn anew for each training pair in each epoch; several may meet in one pair."""

    capitals: Probability = 0.0
    """Probability that source and target stand in capital letters throughout."""
    small_letters: Probability = 0.0
    """Probability that the source stands in small letters throughout; the target stays as it is."""
    missing_accents: Probability = 0.0
    """Probability that the letters of the source lose their accents; the target stays as it is."""
    typographic_marks: Probability = 0.0
    """Probability that straight quotation marks, apostrophes, hyphens and three dots of the source become typographic ones, or typographic ones straight; the target stays as it is."""
    missing_end: Probability = 0.0
    """Probability that the mark at the end is left out, in source and target, where both end with one."""
    typos: Probability = 0.0
    """Probability of a typing error, for each source word of four letters or more: two letters swapped, or one letter missing, doubled or replaced; the target stays as it is."""

    @model_validator(mode="after")
    def _has_an_effect(self) -> Self:
        if not any(self.model_dump().values()):
            raise ValueError(
                "noise has no probability above 0; set one of its settings, or leave it out"
            )
        return self
