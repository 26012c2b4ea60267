"""The encoder and the decoder of a `Transformer` as modules that can be traced into ONNX graphs.

The decoder is one graph for the first step and for all others: it computes the keys and values of those source
positions that its cache does not hold yet, all of them in the first step and none later. So it has no branch.
"""

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from transformer_cli.config import ModelConfig
from transformer_cli.extensions.exchange.interchange.position_tables import position_table
from transformer_cli.model import Transformer
from transformer_cli.model.attention import KeysValues
from transformer_cli.model.layers import DecoderLayer
from transformer_cli.model.positions import Rotation, rotation_at
from transformer_cli.text import Tokenizer


class PositionTables(nn.Module):
    """What the model knows about positions, as tables: `functools` caches and lengths cannot be traced."""

    def __init__(self, config: ModelConfig, positions: nn.Module, num_positions: int) -> None:
        super().__init__()
        self.is_rotary = config.positions == "rotary"
        like = torch.zeros(1, num_positions, config.d_model)
        with torch.no_grad():
            added = position_table(config, positions, num_positions)
            sines, cosines = rotation_at(0, num_positions, config.head_width, like)
        self.register_buffer("added", added.clone())
        self.register_buffer("sines", sines.clone() if self.is_rotary else None)
        self.register_buffer("cosines", cosines.clone() if self.is_rotary else None)

    def forward(self, x: Tensor, start: int) -> tuple[Tensor, Rotation | None]:
        """(B, T, D) with the positions from number `start` on, and their rotation."""
        end = start + x.size(1)
        if not self.is_rotary:
            return x + cast(Tensor, self.added)[start:end], None
        sines, cosines = cast(Tensor, self.sines), cast(Tensor, self.cosines)
        return x, Rotation(sines[start:end], cosines[start:end])


class EncoderGraph(nn.Module):
    """Source ids and their mask to the output of the encoder."""

    def __init__(self, model: Transformer, num_positions: int, *, source_offset: int) -> None:
        """Take over the encoder.

        Args:
            model: in eval mode, on the CPU, in float32.
            num_positions: the length of the longest source.
            source_offset: the id of the first source token in the tokenizer of the exported folder.
        """
        super().__init__()
        self.table = (model.source_embedding or model.output).weight
        self.scale = _scale(model.config)
        self.positions = PositionTables(model.config, model.source_positions, num_positions)
        self.encoder = model.encoder
        self.source_offset = source_offset

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(B, S) and (B, S), both int64, to (B, S, D)."""
        source_ids = input_ids - self.source_offset
        # Ids below those of the source are padding, which the mask hides; ids above them are pieces of SentencePiece
        # without an entry.
        is_listed = (source_ids >= 0) & (source_ids < self.table.size(0))
        source_ids = source_ids.where(is_listed, Tokenizer.unk_id)
        x = nn.functional.embedding(source_ids, self.table) * self.scale
        x, rotation = self.positions(x, 0)
        output: Tensor = self.encoder(x, _visible(attention_mask), rotation)
        return output


class DecoderGraph(nn.Module):
    """New target ids, the output of the encoder and a cache to logits and the longer cache."""

    def __init__(self, model: Transformer, num_positions: int) -> None:
        super().__init__()
        self.table = (model.target_embedding or model.output).weight
        self.scale = _scale(model.config)
        self.positions = PositionTables(model.config, model.target_positions, num_positions)
        self.layers = model.decoder.layers
        self.norm = model.decoder.norm
        self.output = model.output

    def forward(
        self,
        encoder_attention_mask: Tensor,
        input_ids: Tensor,
        encoder_hidden_states: Tensor,
        *past: Tensor,
    ) -> list[Tensor]:
        """Logits (B, T, V), then the cache as `past` has it.

        Args:
            encoder_attention_mask: (B, S) int64.
            input_ids: (B, T) int64, the tokens after those of the cache.
            encoder_hidden_states: (B, S, D).
            past: for each layer four tensors (B, G, P, K): keys and values of the target, P = tokens so far; keys
                and values of the source, P = 0 in the first step, later S.
        """
        num_past = past[0].size(2)
        x = nn.functional.embedding(input_ids, self.table) * self.scale
        x, rotation = self.positions(x, num_past)
        of_target = _causal(num_past, x.size(1), x.device)
        of_source = _visible(encoder_attention_mask)
        new_rows = encoder_hidden_states[:, past[2].size(2) :]
        present: list[Tensor] = []
        for number, layer in enumerate(cast("Sequence[DecoderLayer]", self.layers)):
            cache = past[4 * number : 4 * number + 4]
            x, extended = _advance(layer, x, new_rows, cache, (of_target, of_source), rotation)
            present += extended
        return [self.output(self.norm(x)), *present]


def cache_names(num_layers: int, prefix: str) -> list[str]:
    """The names of the tensors of a cache, in the order of `DecoderGraph`; as in the Optimum library.

    Args:
        num_layers: of the decoder.
        prefix: past_key_values for inputs, present for outputs.
    """
    kinds = [f"{side}.{what}" for side in ("decoder", "encoder") for what in ("key", "value")]
    return [f"{prefix}.{layer}.{kind}" for layer in range(num_layers) for kind in kinds]


def _advance(
    layer: DecoderLayer,
    x: Tensor,
    new_rows: Tensor,
    cache: Sequence[Tensor],
    masks: tuple[Tensor, Tensor],
    rotation: Rotation | None,
) -> tuple[Tensor, list[Tensor]]:
    """One layer: (B, T, D) to the same shape, and its longer cache."""
    present: list[Tensor] = []

    def extended(newest: KeysValues, before: Sequence[Tensor]) -> KeysValues:
        keys, values = (torch.cat(pair, dim=2) for pair in zip(before, newest, strict=True))
        present.extend([keys, values])
        return keys, values

    def attend_to_target(x: Tensor) -> Tensor:
        attention = layer.self_attention
        keys_values = extended(attention.keys_and_values(x, rotation), cache[:2])
        return attention(x, keys_values, masks[0], rotation)

    def attend_to_source(x: Tensor) -> Tensor:
        attention = layer.cross_attention
        keys_values = extended(attention.keys_and_values(new_rows), cache[2:])
        return attention(x, keys_values, masks[1])

    x = layer.residual(x, attend_to_target, layer.self_attention_norm, layer.dropout)
    x = layer.residual(x, attend_to_source, layer.cross_attention_norm, layer.dropout)
    x = layer.residual(x, layer.feed_forward, layer.feed_forward_norm, layer.dropout)
    return x, present


def _visible(attention_mask: Tensor) -> Tensor:
    """(B, S) int64, 1 where there is a token."""
    return attention_mask.bool()[:, None, None, :]


def _causal(num_past: int, num_new: int, device: torch.device) -> Tensor:
    """Each new position reads the earlier ones and itself."""
    context = torch.arange(num_past + num_new, device=device)
    return context[None, :] <= context[num_past:, None]


def _scale(config: ModelConfig) -> float:
    return math.sqrt(config.d_model) if config.scale_embeddings else 1.0
