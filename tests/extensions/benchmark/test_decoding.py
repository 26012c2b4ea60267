"""Translating under a stopwatch: the same translations, every token counted, phases that fill the time."""

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
import torch

from transformer_cli.acceleration import accelerate
from transformer_cli.acceleration.accelerate import TransformerOnGpu, with_cast_layers
from transformer_cli.acceleration.recorded_decoder import RecordedSteps
from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.pytorch_engine import PyTorchEngine
from transformer_cli.decoding.shortlist import Shortlist
from transformer_cli.decoding.translator import Translator
from transformer_cli.extensions.benchmark import decoding, measuring
from transformer_cli.extensions.benchmark.advice import Suggestion
from transformer_cli.extensions.benchmark.decoding import (
    PHASES,
    Subject,
    WatchedEngine,
    benchmark_decoding,
    decoding_limit,
    decoding_suggestions,
    translate_round,
)

from ...decoding.small_translators import (
    WORDS,
    config_of,
    random_model,
    tokenizer_of_words,
    translator,
)
from .small_benchmarks import AT_ONCE, exactly, machine_facts, search_figures

LINES = [" ".join(WORDS[:count]) for count in range(1, 8)]
SHORT = replace(AT_ONCE, num_turns=1, num_trials=1)


@pytest.mark.long
@pytest.mark.parametrize("beam_size", [1, 3])
def test_the_phases_of_a_round_sum_up_to_its_time(beam_size: int) -> None:
    found = translate_round(translator(tokenizer_of_words(), beam_size=beam_size), LINES, phases=True)
    assert tuple(found.phases) == PHASES
    assert sum(found.phases.values()) == pytest.approx(found.seconds)
    assert min(found.phases.values()) > 0.0


def test_every_token_and_row_is_counted() -> None:
    forced = _subject(is_forced=True)
    found = forced.translate(LINES, 1, phases=True)
    num_tokens = sum(len(line.split()) + 1 for line in LINES)  # with [EOS]
    assert found.num_tokens == num_tokens
    assert found.target_tokens == num_tokens, "lengths are forced to those of the sources"
    beam = forced.translate(LINES, 2, phases=True)
    assert beam.target_tokens == num_tokens
    assert beam.work[1] >= 2 * num_tokens - 2 * len(LINES)


def test_the_work_of_one_sentence_is_that_of_its_steps() -> None:
    found = _subject(is_forced=True).translate([" ".join(WORDS[:3])], 1, phases=True)
    assert found.work.tolist() == [4, 4, 16, 1 + 2 + 3 + 4, 16]
    assert (found.num_batches, found.num_steps, found.num_cells) == (1, 4, 4)


@pytest.mark.long
def test_recorded_steps_of_a_gpu_are_counted_too() -> None:
    """The "recording" is here the Python code itself."""
    plain = _subject(is_forced=True)
    expected = plain.translate(LINES, 2, phases=True)
    model = cast(TransformerOnGpu, with_cast_layers(accelerate(plain.model, torch.device("cuda")), torch.float32))
    recorded = RecordedSteps(model, lambda device: lambda work: work)
    translator = plain.translator(2)
    engine = replace(cast(PyTorchEngine, translator.engine), translating=None, recorded=recorded)
    found = translate_round(replace(translator, engine=engine), LINES, phases=True)
    assert found.num_steps == expected.num_steps > 0
    assert found.work.tolist() == expected.work.tolist()


