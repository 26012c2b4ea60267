"""The floating-point operations (FLOP) of a model's matrix products, computed from its config.

A product of (m, k) and (k, n) takes m k n multiplications and as many additions, so 2 m k n FLOP. Everything else
(norms, softmax, dropout, the loss) is left out, as in the literature on the share of a peak that a training reaches.
"""

from dataclasses import dataclass, fields

from transformer_cli.config import ModelConfig
from transformer_cli.data.updates import Batch


@dataclass(frozen=True, slots=True)
class Work:
    """The numbers that decide the cost of a batch: its tokens, and its pairs of query and key positions."""

    source_tokens: int = 0
    target_tokens: int = 0
    source_pairs: int = 0
    """Pairs of a query and a key in the self-attention of the encoder: S S for a sentence of S tokens."""
    target_pairs: int = 0
    """The same in the decoder: T (T + 1) / 2, as a position sees itself and those before it."""
    cross_pairs: int = 0
    """The same in cross-attention: T S."""

    def __add__(self, other: "Work") -> "Work":
        return Work(
            *(getattr(self, part.name) + getattr(other, part.name) for part in fields(self))
        )


def work_of(batch: Batch) -> Work:
    """The work that the real tokens of a batch need; padding is left out."""
    source_lengths = batch.source_mask.sum(1)  # (B,)
    target_lengths = (batch.target_ids != batch.pad_id).sum(1)  # (B,)
    return Work(
        int(source_lengths.sum()),
        int(target_lengths.sum()),
        int((source_lengths * source_lengths).sum()),
        int((target_lengths * (target_lengths + 1) // 2).sum()),
        int((source_lengths * target_lengths).sum()),
    )


def padded_work(batch: Batch) -> Work:
    """The work with padding, and with all T T pairs of the decoder, as attention without a fused kernel computes it."""
    num_sentences, source_length = batch.source_ids.shape
    target_length = batch.target_ids.size(1)
    return Work(
        num_sentences * source_length,
        num_sentences * target_length,
        num_sentences * source_length**2,
        num_sentences * target_length**2,
        num_sentences * source_length * target_length,
    )


def forward_flop(config: ModelConfig, target_vocab_size: int, work: Work) -> int:
    """The FLOP of one forward pass; `training_flop` adds those of the backward pass.

    Args:
        config: the sizes of the model.
        target_vocab_size: number of target tokens, V.
        work: of one batch or of several.
    """
    width = config.d_model
    heads = config.num_heads * config.head_width
    queries_and_output = 2 * width * heads
    keys_and_values = 2 * width * config.kv_heads * config.head_width
    feed_forward = (3 if config.is_gated else 2) * width * config.d_ff
    encoder = (queries_and_output + keys_and_values + feed_forward) * work.source_tokens
    encoder += 2 * heads * work.source_pairs
    decoder = (2 * queries_and_output + keys_and_values + feed_forward) * work.target_tokens
    decoder += keys_and_values * work.source_tokens  # of cross-attention
    decoder += 2 * heads * (work.target_pairs + work.cross_pairs)
    output = width * target_vocab_size * work.target_tokens
    return 2 * (config.encoder_layers * encoder + config.decoder_layers * decoder + output)
