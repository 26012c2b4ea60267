"""`tfm info`: what a run or a config is."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from transformer_cli.checkpoint import Checkpoints, find_run, load_trained
from transformer_cli.commands.loading import CONFIG_FILE, RUNS
from transformer_cli.config import Config, load_config, to_yaml
from transformer_cli.errors import UsageError
from transformer_cli.model.transformer import Transformer


def show_info(
    run: str | None,
    config_path: str | None,
    overrides: Sequence[str],
    *,
    parameters: bool,
    as_json: bool,
) -> None:
    """Print what is known about a run, or about a config that has not been trained."""
    if config_path is not None:
        config = load_config(config_path, overrides)
        vocab_size = config.tokenizer.vocab_size or 8000
        with torch.device("meta"):
            model = Transformer(config.model, vocab_size, vocab_size)
        facts: dict[str, Any] = {
            "config": config_path,
            "parameters": _count(model),
            "vocabulary assumed": vocab_size,
        }
    else:
        if overrides:
            raise UsageError("--set goes with --config; a run's settings are what they were")
        config, model, facts = _facts_of_run(find_run(run, RUNS))
    if parameters:
        facts["parameter tree"] = {
            name: list(value.shape) for name, value in model.named_parameters()
        }
    if as_json:
        json.dump(
            facts | {"settings": config.model_dump(mode="json")}, sys.stdout, ensure_ascii=False
        )
        sys.stdout.write("\n")
    else:
        sys.stdout.write("\n".join([*_lines(facts), "", to_yaml(config)]))


def _facts_of_run(folder: Path) -> tuple[Config, Transformer, dict[str, Any]]:
    trained = load_trained(folder)
    facts: dict[str, Any] = {
        "run": str(folder),
        "best checkpoint": str(trained.folder),
        "parameters": _count(trained.model),
        "source vocabulary": trained.source_tokenizer.vocab_size,
        "target vocabulary": trained.target_tokenizer.vocab_size,
    }
    run_folder = trained.folder.parent.parent
    checkpoints = Checkpoints(run_folder)
    newest = checkpoints.newest_valid()
    if newest is not None:
        facts["newest step"] = newest.step
    best = checkpoints.best()
    if best is not None:
        facts["best step"] = best.step
        facts[f"best {best.manifest.metric}"] = best.score
        for score in best.state().get("validation", {}).get("scores", []):
            facts[f"{score['name']} on validation, there"] = round(score["value"], 2)
    named = run_folder / CONFIG_FILE
    for name in ("metrics.jsonl", "train.log", "tensorboard"):
        if (run_folder / name).exists():
            facts[name] = str(run_folder / name)
    return (load_config(named) if named.is_file() else trained.config), trained.model, facts


def _count(model: Transformer) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def _lines(facts: dict[str, Any]) -> list[str]:
    lines = []
    for name, value in facts.items():
        if name == "parameter tree":
            width = max(map(len, value))
            lines += ["", *(_row(key, shape, width) for key, shape in value.items())]
        else:
            shown = f"{value:,}" if isinstance(value, int) else str(value)
            lines.append(f"{name:<34}{shown}")
    return lines


def _row(name: str, shape: Sequence[int], width: int) -> str:
    size = 1
    for length in shape:
        size *= length
    return f"  {name:<{width}}  {' x '.join(map(str, shape)):>14}  {size:>14,}"