@pytest.mark.parametrize("phases", [False, True])
def test_a_speed_is_that_of_the_engine_that_translates_and_only_phases_go_step_by_step(
    phases: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The prepared engine may call a kernel for whole searches; a shortlist counts for both."""
    subject, engines, written = _subject(is_forced=False), list[PyTorchEngine](), set[int]()
    allowed, size = np.arange(6), subject.tokenizers[1].vocab_size
    nothing = np.zeros(subject.tokenizers[0].vocab_size + 1, np.int64)
    subject.shortlist = Shortlist(nothing, allowed[:0], allowed, size, best=1, copies=False, name="some")
    search = PyTorchEngine.translate

    def spy(engine: PyTorchEngine, requests: Any, options: DecodingConfig) -> Any:
        found = search(engine, requests, options)
        if not engines:  # the repairs have other settings
            written.update(token for each in found for one in each for token in one.ids)
        engines.append(engine)
        return found

    monkeypatch.setattr(PyTorchEngine, "translate", spy)
    subject.translate(LINES, 2, phases=phases)
    assert [isinstance(engine, WatchedEngine) for engine in engines] == [phases] * len(engines)
    assert written
    assert written <= {*allowed.tolist()}


@pytest.mark.long
def test_watching_changes_no_translation(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = translator(tokenizer_of_words(), beam_size=3)
    expected = [found.text for found in plain.translate(LINES)]
    texts: list[str] = []
    translate = Translator.translate

    def spy(self: Translator, lines: Any) -> Any:
        for found in translate(self, lines):
            texts.append(found.text)
            yield found

    monkeypatch.setattr(Translator, "translate", spy)
    translate_round(plain, LINES, phases=True)
    assert texts == expected


@pytest.mark.long
@pytest.mark.parametrize("is_forced", [True, pytest.param(False, marks=pytest.mark.heavy)])
def test_a_report_has_greedy_search_and_the_beam(is_forced: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "SIDES", {"cpu": (16, 32)})
    change = "decoding.batch_tokens=9"
    suggested = Suggestion("rows are many", f"set {change}", (change,), 2.0)
    monkeypatch.setattr(decoding, "decoding_suggestions", lambda *_: [suggested])
    monkeypatch.setenv("TFM_NATIVE", "0")
    report = benchmark_decoding(_subject(is_forced=is_forced), LINES, SHORT)
    assert "There are no kernels in C (the environment variable TFM_NATIVE turns them off): " in report["conclusion"]
    assert [trial["suggestion"] for trial in report["trials"]] == [suggested._asdict()]
    assert (report["greedy"]["beam_size"], report["beam"]["beam_size"]) == (1, 4)
    assert report["num_lines"] == len(LINES)
    assert report["is_forced"] is is_forced
    assert report["greedy"]["share_of_peak"] > 0.0
    assert report["conclusion"].endswith(".")


def test_few_rows_suggest_larger_batches_only_if_there_are_lines_to_fill_them() -> None:
    few = search_figures(rows_per_step=64.0)
    [found] = decoding_suggestions(few, machine_facts(), 4096, 1000)
    assert found.because == "a decoder step has only 64 rows"
    assert found.overrides == ("decoding.batch_tokens=16384",)
    assert decoding_suggestions(few, machine_facts(), 4096, 20) == []


def test_a_search_that_takes_long_suggests_smaller_batches() -> None:
    slow = search_figures({"search": 0.4, "decoder steps": 0.6})
    [found] = decoding_suggestions(slow, machine_facts(), 4096, 1000)
    assert found.overrides == ("decoding.batch_tokens=1024",)
    assert decoding_suggestions(search_figures(), machine_facts(), 4096, 1000) == []


def test_a_gpu_may_repeat_recorded_steps_if_they_have_few_rows() -> None:
    facts = machine_facts(device="cuda")
    [found] = decoding_suggestions(search_figures(rows_per_step=512.0), facts, 4096, 1000)
    assert found.overrides == ("runtime.cuda_graphs=true",)
    assert decoding_suggestions(search_figures(rows_per_step=512.0), facts, 4096, 1000, True) == []


def test_the_sentence_names_the_price_of_the_beam() -> None:
    greedy = search_figures(target_tokens_per_cpu_second=exactly(3000.0))
    assert decoding_limit(greedy, search_figures()) == (
        "Decoder steps take 80% of the time with beam size 4, at 1,024 rows a step; the matrix products reach "
        "20% of this machine's peak, and greedy search is 3.0 times as fast"
    )


def _subject(*, is_forced: bool) -> Subject:
    tokenizer = tokenizer_of_words()
    model = random_model(tokenizer).float()
    config = config_of(model, DecodingConfig(beam_size=4, split_sentences=False))
    return Subject(model, (tokenizer, tokenizer), config, is_forced=is_forced)
