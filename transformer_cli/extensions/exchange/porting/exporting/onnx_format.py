"""The export format `onnx`: a folder for onnxruntime, and for transformers.js in browsers and Node.js."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from transformer_cli.config import Config
from transformer_cli.extensions.exchange.porting.exporting.export_format import (
    Obstacle,
    OtherEngine,
    Quantization,
    add_to_folder,
)

if TYPE_CHECKING:  # the import of PyTorch takes seconds
    from torch import Tensor

    from transformer_cli.checkpoint import TrainedModel

GRAPHS = "onnx"
"""The folder of the graphs in an exported folder, where transformers.js looks for them."""


@dataclass(frozen=True, slots=True)
class OnnxFormat:
    """See `ExportFormat`. Every model can be exported."""

    name: str = "onnx"
    modules: tuple[str, ...] = ("onnx", "onnxscript", "onnxruntime")
    suffix: str = ""
    quantizations: tuple[Quantization, ...] = ("int8",)
    library: str = "transformers.js"

    def obstacles(self, config: Config) -> list[Obstacle]:
        return []

    def write(
        self, trained: "TrainedModel", path: Path, *, quantization: Quantization | None
    ) -> None:
        from transformer_cli.extensions.exchange.interchange.onnx.onnx_files import (
            quantize_graphs,
            write_graphs,
        )

        graphs = path / GRAPHS
        graphs.mkdir()
        offset = _source_offset(trained)
        if quantization is None:
            write_graphs(trained.model, graphs, source_offset=offset)
        else:
            with TemporaryDirectory(prefix="tfm-") as plain:
                write_graphs(trained.model, Path(plain), source_offset=offset)
                quantize_graphs(Path(plain), graphs)
        add_to_folder(path, {name: _json(content) for name, content in _settings(trained).items()})

    def open(self, path: Path) -> OtherEngine:
        from transformer_cli.extensions.exchange.porting.exporting.onnx_engine import OnnxFolder

        return OnnxFolder(path)

    def add_files(self, path: Path, files: Mapping[str, bytes]) -> None:
        add_to_folder(path, files)

    def stored_tensors(self, path: Path) -> "dict[str, Tensor] | None":
        from transformer_cli.extensions.exchange.interchange.onnx.graph_tensors import (
            read_graph_tensors,
        )

        return read_graph_tensors(path / GRAPHS)

    def usage(self, trained: "TrainedModel", name: str) -> str:
        tags = trained.source_tokenizer.special_tokens[4:]
        return f"""\
In a web page or in Node.js, with transformers.js (greedy search):

```js
import {{ env, pipeline }} from "@huggingface/transformers"; // npm install @huggingface/transformers

env.localModelPath = "./"; // the folder in which {name} lies
const translate = await pipeline("translation", "{name}", {{ dtype: "fp32" }}); // "q8" after --quantize int8
console.log(await translate("{tags[0] if tags else ""}Good morning."));
```

With onnxruntime, any language can run both graphs: `encoder_model` once, then `decoder_model_merged` for each token; the
first step gets a cache of length 0. The names of inputs and outputs are those of the Optimum library.
"""


def _source_offset(trained: "TrainedModel") -> int:
    """The id of the first source token in the tokenizer of the folder."""
    source, target = trained.source_tokenizer, trained.target_tokenizer
    return 0 if source.entries == target.entries else target.vocab_size


def _settings(trained: "TrainedModel") -> dict[str, dict[str, Any]]:
    """The JSON files, by name."""
    from transformer_cli.extensions.exchange.interchange.hugging_face.embedding_tables import (
        TableForm,
    )
    from transformer_cli.extensions.exchange.interchange.hugging_face.generation_settings import (
        generation_config,
    )
    from transformer_cli.extensions.exchange.interchange.hugging_face.tokenizer_json import (
        tokenizer_config,
        tokenizer_json,
    )
    from transformer_cli.extensions.exchange.interchange.position_tables import num_positions

    config, target = trained.config, trained.target_tokenizer
    tokenizers = trained.source_tokenizer, target
    form = TableForm.JOINED if _source_offset(trained) else TableForm.ONE
    of_search = generation_config(config.model, config.decoding, target)
    longest = num_positions(config.model)
    return {
        "config.json": _model_config(trained, longest),
        # transformers.js has greedy search only.
        "generation_config.json": {**of_search, "num_beams": 1, "max_length": longest},
        "tokenizer.json": tokenizer_json(*tokenizers, form, config.data.cleaning),
        "tokenizer_config.json": tokenizer_config(tokenizers[0], config.model.max_length),
    }


def _model_config(trained: "TrainedModel", longest: int) -> dict[str, Any]:
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


def _json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False, indent=1).encode() + b"\n"
