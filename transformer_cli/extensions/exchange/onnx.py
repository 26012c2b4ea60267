"""The export format `onnx`: a folder for onnxruntime, and for transformers.js in browsers and Node.js.

The encoder is one graph. The decoder is one graph for the first step and for all others: it computes the keys and values
of those source positions that its cache does not hold yet, all of them in the first step and none later. So it has no
branch. Files and tensors have the names of the Optimum library.
"""

import json
import logging
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer as HuggingFaceTokenizer
from torch import Tensor, nn

from transformer_cli.checkpoint.trained_files import TrainedModel
from transformer_cli.config import Config, ModelConfig
from transformer_cli.extensions.exchange.export_format import (
    Decoded,
    ExportFormat,
    Obstacle,
    OtherEngine,
    Quantization,
    add_to_folder,
    json_content,
    quoted,
)
from transformer_cli.extensions.exchange.hugging_face import generation_config
from transformer_cli.extensions.exchange.hugging_face_models import TableForm
from transformer_cli.extensions.exchange.position_tables import (
    MIN_POSITIONS,
    num_positions,
    position_table,
)
from transformer_cli.extensions.exchange.tokenizer_json import (
    tokenizer_config,
    tokenizer_json,
    tokenizer_obstacles,
)
from transformer_cli.model import Transformer
from transformer_cli.model.layers import DecoderLayer, KeysValues, Rotation, rotation_at
from transformer_cli.process.errors import DataError, MissingInputError
from transformer_cli.process.imports import require_extra
from transformer_cli.text import Tokenizer

GRAPHS = "onnx"
"""The folder of the graphs in an exported folder, where transformers.js looks for them."""


class OnnxFormat(ExportFormat):
    """A folder of graphs."""

    name = "onnx"
    modules = ("onnx", "onnxscript", "onnxruntime")
    quantizations = ("int8",)
    library = "transformers.js"
    is_greedy = True

    def obstacles(self, config: Config) -> list[Obstacle]:
        found = tokenizer_obstacles(config)
        if config.model.decoder_layer != "attention":
            reason = "transformers.js caches the keys and values of self-attention"
            found.append(Obstacle(f"model.decoder_layer: {config.model.decoder_layer}", reason))
        return found

    def write(self, trained: TrainedModel, path: Path, *, quantization: Quantization | None) -> None:
        graphs = path / GRAPHS
        graphs.mkdir()
        offset = _source_offset(trained)
        if quantization is None:
            write_graphs(trained.model, graphs, source_offset=offset)
        else:
            with TemporaryDirectory(prefix="tfm-") as plain:
                write_graphs(trained.model, Path(plain), source_offset=offset)
                quantize_graphs(Path(plain), graphs)
        add_to_folder(path, {name: json_content(content) for name, content in _settings(trained).items()})

    def open(self, path: Path) -> OtherEngine:
        return OnnxFolder(path)

    def stored_tensors(self, path: Path) -> dict[str, Tensor] | None:
        return read_graph_tensors(path / GRAPHS)

    def usage(self, trained: TrainedModel, name: str) -> str:
        tags = trained.source_tokenizer.special_tokens[4:]
        folder = PurePath(name)
        return f"""\
In a web page or in Node.js, with transformers.js (greedy search):

```js
import {{ env, pipeline }} from "@huggingface/transformers"; // npm install @huggingface/transformers

env.localModelPath = {quoted(f"{folder.parent.as_posix()}/")}; // the folder in which the exported one lies
const translate = await pipeline("translation", {quoted(folder.name)}, {{ dtype: "fp32" }}); // "q8" after --quantize int8
console.log(await translate("{tags[0] if tags else ""}Good morning."));
```

With onnxruntime, any language can run both graphs: `encoder_model` once, then `decoder_model_merged` for each token; the
first step gets a cache of length 0. The names of inputs and outputs are those of the Optimum library.
"""


def _source_offset(trained: TrainedModel) -> int:
    """The id of the first source token in the tokenizer of the folder."""
    source, target = trained.tokenizers
    return 0 if source.entries == target.entries else target.vocab_size


def _settings(trained: TrainedModel) -> dict[str, dict[str, Any]]:
    """The JSON files, by name."""
    config, source, target = trained.config, trained.source_tokenizer, trained.target_tokenizer
    form = TableForm.JOINED if _source_offset(trained) else TableForm.ONE
    search_settings = generation_config(config.model, config.decoding, target)
    longest = num_positions(config.model)
    return {
        "config.json": _model_config(trained, longest),
        # transformers.js has greedy search only.
        "generation_config.json": {**search_settings, "num_beams": 1, "max_length": longest},
        "tokenizer.json": tokenizer_json(source, target, form, config.data.cleaning),
        "tokenizer_config.json": tokenizer_config(source, config.model.max_length),
    }


