"""The check of ONNX folders: onnxruntime and `tokenizers`, with the greedy search of transformers.js."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer_cli.extensions.exchange.interchange.onnx.graph_modules import cache_names
from transformer_cli.extensions.exchange.interchange.onnx.onnx_files import (
    DECODER,
    ENCODER,
    QUANTIZED,
)
from transformer_cli.extensions.exchange.porting.exporting.export_format import Decoded
from transformer_cli.text import Tokenizer

BATCH_SENTENCES = 25
Ids = NDArray[np.int64]


class OnnxFolder:
    """An `OtherEngine`: what a program reads from an exported folder, and nothing else."""

    def __init__(self, folder: Path) -> None:
        import onnxruntime
        from tokenizers import Tokenizer as HuggingFaceTokenizer

        self._tokenizer: Any = HuggingFaceTokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.encode_special_tokens = True
        self._config, self._search = (
            json.loads((folder / name).read_text(encoding="utf-8"))
            for name in ("config.json", "generation_config.json")
        )
        self._encoder: Any = _session(folder / "onnx", ENCODER)
        self._decoder: Any = _session(folder / "onnx", DECODER)
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
            written = self._translated(
                [encoded[index] for index in batch], max(limits[index] for index in batch)
            )
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
        of_source = {"encoder_attention_mask": mask, "encoder_hidden_states": hidden}
        last = np.full((len(sources), 1), config["decoder_start_token_id"], np.int64)
        cache = self._empty_cache(len(sources))
        banned = [index for [index] in self._search["bad_words_ids"]]
        written: list[Ids] = []
        is_finished = np.zeros(len(sources), bool)
        while len(written) < limit and not is_finished.all():
            logits, *present = self._decoder.run(None, {**of_source, "input_ids": last, **cache})
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
