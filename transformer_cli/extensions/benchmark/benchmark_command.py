"""`tfm benchmark`: measures training or translating on this machine, or compares two measurements."""

import logging
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from transformer_cli.checkpoint import TrainedModel
from transformer_cli.checkpoint.run_folder import RUNS, RunFolder
from transformer_cli.commands.output import show
from transformer_cli.config import Config, load_config
from transformer_cli.data.preparation import PreparedData, open_prepared, prepare_data, take_over
from transformer_cli.data.selection import held_out_pairs
from transformer_cli.data.sources.corpus import is_streaming
from transformer_cli.data.streaming import require_shareable
from transformer_cli.decoding.loading import load_run
from transformer_cli.extensions.benchmark.benchmark_file import as_json as json_of
from transformer_cli.extensions.benchmark.comparison import compare
from transformer_cli.extensions.benchmark.decoding.decoding_benchmark import (
    DecodingPacing,
    benchmark_decoding,
)
from transformer_cli.extensions.benchmark.decoding.decoding_subject import Subject
from transformer_cli.extensions.benchmark.decoding.decoding_table import decoding_lines
from transformer_cli.extensions.benchmark.training.training_benchmark import (
    Pacing,
    benchmark_training,
)
from transformer_cli.extensions.benchmark.training.training_table import training_lines
from transformer_cli.process.device import (
    prepare_machine,
    require_cuda_graphs,
    require_training_precision,
)
from transformer_cli.process.signals import cleaned_up
from transformer_cli.storage import remove
from transformer_cli.training.initial_weights import load_initial_model

logger = logging.getLogger(__name__)


def measure_training(
    config_path: str, overrides: Sequence[str], *, num_updates: int | None, as_json: bool
) -> None:
    """Measure the training of a config; nothing stays on the disk, and no run changes."""
    config = load_config(config_path, overrides)
    require_training_precision(config.runtime)
    # A missing device, and a stream that cannot be shared out, are errors before the corpus is read.
    require_cuda_graphs(config.runtime, prepare_machine(config.runtime))
    if is_streaming(config.data):
        require_shareable(config.data, config.training.accumulate, 1)
    with _temporary_folder() as folder:
        data = _prepared(config, folder / "data")
        pacing = Pacing(num_updates=num_updates)
        report = benchmark_training(config, data, folder / "run", pacing)
    show(json_of(config, report), training_lines(report), as_json=as_json)


def measure_decoding(
    config_path: str | None, run: str | None, overrides: Sequence[str], *, as_json: bool
) -> None:
    """Measure translating the validation split: by a config's model with random weights, or by a trained run."""
    if config_path is not None:
        config = load_config(config_path, overrides)
        prepare_machine(config.runtime)
        with _temporary_folder() as folder:
            data = _prepared(config, folder / "data")
        tokenizers = data.source_tokenizer, data.target_tokenizer
        subject = Subject.with_random_weights(config, tokenizers)
        pairs = data.validation
    else:
        loaded = load_run(run, overrides, command="benchmark --decode")
        config, trained = loaded.config, loaded.trained
        assert isinstance(trained, TrainedModel), "this command takes the PyTorch engine only"
        tokenizers = trained.source_tokenizer, trained.target_tokenizer
        subject = Subject.trained(trained.model, tokenizers, config)
        pairs = held_out_pairs(config, "validation")
    report = benchmark_decoding(subject, [pair.source for pair in pairs], DecodingPacing())
    show(json_of(config, report), decoding_lines(report), as_json=as_json)


def show_comparison(before: Path, after: Path, *, as_json: bool) -> None:
    """Print the figures of two files and their ratios; warn of conditions that differ."""
    found = compare(before, after)
    for difference in found.differences:
        logger.warning("the conditions differ: %s", difference)
    facts = {
        "before": str(before),
        "after": str(after),
        "differences": found.differences,
        "figures": [row._asdict() | {"ratio": row.ratio} for row in found.rows],
    }
    width = max((len(row.name) for row in found.rows), default=0)
    lines = [f"{'':{width}}{'before':>18}{'after':>18}{'after/before':>14}"]
    for row in found.rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        lines.append(f"{row.name:{width}}{row.before:>18,.4g}{row.after:>18,.4g}{ratio:>14}")
    show(facts, lines, as_json=as_json)


def _prepared(config: Config, folder: Path) -> PreparedData:
    """The prepared data of the run of this name if they fit the config; else data prepared in a temporary folder.

    They are encoded by the tokenizers of `training.init_from`, if it is set. The weights of that run are not used,
    because they do not change the speed.
    """
    run = RunFolder(RUNS / config.name)
    if (found := open_prepared(config, run.data_folder)) is not None:
        logger.info("%s: these prepared data are used", run.data_folder)
        return found
    initial = load_initial_model(config, run.path)
    logger.info("preparing the data in a temporary folder")
    take_over(config, folder, RUNS)
    tokenizers = None if initial is None else initial.tokenizers
    return prepare_data(config, folder, has_begun=False, tokenizers=tokenizers)


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    # Windows deletes no file that is mapped into memory.
    with (
        tempfile.TemporaryDirectory(prefix="tfm-benchmark-", ignore_cleanup_errors=True) as folder,
        cleaned_up(lambda: remove([Path(folder)])),
    ):
        yield Path(folder)
