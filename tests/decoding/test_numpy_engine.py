"""The engine in NumPy finds what the PyTorch engine finds, and leaves to it whatever is not plain search for few sentences."""

import logging
import shutil
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from transformer_cli.checkpoint.averages import mean_of_checkpoints, write_average
from transformer_cli.checkpoint.run_folder import MODEL_FILE
from transformer_cli.checkpoint.trained_files import TrainedFiles, load_weights, read_trained_files
from transformer_cli.config import Config, DecodingConfig, ModelConfig
from transformer_cli.decoding import numpy_engine, pytorch_engine
from transformer_cli.decoding.engine import Hypothesis, Request, SpecialIds, Term
from transformer_cli.decoding.loading import load_pytorch_engine, load_run, load_translator, once
from transformer_cli.decoding.numpy_engine import MAX_TOKENS, NumpyEngine, load_numpy_engine
from transformer_cli.decoding.pytorch_engine import PyTorchEngine
from transformer_cli.model.transformer import Transformer
from transformer_cli.process.device import Machine
from transformer_cli.text import SequenceFormat
from transformer_cli.text.tokenizer_file import BytePieces

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


def nobody(*_: Any) -> Any:
    raise AssertionError("PyTorch is asked")


@pytest.fixture(scope="module")
def files() -> TrainedFiles:
    [checkpoint] = (RUN / "checkpoints").iterdir()
    return read_trained_files(checkpoint)


@pytest.fixture(scope="module")
def pytorch() -> Any:
    return load_translator(RUN).engine


