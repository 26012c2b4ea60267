"""The benchmark of translating: measure, suggest, try, conclude."""

import logging
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from transformer_cli.checkpoint import TrainedModel
from transformer_cli.config import Config, load_config
from transformer_cli.data.selection import held_out_pairs
from transformer_cli.decoding.translator import load_run
from transformer_cli.extensions.benchmark.advice import (
    MachineFacts,
    Suggestion,
    Trial,
    conclusion,
    other_precision,
    other_threads,
    tried,
    worth_trying,
)
from transformer_cli.extensions.benchmark.engine_turns import EngineTurns, engines_in_turns
from transformer_cli.extensions.benchmark.flop import flop_counter
from transformer_cli.extensions.benchmark.measuring import (
    PeakMemory,
    Phase,
    ProductSpeed,
    Spread,
    flop_per_second,
    measure_products,
    peak_memory,
    peak_of,
    phases_of,
    start_measuring,
)
from transformer_cli.extensions.benchmark.timed_translation import (
    PHASES,
    SEARCH,
    Subject,
    TimedRound,
)
from transformer_cli.extensions.benchmark.training import data_to_measure
from transformer_cli.process.device import prepare_machine

logger = logging.getLogger(__name__)


USUAL_BEAM = 4


MANY_ROWS = 256
"""With this many rows or more, the matrix products of a decoder step are large enough."""


@dataclass(frozen=True, slots=True)
class DecodingPacing:
    """How long is measured."""

    round_seconds: float = 1.0
    """The number of lines is chosen so that greedy search takes about this time for them."""
    max_lines: int = 2000
    num_rounds: int = 4
    product_seconds: float = 0.5
    num_turns: int = 3
    num_trials: int = 2
    share_of_lines: float = 0.3
    """Of the lines, those that the engines translate in turns."""


@dataclass(frozen=True, slots=True)
class SearchFigures:
    """What was measured with one beam size. A spread is over rounds; a round translates all lines once."""

    beam_size: int
    num_rounds: int
    source_tokens_per_second: Spread
    target_tokens_per_second: Spread
    source_tokens_per_cpu_second: Spread
    target_tokens_per_cpu_second: Spread
    padding_share: float
    """Share of padding (0 to 1) in the source ids of all batches."""
    rows_per_step: float
    """Hypotheses that a decoder step continues, on average."""
    batch_milliseconds: Spread
    phases: dict[str, Phase]
    """Of a batch; measured in further rounds."""
    flop_per_target_token: float
    """FLOP of the matrix products, for all rows of the beam."""
    flop_per_second: Spread
    """On a CPU per CPU-second."""
    share_of_peak: float


@dataclass(frozen=True, slots=True)
class DecodingBenchmark:
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


def measure_decoding(
    config_path: str | None, run: str | None, overrides: Sequence[str]
) -> tuple[Config, DecodingBenchmark]:
    """Measure translating the validation split: by a config's model with random weights, or by a trained run."""
    if config_path is not None:
        config = load_config(config_path, overrides)
        prepare_machine(config.runtime)
        with data_to_measure(config) as (data, _):
            pairs = data.validation
        subject = Subject.with_random_weights(
            config, (data.source_tokenizer, data.target_tokenizer)
        )
    else:
        loaded = load_run(run, overrides, command="benchmark --decode")
        config, trained = loaded.config, loaded.trained
        assert isinstance(trained, TrainedModel), "this command takes the PyTorch engine only"
        tokenizers = trained.source_tokenizer, trained.target_tokenizer
        subject = Subject.trained(trained.model, tokenizers, config)
        pairs = held_out_pairs(config, "validation")
    sources = [pair.source for pair in pairs]
    return config, benchmark_decoding(subject, sources, DecodingPacing())


