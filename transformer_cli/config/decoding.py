"""The settings of decoding, and of the validations that use it."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from transformer_cli.config.exercise_settings import SequenceLength
from transformer_cli.config.section import Contradiction, Count, Section, Switch

ScoreName = Literal["bleu", "chrf", "ter", "cer", "wer"]


class ValidationConfig(Section):
    """What is measured on held-out text during training."""

    max_sentences: Count | None = None
    """Number of validation pairs that are used, always the first ones; several directions share this number. Absent: all pairs of the corpora whose split is validation, and at most 3,000 pairs of a drawn split, evenly spread. tfm validate scores the whole split."""
    scores: Annotated[tuple[ScoreName, ...], Field(max_length=5)] = ("bleu", "chrf", "cer")
    """Scores of translations; loss and perplexity are always computed. With an empty list, only the samples are translated."""
    beam_size: Annotated[int, Field(strict=True, ge=1, le=64)] = 1
    """Beam size of validations during training; tfm validate uses decoding.beam_size."""
    num_samples: Annotated[int, Field(strict=True, ge=0, le=100)] = 4
    """Number of sample translations in the log and in TensorBoard."""
    sequence_lengths: (
        Annotated[tuple[SequenceLength, ...], Field(min_length=1, max_length=1000)] | None
    ) = None
    """For data.source sequences: source lengths, in symbols, at which the exact match on 100 new sequences is measured (task memorise: on the training sequences); absent: all lengths of the data. Lengths beyond those of the training data are allowed."""


class DecodingConfig(Section):
    """How translations are found."""

    beam_size: Annotated[int, Field(strict=True, ge=1, le=64)] = 4
    """Number of hypotheses per sentence in beam search; 1 is greedy search."""
    length_penalty: Annotated[float, Field(strict=True, ge=0.0, le=10.0)] = 0.6
    """alpha: the log-probability of a hypothesis is divided by ((5 + length) / 6)^alpha (Wu et al. 2016, equation 14)."""
    num_best: Annotated[int, Field(strict=True, ge=1, le=64)] = 1
    """Number of translations per sentence, best first; at most beam_size."""
    max_length: Annotated[int, Field(strict=True, ge=1, le=65_536)] | None = None
    """Largest number of tokens of a translation, its forced prefix not counted; absent: twice the tokens of the source, plus 20."""
    split_sentences: Switch = True
    """Translate each sentence of a line by itself, and join the translations with the white space of the line; the source language decides where a sentence ends. The sequences of data.source sequences are never split."""
    allow_unknown: Switch = True
    """A translation may contain [UNK], which shows that a word is missing; false: the best other token is used."""
    batch_tokens: Count = 4096
    """Largest number of source tokens of a batch, padding included, hypotheses of the beam not counted."""

    @model_validator(mode="after")
    def _best_come_from_the_beam(self) -> Self:
        if self.num_best > self.beam_size:
            raise Contradiction(
                f"num_best ({self.num_best}) is above beam_size ({self.beam_size})",
                hint=f"raise decoding.beam_size to {self.num_best}, or lower decoding.num_best",
            )
        return self
