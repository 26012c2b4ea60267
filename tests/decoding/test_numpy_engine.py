"""The engine in NumPy finds what the PyTorch engine finds, and leaves to it whatever is not plain search for few sentences."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from transformer_cli.checkpoint.trained_files import TrainedFiles, read_files
from transformer_cli.config import Config, DecodingConfig, ModelConfig
from transformer_cli.decoding.engine import Hypothesis, Request, SpecialIds, Term
from transformer_cli.decoding.loading import load_translator
from transformer_cli.decoding.numpy_engine import MAX_TOKENS, NumpyEngine, load_numpy_engine
from transformer_cli.decoding.pytorch_engine import PyTorchEngine
from transformer_cli.model.transformer import Transformer
from transformer_cli.process.device import Machine
from transformer_cli.text import SequenceFormat
from transformer_cli.text.token_ids import BytePieces

RUN = Path(__file__).parents[2] / "docs/run"
TEXTS = ["Where is the station?", "Good morning.", "My sister doesn't like caffè, but tea!", "Ω"]
SEARCHES: list[dict[str, Any]] = [
    {},
    {"beam_size": 1},
    {"beam_size": 8, "num_best": 5},
    {"length_normalization": "average", "length_penalty": 1.0, "min_length": 9},
    {"max_length": 3, "num_best": 4},
    {"allow_unknown": False, "max_length_ratio": 0.7, "min_length_ratio": 0.5},
]


def nobody() -> Any:
    raise AssertionError("PyTorch is asked")


@pytest.fixture(scope="module")
def files() -> TrainedFiles:
    [checkpoint] = (RUN / "checkpoints").iterdir()
    return read_files(checkpoint)


@pytest.fixture(scope="module")
def pytorch() -> Any:
    return load_translator(RUN).engine


def require_equal(found: list[list[Hypothesis]], expected: list[list[Hypothesis]]) -> None:
    assert [[one.ids for one in each] for each in found] == [
        [one.ids for one in each] for each in expected
    ]
    of = [np.array([one.score for each in both for one in each]) for both in (found, expected)]
    np.testing.assert_allclose(*of, atol=1e-4)


@pytest.mark.parametrize("settings", SEARCHES)
def test_it_finds_the_translations_and_scores_of_pytorch(
    files: TrainedFiles, pytorch: Any, settings: dict[str, Any]
) -> None:
    engine = load_numpy_engine(files, files.config, nobody)
    assert engine is not None
    options = DecodingConfig(**settings)
    requests = [Request((*files.source_tokenizer.encode(text),)) for text in TEXTS]
    require_equal(engine.translate(requests, options), pytorch.translate(requests, options))


@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("tied", ["none", "target-output", "all"])
def test_untrained_models_of_other_forms_give_the_same(placement: str, tied: str) -> None:
    torch.manual_seed(5)
    config = ModelConfig(
        d_model=12, num_heads=3, d_ff=20, encoder_layers=2, decoder_layers=1, norm="layernorm", norm_placement=placement,
        activation="relu", positions="sinusoidal", tie_embeddings=tied, attention_bias=tied == "none",
        feed_forward_bias=tied == "all", output_bias=tied == "none", scale_embeddings=tied != "all",
    )  # fmt: skip
    model = Transformer(config, 30, 30).eval()
    for parameter in model.parameters():  # norms and biases, too, so that none is 1 or 0
        parameter.data.add_(torch.randn_like(parameter), alpha=0.1)
    # Two halves of a character, which may stand only one behind the other.
    pieces = BytePieces.of([b""] * 4 + [b"\xc3", b"\xa9"] + [b"a"] * 24)
    special = SpecialIds(0, 1, 2, 3, tag_ids=(7,))
    machine = Machine(torch.device("cpu"), torch.float32)
    expected = PyTorchEngine(model, special, SequenceFormat(), machine, byte_pieces=pieces)
    weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    engine = NumpyEngine(config, weights, special, pieces, nobody)
    options = DecodingConfig(beam_size=5, num_best=5, max_length=9)
    requests = [Request((5, 6, 8, 3)), Request((9, 3)), Request((4,) * 11)]
    require_equal(engine.translate(requests, options), expected.translate(requests, options))


@pytest.mark.parametrize(
    ("request_", "settings"),
    [
        (Request((5, 3), prefix=(7,)), {}),
        (Request((5, 3), terms=(Term(((9,),)),)), {}),
        (Request(()), {}),
        (Request((5,) * (MAX_TOKENS + 1)), {}),
        (Request((5, 3)), {"coverage_penalty": 0.2}),
        (Request((5, 3)), {"no_repeat_ngram_size": 2}),
        (Request((5, 3)), {"sampling": {}}),
    ],
)
def test_pytorch_does_what_is_not_plain_search_for_few_sentences(
    files: TrainedFiles, pytorch: Any, request_: Request, settings: dict[str, Any]
) -> None:
    asked: list[str] = []

    def load() -> Any:
        asked.append("PyTorch")
        return pytorch

    engine = load_numpy_engine(files, files.config, load)
    assert engine is not None
    options = DecodingConfig.model_validate(settings)
    require_equal(engine.translate([request_], options), pytorch.translate([request_], options))
    assert asked


@pytest.mark.parametrize(
    "change",
    [
        {"model": {"norm": "rmsnorm"}},
        {"model": {"activation": "gelu"}},
        {"model": {"positions": "rotary"}},
        {"model": {"d_ff": 255}},
        {"model": {"tie_embeddings": "none"}},
        {"runtime": {"device": "auto"}},
        {"runtime": {"precision": "bfloat16"}},
    ],
)
def test_other_models_and_machines_are_left_to_pytorch(
    files: TrainedFiles, change: dict[str, dict[str, Any]]
) -> None:
    """Also weights that do not fit the config: PyTorch then says what is wrong."""
    [(section, values)] = change.items()
    changed = getattr(files.config, section).model_copy(update=values)
    config: Config = files.config.model_copy(update={section: changed})
    assert load_numpy_engine(files, config, nobody) is None


def damaged(content: bytes) -> bytes:
    return content[:-4] + np.float32(np.nan).tobytes()


@pytest.mark.parametrize(
    "spoil", [damaged, lambda content: b"\xff" * 8 + content[8:], lambda content: b""]
)
def test_weights_that_are_none_are_left_to_pytorch(
    files: TrainedFiles, spoil: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = type(files.checkpoint).file
    monkeypatch.setattr(
        type(files.checkpoint), "file", lambda self, name, **options: spoil(read(self, name, **options))
    )  # fmt: skip
    assert load_numpy_engine(files, files.config, nobody) is None


def test_a_changed_file_of_weights_is_refused(files: TrainedFiles, tmp_path: Path) -> None:
    copy = shutil.copytree(files.folder, tmp_path / files.folder.name)
    content = bytearray((copy / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (copy / "model.safetensors").write_bytes(content)
    with pytest.raises(Exception, match=r"model\.safetensors"):
        load_numpy_engine(read_files(copy), files.config, nobody)
