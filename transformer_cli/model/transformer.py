"""The Transformer: an encoder reads the source, a decoder predicts the target token by token."""

import math
from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_cli.config import ModelConfig
from transformer_cli.model.layers import (
    DecoderLayer,
    Embedding,
    EncoderLayer,
    LayerCache,
    Rotation,
    WordDropout,
    aligning_weights,
    at_least_float32,
    build_final_norm,
    build_norm,
    build_positions,
    causal_mask,
    initialize,
    is_skipped,
    padding_mask,
    rotation_at,
    skipped,
)
from transformer_cli.process.errors import ConfigError

Observers = Mapping[int, Callable[[Tensor], None]]
"""Number of a decoder layer, from 0 -> gets the weights of its cross-attention before dropout, (B, H, T, S)."""
_NOBODY: Observers = {}


class Encoder(nn.Module):
    """A stack of N encoder layers and an optional final norm."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layer_dropout = config.layer_dropout
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        self.norm = build_final_norm(config)

    def forward(self, x: Tensor, mask: Tensor | None, rotation: Rotation | None) -> Tensor:
        """(B, S, D) to the same shape."""
        for layer in self.layers:
            if self.layer_dropout > 0.0 and is_skipped(layer, self.layer_dropout):
                x = skipped(layer, x)
            else:
                x = layer(x, mask, rotation)
        return self.norm(x)


class Decoder(nn.Module):
    """A stack of N decoder layers and an optional final norm."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layer_dropout = config.layer_dropout
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.norm = build_final_norm(config)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        target_mask: Tensor | None,
        source_mask: Tensor | None,
        rotation: Rotation | None,
        observers: Observers = _NOBODY,
    ) -> Tensor:
        """(B, T, D) to the same shape; arguments as in `DecoderLayer.forward`."""
        for number, layer in enumerate(self.layers):
            if self.layer_dropout > 0.0 and is_skipped(layer, self.layer_dropout):
                x = skipped(layer, x, memory)
            else:
                observed = {"observe": observers[number]} if number in observers else {}
                x = layer(x, memory, target_mask, source_mask, rotation, **observed)
        return self.norm(x)


