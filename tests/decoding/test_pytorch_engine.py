"""The PyTorch engine: ids to hypotheses in any batch and from any thread, with the model left as it is."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from threading import Barrier

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding import Engine, Hypothesis, Request, SpecialIds, Term, TokenIds
from transformer_cli.decoding.pytorch_engine import PyTorchEngine
from transformer_cli.model.transformer import Transformer
from transformer_cli.process.device import Machine
from transformer_cli.text.tokenizer import SequenceFormat, Tokenizer

from .small_translators import CPU, random_model, tokenizer_of_words

TOKENIZER = tokenizer_of_words()
EOS = Tokenizer.eos_id
VOCAB_SIZE = TOKENIZER.vocab_size
BFLOAT16 = Machine(torch.device("cpu"), torch.bfloat16)
GREEDY, BEAM = DecodingConfig(beam_size=1), DecodingConfig(beam_size=3, num_best=3)
SOURCES: list[TokenIds] = [(*range(4, 4 + length), EOS) for length in (3, 1, 8, 5, 1, 2, 7, 4, 6, 3, 8, 2)]


def engine_of(
    model: Transformer,
    machine: Machine = CPU,
    sequence_format: SequenceFormat = SequenceFormat(),  # noqa: B008 - immutable
) -> PyTorchEngine:
    return PyTorchEngine(model, SpecialIds.of(TOKENIZER), sequence_format, machine)


ENGINE: Engine = engine_of(random_model(TOKENIZER))
METHODS: dict[str, Callable[[Engine], object]] = {
    "translate": lambda engine: engine.translate([*map(Request, SOURCES)], BEAM),
    "negative_log_likelihood": lambda engine: engine.negative_log_likelihood(SOURCES, SOURCES, batch_tokens=20),
    "next_token_probabilities": lambda engine: engine.next_token_probabilities(SOURCES[0], (4, 5)).tolist(),
    "explain": lambda engine: [
        one.attention.tolist() for one in engine.explain([*map(Request, SOURCES)], SOURCES, batch_tokens=20)
    ],
}
each_method = pytest.mark.parametrize("call", METHODS.values(), ids=METHODS.keys())


def assert_same(actual: list[Hypothesis], expected: list[Hypothesis]) -> None:
    assert [hypothesis.ids for hypothesis in actual] == [hypothesis.ids for hypothesis in expected]
    scores = [hypothesis.score for hypothesis in expected]
    assert [hypothesis.score for hypothesis in actual] == pytest.approx(scores, abs=1e-9)


def test_for_a_validation_a_gpu_casts_the_weights_once_and_asks_the_hooks_of_the_model() -> None:
    engine = engine_of(random_model(TOKENIZER).float())
    assert engine.for_validation() is engine, "a CPU computes with the modules that are trained"
    encoded: list[object] = []
    engine.model.encoder.register_forward_pre_hook(lambda *_: encoded.append(1))
    on_gpu = replace(engine, machine=Machine(torch.device("meta"), torch.bfloat16)).for_validation()
    product = on_gpu.model.decoder.layers[0].feed_forward.up
    assert product.weight.dtype == torch.bfloat16
    assert engine.model.decoder.layers[0].feed_forward.up.weight.dtype == torch.float32
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        on_gpu.model.encode(torch.tensor([SOURCES[0]]), None)
    assert encoded == [1]


source_ids = st.lists(st.integers(4, VOCAB_SIZE - 1), min_size=1, max_size=6).map(lambda ids: (*ids, EOS))


@pytest.mark.long
def test_a_batch_on_a_cpu_has_few_logits(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(TOKENIZER)
    sizes: list[int] = []
    model.encoder.register_forward_hook(lambda _, __, output: sizes.append(len(output)))
    engine, requests = engine_of(model), [*map(Request, SOURCES)]
    expected = engine.translate(requests, BEAM)
    assert max(sizes) > 2
    limit = 2 * BEAM.beam_size * VOCAB_SIZE  # those of two sentences
    monkeypatch.setattr("transformer_cli.decoding.engine.MAX_LOGITS_ON_CPU", limit)
    sizes.clear()
    for actual, wanted in zip(engine.translate(requests, BEAM), expected, strict=True):
        assert_same(actual, wanted)
    assert max(sizes) == 2


@pytest.mark.heavy
@pytest.mark.parametrize("beam_size", [1, 3])
@settings(max_examples=10)
@given(sources=st.lists(source_ids, max_size=8), batch_tokens=st.integers(1, 40))
def test_hypotheses_come_in_the_order_of_the_sources_in_any_batch(
    beam_size: int, sources: list[TokenIds], batch_tokens: int
) -> None:
    options = DecodingConfig(beam_size=beam_size, num_best=beam_size, batch_tokens=batch_tokens)
    together = ENGINE.translate([*map(Request, sources)], options)
    assert len(together) == len(sources)
    for source, hypotheses in zip(sources, together, strict=True):
        [alone] = ENGINE.translate([Request(source)], options)
        assert_same(hypotheses, alone)
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert 1 <= len(scores) <= beam_size
        assert scores == sorted(scores, reverse=True)


def test_ids_hold_no_padding_and_end_with_the_end_symbol_unless_they_were_cut() -> None:
    max_length = 4
    options = DecodingConfig(beam_size=3, num_best=3, max_length=max_length)
    all_ids = [h.ids for of_one in ENGINE.translate([*map(Request, SOURCES)], options) for h in of_one]
    for ids in all_ids:
        assert not {Tokenizer.pad_id, Tokenizer.sos_id, EOS} & {*ids[:-1]}
        assert ids[-1] == EOS or len(ids) == max_length
    assert {ids[-1] == EOS for ids in all_ids} == {True, False}


@pytest.mark.long
@pytest.mark.parametrize("batch_tokens", [1, 20, 4096])
def test_the_likelihood_of_what_was_found_is_the_score_of_the_search(batch_tokens: int) -> None:
    options = DecodingConfig(beam_size=3, length_penalty=0.0)
    best = [of_one[0] for of_one in ENGINE.translate([*map(Request, SOURCES)], options)]
    found = ENGINE.negative_log_likelihood(SOURCES, [hypothesis.ids for hypothesis in best], batch_tokens=batch_tokens)
    assert found == pytest.approx(-math.fsum(hypothesis.score for hypothesis in best), abs=1e-9)


def test_no_target_has_no_likelihood_to_add() -> None:
    assert ENGINE.negative_log_likelihood([], [], batch_tokens=10) == 0.0


def test_the_probabilities_of_next_tokens_multiply_to_that_of_the_target() -> None:
    source, target = SOURCES[0], (5, 9, 4, EOS)
    log_probability = 0.0
    for position, token in enumerate(target):
        probabilities = ENGINE.next_token_probabilities(source, target[:position])
        assert probabilities.shape == (VOCAB_SIZE,)
        assert probabilities.sum().item() == pytest.approx(1.0)
        log_probability += math.log(probabilities[token].item())
    expected = ENGINE.negative_log_likelihood([source], [target], batch_tokens=10)
    assert -log_probability == pytest.approx(expected, abs=1e-9)


def test_an_unshifted_decoder_reads_the_target_itself() -> None:
    model = random_model(TOKENIZER)
    unshifted = engine_of(model, sequence_format=SequenceFormat(has_end=False, is_shifted=False))
    source, target = (4, 5, 6), (7, 8, 9)
    logits = model(torch.tensor([source]), torch.ones(1, 3, dtype=torch.bool), torch.tensor([target]))
    expected = nn.functional.cross_entropy(logits[0], torch.tensor(target), reduction="sum")
    found = unshifted.negative_log_likelihood([source], [target], batch_tokens=10)
    assert found == pytest.approx(expected.item(), abs=1e-9)


@pytest.mark.heavy
@pytest.mark.parametrize("machine", [CPU, BFLOAT16], ids=["float32", "bfloat16"])
def test_several_threads_get_what_one_thread_gets(machine: Machine) -> None:
    engine = engine_of(random_model(TOKENIZER).float(), machine)
    jobs = [(SOURCES[start::3], options) for start in range(3) for options in (BEAM, GREEDY)]

    def work(number: int) -> tuple[list[list[Hypothesis]], float, list[float]]:
        sources, options = jobs[number]
        return (
            engine.translate([*map(Request, sources)], options),
            engine.negative_log_likelihood(sources, sources, batch_tokens=20),
            engine.next_token_probabilities(sources[0], (4,)).tolist(),
        )

    serial = [work(number) for number in range(len(jobs))]
    barrier = Barrier(len(jobs))

    def work_at_once(number: int) -> list[tuple[list[list[Hypothesis]], float, list[float]]]:
        barrier.wait()
        return [work(number) for _ in range(2)]

    with ThreadPoolExecutor(len(jobs)) as threads:
        for found, expected in zip(threads.map(work_at_once, range(len(jobs))), serial, strict=True):
            assert found == [expected] * 2


@each_method
def test_a_model_in_training_mode_is_refused(call: Callable[[Engine], object]) -> None:
    engine = engine_of(random_model(TOKENIZER).train())
    with pytest.raises(ValueError, match=r"in training mode; call model\.eval\(\)"):
        call(engine)
    assert engine.model.training


@pytest.mark.long
@each_method
def test_the_training_flag_is_never_touched(call: Callable[[Engine], object], monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(TOKENIZER, dropout=0.5)

    def touched(self: nn.Module, name: str, value: object) -> None:
        assert name != "training", "the engine changes the mode of the model"
        object.__setattr__(self, name, value)

    monkeypatch.setattr(nn.Module, "__setattr__", touched)
    with pytest.raises(AssertionError, match="changes the mode"):
        model.train()
    engine = engine_of(model)
    expected = call(engine)
    broken = model.encoder.layers[0].register_forward_pre_hook(_fail)
    with pytest.raises(ZeroDivisionError):
        call(engine)
    broken.remove()
    assert not any(module.training for module in model.modules())
    assert call(engine) == expected


@pytest.mark.long
@each_method
def test_random_numbers_gradients_and_modes_of_the_thread_are_left_alone(
    call: Callable[[Engine], object],
) -> None:
    model = random_model(TOKENIZER, dropout=0.5)
    engine = engine_of(model, BFLOAT16)
    before = torch.get_rng_state()
    assert call(engine) == call(engine)
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()
    assert not torch.is_autocast_enabled("cpu")
    assert torch.equal(torch.get_rng_state(), before)
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.long
@each_method
def test_the_model_works_without_gradients_and_in_the_precision_of_the_machine(
    call: Callable[[Engine], object],
) -> None:
    model = random_model(TOKENIZER).float()
    met = set()
    model.decoder.layers[0].feed_forward.up.register_forward_hook(
        lambda module, inputs, output: met.add((torch.is_inference_mode_enabled(), output.dtype))
    )
    call(engine_of(model, BFLOAT16))
    assert met == {(True, torch.bfloat16)}


def _fail(*_: object) -> None:
    raise ZeroDivisionError


@pytest.mark.long
def test_terms_stand_in_every_hypothesis_and_cost_other_requests_nothing() -> None:
    sources = SOURCES[::2]
    terms = (Term(((6,), (7, 8))), Term(((11,),)), Term(((11,),)))
    requests = [*map(Request, sources), *(Request(source, terms=terms) for source in sources)]
    plain = ENGINE.translate(requests[: len(sources)], BEAM)
    for options in (BEAM, GREEDY, DecodingConfig(beam_size=2, max_length=1)):
        found = ENGINE.translate(requests, options)
        if options is BEAM:
            assert found[: len(sources)] == plain
        for source, hypotheses in zip(sources, found[len(sources) :], strict=True):
            assert hypotheses
            for ids in (hypothesis.ids for hypothesis in hypotheses):
                pairs = [*pairwise(ids)]
                assert 6 in ids or (7, 8) in pairs
                assert ids.count(11) >= 2
            [alone] = ENGINE.translate([Request(source, terms=terms)], options)
            assert_same(hypotheses, alone)
