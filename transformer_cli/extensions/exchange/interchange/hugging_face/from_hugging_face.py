"""From a model of transformers to ours: a `ModelConfig`, and the `state_dict` of a `Transformer`."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transformer_cli.config import ModelConfig
from transformer_cli.extensions.exchange.interchange.hugging_face.embedding_tables import (
    OUTPUT_BIAS,
    TableForm,
    Tables,
    Vocabularies,
    our_tables,
    read_tables,
)
from transformer_cli.extensions.exchange.interchange.hugging_face.model_classes import (
    ACTIVATIONS,
    CLASSES,
    MARIAN,
    NORM_EPS,
    ModelClass,
    fitting_class,
)
from transformer_cli.extensions.exchange.interchange.hugging_face.to_hugging_face import (
    position_table,
)
from transformer_cli.extensions.exchange.interchange.hugging_face.weight_names import (
    bias_in_order,
    column_order,
    in_order,
    parts,
)
from transformer_cli.model.positions import sines_and_cosines
from transformer_cli.process.errors import DataError

_POSITIONS = (("encoder", "source"), ("decoder", "target"))
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
    model_class = _model_class(config)
    tensors = {name: tensor.detach().to("cpu", torch.float32) for name, tensor in tensors.items()}
    tables = _read_tables(config, tensors, model_class)
    ours = _model_config(config, model_class, tables, tensors)
    state = _state(ours, model_class, tables, tensors)
    return ForeignModel(ours, state, len(tables.source), len(tables.target))


def restored_model(
    ours: ModelConfig,
    vocabularies: Vocabularies,
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
    if _model_class(config) is not model_class:
        raise DataError(f"config.json: model_type is {config.get('model_type')!r}, but the settings of the model are those of {model_class.model_type!r}")  # fmt: skip
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
    state = {
        name: tensor[torch.tensor(rows[name])] if name in rows else tensor
        for name, tensor in model.state.items()
    }
    return ForeignModel(model.config, state, len(source_rows), len(target_rows))


def _model_class(config: Mapping[str, Any]) -> ModelClass:
    for one in CLASSES:
        if config.get("model_type") == one.model_type:
            return one
    known = ", ".join(one.model_type for one in CLASSES)
    raise DataError(
        f"config.json: model_type is {config.get('model_type')!r}; models of these types fit: {known}",
        hint="for other models, use transformers itself",
    )


def _read_tables(
    config: Mapping[str, Any], tensors: Mapping[str, Tensor], model_class: ModelClass
) -> Tables:
    is_shared = model_class is not MARIAN or config.get("share_encoder_decoder_embeddings", True)
    is_tied = config.get("tie_word_embeddings", True)
    return read_tables(tensors, is_shared=is_shared, is_tied=is_tied)


def _model_config(
    config: Mapping[str, Any],
    model_class: ModelClass,
    tables: Tables,
    tensors: Mapping[str, Tensor],
) -> ModelConfig:
    activation = config.get("activation_function", "gelu")
    if activation not in ACTIVATIONS:
        raise DataError(f"config.json: activation_function is {activation!r}; these have a counterpart: {', '.join(ACTIVATIONS)}")  # fmt: skip
    if tables.output is not tables.target:
        tied = "none"
    else:
        tied = "all" if tables.source is tables.target else "target-output"
    positions, num_positions = _position_kind(config, model_class, tensors)
    bias = tensors.get(OUTPUT_BIAS)
    settings = {
        "d_model": _number(config, "d_model"),
        "num_heads": _same_on_both_sides(config, "attention_heads"),
        "d_ff": _same_on_both_sides(config, "ffn_dim"),
        "encoder_layers": _number(config, "encoder_layers"),
        "decoder_layers": _number(config, "decoder_layers"),
        "max_length": num_positions,
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
    return ModelConfig.model_validate(settings)


def _number(config: Mapping[str, Any], name: str) -> int:
    value = config.get(name)
    if type(value) is not int or value < 1:
        raise DataError(f"config.json: {name} is {value!r}, not a whole number above 0")
    return value


def _same_on_both_sides(config: Mapping[str, Any], name: str) -> int:
    encoder, decoder = (_number(config, f"{stack}_{name}") for stack in ("encoder", "decoder"))
    if encoder != decoder:
        raise DataError(f"config.json: encoder_{name} is {encoder} and decoder_{name} {decoder}; our models have one number for both")  # fmt: skip
    return encoder


def _position_kind(
    config: Mapping[str, Any], model_class: ModelClass, tensors: Mapping[str, Tensor]
) -> tuple[str, int]:
    """The kind of positions, and the number of them."""
    names = [f"model.{stack}.embed_positions.weight" for stack, _ in _POSITIONS]
    found = [tensors[name] for name in names if name in tensors]
    num_positions = config.get("max_position_embeddings", 1024)
    if model_class.has_own_sinusoids and all(map(_are_sinusoids, found)):
        return "sinusoidal_halves", num_positions
    if len(found) != len(names):
        raise DataError(f"the weights have no {' and no '.join(names)}")
    if not any(table.any() for table in found):
        return "none", num_positions
    return "learned", min(map(len, found)) - model_class.position_offset


def _are_sinusoids(table: Tensor) -> bool:
    sines, cosines = sines_and_cosines(len(table), table.size(1), table.dtype, table.device)
    return torch.allclose(table, torch.cat([sines, cosines], dim=-1), rtol=0.0, atol=_ROUNDING)


def _state(
    config: ModelConfig, model_class: ModelClass, tables: Tables, tensors: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    order = column_order(config, model_class).argsort()
    state = {"output.weight": tables.output[:, order]}
    if config.tie_embeddings != "all":
        state["source_embedding.weight"] = tables.source[:, order]
    if config.tie_embeddings == "none":
        state["target_embedding.weight"] = tables.target[:, order]
    for part in parts(config, model_class):
        weight = _tensor(tensors, f"{part.theirs}.weight")
        state[f"{part.ours}.weight"] = in_order(weight, part.kind, order)
        bias = _bias(tensors, f"{part.theirs}.bias", is_used=part.has_bias)
        if bias is not None:
            state[f"{part.ours}.bias"] = bias_in_order(bias, part.kind, order)
    state |= _output_bias(config, len(tables.output), tensors)
    state |= _learned_positions(config, model_class, tensors)
    return {name: tensor.clone() for name, tensor in state.items()}


def _output_bias(
    config: ModelConfig, num_outputs: int, tensors: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    found = tensors.get(OUTPUT_BIAS, torch.zeros(1, num_outputs)).flatten()[:num_outputs]
    bias = _bias({OUTPUT_BIAS: found}, OUTPUT_BIAS, is_used=config.output_bias)
    return {} if bias is None else {"output.bias": bias}


def _learned_positions(
    config: ModelConfig, model_class: ModelClass, tensors: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    if config.positions != "learned":
        return {}
    first = model_class.position_offset
    return {
        f"{side}_positions.weight": _tensor(tensors, f"model.{stack}.embed_positions.weight")[
            first : first + config.max_length
        ]
        for stack, side in _POSITIONS
    }


def _trained_positions(
    ours: ModelConfig, model_class: ModelClass, tensors: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Tables of positions that were written as sinusoids or zeros, and are others now; empty if they are the same.

    BART and mBART have tables that are trained; transformers 5.24 trains the sinusoids of Pegasus, too.
    """
    if ours.positions == "learned" or not model_class.saves_positions:
        return {}
    written, first = position_table(ours, model_class), model_class.position_offset
    found = [_tensor(tensors, f"model.{stack}.embed_positions.weight") for stack, _ in _POSITIONS]
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


def _bias(tensors: Mapping[str, Tensor], name: str, *, is_used: bool) -> Tensor | None:
    """A bias of transformers; None if ours has none, and then it must be zero."""
    bias = _tensor(tensors, name)
    if is_used:
        return bias
    if bias.any():
        raise DataError(
            f"the weights: {name} is not zero, but the model was exported without this bias",
            hint="the model was trained further by another program, which trains all biases",
        )
    return None


def _tensor(tensors: Mapping[str, Tensor], name: str) -> Tensor:
    if name not in tensors:
        raise DataError(f"the weights have no {name}")
    return tensors[name]
