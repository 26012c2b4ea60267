"""The ONNX files of a model: the encoder, and one decoder with a cache; named as the Optimum library names them."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from transformer_cli.config import ModelConfig
from transformer_cli.extensions.exchange.interchange.onnx.graph_modules import (
    DecoderGraph,
    EncoderGraph,
    cache_names,
)
from transformer_cli.extensions.exchange.interchange.position_tables import (
    MIN_POSITIONS,
    num_positions,
)
from transformer_cli.model import Transformer

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
    _write(encoder, folder / f"{ENCODER}.onnx", *_encoder_inputs(), ["last_hidden_state"])
    layers = model.config.decoder_layers
    outputs = ["logits", *cache_names(layers, "present")]
    decoder = DecoderGraph(model, length).eval()
    _write(decoder, folder / f"{DECODER}.onnx", *_decoder_inputs(model.config), outputs)


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
    of_target, of_source = (
        torch.zeros(_SENTENCES, config.kv_heads, length, config.head_width)
        for length in (_PAST_TARGET, _PAST_SOURCE)
    )
    past = [one.clone() for _ in range(config.decoder_layers) for one in (of_target, of_target, of_source, of_source)]  # fmt: skip
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


def _write(
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