class Transformer(nn.Module):
    """The whole model: source ids and decoder input ids to logits of the next target tokens.

    Source: Vaswani et al. 2017, section 3.
    """

    def __init__(self, config: ModelConfig, source_vocab_size: int, target_vocab_size: int) -> None:
        super().__init__()
        if config.tie_embeddings == "all" and source_vocab_size != target_vocab_size:
            raise ConfigError(
                f"model.tie_embeddings: all needs one shared vocabulary, found {source_vocab_size} source and {target_vocab_size} target tokens",
                hint="set tokenizer.shared: true, or model.tie_embeddings: target-output",
            )
        self.config = config
        width, tied = config.d_model, config.tie_embeddings
        # A tied embedding is None: `_looked_up` uses the weights of `output` instead.
        self.source_embedding = None if tied == "all" else Embedding(source_vocab_size, width)
        self.target_embedding = Embedding(target_vocab_size, width) if tied == "none" else None
        self.source_positions = build_positions(config)
        self.target_positions = build_positions(config)
        has_norm = config.embedding_norm
        self.source_embedding_norm = build_norm(config) if has_norm else nn.Identity()
        self.target_embedding_norm = build_norm(config) if has_norm else nn.Identity()
        # Training sets these two, with `training.word_dropout` or `training.simcut`.
        self.source_word_dropout: WordDropout | None = None
        self.target_word_dropout: WordDropout | None = None
        share = config.dropout if config.embedding_dropout is None else config.embedding_dropout
        self.embedding_dropout = nn.Dropout(share)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.output = nn.Linear(width, target_vocab_size, bias=config.output_bias)
        if not self.output.weight.is_meta:  # a model on the meta device has shapes, but no numbers
            initialize(self, config)
        nn.Module.register_load_state_dict_pre_hook(self, _drop_copies_of_tied_tables)

    def forward(self, source_ids: Tensor, source_mask: Tensor | None, decoder_input_ids: Tensor) -> Tensor:
        """The logits of the next token at each target position, (B, T, V), in the precision of matrix products.

        Args:
            source_ids: (B, S) int64.
            source_mask: (B, S) bool, True where there is a token; None: there is no padding, and a GPU may use
                a faster kernel.
            decoder_input_ids: (B, T) int64, [SOS] and then the target; padding, if any, on the right.
        """
        return self.output(self.decoder_output(source_ids, source_mask, decoder_input_ids))

    def decoder_output(
        self,
        source_ids: Tensor,
        source_mask: Tensor | None,
        decoder_input_ids: Tensor,
        observers: Observers = _NOBODY,
    ) -> Tensor:
        """(B, T, D): what `output` reads in `forward`. A loss may compute only the logits that it needs."""
        memory = self.encode(source_ids, source_mask)
        return self._target_states(decoder_input_ids, memory, source_mask, observers)

    def parameters_by_gradient(self) -> list[nn.Parameter]:
        """All parameters, in the order in which a backward pass completes their gradients.

        A tied table is complete only when its last use is: that of the source embedding is the end of the pass.
        """
        target_parts = self.target_positions, self.target_embedding_norm
        source_parts = self.source_positions, self.source_embedding_norm
        tables = self.target_embedding or self.output, self.source_embedding or self.output
        parts = (
            self.output,
            self.decoder,
            *target_parts,
            tables[0],
            self.encoder,
            *source_parts,
            tables[1],
        )
        ordered: dict[nn.Parameter, None] = {}
        for parameter in (one for part in parts for one in reversed(list(part.parameters()))):
            ordered.pop(parameter, None)  # it counts where it is used first, that is, completed last
            ordered[parameter] = None
        return list(ordered)

    def encode(self, source_ids: Tensor, source_mask: Tensor | None) -> Tensor:
        """Source ids (B, S) int64 and their mask (B, S) bool, or None, to the encoder output (B, S, D)."""
        x = self.embed_source(source_ids)
        return self.encoder(x, self.mask_of_sources(source_mask, x), self.rotation(x))

    def decode(
        self,
        decoder_input_ids: Tensor,
        memory: Tensor,
        source_mask: Tensor | None,
    ) -> Tensor:
        """Decoder input ids (B, T) int64 and the output of `encode` to logits (B, T, V).

        The causal mask is enough: padding is on the right, so no token can see it, and the loss leaves it out.
        """
        return self.output(self._target_states(decoder_input_ids, memory, source_mask))

    def start_decoding(
        self, memory: Tensor, source_mask: Tensor | None, *, attended_layer: int | None = None
    ) -> "DecoderState":
        """The state of decoding before the first token, with one row for each sentence.

        Args:
            memory: (B, S, D), the output of `encode`.
            source_mask: (B, S) bool; None: there is no padding.
            attended_layer: the number of the decoder layer, from 0, whose attention to the source is kept for
                `DecoderState.attention`; None: that of no layer.
        """
        return DecoderState(self, memory, source_mask, attended_layer=attended_layer)

    def embed_source(self, source_ids: Tensor) -> Tensor:
        """(B, S) int64 to (B, S, D)."""
        x = self._looked_up(source_ids, self.source_embedding, self.source_word_dropout)
        return self._prepared(self.source_positions(x, 0), self.source_embedding_norm)

    def embed_target(self, decoder_input_ids: Tensor, start: int = 0) -> Tensor:
        """(B, T) int64 to (B, T, D); the first of the T positions is number `start`."""
        x = self._looked_up(decoder_input_ids, self.target_embedding, self.target_word_dropout)
        return self._prepared(self.target_positions(x, start), self.target_embedding_norm)

    def mask_of_sources(self, source_mask: Tensor | None, x: Tensor) -> Tensor | None:
        """The mask of attention to the sources: (B, S) bool to (B, 1, 1, S) bool; None: there is no padding.

        x, which the layers read, is for the twins of acceleration/: their masks have its precision.
        """
        return padding_mask(source_mask)

    def mask_of_targets(self, x: Tensor) -> Tensor | None:
        """(T, T) bool: the mask of attention of the targets x (B, T, D) to themselves."""
        return causal_mask(x.size(1), x.device)

    def rotation(self, x: Tensor, start: int = 0) -> Rotation | None:
        """The rotation of the positions of x (B, T, D); None unless positions are rotary."""
        if self.config.positions != "rotary":
            return None
        return rotation_at(start, x.size(1), self.config.head_width, x)

    def _target_states(
        self,
        decoder_input_ids: Tensor,
        memory: Tensor,
        source_mask: Tensor | None,
        observers: Observers = _NOBODY,
    ) -> Tensor:
        """(B, T, D): the states of the target positions after the last layer; arguments as in `decode`."""
        x = self.embed_target(decoder_input_ids)
        target_mask, source_mask = self.mask_of_targets(x), self.mask_of_sources(source_mask, x)
        return self.decoder(x, memory, target_mask, source_mask, self.rotation(x), observers)

    def _looked_up(self, ids: Tensor, embedding: nn.Embedding | None, word_dropout: WordDropout | None) -> Tensor:
        x = F.embedding(ids, (self.output if embedding is None else embedding).weight)
        if self.config.scale_embeddings:
            x = x * math.sqrt(self.config.d_model)
        return x if word_dropout is None else word_dropout(x, ids)

    def _prepared(self, x: Tensor, norm: nn.Module) -> Tensor:
        """What the first layer reads, from the sum of embedding and position."""
        return self.embedding_dropout(norm(x))


