"""A model in the format of CTranslate2: the files of its folder, made from the modules of a `Transformer`.

Both libraries compute the same layers with the same weights, and read position encodings from a table. CTranslate2
reads and writes the names of tokens: the ids of our tokenizers, or the entries of their vocabularies.
"""

import copy
import importlib.util
import math
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from transformer_cli.config import ModelConfig
from transformer_cli.extensions.exchange.position_tables import num_positions, position_table
from transformer_cli.process.errors import ConfigError, DataError
from transformer_cli.text import Tokenizer

if TYPE_CHECKING:  # the import of PyTorch takes seconds
    from torch import Tensor, nn

    from transformer_cli.model import Transformer

LAYOUT = "ctranslate2-1"
"""Changes when a converted model of this version would differ from that of an older one."""

NEVER = -1e4
"""The bias of a token that is never written: exp(-1e4) is 0, and float16 can hold the number."""

_ACTIVATIONS = {
    "relu": "RELU",
    "gelu": "GELU",
    "silu": "SWISH",
    "reglu": "RELU",
    "geglu": "GELU",
    "swiglu": "SWISH",
}


def require_ctranslate2() -> None:
    """Raise ConfigError if CTranslate2 is not installed, which the config asks for."""
    if importlib.util.find_spec("ctranslate2") is None:
        raise ConfigError(
            "decoding.engine: ctranslate2: CTranslate2 is not installed",
            hint='in the folder of this project: pip install ".[ctranslate2]"; or set decoding.engine=torch',
        )


def unsupported_settings(config: ModelConfig) -> list[str]:
    """The settings of the model, with their values, for which CTranslate2 has no layer."""
    obstacles = {
        f"model.decoder_layer: {config.decoder_layer}": config.decoder_layer != "attention",
        f"model.num_kv_heads: {config.num_kv_heads}": config.kv_heads != config.num_heads,
        f"model.qk_norm: {str(config.qk_norm).lower()}": config.qk_norm,
        f"model.norm_placement: {config.norm_placement}": config.norm_placement == "residual_of_normed",
        f"model.norm: {config.norm}": config.norm not in ("layernorm", "rmsnorm"),
    }
    return [setting for setting, is_in_the_way in obstacles.items() if is_in_the_way]


def require_convertible(config: ModelConfig) -> None:
    """Check that CTranslate2 has a layer for each part of the model.

    Raises:
        ConfigError: a setting of the model has no counterpart.
    """
    for setting in unsupported_settings(config):
        raise ConfigError(
            f"decoding.engine: ctranslate2, but CTranslate2 does not support a model with {setting}",
            hint="use the other engine: --set decoding.engine=torch",
        )


class TokenNames(NamedTuple):
    """What CTranslate2 calls the tokens, in the order of their ids."""

    source: Sequence[str]
    target: Sequence[str]
    special: tuple[str, str, str]
    """[UNK], [SOS] and [EOS]; both sides have the same names for them."""

    @classmethod
    def from_entries(cls, source: Tokenizer, target: Tokenizer) -> "TokenNames":
        """The entries of the vocabularies, for programs that tokenise with a tokenizer.json."""
        special = (target.unk_id, target.sos_id, target.eos_id)
        unk, sos, eos = (target.entries[index] for index in special)
        return cls(source.entries, target.entries, (unk, sos, eos))

    @classmethod
    def from_ids(cls, num_source: int, num_target: int, target: Tokenizer) -> "TokenNames":
        """The ids, for the engine of this package."""
        special = str(target.unk_id), str(target.sos_id), str(target.eos_id)
        return cls([*map(str, range(num_source))], [*map(str, range(num_target))], special)


class BuiltIn(NamedTuple):
    """What a model does by itself, for programs that do not ask for it."""

    adds_source_end: bool = False
    """CTranslate2 adds [EOS] to each source."""
    never_written: tuple[int, ...] = ()
    """Target ids that get a probability of 0."""
    min_positions: int = 0
    """Sequences of at least this length cause no error; see `position_table`."""


