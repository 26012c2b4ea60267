"""The laboratory of ablations: what is measured, which parts are replaced, how the models are trained and compared."""

import io
import math
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from transformer_cli.checkpoint.recorded_series import finite, read_series
from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.commands.progress_bar import progress_bars
from transformer_cli.config import Config, load_config
from transformer_cli.config.loading import override_settings
from transformer_cli.data.pairs import SentencePair
from transformer_cli.data.selection import held_out_pairs, pairs_to_validate
from transformer_cli.decoding import Translator
from transformer_cli.decoding.loading import load_translator
from transformer_cli.evaluation import validate
from transformer_cli.evaluation.confidence import Calibration, calibration_on
from transformer_cli.evaluation.curve_pictures import color_of, draw_line
from transformer_cli.evaluation.validation import ExactMatch, ValidationReport, exact_matches
from transformer_cli.extensions.lessons.ablations import SMALL_MACHINE, Ablation, Variant
from transformer_cli.model import Transformer, layers
from transformer_cli.model.layers import DecoderLayer, Function, MultiHeadAttention, Rotation
from transformer_cli.process import plain_form
from transformer_cli.process.errors import InterruptedBySignal
from transformer_cli.process.signals import cleaned_up
from transformer_cli.storage import REAL, make_folders, read_json_lines, remove
from transformer_cli.training.callbacks import Callback
from transformer_cli.training.run import train


@dataclass
class Trained:
    """A trained model of an ablation; each figure is computed once, when it is asked for."""

    config: Config
    metrics_file: Path
    translator: Translator
    pairs: list[SentencePair]
    """Held-out pairs."""

    @cached_property
    def report(self) -> ValidationReport:
        scores = ("bleu", "unknown", "length_ratio")
        return validate(self.translator, self.pairs, scores=scores, num_samples=0)

    @cached_property
    def calibration(self) -> Calibration:
        found = calibration_on(self.translator, self.pairs)
        assert found is not None, "ablations translate with PyTorch, which tells probabilities"
        return found

    @cached_property
    def exact_matches(self) -> list[ExactMatch]:
        return exact_matches(self.translator, self.config)

    def reported(self, kind: str) -> list[float]:
        """The losses that the training has reported: `train` or `validation`."""
        records = read_json_lines(self.metrics_file)
        return [
            loss for record in records if record.get("kind") == kind and isinstance(loss := record.get("loss"), float)
        ]


class Measure(NamedTuple):
    """A figure for each variant, and how the table shows it."""

    title: str
    of: Callable[[Trained], float]
    digits: int


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)


MEASURES = {
    "training loss": Measure("training loss, nats per token", lambda one: one.reported("train")[-1], 3),
    "loss": Measure("validation loss, nats per token", lambda one: one.report.loss, 3),
    "perplexity": Measure("perplexity", lambda one: one.report.perplexity, 2),
    "forced": Measure("right tokens if the target is given, %", lambda one: 100 * one.calibration.accuracy, 1),
    "symbols": Measure(
        "right symbols when generated, %", lambda one: _mean(row.symbols for row in one.exact_matches), 1
    ),
    "exact": Measure("whole sequences right, %", lambda one: _mean(row.exact for row in one.exact_matches), 1),
    "bleu": Measure("BLEU", lambda one: one.report.metric("bleu"), 1),
    "unknown": Measure("words that are [UNK], %", lambda one: one.report.metric("unknown"), 1),
    "length": Measure("length, references = 1", lambda one: one.report.metric("length_ratio"), 3),
    "confidence": Measure("mean probability of the best token, %", lambda one: 100 * one.calibration.confidence, 1),
    "calibration": Measure("expected calibration error, %", lambda one: 100 * one.calibration.error, 1),
}
"""By the name that an ablation uses."""


class Replacement(NamedTuple):
    """A part of the model that is replaced from outside, where the config has no such setting.

    The code of the model knows nothing of this. While `replaced` is active, a function of the model is another one, in
    this process; the parameters keep their names and shapes.
    """

    owner: Any
    attribute: str
    value: Any


def nothing_hidden(model: Transformer, x: Tensor) -> None:
    """No causal mask: each position of the target reads all others, later ones too."""


def queries_without_scaling(attention: MultiHeadAttention, queries: Tensor, rotation: Rotation | None) -> Tensor:
    """Queries (B, H, Q, K) times sqrt(K), which undoes the division of the scores by sqrt(K)."""
    scaled: Tensor = _queries(attention, queries, rotation)
    return scaled * math.sqrt(scaled.size(-1))


def without_residual(x: Tensor, sublayer: Function, norm: Function, dropout: Function) -> Tensor:
    """dropout(sublayer(norm(x))): the sub-layer replaces its input instead of adding to it."""
    return dropout(sublayer(norm(x)))


