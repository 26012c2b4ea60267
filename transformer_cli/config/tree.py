"""The whole config, and the rules between its sections."""

from typing import Annotated, Self

from pydantic import Field, ValidationInfo, model_validator

from transformer_cli.config.data import FilesData, HubData, PhrasebookData, TokenizerConfig
from transformer_cli.config.exercise_settings import PublishedConfig, SequencesData
from transformer_cli.config.model import ModelConfig
from transformer_cli.config.section import Section
from transformer_cli.config.training import (
    DecodingConfig,
    RuntimeConfig,
    TrainingConfig,
    ValidationConfig,
)

DataConfig = Annotated[
    PhrasebookData | SequencesData | FilesData | HubData, Field(discriminator="source")
]


class Config(Section):
    """All settings of one experiment."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
    """Name of the run folder, runs/NAME: letters, digits, '.', '_' and '-'."""
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**31)] = 1
    """Seed of initial weights, data order, dropout and generated corpora."""
    data: DataConfig
    """The sentence pairs."""
    tokenizer: TokenizerConfig = TokenizerConfig()
    """How text becomes token ids."""
    model: ModelConfig = ModelConfig()
    """The architecture of the model."""
    training: TrainingConfig
    """How the model is trained."""
    validation: ValidationConfig = ValidationConfig()
    """What is measured on held-out text during training."""
    decoding: DecodingConfig = DecodingConfig()
    """How translations are found."""
    runtime: RuntimeConfig = RuntimeConfig()
    """Device, precision and threads."""
    published: PublishedConfig = PublishedConfig()
    """Losses that others publish for the same experiment."""

    @model_validator(mode="after")
    def _sections_fit_together(self, info: ValidationInfo) -> Self:
        if self.model.tie_embeddings == "all" and not self.tokenizer.shared:
            raise ValueError("model.tie_embeddings: all needs tokenizer.shared: true")
        metric = self.training.best_metric
        is_trained = bool(info.context and info.context.get("is_trained"))
        if not is_trained and metric not in ("loss", "perplexity", *self.validation.scores):
            raise ValueError(f"training.best_metric: {metric} is not among validation.scores")
        lengths = self.validation.sequence_lengths
        if lengths is not None:
            if not isinstance(self.data, SequencesData):
                raise ValueError("validation.sequence_lengths is for data.source: sequences")
            if self.data.task == "drop-first" and 1 in lengths:
                raise ValueError(
                    "validation.sequence_lengths: task drop-first needs lengths of 2 or more"
                )
        return self
