"""The files of Marian: which tensor of ours is which of theirs, the settings beside the tensors, the `.npz` archive, and vocabularies.

A `model.npz` is a zip archive of arrays. One of them, `special:model.yml`, is the text of a YAML file with the settings of the
architecture. Marian multiplies rows by matrices (x W), so its matrices are ours transposed.

Source: the names and shapes are those of Marian 1.12 (github.com/marian-nmt/marian-dev: the classes EncoderTransformer,
DecoderTransformer, Embedding, Output and SSRU, and the functions of cnpy).
"""

import io
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import yaml
from numpy.typing import NDArray

from transformer_cli.config import ModelConfig
from transformer_cli.config.loading import parse_yaml
from transformer_cli.extensions.exchange.export_format import Obstacle, shown_setting
from transformer_cli.extensions.exchange.model_folder import fitting_config
from transformer_cli.process.errors import DataError, MissingInputError
from transformer_cli.storage.filesystem import zip_damage_explained

SETTINGS = "special:model.yml"
NORM_EPS = 1e-6
"""The epsilon of every norm in Marian, which no setting changes."""
EOS, UNK = "</s>", "<unk>"
ACTIVATIONS = {"relu": "relu", "silu": "swish"}
"""Our names of activation functions, and Marian's."""
_NORM_LETTERS = {"layernorm": "n", "rmsnorm": "r"}
_PLACEMENTS = {"pre": ("{}", "da"), "post": ("", "da{}"), "residual_of_normed": ("", "d{}a")}
"""For each placement of norms, `transformer-preprocess` and `transformer-postprocess`: d dropout, a addition, {} the norm."""

Arrays = dict[str, NDArray[Any]]
Kind = Literal["matrix", "row", "table"]
"""matrix: ours transposed; row: a vector, theirs with a first axis of length 1; table: one row for each entry of a vocabulary, as ours."""


class Part(NamedTuple):
    """A parameter under both names."""

    ours: str
    theirs: str
    kind: Kind
    is_absent: bool = False
    """Whether our model lacks it: theirs is a bias of zeros."""


def has_ssru(config: ModelConfig) -> bool:
    """Whether the decoder has SSRU cells in place of self-attention."""
    return getattr(config, "decoder_layer", "attention") == "ssru"


def marian_parts(config: ModelConfig) -> Iterator[Part]:
    """All parameters of a model."""
    yield Part("output.weight", _output_table(config), "table")
    if config.tie_embeddings != "all":
        yield Part("source_embedding.weight", "encoder_Wemb", "table")
    if config.tie_embeddings == "none":
        yield Part("target_embedding.weight", "decoder_Wemb", "table")
    yield Part("output.bias", "decoder_ff_logit_out_b", "row", not config.output_bias)
    for stack, side, num_layers in (
        ("encoder", "source", config.encoder_layers),
        ("decoder", "target", config.decoder_layers),
    ):
        for number in range(num_layers):
            yield from _layer(config, stack, number)
        if config.has_final_norm:
            yield from _norm(config, f"{stack}.norm", f"{stack}_top")
        if config.embedding_norm:
            yield from _norm(config, f"{side}_embedding_norm", f"{stack}_emb", "_pre")


def _output_table(config: ModelConfig) -> str:
    tables = {"all": "Wemb", "target-output": "decoder_Wemb", "none": "decoder_ff_logit_out_Wt"}
    return tables[config.tie_embeddings]


def _layer(config: ModelConfig, stack: str, number: int) -> Iterator[Part]:
    ours, theirs = f"{stack}.layers.{number}.", f"{stack}_l{number + 1}_"
    suffix = "_pre" if config.norm_placement == "pre" else ""
    if stack == "decoder" and has_ssru(config):
        yield Part(f"{ours}ssru.input.weight", f"{theirs}rnn_W", "matrix")
        yield Part(f"{ours}ssru.forget_gate.weight", f"{theirs}rnn_Wf", "matrix")
        yield Part(f"{ours}ssru.forget_gate.bias", f"{theirs}rnn_bf", "row")
        after = "rnn" if suffix else "rnn_ffn"
        yield from _norm(config, f"{ours}ssru_norm", f"{theirs}{after}", suffix)
    else:
        yield from _attention(config, f"{ours}self_attention", f"{theirs}self", suffix)
    if stack == "decoder":
        yield from _attention(config, f"{ours}cross_attention", f"{theirs}context", suffix)
    for number_of_matrix, name in ((1, "up"), (2, "down")):
        place, place_there = f"{ours}feed_forward.{name}", f"{theirs}ffn"
        yield Part(f"{place}.weight", f"{place_there}_W{number_of_matrix}", "matrix")
        is_absent = not config.feed_forward_bias
        yield Part(f"{place}.bias", f"{place_there}_b{number_of_matrix}", "row", is_absent)
    yield from _norm(config, f"{ours}feed_forward_norm", f"{theirs}ffn_ffn", suffix)


