"""The report of a decoding benchmark as lines for people."""

from collections.abc import Iterator

from transformer_cli.extensions.benchmark.decoding.decoding_benchmark import DecodingReport
from transformer_cli.extensions.benchmark.decoding.decoding_figures import SearchFigures
from transformer_cli.extensions.benchmark.decoding.engine_turns import OTHER
from transformer_cli.extensions.benchmark.figure_lines import (
    NAME,
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
    yield from _engine_lines(report)
    yield ""
    yield report.conclusion


def _engine_lines(report: DecodingReport) -> Iterator[str]:
    turns = report.engines
    threads = "1 thread" if turns.num_threads == 1 else f"{turns.num_threads} threads"
    yield (
        f"engines in turns, without the text pipeline: {turns.num_lines:,} lines, {turns.num_rounds} rounds, "
        f"{turns.processor}, {threads}"
    )
    yield f"{'target tokens per CPU-second':{NAME}}{'median':>10} {'10 % to 90 %':>18}   times as fast as {OTHER}, same precision"
    for found in turns.figures:
        search = "greedy" if found.beam_size == 1 else f"beam {found.beam_size}"
        name = f"{search}, {found.engine}, {found.precision}"
        speed = found.target_tokens_per_cpu_second
        spread = f"{speed.low:,.0f} to {speed.high:,.0f}"
        ratio = ""
        if found.ratio is not None and found.engine != OTHER:
            ratio = f"   {found.ratio.median:.2f} ({found.ratio.low:.2f} to {found.ratio.high:.2f})"
        yield f"{name:{NAME}}{speed.median:>10,.0f} {spread:>18}{ratio}"
    for reason in turns.left_out:
        yield f"not measured: {reason}"


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
