"""The settings of the architecture."""

from typing import Any, Literal, Self

from pydantic import model_validator

from transformer_cli.config.section import Depth, Positive, Probability, Section, Switch, Width

Norm = Literal["layernorm", "rmsnorm", "std_layernorm", "scalar_std_layernorm"]
NormPlacement = Literal["pre", "post", "residual_of_normed"]


def _sizes(d_model: int, num_heads: int, d_ff: int, num_layers: int) -> dict[str, int | float]:
    layers = {"encoder_layers": num_layers, "decoder_layers": num_layers}
    return {"d_model": d_model, "num_heads": num_heads, "d_ff": d_ff, **layers}


PRESETS = {
    "tiny": _sizes(128, 4, 256, 4),
    "small": _sizes(256, 4, 1024, 3),
    "base": _sizes(512, 8, 2048, 6),
    "big": _sizes(1024, 16, 4096, 6) | {"dropout": 0.3},
}


class ModelConfig(Section):
    """The default sizes are those of the base model of Vaswani et al. 2017, table 3; pre-norm by default."""

    preset: Literal["tiny", "small", "base", "big"] | None = None
    """Defaults for d_model, num_heads, d_ff, encoder_layers and decoder_layers: tiny (Wu et al. 2021), small, base and big (Vaswani et al. 2017, table 3)."""
    d_model: Width = 512
    """Width of the input and output of every layer (d_model of the paper)."""
    num_heads: Width = 8
    """Number of attention heads (h of the paper, section 3.2.2)."""
    head_dim: Width | None = None
    """Width of the queries, keys and values of one head; absent: d_model / num_heads."""
    num_kv_heads: Width | None = None
    """Number of heads of keys and values; groups of query heads share them (Ainslie et al. 2023); absent: num_heads."""
    d_ff: Width = 2048
    """Inner width of the feed-forward network (d_ff of the paper, section 3.3)."""
    encoder_layers: Depth = 6
    """Number of layers of the encoder (N of the paper)."""
    decoder_layers: Depth = 6
    """Number of layers of the decoder (N of the paper)."""
    max_length: Width = 512
    """Length of the longest sequence, in tokens; longer training pairs are dropped, longer lines cut. Translations may be longer unless positions are learned."""
    dropout: Probability = 0.1
    """Dropout rate of the output of each sub-layer (P_drop of the paper, section 5.4)."""
    attention_dropout: Probability = 0.0
    """Dropout rate of the attention weights."""
    ff_dropout: Probability = 0.0
    """Dropout rate of the inner activations of the feed-forward network."""
    embedding_dropout: Probability | None = None
    """Dropout rate of the sum of embedding and position; absent: the same as dropout."""
    layer_dropout: Probability = 0.0
    """LayerDrop: probability with which training skips a layer, drawn for each layer and batch; translation uses all layers (Fan et al. 2020)."""
    norm: Norm = "layernorm"
    """Normalisation. layernorm: g (x - mean) / sqrt(var + eps) + b (Ba et al. 2016); rmsnorm: g x / sqrt(mean(x^2) + eps) (Zhang and Sennrich 2019); std_layernorm: g (x - mean) / (std + eps) + b with the unbiased std; scalar_std_layernorm: the same with one number each for g and b."""
    norm_eps: Positive = 1e-5
    """Epsilon of the normalisation."""
    norm_placement: NormPlacement = "pre"
    """pre: x + f(norm(x)) (Xiong et al. 2020); post: norm(x + f(x)) (the paper); residual_of_normed: x + norm(f(x))."""
    final_norm: Switch | None = None
    """A norm after the last layer of the encoder and of the decoder; absent: true unless norm_placement is post."""
    embedding_norm: Switch = False
    """A norm of the sum of embedding and position, before the first layer of the encoder and of the decoder (BART, Lewis et al. 2020)."""
    activation: Literal["relu", "gelu", "silu", "swiglu", "geglu", "reglu"] = "relu"
    """Activation function of the feed-forward network; swiglu, geglu and reglu multiply it with a second projection, the gate (Shazeer 2020)."""
    attention_bias: Switch = True
    """Biases in the query, key, value and output projections."""
    feed_forward_bias: Switch = True
    """Biases in the feed-forward network."""
    positions: Literal["sinusoidal", "sinusoidal_halves", "learned", "rotary", "none"] = (
        "sinusoidal"
    )
    """Position encoding. sinusoidal: sines and cosines interleaved (the paper); sinusoidal_halves: first all sines, then all cosines (Marian); learned: one vector per position; rotary (Su et al. 2021); none."""
    scale_embeddings: Switch = True
    """Multiply embeddings by sqrt(d_model) (the paper, section 3.4)."""
    tie_embeddings: Literal["none", "target-output", "all"] = "target-output"
    """Which tables share one set of weights (Press and Wolf 2017). target-output: the target embedding and the output projection; all: the source embedding too, which needs tokenizer.shared."""
    qk_norm: Switch = False
    """RMSNorm on the queries and keys of each head (Henry et al. 2020)."""
    init: Literal["xavier", "pytorch", "small"] = "xavier"
    """Initial weights. xavier: Xavier uniform for all matrices, embeddings included (Glorot and Bengio 2010); pytorch: the defaults of PyTorch; small: xavier, with the last matrix of each sub-layer divided by the square root of the number of sub-layers of its encoder or decoder, for deep models (Radford et al. 2019)."""
    output_bias: Switch = True
    """A bias in the output projection."""

    @model_validator(mode="before")
    @classmethod
    def _fill_in_preset(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("preset") in [*PRESETS]:
            return {**PRESETS[values["preset"]], **values}
        return values

    @model_validator(mode="after")
    def _numbers_fit_together(self) -> Self:
        if self.head_dim is None and self.d_model % self.num_heads:
            raise ValueError(
                f"d_model ({self.d_model}) must be a multiple of num_heads ({self.num_heads}), or give head_dim"
            )
        if self.num_kv_heads is not None and self.num_heads % self.num_kv_heads:
            raise ValueError(
                f"num_heads ({self.num_heads}) must be a multiple of num_kv_heads ({self.num_kv_heads})"
            )
        if "std_layernorm" in self.norm and self.d_model < 2:
            raise ValueError(
                f"norm: {self.norm} needs a d_model of 2 or more, because it divides by d_model - 1"
            )
        if self.positions == "rotary" and self.head_width % 2:
            raise ValueError(f"rotary positions need an even head width, not {self.head_width}")
        if self.positions.startswith("sinusoidal") and self.d_model % 2:
            raise ValueError(f"{self.positions} positions need an even d_model, not {self.d_model}")
        return self

    @property
    def head_width(self) -> int:
        """K: the width of one head."""
        return self.head_dim or self.d_model // self.num_heads

    @property
    def kv_heads(self) -> int:
        """Number of heads of keys and values."""
        return self.num_kv_heads or self.num_heads

    @property
    def is_gated(self) -> bool:
        """Whether the feed-forward network has a gate."""
        return self.activation in ("swiglu", "geglu", "reglu")

    @property
    def has_final_norm(self) -> bool:
        """Whether encoder and decoder end with a norm."""
        return self.norm_placement != "post" if self.final_norm is None else self.final_norm

    @property
    def has_dropout(self) -> bool:
        """Whether a dropout rate is above 0, so that two forward passes of a batch differ in training."""
        shares = self.dropout, self.attention_dropout, self.ff_dropout, self.embedding_dropout_share
        return any(share > 0.0 for share in shares)

    @property
    def embedding_dropout_share(self) -> float:
        """Dropout rate of embeddings; that of sub-layers if it is not given."""
        return self.dropout if self.embedding_dropout is None else self.embedding_dropout