def sublayers_without_source(
    layer: DecoderLayer, x: Tensor, attend_to_target: Function, attend_to_source: Function
) -> Tensor:
    """The sub-layers of a decoder layer, of which cross-attention adds zeros: nothing of the source arrives."""

    def attend_in_vain(x: Tensor) -> Tensor:
        return attend_to_source(x) * 0.0

    found: Tensor = _apply_sublayers(layer, x, attend_to_target, attend_in_vain)
    return found


_queries: Callable[..., Any] = MultiHeadAttention._queries
_apply_sublayers: Callable[..., Any] = DecoderLayer._apply_sublayers

REPLACEMENTS = {
    "causal mask": Replacement(Transformer, "mask_of_targets", nothing_hidden),
    "scaling": Replacement(MultiHeadAttention, "_queries", queries_without_scaling),
    "residual connections": Replacement(layers, "_PLACEMENTS", {"pre": without_residual}),
    "cross-attention": Replacement(DecoderLayer, "_apply_sublayers", sublayers_without_source),
}
"""By the name of the part that is taken away."""


@contextmanager
def replaced(part: str | None) -> Iterator[None]:
    """Inside the block, each model of this process is built and computed without this part, in its plain form; None: as usual.

    The faster forms of a model, such as that of a search, know nothing of the replacement.
    """
    if part is None:
        yield
        return
    with ExitStack() as stack:
        for owner, attribute, value in (REPLACEMENTS[part], (plain_form, "IS_PLAIN", True)):
            stack.callback(setattr, owner, attribute, getattr(owner, attribute))
            setattr(owner, attribute, value)
        yield


@dataclass(frozen=True, slots=True)
class VariantOutcome:
    """What was measured on one variant of an ablation."""

    label: str
    folder: Path
    """Its run folder."""
    figures: dict[str, float]
    """By the name of the measure."""
    translation: str
    """Of the sample of the ablation."""
    cpu_seconds: float
    """CPU time of this training and these measurements, in this process; almost 0 if the run was finished before."""

    def as_json(self) -> dict[str, Any]:
        """A dictionary for `json.dump`; None for infinity and NaN, which JSON does not have."""
        return {
            "variant": self.label,
            "run": str(self.folder),
            "figures": {name: value if math.isfinite(value) else None for name, value in self.figures.items()},
            "translation": self.translation,
            "cpu_seconds": round(self.cpu_seconds, 1),
        }


def configs_of(ablation: Ablation, overrides: Sequence[str] = ()) -> list[Config]:
    """The config of each variant: the shared settings, then those of the user, then those of the variant.

    Raises:
        ConfigError: an override is not a setting, or does not fit the experiment.
    """
    return [
        load_config(
            ablation.config,
            [*SMALL_MACHINE, *ablation.settings, *overrides, *variant.settings, f"name={name}"],
        )
        for variant, name in zip(ablation.variants, _run_names(ablation.variants), strict=True)
    ]


def try_variants(
    ablation: Ablation,
    folder: Path,
    overrides: Sequence[str] = (),
    *,
    callbacks: Callable[[Variant], Iterable[Callback]] = lambda _: (),
) -> list[VariantOutcome]:
    """Train each variant of an ablation, and measure it; finished runs are only measured.

    Args:
        folder: the runs are kept in it; it should not be runs/, where commands look for the newest run.
        overrides: settings for all variants, as in `--set`, such as seed=2.
        callbacks: for the training of this variant, such as a progress bar.

    Raises:
        As `train`.
    """
    configs = configs_of(ablation, overrides)
    return [
        _try(ablation, variant, config, folder, callbacks)
        for variant, config in zip(ablation.variants, configs, strict=True)
    ]


def remove_replaced(ablation: Ablation, outcomes: Sequence[VariantOutcome]) -> list[Path]:
    """Delete the checkpoints of variants in which a part was replaced; returns their run folders.

    Any other command would compute with the usual part, and its results would not be those of this model.
    """
    folders = [
        outcome.folder
        for variant, outcome in zip(ablation.variants, outcomes, strict=True)
        if variant.replaced is not None
    ]
    remove(RunFolder(folder).checkpoints_folder for folder in folders)
    return folders


def _run_names(variants: Sequence[Variant]) -> list[str]:
    """The name of the run of each variant; variants that differ only in decoding share the first one's."""
    names: dict[tuple[tuple[str, ...], str | None], str] = {}
    for variant in variants:
        names.setdefault(variant.training, re.sub(r"[^a-z0-9]+", "-", variant.label.lower()).strip("-"))
    return [names[variant.training] for variant in variants]


