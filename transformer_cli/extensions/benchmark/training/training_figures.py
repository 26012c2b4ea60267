"""The figures of a training benchmark, from the times of its updates."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from transformer_cli.extensions.benchmark.measuring.matrix_products import ProductSpeed
from transformer_cli.extensions.benchmark.measuring.model_flop import Work
from transformer_cli.extensions.benchmark.measuring.peak_memory import PeakMemory
from transformer_cli.extensions.benchmark.measuring.phases import Phase, phases_of
from transformer_cli.extensions.benchmark.measuring.spread import Spread
from transformer_cli.extensions.benchmark.training.timed_updates import TimedUpdate


@dataclass(frozen=True, slots=True)
class TrainingFigures:
    """What was measured. A spread is over updates, the warm-up left out."""

    num_updates: int
    target_tokens_per_second: Spread
    target_tokens_per_cpu_second: Spread
    target_tokens_per_update: Spread
    batches_per_update: float
    """The mean; `training.accumulate` or `training.update_tokens` may add up several."""
    padding_share: float
    """Share of padding (0 to 1) in the source and target ids of all batches."""
    update_milliseconds: Spread
    phases: dict[str, Phase]
    """Measured in further updates, so that marking them slows no speed above."""
    memory: PeakMemory
    num_halvings: int
    """How often a batch was cut in two, because memory was too small."""
    flop_per_target_token: float
    """FLOP of the matrix products of forward and backward pass, for both predictions of R-Drop; padding needs none."""
    flop_per_second: Spread
    """On a CPU per CPU-second."""
    products: tuple[ProductSpeed, ...]
    peak: ProductSpeed
    """The fastest of `products`."""
    share_of_peak: float


def figures_of(
    speed: Sequence[TimedUpdate],
    phases: Sequence[TimedUpdate],
    *,
    flop: Callable[[Work], int],
    memory: PeakMemory,
    products: Sequence[ProductSpeed],
    on_cpu: bool,
) -> TrainingFigures:
    """The figures of two series of updates: one that was only timed, and one with phases.

    Args:
        speed, phases: the two series.
        flop: the FLOP of training with some work.
        memory, products: of the same model and machine.
        on_cpu: whether the FLOP are counted per CPU-second.
    """
    peak = max(products, key=lambda product: product.flop_per_second.median)
    flops = [flop(update.work) for update in speed]
    spent = [update.cpu_seconds if on_cpu else update.seconds for update in speed]
    flop_per_second = Spread.of(one / seconds for one, seconds in zip(flops, spent, strict=True))
    work = sum((update.work for update in speed), start=Work())
    return TrainingFigures(
        num_updates=len(speed),
        target_tokens_per_second=Spread.of(u.work.target_tokens / u.seconds for u in speed),
        target_tokens_per_cpu_second=Spread.of(u.work.target_tokens / u.cpu_seconds for u in speed),
        target_tokens_per_update=Spread.of(u.work.target_tokens for u in speed),
        batches_per_update=sum(u.num_batches for u in speed) / len(speed),
        padding_share=1.0 - sum(u.num_tokens for u in speed) / sum(u.num_cells for u in speed),
        update_milliseconds=Spread.of(1000.0 * u.seconds for u in phases),
        phases=phases_of([update.phases for update in phases], tuple(phases[0].phases)),
        memory=memory,
        num_halvings=sum(update.num_halvings for update in (*speed, *phases)),
        flop_per_target_token=sum(flops) / work.target_tokens,
        flop_per_second=flop_per_second,
        products=tuple(products),
        peak=peak,
        share_of_peak=flop_per_second.median / peak.flop_per_second.median,
    )
