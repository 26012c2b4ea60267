"""Timed translation: the text pipeline, engine and search of `tfm translate`, with wrappers that measure them."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from torch import Tensor

from transformer_cli.acceleration.prepared_transformer import PreparedTransformer
from transformer_cli.config import DecodingConfig
from transformer_cli.decoding import Translator
from transformer_cli.decoding.engine import Engine, Hypothesis, Request
from transformer_cli.decoding.engines.pytorch import PyTorchEngine
from transformer_cli.decoding.search import Scorer
from transformer_cli.extensions.benchmark.measuring.model_flop import Work
from transformer_cli.extensions.benchmark.measuring.stopwatch import Stopwatch, wait_for
from transformer_cli.model import Transformer

PHASES = ("text", "encoder", "decoder steps", "search")
"""Text: tokenising and joining. Encoder: with the keys and values that the decoder reads. Search: what is left."""
TEXT, ENCODER, DECODER, SEARCH = PHASES


@dataclass(slots=True)
class TimedRound:
    """All lines, translated once: the size of the work and its time."""

    work: Work = field(default_factory=Work)
    """What was computed: its target tokens are the rows of all decoder steps, several per sentence in a beam."""
    source_tokens: int = 0
    target_tokens: int = 0
    """Target tokens of the best hypotheses, [EOS] included."""
    source_cells: int = 0
    """Source tokens with padding."""
    num_batches: int = 0
    num_steps: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    """Seconds of each phase; they sum up to `seconds`."""


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
    device = engine.machine.device
    stopwatch, found = Stopwatch(device), TimedRound()
    mark = stopwatch.mark if phases else _ignore
    translating = engine.translating or engine.model
    model = cast(Transformer, WatchedModel(translating, engine.model, found, mark))
    changed = replace(engine, model=model, translating=None)
    watched = cast(Engine, WatchedEngine(changed, found, mark))
    cpu_started_at = time.process_time()
    for _ in replace(translator, engine=watched).translate(lines):
        pass
    wait_for(device)
    found.cpu_seconds = time.process_time() - cpu_started_at
    stopwatch.end_lap(TEXT)
    [lap] = stopwatch.laps()
    found.phases = {name: lap.get(name, 0.0) for name in PHASES}
    found.seconds = sum(lap.values())
    return found


def _ignore(phase: str) -> None:
    """Instead of `Stopwatch.mark`, where phases are not measured."""


@dataclass(frozen=True, slots=True)
class WatchedEngine:
    """An engine that counts its tokens and marks the time before it and of its search."""

    engine: PyTorchEngine
    found: TimedRound
    mark: Callable[[str], None]

    def translate(
        self, requests: Sequence[Request], options: DecodingConfig
    ) -> list[list[Hypothesis]]:
        """See `Engine`."""
        self.mark(TEXT)
        hypotheses = self.engine.translate(requests, options)
        self.mark(SEARCH)
        self.found.source_tokens += sum(len(request.ids) for request in requests)
        self.found.target_tokens += sum(len(best[0].ids) for best in hypotheses if best)
        return hypotheses

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)


@dataclass(frozen=True, slots=True)
class WatchedModel:
    """A model that counts the work of its batches and marks the time of the encoder and of each decoder step."""

    translating: Transformer | PreparedTransformer
    """What encodes and decodes."""
    model: Transformer
    """Its modules and settings."""
    found: TimedRound
    mark: Callable[[str], None]

    def encode(self, source_ids: Tensor, source_mask: Tensor | None) -> Tensor:
        """See `Transformer.encode`."""
        self.mark(SEARCH)
        memory = self.translating.encode(source_ids, source_mask)
        self.mark(ENCODER)
        num_sentences, length = source_ids.shape
        self.found.num_batches += 1
        self.found.source_cells += num_sentences * length
        pairs = num_sentences * length * length
        self.found.work += Work(source_tokens=num_sentences * length, source_pairs=pairs)
        return memory

    def start_decoding(
        self, memory: Tensor, source_mask: Tensor | None, *, attended_layer: int | None = None
    ) -> Scorer:
        """See `Transformer.start_decoding`."""
        state: Scorer
        if attended_layer is None:
            state = self.translating.start_decoding(memory, source_mask)
        else:
            state = self.model.start_decoding(memory, source_mask, attended_layer=attended_layer)
        self.mark(ENCODER)
        return WatchedScorer(state, memory.size(1), self.found, self.mark)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)


@dataclass(slots=True)
class WatchedScorer:
    """A scorer that counts its rows and marks the time of each step."""

    scorer: Scorer
    source_length: int
    found: TimedRound
    mark: Callable[[str], None]
    num_steps: int = 0

    def advance(self, last_ids: Tensor) -> Tensor:
        """See `Scorer`."""
        self.mark(SEARCH)
        scores = self.scorer.advance(last_ids)
        self.mark(DECODER)
        self.num_steps += 1
        self.found.num_steps += 1
        rows = len(last_ids)
        self.found.work += Work(
            target_tokens=rows,
            target_pairs=rows * self.num_steps,
            cross_pairs=rows * self.source_length,
        )
        return scores

    def select(self, rows: Tensor, *, keeps_sources: bool = False) -> None:
        """See `Scorer`."""
        self.mark(SEARCH)
        self.scorer.select(rows, keeps_sources=keeps_sources)
        self.mark(DECODER)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.scorer, name)