def _try(
    ablation: Ablation,
    variant: Variant,
    config: Config,
    folder: Path,
    callbacks: Callable[[Variant], Iterable[Callback]],
) -> VariantOutcome:
    started_at = time.process_time()
    with replaced(variant.replaced):
        run = train(config, callbacks=callbacks(variant), runs_folder=folder)
        asked = override_settings(config, variant.decoding)
        translator = load_translator(run.folder, which="last", decoding=asked.decoding, runtime=asked.runtime)
        trained = Trained(
            config,
            RunFolder(run.folder).metrics_file,
            translator,
            pairs_to_validate(config, held_out_pairs(config, "validation")),
        )
        figures = {name: MEASURES[name].of(trained) for name in ablation.measures}
        [translation] = translator.translate([ablation.sample])
    spent = time.process_time() - started_at
    return VariantOutcome(variant.label, folder / config.name, figures, translation.text, spent)


_GOES_ON = "%s: finished trainings and checkpoints are kept; the same command goes on from them"


def curves_picture(ablation: Ablation, outcomes: Sequence[VariantOutcome]) -> bytes:
    """A PNG file; equal runs give equal bytes."""
    figure = Figure(figsize=(9.0, 3.6), dpi=100, layout="constrained")
    figure.suptitle(ablation.subject, x=0.01, ha="left", fontsize=11)
    curves, bars = figure.subplots(1, 2, width_ratios=(1.7, 1))
    _draw_curves(curves, outcomes)
    _draw_bars(bars, ablation, outcomes)
    png = io.BytesIO()
    figure.savefig(png, format="png", metadata={"Software": None})
    return png.getvalue()


def _draw_curves(axes: Axes, outcomes: Sequence[VariantOutcome]) -> None:
    """One line for each training; variants that differ only in decoding share one."""
    folders: list[Path] = []
    for number, outcome in enumerate(outcomes):
        if outcome.folder in folders:
            continue
        folders.append(outcome.folder)
        losses = finite(read_series(RunFolder(outcome.folder).metrics_file).training["loss"])
        draw_line(axes, [*losses], [*losses.values()], number, label=outcome.label)
    axes.set_xlabel("step")
    axes.set_title("training loss, nats per token", fontsize=10, loc="left")
    axes.grid(alpha=0.3)
    axes.set_ylim(bottom=0)
    if len(folders) > 1:
        axes.legend(frameon=False)


def _draw_bars(axes: Axes, ablation: Ablation, outcomes: Sequence[VariantOutcome]) -> None:
    """The figure that shows the difference, as a bar for each variant."""
    measure = MEASURES[ablation.drawn]
    # A figure that is no finite number has no bar.
    values = [value if math.isfinite(value := outcome.figures[ablation.drawn]) else 0.0 for outcome in outcomes]
    colours = [color_of(number) for number in range(len(outcomes))]
    bars = axes.barh([outcome.label for outcome in outcomes], values, color=colours, height=0.5)
    axes.bar_label(bars, [f"{one.figures[ablation.drawn]:.{measure.digits}f}" for one in outcomes], padding=4)
    axes.set_title(measure.title, fontsize=10, loc="left")
    axes.invert_yaxis()
    axes.set_xlim(0, 1.25 * max(values) or 1)
    axes.tick_params(left=False, bottom=False, labelbottom=False)
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)


@contextmanager
def kept_folder(folder: Path) -> Iterator[None]:
    """Make a folder. If a signal ends the block, remove it again while it is empty, and say what is kept."""
    new = [path for path in (folder, folder.parent) if not path.exists()]

    def tell() -> None:
        for path in new:
            with suppress(OSError):  # it holds something
                REAL.remove_folder(path)
        told = _GOES_ON % folder if folder.exists() else "no training has begun, so nothing is kept"
        sys.stderr.write(f"{told}\n")

    with cleaned_up(tell):
        make_folders(folder)
        try:
            yield
        except InterruptedBySignal as error:
            error.hint = _GOES_ON % folder
            raise


class AnnouncedTrainings:
    """Announces each training, and makes its progress bar."""

    def __init__(self, ablation: Ablation) -> None:
        self.ablation = ablation
        self.trained: list[tuple[tuple[str, ...], str | None]] = []

    def callbacks(self, variant: Variant) -> list[Callback]:
        """The progress bar of a training that begins now; none for a variant that shares an earlier one."""
        if variant.training in self.trained:
            return []
        self.trained.append(variant.training)
        settings = ", ".join(variant.settings)
        how = settings or (f"without {variant.replaced}" if variant.replaced else "as usual")
        number, count = len(self.trained), self.ablation.num_trainings
        sys.stderr.write(f"training {number} of {count}: {variant.label} ({how})\n")
        return progress_bars()
