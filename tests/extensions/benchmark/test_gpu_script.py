"""benchmarks/gpu.py: what of it a machine without a GPU runs too."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from transformer_cli.config import FilesData, load_config

from .small_benchmarks import TINY, script

gpu = script("gpu")


@pytest.fixture
def as_before() -> Iterator[None]:
    """The kinds of attention switch kernels of cuDNN on and off for the whole process."""
    is_enabled = torch.backends.cuda.cudnn_sdp_enabled()
    yield
    torch.backends.cuda.enable_cudnn_sdp(is_enabled)


@pytest.mark.long
def test_the_corpus_has_the_files_of_the_config_with_as_many_lines_on_both_sides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "PAIRS", {name: 70 * gpu.SMALLER for name in gpu.PAIRS})
    monkeypatch.setattr(sys, "argv", ["gpu.py", "corpus", str(tmp_path / "once")])
    gpu.main()
    gpu.write_corpus(tmp_path / "again")
    data = load_config("wmt14-en-de-base.yaml").data
    assert isinstance(data, FilesData)
    assert data.corpora is not None
    for corpus in data.corpora:
        for path in (corpus.source_path, corpus.target_path):
            lines = (tmp_path / "once" / path).read_text().splitlines()
            assert len(lines) == 70
            assert all(1 <= len(line.split()) <= 800 for line in lines)
            assert lines == (tmp_path / "again" / path).read_text().splitlines()


@pytest.mark.usefixtures("as_before")
def test_each_kind_of_attention_has_a_line_and_says_why_it_cannot_be_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*sizes: int) -> None:
        raise RuntimeError("no such kernel")

    kinds = {"no padding": gpu.padded, "causal": gpu.KINDS["causal"], "broken": broken}
    monkeypatch.setattr(gpu, "KINDS", kinds)
    cells = str(33 * gpu.SMALLER)
    monkeypatch.setattr(sys, "argv", ["gpu.py", "attention", "--heads", "1", "--width", "8", "--cells", cells])
    gpu.main()
    device, *lines = capsys.readouterr().out.splitlines()
    assert f"PyTorch {torch.__version__}" in device
    assert [line[:30].strip() for line in lines] == [*kinds]
    assert all(" ms; first calls " in line for line in lines[:2])
    assert lines[2].endswith("RuntimeError: no such kernel")


def test_the_table_has_the_figures_and_the_longest_kernels() -> None:
    kernels = [(12.5, 6.0, "gemm"), (3.25, 2.0, "softmax"), (0.5, 1.0, "copy")]
    found = {"precision": "bfloat16", "median_ms": 1234.5678, "memory_gb": None, "kernels": kernels}
    assert [*gpu.lines_of(found, 2)] == [
        f"{'precision':26} bfloat16",
        f"{'median_ms':26} 1,235",
        f"{'memory_gb':26} None",
        "    12.500 ms      6 x gemm",
        "     3.250 ms      2 x softmax",
    ]


@pytest.mark.heavy
def test_a_training_is_measured_with_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "LOCK", tmp_path / "lock")
    found = gpu.measure_training("copy.yaml", [*TINY], 4)
    assert (found["config"], found["precision"]) == ("copy.yaml", "float32")
    assert found["target_tokens_per_second"] > 0
    assert 0 <= found["padding"] < 1
    assert sum(found["phases"].values()) == pytest.approx(1, abs=0.01)
    assert 0 < found["target_tokens_per_update"] <= 8 * 11


@pytest.mark.heavy
def test_each_engine_has_a_line_for_each_number_of_sentences_and_a_search_is_profiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gpu, "NUM_WORDS_OF_A_LINE", 6)
    lines = [*gpu.measure_decoding("copy.yaml", [*TINY], [1, 2], 1)]
    for size, beam_size in ((1, 1), (1, 4), (2, 1), (2, 4)):
        [own] = [one for one in lines if one.startswith(f"  {size} sentences, beam {beam_size}: torch float32")]
        assert own.split("torch float32")[1].split()[1:4] == ["tokens", "a", "second"]
    *_, before, table = lines
    assert before.startswith("greedy search of 2 sentences, ")
    assert "Self CPU" in table
