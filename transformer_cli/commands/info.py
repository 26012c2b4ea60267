"""`tfm info`: the parameters, settings and files of a run, or of a config before its training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transformer_cli.checkpoint.checkpoints import Checkpoints
from transformer_cli.checkpoint.run_folder import Checkpoint, RunFolder, name_of_run, open_checkpoint
from transformer_cli.checkpoint.trained_files import find_run, load_trained
from transformer_cli.commands import completion
from transformer_cli.commands.command_line import JsonOption, Overrides, RunOption, set_option
from transformer_cli.commands.output import show
from transformer_cli.config import Config, SequencesData, load_config, load_stored_config, to_yaml
from transformer_cli.process.errors import UsageError
from transformer_cli.text.normalization import SPECIALS

if TYPE_CHECKING:
    from transformer_cli.model import Transformer

EXPORT_OBSTACLES = "transformer_cli.extensions.exchange.export:possible_formats"


def info_command(
    run: RunOption = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            "-c",
            help="Show a config instead of a run.",
            autocompletion=completion.configs,
        ),
    ] = None,
    overrides: Annotated[Overrides, set_option("model.d_model=256", completion.settings)] = None,
    parameters: Annotated[bool, typer.Option("--parameters", help="List every parameter.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show a run or a config. Parameters, vocabularies, best scores, and where the files are."""
    if run and config:
        raise UsageError("give either --run or --config, not both")

    if config is not None:
        settings, model, facts = _facts_of_config(config, overrides or [])
    elif overrides:
        raise UsageError("--set goes with --config; the settings of a trained run are fixed")
    else:
        settings, model, facts = _facts_of_run(find_run(run))
    if len(settings.data.directions) > 1:
        facts["directions"] = list(map(str, settings.data.directions))
    # For each format of `tfm export`, the settings in the way; none: the format is open.
    facts["exports"] = {
        name: [obstacle._asdict() for obstacle in found]
        for name, found in resolve_name(EXPORT_OBSTACLES)(settings).items()
    }
    if parameters:
        tree = {name: list(value.shape) for name, value in model.named_parameters()}
        facts["parameter_tree"] = tree
    lines = [*_lines(facts), "", to_yaml(settings).removesuffix("\n")]
    show(facts | {"settings": settings.model_dump(mode="json")}, lines, as_json=as_json)


def _facts_of_config(path: str, overrides: Sequence[str]) -> tuple[Config, Transformer, dict[str, Any]]:
    import torch

    from transformer_cli.model import Transformer

    config = load_config(path, overrides)
    vocab_size = config.tokenizer.vocab_size or _usual_vocabulary(config)
    with torch.device("meta"):
        model = Transformer(config.model, vocab_size, vocab_size)
    facts = {"config": path, "parameters": _count(model), "vocabulary_assumed": vocab_size}
    return config, model, facts


def _facts_of_run(folder: Path) -> tuple[Config, Transformer, dict[str, Any]]:
    from transformer_cli.training.initial_weights import checked_origin

    trained = load_trained(folder)
    facts: dict[str, Any] = {
        "run": name_of_run(folder),
        "checkpoint": str(trained.folder),
        "step": trained.step,
        "parameters": _count(trained.model),
        "source_vocabulary": trained.source_tokenizer.vocab_size,
        "target_vocabulary": trained.target_tokenizer.vocab_size,
    }
    if origin := checked_origin(open_checkpoint(trained.folder)):
        facts["initial_weights"] = origin
    run_folder = RunFolder.containing(trained.folder)
    if run_folder is None:
        return trained.config, trained.model, facts
    checkpoints = Checkpoints(run_folder.path)
    if (newest := checkpoints.newest_valid()) is not None:
        facts["newest_step"] = newest.step
    if (best := checkpoints.best()) is not None:
        facts["best_step"] = best.step
        facts[f"best_{best.manifest.metric}"] = round(best.manifest.score or 0.0, 4)
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
    rows = [(name, " x ".join(map(str, shape)), f"{math.prod(shape):,}") for name, shape in parameters.items()]
    name_width, shape_width, size_width = (max(map(len, column)) for column in zip(*rows, strict=True))
    return [f"  {name:<{name_width}}  {shape:>{shape_width}}  {size:>{size_width}}" for name, shape, size in rows]
