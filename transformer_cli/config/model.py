"""The architecture: every choice that the reference models differ in, each on its own."""

from typing import Any, Literal, Self

from pydantic import model_validator

from transformer_cli.config.section import Depth, Positive, Probability, Section, Switch, Width

Norm = Literal["layernorm", "rmsnorm", "std_layernorm", "scalar_std_layernorm"]
NormPlacement = Literal["pre", "post", "residual_of_normed"]
Activation = Literal["relu", "gelu", "silu", "swiglu", "geglu", "reglu"]
Positions = Literal["sinusoidal", "sinusoidal_halves", "learned", "rotary", "none"]
TiedEmbeddings = Literal["none", "target-output", "all"]
Init = Literal["xavier", "pytorch", "small"]

GATED_ACTIVATIONS = frozenset({"swiglu", "geglu", "reglu"})

PRESETS: dict[str, dict[str, int | float]] = {
    "tiny": {"d_model": 128, "num_heads": 4, "d_ff": 256, "encoder_layers": 4, "decoder_layers": 4},
    "small": {
        "d_model": 256,
        "num_heads": 4,
        "d_ff": 1024,
        "encoder_layers": 3,
        "decoder_layers": 3,
    },
    "base": {
        "d_model": 512,
        "num_heads": 8,
        "d_ff": 2048,
        "encoder_layers": 6,
        "decoder_layers": 6,
    },
    "big": {
        "d_model": 1024,
        "num_heads": 16,
        "d_ff": 4096,
        "encoder_layers": 6,
        "decoder_layers": 6,
        "dropout": 0.3,
    },
}


class ModelConfig(Section):
    """Sizes default to the base model of Vaswani et al. 2017, table 3; norms stand before the sub-layers."""

    preset: Literal["tiny", "small", "base", "big"] | None = None
    """Fills in d_model, num_heads, d_ff and the depths where they are not given: tiny (Wu et al. 2021), small, base and big (Vaswani et al. 2017, table 3)."""
    d_model: Width = 512
    """Width of every layer's input and output (d_model of the paper)."""
    num_heads: Width = 8
    """Attention heads (h of the paper, section 3.2.2)."""
    head_dim: Width | None = None
    """Width of one head's queries, keys and values; absent: d_model / num_heads."""
    num_kv_heads: Width | None = None
    """Heads of keys and values, shared by groups of query heads (Ainslie et al. 2023); absent: num_heads."""
    d_ff: Width = 2048
    """Inner width of the feed-forward layer (d_ff of the paper, section 3.3)."""
    encoder_layers: Depth = 6
    """Layers of the encoder (N of the paper)."""
    decoder_layers: Depth = 6
    """Layers of the decoder (N of the paper)."""
    max_length: Width = 512
    """Longest sequence in tokens; longer training pairs are dropped. A hard limit for learned positions, not for the others."""
    dropout: Probability = 0.1
    """Dropped share of each sub-layer's output (P_drop of the paper, section 5.4)."""
    attention_dropout: Probability = 0.0
    """Dropped share of the attention weights."""
    ff_dropout: Probability = 0.0
    """Dropped share of the feed-forward layer's inner activations."""
    embedding_dropout: Probability | None = None
    """Dropped share of the sum of embedding and position; absent: the same as dropout."""
    norm: Norm = "layernorm"
    """layernorm: g (x - mean) / sqrt(var + eps) + b (Ba et al. 2016); rmsnorm: g x / sqrt(mean(x^2) + eps) (Zhang and Sennrich 2019); std_layernorm: g (x - mean) / (std + eps) + b with the unbiased std; scalar_std_layernorm: the same with one number each for g and b."""
    norm_eps: Positive = 1e-5
    """Epsilon of the norm."""
    norm_placement: NormPlacement = "pre"
    """pre: x + f(norm(x)) (Xiong et al. 2020); post: norm(x + f(x)), the paper's; residual_of_normed: x + norm(f(x))."""
    final_norm: Switch | None = None
    """A norm after the last layer of each stack; absent: yes unless norm_placement is post."""
    activation: Activation = "relu"
    """Of the feed-forward layer; swiglu, geglu and reglu multiply with a second, gating projection (Shazeer 2020)."""
    attention_bias: Switch = True
    """Biases in the query, key, value and output projections."""
    feed_forward_bias: Switch = True
    """Biases in the feed-forward layer."""
    positions: Positions = "sinusoidal"
    """sinusoidal: the paper's, sines and cosines interleaved; sinusoidal_halves: sines first, then cosines, as Marian has them; learned; rotary (Su et al. 2021); none."""
    scale_embeddings: Switch = True
    """Embeddings times sqrt(d_model) (the paper, section 3.4)."""
    tie_embeddings: TiedEmbeddings = "target-output"
    """Which tables are one (Press and Wolf 2017): target-output ties target embedding and output; all adds the source embedding and needs tokenizer.shared."""
    qk_norm: Switch = False
    """RMSNorm on each head's queries and keys (Henry et al. 2020)."""
    init: Init = "xavier"
    """xavier: uniform for everything with two dimensions, tables included (Glorot and Bengio 2010); pytorch: PyTorch's defaults; small: xavier, with the last matrix of each sub-layer divided by the square root of the number of sub-layers in its stack, for deep ones (Radford et al. 2019)."""
    output_bias: Switch = True
    """A bias in the projection to the vocabulary."""

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
                f"d_model ({self.d_model}) must be a multiple of num_heads ({self.num_heads}), or head_dim be given"
            )
        if self.num_kv_heads is not None and self.num_heads % self.num_kv_heads:
            raise ValueError(
                f"num_heads ({self.num_heads}) must be a multiple of num_kv_heads ({self.num_kv_heads})"
            )
        if "std_layernorm" in self.norm and self.d_model < 2:
            raise ValueError(f"norm: {self.norm} needs a d_model of 2 or more, for its std")
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
        """How many heads keys and values have."""
        return self.num_kv_heads or self.num_heads

    @property
    def is_gated(self) -> bool:
        """Whether the feed-forward layer has a gating projection."""
        return self.activation in GATED_ACTIVATIONS

    @property
    def has_final_norm(self) -> bool:
        """Whether each stack ends with a norm."""
        return self.norm_placement != "post" if self.final_norm is None else self.final_norm

    @property
    def embedding_dropout_share(self) -> float:
        """The dropped share of embeddings, whether given or inherited."""
        return self.dropout if self.embedding_dropout is None else self.embedding_dropout