def _model_config(trained: TrainedModel, longest: int) -> dict[str, Any]:
    """What transformers.js must know. It computes the shape of an empty cache from the width and the number of heads.

    So both are those of keys and values, which differ from those of the model with `model.num_kv_heads` or
    `model.head_dim`. The layers themselves are in the graphs.
    """
    model, target = trained.config.model, trained.target_tokenizer
    sides = {
        f"{side}_{name}": value
        for side, num_layers in (
            ("encoder", model.encoder_layers),
            ("decoder", model.decoder_layers),
        )
        for name, value in (("layers", num_layers), ("attention_heads", model.kv_heads))
    }
    return {
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "is_encoder_decoder": True,
        "use_cache": True,
        "d_model": model.kv_heads * model.head_width,
        **sides,
        "num_hidden_layers": model.encoder_layers,
        "vocab_size": _source_offset(trained) + trained.source_tokenizer.vocab_size,
        "decoder_vocab_size": target.vocab_size,
        "max_position_embeddings": longest,
        "pad_token_id": target.pad_id,
        "bos_token_id": target.sos_id,
        "eos_token_id": target.eos_id,
        "decoder_start_token_id": target.sos_id,
    }


ENCODER, DECODER = "encoder_model", "decoder_model_merged"
OPSET = 20
BATCH = "batch_size"
"""The name of the number of sentences; transformers.js makes an empty cache for the dimension of this name."""
QUANTIZED = "_quantized"
"""The end of the name of a file with int8 weights, as transformers.js expects it for the dtype q8."""


def write_graphs(model: Transformer, folder: Path, *, source_offset: int = 0) -> None:
    """Write the graphs of the encoder and of the decoder, in float32.

    Args:
        model: in eval mode, on the CPU, in float32.
        folder: an existing folder.
        source_offset: the id of the first source token in the tokenizer of the exported folder.
    """
    length = max(MIN_POSITIONS, num_positions(model.config))
    encoder = EncoderGraph(model, length, source_offset=source_offset).eval()
    _write_graph(encoder, folder / f"{ENCODER}.onnx", *_encoder_inputs(), ["last_hidden_state"])
    layers = model.config.decoder_layers
    outputs = ["logits", *cache_names(layers, "present")]
    decoder = DecoderGraph(model, length).eval()
    _write_graph(decoder, folder / f"{DECODER}.onnx", *_decoder_inputs(model.config), outputs)