def _attention(config: ModelConfig, ours: str, theirs: str, suffix: str) -> Iterator[Part]:
    for name in ("query", "key", "value", "output"):
        letter = name[0]
        yield Part(f"{ours}.{name}.weight", f"{theirs}_W{letter}", "matrix")
        yield Part(f"{ours}.{name}.bias", f"{theirs}_b{letter}", "row", not config.attention_bias)
    yield from _norm(config, f"{ours}_norm", f"{theirs}_Wo", suffix)


def _norm(config: ModelConfig, ours: str, theirs: str, suffix: str = "") -> Iterator[Part]:
    if config.norm == "rmsnorm":
        yield Part(f"{ours}.weight", f"{theirs}_rms_scale{suffix}", "row")
        return
    yield Part(f"{ours}.weight", f"{theirs}_ln_scale{suffix}", "row")
    yield Part(f"{ours}.bias", f"{theirs}_ln_bias{suffix}", "row")


def shape_of(part: Part, config: ModelConfig, vocab_sizes: tuple[int, int]) -> tuple[int, ...]:
    """The shape of Marian's tensor.

    Args:
        vocab_sizes: of source and target.
    """
    width, inner = config.d_model, config.d_ff
    if part.kind == "table":
        side = 0 if part.theirs == "encoder_Wemb" else 1
        return vocab_sizes[side], width
    if part.theirs == "decoder_ff_logit_out_b":
        return 1, vocab_sizes[1]
    if ".up." in part.ours:
        return (width, inner) if part.kind == "matrix" else (1, inner)
    if part.ours.endswith(".down.weight"):
        return inner, width
    return (width, width) if part.kind == "matrix" else (1, width)


# Settings: which models there are on both sides, and how they are written down.


def marian_obstacles(config: ModelConfig) -> Iterator[Obstacle]:
    """The settings of a model that Marian does not have."""
    reasons = {
        "start_embedding": (
            config.start_embedding != "zero",
            "a decoder of Marian starts with zeros: start_embedding: zero",
        ),
        "positions": (config.positions != "sinusoidal_marian", "Marian has positions: sinusoidal_marian"),
        "norm_eps": (abs(config.norm_eps / NORM_EPS - 1.0) > 1e-3, "the norms of Marian have norm_eps: 1e-6"),
        "norm": (config.norm not in _NORM_LETTERS, "Marian has no such norm"),
        "activation": (config.activation not in ACTIVATIONS, "Marian has relu and silu"),
        "head_dim": (config.num_heads * config.head_width != config.d_model, "the heads of Marian share d_model"),
        "num_kv_heads": (config.kv_heads != config.num_heads, "Marian has keys and values for each head"),
        "qk_norm": (config.qk_norm, "Marian has no such norm"),
        "scale_embeddings": (not config.scale_embeddings, "Marian always scales embeddings"),
        # DecoderLayerSelfAttention joins earlier inputs before their norm; LayerAttention normalises only the newest one.
        "norm_placement": (
            config.norm_placement == "pre" and not has_ssru(config),
            "Marian leaves out the norm of earlier positions when it translates",
        ),
    }
    for name, (is_in_the_way, reason) in reasons.items():
        if is_in_the_way:
            yield Obstacle(shown_setting(config, name), reason)


def settings_of(config: ModelConfig, vocab_sizes: tuple[int, int]) -> dict[str, Any]:
    """The settings of a model as in `special:model.yml`."""
    letter = _NORM_LETTERS[config.norm]
    before, after = (one.format(letter) for one in _PLACEMENTS[config.norm_placement])
    is_ssru = has_ssru(config)
    return {
        "type": "transformer",
        "version": "tfm",
        "dim-vocabs": list(vocab_sizes),
        "dim-emb": config.d_model,
        "enc-depth": config.encoder_layers,
        "dec-depth": config.decoder_layers,
        "transformer-heads": config.num_heads,
        "transformer-dim-ffn": config.d_ff,
        "transformer-ffn-depth": 2,
        "transformer-ffn-activation": ACTIVATIONS[config.activation],
        "transformer-decoder-autoreg": "rnn" if is_ssru else "self-attention",
        "dec-cell": "ssru" if is_ssru else "gru",
        "transformer-preprocess": before,
        "transformer-postprocess": after,
        "transformer-postprocess-emb": f"{letter}d" if config.embedding_norm else "d",
        "transformer-postprocess-top": letter if config.has_final_norm else "",
        "tied-embeddings": config.tie_embeddings == "target-output",
        "tied-embeddings-src": False,
        "tied-embeddings-all": config.tie_embeddings == "all",
        # What Marian also writes; these values are its defaults.
        **_DEFAULTS,
    }


