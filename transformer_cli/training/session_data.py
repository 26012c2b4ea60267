"""What a session reads: the batches of each update, and the pairs that are validated."""

import logging

from transformer_cli.config import Config
from transformer_cli.data.batches.grouping import UpdateSize
from transformer_cli.data.batches.resampled import training_pairs
from transformer_cli.data.batches.updates import Share, Updates
from transformer_cli.data.pairs import SentencePair
from transformer_cli.data.preparation import PreparedData
from transformer_cli.data.selection.held_out import pairs_to_validate
from transformer_cli.data.streaming.resumable import is_streaming
from transformer_cli.data.streaming.streamed import StreamedUpdates
from transformer_cli.runtime import Machine
from transformer_cli.text import SequenceFormat
from transformer_cli.training.processes.process_group import Processes
from transformer_cli.training.progress import Progress

logger = logging.getLogger(__name__)


def updates_of(
    config: Config,
    data: PreparedData,
    progress: Progress,
    machine: Machine,
    processes: Processes,
) -> Updates:
    """The updates of a run from its position on; of several processes, the share of this one."""
    pairs, order = training_pairs(data.train, data.tokenizers, config)
    num_batches = progress.num_micro_batches or config.training.accumulate
    size = UpdateSize(num_batches, config.training.update_tokens)
    share = Share(processes.rank, processes.size)
    position, pin_memory = progress.position, machine.device.type == "cuda"
    if is_streaming(config.data):
        return StreamedUpdates(
            config, data.tokenizers, order, size=size, position=position, pin_memory=pin_memory
        ).shared(share)
    return Updates(
        pairs,
        order,
        size=size,
        position=position,
        sequence_format=SequenceFormat.of(config.data),
        pin_memory=pin_memory,
    ).shared(share)


def validation_pairs(config: Config, data: PreparedData) -> list[SentencePair]:
    """The validation pairs that a run uses; if these are not all, the log says so."""
    pairs = pairs_to_validate(config, data.validation)
    if config.validation.max_sentences is None and len(pairs) < len(data.validation):
        logger.info(
            "validating on %s of the %s validation pairs; --set validation.max_sentences=... sets another "
            "number, and tfm validate scores all",
            f"{len(pairs):,}", f"{len(data.validation):,}",
        )  # fmt: skip
    return pairs
