"""The JSON of a benchmark: written by `--json`, read by `--compare`."""

import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from transformer_cli.acceleration.native_kernels import kernel_level
from transformer_cli.config import Config
from transformer_cli.extensions.benchmark.decoding.decoding_benchmark import DecodingReport
from transformer_cli.extensions.benchmark.measuring.processor import processor_name
from transformer_cli.extensions.benchmark.measuring.spread import Spread
from transformer_cli.extensions.benchmark.training.training_benchmark import TrainingReport
from transformer_cli.process.device import environment
from transformer_cli.process.errors import DataError, MissingInputError

FORMAT = 1


def as_json(config: Config, report: TrainingReport | DecodingReport) -> dict[str, Any]:
    """The report with its conditions: versions, hardware, and every setting but the paths of the corpus."""
    kind = "training" if isinstance(report, TrainingReport) else "decoding"
    settings = config.model_dump(mode="json", exclude={"data": {"root"}})
    for corpus in settings["data"].get("corpora", ()):
        for name in [name for name in corpus if name.endswith("path")]:
            del corpus[name]
    conditions = {
        "processor": processor_name(),
        "environment": environment(kernel_level()),
        "settings": settings,
    }
    about = {"tfm_benchmark": FORMAT, "kind": kind, "name": config.name}
    return about | conditions | _plain(report)


def _plain(value: Any) -> Any:
    """Dataclasses and spreads as objects of JSON."""
    if is_dataclass(value):
        return {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, Spread):
        return value._asdict()
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def read_benchmark(path: Path) -> dict[str, Any]:
    """The content of a file that `tfm benchmark --json` has written.

    Raises:
        MissingInputError: there is no such file.
        DataError: the file is no JSON, or not of a benchmark.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MissingInputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise DataError(f"{path}: not JSON ({error})", hint=_HINT) from error
    if not isinstance(found, dict) or "tfm_benchmark" not in found:
        raise DataError(f"{path}: JSON, but not of a benchmark", hint=_HINT)
    if found["tfm_benchmark"] != FORMAT:
        version = found["tfm_benchmark"]
        raise DataError(
            f"{path}: format {version!r} of a benchmark; this tfm reads format {FORMAT}",
            hint="measure again with this version of tfm",
        )
    return found


_HINT = "write such a file with: tfm benchmark --config X --json > before.json"
