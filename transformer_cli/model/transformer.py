"""The Transformer: an encoder reads the source, a decoder predicts the target token by token."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_cli.config import ModelConfig
from transformer_cli.errors import ConfigError
from transformer_cli.model.cpu import trains_on_cpu
from transformer_cli.model.decoder_state import DecoderState
from transformer_cli.model.dropout import Dropout
from transformer_cli.model.initialization import Embedding, initialize
from transformer_cli.model.layer_dropout import applied
from transformer_cli.model.layers import DecoderLayer, EncoderLayer
from transformer_cli.model.masks import Mask, causal_mask, padding_mask
from transformer_cli.model.norms import build_norm
from transformer_cli.model.positions import Rotation, build_positions, rotation_at
from transformer_cli.model.precision import product_dtype
from transformer_cli.model.prediction import Head, logits
from transformer_cli.model.projection import Projection
from transformer_cli.model.word_dropout import WordDropout


class Encoder(nn.Module):
    """A stack of N encoder layers and an optional final norm."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layer_dropout = config.layer_dropout
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        self.norm = build_norm(config) if config.has_final_norm else nn.Identity()

    def forward(self, x: Tensor, mask: Mask | None, rotation: Rotation | None) -> Tensor:
        """(B, S, D) to the same shape."""
        for layer in self.layers:
            x = applied(layer, x, mask, rotation, share=self.layer_dropout)
        return self.norm(x)


class Decoder(nn.Module):
    """A stack of N decoder layers and an optional final norm."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layer_dropout = config.layer_dropout
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.norm = build_norm(config) if config.has_final_norm else nn.Identity()

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        target_mask: Mask,
        source_mask: Mask | None,
        rotation: Rotation | None,
    ) -> Tensor:
        """(B, T, D) to the same shape; arguments as in `DecoderLayer.forward`."""
        for layer in self.layers:
            masks = target_mask, source_mask
            x = applied(layer, x, memory, *masks, rotation, share=self.layer_dropout)
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
        # Training sets these two.
        self.source_word_dropout: WordDropout | None = None
        self.target_word_dropout: WordDropout | None = None
        self.embedding_dropout = Dropout(config.embedding_dropout_share)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.output = Projection(width, target_vocab_size, bias=config.output_bias)
        initialize(self, config)
        nn.Module.register_load_state_dict_pre_hook(self, _drop_copies_of_tied_tables)

    def forward(
        self,
        source_ids: Tensor,
        source_mask: Tensor | None,
        decoder_input_ids: Tensor,
        head: Head = logits,
    ) -> Any:
        """The logits of the next token at each target position, or what else `head` makes.

        Args:
            source_ids: (B, S) int64.
            source_mask: (B, S) bool, True where there is a token; None: there is no padding, and a GPU may use
                a faster kernel.
            decoder_input_ids: (B, T) int64, [SOS] and then the target; padding, if any, on the right.
            head: what it computes is returned.

        Returns:
            Logits: (B, T, V), in the precision of matrix products; `sum_loss` widens them to float32.
        """
        memory = self.encode(source_ids, source_mask)
        return head(self.output, self._decoded(decoder_input_ids, memory, source_mask))

    def parameters_by_gradient(self) -> list[nn.Parameter]:
        """All parameters, in the order in which a backward pass completes their gradients.

        A tied table is complete only when its last use is: that of the source embedding is the end of the pass.
        """
        of_targets = self.target_positions, self.target_embedding_norm
        of_sources = self.source_positions, self.source_embedding_norm
        tables = self.target_embedding or self.output, self.source_embedding or self.output
        parts = (
            self.output,
            self.decoder,
            *of_targets,
            tables[0],
            self.encoder,
            *of_sources,
            tables[1],
        )
        ordered: dict[nn.Parameter, None] = {}
        for parameter in (one for part in parts for one in reversed(list(part.parameters()))):
            ordered.pop(
                parameter, None
            )  # it counts where it is used first, that is, completed last
            ordered[parameter] = None
        return list(ordered)

    def encode(self, source_ids: Tensor, source_mask: Tensor | None) -> Tensor:
        """Source ids (B, S) int64 and their mask (B, S) bool, or None, to the encoder output (B, S, D)."""
        x = self.embed_source(source_ids)
        return self.encoder(x, padding_mask(source_mask, x), self.rotation(x))

    def decode(
        self, decoder_input_ids: Tensor, memory: Tensor, source_mask: Tensor | None
    ) -> Tensor:
        """Decoder input ids (B, T) int64 and the output of `encode` to logits (B, T, V).

        The causal mask is enough: padding is on the right, so no token can see it, and the loss leaves it out.
        """
        return logits(self.output, self._decoded(decoder_input_ids, memory, source_mask))

    def start_decoding(
        self, memory: Tensor, source_mask: Tensor | None, *, attended_layer: int | None = None
    ) -> DecoderState:
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

    def rotation(self, x: Tensor, start: int = 0) -> Rotation | None:
        """The rotation of the positions of x (B, T, D); None unless positions are rotary."""
        if self.config.positions != "rotary":
            return None
        return rotation_at(start, x.size(1), self.config.head_width, x)

    def _decoded(
        self, decoder_input_ids: Tensor, memory: Tensor, source_mask: Tensor | None
    ) -> Tensor:
        """What the output layer reads, (B, T, D); arguments as in `decode`."""
        x = self.embed_target(decoder_input_ids)
        masks = causal_mask(x.size(1), x.device), padding_mask(source_mask, x)
        decoded: Tensor = self.decoder(x, memory, *masks, self.rotation(x))
        return decoded

    def _looked_up(
        self, ids: Tensor, embedding: nn.Embedding | None, word_dropout: WordDropout | None
    ) -> Tensor:
        x = F.embedding(ids, (self.output if embedding is None else embedding).weight)
        if self.config.scale_embeddings:
            x = x * math.sqrt(self.config.d_model)
        return x if word_dropout is None else word_dropout(x, ids)

    def _prepared(self, x: Tensor, norm: nn.Module) -> Tensor:
        """What the first layer reads, from the sum of embedding and position."""
        x = norm(x)
        if trains_on_cpu(x):
            # Activations in the precision of matrix products: half the memory to read, and nothing to convert.
            x = x.to(product_dtype(x))
        return self.embedding_dropout(x)


def _drop_copies_of_tied_tables(
    model: nn.Module, state: dict[str, Any], prefix: str, *_others: Any
) -> None:
    """Accept weights that store a tied table as an embedding: rename it to `output`, or drop the copy."""
    owner = f"{prefix}output.weight"
    for name in ("source_embedding", "target_embedding"):
        copy = f"{prefix}{name}.weight"
        if getattr(model, name) is None and copy in state:
            table = state.setdefault(owner, state[copy])
            if torch.equal(table, state[copy]):
                del state[copy]
