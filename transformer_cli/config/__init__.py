"""The settings of a run: one tree of sections, read from YAML, checked, and immutable."""

from transformer_cli.config.data import (
    CleaningConfig,
    FileCorpus,
    FilesData,
    HubCorpus,
    HubData,
    PhrasebookData,
    SplitName,
    TokenizerConfig,
)
from transformer_cli.config.exercise_settings import PublishedConfig, SequencesData
from transformer_cli.config.loading import load_config, shipped_configs, to_yaml
from transformer_cli.config.model import ModelConfig
from transformer_cli.config.training import (
    LOWER_IS_BETTER,
    DecodingConfig,
    RuntimeConfig,
    TrainingConfig,
    ValidationConfig,
)
from transformer_cli.config.tree import Config, DataConfig

__all__ = [
    "LOWER_IS_BETTER",
    "CleaningConfig",
    "Config",
    "DataConfig",
    "DecodingConfig",
    "FileCorpus",
    "FilesData",
    "HubCorpus",
    "HubData",
    "ModelConfig",
    "PhrasebookData",
    "PublishedConfig",
    "RuntimeConfig",
    "SequencesData",
    "SplitName",
    "TokenizerConfig",
    "TrainingConfig",
    "ValidationConfig",
    "load_config",
    "shipped_configs",
    "to_yaml",
]
