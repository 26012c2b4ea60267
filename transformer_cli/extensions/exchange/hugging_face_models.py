"""Models of transformers and ours, in both directions: classes, names of weights, tables of embeddings, configs, tensors.

transformers has one vocabulary for both sides, except in Marian. So two tables are joined to one where needed: first the
rows of the target, then those of the source, whose ids begin behind those of the target. The bias of the source rows keeps
them out of translations.

The vector that all layers read and write (D columns) may have its columns in another order in transformers: `sinusoidal`
positions interleave sines and cosines, and a class of transformers has first all sines, then all cosines. The same order
for the rows and columns of all weights gives exactly the same logits.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from transformer_cli.config import ModelConfig
from transformer_cli.extensions.exchange.export_format import shown_setting
from transformer_cli.extensions.exchange.model_folder import fitting_config
from transformer_cli.extensions.exchange.position_tables import num_positions
from transformer_cli.model import Transformer
from transformer_cli.model.layers import sines_and_cosines
from transformer_cli.process.errors import ConfigError, DataError
from transformer_cli.text import Tokenizer

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


MARIAN = ModelClass("MarianMTModel", "marian", "post", False, False, True, saves_positions=False, joins_tables=False)
PEGASUS = ModelClass("PegasusForConditionalGeneration", "pegasus", "pre", False, True, True)
BART = ModelClass("BartForConditionalGeneration", "bart", "post", True, False, False, position_offset=2)
MBART = ModelClass("MBartForConditionalGeneration", "mbart", "pre", True, True, False, position_offset=2)
CLASSES = (MARIAN, PEGASUS, BART, MBART)


def fitting_class(config: ModelConfig) -> ModelClass:
    """The class that computes the same.

    Raises:
        ConfigError: there is none; the message names the settings in the way.
    """
    found = list(hugging_face_obstacles(config))
    if found:
        raise ConfigError(
            f"no model class of transformers has {' and '.join(found)}",
            hint="tfm info shows the formats that can hold this model",
        )
    model_class = _class_by_norms(config)
    assert model_class is not None
    return model_class


def hugging_face_obstacles(config: ModelConfig) -> Iterator[str]:
    """The settings of a model that keep it from every class of transformers, as `model.x: value`; none if one fits."""
    settings: dict[str, bool] = {
        "decoder_layer": config.decoder_layer != "attention",
        "norm": config.norm != "layernorm",
        "norm_eps": abs(config.norm_eps - NORM_EPS) > 1e-3 * NORM_EPS,
        "activation": config.is_gated,
        "head_dim": config.num_heads * config.head_width != config.d_model,
        "num_kv_heads": config.kv_heads != config.num_heads,
        "qk_norm": config.qk_norm,
    }
    yield from (shown_setting(config, name) for name, is_in_the_way in settings.items() if is_in_the_way)
    if config.positions in ("rotary", "sinusoidal_marian"):
        yield shown_setting(config, "positions")
    model_class = _class_by_norms(config)
    if model_class is None:
        yield _misplaced_norm(config)
    elif not model_class.saves_positions and config.positions in ("learned", "none"):
        # It would load such a table, but lose it without a word when it is saved again.
        yield f"{shown_setting(config, 'positions')} together with {shown_setting(config, 'norm_placement')}"


def _class_by_norms(config: ModelConfig) -> ModelClass | None:
    wanted = config.norm_placement, config.embedding_norm, config.has_final_norm
    for one in CLASSES:
        if (one.norm_placement, one.embedding_norm, one.final_norm) == wanted:
            return one
    return None


def _misplaced_norm(config: ModelConfig) -> str:
    if config.norm_placement == "residual_of_normed":
        return shown_setting(config, "norm_placement")
    final_norm = str(config.has_final_norm).lower()
    return f"model.final_norm: {final_norm} together with {shown_setting(config, 'norm_placement')}"


Kind = Literal["reader", "writer", "norm"]
"""reader: a matrix whose columns belong to the D columns of its input; writer: one whose rows belong to the D columns of its output;
norm: a gain and a bias of D numbers."""

_SELF_ATTENTION = {"self_attention": "self_attn"}
_CROSS_ATTENTION = {"cross_attention": "encoder_attn"}
_PROJECTIONS: dict[str, tuple[str, Kind]] = {
    "query": ("q_proj", "reader"),
    "key": ("k_proj", "reader"),
    "value": ("v_proj", "reader"),
    "output": ("out_proj", "writer"),
}


class LayerPart(NamedTuple):
    """A projection or a norm; its parameters are `weight` and `bias`."""

    ours: str
    theirs: str
    kind: Kind
    has_bias: bool
    """Whether our part has a bias; theirs always has one."""


def layer_parts(config: ModelConfig, model_class: ModelClass) -> Iterator[LayerPart]:
    """All projections and norms of encoder and decoder."""
    sides = (
        ("encoder", "source", config.encoder_layers),
        ("decoder", "target", config.decoder_layers),
    )
    for stack, side, num_layers in sides:
        attentions = _SELF_ATTENTION | (_CROSS_ATTENTION if stack == "decoder" else {})
        for number in range(num_layers):
            layer = f"{stack}.layers.{number}."
            for attention, their_attention in attentions.items():
                ours, theirs = layer + attention, f"model.{layer}{their_attention}"
                for our_end, (their_end, kind) in _PROJECTIONS.items():
                    yield LayerPart(f"{ours}.{our_end}", f"{theirs}.{their_end}", kind, config.attention_bias)
                yield LayerPart(f"{ours}_norm", f"{theirs}_layer_norm", "norm", True)
            has_bias = config.feed_forward_bias
            yield LayerPart(f"{layer}feed_forward.up", f"model.{layer}fc1", "reader", has_bias)
            yield LayerPart(f"{layer}feed_forward.down", f"model.{layer}fc2", "writer", has_bias)
            yield LayerPart(f"{layer}feed_forward_norm", f"model.{layer}final_layer_norm", "norm", True)
        if model_class.embedding_norm:
            yield LayerPart(f"{side}_embedding_norm", f"model.{stack}.layernorm_embedding", "norm", True)
        if model_class.final_norm:
            yield LayerPart(f"{stack}.norm", f"model.{stack}.layer_norm", "norm", True)


def column_order(config: ModelConfig, model_class: ModelClass) -> Tensor:
    """(D,): column i of transformers is our column `order[i]`."""
    columns = torch.arange(config.d_model)
    if config.positions == "sinusoidal" and model_class.has_own_sinusoids:
        return torch.cat([columns[0::2], columns[1::2]])
    return columns


def in_order(weight: Tensor, kind: Kind, order: Tensor) -> Tensor:
    """The weight of a part with its columns, or rows, or numbers, in another order."""
    return weight[:, order] if kind == "reader" else weight[order]


def bias_in_order(bias: Tensor, kind: Kind, order: Tensor) -> Tensor:
    """The same for the bias of a part; the output of a reader keeps its order."""
    return bias if kind == "reader" else bias[order]


NEVER = -1e4
"""The bias of a token that no translation contains: exp(-1e4) is 0, and float16 can hold the number."""

SHARED_TABLE = "model.shared.weight"
SOURCE_TABLE = "model.encoder.embed_tokens.weight"
TARGET_TABLE = "model.decoder.embed_tokens.weight"
OUTPUT_TABLE = "lm_head.weight"
OUTPUT_BIAS = "final_logits_bias"


class EmbeddingTables(NamedTuple):
    """The three tables; one object stands in several places where tables are tied."""

    source: Tensor
    """(V of the source, D)."""
    target: Tensor
    """(V of the target, D)."""
    output: Tensor
    """(V of the target, D)."""


@dataclass(frozen=True, slots=True)
class VocabularySizes:
    """The sizes of both vocabularies."""

    source_size: int
    target_size: int
    are_shared: bool
    """Whether both sides have the same tokenizer."""
    num_unlisted: int = 0
    """Pieces with which a source is split, but which count as unknown (`text/sentencepiece`). In transformers they have ids of their own,
    the last ones, whose rows are copies of the row of [UNK]."""


class TableForm(Enum):
    """How the tables of a model are stored in transformers."""

    ONE = "one table, for source, target and output"
    TWO = "a table of the source and one of the target, with equal ids"
    JOINED = "one table, with the rows of the target and behind them those of the source"

    @classmethod
    def of(cls, config: ModelConfig, vocabularies: VocabularySizes, model_class: ModelClass) -> "TableForm":
        """The form for a model."""
        if config.tie_embeddings == "all":
            return cls.ONE
        # transformers 4 gives both sides of Marian one size, so two vocabularies are joined there, too.
        if vocabularies.are_shared and not model_class.joins_tables:
            return cls.TWO
        return cls.JOINED

    def source_offset(self, vocabularies: VocabularySizes) -> int:
        """The id of the first source token in transformers."""
        return vocabularies.target_size if self is TableForm.JOINED else 0

    def size(self, vocabularies: VocabularySizes) -> int:
        """The number of ids in transformers."""
        first = self.source_offset(vocabularies)
        return first + vocabularies.source_size + vocabularies.num_unlisted


def written_tables(
    tables: EmbeddingTables, bias: Tensor | None, form: TableForm, *, num_unlisted: int = 0
) -> dict[str, Tensor]:
    """The tensors of transformers for three tables; a tied table stands there once.

    Args:
        tables: ours.
        bias: (V of the target,), of the output layer; None: it has none.
        form: of the tables in transformers.
        num_unlisted: as in `VocabularySizes`.
    """
    source, target, output = tables
    is_tied = output is target
    unknown = source[Tokenizer.unk_id].expand(num_unlisted, -1)
    added = torch.cat([source, unknown]) if form is TableForm.JOINED else unknown
    bias = output.new_zeros(len(output)) if bias is None else bias
    bias = torch.cat([bias, bias.new_full((len(added),), NEVER)])
    source, target = torch.cat([source, unknown]), torch.cat([target, added])
    output = target if is_tied else torch.cat([output, torch.zeros_like(added)])
    written = {OUTPUT_BIAS: bias[None]}
    if form is TableForm.TWO:
        written |= {SOURCE_TABLE: source, TARGET_TABLE: target}
    elif is_tied:
        written[SHARED_TABLE] = target
    else:
        # Without tying, transformers 5 fills three tables and not one.
        written |= dict.fromkeys((SHARED_TABLE, SOURCE_TABLE, TARGET_TABLE), target)
    if not is_tied:
        written[OUTPUT_TABLE] = output
    return written


def read_tables(tensors: Mapping[str, Tensor], width: int, *, is_shared: bool, is_tied: bool) -> EmbeddingTables:
    """The three tables that transformers would use.

    Args:
        tensors: of transformers.
        width: the number of columns that the settings ask for.
        is_shared: whether source and target share their table.
        is_tied: whether the output layer shares the table of the target.

    Raises:
        DataError: a table is missing, or has another shape.
    """
    if is_shared and is_tied:
        table = _table(tensors, width, SHARED_TABLE, TARGET_TABLE, SOURCE_TABLE, OUTPUT_TABLE)
        return EmbeddingTables(table, table, table)
    shared_names = (SHARED_TABLE,) if is_shared else ()
    source = _table(tensors, width, SOURCE_TABLE, *shared_names)
    output_names = (OUTPUT_TABLE,) if is_tied else ()
    target = _table(tensors, width, TARGET_TABLE, *shared_names, *output_names)
    output = target if is_tied else _tensor(tensors, OUTPUT_TABLE, (len(target), width))
    return EmbeddingTables(source, target, output)


def our_tables(tables: EmbeddingTables, vocabularies: VocabularySizes, form: TableForm) -> EmbeddingTables:
    """Our tables: the inverse of `written_tables`."""
    first, size = form.source_offset(vocabularies), vocabularies.target_size
    target = tables.target[:size]
    output = target if tables.output is tables.target else tables.output[:size]
    return EmbeddingTables(tables.source[first : first + vocabularies.source_size], target, output)


def _table(tensors: Mapping[str, Tensor], width: int, *names: str) -> Tensor:
    """The first of these tables that is there; it has one row or more."""
    for name in names:
        if name in tensors:
            return _tensor(tensors, name, (max(1, *tensors[name].shape[:1]), width))
    raise DataError(f"the weights have no {' and no '.join(names)}")


def hugging_face_config(config: ModelConfig, vocabularies: VocabularySizes) -> dict[str, Any]:
    """The content of a config.json.

    Raises:
        ConfigError: no class of transformers computes what this model computes.
    """
    model_class = fitting_class(config)
    form = TableForm.of(config, vocabularies, model_class)
    size = form.size(vocabularies)
    marian_settings = {
        "decoder_vocab_size": size,
        "share_encoder_decoder_embeddings": form is not TableForm.TWO,
    }
    num_layers = {"encoder": config.encoder_layers, "decoder": config.decoder_layers}
    layer_settings = {
        "attention_heads": config.num_heads,
        "ffn_dim": config.d_ff,
        "layerdrop": config.layer_dropout,
    }
    sizes = {f"{stack}_{name}": layer_settings[name] for stack in num_layers for name in layer_settings}
    return {
        "architectures": [model_class.name],
        "model_type": model_class.model_type,
        "is_encoder_decoder": True,
        "dtype": "float32",
        "vocab_size": size,
        **({} if model_class.joins_tables else marian_settings),
        "tie_word_embeddings": config.tie_embeddings != "none",
        "d_model": config.d_model,
        "num_hidden_layers": config.encoder_layers,
        **{f"{stack}_layers": number for stack, number in num_layers.items()},
        **sizes,
        "activation_function": config.activation,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.ff_dropout,
        "max_position_embeddings": num_hugging_face_positions(config),
        "scale_embedding": config.scale_embeddings,
        "static_position_embeddings": config.positions.startswith("sinusoidal"),
        "init_std": 0.02,
        "use_cache": True,
        "pad_token_id": Tokenizer.pad_id,
        "bos_token_id": Tokenizer.sos_id,
        "eos_token_id": Tokenizer.eos_id,
        "decoder_start_token_id": Tokenizer.sos_id,
        # Without this line, transformers puts the end symbol of its own models at the end of a long translation.
        "forced_eos_token_id": None,
        "forced_bos_token_id": None,
    }


def hugging_face_tensors(
    config: ModelConfig, vocabularies: VocabularySizes, state: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """The tensors of a model.safetensors, each with its own memory.

    Args:
        config: of the model.
        vocabularies: its sizes.
        state: the `state_dict` of its `Transformer`, in float32.

    Raises:
        ConfigError: as of `hugging_face_config`.
    """
    model_class = fitting_class(config)
    order = column_order(config, model_class)
    form = TableForm.of(config, vocabularies, model_class)
    tables = EmbeddingTables(*(table[:, order] for table in _tables_of_state(config, state)))
    if config.tie_embeddings != "none":
        tables = tables._replace(output=tables.target)
    num_unlisted = vocabularies.num_unlisted
    tensors = written_tables(tables, state.get("output.bias"), form, num_unlisted=num_unlisted)
    for part in layer_parts(config, model_class):
        tensors[f"{part.theirs}.weight"] = in_order(state[f"{part.ours}.weight"], part.kind, order)
        tensors[f"{part.theirs}.bias"] = _written_bias(part, state, order)
    for stack, side in (("encoder", "source"), ("decoder", "target")):
        table = hugging_face_positions(config, model_class, state.get(f"{side}_positions.weight"))
        tensors[f"model.{stack}.embed_positions.weight"] = table
    return {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}


def num_hugging_face_positions(config: ModelConfig) -> int:
    """The length of the longest source or target that the model can read in transformers."""
    return num_positions(config) if config.positions == "learned" else max(1024, num_positions(config))


def _tables_of_state(config: ModelConfig, state: Mapping[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    output = state["output.weight"]
    source = output if config.tie_embeddings == "all" else state["source_embedding.weight"]
    target = state["target_embedding.weight"] if config.tie_embeddings == "none" else output
    return source, target, output


def _written_bias(part: LayerPart, state: Mapping[str, Tensor], order: Tensor) -> Tensor:
    if not part.has_bias:
        return state[f"{part.ours}.weight"].new_zeros(len(state[f"{part.ours}.weight"]))
    return bias_in_order(state[f"{part.ours}.bias"], part.kind, order)


def hugging_face_positions(config: ModelConfig, model_class: ModelClass, learned: Tensor | None = None) -> Tensor:
    """The table of positions; its first rows are zeros where the class skips them.

    Args:
        learned: the positions of one side, if they are learned.
    """
    if learned is not None:
        table = learned
    elif config.positions == "none":
        table = torch.zeros(num_hugging_face_positions(config), config.d_model)
    else:
        cpu = torch.device("cpu")
        both = sines_and_cosines(num_hugging_face_positions(config), config.d_model, torch.float32, cpu)
        is_in_halves = config.positions == "sinusoidal_halves" or model_class.has_own_sinusoids
        table = torch.cat(both, -1) if is_in_halves else torch.stack(both, -1).flatten(-2)
    return torch.cat([table.new_zeros(model_class.position_offset, config.d_model), table])


_POSITIONS = (("encoder", "source"), ("decoder", "target"))
_LAYERS = ("model.encoder.layer", "model.decoder.layer")
"""Begins the names of all tensors of encoder and decoder but the tables."""
_ROUNDING = 1e-3
"""Largest difference of a table of sinusoids; checkpoints in float16 have an error of up to 2.5e-4."""
_ROUNDING_OF_FLOAT32 = 1e-4
"""The same in float32: programs compute sines and cosines in different ways."""


class ForeignModel(NamedTuple):
    """A model of transformers as ours, with the vocabulary of transformers."""

    config: ModelConfig
    state: dict[str, Tensor]
    """Of a `Transformer` with this config, in float32."""
    source_vocab_size: int
    target_vocab_size: int


def from_hugging_face(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> ForeignModel:
    """A model of transformers as ours: the same ids give the same logits.

    Args:
        config: the content of config.json.
        tensors: the weights, in any precision.

    Raises:
        DataError: the class, a setting or the weights have no counterpart; the message names them.
    """
    model_class = class_of_config(config)
    tensors = {name: tensor.detach().to("cpu", torch.float32) for name, tensor in tensors.items()}
    tables = _read_tables(config, tensors, model_class)
    ours = _model_config(config, model_class, tables, tensors)
    state = _state(ours, model_class, tables, tensors)
    return ForeignModel(ours, state, len(tables.source), len(tables.target))


def restored_model(
    ours: ModelConfig,
    vocabularies: VocabularySizes,
    config: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
) -> ForeignModel:
    """The inverse of `hugging_face_tensors`: our weights, with the config that was exported.

    If transformers has trained the positions, too, the config says that they are learned.

    Args:
        ours: the config of the exported model.
        vocabularies: its sizes.
        config: the content of config.json.
        tensors: the weights, as exported or trained further by transformers.

    Raises:
        DataError: the weights are not those of such a model, or one of them has no place in it.
    """
    model_class = fitting_class(ours)
    if class_of_config(config) is not model_class:
        raise DataError(
            f"config.json: model_type is {config.get('model_type')!r}, but the settings of the model are those of {model_class.model_type!r}"
        )
    positions = _trained_positions(ours, model_class, tensors)
    tensors = {name: tensor.detach().to("cpu", torch.float32) for name, tensor in tensors.items()}
    tables = _read_tables(config, tensors, model_class)
    tables = our_tables(tables, vocabularies, TableForm.of(ours, vocabularies, model_class))
    state = _state(ours, model_class, tables, tensors)
    if positions:
        state |= positions
        lengths = (len(table) for table in positions.values())
        ours = ours.model_copy(update={"positions": "learned", "max_length": min(lengths)})
    return ForeignModel(ours, state, len(tables.source), len(tables.target))


def with_rows(model: ForeignModel, source_rows: list[int], target_rows: list[int]) -> ForeignModel:
    """The same model with other ids: new id i has the weights of old id `rows[i]`; an old id may stand there twice.

    Where one table serves both sides, both lists must be equal.
    """
    rows = {"source_embedding.weight": source_rows} | dict.fromkeys(
        ("target_embedding.weight", "output.weight", "output.bias"), target_rows
    )
    assert model.config.tie_embeddings != "all" or source_rows == target_rows
    state = {name: tensor[torch.tensor(rows[name])] if name in rows else tensor for name, tensor in model.state.items()}
    return ForeignModel(model.config, state, len(source_rows), len(target_rows))


def class_of_config(config: Mapping[str, Any]) -> ModelClass:
    """The class that the content of a config.json names; DataError if none of ours computes the same."""
    for one in CLASSES:
        if config.get("model_type") == one.model_type:
            return one
    known = ", ".join(one.model_type for one in CLASSES)
    raise DataError(
        f"config.json: model_type is {config.get('model_type')!r}; models of these types fit: {known}",
        hint="for other models, use transformers itself",
    )


def _read_tables(config: Mapping[str, Any], tensors: Mapping[str, Tensor], model_class: ModelClass) -> EmbeddingTables:
    is_shared = model_class is not MARIAN or config.get("share_encoder_decoder_embeddings", True)
    is_tied = config.get("tie_word_embeddings", True)
    width = _number(config, "d_model")
    tables = read_tables(tensors, width, is_shared=is_shared, is_tied=is_tied)
    if OUTPUT_BIAS in tensors:
        _tensor(tensors, OUTPUT_BIAS, (1, len(tables.output)))
    return tables


def _model_config(
    config: Mapping[str, Any],
    model_class: ModelClass,
    tables: EmbeddingTables,
    tensors: Mapping[str, Tensor],
) -> ModelConfig:
    activation = config.get("activation_function", "gelu")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise DataError(
            f"config.json: activation_function is {activation!r}; these have a counterpart: {', '.join(ACTIVATIONS)}"
        )
    if tables.output is not tables.target:
        tied = "none"
    else:
        tied = "all" if tables.source is tables.target else "target-output"
    positions, max_length = _position_kind(config, model_class, tensors)
    bias = tensors.get(OUTPUT_BIAS)
    settings = {
        "d_model": _number(config, "d_model"),
        "num_heads": _same_on_both_sides(config, "attention_heads"),
        "d_ff": _same_on_both_sides(config, "ffn_dim"),
        "encoder_layers": _number(config, "encoder_layers"),
        "decoder_layers": _number(config, "decoder_layers"),
        "max_length": max_length,
        "dropout": config.get("dropout", 0.1),
        "attention_dropout": config.get("attention_dropout", 0.0),
        "ff_dropout": config.get("activation_dropout", 0.0),
        "norm_eps": NORM_EPS,
        "norm_placement": model_class.norm_placement,
        "final_norm": model_class.final_norm,
        "embedding_norm": model_class.embedding_norm,
        "activation": ACTIVATIONS[activation],
        "positions": positions,
        "scale_embeddings": config.get("scale_embedding", False),
        "tie_embeddings": tied,
        "output_bias": bias is not None and bool(bias.any()),
    }
    return fitting_config(settings, "config.json")


def _number(config: Mapping[str, Any], name: str, usual: int | None = None) -> int:
    value = config.get(name, usual)
    if type(value) is not int or value < 1:
        raise DataError(f"config.json: {name} is {value!r}, not a whole number above 0")
    return value


def _same_on_both_sides(config: Mapping[str, Any], name: str) -> int:
    encoder, decoder = (_number(config, f"{stack}_{name}") for stack in ("encoder", "decoder"))
    if encoder != decoder:
        raise DataError(
            f"config.json: encoder_{name} is {encoder} and decoder_{name} {decoder}; our models have one number for both"
        )
    return encoder


def _position_kind(
    config: Mapping[str, Any], model_class: ModelClass, tensors: Mapping[str, Tensor]
) -> tuple[str, int]:
    """The kind of positions, and the number of them."""
    names = [f"model.{stack}.embed_positions.weight" for stack, _ in _POSITIONS]
    width = _number(config, "d_model")
    found = [_table(tensors, width, name) for name in names if name in tensors]
    max_length = _number(config, "max_position_embeddings", 1024)
    if model_class.has_own_sinusoids and all(map(_are_sinusoids, found)):
        return "sinusoidal_halves", max_length
    if len(found) != len(names):
        raise DataError(f"the weights have no {' and no '.join(names)}")
    if not any(table.any() for table in found):
        return "none", max_length
    return "learned", min(map(len, found)) - model_class.position_offset


def _are_sinusoids(table: Tensor) -> bool:
    sines, cosines = sines_and_cosines(len(table), table.size(1), table.dtype, table.device)
    return torch.allclose(table, torch.cat([sines, cosines], dim=-1), rtol=0.0, atol=_ROUNDING)


def _state(
    config: ModelConfig,
    model_class: ModelClass,
    tables: EmbeddingTables,
    tensors: Mapping[str, Tensor],
) -> dict[str, Tensor]:
    order = column_order(config, model_class).argsort()
    with torch.device("meta"):
        expected = Transformer(config, len(tables.source), len(tables.target)).state_dict()
    parts = [*layer_parts(config, model_class)]
    _check_surplus(parts, tensors)
    state = {"output.weight": tables.output[:, order]}
    if config.tie_embeddings != "all":
        state["source_embedding.weight"] = tables.source[:, order]
    if config.tie_embeddings == "none":
        state["target_embedding.weight"] = tables.target[:, order]
    for part in parts:
        shape = expected[f"{part.ours}.weight"].shape
        weight = _tensor(tensors, f"{part.theirs}.weight", shape)
        state[f"{part.ours}.weight"] = in_order(weight, part.kind, order)
        bias = _read_bias(tensors, f"{part.theirs}.bias", shape[:1], is_used=part.has_bias)
        if bias is not None:
            state[f"{part.ours}.bias"] = bias_in_order(bias, part.kind, order)
    state |= _output_bias(config, len(tables.output), tensors)
    state |= _learned_positions(config, model_class, tensors)
    return {name: tensor.clone() for name, tensor in state.items()}


def _check_surplus(parts: Sequence[LayerPart], tensors: Mapping[str, Tensor]) -> None:
    """Raise DataError if encoder or decoder has a layer or norm that these settings do not have."""
    known = {f"{part.theirs}.{kind}" for part in parts for kind in ("weight", "bias")}
    surplus = sorted(name for name in tensors if name.startswith(_LAYERS) and name not in known)
    if surplus:
        more = f" and {len(surplus) - 1} more" if len(surplus) > 1 else ""
        raise DataError(
            f"the weights: {surplus[0]}{more} belongs to no part of a model with these settings",
            hint="config.json and the weights must be of one model: copy the whole folder again",
        )


def _output_bias(config: ModelConfig, num_outputs: int, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    found = tensors.get(OUTPUT_BIAS, torch.zeros(1, num_outputs)).flatten()[:num_outputs]
    bias = _read_bias({OUTPUT_BIAS: found}, OUTPUT_BIAS, (num_outputs,), is_used=config.output_bias)
    return {} if bias is None else {"output.bias": bias}


def _learned_positions(
    config: ModelConfig, model_class: ModelClass, tensors: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    if config.positions != "learned":
        return {}
    first = model_class.position_offset
    return {
        f"{side}_positions.weight": _table(tensors, config.d_model, f"model.{stack}.embed_positions.weight")[
            first : first + config.max_length
        ]
        for stack, side in _POSITIONS
    }


def _trained_positions(ours: ModelConfig, model_class: ModelClass, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tables of positions that were written as sinusoids or zeros, and are others now; empty if they are the same.

    BART and mBART have tables that are trained; transformers 5.24 trains the sinusoids of Pegasus, too.
    """
    if ours.positions == "learned" or not model_class.saves_positions:
        return {}
    written, first = hugging_face_positions(ours, model_class), model_class.position_offset
    found = [_table(tensors, ours.d_model, f"model.{stack}.embed_positions.weight") for stack, _ in _POSITIONS]
    is_exact = all(table.dtype == torch.float32 for table in found)
    rounding = _ROUNDING_OF_FLOAT32 if is_exact else _ROUNDING
    if all(_is_beginning(table, written, rounding) for table in found):
        return {}
    order = column_order(ours, model_class).argsort()
    return {
        f"{side}_positions.weight": table[first : first + ours.max_length, order].float()
        for table, (_, side) in zip(found, _POSITIONS, strict=True)
    }


def _is_beginning(table: Tensor, written: Tensor, rounding: float) -> bool:
    length = min(len(table), len(written))
    return torch.allclose(table[:length].float(), written[:length], rtol=0.0, atol=rounding)


def _read_bias(tensors: Mapping[str, Tensor], name: str, shape: Sequence[int], *, is_used: bool) -> Tensor | None:
    """A bias of transformers; None if ours has none, and then it must be zero."""
    bias = _tensor(tensors, name, shape)
    if is_used:
        return bias
    if bias.any():
        raise DataError(
            f"the weights: {name} is not zero, but the model was exported without this bias",
            hint="the model was trained further by another program, which trains all biases",
        )
    return None


def _tensor(tensors: Mapping[str, Tensor], name: str, shape: Sequence[int]) -> Tensor:
    """The tensor of a name; DataError if it is missing, or has another shape."""
    if name not in tensors:
        raise DataError(f"the weights have no {name}")
    if [*tensors[name].shape] != [*shape]:
        raise DataError(
            f"the weights: {name} has the shape {[*tensors[name].shape]}, but the settings ask for {[*shape]}",
            hint="config.json and the weights must be of one model: copy the whole folder again",
        )
    return tensors[name]