def benchmark_decoding(
    subject: Subject, lines: Sequence[str], pacing: DecodingPacing
) -> DecodingBenchmark:
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
    peak = peak_of(products)
    start_measuring(subject.machine.device)
    greedy, beam = (_measured(subject, lines, size, peak, pacing) for size in (1, beam_size))
    memory = peak_memory(subject.machine.device)
    facts = MachineFacts.of(subject.machine)
    worth = decoding_suggestions(beam, facts, subject.config.decoding.batch_tokens, len(lines))

    def tokens_per(one: Subject, unit: str) -> float:
        found = one.translate(lines, beam_size)
        return found.target_tokens / found.spent(unit)

    trials = [
        tried(
            one,
            subject,
            lambda overrides: nullcontext(subject.changed(overrides)),
            tokens_per,
            num_turns=pacing.num_turns,
        )
        for one in worth[: pacing.num_trials]
    ]
    of_turns = lines[: max(1, round(len(lines) * pacing.share_of_lines))]
    engines = engines_in_turns(subject, of_turns, (1, beam_size), num_rounds=pacing.num_rounds)
    return DecodingBenchmark(
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
        conclusion=conclusion(decoding_limit(greedy, beam), trials)
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
    flop_of_round = flop_counter(subject.model, trains=False)(rounds[0].work)
    speed = flop_per_second([flop_of_round] * len(rounds), rounds, subject.machine.device)
    first = rounds[0]
    laps = [
        {name: seconds / one.num_batches for name, seconds in one.phases.items()}
        for one in with_phases
    ]
    return SearchFigures(
        beam_size=beam_size,
        num_rounds=len(rounds),
        source_tokens_per_second=Spread.of(r.source_tokens / r.seconds for r in rounds),
        target_tokens_per_second=Spread.of(r.target_tokens / r.seconds for r in rounds),
        source_tokens_per_cpu_second=Spread.of(r.source_tokens / r.cpu_seconds for r in rounds),
        target_tokens_per_cpu_second=Spread.of(r.target_tokens / r.cpu_seconds for r in rounds),
        padding_share=1.0 - first.source_tokens / first.source_cells,
        rows_per_step=first.work.target_tokens / first.num_steps,
        batch_milliseconds=Spread.of(1000.0 * sum(lap.values()) for lap in laps),
        phases=phases_of(laps, PHASES),
        flop_per_target_token=flop_of_round / max(first.target_tokens, 1),
        flop_per_second=speed,
        share_of_peak=speed.median / peak.flop_per_second.median,
    )


def decoding_limit(greedy: SearchFigures, beam: SearchFigures) -> str:
    """One sentence: the phase that takes the most time, the share of the peak, and the price of the beam."""
    name, phase = max(beam.phases.items(), key=lambda item: item[1].share)
    price = greedy.target_tokens_per_cpu_second.median / beam.target_tokens_per_cpu_second.median
    verb = "take" if name.endswith("s") else "takes"
    return (
        f"{name[0].upper()}{name[1:]} {verb} {phase.share:.0%} of the time with beam size {beam.beam_size}, at "
        f"{beam.rows_per_step:,.0f} rows a step; the matrix products reach {beam.share_of_peak:.0%} of this "
        f"machine's peak, and greedy search is {price:.1f} times as fast"
    )


def decoding_suggestions(
    figures: SearchFigures, facts: MachineFacts, batch_tokens: int, num_lines: int
) -> list[Suggestion]:
    """What is worth a trial, the largest expected gain first.

    Args:
        figures: of the beam search.
        facts: of the machine.
        batch_tokens: decoding.batch_tokens.
        num_lines: how many lines are translated at once.
    """
    found = [other_precision(facts), other_threads(facts)]
    num_sentences = figures.rows_per_step / figures.beam_size
    if figures.rows_per_step < MANY_ROWS and num_sentences < num_lines / 2:
        because = f"a decoder step has only {figures.rows_per_step:,.0f} rows"
        larger = 4 * batch_tokens
        change = f"decoding.batch_tokens={larger}"
        what = f"raise decoding.batch_tokens to {larger:,}"
        found.append(Suggestion(because, what, (change,), 1.3))
    elif facts.device == "cpu" and figures.phases[SEARCH].share > 0.25:
        because = f"a decoder step has {figures.rows_per_step:,.0f} rows, whose scores do not fit into the caches"
        smaller = max(batch_tokens // 4, 1)
        what = f"lower decoding.batch_tokens to {smaller:,}"
        found.append(Suggestion(because, what, (f"decoding.batch_tokens={smaller}",), 1.1))
    return worth_trying(found)
