"""The benchmark of translating: measure, suggest, try, conclude."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from transformer_cli.extensions.benchmark.advice.machine_settings import (
    MachineFacts,
)
from transformer_cli.extensions.benchmark.advice.trials import (
    Suggestion,
    Trial,
    conclusion,
    tried,
)
from transformer_cli.extensions.benchmark.decoding.decoding_figures import (
    SearchFigures,
    figures_of,
    limit_of,
    suggestions,
)
from transformer_cli.extensions.benchmark.decoding.decoding_subject import Subject
from transformer_cli.extensions.benchmark.decoding.engine_turns import EngineTurns, engines_in_turns
from transformer_cli.extensions.benchmark.decoding.timed_translation import (
    TimedRound,
)
from transformer_cli.extensions.benchmark.measuring import peak_memory
from transformer_cli.extensions.benchmark.measuring.matrix_products import (
    ProductSpeed,
    measure_products,
)
from transformer_cli.extensions.benchmark.measuring.model_flop import forward_flop
from transformer_cli.extensions.benchmark.measuring.peak_memory import PeakMemory
from transformer_cli.process.errors import TfmError

logger = logging.getLogger(__name__)

USUAL_BEAM = 4


@dataclass(frozen=True, slots=True)
class DecodingPacing:
    """How long is measured."""

    round_seconds: float = 1.0
    """The number of lines is chosen so that greedy search takes about this time for them."""
    trial_seconds: float = 0.5
    """The same in trials."""
    max_lines: int = 2000
    num_rounds: int = 4
    product_seconds: float = 0.5
    num_turns: int = 3
    num_trials: int = 2
    share_of_lines: float = 0.3
    """Of the lines, those that the engines translate in turns."""


@dataclass(frozen=True, slots=True)
class DecodingReport:
    """What the benchmark of translating found."""

    machine: str
    num_parameters: int
    num_lines: int
    is_forced: bool
    """Whether the weights are random, and each translation has as many tokens as its source."""
    greedy: SearchFigures
    beam: SearchFigures
    memory: PeakMemory
    products: tuple[ProductSpeed, ...]
    peak: ProductSpeed
    trials: list[Trial]
    conclusion: str
    engines: EngineTurns
    """The same model with other precisions, and with CTranslate2."""


def benchmark_decoding(
    subject: Subject, lines: Sequence[str], pacing: DecodingPacing
) -> DecodingReport:
    """Measure greedy search and beam search on this machine; try suggested settings in short trials.

    Args:
        subject: the model.
        lines: source text, one sentence per line; the first ones are translated, as many as the pacing says.
        pacing: how long to measure.
    """
    machine = subject.machine.describe()
    logger.info("warming up")
    lines = _as_many_as_fit(subject, lines, pacing.round_seconds, pacing.max_lines)
    beam_size = max(subject.config.decoding.beam_size, 2)
    if subject.config.decoding.beam_size == 1:
        beam_size = USUAL_BEAM
    first = subject.translate(lines, 1)
    logger.info("measuring the speed of matrix products")
    own_shape = _own_shape(subject, first)
    products = measure_products(subject.machine, own_shape, seconds=pacing.product_seconds)
    peak = max(products, key=lambda product: product.flop_per_second.median)
    peak_memory.start_measuring(subject.machine.device)
    greedy, beam = (_measured(subject, lines, size, peak, pacing) for size in (1, beam_size))
    memory = peak_memory.peak_memory(subject.machine.device)
    facts = MachineFacts.of(subject.machine)
    worth = suggestions(beam, facts, subject.config.decoding.batch_tokens, len(lines))
    trials = [_tried(one, subject, lines, beam_size, pacing) for one in worth[: pacing.num_trials]]
    of_turns = lines[: max(1, round(len(lines) * pacing.share_of_lines))]
    engines = engines_in_turns(subject, of_turns, (1, beam_size), num_rounds=pacing.num_rounds)
    return DecodingReport(
        machine=machine,
        num_parameters=sum(parameter.numel() for parameter in subject.model.parameters()),
        num_lines=len(lines),
        is_forced=subject.is_forced,
        greedy=greedy,
        beam=beam,
        memory=memory,
        products=tuple(products),
        peak=peak,
        trials=trials,
        conclusion=conclusion(limit_of(greedy, beam), trials)
        + engines.advice(subject.machine.precision_name, beam_size, facts.device),
        engines=engines,
    )


def _as_many_as_fit(
    subject: Subject, lines: Sequence[str], seconds: float, max_lines: int
) -> Sequence[str]:
    """The first lines: as many as greedy search translates in about this time."""
    num_lines = 16
    subject.translate(lines[:num_lines], 1)
    while num_lines < min(len(lines), max_lines):
        if subject.translate(lines[:num_lines], 1).seconds > seconds / 2:
            break
        num_lines *= 2
    return lines[: min(num_lines, max_lines)]


def _own_shape(subject: Subject, found: TimedRound) -> tuple[int, int, int]:
    rows = max(1, round(found.work.target_tokens / max(found.num_steps, 1)))
    return rows, subject.config.model.d_model, subject.model.output.out_features


def _measured(
    subject: Subject,
    lines: Sequence[str],
    beam_size: int,
    peak: ProductSpeed,
    pacing: DecodingPacing,
) -> SearchFigures:
    logger.info("measuring beam size %d, %d lines", beam_size, len(lines))
    rounds = [subject.translate(lines, beam_size) for _ in range(pacing.num_rounds)]
    with_phases = [
        subject.translate(lines, beam_size, phases=True)
        for _ in range(max(1, pacing.num_rounds // 2))
    ]
    return figures_of(
        rounds,
        with_phases,
        beam_size=beam_size,
        flop=partial(forward_flop, subject.config.model, subject.model.output.out_features),
        peak=peak,
        on_cpu=subject.machine.device.type == "cpu",
    )


def _tried(
    suggestion: Suggestion,
    subject: Subject,
    lines: Sequence[str],
    beam_size: int,
    pacing: DecodingPacing,
) -> Trial:
    logger.info("trying %s", " ".join(suggestion.overrides))
    try:
        other = subject.changed(suggestion.overrides)
    except TfmError as error:
        return Trial(suggestion, None, failure=error.message)
    changes_threads = other.num_threads != subject.num_threads
    unit = MachineFacts.of(subject.machine).unit(changes_threads=changes_threads)

    def tokens_per(one: Subject) -> float:
        found = one.translate(lines, beam_size)
        return found.target_tokens / (found.cpu_seconds if unit == "CPU-second" else found.seconds)

    before, after = (partial(tokens_per, one) for one in (subject, other))
    return tried(suggestion, before, after, num_turns=pacing.num_turns, unit=unit)
