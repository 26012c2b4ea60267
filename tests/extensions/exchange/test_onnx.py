"""`--to onnx`: onnxruntime and transformers.js translate as the run does, whatever layers the model has."""

import json
import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from transformer_cli.checkpoint.trained_files import TrainedModel
from transformer_cli.config import TokenizerConfig
from transformer_cli.extensions.exchange.export import export_run
from transformer_cli.extensions.exchange.onnx import OnnxFormat

from .small_runs import ENGLISH, random_run
from .test_import_folder import assert_same, back

pytestmark = pytest.mark.skipif(find_spec("onnxscript") is None, reason="needs onnxscript")

RUNS: dict[str, dict[str, Any]] = {
    "two vocabularies": {"decoder_layers": 1},
    "SentencePiece, one table": {
        "tokenizer": TokenizerConfig(kind="sentencepiece", shared=True),
        "tie_embeddings": "all",
        "decoder_layers": 1,
    },
    "grouped heads, rotary": {
        "num_kv_heads": 1,
        "qk_norm": True,
        "positions": "rotary",
        "activation": "swiglu",
        "norm": "rmsnorm",
        "both_directions": True,
        "tokenizer": TokenizerConfig(kind="unigram", vocab_size=340),
    },
    "norms of embeddings": {"norm_placement": "post", "embedding_norm": True, "decoder_layers": 1},
    "residual of normed, wide heads": {
        "norm_placement": "residual_of_normed",
        "norm": "std_layernorm",
        "head_dim": 12,
        "positions": "learned",
        "tokenizer": TokenizerConfig(kind="bpe", vocab_size=340),
    },
}
SCRIPT = """
import { env, pipeline } from "@huggingface/transformers";
env.allowRemoteModels = false;
const [folder, name, dtype, ...texts] = process.argv.slice(2);
env.localModelPath = folder;
const translate = await pipeline("translation", name, { dtype });
const found = [];
for (const text of texts) found.push((await translate(text, { max_new_tokens: 40 }))[0].translation_text);
const together = (await translate(texts, { max_new_tokens: 40 })).map((one) => one.translation_text);
await translate(texts[0]); // up to the default limit of transformers.js, which may be above ours
console.log(JSON.stringify([found, together]));
"""


def exported(folder: Path, changes: dict[str, Any]) -> tuple[TrainedModel, Path]:
    trained = random_run(folder / "run", **changes)
    result = export_run(trained, OnnxFormat(), folder / "out", lines=ENGLISH)
    [agreement] = result.agreements
    assert agreement.num_texts >= len(ENGLISH)
    assert agreement.num_tokens > 50
    return trained, folder / "out"


@pytest.mark.heavy
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if number else pytest.mark.long) for number, name in enumerate(RUNS)],
)
def test_onnxruntime_translates_as_the_run_does_and_the_run_comes_back_bit_for_bit(name: str, tmp_path: Path) -> None:
    """PyTorch takes seconds to trace a model, so one model alone is for every day."""
    trained, folder = exported(tmp_path, RUNS[name])
    found, compared = back(folder, tmp_path)
    assert_same(found, trained)
    assert compared == ["the weights are those of the exported run (their SHA-256 is equal)"]


@pytest.fixture(scope="module")
def node_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which Node.js finds transformers.js: that of TFM_NODE_PROJECT, or a new one."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    if given := os.environ.get("TFM_NODE_PROJECT"):
        return Path(given)
    folder = tmp_path_factory.mktemp("node")
    command = ["npm", "install", "--ignore-scripts", "@huggingface/transformers@4"]
    installed = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    if installed.returncode:
        pytest.skip("npm cannot install @huggingface/transformers here")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("changes", RUNS.values(), ids=RUNS)
def test_transformers_js_translates_as_the_run_does(
    changes: dict[str, Any], tmp_path: Path, node_project: Path
) -> None:
    _, out = exported(tmp_path, changes)
    (node_project / "translate.mjs").write_text(SCRIPT)
    tag = "<2it>" if changes.get("both_directions") else ""
    texts = [tag + text for text in ENGLISH]
    command = ["node", "translate.mjs", f"{tmp_path}/", "out", "fp32", *texts]
    finished = subprocess.run(command, cwd=node_project, capture_output=True, check=True)
    alone, together = json.loads(finished.stdout)
    engine = OnnxFormat().open(out)
    expected = [one.text for one in engine.decode(texts, [40] * len(texts))]
    assert alone == expected
    assert together == expected
