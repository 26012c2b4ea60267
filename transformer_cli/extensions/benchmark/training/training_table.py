"""The report of a training benchmark as lines for people."""

from collections.abc import Iterator

from transformer_cli.extensions.benchmark.figure_lines import (
    heading,
    line,
    memory_lines,
    peak_lines,
    phase_lines,
    spread_line,
)
from transformer_cli.extensions.benchmark.training.training_benchmark import TrainingReport


def training_lines(report: TrainingReport) -> Iterator[str]:
    """One line per figure, then the conclusion."""
    figures = report.figures
    yield f"{report.num_parameters:,} parameters; {report.machine}; {figures.num_updates} updates"
    yield ""
    yield heading("10 % to 90 % of updates")
    yield spread_line("target tokens per second", figures.target_tokens_per_second)
    yield spread_line("target tokens per CPU-second", figures.target_tokens_per_cpu_second)
    yield spread_line("target tokens per update", figures.target_tokens_per_update)
    yield line("padding", f"{figures.padding_share:.1%}")
    yield from phase_lines("an update, ms", figures.update_milliseconds, figures.phases)
    yield from memory_lines(figures.memory)
    yield line("FLOP per target token", f"{figures.flop_per_target_token / 1e6:,.1f} M")
    yield from peak_lines(figures.products, figures.peak, report.machine)
    yield line("share of the peak", f"{figures.share_of_peak:.1%}")
    yield ""
    yield report.conclusion
