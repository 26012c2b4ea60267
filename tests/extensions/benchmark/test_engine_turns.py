"""Engines in turns: each translates all sentences, and what cannot be measured is said."""

import importlib.util
from typing import Any

import pytest

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding import Request
from transformer_cli.extensions.benchmark import decoding
from transformer_cli.extensions.benchmark.decoding import (
    Subject,
    advice_on_engines,
    engines_in_turns,
)
from transformer_cli.extensions.benchmark.measuring import Figures
from transformer_cli.process.device import processor_name

from ...decoding.small_translators import WORDS, config_of, random_model, tokenizer_of_words
from .small_benchmarks import engine, exactly

LINES = [" ".join(WORDS[count : count + 3]) for count in range(4)]
ALL = [
    *(("torch", precision) for precision in ("float32", "bfloat16", "int8")),
    *(("ctranslate2", precision) for precision in ("float32", "int8")),
]


def subject_of(*, is_forced: bool = False, **settings: Any) -> Subject:
    tokenizer = tokenizer_of_words()
    model = random_model(tokenizer).float()
    config = config_of(model, DecodingConfig(split_sentences=False, **settings))
    return Subject(model, (tokenizer, tokenizer), config, is_forced=is_forced)


def measured(subject: Subject) -> Figures:
    return engines_in_turns(subject, LINES, (1, 3), num_rounds=2)


def names(turns: Figures, beam_size: int) -> list[tuple[str, str]]:
    return [(one["engine"], one["precision"]) for one in turns["figures"] if one["beam_size"] == beam_size]


@pytest.mark.long
@pytest.mark.parametrize("is_forced", [True, False])
def test_every_engine_is_measured_with_every_search(is_forced: bool) -> None:
    pytest.importorskip("ctranslate2")
    turns = measured(subject_of(is_forced=is_forced))
    assert names(turns, 1) == names(turns, 3) == ALL
    assert turns["left_out"] == []
    assert (turns["num_lines"], turns["num_rounds"]) == (4, 2)
    assert all(one["target_tokens_per_cpu_second"]["low"] > 0.0 for one in turns["figures"])
    has_ratio = {(one["engine"], one["precision"]) for one in turns["figures"] if one["ratio"] is not None}
    assert has_ratio == {*ALL} - {("torch", "bfloat16")}
    own = [one["ratio"] for one in turns["figures"] if one["engine"] == "ctranslate2"]
    assert all(ratio == exactly(1.0) for ratio in own)


@pytest.mark.long
@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("is_forced", [True, False])
def test_the_engines_write_the_same_number_of_tokens(beam_size: int, is_forced: bool) -> None:
    """With forced lengths, as many as the sources have; greedy search finds the same tokens anyway."""
    pytest.importorskip("ctranslate2")
    if beam_size > 1 and not is_forced:
        pytest.skip("the beam searches of both libraries stop by different rules")
    subject = subject_of(is_forced=is_forced)
    contestants, _ = decoding.contestants_of(subject)
    prepare = subject.translator(1).pipeline.prepare
    requests: list[Request] = [part for line in LINES for part in prepare(line).requests]
    options = subject.config.decoding.best_of_beam(beam_size)
    counts = {
        decoding.num_tokens(engine.translate(requests, options))
        for (_, precision), engine in contestants.items()
        if precision == "float32" or is_forced
    }
    assert len(counts) == 1
    if is_forced:
        assert counts == {sum(len(request.ids) for request in requests)}


def test_forced_translations_of_all_engines_take_as_many_steps() -> None:
    """With the mean length of 2, 4 and 9 tokens, CTranslate2 would end after 5 steps, and PyTorch after 9."""
    requests = [Request((*range(2, 2 + length),)) for length in (9, 2, 4)]
    assert decoding.requests_of_one_length(requests) == [Request((2, 3, 4, 5)), Request((2, 3, 4, 5))]


@pytest.mark.long
def test_without_ctranslate2_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    turns = measured(subject_of())
    assert names(turns, 1) == ALL[:3]
    [reason] = turns["left_out"]
    assert reason.startswith("ctranslate2: decoding.engine: ctranslate2: CTranslate2 is not installed; ")
    assert 'pip install ".[ctranslate2]"' in reason
    assert "\n" not in reason
    assert all(one["ratio"] is None for one in turns["figures"])


@pytest.mark.long
def test_a_setting_that_ctranslate2_does_not_know_leaves_it_out() -> None:
    pytest.importorskip("ctranslate2")
    turns = measured(subject_of(no_repeat_ngram_size=3))
    assert names(turns, 1) == names(turns, 3) == ALL[:3]
    assert turns["left_out"] == [
        f"ctranslate2, {precision}: decoding.no_repeat_ngram_size: CTranslate2 does not know this setting"
        for precision in ("float32", "int8")
    ]


def test_the_processor_has_a_name() -> None:
    assert processor_name().strip() == processor_name() != ""


@pytest.mark.parametrize(("int8", "is_advised"), [(100.0, False), (109.0, False), (190.0, True)])
def test_a_precision_that_was_clearly_faster_is_named(int8: float, is_advised: bool) -> None:
    figures = [
        engine("torch", "float32", 100.0, None, beam_size=4),
        engine("torch", "int8", int8, None, beam_size=4),
        engine("torch", "bfloat16", 900.0, None, beam_size=1),
        engine("ctranslate2", "int8", 90.0, None, beam_size=4),
    ]
    advice = advice_on_engines(figures, "float32", 4, "cpu")
    assert ("runtime.precision=int8, PyTorch was 1.9 times as fast" in advice) is is_advised
    assert bool(advice) is is_advised


def test_the_other_engine_is_named_if_it_was_clearly_faster_than_every_precision() -> None:
    figures = [
        engine("torch", "float32", 100.0, None, beam_size=4),
        engine("torch", "int8", 200.0, None, beam_size=4),
        engine("ctranslate2", "float32", 210.0, None, beam_size=4),
        engine("ctranslate2", "int8", 500.0, None, beam_size=4),
    ]
    assert advice_on_engines(figures, "int8", 4, "cpu") == (
        " CTranslate2 in int8 was 2.5 times as fast as PyTorch in int8, per CPU-second: "
        "decoding.engine=ctranslate2, runtime.precision=int8."
    )
    assert "PyTorch was 2.0 times" in advice_on_engines(figures, "float32", 4, "cpu")
