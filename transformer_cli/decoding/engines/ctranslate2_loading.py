"""Loads the CTranslate2 engine of a checkpoint; at the first use, the model is converted and checked."""

import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import replace

from transformer_cli.checkpoint import TrainedFiles
from transformer_cli.checkpoint.converted import converted_files
from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.config import Config, ModelConfig, RuntimeConfig
from transformer_cli.decoding.engine import ExplainingEngine, Request, SpecialIds
from transformer_cli.decoding.engines.agreement import require_agreement
from transformer_cli.decoding.engines.ctranslate2_engine import CTranslate2Engine, load_translator
from transformer_cli.decoding.text_pipeline import TextPipeline
from transformer_cli.extensions.exchange.interchange.ctranslate2_files import (
    LAYOUT,
    ctranslate2_files,
    num_positions,
    require_convertible,
    require_ctranslate2,
)
from transformer_cli.process.errors import ConfigError
from transformer_cli.text import SequenceFormat

logger = logging.getLogger(__name__)

NUM_CHECKED = 20
"""Sentences whose translations must be those of PyTorch before a converted model is kept."""


def compute_type(runtime: RuntimeConfig) -> str:
    """The precision in which CTranslate2 computes: float32, unless the config names another one."""
    return "float32" if runtime.precision == "auto" else runtime.precision


def require_possible(model: ModelConfig, sequence_format: SequenceFormat) -> None:
    """Check that CTranslate2 is installed and can translate with a model.

    Raises:
        ConfigError: it is not, or it cannot.
    """
    require_ctranslate2("decoding.engine: ctranslate2")
    require_convertible(model)
    if not sequence_format.has_end or not sequence_format.is_shifted:
        raise ConfigError(
            "decoding.engine: ctranslate2, but the model has no [EOS] or reads its target unshifted "
            "(data.end_symbol, data.shift_target)",
            hint="use the other engine: --set decoding.engine=torch",
        )


def load_ctranslate2_engine(
    files: TrainedFiles,
    config: Config,
    pipeline: TextPipeline,
    pytorch: Callable[[], ExplainingEngine],
) -> CTranslate2Engine:
    """The CTranslate2 engine of a checkpoint.

    Args:
        files: of the checkpoint.
        config: with the settings of decoding and of the machine.
        pipeline: makes requests of the validation sentences with which a newly converted model is checked.
        pytorch: loads the PyTorch engine of the same checkpoint, in float32.

    Raises:
        ConfigError: CTranslate2 is not installed, or a setting asks for something that it does not do.
        DataError: the converted model does not translate as PyTorch does.
        DamagedError: the weights have changed since they were saved.
    """
    require_possible(config.model, SequenceFormat.of(config.data))
    runtime, tokenizer = config.runtime, files.target_tokenizer

    def engine_of(made: Mapping[str, bytes], precision: str) -> CTranslate2Engine:
        return CTranslate2Engine(
            load_translator(made, runtime.device, precision, runtime.threads or 0),
            SpecialIds.of(tokenizer),
            num_positions(config.model),
            tokenizer.vocab_size,
            tokenizer.has_whole_characters,
            pytorch,
        )

    def convert() -> dict[str, bytes]:
        from transformer_cli.checkpoint import load_weights

        logger.info("%s: converting the model for CTranslate2", files.folder)
        made = ctranslate2_files(load_weights(files).model, tokenizer)
        requests = _requests(files, pipeline)
        engine = engine_of(made, "float32")
        require_agreement(engine, pytorch(), requests, what=f"{files.folder}: converted")
        return made

    made = converted_files(files.checkpoint, "ctranslate2", LAYOUT, convert)
    return engine_of(made, compute_type(runtime))


def _requests(files: TrainedFiles, pipeline: TextPipeline) -> list[Request]:
    """The first validation sentences of the run; without them, random tokens."""
    run = RunFolder.of_checkpoint(files.folder)
    sources = [] if run is None else _validation_sources(run)
    pipelines = [(replace(pipeline, direction=number), line) for line, number in sources]
    requests = [part for one, line in pipelines for part in one.prepare(line).parts]
    return list(dict.fromkeys(requests))[:NUM_CHECKED] or _random_requests(files)


def _validation_sources(run: RunFolder) -> list[tuple[str, int]]:
    """Source texts and their directions."""
    from transformer_cli.data.pairs import read_validation_pairs
    from transformer_cli.data.preparation import VALIDATION

    try:
        pairs = read_validation_pairs(run.data_folder / VALIDATION)[:NUM_CHECKED]
    except (OSError, ValueError, TypeError):
        return []  # an older run, or one whose data was deleted
    return [(pair.source, pair.direction) for pair in pairs]


def _random_requests(files: TrainedFiles) -> list[Request]:
    generator, tokenizer = random.Random(0), files.source_tokenizer
    ordinary = range(len(tokenizer.special_tokens), tokenizer.vocab_size)
    longest = max(1, files.config.model.max_length - 1)
    lengths = [min(number, longest) for number in range(1, NUM_CHECKED + 1)]
    return [Request((*generator.choices(ordinary, k=k), tokenizer.eos_id)) for k in lengths]