_DEFAULTS: dict[str, Any] = {
    "bert-train-type-embeddings": True,
    "bert-type-vocab-size": 2,
    "dec-cell-base-depth": 2,
    "dec-cell-high-depth": 1,
    "dim-rnn": 1024,
    "enc-cell": "gru",
    "enc-cell-depth": 1,
    "enc-type": "bidirectional",
    "factors-combine": "sum",
    "factors-dim-emb": 0,
    "input-types": [],
    "layer-normalization": False,
    "lemma-dependency": "",
    "lemma-dim-emb": 0,
    "output-omit-bias": False,
    "right-left": False,
    "skip": False,
    "transformer-aan-activation": "swish",
    "transformer-aan-depth": 2,
    "transformer-aan-nogate": False,
    "transformer-decoder-dim-ffn": 0,
    "transformer-decoder-ffn-depth": 0,
    "transformer-dim-aan": 2048,
    "transformer-disable-position-embeddings": False,
    "transformer-guided-alignment-layer": "last",
    "transformer-no-projection": False,
    "transformer-pool": False,
    "transformer-rnn-projection": False,
    "transformer-tied-layers": [],
    "transformer-train-position-embeddings": False,
    "ulr": False,
    "ulr-dim-emb": 0,
    "ulr-trainable-transformation": False,
}
_MUST_BE: dict[str, Any] = {
    name: _DEFAULTS[name]
    for name in (
        "factors-dim-emb",
        "layer-normalization",
        "lemma-dim-emb",
        "right-left",
        "transformer-disable-position-embeddings",
        "transformer-no-projection",
        "transformer-pool",
        "transformer-rnn-projection",
        "transformer-tied-layers",
        "transformer-train-position-embeddings",
        "ulr",
    )
} | {
    "transformer-attention-mask": "default",
    "transformer-no-affine": False,
    "transformer-no-bias": False,
    "transformer-ffn-depth": 2,
    "transformer-train-positions": False,
    "lemma-dependency": "",
}
"""Settings that change what a model computes, and the only value that our models have."""


def model_config(settings: Mapping[str, Any], origin: str) -> ModelConfig:
    """Our settings of a model of Marian.

    Args:
        settings: of `special:model.yml`.
        origin: what messages call it.

    Raises:
        DataError: our models have no such setting; the message names it.
    """

    def refused(name: str, wanted: str) -> DataError:
        return DataError(
            f"{origin}: {name}: {settings.get(name)!r}: {wanted}",
            hint="docs/marian.md lists what can be imported",
        )

    if settings.get("type") != "transformer":
        raise refused("type", "only Transformers (type: transformer) can be imported")
    for name, value in _MUST_BE.items():
        if settings.get(name, value) != value:
            raise refused(name, f"our models have only {value!r}")
    input_types = settings.get("input-types") or []
    if not isinstance(input_types, list) or any(one != "sequence" for one in input_types):
        raise refused("input-types", "our models read text on both sides")
    sizes = {name: _number(settings, theirs, origin) for name, theirs in _SIZES.items()}
    for name, ours in (
        ("transformer-decoder-dim-ffn", sizes["d_ff"]),
        ("transformer-decoder-ffn-depth", 2),
    ):
        if settings.get(name, 0) not in (0, ours):
            raise refused(name, f"our decoder has the widths of the encoder, {ours}")
    activation = settings.get("transformer-ffn-activation", "swish")
    ours_of = {theirs: ours for ours, theirs in ACTIVATIONS.items()}
    if not isinstance(activation, str) or activation not in ours_of:
        raise refused("transformer-ffn-activation", f"we have {' and '.join(ours_of)}")
    found = {
        **sizes,
        **_norms(settings, refused),
        **_decoder_layer(settings, refused),
        "norm_eps": NORM_EPS,
        "activation": ours_of[activation],
        "positions": "sinusoidal_marian",
        "start_embedding": "zero",
        "scale_embeddings": True,
        "tie_embeddings": _tied(settings),
    }
    return fitting_config(found, origin, "docs/marian.md lists what can be imported")