class DecoderState:
    """Decoding one token at a time, for R partial targets, one per row. A search uses this as its `Scorer`.

    Keys and values are computed once: those of the source at the start, those of a target position when its
    token is appended. An SSRU keeps its cell state instead of those of the target.
    """

    def __init__(
        self,
        model: Transformer,
        memory: Tensor,
        source_mask: Tensor | None,
        *,
        attended_layer: int | None = None,
    ) -> None:
        self._model = model
        self._attended_layer = attended_layer
        self._attention: Tensor | None = None
        self._layers = cast("list[DecoderLayer]", list(model.decoder.layers))
        sources = (layer.cross_attention.keys_and_values(memory) for layer in self._layers)
        self._caches = [LayerCache(source) for source in sources]
        self._like = memory[:0]
        self._is_source = source_mask  # (R, S) bool
        self._source_mask = model.mask_of_sources(source_mask, memory)
        self._length = 0

    def advance(self, last_ids: Tensor) -> Tensor:
        """Append one token, (R,) int64, to each row; returns (R, V) log-probabilities of the next token."""
        model = self._model
        x = model.embed_target(last_ids[:, None], self._length)  # (R, 1, D)
        rotation = model.rotation(x, self._length)
        for number, (layer, cache) in enumerate(zip(self._layers, self._caches, strict=True)):
            is_attended = number == self._attended_layer
            # Not `layer(...)`: torch.compile compiles layers for training, without a cache.
            x = layer.forward(
                x,
                cache.source,
                None,
                self._source_mask,
                rotation,
                cache=cache,
                observe=self._note_attention if is_attended else None,
            )
        self._length += 1
        logits = model.output(model.decoder.norm(x[:, 0]))
        return at_least_float32(logits).log_softmax(-1)

    def attention(self) -> Tensor:
        """(R, S): the weights with which the newest position of each row reads the source, as `aligning_weights` has them.

        They are those of the last call of `advance`, in the order of its rows.
        """
        assert self._attention is not None, "start_decoding was not told a layer, or nothing was decoded"
        return self._attention

    def _note_attention(self, weights: Tensor) -> None:
        """(R, H, 1, S) of the attended layer."""
        self._attention = aligning_weights(weights, self._model.config)[:, 0]

    def select(self, rows: Tensor, *, keeps_sources: bool = False) -> None:
        """New row i is old row `rows[i]`; `rows` is int64 and may be of any length.

        If `keeps_sources`, each new row has the source sentence of the old row in its place, so the keys and values
        of the source are not copied. The caller must say so: reading `rows` here would make the CPU wait for a GPU.
        """
        for cache in self._caches:
            cache.select(rows, keeps_source=keeps_sources)
        if self._is_source is not None and not keeps_sources:
            self._is_source = self._is_source[rows]
            self._source_mask = self._model.mask_of_sources(self._is_source, self._like)


def _drop_copies_of_tied_tables(model: nn.Module, state: dict[str, Any], prefix: str, *_others: Any) -> None:
    """Accept weights that store a tied table as an embedding: rename it to `output`, or drop the copy."""
    owner = f"{prefix}output.weight"
    for name in ("source_embedding", "target_embedding"):
        copy = f"{prefix}{name}.weight"
        if getattr(model, name) is None and copy in state:
            table = state.setdefault(owner, state[copy])
            if torch.equal(table, state[copy]):
                del state[copy]