def ctranslate2_files(
    model: "Transformer",
    target_tokenizer: Tokenizer,
    names: TokenNames | None = None,
    *,
    quantization: Literal["int8"] | None = None,
    built_in: "BuiltIn | None" = None,
) -> dict[str, bytes]:
    """The files of a converted model.

    Args:
        model: on the CPU, in float32.
        target_tokenizer: its special tokens are those of the target.
        names: of the tokens; None: their ids.
        quantization: the type of the matrices; None: float32.
        built_in: what the model does by itself; None: nothing beside its layers.

    Raises:
        ConfigError: as for `require_convertible`.
    """
    import torch
    from ctranslate2.specs import TransformerSpec

    require_convertible(model.config)
    built_in = built_in or BuiltIn()
    if quantization is not None:
        model = copy.deepcopy(model)  # the matrices are quantised in place
    encoder, decoder = _empty_specs(model.config)
    spec = TransformerSpec(encoder, decoder)
    with torch.no_grad():
        _fill_embeddings(spec, model, max(built_in.min_positions, num_positions(model.config)))
        if model.config.embedding_norm:
            _fill_norm(encoder.layernorm_embedding, model.source_embedding_norm)
            _fill_norm(decoder.layernorm_embedding, model.target_embedding_norm)
        for ours, theirs in ((model.encoder, encoder), (model.decoder, decoder)):
            for layer, layer_spec in zip(ours.layers, theirs.layer, strict=True):
                _fill_layer(layer_spec, layer)
            if model.config.has_final_norm:
                _fill_norm(theirs.layer_norm, ours.norm)
        _fill_linear(decoder.projection, [model.output])
        if built_in.never_written:
            decoder.projection.bias = _bias_without(model, built_in.never_written)
    sizes = [len(table.weight) for table in _tables(model)]
    names = names or TokenNames.from_ids(sizes[0], sizes[1], target_tokenizer)
    spec.register_source_vocabulary([*names.source])
    spec.register_target_vocabulary([*names.target])
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = names.special
    spec.config.decoder_start_token = spec.config.bos_token
    spec.config.add_source_eos = built_in.adds_source_end
    spec.config.layer_norm_epsilon = model.config.norm_eps
    spec.validate()
    spec.optimize(quantization=quantization)
    with TemporaryDirectory(prefix="tfm-") as folder:
        spec.save(folder)
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def _empty_specs(config: ModelConfig) -> tuple[Any, Any]:
    """Encoder and decoder without weights."""
    from ctranslate2.specs import common_spec
    from ctranslate2.specs.transformer_spec import TransformerDecoderSpec, TransformerEncoderSpec

    # CTranslate2 has final norms for pre-norm only; what follows makes any other order of it.
    settings = {
        "pre_norm": config.norm_placement == "pre" or config.has_final_norm,
        "no_final_norm": not config.has_final_norm,
        "layernorm_embedding": config.embedding_norm,
        "activation": getattr(common_spec.Activation, _ACTIVATIONS[config.activation]),
        "ffn_glu": config.is_gated,
        "rms_norm": config.norm == "rmsnorm",
        "head_dim": config.head_width,
        "rotary_dim": config.head_width if config.positions == "rotary" else None,
        "rotary_interleave": True,
    }
    encoder = TransformerEncoderSpec(config.encoder_layers, config.num_heads, **settings)
    decoder = TransformerDecoderSpec(config.decoder_layers, config.num_heads, **settings)
    encoder.pre_norm = decoder.pre_norm = config.norm_placement == "pre"
    return encoder, decoder


def _fill_embeddings(spec: Any, model: "Transformer", length: int) -> None:
    source, target = _tables(model)
    width = model.config.d_model
    scale = math.sqrt(width) if model.config.scale_embeddings else 1.0
    sides = (
        (spec.encoder, spec.encoder.embeddings[0], source, model.source_positions),
        (spec.decoder, spec.decoder.embeddings, target, model.target_positions),
    )
    for side, embeddings, table, positions in sides:
        embeddings.weight = table.weight.numpy()
        side.scale_embeddings = scale
        if model.config.positions != "rotary":
            # Always as a table: the sinusoids of CTranslate2 have other frequencies.
            side.position_encodings.encodings = position_table(model.config, positions, length).numpy()


def _bias_without(model: "Transformer", never_written: Sequence[int]) -> Any:
    output = model.output
    zeros = output.weight.new_zeros(len(output.weight))
    bias = zeros if output.bias is None else zeros + output.bias
    bias[list(never_written)] = NEVER
    return bias.numpy()


def _tables(model: "Transformer") -> tuple[Any, Any]:
    """The modules that own the source and the target embedding."""
    return model.source_embedding or model.output, model.target_embedding or model.output