_SIZES = {
    "d_model": "dim-emb",
    "num_heads": "transformer-heads",
    "d_ff": "transformer-dim-ffn",
    "encoder_layers": "enc-depth",
    "decoder_layers": "dec-depth",
}


def _decoder_layer(settings: Mapping[str, Any], refused: Any) -> dict[str, str]:
    """With what a decoder layer reads the target so far."""
    layer = settings.get("transformer-decoder-autoreg", "self-attention")
    if layer == "self-attention":
        return {}
    cell = settings.get("dec-cell")
    if layer != "rnn" or cell != "ssru" or "decoder_layer" not in ModelConfig.model_fields:
        raise refused("transformer-decoder-autoreg", f"no such layer here (dec-cell: {cell})")
    return {"decoder_layer": "ssru"}


def _number(settings: Mapping[str, Any], name: str, origin: str) -> int:
    value = settings.get(name)
    if type(value) is not int or not 1 <= value <= 1_000_000:
        raise DataError(f"{origin}: {name}: {value!r} is no whole number above 0")
    return value


def _tied(settings: Mapping[str, Any]) -> str:
    if settings.get("tied-embeddings-all"):
        return "all"
    # With tied-embeddings-src, the output has the table of both sides only if it is tied, too.
    if settings.get("tied-embeddings-src"):
        return "all" if settings.get("tied-embeddings") else "none"
    return "target-output" if settings.get("tied-embeddings") else "none"


def _norms(settings: Mapping[str, Any], refused: Any) -> dict[str, Any]:
    """Kind and places of the norms, from letters such as "dan": dropout, addition, norm."""
    names = ("preprocess", "postprocess", "postprocess-top", "postprocess-emb")
    defaults = dict(zip(names, ("", "dan", "", "d"), strict=True))
    found = {name: str(settings.get(f"transformer-{name}", defaults[name])).replace("d", "") for name in names}
    letters = {letter for text in found.values() for letter in text} - {"a"}
    kinds = {letter: name for name, letter in _NORM_LETTERS.items()}
    for name, text in found.items():
        if {*text} - {"a", *kinds}:
            raise refused(f"transformer-{name}", "we have d, a, and the norms n and r")
    if len(letters) != 1:
        raise refused("transformer-postprocess", "our models have one kind of norm, n or r")
    [letter] = letters
    placements = {
        tuple(part.format(letter).replace("d", "") for part in parts): placement
        for placement, parts in _PLACEMENTS.items()
    }
    placement = placements.get((found["preprocess"], found["postprocess"]))
    if placement is None:
        raise refused(
            "transformer-postprocess", f"no such order together with transformer-preprocess: {found['preprocess']!r}"
        )
    for name in ("postprocess-top", "postprocess-emb"):
        if found[name] not in ("", letter):
            raise refused(f"transformer-{name}", "here only a norm can stand, or nothing")
    return {
        "norm": kinds[letter],
        "norm_placement": placement,
        "final_norm": bool(found["postprocess-top"]),
        "embedding_norm": bool(found["postprocess-emb"]),
    }


# The archive.


_AGAIN = "copy the file again"


def npz_content(arrays: Mapping[str, NDArray[Any]], settings: Mapping[str, Any]) -> bytes:
    """The content of a `model.npz`, without compression, as Marian reads it."""
    text = yaml.safe_dump(dict(settings), default_flow_style=False, allow_unicode=True).encode()
    padded = text + bytes(-(len(text) + 1) % 256 + 1)  # ends with a zero byte, in blocks of 256
    with_settings = {**arrays, SETTINGS: np.frombuffer(padded, np.int8)}
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(with_settings):
            one = io.BytesIO()
            np.lib.format.write_array(one, np.ascontiguousarray(with_settings[name]), (1, 0))
            # A fixed time: the same model gives the same file.
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), one.getvalue())
    return written.getvalue()


class NpzModel(NamedTuple):
    """The content of a `model.npz`."""

    arrays: Arrays
    """In float32."""
    settings: dict[str, Any]


