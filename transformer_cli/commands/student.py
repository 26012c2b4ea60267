"""`tfm student`: a small model learns from the translations of a trained one (knowledge distillation on whole sentences)."""

import logging
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transformer_cli.commands import completion
from transformer_cli.commands.command_line import (
    ConfigOption,
    JsonOption,
    Overrides,
    set_option,
)
from transformer_cli.process.errors import UsageError

if TYPE_CHECKING:
    from transformer_cli.config import Config
    from transformer_cli.data.pairs import SentencePair

logger = logging.getLogger(__name__)

MOST_COMPARED = 500
"""Validation sentences on which teacher and student are compared."""


def student_command(
    config: ConfigOption,
    teacher: Annotated[
        str,
        typer.Option(
            "--teacher", help="Name or folder of the trained run.", autocompletion=completion.runs
        ),
    ],
    folder: Annotated[
        Path | None,
        typer.Option("--folder", help="For the translated corpus. Default: NAME-distilled."),
    ] = None,
    overrides: Annotated[
        Overrides, set_option("training.max_steps=100", completion.settings)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Train a model on the translations of another one, and compare both. The same command continues after an interruption."""
    from transformer_cli.checkpoint import find_run
    from transformer_cli.checkpoint.run_folder import RUNS
    from transformer_cli.commands.output import show
    from transformer_cli.commands.progress_bar import ProgressBar
    from transformer_cli.commands.translate_lines import TranslateOptions, translate_lines
    from transformer_cli.config import load_config
    from transformer_cli.training.run import train

    given = load_config(config, overrides or [])
    if len(given.data.directions) > 1:
        raise UsageError("a student learns one direction of translation, and this config has more")
    if find_run(teacher).resolve() == (RUNS / given.name).resolve():
        raise UsageError(
            f"{config}: its name, {given.name}, is that of the teacher, so the student would train in the teacher's folder",
            hint="give the student another name: --set name=student",
        )
    place = folder or Path(f"{given.name}-distilled")
    validation = _write_corpus(given, place)
    translated = place / TRAIN_TARGET
    if translated.exists():
        logger.info("%s: already translated; delete it to translate again", translated)
    else:
        translate_lines(
            place / TRAIN_SOURCE, translated, TranslateOptions(run=teacher, resume=True)
        )
    settings = _distilled(given, place)
    train(settings, callbacks=[ProgressBar()])
    rows = [
        _measured(role, run, validation)
        for role, run in (("teacher", teacher), ("student", settings.name))
    ]
    show({"corpus": str(place), "models": rows}, _table(rows), as_json=as_json)


TRAIN_SOURCE, TRAIN_TARGET = "train.source", "train.target"
VALIDATION_SOURCE, VALIDATION_TARGET = "validation.source", "validation.target"


def _write_corpus(config: "Config", folder: Path) -> "list[SentencePair]":
    """Write the sources of the cleaned training pairs, and the validation pairs as they are; returns the latter."""
    from transformer_cli.data.selection import (
        CleaningReport,
        all_held_out_pairs,
        clean,
        held_out_digests,
    )
    from transformer_cli.data.sources.corpus import read_pairs
    from transformer_cli.storage import make_folders, replace_file

    held_out = all_held_out_pairs(config)
    pairs = clean(
        read_pairs(config.data, "train", seed=config.seed),
        config.cleaning,
        CleaningReport(),
        held_out=held_out_digests(config, held_out),
    )
    validation = held_out["validation"].pairs
    texts = {
        TRAIN_SOURCE: _lines(pair.source for pair in pairs),
        VALIDATION_SOURCE: _lines(pair.source for pair in validation),
        VALIDATION_TARGET: _lines(pair.target for pair in validation),
    }
    make_folders(folder)
    for name, content in texts.items():
        path = folder / name
        if not path.exists():
            replace_file(path, content)
        elif path.read_bytes() != content:
            raise UsageError(
                f"{path}: made from another corpus or with other rules of cleaning",
                hint="give another --folder, or delete this one",
            )
    return validation


def _lines(texts: Iterable[str]) -> bytes:
    """One text a line: line breaks inside a text become spaces."""
    return "".join(f"{' '.join(text.splitlines())}\n" for text in texts).encode()


def _distilled(config: "Config", folder: Path) -> "Config":
    """The config of the student, whose training pairs are the translations of the teacher."""
    from transformer_cli.config import to_yaml
    from transformer_cli.config.loading import check_settings, parse_yaml

    settings = parse_yaml(to_yaml(config), config.name)
    [direction] = config.data.directions
    settings["data"] = {
        "source": "files",
        "root": str(folder),
        "source_language": direction.source,
        "target_language": direction.target,
        "cleaning": settings["data"]["cleaning"],
        "corpora": [
            {"split": "train", "source_path": TRAIN_SOURCE, "target_path": TRAIN_TARGET},
            {
                "split": "validation",
                "source_path": VALIDATION_SOURCE,
                "target_path": VALIDATION_TARGET,
            },
        ],
    }
    return check_settings(settings, config.name)


def _measured(role: str, run: str, pairs: "Sequence[SentencePair]") -> dict[str, Any]:
    """Scores, size and speed of a run on a CPU, on the first validation pairs."""
    from transformer_cli.decoding.translator import load_run
    from transformer_cli.evaluation import validate

    loaded = load_run(run, ["runtime.device=cpu", "decoding.engine=torch"])
    translator = loaded.translator
    compared = [pair._replace(corpus=0, direction=0) for pair in pairs[:MOST_COMPARED]]
    names = ("bleu", "chrf")
    report = validate(translator, compared, scores=names, num_samples=0)
    started_at = time.process_time()
    texts = [one.text for one in translator.translate([pair.source for pair in compared])]
    cpu_seconds = time.process_time() - started_at
    num_tokens = sum(len(translator.pipeline.target_ids(text)) for text in texts)
    model: Any = loaded.trained
    return {
        "model": role,
        "run": str(loaded.trained.folder),
        "parameters": sum(one.numel() for one in model.model.parameters()),
        **{name: round(score.value, 2) for name, score in zip(names, report.scores, strict=True)},
        "signature": report.scores[0].signature,
        "sentences": len(compared),
        "tokens_per_cpu_second": round(num_tokens / max(cpu_seconds, 1e-9)),
    }


def _table(rows: list[dict[str, Any]]) -> list[str]:
    names = ("model", "parameters", "bleu", "chrf", "tokens_per_cpu_second")
    lines = [f"{'model':<10}{'parameters':>14}{'BLEU':>8}{'chrF':>8}{'tokens per CPU second':>24}"]
    for row in rows:
        role, size, bleu, chrf, speed = (row[name] for name in names)
        lines.append(f"{role:<10}{size:>14,}{bleu:>8.1f}{chrf:>8.1f}{speed:>24,}")
    lines.append(f"{rows[0]['sentences']} validation sentences; BLEU: {rows[0]['signature']}")
    return lines
