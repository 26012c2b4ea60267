"""Samples of lines: what they depend on, and what they do not depend on."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_cli.decoding import Request
from transformer_cli.decoding.engine import Hypothesis
from transformer_cli.decoding.translation import request_seed, seeded

from .small_translators import WORDS, tokenizer_of_words, translator

TOKENIZER = tokenizer_of_words()
LINES = [" ".join(WORDS[first:last]) for first in range(8) for last in range(first + 1, 9)]
TWO_SENTENCES = "Uno. Uno."


def texts(lines: list[str], *, num_before: int = 0, **decoding: object) -> list[str]:
    sampling = {"temperature": 20.0, "seed": 3}
    of = translator(TOKENIZER, **{"sampling": sampling, **decoding})
    return [found.text for found in of.translate(lines, num_before=num_before)]


@pytest.mark.long
@settings(max_examples=5)
@given(
    first=st.integers(0, len(LINES) - 1),
    num_lines=st.integers(1, 5),
    batch_tokens=st.sampled_from([1, 20, 4096]),
)
def test_the_sample_of_a_line_does_not_depend_on_the_other_lines(first: int, num_lines: int, batch_tokens: int) -> None:
    last = first + num_lines
    part = texts(LINES[first:last], num_before=first, batch_tokens=batch_tokens)
    assert part == texts(LINES)[first:last]


def test_equal_lines_and_equal_sentences_get_other_samples() -> None:
    same = texts([LINES[5]] * 30)
    assert len(set(same)) > 10
    of = translator(TOKENIZER, sampling={"temperature": 20.0})
    seeds = {one.seed for one in seeded(of.pipeline.prepare(TWO_SENTENCES), 1).requests}
    assert len(seeds) == 2


@pytest.mark.long
def test_another_seed_draws_other_samples() -> None:
    first, second = (texts(LINES, sampling={"temperature": 20.0, "seed": seed}) for seed in (1, 2))
    assert first != second


def test_without_sampling_equal_lines_are_translated_once() -> None:
    translated = []

    class Engine:
        def translate(self, requests: list[Request], options: object) -> list[list[Hypothesis]]:
            translated.extend(requests)
            return [[] for _ in requests]

    for decoding, num_translated in (({}, 1), ({"sampling": {}}, 3)):
        translated.clear()
        of = replace(translator(TOKENIZER, **decoding), engine=Engine())  # type: ignore[arg-type]
        list(of.translate([LINES[5]] * 3))
        assert len(translated) == num_translated


@pytest.mark.long
def test_the_engine_gives_as_many_samples_as_asked_in_the_order_of_drawing() -> None:
    of = translator(TOKENIZER)
    requests = [Request(of.pipeline.source_ids(line), seed=number) for number, line in enumerate(LINES)]

    def drawn(num_best: int) -> list[list[Hypothesis]]:
        options = of.decoding.model_validate({"sampling": {}, "num_best": num_best})
        return of.engine.translate(requests, options)

    many, few = drawn(7), drawn(2)
    for of_many, of_few in zip(many, few, strict=True):
        assert len(of_many) == 7
        assert [hypothesis.ids for hypothesis in of_many[:2]] == [h.ids for h in of_few]
        scores = [hypothesis.score for hypothesis in of_many[:2]]
        assert scores == pytest.approx([h.score for h in of_few], abs=1e-9)


def test_seeds_of_requests_are_known_numbers_that_differ() -> None:
    numbers = {request_seed(seed, line, part) for seed in range(10) for line in range(20) for part in range(5)}
    assert len(numbers) == 1000
    assert all(0 <= number < 2**63 for number in numbers)
    # The same on every machine: the first 63 bits of BLAKE2b of "1 2 3", by b2sum -l 64.
    assert request_seed(1, 2, 3) == 0x19B832B2B004C52A >> 1
