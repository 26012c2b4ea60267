"""The search of unwanted sentences ends, and their neighbours get what they would have got."""

from collections.abc import Collection

import pytest

from transformer_cli.decoding import Request
from transformer_cli.decoding.pytorch_engine import PyTorchEngine

from ..small_translators import tokenizer_of_words, translator

SETTINGS: list[dict[str, object]] = [
    {"beam_size": 1},
    {"beam_size": 3, "num_best": 2},
    {"beam_size": 4, "diversity": {"groups": 2, "strength": 0.5}},
    {"beam_size": 1, "sampling": {"seed": 3}},
]


class LeavingAfter:
    """Says that requests are unwanted from a step on, and counts the steps."""

    def __init__(self, step: int, requests: Collection[Request]) -> None:
        self.num_steps = 0
        self._step, self._requests = step, requests

    def __call__(self) -> Collection[Request]:
        self.num_steps += 1
        return self._requests if self.num_steps > self._step else ()


def engine_and_requests(**decoding: object) -> tuple[PyTorchEngine, list[Request], object]:
    made = translator(tokenizer_of_words(), max_length=20, min_length=15, **decoding)
    assert isinstance(made.engine, PyTorchEngine)
    requests = [Request((4 + number, 5, 6, 7), seed=number) for number in range(5)]
    return made.engine, requests, made.decoding


@pytest.mark.long
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("step", [0, 1, 4])
def test_neighbours_of_unwanted_sentences_keep_their_translations(settings: dict[str, object], step: int) -> None:
    engine, requests, options = engine_and_requests(**settings)
    expected = engine.translate(requests, options)
    leaving = LeavingAfter(step, {requests[1], requests[3], requests[4]})
    found = engine.interruptible(leaving).translate(requests, options)
    for place in (0, 2):
        assert [one.ids for one in found[place]] == [one.ids for one in expected[place]]
        scores = [one.score for one in expected[place]]
        assert [one.score for one in found[place]] == pytest.approx(scores)


@pytest.mark.long
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_search_without_wanted_sentences_ends_at_once(settings: dict[str, object]) -> None:
    engine, requests, options = engine_and_requests(**settings)
    whole = LeavingAfter(1000, requests)
    assert engine.interruptible(whole).translate(requests, options) == engine.translate(requests, options)
    assert whole.num_steps >= 15
    leaving = LeavingAfter(3, requests)
    engine.interruptible(leaving).translate(requests, options)
    assert leaving.num_steps <= 5
