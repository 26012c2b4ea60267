"""From our model to one of transformers: the content of its config.json, and its tensors."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from transformer_cli.config import ModelConfig
from transformer_cli.extensions.exchange.interchange.hugging_face.embedding_tables import (
    TableForm,
    Tables,
    Vocabularies,
    written_tables,
)
from transformer_cli.extensions.exchange.interchange.hugging_face.model_classes import (
    ModelClass,
    fitting_class,
)
from transformer_cli.extensions.exchange.interchange.hugging_face.weight_names import (
    Part,
    bias_in_order,
    column_order,
    in_order,
    parts,
)
from transformer_cli.model.positions import sines_and_cosines
from transformer_cli.text import Tokenizer


def hugging_face_config(config: ModelConfig, vocabularies: Vocabularies) -> dict[str, Any]:
    """The content of a config.json.

    Raises:
        ConfigError: no class of transformers computes what this model computes.
    """
    model_class = fitting_class(config)
    form = TableForm.of(config, vocabularies, model_class)
    size = form.size(vocabularies)
    of_marian = {
        "decoder_vocab_size": size,
        "share_encoder_decoder_embeddings": form is not TableForm.TWO,
    }
    num_layers = {"encoder": config.encoder_layers, "decoder": config.decoder_layers}
    of_layers = {
        "attention_heads": config.num_heads,
        "ffn_dim": config.d_ff,
        "layerdrop": config.layer_dropout,
    }
    sizes = {f"{stack}_{name}": of_layers[name] for stack in num_layers for name in of_layers}
    return {
        "architectures": [model_class.name],
        "model_type": model_class.model_type,
        "is_encoder_decoder": True,
        "dtype": "float32",
        "vocab_size": size,
        **({} if model_class.joins_tables else of_marian),
        "tie_word_embeddings": config.tie_embeddings != "none",
        "d_model": config.d_model,
        "num_hidden_layers": config.encoder_layers,
        **{f"{stack}_layers": number for stack, number in num_layers.items()},
        **sizes,
        "activation_function": config.activation,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.ff_dropout,
        "max_position_embeddings": num_positions(config),
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
    config: ModelConfig, vocabularies: Vocabularies, state: Mapping[str, Tensor]
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
    tables = Tables(*(table[:, order] for table in _tables(config, state)))
    if config.tie_embeddings != "none":
        tables = tables._replace(output=tables.target)
    num_unlisted = vocabularies.num_unlisted
    tensors = written_tables(tables, state.get("output.bias"), form, num_unlisted=num_unlisted)
    for part in parts(config, model_class):
        tensors[f"{part.theirs}.weight"] = in_order(state[f"{part.ours}.weight"], part.kind, order)
        tensors[f"{part.theirs}.bias"] = _bias(part, state, order)
    for stack, side in (("encoder", "source"), ("decoder", "target")):
        table = position_table(config, model_class, state.get(f"{side}_positions.weight"))
        tensors[f"model.{stack}.embed_positions.weight"] = table
    return {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}


def num_positions(config: ModelConfig) -> int:
    """The length of the longest source or target that the model can read in transformers."""
    return config.max_length if config.positions == "learned" else max(1024, 2 * config.max_length + 32)  # fmt: skip


def _tables(config: ModelConfig, state: Mapping[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    output = state["output.weight"]
    source = output if config.tie_embeddings == "all" else state["source_embedding.weight"]
    target = state["target_embedding.weight"] if config.tie_embeddings == "none" else output
    return source, target, output


def _bias(part: Part, state: Mapping[str, Tensor], order: Tensor) -> Tensor:
    if not part.has_bias:
        return state[f"{part.ours}.weight"].new_zeros(len(state[f"{part.ours}.weight"]))
    return bias_in_order(state[f"{part.ours}.bias"], part.kind, order)


def position_table(
    config: ModelConfig, model_class: ModelClass, learned: Tensor | None = None
) -> Tensor:
    """The table of positions; its first rows are zeros where the class skips them.

    Args:
        learned: the positions of one side, if they are learned.
    """
    if learned is not None:
        table = learned
    elif config.positions == "none":
        table = torch.zeros(num_positions(config), config.d_model)
    else:
        cpu = torch.device("cpu")
        both = sines_and_cosines(num_positions(config), config.d_model, torch.float32, cpu)
        is_in_halves = config.positions == "sinusoidal_halves" or model_class.has_own_sinusoids
        table = torch.cat(both, -1) if is_in_halves else torch.stack(both, -1).flatten(-2)
    return torch.cat([table.new_zeros(model_class.position_offset, config.d_model), table])