def _fill_layer(theirs: Any, ours: Any) -> None:
    attention = ours.self_attention
    _fill_linear(theirs.self_attention.linear[0], [attention.query, attention.key, attention.value])
    _fill_linear(theirs.self_attention.linear[1], [attention.output])
    _fill_norm(theirs.self_attention.layer_norm, ours.self_attention_norm)
    if hasattr(ours, "cross_attention"):
        attention = ours.cross_attention
        _fill_linear(theirs.attention.linear[0], [attention.query])
        _fill_linear(theirs.attention.linear[1], [attention.key, attention.value])
        _fill_linear(theirs.attention.linear[2], [attention.output])
        _fill_norm(theirs.attention.layer_norm, ours.cross_attention_norm)
    feed_forward = ours.feed_forward
    if feed_forward.gate is None:
        _fill_linear(theirs.ffn.linear_0, [feed_forward.up])
    else:
        _fill_linear(theirs.ffn.linear_0, [feed_forward.gate])
        _fill_linear(theirs.ffn.linear_0_noact, [feed_forward.up])
    _fill_linear(theirs.ffn.linear_1, [feed_forward.down])
    _fill_norm(theirs.ffn.layer_norm, ours.feed_forward_norm)


def _fill_linear(theirs: Any, ours: "Sequence[nn.Linear]") -> None:
    """One linear layer from several that read the same input."""
    theirs.weight = _joined([one.weight for one in ours])
    if ours[0].bias is not None:
        theirs.bias = _joined([one.bias for one in ours])


def _joined(tensors: "Sequence[Tensor]") -> Any:
    import torch

    return (tensors[0] if len(tensors) == 1 else torch.cat([*tensors])).numpy()


def _fill_norm(theirs: Any, ours: Any) -> None:
    theirs.gamma = ours.weight.numpy()
    if getattr(ours, "bias", None) is not None:
        theirs.beta = ours.bias.numpy()


VERSION = 6
"""The version of the file format that is read."""
_FLOAT32 = 0
"""The number of the type in the file; the types after it are int8, int16, int32, float16 and bfloat16."""
_MAX_DIMENSIONS = 8


def read_weights(content: bytes, origin: str) -> "dict[str, Tensor]":
    """The float32 tensors of a model, by the names of CTranslate2; a name that means the tensor of another name is left out.

    The format (`ModelSpec._serialize` of CTranslate2 4): version; name of the model and its revision; number of tensors;
    for each tensor its name, dimensions, type, number of bytes, and bytes.

    Args:
        content: of the file.
        origin: what messages call the file.

    Raises:
        DataError: this is no such file, or it is cut off.
    """
    reader = _Reader(content)
    try:
        version = reader.number("I")
        if version != VERSION:
            raise DataError(
                f"{origin}: version {version} of the file format of CTranslate2; version {VERSION} can be read",
                hint="export the run again",
            )
        reader.text()
        reader.number("I")
        return dict(_tensors(reader))
    except (struct.error, UnicodeDecodeError, ValueError) as error:
        raise DataError(f"{origin}: not a whole model.bin of CTranslate2", hint="copy the file again") from error


def _tensors(reader: "_Reader") -> "Iterator[tuple[str, Tensor]]":
    import numpy as np
    import torch

    for _ in range(reader.number("I")):
        name = reader.text()
        num_dimensions = reader.number("B")
        if num_dimensions > _MAX_DIMENSIONS:
            raise ValueError("too many dimensions")
        shape = [reader.number("I") for _ in range(num_dimensions)]
        kind = reader.number("B")
        values = reader.bytes(reader.number("I"))
        if kind == _FLOAT32:
            yield name, torch.from_numpy(np.frombuffer(values, "<f4").reshape(shape).copy())


class _Reader:
    """Reads one value after the other; raises struct.error beyond the end."""

    def __init__(self, content: bytes) -> None:
        self._content = memoryview(content)
        self._at = 0

    def number(self, kind: str) -> int:
        [value] = struct.unpack("<" + kind, self.bytes(struct.calcsize("<" + kind)))
        return int(value)

    def text(self) -> str:
        return bytes(self.bytes(self.number("H"))).rstrip(b"\0").decode()

    def bytes(self, length: int) -> memoryview:
        if length > len(self._content) - self._at:
            raise struct.error("beyond the end of the file")
        self._at += length
        return self._content[self._at - length : self._at]
