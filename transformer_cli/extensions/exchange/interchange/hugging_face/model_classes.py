"""The classes of transformers that compute what a `Transformer` of some config computes."""

from collections.abc import Iterator
from dataclasses import dataclass

from transformer_cli.config import ModelConfig
from transformer_cli.process.errors import ConfigError

NORM_EPS = 1e-5
"""All classes have this epsilon, which no setting of theirs changes."""
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "silu": "silu", "swish": "silu"}
"""The activation functions of transformers that we have, and our names of them."""


@dataclass(frozen=True, slots=True)
class ModelClass:
    """One class of transformers: where its norms are, and how it stores positions."""

    name: str
    """Of the class, as in the `architectures` of a config.json."""
    model_type: str
    """As in a config.json."""
    norm_placement: str
    """As in `ModelConfig`."""
    embedding_norm: bool
    """As in `ModelConfig`."""
    final_norm: bool
    """Whether encoder and decoder end with a norm."""
    has_own_sinusoids: bool
    """Whether it computes sinusoids, first all sines, then all cosines; if not, it has a table of positions."""
    saves_positions: bool = True
    """Whether `save_pretrained` writes the table of positions."""
    position_offset: int = 0
    """The row of the first position in the table of positions."""
    joins_tables: bool = True
    """Whether source and target always share one table of embeddings."""


MARIAN = ModelClass(
    "MarianMTModel", "marian", "post", False, False, True, saves_positions=False, joins_tables=False
)
PEGASUS = ModelClass("PegasusForConditionalGeneration", "pegasus", "pre", False, True, True)
BART = ModelClass(
    "BartForConditionalGeneration", "bart", "post", True, False, False, position_offset=2
)
MBART = ModelClass(
    "MBartForConditionalGeneration", "mbart", "pre", True, True, False, position_offset=2
)
CLASSES = (MARIAN, PEGASUS, BART, MBART)


def fitting_class(config: ModelConfig) -> ModelClass:
    """The class that computes the same.

    Raises:
        ConfigError: there is none; the message names the settings in the way.
    """
    found = list(obstacles(config))
    if found:
        raise ConfigError(
            f"no model class of transformers has {' and '.join(found)}",
            hint="formats for every model: --to onnx; for most models: --to ctranslate2",
        )
    model_class = _class_by_norms(config)
    assert model_class is not None
    return model_class


def obstacles(config: ModelConfig) -> Iterator[str]:
    """The settings of a model that keep it from every class of transformers, as `model.x: value`; none if one fits."""
    settings: dict[str, bool] = {
        "norm": config.norm != "layernorm",
        "norm_eps": abs(config.norm_eps - NORM_EPS) > 1e-3 * NORM_EPS,
        "activation": config.is_gated,
        "head_dim": config.num_heads * config.head_width != config.d_model,
        "num_kv_heads": config.kv_heads != config.num_heads,
        "qk_norm": config.qk_norm,
    }
    yield from (_shown(config, name) for name, is_in_the_way in settings.items() if is_in_the_way)
    if config.positions == "rotary":
        yield _shown(config, "positions")
    model_class = _class_by_norms(config)
    if model_class is None:
        yield _misplaced_norm(config)
    elif not model_class.saves_positions and config.positions in ("learned", "none"):
        # It would load such a table, but lose it without a word when it is saved again.
        yield f"{_shown(config, 'positions')} together with {_shown(config, 'norm_placement')}"


def _class_by_norms(config: ModelConfig) -> ModelClass | None:
    wanted = config.norm_placement, config.embedding_norm, config.has_final_norm
    for one in CLASSES:
        if (one.norm_placement, one.embedding_norm, one.final_norm) == wanted:
            return one
    return None


def _misplaced_norm(config: ModelConfig) -> str:
    if config.norm_placement == "residual_of_normed":
        return _shown(config, "norm_placement")
    final_norm = str(config.has_final_norm).lower()
    return f"model.final_norm: {final_norm} together with {_shown(config, 'norm_placement')}"


def _shown(config: ModelConfig, name: str) -> str:
    value = getattr(config, name)
    return f"model.{name}: {str(value).lower() if isinstance(value, bool) else value}"