def require_equal(found: list[list[Hypothesis]], expected: list[list[Hypothesis]]) -> None:
    assert [[one.ids for one in each] for each in found] == [[one.ids for one in each] for each in expected]
    of = [np.array([one.score for each in both for one in each]) for both in (found, expected)]
    np.testing.assert_allclose(*of, atol=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("settings", SEARCHES)
def test_it_finds_the_translations_and_scores_of_pytorch(
    files: TrainedFiles, pytorch: Any, settings: dict[str, Any]
) -> None:
    engine = load_numpy_engine(files, files.config, nobody)
    assert engine is not None
    options = DecodingConfig(**settings)
    requests = [Request((*files.source_tokenizer.encode(text),)) for text in TEXTS]
    require_equal(engine.translate(requests, options), pytorch.translate(requests, options))


@pytest.mark.long
def test_both_engines_read_a_checkpoint_in_bfloat16_as_the_same_model(tmp_path: Path, files: TrainedFiles) -> None:
    weights = {name: one.bfloat16() for name, one in mean_of_checkpoints([files.checkpoint]).items()}
    write_average(tmp_path / "half", [files.checkpoint], weights)
    half = read_trained_files(tmp_path / "half")
    assert (
        2 * (tmp_path / "half" / MODEL_FILE).stat().st_size
        < 1.03 * (files.checkpoint.folder / MODEL_FILE).stat().st_size
    )
    trained = load_weights(half)
    assert all(torch.equal(one, weights[name].float()) for name, one in trained.model.state_dict().items())
    engine = load_numpy_engine(half, half.config, nobody)
    assert engine is not None
    requests = [Request((*half.source_tokenizer.encode(text),)) for text in TEXTS]
    pytorch = load_translator(tmp_path / "half").engine
    require_equal(engine.translate(requests, DecodingConfig()), pytorch.translate(requests, DecodingConfig()))


@pytest.mark.long
@pytest.mark.parametrize(
    ("placement", "positions"),
    [("pre", "sinusoidal"), ("post", "sinusoidal_halves"), ("post", "sinusoidal_marian")],
)
@pytest.mark.parametrize("tied", ["none", "target-output", "all"])
def test_untrained_models_of_other_forms_give_the_same(placement: str, positions: str, tied: str) -> None:
    torch.manual_seed(5)
    config = ModelConfig(
        d_model=12,
        num_heads=3,
        d_ff=20,
        encoder_layers=2,
        decoder_layers=2,
        norm="layernorm",
        norm_placement=placement,
        activation="relu",
        positions=positions,
        tie_embeddings=tied,
        attention_bias=tied == "none",
        feed_forward_bias=tied == "all",
        output_bias=tied == "none",
        scale_embeddings=tied != "all",
        alignment_head=1 if tied == "all" else None,
    )
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
    targets: list[tuple[int, ...]] = [(4, 5, 9, 3), (), (8,) * 7]
    for num_best in (0, 3):
        both = [one.explain(requests, targets, batch_tokens=99, num_best=num_best) for one in (engine, expected)]
        for ours, theirs, request in zip(*both, requests, strict=True):
            assert ours.alignment == theirs.alignment
            np.testing.assert_array_equal(ours.best_ids, theirs.best_ids)
            for name in ("token_log_probs", "attention", "best_log_probs"):
                found, wanted = getattr(ours, name), getattr(theirs, name)
                assert found.dtype == wanted.dtype
                np.testing.assert_allclose(found, wanted, atol=1e-5)
            assert ours.attention.shape[1] == len(request.ids)


@pytest.mark.long
@pytest.mark.parametrize(
    ("request_", "settings"),
    [
        (Request((5, 3), prefix=(7,)), {}),
        (Request((5, 3), terms=(Term(((9,),)),)), {}),
        (Request(()), {}),
        (Request((5,) * (MAX_TOKENS + 1)), {"max_length": 3}),
        (Request((5, 3)), {"coverage_penalty": 0.2}),
        (Request((5, 3)), {"no_repeat_ngram_size": 2}),
        (Request((5, 3)), {"sampling": {}}),
    ],
)
def test_pytorch_does_what_is_not_plain_search_for_few_sentences(
    files: TrainedFiles, pytorch: Any, request_: Request, settings: dict[str, Any]
) -> None:
    asked: list[str] = []

    def load(_: Any) -> Any:
        asked.append("PyTorch")
        return pytorch

    engine = load_numpy_engine(files, files.config, load)
    assert engine is not None
    options = DecodingConfig.model_validate(settings)
    require_equal(engine.translate([request_], options), pytorch.translate([request_], options))
    assert asked


@pytest.mark.long
def test_the_larger_the_model_the_fewer_tokens_it_takes(
    files: TrainedFiles, pytorch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyTorch, which starts slowly, is then sooner ready with the rest."""
    [size] = [file.size for file in files.checkpoint.manifest.files if file.name == MODEL_FILE]
    for bytes_of_work, num_tokens in ((12 * size, 12), (10**6 * size, MAX_TOKENS)):
        monkeypatch.setattr(numpy_engine, "_MAX_WORK", bytes_of_work)
        asked: list[Any] = []
        engine = load_numpy_engine(files, files.config, lambda _, to=asked: to.append(_) or pytorch)
        assert engine is not None
        request = Request((*files.source_tokenizer.encode(TEXTS[0]),))
        requests = [request] * (num_tokens // len(request.ids))
        engine.translate(requests, DecodingConfig(beam_size=1))
        assert not asked
        engine.translate([*requests, request], DecodingConfig(beam_size=1))
        assert asked


def test_pytorch_has_the_machine_of_the_config_behind_it(files: TrainedFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first sentences need no GPU; a file does."""
    runtime = files.config.runtime.model_copy(update={"device": "auto", "precision": "auto"})
    config = files.config.model_copy(update={"runtime": runtime})
    opened: list[Config] = []
    monkeypatch.setattr(pytorch_engine, "open_pytorch_engine", lambda _, config, alone: opened.append(config))
    engine = load_numpy_engine(files, config, partial(load_pytorch_engine, files, config))
    assert engine is not None
    engine.pytorch()
    assert [one.runtime for one in opened] == [runtime]


@pytest.mark.parametrize(
    "change",
    [
        {"model": {"norm": "rmsnorm"}},
        {"model": {"activation": "gelu"}},
        {"model": {"positions": "rotary"}},
        {"model": {"d_ff": 255}},
        {"model": {"tie_embeddings": "none"}},
        {"runtime": {"device": "cuda"}},
        {"runtime": {"precision": "bfloat16"}},
    ],
)
def test_other_models_and_machines_are_left_to_pytorch(files: TrainedFiles, change: dict[str, dict[str, Any]]) -> None:
    """Also weights that do not fit the config: PyTorch then says what is wrong."""
    [(section, values)] = change.items()
    changed = getattr(files.config, section).model_copy(update=values)
    config: Config = files.config.model_copy(update={section: changed})
    assert load_numpy_engine(files, config, nobody) is None


def damaged(content: bytes) -> bytes:
    return content[:-4] + np.float32(np.nan).tobytes()


def nested(content: bytes) -> bytes:
    return (100_000).to_bytes(8, "little") + b"[" * 100_000


@pytest.mark.parametrize("spoil", [damaged, nested, lambda content: b"\xff" * 8 + content[8:], lambda content: b""])
def test_weights_that_are_none_are_left_to_pytorch(
    files: TrainedFiles, spoil: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = type(files.checkpoint).file
    monkeypatch.setattr(
        type(files.checkpoint), "file", lambda self, name, **options: spoil(read(self, name, **options))
    )
    assert load_numpy_engine(files, files.config, nobody) is None


def test_weights_that_overflow_give_what_pytorch_gives_without_a_warning(
    files: TrainedFiles,
) -> None:
    """NumPy would write its warnings among the messages."""
    engine = load_numpy_engine(files, files.config, nobody)
    assert engine is not None
    norm = "decoder.layers.0.feed_forward_norm.weight"
    weights = {**engine.weights, norm: np.full_like(engine.weights[norm], 1e38)}
    overflowing = replace(engine, weights=weights)
    torch_engine = load_pytorch_engine(files, files.config, weights)
    requests = [Request((*files.source_tokenizer.encode(TEXTS[0]),))]
    found = overflowing.translate(requests, DecodingConfig())
    assert found == torch_engine.translate(requests, DecodingConfig())
    explained = overflowing.explain(requests, [(5, 6)], batch_tokens=100)[0]
    assert np.isnan(explained.token_log_probs).all()


def test_a_changed_file_of_weights_is_refused(files: TrainedFiles, tmp_path: Path) -> None:
    copy = shutil.copytree(files.folder, tmp_path / files.folder.name)
    content = bytearray((copy / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (copy / "model.safetensors").write_bytes(content)
    with pytest.raises(Exception, match=r"model\.safetensors"):
        load_numpy_engine(read_trained_files(copy), files.config, nobody)


@pytest.mark.long
def test_pytorch_goes_on_with_the_weights_in_memory_after_the_run_is_gone(
    files: TrainedFiles,
    pytorch: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A training beside the translation removes old checkpoints."""
    run = shutil.copytree(RUN, tmp_path / "run")
    with monkeypatch.context() as patch, caplog.at_level(logging.INFO):
        patch.delitem(sys.modules, "torch")  # as it is when the command starts
        engine = load_run(str(run), []).translator.engine
    assert isinstance(engine, NumpyEngine)
    assert caplog.messages[-1].endswith("(NumPy for the first sentences, then PyTorch)")
    shutil.rmtree(run)
    options = DecodingConfig()
    ids = (*files.source_tokenizer.encode(TEXTS[0]),)
    for requests in ([Request(ids)], [Request(ids)] * MAX_TOKENS):
        require_equal(engine.translate(requests, options), pytorch.translate(requests, options))


def test_threads_that_need_pytorch_at_the_same_time_build_it_once(files: TrainedFiles, pytorch: Any) -> None:
    built: list[Any] = []

    def build(weights: Any) -> Any:
        built.append(weights)
        time.sleep(0.05)  # so that the other threads come before it is ready
        return pytorch

    engine = load_numpy_engine(files, files.config, build)
    assert engine is not None
    request = Request((*files.source_tokenizer.encode(TEXTS[0]),))
    with ThreadPoolExecutor(3) as pool:
        found = [*pool.map(lambda _: engine.next_token_probabilities(request.ids, ()), range(3))]
    assert len(found) == 3
    assert built == [engine.weights]


def test_each_reader_is_loaded_once_by_threads_that_ask_together() -> None:
    asked: list[str] = []

    def load(name: str) -> str:
        asked.append(name)
        time.sleep(0.05)
        return name.upper()

    reader = once(load)
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(reader, ["it-en", "de-en"] * 2)] == ["IT-EN", "DE-EN"] * 2
    assert sorted(asked) == ["de-en", "it-en"]
