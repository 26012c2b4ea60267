"""The figures of a decoding benchmark, what limits it, and which settings might help."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from transformer_cli.extensions.benchmark.advice.machine_settings import (
    MachineFacts,
    other_precision,
    other_threads,
)
from transformer_cli.extensions.benchmark.advice.trials import Suggestion, worth_trying
from transformer_cli.extensions.benchmark.decoding.timed_translation import (
    PHASES,
    SEARCH,
    TimedRound,
)
from transformer_cli.extensions.benchmark.measuring.matrix_products import ProductSpeed
from transformer_cli.extensions.benchmark.measuring.model_flop import Work
from transformer_cli.extensions.benchmark.measuring.phases import Phase, phases_of
from transformer_cli.extensions.benchmark.measuring.spread import Spread

MANY_ROWS = 256
"""With this many rows or more, the matrix products of a decoder step are large enough."""


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


def figures_of(
    rounds: Sequence[TimedRound],
    with_phases: Sequence[TimedRound],
    *,
    beam_size: int,
    flop: Callable[[Work], int],
    peak: ProductSpeed,
    on_cpu: bool,
) -> SearchFigures:
    """The figures of rounds that were only timed, and of rounds with phases."""
    flop_of_round = flop(rounds[0].work)
    flop_per_second = Spread.of(
        flop_of_round / (r.cpu_seconds if on_cpu else r.seconds) for r in rounds
    )
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
        flop_per_second=flop_per_second,
        share_of_peak=flop_per_second.median / peak.flop_per_second.median,
    )


def limit_of(greedy: SearchFigures, beam: SearchFigures) -> str:
    """One sentence: the phase that takes the most time, the share of the peak, and the price of the beam."""
    name, phase = max(beam.phases.items(), key=lambda item: item[1].share)
    price = greedy.target_tokens_per_cpu_second.median / beam.target_tokens_per_cpu_second.median
    verb = "take" if name.endswith("s") else "takes"
    return (
        f"{name[0].upper()}{name[1:]} {verb} {phase.share:.0%} of the time with beam size {beam.beam_size}, at "
        f"{beam.rows_per_step:,.0f} rows a step; the matrix products reach {beam.share_of_peak:.0%} of this "
        f"machine's peak, and greedy search is {price:.1f} times as fast"
    )


def suggestions(
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
