"""The report of a decoding benchmark as lines for people."""

from collections.abc import Iterator

from transformer_cli.benchmark.decoding.decoding_benchmark import DecodingReport
from transformer_cli.benchmark.decoding.decoding_figures import SearchFigures
from transformer_cli.benchmark.figure_lines import (
    heading,
    line,
    memory_lines,
    peak_lines,
    phase_lines,
    spread_line,
)


def decoding_lines(report: DecodingReport) -> Iterator[str]:
    """One line per figure, then the conclusion."""
    weights = (
        "random weights, lengths forced to those of the sources" if report.is_forced else "trained"
    )
    yield f"{report.num_parameters:,} parameters ({weights}); {report.machine}; {report.num_lines:,} lines"
    for figures in (report.greedy, report.beam):
        yield ""
        yield from _search_lines(figures)
    yield ""
    yield from memory_lines(report.memory)
    yield from peak_lines(report.products, report.peak, report.machine)
    yield ""
    yield report.conclusion


def _search_lines(figures: SearchFigures) -> Iterator[str]:
    name = "greedy search" if figures.beam_size == 1 else f"beam size {figures.beam_size}"
    yield heading(f"10 % to 90 % of {figures.num_rounds} rounds, {name}")
    for what, per_second, per_cpu_second in (
        ("source", figures.source_tokens_per_second, figures.source_tokens_per_cpu_second),
        ("target", figures.target_tokens_per_second, figures.target_tokens_per_cpu_second),
    ):
        yield spread_line(f"{what} tokens per second", per_second)
        yield spread_line(f"{what} tokens per CPU-second", per_cpu_second)
    yield line("padding of the sources", f"{figures.padding_share:.1%}")
    yield line("rows per decoder step", f"{figures.rows_per_step:,.0f}")
    yield from phase_lines("a batch, ms", figures.batch_milliseconds, figures.phases)
    yield line("FLOP per target token", f"{figures.flop_per_target_token / 1e6:,.1f} M")
    yield line("share of the peak", f"{figures.share_of_peak:.1%}")
