"""The model that a decoding benchmark measures: trained, or with random weights and forced lengths."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from transformer_cli.config import Config
from transformer_cli.config.loading import override_settings
from transformer_cli.decoding import ExplainingEngine, Translator
from transformer_cli.decoding.engines.pytorch import PyTorchEngine
from transformer_cli.decoding.loading import build_translator
from transformer_cli.extensions.benchmark.decoding.timed_translation import (
    TimedRound,
    translate_round,
)
from transformer_cli.model import Transformer
from transformer_cli.process.device import Machine, prepare_machine, seed_everything
from transformer_cli.text import SequenceFormat
from transformer_cli.text.tokenizer import Tokenizers

FORCED = SequenceFormat(has_end=False)
"""As many target tokens as source tokens, because a model with random weights would not end its sentences."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A model that translates for the benchmark."""

    model: Transformer
    tokenizers: Tokenizers
    config: Config
    machine: Machine
    num_threads: int
    is_forced: bool

    @classmethod
    def trained(cls, model: Transformer, tokenizers: Tokenizers, config: Config) -> "Subject":
        """A trained model."""
        machine = prepare_machine(config.runtime)
        return cls(model, tokenizers, config, machine, torch.get_num_threads(), is_forced=False)

    @classmethod
    def with_random_weights(cls, config: Config, tokenizers: Tokenizers) -> "Subject":
        """A model with random weights, of the sizes of a config."""
        machine = prepare_machine(config.runtime)
        seed_everything(config.seed, "weights")
        model = Transformer(config.model, *(one.vocab_size for one in tokenizers)).eval()
        return cls(model, tokenizers, config, machine, torch.get_num_threads(), is_forced=True)

    def changed(self, overrides: Sequence[str]) -> "Subject":
        """The same model with other settings."""
        config = override_settings(self.config, overrides)
        machine = prepare_machine(config.runtime)
        return replace(self, config=config, machine=machine, num_threads=torch.get_num_threads())

    def translate(
        self, lines: Sequence[str], beam_size: int, *, phases: bool = False
    ) -> TimedRound:
        """Translate all lines once."""
        self.take_threads()
        return translate_round(self.translator(beam_size), lines, phases=phases)

    def take_threads(self) -> None:
        """Set the number of threads of PyTorch, which another subject may have changed."""
        torch.set_num_threads(self.num_threads)

    def explaining_engine(self) -> ExplainingEngine:
        """The engine that translates what CTranslate2 cannot."""
        engine = self.translator(1).engine
        assert isinstance(engine, ExplainingEngine)
        return engine

    def translator(self, beam_size: int) -> Translator:
        """The translator, as `tfm translate` makes it."""
        decoding = self.config.decoding.best_of_beam(beam_size)
        translator = build_translator(
            self.model, *self.tokenizers, self.config, self.machine, decoding=decoding
        )
        engine = translator.engine
        assert isinstance(engine, PyTorchEngine)
        if self.is_forced:
            engine = replace(engine, sequence_format=FORCED)
        return replace(translator, engine=engine.prepared())
