"""What the files of a run say about its training: pairs, steps, hours, hardware, learning curves."""

import json
import re
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from transformer_cli.checkpoint import TrainedFiles
from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.data.pairs import SentencePair, read_validation_pairs
from transformer_cli.data.preparation import REPORT, VALIDATION

_TIME = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) ")
LONGEST_STEP = timedelta(hours=1)
"""A longer time between two lines of the log is a pause between two trainings."""


class Count(NamedTuple):
    """A row of the report of the preparation: what was read, dropped or changed, and how often."""

    name: str
    number: int


class RunRecords(NamedTuple):
    """The records of a run; a checkpoint that was copied alone has none of them."""

    cleaning: list[Count]
    """Training pairs: read, dropped by each rule, kept."""
    num_pairs: dict[str, int]
    """Split -> pairs after cleaning."""
    hours: float | None
    """From the times in the log, without pauses."""
    environment: dict[str, Any]
    metrics_file: Path | None
    validation_pairs: list[SentencePair]


def read_records(files: TrainedFiles) -> RunRecords:
    """The records beside a checkpoint; what is missing or damaged is left out."""
    run = RunFolder.of_checkpoint(files.folder)
    if run is None:
        return RunRecords([], {}, None, {}, None, [])
    report = _json(run.data_folder / REPORT)
    rows = report.get("cleaning")
    counts = report.get("num_pairs")
    return RunRecords(
        [Count(str(row[0]), int(row[1])) for row in rows] if isinstance(rows, list) else [],
        {str(split): int(number) for split, number in counts.items()} if isinstance(counts, dict) else {},
        _hours(run.log_file),
        _json(run.environment_file),
        run.metrics_file if run.metrics_file.is_file() else None,
        _pairs(run.data_folder / VALIDATION),
    )  # fmt: skip


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _pairs(path: Path) -> list[SentencePair]:
    try:
        return read_validation_pairs(path)
    except (OSError, ValueError, TypeError):
        return []


def _hours(log_file: Path) -> float | None:
    try:
        lines = log_file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    matches = filter(None, map(_TIME.match, lines))
    times = [datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S") for match in matches]
    spans = [later - earlier for earlier, later in pairwise(times)]
    total = sum((span for span in spans if timedelta() < span < LONGEST_STEP), timedelta())
    return total.total_seconds() / 3600 if spans else None
