"""Timed translation: the text pipeline, engine and search of `tfm translate`, with wrappers that measure them."""

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor

from transformer_cli.config import Config, DecodingConfig
from transformer_cli.config.loading import override_settings
from transformer_cli.decoding import ExplainingEngine, Translator
from transformer_cli.decoding.engine import Engine, Hypothesis, Request
from transformer_cli.decoding.pytorch_engine import PyTorchEngine
from transformer_cli.decoding.search import Scorer
from transformer_cli.decoding.translator import build_translator
from transformer_cli.extensions.benchmark.flop import Work
from transformer_cli.extensions.benchmark.measuring import (
    Observed,
    Stopwatch,
    Timed,
    mark_nothing,
    wait_for,
)
from transformer_cli.model import Transformer
from transformer_cli.process.device import Machine, prepare_machine, seed_everything
from transformer_cli.text import SequenceFormat
from transformer_cli.text.tokenizer import Tokenizers

PHASES = ("text", "encoder", "decoder steps", "search")
"""Text: tokenising and joining. Encoder: with the keys and values that the decoder reads. Search: what is left."""
TEXT, ENCODER, DECODER, SEARCH = PHASES


@dataclass(slots=True)
class TimedRound(Timed):
    """All lines, translated once. The target tokens of its work are the rows of all decoder steps, several per sentence in a beam."""

    source_tokens: int = 0
    target_tokens: int = 0
    """Target tokens of the best hypotheses, [EOS] included."""
    source_cells: int = 0
    """Source tokens with padding."""
    num_batches: int = 0
    num_steps: int = 0


def translate_round(
    translator: Translator, lines: Sequence[str], *, phases: bool = False
) -> TimedRound:
    """Translate all lines once.

    Args:
        translator: with the PyTorch engine.
        lines: source text.
        phases: whether to measure the phases too, which may slow an Apple GPU.
    """
    engine = translator.engine
    assert isinstance(engine, PyTorchEngine)
    stopwatch, found = Stopwatch(engine.machine.device), TimedRound()
    mark = stopwatch.mark if phases else mark_nothing
    model = _watched_model(engine, found, mark)
    changed = replace(engine, model=cast(Transformer, model), translating=None)

    def translate(requests: Sequence[Request], options: DecodingConfig) -> list[list[Hypothesis]]:
        mark(TEXT)
        hypotheses = changed.translate(requests, options)
        mark(SEARCH)
        found.source_tokens += sum(len(request.ids) for request in requests)
        found.target_tokens += sum(len(best[0].ids) for best in hypotheses if best)
        return hypotheses

    watched = cast(Engine, Observed(changed, translate=translate))
    cpu_started_at = time.process_time()
    for _ in replace(translator, engine=watched).translate(lines):
        pass
    wait_for(engine.machine.device)
    found.cpu_seconds = time.process_time() - cpu_started_at
    stopwatch.end_lap(TEXT)
    [lap] = stopwatch.laps()
    found.phases = {name: lap.get(name, 0.0) for name in PHASES}
    found.seconds = sum(lap.values())
    return found


def _watched_model(
    engine: PyTorchEngine, found: TimedRound, mark: Callable[[str], None]
) -> Observed:
    """The model of an engine; it counts the work of its batches and marks the encoder and each decoder step."""
    translating = engine.translating or engine.model

    def encode(source_ids: Tensor, source_mask: Tensor | None) -> Tensor:
        mark(SEARCH)
        memory = translating.encode(source_ids, source_mask)
        mark(ENCODER)
        num_sentences, length = source_ids.shape
        found.num_batches += 1
        found.source_cells += num_sentences * length
        pairs = num_sentences * length * length
        found.work += Work(source_tokens=num_sentences * length, source_pairs=pairs)
        return memory

    def start_decoding(
        memory: Tensor, source_mask: Tensor | None, *, attended_layer: int | None = None
    ) -> Observed:
        state: Scorer
        if attended_layer is None:
            state = translating.start_decoding(memory, source_mask)
        else:
            state = engine.model.start_decoding(memory, source_mask, attended_layer=attended_layer)
        mark(ENCODER)
        return _watched_scorer(state, memory.size(1), found, mark)

    return Observed(engine.model, encode=encode, start_decoding=start_decoding)


def _watched_scorer(
    scorer: Scorer, source_length: int, found: TimedRound, mark: Callable[[str], None]
) -> Observed:
    """A scorer that counts its rows and marks the time of each step."""
    steps = itertools.count(1)

    def advance(last_ids: Tensor) -> Tensor:
        mark(SEARCH)
        scores = scorer.advance(last_ids)
        mark(DECODER)
        found.num_steps += 1
        rows = len(last_ids)
        found.work += Work(
            target_tokens=rows,
            target_pairs=rows * next(steps),
            cross_pairs=rows * source_length,
        )
        return scores

    def select(rows: Tensor, *, keeps_sources: bool = False) -> None:
        mark(SEARCH)
        scorer.select(rows, keeps_sources=keeps_sources)
        mark(DECODER)

    return Observed(scorer, advance=advance, select=select)


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

    @property
    def sequence_format(self) -> SequenceFormat:
        """The format of sources and targets; CTranslate2 needs the ordinary one, even for forced lengths."""
        return SequenceFormat.of(self.config.data)

    def explaining_engine(self) -> ExplainingEngine:
        """The engine that translates what CTranslate2 cannot."""
        engine = self.translator(1).engine
        assert isinstance(engine, ExplainingEngine)
        return engine

    def translator(self, beam_size: int) -> Translator:
        """The translator, as `tfm translate` makes it."""
        decoding = self.config.decoding.best_of_beam(beam_size)
        if self.is_forced:  # what random weights write fits no source
            decoding = decoding.model_copy(update={"repair": False})
        translator = build_translator(
            self.model, *self.tokenizers, self.config, self.machine, decoding=decoding
        )
        engine = translator.engine
        assert isinstance(engine, PyTorchEngine)
        if self.is_forced:
            engine = replace(engine, sequence_format=FORCED)
        return replace(translator, engine=engine.prepared())