def quantize_graphs(plain: Path, folder: Path) -> None:
    """Write the graphs of a folder with int8 weights; names end in `QUANTIZED`."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    for name in (ENCODER, DECODER):
        with _quiet():
            quantize_dynamic(
                plain / f"{name}.onnx",
                folder / f"{name}{QUANTIZED}.onnx",
                weight_type=QuantType.QInt8,
                per_channel=True,
                extra_options={"MatMulConstBOnly": True},
            )


Inputs = tuple[tuple[Tensor, ...], list[str], dict[str, Any]]
"""Examples, their names, and their dimensions that are not fixed."""

# The sizes of the examples. None is 0 or 1, which the tracer takes for constants, and no two are equal.
_SENTENCES, _SOURCE, _TARGET, _PAST_TARGET, _PAST_SOURCE = 2, 7, 3, 5, 4


def _encoder_inputs() -> Inputs:
    from torch.export import Dim

    ids = torch.ones(_SENTENCES, _SOURCE, dtype=torch.int64)
    sizes = {0: Dim(BATCH), 1: Dim("source_length")}
    names = ["input_ids", "attention_mask"]
    return (ids, ids.clone()), names, dict.fromkeys(names, sizes)


def _decoder_inputs(config: ModelConfig) -> Inputs:
    from torch.export import Dim

    batch, source = Dim(BATCH), Dim("source_length")
    past_target = Dim("past_target_length", min=0)
    past_source = Dim("past_source_length", min=0)
    mask = torch.ones(_SENTENCES, _SOURCE, dtype=torch.int64)
    ids = torch.ones(_SENTENCES, _TARGET, dtype=torch.int64)
    memory = torch.zeros(_SENTENCES, _SOURCE, config.d_model)
    target_cache, source_cache = (
        torch.zeros(_SENTENCES, config.kv_heads, length, config.head_width) for length in (_PAST_TARGET, _PAST_SOURCE)
    )
    past = [
        one.clone()
        for _ in range(config.decoder_layers)
        for one in (target_cache, target_cache, source_cache, source_cache)
    ]
    names = ["encoder_attention_mask", "input_ids", "encoder_hidden_states"]
    sizes: dict[str, Any] = {
        names[0]: {0: batch, 1: source},
        names[1]: {0: batch, 1: Dim("target_length")},
        names[2]: {0: batch, 1: source},
        "past": tuple(
            {0: batch, 2: length}
            for _ in range(config.decoder_layers)
            for length in (past_target, past_target, past_source, past_source)
        ),
    }
    names += cache_names(config.decoder_layers, "past_key_values")
    return (mask, ids, memory, *past), names, sizes


def _write_graph(
    module: nn.Module,
    path: Path,
    examples: Sequence[Tensor],
    names: list[str],
    sizes: dict[str, Any],
    outputs: list[str],
) -> None:
    with _quiet(), torch.no_grad():
        program = torch.onnx.export(
            module,
            tuple(examples),
            dynamo=True,
            dynamic_shapes=sizes,
            input_names=names,
            output_names=outputs,
            opset_version=OPSET,
            verbose=False,
        )
        assert program is not None
        program.save(str(path), external_data=False)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the notes of libraries about their own progress."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir", "root")]
    levels = [one.level for one in loggers]
    try:
        for one in loggers:
            one.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for one, level in zip(loggers, levels, strict=True):
            one.setLevel(level)


class PositionTables(nn.Module):
    """What the model knows about positions, as tables: `functools` caches and lengths cannot be traced."""

    def __init__(self, config: ModelConfig, positions: nn.Module, num_positions: int) -> None:
        super().__init__()
        self.is_rotary = config.positions == "rotary"
        like = torch.zeros(1, num_positions, config.d_model)
        with torch.no_grad():
            added = position_table(config, positions, num_positions)
            sines, cosines = rotation_at(0, num_positions, config.head_width, like)
        self.register_buffer("added", added.clone())
        self.register_buffer("sines", sines.clone() if self.is_rotary else None)
        self.register_buffer("cosines", cosines.clone() if self.is_rotary else None)

    def forward(self, x: Tensor, start: int) -> tuple[Tensor, Rotation | None]:
        """(B, T, D) with the positions from number `start` on, and their rotation."""
        end = start + x.size(1)
        if not self.is_rotary:
            return x + cast(Tensor, self.added)[start:end], None
        sines, cosines = cast(Tensor, self.sines), cast(Tensor, self.cosines)
        return x, Rotation(sines[start:end], cosines[start:end])


class EncoderGraph(nn.Module):
    """Source ids and their mask to the output of the encoder."""

    def __init__(self, model: Transformer, num_positions: int, *, source_offset: int) -> None:
        """Take over the encoder.

        Args:
            model: in eval mode, on the CPU, in float32.
            num_positions: the length of the longest source.
            source_offset: the id of the first source token in the tokenizer of the exported folder.
        """
        super().__init__()
        self.table = (model.source_embedding or model.output).weight
        self.scale = _scale(model.config)
        self.positions = PositionTables(model.config, model.source_positions, num_positions)
        self.embedding_norm = model.source_embedding_norm
        self.encoder = model.encoder
        self.source_offset = source_offset

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(B, S) and (B, S), both int64, to (B, S, D)."""
        source_ids = input_ids - self.source_offset
        # Ids below those of the source are padding, which the mask hides; ids above them are pieces of SentencePiece
        # without an entry.
        is_listed = (source_ids >= 0) & (source_ids < self.table.size(0))
        source_ids = source_ids.where(is_listed, Tokenizer.unk_id)
        x = nn.functional.embedding(source_ids, self.table) * self.scale
        x, rotation = self.positions(x, 0)
        output: Tensor = self.encoder(self.embedding_norm(x), _visible(attention_mask), rotation)
        return output


