"""The settings of a run: one tree of sections, read from YAML, checked, and immutable."""

from transformer_cli.config.data import Direction as Direction
from transformer_cli.config.data import FileCorpus as FileCorpus
from transformer_cli.config.data import FilesData as FilesData
from transformer_cli.config.data import HubCorpus as HubCorpus
from transformer_cli.config.data import HubData as HubData
from transformer_cli.config.data import PhrasebookData as PhrasebookData
from transformer_cli.config.data import SplitName as SplitName
from transformer_cli.config.decoding import DecodingConfig as DecodingConfig
from transformer_cli.config.decoding import DiversityConfig as DiversityConfig
from transformer_cli.config.decoding import MbrConfig as MbrConfig
from transformer_cli.config.decoding import SamplingConfig as SamplingConfig
from transformer_cli.config.decoding import ValidationConfig as ValidationConfig
from transformer_cli.config.finding import shipped_configs as shipped_configs
from transformer_cli.config.loading import load_config as load_config
from transformer_cli.config.loading import to_yaml as to_yaml
from transformer_cli.config.machine import RuntimeConfig as RuntimeConfig
from transformer_cli.config.model import ModelConfig as ModelConfig
from transformer_cli.config.sequence_settings import PublishedConfig as PublishedConfig
from transformer_cli.config.sequence_settings import SequencesData as SequencesData
from transformer_cli.config.text_settings import CleaningConfig as CleaningConfig
from transformer_cli.config.text_settings import NoiseConfig as NoiseConfig
from transformer_cli.config.text_settings import TokenizerConfig as TokenizerConfig
from transformer_cli.config.training import LOWER_IS_BETTER as LOWER_IS_BETTER
from transformer_cli.config.training import TrainingConfig as TrainingConfig
from transformer_cli.config.tree import Config as Config
from transformer_cli.config.tree import DataConfig as DataConfig