def read_npz(path: Path) -> NpzModel:
    """The tensors and the settings of a model; nothing in the file is run.

    Raises:
        MissingInputError: the file cannot be read.
        DataError: it is no such archive, is cut off, or holds something else than arrays of numbers.
    """
    arrays: Arrays = {}
    try:
        with (
            zip_damage_explained(f"{path}: not a zip archive, or cut off", _AGAIN),
            zipfile.ZipFile(path) as archive,
        ):
            for entry in archive.infolist():
                name = entry.filename.removesuffix(".npy")
                if entry.file_size > 100 * (path.stat().st_size + 1024):
                    raise damaged(path, f"{name} would be unpacked to {entry.file_size:,} bytes")
                if name in arrays:
                    raise damaged(path, f"{name} stands in it twice")
                arrays[name] = _array(archive.read(entry), path, name)
    except FileNotFoundError:
        raise MissingInputError(f"{path}: no such file") from None
    except OSError as error:
        raise MissingInputError(f"{path}: cannot be read: {error.strerror}") from error
    settings = arrays.pop(SETTINGS, None)
    if settings is None:
        raise DataError(
            f"{path}: there is no {SETTINGS} in it, which says what kind of model it is",
            hint="save it with Marian (its files since version 1.0 have it), or give model.npz, not its optimizer or average of an older version",
        )
    return NpzModel(arrays, settings_in(settings, path))


def _array(content: bytes, path: Path, name: str) -> NDArray[Any]:
    try:
        found = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError, SyntaxError, TypeError, MemoryError) as error:
        problem = str(error).split("\n")[0]
        raise damaged(path, f"{name} is not an array of numbers: {problem}") from error
    if name == SETTINGS:
        return found
    if found.dtype.kind != "f":
        raise DataError(
            f"{path}: {name} holds numbers of the type {found.dtype}, not float32",
            hint="models that are packed for FBGEMM cannot be imported: take the model.npz that they were made from",
        )
    found = found.astype(np.float32)
    if not np.isfinite(found).all():
        raise DataError(f"{path}: {name} holds NaN or infinity", hint="train it again")
    return found


def settings_in(array: NDArray[Any], path: Path) -> dict[str, Any]:
    """The settings of a model, of the array `special:model.yml`; DataError if it holds something else."""
    origin = f"{path}, {SETTINGS}"
    if array.dtype.itemsize != 1 or array.ndim != 1:
        raise damaged(path, f"{SETTINGS} is not a text")
    try:
        text = array.tobytes().split(b"\0")[0].decode("utf-8")
    except UnicodeDecodeError as error:
        raise damaged(path, f"{SETTINGS} is not UTF-8 text") from error
    found = parse_yaml(text, origin)
    if not isinstance(found, dict):
        raise DataError(f"{origin}: not a mapping of settings")
    return found


def damaged(path: Path, problem: str) -> DataError:
    """The error about a file that was not copied as a whole."""
    return DataError(f"{path}: {problem}", hint=_AGAIN)


def checked_arrays(found: Arrays, config: ModelConfig, vocab_sizes: tuple[int, int], path: Path) -> Arrays:
    """The arrays of a model, after their names and shapes were compared with those of its settings.

    Raises:
        DataError: an array is missing, has another shape, or belongs to no part.
    """
    wanted = {part.theirs: shape_of(part, config, vocab_sizes) for part in marian_parts(config)}
    optional = {part.theirs for part in marian_parts(config) if part.is_absent}
    for name, shape in wanted.items():
        if name not in found and name not in optional:
            raise DataError(
                f"{path}: there is no tensor {name}, of the shape {list(shape)}, which its settings ask for",
                hint="copy the file again, or save the model again with Marian",
            )
        if name in found and found[name].shape != shape:
            raise DataError(
                f"{path}: tensor {name} has the shape {list(found[name].shape)}; its settings and vocabularies ask for {list(shape)}",
                hint="model and vocabularies must be of one training: copy all files of the model again",
            )
    if surplus := sorted(found.keys() - wanted.keys()):
        more = f" and {len(surplus) - 1} more" if len(surplus) > 1 else ""
        raise DataError(
            f"{path}: tensor {surplus[0]}{more} belongs to no part of a model with these settings",
            hint="docs/marian.md lists what can be imported",
        )
    return found


# Vocabularies in YAML: one entry a line, with its id.


def read_yaml_vocabulary(content: bytes, origin: str) -> dict[str, int]:
    """The ids of the entries in a vocabulary file of Marian, YAML or JSON.

    Raises:
        DataError: it is no such file.
    """
    loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # all values are text
    try:
        found = loader(content).get_single_data()
        vocabulary = {str(entry): int(index) for entry, index in found.items()}
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, RecursionError) as error:
        problem = str(error).split("\n")[0]
        raise DataError(f"{origin}: not a vocabulary (entry: id on each line): {problem}") from error
    for entry in (EOS, UNK):
        if entry not in vocabulary:
            raise DataError(f"{origin}: there is no entry {entry}, which each vocabulary of Marian has")
    return vocabulary