class DecoderGraph(nn.Module):
    """New target ids, the output of the encoder and a cache to logits and the longer cache."""

    def __init__(self, model: Transformer, num_positions: int) -> None:
        super().__init__()
        self.table = (model.target_embedding or model.output).weight
        self.scale = _scale(model.config)
        self.positions = PositionTables(model.config, model.target_positions, num_positions)
        self.embedding_norm = model.target_embedding_norm
        self.layers = model.decoder.layers
        self.norm = model.decoder.norm
        self.output = model.output

    def forward(
        self,
        encoder_attention_mask: Tensor,
        input_ids: Tensor,
        encoder_hidden_states: Tensor,
        *past: Tensor,
    ) -> list[Tensor]:
        """Logits (B, T, V), then the cache as `past` has it.

        Args:
            encoder_attention_mask: (B, S) int64.
            input_ids: (B, T) int64, the tokens after those of the cache.
            encoder_hidden_states: (B, S, D).
            past: for each layer four tensors (B, G, P, K): keys and values of the target, P = tokens so far; keys
                and values of the source, P = 0 in the first step, later S.
        """
        num_past = past[0].size(2)
        x = nn.functional.embedding(input_ids, self.table) * self.scale
        x, rotation = self.positions(x, num_past)
        x = self.embedding_norm(x)
        target_mask = _causal(num_past, x.size(1), x.device)
        source_mask = _visible(encoder_attention_mask)
        new_rows = encoder_hidden_states[:, past[2].size(2) :]
        present: list[Tensor] = []
        for number, layer in enumerate(cast("Sequence[DecoderLayer]", self.layers)):
            cache = past[4 * number : 4 * number + 4]
            x, extended = _advance(layer, x, new_rows, cache, (target_mask, source_mask), rotation)
            present += extended
        return [self.output(self.norm(x)), *present]


def cache_names(num_layers: int, prefix: str) -> list[str]:
    """The names of the tensors of a cache, in the order of `DecoderGraph`; as in the Optimum library.

    Args:
        num_layers: of the decoder.
        prefix: past_key_values for inputs, present for outputs.
    """
    kinds = [f"{side}.{what}" for side in ("decoder", "encoder") for what in ("key", "value")]
    return [f"{prefix}.{layer}.{kind}" for layer in range(num_layers) for kind in kinds]


def _advance(
    layer: DecoderLayer,
    x: Tensor,
    new_rows: Tensor,
    cache: Sequence[Tensor],
    masks: tuple[Tensor, Tensor],
    rotation: Rotation | None,
) -> tuple[Tensor, list[Tensor]]:
    """One layer: (B, T, D) to the same shape, and its longer cache."""
    present: list[Tensor] = []

    def extended(newest: KeysValues, before: Sequence[Tensor]) -> KeysValues:
        keys, values = (torch.cat(pair, dim=2) for pair in zip(before, newest, strict=True))
        present.extend([keys, values])
        return keys, values

    def attend_to_target(x: Tensor) -> Tensor:
        attention = layer.self_attention
        assert attention is not None, "`OnnxFormat.obstacles` lets no other layer through"
        keys_values = extended(attention.keys_and_values(x, rotation), cache[:2])
        return attention(x, keys_values, masks[0], rotation)

    def attend_to_source(x: Tensor) -> Tensor:
        attention = layer.cross_attention
        keys_values = extended(attention.keys_and_values(new_rows), cache[2:])
        return attention(x, keys_values, masks[1])

    assert layer.self_attention_norm is not None
    x = layer.residual(x, attend_to_target, layer.self_attention_norm, layer.dropout)
    x = layer.residual(x, attend_to_source, layer.cross_attention_norm, layer.dropout)
    x = layer.residual(x, layer.feed_forward, layer.feed_forward_norm, layer.dropout)
    return x, present


def _visible(attention_mask: Tensor) -> Tensor:
    """(B, S) int64, 1 where there is a token."""
    return attention_mask.bool()[:, None, None, :]


def _causal(num_past: int, num_new: int, device: torch.device) -> Tensor:
    """Each new position reads the earlier ones and itself."""
    context = torch.arange(num_past + num_new, device=device)
    return context[None, :] <= context[num_past:, None]


def _scale(config: ModelConfig) -> float:
    return math.sqrt(config.d_model) if config.scale_embeddings else 1.0


def read_graph_tensors(folder: Path) -> dict[str, Tensor]:
    """The constants of the graphs in float32, as `name of the file:name of the tensor`.

    Args:
        folder: with the files that `write_graphs` has written.

    Raises:
        MissingInputError: a file is missing.
        DataError: a file is no ONNX file.
        UsageError: the package onnx is missing.
    """
    require_extra("export", ("onnx",), purpose="reading ONNX files")
    import onnx
    from google.protobuf.message import DecodeError

    tensors = {}
    for graph in (ENCODER, DECODER):
        path = folder / f"{graph}.onnx"
        try:
            # Tensors in other files would be read from any path that the file names.
            model = onnx.load(path, load_external_data=False)
        except FileNotFoundError:
            raise MissingInputError(f"{path}: no such file", hint="copy the whole folder") from None
        except DecodeError as error:
            raise DataError(f"{path}: not an ONNX file", hint="copy the file again") from error
        for one in model.graph.initializer:
            is_here = one.data_location != onnx.TensorProto.EXTERNAL
            if is_here and one.data_type == onnx.TensorProto.FLOAT:
                values: np.ndarray = onnx.numpy_helper.to_array(one)
                tensors[f"{graph}:{one.name}"] = torch.from_numpy(values.copy())
    return tensors


