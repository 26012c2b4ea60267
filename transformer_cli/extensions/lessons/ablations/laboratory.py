"""The laboratory: trains the models of an ablation one after the other, and measures them."""

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.config import Config, load_config
from transformer_cli.config.loading import override_settings
from transformer_cli.data.selection import held_out_pairs, pairs_to_validate
from transformer_cli.decoding.loading import load_translator
from transformer_cli.extensions.lessons.ablations.ablation import SMALL_MACHINE, Ablation, Variant
from transformer_cli.extensions.lessons.ablations.measurements import MEASURES, Trained
from transformer_cli.extensions.lessons.ablations.replaced_parts import replaced
from transformer_cli.storage import remove
from transformer_cli.training.callbacks import Callback
from transformer_cli.training.run import train


@dataclass(frozen=True, slots=True)
class Outcome:
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
        """A dictionary for `json.dump`."""
        return {
            "variant": self.label,
            "run": str(self.folder),
            "figures": self.figures,
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
) -> list[Outcome]:
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


def remove_replaced(ablation: Ablation, outcomes: Sequence[Outcome]) -> list[Path]:
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
        key = variant.settings, variant.replaced
        names.setdefault(key, re.sub(r"[^a-z0-9]+", "-", variant.label.lower()).strip("-"))
    return [names[variant.settings, variant.replaced] for variant in variants]


def _try(
    ablation: Ablation,
    variant: Variant,
    config: Config,
    folder: Path,
    callbacks: Callable[[Variant], Iterable[Callback]],
) -> Outcome:
    started_at = time.process_time()
    with replaced(variant.replaced):
        run = train(config, callbacks=callbacks(variant), runs_folder=folder)
        asked = override_settings(config, variant.decoding)
        translator = load_translator(
            run.folder, which="last", decoding=asked.decoding, runtime=asked.runtime
        )
        trained = Trained(
            config,
            RunFolder(run.folder).metrics_file,
            translator,
            pairs_to_validate(config, held_out_pairs(config, "validation")),
        )
        figures = {name: MEASURES[name].of(trained) for name in ablation.measures}
        [translation] = translator.translate([ablation.sample])
    spent = time.process_time() - started_at
    return Outcome(variant.label, folder / config.name, figures, translation.text, spent)
