"""A model from elsewhere as a value, and the run folder that is made of it, which appears whole or not at all."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from transformer_cli import __version__
from transformer_cli.acceleration.native_kernels import kernel_level
from transformer_cli.checkpoint.checkpoints import Checkpoints, portable_files
from transformer_cli.checkpoint.run_folder import IMPORTED, RUNS, RunFolder, Snapshot
from transformer_cli.config import Config, FilesData, TrainingConfig, to_yaml
from transformer_cli.model import Transformer
from transformer_cli.process.device import environment
from transformer_cli.process.errors import CannotCreateError
from transformer_cli.process.messages import for_shell, on_one_line
from transformer_cli.storage import make_folders, replace_file, staged_folder
from transformer_cli.text.tokenizer import Tokenizers
from transformer_cli.training.callbacks import Meter
from transformer_cli.training.loop import Progress

FINE_TUNING = TrainingConfig(
    max_epochs=3,
    batch_tokens=2000,
    update_tokens=4000,
    learning_rate=1e-4,
    warmup_steps=200,
    log_every=20,
    validate_every=200,
    save_every=200,
    keep_best=1,
    best_metric="chrf",
)
"""A proposal for the fine-tuning of a model whose training is not known."""
MOST_HYPOTHESES = 64
"""The largest `decoding.beam_size`; a wider beam of another program becomes one of this width."""


Comparison = Callable[[Transformer], list[str]]
"""Compares our model with the program from which it comes; returns what it found, as lines for people.

Raises:
    DataError: they compute different things.
"""


@dataclass(frozen=True, slots=True)
class ImportedModel:
    """A model with its tokenizers, and what is known of its training."""

    origin: str
    """The kind of the model, such as MarianMTModel."""
    config: Config
    """Of the run that is made."""
    state: Mapping[str, Tensor]
    tokenizers: Tokenizers
    compare: Comparison
    step: int = 0
    """Number of updates of the model; 0 if it is not known."""
    notes: tuple[str, ...] = ()
    """What the user should know."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Further files of the run folder, by their names."""


class ImportedRun(NamedTuple):
    """A run that was made."""

    path: Path
    num_parameters: int
    compared: list[str]
    """What the comparison with the other program found, for people."""


def write_run(imported: ImportedModel, runs_folder: Path = RUNS) -> ImportedRun:
    """Make a run of a model, after it was compared with the program from which it comes.

    Raises:
        CannotCreateError: there is a run of this name.
        DataError: the model computes something else than the other program.
    """
    config = imported.config
    require_new(config.name, runs_folder)
    path = runs_folder / config.name
    source, target = imported.tokenizers
    with torch.device("meta"):
        model = Transformer(config.model, source.vocab_size, target.vocab_size)
    model.load_state_dict(imported.state, assign=True)
    compared = imported.compare(model.eval())
    record = {"from": imported.origin, "tfm": __version__, "compared": compared}
    snapshot = Snapshot(
        step=imported.step,
        model=model.state_dict(),
        optimizer={},
        state={
            "progress": Progress(step=imported.step).to_json(),
            "meter": Meter(torch.device("cpu")).to_json(),
            "validation": {},
            IMPORTED: record,
        },
        files=portable_files(config, source, target),
    )
    make_folders(runs_folder)
    with staged_folder(path) as partial:
        Checkpoints(partial).save(snapshot)
        folder = RunFolder(partial)
        replace_file(folder.config_file, (_heading(imported) + to_yaml(config)).encode())
        for file_name, content in imported.files.items():
            replace_file(partial / file_name, content)
        described = environment(kernel_level()) | {IMPORTED: record}
        replace_file(folder.environment_file, json.dumps(described, indent=1).encode())
        require_new(config.name, runs_folder)  # another process may have made one in the meantime
    num_parameters = sum(parameter.numel() for parameter in model.parameters())
    return ImportedRun(path, num_parameters, compared)


def require_new(name: str, runs_folder: Path = RUNS) -> None:
    """Raise CannotCreateError if there is a run of this name."""
    if os.path.lexists(runs_folder / name):
        raise CannotCreateError(f"{runs_folder / name}: exists already", hint="give another name: --name")


def fine_tuning_command(config: Config, runs_folder: Path = RUNS) -> str:
    """The command that starts the fine-tuning of an imported run; the corpus in it is an example."""
    name, data = config.name, config.data
    changes = [f"name={name}-tuned", f"training.init_from={name}"]
    if isinstance(data, FilesData):
        is_one_file = data.corpora[0].path is not None
        texts = {f"{side}_path": f"my.{getattr(data, f'{side}_language')}" for side in ("source", "target")}
        files = {"path": "my-corpus.tsv"} if is_one_file else texts
        if len(data.corpora) == 1:
            changes += [f"data.corpora.0.{key}={file}" for key, file in files.items()]
        else:  # those of the validation and test splits are not here, either
            described = ", ".join(f"{key}: {file}" for key, file in files.items())
            changes.append(f"data.corpora=[{{{described}}}]")
    settings = " ".join(f"--set {for_shell(change)}" for change in changes)
    return f"tfm train --config {for_shell(RunFolder(runs_folder / name).config_file)} {settings}"


def _heading(imported: ImportedModel) -> str:
    """The comment at the head of config.yaml."""
    lines = [
        f"This run was imported: {on_one_line(imported.origin)}. It translates as it is.",
        "Fine-tuning makes a new run of it, with your pairs of sentences (a TSV file: source, tab, target; or the names of",
        "two text files, data.corpora.0.source_path and target_path, with data.corpora.0.path=null):",
        f"  {fine_tuning_command(imported.config)}",
    ]
    if imported.config.training == FINE_TUNING:
        lines.append("The sections data and training are a proposal for that.")
    return "".join(f"# {line}\n" for line in lines)