BATCH_SENTENCES = 25
Ids = NDArray[np.int64]


class OnnxFolder:
    """An `OtherEngine`: what a program reads from an exported folder, and nothing else."""

    def __init__(self, folder: Path) -> None:
        import onnxruntime

        self._tokenizer: Any = HuggingFaceTokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.encode_special_tokens = True
        self._config, self._search = (
            json.loads((folder / name).read_text(encoding="utf-8"))
            for name in ("config.json", "generation_config.json")
        )
        self._encoder: Any = _session(folder / GRAPHS, ENCODER)
        self._decoder: Any = _session(folder / GRAPHS, DECODER)
        self._name = f"onnxruntime {onnxruntime.__version__}"
        [first_end] = self._tokenizer.encode("").ids
        self._source_offset = first_end - self._config["eos_token_id"]

    def describe(self) -> str:
        return self._name

    def decode(self, sources: Sequence[str], limits: Sequence[int]) -> list[Decoded]:
        encoded = [tuple(one.ids) for one in self._tokenizer.encode_batch(list(sources))]
        order = sorted(range(len(encoded)), key=lambda index: len(encoded[index]))
        found: dict[int, Decoded] = {}
        for begin in range(0, len(order), BATCH_SENTENCES):
            batch = order[begin : begin + BATCH_SENTENCES]
            written = self._translated([encoded[index] for index in batch], max(limits[index] for index in batch))
            for index, ids in zip(batch, written, strict=True):
                ids = ids[: limits[index]]
                text = self._tokenizer.decode(ids, skip_special_tokens=True)
                source_ids = tuple(map(self._source_id, encoded[index]))
                found[index] = Decoded(source_ids, tuple(ids), text)
        return [found[index] for index in range(len(encoded))]

    def _source_id(self, index: int) -> int:
        """Our id; pieces of SentencePiece without an entry follow the vocabulary."""
        is_listed = index < self._config["vocab_size"]
        return index - self._source_offset if is_listed else Tokenizer.unk_id

    def _translated(self, sources: Sequence[Sequence[int]], limit: int) -> list[list[int]]:
        """Greedy translations of a batch, each with its [EOS]."""
        config, longest = self._config, max(map(len, sources))
        input_ids = np.full((len(sources), longest), config["pad_token_id"], np.int64)
        mask = np.zeros_like(input_ids)
        for row, ids in enumerate(sources):
            input_ids[row, : len(ids)], mask[row, : len(ids)] = ids, 1
        [hidden] = self._encoder.run(None, {"input_ids": input_ids, "attention_mask": mask})
        source_inputs = {"encoder_attention_mask": mask, "encoder_hidden_states": hidden}
        last = np.full((len(sources), 1), config["decoder_start_token_id"], np.int64)
        cache = self._empty_cache(len(sources))
        banned = [index for [index] in self._search["bad_words_ids"]]
        written: list[Ids] = []
        is_finished = np.zeros(len(sources), bool)
        while len(written) < limit and not is_finished.all():
            logits, *present = self._decoder.run(None, {**source_inputs, "input_ids": last, **cache})
            logits[:, -1, banned] = -np.inf
            best = logits[:, -1].argmax(-1)
            written.append(best)
            is_finished |= best == config["eos_token_id"]
            last, cache = best[:, None], dict(zip(cache, present, strict=True))
        rows = np.stack(written, axis=1).tolist()
        end = config["eos_token_id"]
        return [ids[: ids.index(end) + 1] if end in ids else ids for ids in rows]

    def _empty_cache(self, num_rows: int) -> dict[str, NDArray[np.float32]]:
        """The cache of the first step, as transformers.js computes its shape."""
        heads = self._config["decoder_attention_heads"]
        empty = np.zeros((num_rows, heads, 0, self._config["d_model"] // heads), np.float32)
        names = cache_names(self._config["decoder_layers"], "past_key_values")
        return dict.fromkeys(names, empty)


def _session(folder: Path, name: str) -> Any:
    import onnxruntime

    plain = folder / f"{name}.onnx"
    path = plain if plain.is_file() else folder / f"{name}{QUANTIZED}.onnx"
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
