"""The reports of benchmarks as lines for people: a name, a value, and its spread."""

from collections.abc import Iterator, Mapping

from transformer_cli.extensions.benchmark.decoding import DecodingBenchmark, SearchFigures
from transformer_cli.extensions.benchmark.engine_turns import OTHER
from transformer_cli.extensions.benchmark.measuring import PeakMemory, Phase, ProductSpeed, Spread
from transformer_cli.extensions.benchmark.training import TrainingBenchmark

NAME, VALUE = 32, 14


def _heading(note: str) -> str:
    return f"{'':{NAME}}{'median':>{VALUE}}   {note}"


def _line(name: str, value: str, note: str = "") -> str:
    return f"{name:{NAME}}{value:>{VALUE}}   {note}".rstrip()


def _spread_line(name: str, spread: Spread, note: str = "") -> str:
    low, median, high = (_number(value) for value in (spread.low, spread.median, spread.high))
    return _line(name, median, f"{low} to {high}{note}")


def _phase_lines(name: str, whole: Spread, phases: Mapping[str, Phase]) -> Iterator[str]:
    """The time of an update or a batch, and of its phases."""
    yield _spread_line(name, whole)
    for phase, found in phases.items():
        yield _spread_line(f"  {phase}", found.milliseconds, f"   {found.share:.1%}")


def _memory_lines(memory: PeakMemory) -> Iterator[str]:
    for name, used, usable in (
        ("peak memory, resident", memory.resident, memory.usable),
        ("peak memory, device", memory.device, memory.device_usable),
    ):
        if used is not None:
            of = f"{used / usable:.0%} of {usable / 1e6:,.0f} MB" if usable else ""
            yield _line(name, f"{used / 1e6:,.0f} MB", of)


def _peak_lines(
    products: tuple[ProductSpeed, ...], peak: ProductSpeed, machine: str
) -> Iterator[str]:
    """The speed of each shape of matrix product; the fastest is the peak."""
    unit = "GFLOP per CPU-second" if machine.startswith("CPU") else "GFLOP per second"
    yield f"matrix products, {unit}"
    for product in products:
        shape = " x ".join(f"{size:,}" for size in product.shape)
        note = f"{shape}{', the peak' if product == peak else ''}"
        yield _line(f"  {product.what}", f"{product.flop_per_second.median / 1e9:,.0f}", note)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def training_lines(report: TrainingBenchmark) -> Iterator[str]:
    """One line per figure, then the conclusion."""
    figures = report.figures
    yield f"{report.num_parameters:,} parameters; {report.machine}; {figures.num_updates} updates"
    yield ""
    yield _heading("10 % to 90 % of updates")
    yield _spread_line("target tokens per second", figures.target_tokens_per_second)
    yield _spread_line("target tokens per CPU-second", figures.target_tokens_per_cpu_second)
    yield _spread_line("target tokens per update", figures.target_tokens_per_update)
    yield _line("padding", f"{figures.padding_share:.1%}")
    yield from _phase_lines("an update, ms", figures.update_milliseconds, figures.phases)
    yield from _memory_lines(figures.memory)
    yield _line("FLOP per target token", f"{figures.flop_per_target_token / 1e6:,.1f} M")
    yield from _peak_lines(figures.products, figures.peak, report.machine)
    yield _line("share of the peak", f"{figures.share_of_peak:.1%}")
    yield ""
    yield report.conclusion


def decoding_lines(report: DecodingBenchmark) -> Iterator[str]:
    """One line per figure, then the conclusion."""
    weights = (
        "random weights, lengths forced to those of the sources" if report.is_forced else "trained"
    )
    yield f"{report.num_parameters:,} parameters ({weights}); {report.machine}; {report.num_lines:,} lines"
    for figures in (report.greedy, report.beam):
        yield ""
        yield from _search_lines(figures)
    yield ""
    yield from _memory_lines(report.memory)
    yield from _peak_lines(report.products, report.peak, report.machine)
    yield ""
    yield from _engine_lines(report)
    yield ""
    yield report.conclusion


def _engine_lines(report: DecodingBenchmark) -> Iterator[str]:
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
    yield _heading(f"10 % to 90 % of {figures.num_rounds} rounds, {name}")
    for what, per_second, per_cpu_second in (
        ("source", figures.source_tokens_per_second, figures.source_tokens_per_cpu_second),
        ("target", figures.target_tokens_per_second, figures.target_tokens_per_cpu_second),
    ):
        yield _spread_line(f"{what} tokens per second", per_second)
        yield _spread_line(f"{what} tokens per CPU-second", per_cpu_second)
    yield _line("padding of the sources", f"{figures.padding_share:.1%}")
    yield _line("rows per decoder step", f"{figures.rows_per_step:,.0f}")
    yield from _phase_lines("a batch, ms", figures.batch_milliseconds, figures.phases)
    yield _line("FLOP per target token", f"{figures.flop_per_target_token / 1e6:,.1f} M")
    yield _line("share of the peak", f"{figures.share_of_peak:.1%}")
