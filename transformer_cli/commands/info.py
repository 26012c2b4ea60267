"""`tfm info`: the parameters, settings and files of a run, or of a config before its training."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from transformer_cli.checkpoint import (
    Checkpoint,
    Checkpoints,
    find_run,
    load_trained,
    open_checkpoint,
)
from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.commands.streams.output import show
from transformer_cli.config import Config, SequencesData, load_config, load_stored_config, to_yaml
from transformer_cli.extensions.exchange.porting.exporting.export_formats import all_obstacles
from transformer_cli.model import Transformer
from transformer_cli.process.errors import UsageError
from transformer_cli.text.words import SPECIALS
from transformer_cli.training.initial_weights import checked_origin


def show_info(
    run: str | None,
    config_path: str | None,
    overrides: Sequence[str],
    *,
    parameters: bool,
    as_json: bool,
) -> None:
    """Print facts about a run, or about a config that has not been trained."""
    if config_path is not None:
        config = load_config(config_path, overrides)
        vocab_size = config.tokenizer.vocab_size or _usual_vocabulary(config)
        with torch.device("meta"):
            model = Transformer(config.model, vocab_size, vocab_size)
        facts: dict[str, Any] = {
            "config": config_path,
            "parameters": _count(model),
            "vocabulary_assumed": vocab_size,
        }
    else:
        if overrides:
            raise UsageError("--set goes with --config; the settings of a trained run are fixed")
        config, model, facts = _facts_of_run(find_run(run))
    if len(config.data.directions) > 1:
        facts["directions"] = list(map(str, config.data.directions))
    facts["exports"] = _exits(config)
    if parameters:
        tree = {name: list(value.shape) for name, value in model.named_parameters()}
        facts["parameter_tree"] = tree
    lines = [*_lines(facts), "", to_yaml(config).removesuffix("\n")]
    show(facts | {"settings": config.model_dump(mode="json")}, lines, as_json=as_json)


def _facts_of_run(folder: Path) -> tuple[Config, Transformer, dict[str, Any]]:
    trained = load_trained(folder)
    facts: dict[str, Any] = {
        "run": str(folder),
        "checkpoint": str(trained.folder),
        "step": trained.step,
        "parameters": _count(trained.model),
        "source_vocabulary": trained.source_tokenizer.vocab_size,
        "target_vocabulary": trained.target_tokenizer.vocab_size,
    }
    if origin := checked_origin(open_checkpoint(trained.folder)):
        facts["initial_weights"] = origin
    run_folder = RunFolder.of_checkpoint(trained.folder)
    if run_folder is None:
        return trained.config, trained.model, facts
    checkpoints = Checkpoints(run_folder.path)
    if (newest := checkpoints.newest_valid()) is not None:
        facts["newest_step"] = newest.step
    if (best := checkpoints.best()) is not None:
        facts["best_step"] = best.step
        facts[f"best_{best.manifest.metric}"] = round(best.score or 0.0, 4)
        if scores := _validation_scores(best):
            facts["validation"] = scores
    for path in (run_folder.metrics_file, run_folder.log_file, run_folder.tensorboard_folder):
        if path.exists():
            facts[path.name] = str(path)
    has_config = run_folder.config_file.is_file()
    config = load_stored_config(run_folder.config_file) if has_config else trained.config
    return config, trained.model, facts


def _validation_scores(checkpoint: Checkpoint) -> dict[str, float]:
    """The scores in `state.json`; none before the first validation.

    Raises:
        DataError: they are not names and numbers.
    """
    validation = checkpoint.validation()
    scores = validation.values.get("scores", [])
    try:
        return {str(score["name"]): round(float(score["value"]), 2) for score in scores}
    except (KeyError, TypeError, ValueError, OverflowError):
        raise validation.refusal("scores", "are not names and numbers") from None


def _exits(config: Config) -> dict[str, list[dict[str, str]]]:
    """For each format of `tfm export`, the settings in the way; none: the format is open."""
    return {
        name: [obstacle._asdict() for obstacle in found]
        for name, found in all_obstacles(config).items()
    }


def _exit_lines(exits: dict[str, list[dict[str, str]]]) -> list[str]:
    lines = []
    for name, obstacles in exits.items():
        settings = ", ".join(one["setting"] for one in obstacles)
        shown = f"not with {settings}" if settings else "possible"
        lines.append(f"{f'export --to {name}':<24}{shown}")
    return lines


def _usual_vocabulary(config: Config) -> int:
    """A vocabulary size for a config without one: exact for a synthetic task, usual for text."""
    if isinstance(config.data, SequencesData):
        return config.data.num_symbols + len(SPECIALS)
    return 8000


def _count(model: Transformer) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def _lines(facts: dict[str, Any]) -> list[str]:
    lines = []
    for name, value in facts.items():
        if name == "parameter_tree":
            lines += ["", *_parameter_rows(value)]
            continue
        if name == "exports":
            lines += _exit_lines(value)
            continue
        shown = f"{value:,}" if isinstance(value, int) else str(value)
        if isinstance(value, list):
            shown = ", ".join(value)
        if isinstance(value, dict):
            shown = "  ".join(f"{key} {number}" for key, number in value.items())
        lines.append(f"{name.replace('_', ' '):<24}{shown}")
    return lines


def _parameter_rows(parameters: dict[str, Sequence[int]]) -> list[str]:
    """Name, shape and size of each parameter, in columns as narrow as possible."""
    rows = [
        (name, " x ".join(map(str, shape)), f"{math.prod(shape):,}")
        for name, shape in parameters.items()
    ]
    name_width, shape_width, size_width = (
        max(map(len, column)) for column in zip(*rows, strict=True)
    )
    return [
        f"  {name:<{name_width}}  {shape:>{shape_width}}  {size:>{size_width}}"
        for name, shape, size in rows
    ]
