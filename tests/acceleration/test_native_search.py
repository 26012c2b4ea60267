"""A search in one call of a kernel, greedy or with a beam, finds the tokens and the scores of the search step by step."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from transformer_cli.acceleration import native_search
from transformer_cli.acceleration.native_kernels import (
    SWITCH,
    Kernels,
    NativeLinear,
    native_recurrence,
)
from transformer_cli.acceleration.prepared_transformer import prepare_quantised
from transformer_cli.config import DecodingConfig, ModelConfig
from transformer_cli.decoding import Hypothesis, Request, SpecialIds
from transformer_cli.decoding.pytorch_engine import PyTorchEngine
from transformer_cli.decoding.search.beam import length_penalties, penalties_up_to
from transformer_cli.decoding.shortlist import Shortlist
from transformer_cli.model.layers import SSRU
from transformer_cli.model.transformer import Transformer
from transformer_cli.process.device import Machine
from transformer_cli.process.errors import DataError
from transformer_cli.text import SequenceFormat
from transformer_cli.text.tokenizer_file import BytePieces

pytestmark = pytest.mark.usefixtures("kernels")

SIZES: dict[str, Any] = {"d_model": 24, "num_heads": 4, "d_ff": 40, "encoder_layers": 2, "decoder_layers": 2}
NATIVE: dict[str, dict[str, Any]] = {
    "pre-norm": {},
    "post-norm": {"norm_placement": "post"},
    "residual of normed": {"norm_placement": "residual_of_normed"},
    "SSRU of Marian": {
        "decoder_layer": "ssru",
        "norm_placement": "post",
        "positions": "sinusoidal_marian",
        "tie_embeddings": "all",
    },
    "SSRU, no positions": {"decoder_layer": "ssru", "positions": "none", "decoder_layers": 3},
    "one decoder layer": {"decoder_layers": 1},
    "grouped heads": {"num_kv_heads": 2, "head_dim": 10, "positions": "learned"},
    "no biases": {"feed_forward_bias": False, "attention_bias": False, "output_bias": False},
    "embeddings as they are": {"scale_embeddings": False, "norm_placement": "post"},
}
FOREIGN: dict[str, dict[str, Any]] = {
    "rotary positions": {"positions": "rotary"},
    "gated": {"activation": "reglu"},
    "GELU": {"activation": "gelu"},
    "another norm": {"norm": "rmsnorm"},
    "normed queries": {"qk_norm": True},
    "normed embeddings": {"embedding_norm": True},
}
VOCABULARY, GREEDY = 150, DecodingConfig(beam_size=1, max_length=40)
SPECIAL = SpecialIds(unk_id=0, pad_id=1, sos_id=2, eos_id=3)


def engine_of(changes: dict[str, Any], *, is_quantised: bool = True) -> PyTorchEngine:
    torch.manual_seed(3)
    config = ModelConfig.model_validate({**SIZES, "max_length": 60, **changes})
    model = Transformer(config, VOCABULARY, VOCABULARY).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter)).mul_(4.0)  # so that translations differ
    machine = Machine(torch.device("cpu"), torch.float32, is_quantised=is_quantised)
    return PyTorchEngine(model, SPECIAL, SequenceFormat(), machine).prepared()


def requests_of(num_sentences: int) -> list[Request]:
    generator = torch.Generator().manual_seed(5)
    lengths = torch.randint(1, 30, (num_sentences,), generator=generator).tolist()
    sources = (torch.randint(4, VOCABULARY, (one,), generator=generator) for one in lengths)
    return [Request((*source.tolist(), 3)) for source in sources]


REQUESTS = requests_of(20)


def assert_as_step_by_step(
    engine: PyTorchEngine, options: DecodingConfig, requests: Sequence[Request] = REQUESTS
) -> list[list[Hypothesis]]:
    """The hypotheses, of which each has the tokens and the bits of the score of the other search."""
    assert engine._fits_kernel(requests, options)
    found = engine.translate(requests, options)
    assert found == replace(engine, native_search=None).translate(requests, options)
    return found


@pytest.mark.long
@pytest.mark.parametrize("changes", NATIVE.values(), ids=NATIVE)
def test_tokens_and_scores_are_those_of_the_search_step_by_step(changes: dict[str, Any]) -> None:
    engine = engine_of(changes)
    found = assert_as_step_by_step(engine, GREEDY)
    written = Counter(token for [one] in found for token in one.ids)
    assert len(written) > 9
    # Its most frequent token ends translations of another model.
    [(end, _)] = written.most_common(1)
    engine = replace(engine, special_ids=SPECIAL._replace(eos_id=end))
    found = assert_as_step_by_step(engine, GREEDY)
    assert len({len(one.ids) for [one] in found}) > 2
    alone = [engine.translate([request], GREEDY)[0] for request in REQUESTS[:4]]
    assert alone == found[:4]


BEAMS: dict[str, dict[str, Any]] = {
    "two": {"beam_size": 2},
    "as a repair": {"beam_size": 8, "num_best": 8},
    "as a repair of a loop": {"beam_size": 8, "num_best": 8, "no_repeat_ngram_size": 3},
    "some of the best": {"beam_size": 5, "num_best": 3, "length_normalization": "average", "length_penalty": 0.3},
    "no penalty": {"beam_size": 4, "length_penalty": 0.0, "no_repeat_ngram_size": 2},
    "limited": {"beam_size": 3, "num_best": 3, "max_length": 7},
    "long": {"beam_size": 3, "num_best": 2, "min_length": 15},
    "all different tokens": {"beam_size": 4, "no_repeat_ngram_size": 1},
}


@pytest.mark.long
@pytest.mark.parametrize("settings", BEAMS.values(), ids=BEAMS)
def test_a_beam_is_that_of_the_search_step_by_step(settings: dict[str, Any]) -> None:
    options = DecodingConfig.model_validate({"max_length": 25, **settings})
    engine = engine_of({"decoder_layer": "ssru", "encoder_layers": 1})
    for end in (3, 111):  # tokens that end a translation
        engine = replace(engine, special_ids=SPECIAL._replace(eos_id=end))
        found = assert_as_step_by_step(engine, options, REQUESTS[:4])
        assert max(map(len, found)) == options.num_best
    assert engine.translate(REQUESTS[:1], options) == found[:1]


@pytest.mark.long
@pytest.mark.parametrize("changes", NATIVE.values(), ids=NATIVE)
def test_every_model_that_the_kernel_knows_has_beams(changes: dict[str, Any]) -> None:
    options = DecodingConfig(beam_size=5, num_best=5, no_repeat_ngram_size=3, max_length=25)
    engine = engine_of(changes)
    written = Counter(token for each in engine.translate(REQUESTS, GREEDY) for token in each[0].ids)
    [(end, _)] = written.most_common(1)
    engine = replace(engine, special_ids=SPECIAL._replace(eos_id=end))
    found = assert_as_step_by_step(engine, options, REQUESTS[:6])
    assert len({len(one.ids) for each in found for one in each}) > 3


def test_greedy_search_repeats_no_ngram() -> None:
    engine = engine_of({"decoder_layer": "ssru"})
    for size in (1, 2, 4):
        options = DecodingConfig(beam_size=1, no_repeat_ngram_size=size, max_length=20)
        for [one] in assert_as_step_by_step(engine, options, REQUESTS[:5]):
            ngrams = Counter(zip(*(one.ids[start:] for start in range(size)), strict=False))
            assert set(ngrams.values()) == {1}


@pytest.mark.long
@pytest.mark.parametrize(("vocabulary", "beam_size"), [(65, 4), (9, 40)], ids=["a panel and a token", "few tokens"])
def test_sources_of_one_token_and_a_small_vocabulary(vocabulary: int, beam_size: int) -> None:
    config = ModelConfig.model_validate({**SIZES, "d_model": 20, "decoder_layer": "ssru"})
    torch.manual_seed(1)
    model = Transformer(config, vocabulary, vocabulary).eval()
    machine = Machine(torch.device("cpu"), torch.float32, is_quantised=True)
    engine = PyTorchEngine(model, SPECIAL, SequenceFormat(), machine).prepared()
    requests = [Request((5,)), Request((7,)), Request((7, 3))]
    for options in (GREEDY, DecodingConfig(beam_size=beam_size, num_best=beam_size, max_length=9)):
        found = assert_as_step_by_step(engine, options, requests)
        assert [len(one) for one in found] == [options.num_best] * 3
        assert assert_as_step_by_step(engine, options, requests[:1]) == found[:1]


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_model_of_nan_has_no_translation(beam_size: int) -> None:
    engine = engine_of({"decoder_layer": "ssru"})
    with torch.no_grad():
        engine.model.output.weight.fill_(torch.nan)
    found = assert_as_step_by_step(replace(engine).prepared(), DecodingConfig(beam_size=beam_size), REQUESTS[:2])
    assert found == [[], []]


@pytest.mark.long
def test_of_equal_tokens_the_first_one_is_chosen_unless_it_is_banned() -> None:
    engine = engine_of({"decoder_layer": "ssru"})
    output = engine.model.output
    with torch.no_grad():
        output.weight[77:].copy_(output.weight[4:77])  # 73 tokens, each of them twice
        output.bias.zero_()
    engine = engine.prepared()
    found = assert_as_step_by_step(engine, GREEDY)
    assert all(token < 77 for [one] in found for token in one.ids)
    # The first of two equal tokens is a byte inside a character, and so it is banned.
    pieces = [b""] * 4 + [b"\x80"] * 73 + [b"a"] * 73
    engine = replace(engine, byte_pieces=BytePieces.of(pieces))
    found = assert_as_step_by_step(engine, GREEDY)
    assert all(token < 4 or token >= 77 for [one] in found for token in one.ids)


@pytest.mark.long
@pytest.mark.parametrize("changes", FOREIGN.values(), ids=FOREIGN)
def test_what_the_kernel_does_not_know_is_searched_step_by_step(changes: dict[str, Any]) -> None:
    engine = engine_of(changes)
    assert engine.native_search is None
    assert engine.translate(REQUESTS[:2], GREEDY)


@pytest.mark.long
def test_without_kernels_python_goes_from_step_to_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "0")
    engine = engine_of({})
    assert engine.native_search is None
    assert len(engine.translate(REQUESTS[:2], GREEDY)) == 2


def test_float32_samples_and_what_reads_attention_are_searched_step_by_step() -> None:
    assert engine_of({}, is_quantised=False).native_search is None
    engine = engine_of({})
    for options in (
        {"beam_size": 1, "coverage_penalty": 0.1},
        {"beam_size": 1, "sampling": {"seed": 1}},
        {"beam_size": 4, "num_best": 4, "diversity": {"groups": 2}},
    ):
        assert not engine._fits_kernel(REQUESTS, DecodingConfig.model_validate(options))
    assert not engine._fits_kernel([Request((4, 3), prefix=(5,))], GREEDY)
    assert not engine._fits_kernel([Request(())], GREEDY)


class _LaterConfig(DecodingConfig):
    a_new_setting: float = 0.0


def test_a_setting_that_the_kernel_and_the_shortlist_do_not_know_takes_the_general_search() -> None:
    engine, requests = engine_of({}), [Request((4, 3))] * 40
    for value in (0.0, 0.5):
        options = _LaterConfig(beam_size=1, a_new_setting=value)
        assert engine._fits_kernel(requests, options) == (value == 0.0)
        assert engine._fits_shortlist(requests, options) == (value == 0.0)


@pytest.mark.long
@pytest.mark.parametrize(
    "settings",
    [
        {"max_length": 7},
        {"max_length_ratio": 0.1},
        {"min_length": 15},
        {"allow_unknown": True},
        {"length_normalization": "average", "length_penalty": 0.3},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_settings_of_decoding_hold(settings: dict[str, Any]) -> None:
    options = DecodingConfig.model_validate({"beam_size": 1, **settings})
    found = assert_as_step_by_step(engine_of({"decoder_layer": "ssru"}), options)
    lengths = [len(one.ids) for [one] in found]
    assert min(lengths) >= settings.get("min_length", 1)
    assert max(lengths) <= settings.get("max_length", 100)


@pytest.mark.long
def test_more_sentences_than_a_call_takes_and_a_long_source() -> None:
    requests = [*requests_of(2 * native_search._MOST_ROWS + 3), Request((*[5] * 600, 3))]
    engine = engine_of({"encoder_layers": 1})
    options = DecodingConfig(beam_size=1, max_length=12)
    assert_as_step_by_step(engine, options, requests)
    options = DecodingConfig(beam_size=native_search._MOST_ROWS // 3, max_length=12)
    assert_as_step_by_step(engine, options, requests[-7:])


def test_no_character_is_broken() -> None:
    bytes_of_characters = [*range(0x80, 0xC0), *range(0xC2, 0xF5), *range(0x20, 0x7F)]
    pieces = [b"", b"", b"", b"", *(bytes([byte]) for byte in bytes_of_characters)][:VOCABULARY]
    engine = replace(engine_of({}), byte_pieces=BytePieces.of(pieces))
    assert_as_step_by_step(engine, DecodingConfig(beam_size=4, num_best=4, max_length=9))
    found = assert_as_step_by_step(engine, DecodingConfig(beam_size=1, max_length=9))
    texts = [b"".join(pieces[one] for one in hypothesis.ids) for [hypothesis] in found]
    assert any(text.decode() and not text.isascii() for text in texts)


@pytest.mark.long
@pytest.mark.parametrize("copies", [False, True], ids=["translations", "copies, too"])
def test_a_shortlist_hides_the_tokens_of_other_sentences(copies: bool) -> None:
    starts = np.arange(VOCABULARY + 1) * 4
    translations = np.random.default_rng(1).integers(4, VOCABULARY, 4 * VOCABULARY)
    always = np.array([0, 1, 2, 3, 9])
    shortlist = Shortlist(starts, translations, always, VOCABULARY, 3, copies=copies, name="some")
    pieces = [b"", b"", b"", b"", *(bytes([0x30 + one]) for one in range(VOCABULARY - 4))]
    engine = engine_of({"decoder_layer": "ssru"})
    special = SPECIAL._replace(tag_ids=(140,))
    with_bytes = replace(engine, special_ids=special, byte_pieces=BytePieces.of(pieces))
    for one in (engine, with_bytes):
        restricted = replace(one, shortlist=shortlist)
        for options in (GREEDY, DecodingConfig(beam_size=4, num_best=3, min_length=4)):
            found = assert_as_step_by_step(restricted, options, REQUESTS[:5])
            assert found != one.translate(REQUESTS[:5], options)
            for request, hypotheses in zip(REQUESTS, found, strict=False):
                allowed = set(shortlist.of(request.ids).tolist())
                assert all(set(each.ids) <= allowed for each in hypotheses)


def test_sentences_with_a_shortlist_are_searched_by_few() -> None:
    always = np.arange(40)
    starts = np.arange(VOCABULARY + 1)
    shortlist = Shortlist(starts, starts[:-1], always, VOCABULARY, 1, copies=False, name="some")
    engine = replace(engine_of({"encoder_layers": 1}), shortlist=shortlist)
    requests = sorted(requests_of(40), key=lambda one: len(one.ids), reverse=True)
    options = DecodingConfig(beam_size=1, max_length=8)
    found = engine.translate(requests, options)
    most = native_search._MOST_WITH_SHORTLIST
    by_few = (engine.translate(requests[one : one + most], options) for one in range(0, 40, most))
    assert found == [one for each in by_few for one in each]


@pytest.mark.long
def test_each_call_follows_its_own_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_search, "_MOST_RULES", 2)
    engine = engine_of({"decoder_layer": "ssru"})
    assert engine.native_search is not None
    rules = [
        (engine, {"allow_unknown": True}),
        (engine, {"allow_unknown": False}),
        (replace(engine, special_ids=SPECIAL._replace(tag_ids=(122, 136))), {}),
        (replace(engine, special_ids=SPECIAL._replace(tag_ids=(13,))), {}),
    ]
    for _ in range(2):
        found = []
        for one, settings in rules:
            options = DecodingConfig.model_validate({"beam_size": 1, **settings})
            found.append(assert_as_step_by_step(one, options))
        assert found[2] != found[3]
    assert len(engine.native_search.searches) <= 2


def test_several_threads_share_the_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of({})
    expected = engine.translate(REQUESTS, GREEDY)
    parts: list[tuple[int, int]] = []

    def in_two(size: int, work: int, compute: Callable[[int, int], int]) -> None:
        parts.extend([(0, size // 2), (size // 2, size)])
        assert not any(compute(*part) for part in parts)

    monkeypatch.setattr(native_search, "in_parts", in_two)
    assert engine.translate(REQUESTS, GREEDY) == expected
    assert parts == [(0, 10), (10, 20)]


def test_one_large_sentence_is_left_to_threads_that_share_its_products(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    search = engine_of({}).native_search
    assert search is not None
    assert search.is_worth_it([10**6])
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert not search.is_worth_it([10**6])
    assert search.is_worth_it([10**6, 10**6])
    assert search.is_worth_it([30])


@pytest.mark.long
@pytest.mark.parametrize("beam_size", [1, 3])
def test_unwanted_sentences_end_and_the_others_stay(beam_size: int) -> None:
    engine, gone = engine_of({}), list[Request]()
    options = DecodingConfig(beam_size=beam_size, min_length=30)

    def leaving() -> Collection[Request]:
        if len(gone) < 3:
            gone.append(REQUESTS[len(gone)])
        return gone

    found = engine.interruptible(leaving).translate(REQUESTS, options)
    whole = engine.translate(REQUESTS, options)
    assert gone == REQUESTS[:3]
    assert found[3:] == whole[3:]
    assert found[:3] == [[], [], []]


def test_another_search_may_run_in_the_middle_of_one() -> None:
    engine = engine_of({"decoder_layer": "ssru"})
    expected = engine.translate(REQUESTS, GREEDY)
    found: list[list[list[Hypothesis]]] = []

    def asked() -> Collection[Request]:
        if len(found) < 2:
            found.append(engine.translate(REQUESTS[3:5], GREEDY))
        return ()

    assert engine.interruptible(asked).translate(REQUESTS, GREEDY) == expected
    assert found == [expected[3:5]] * 2


def test_an_error_of_the_question_stops_the_search() -> None:
    def failing() -> Collection[Request]:
        raise LookupError("nobody is there")

    with pytest.raises(LookupError, match="nobody is there"):
        engine_of({}).interruptible(failing).translate(REQUESTS, GREEDY)


def test_a_source_longer_than_the_learned_positions_is_refused() -> None:
    engine = engine_of({"positions": "learned"})
    with pytest.raises(DataError, match="has learned only 60 positions"):
        engine.translate([Request((*[5] * 61, 3))], GREEDY)


@pytest.mark.parametrize("width", [8, 24, 64])
def test_a_step_of_an_ssru_is_that_of_the_module(kernels: Kernels, width: int) -> None:
    torch.manual_seed(1)
    ssru = SSRU(ModelConfig(d_model=width, num_heads=1, decoder_layer="ssru"))
    states = None
    for step in range(3):
        x = 20.0 * torch.randn(5, width)
        x[0, 0] = torch.nan if step == 2 else 0.0
        with torch.no_grad():
            expected, cells = ssru.step(x[:, None], states)
            projected = torch.cat([ssru.input(x), ssru.forget_gate(x)], dim=1)
        new, found = native_recurrence(kernels, projected, states)
        for ours, theirs in ((found, expected[:, 0]), (new, cells)):
            torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6, equal_nan=True)
        states = cells


def test_gates_far_from_zero_are_0_and_1(kernels: Kernels) -> None:
    gates = torch.tensor([[-1e30, -100.0, 0.0, 100.0, 1e30, torch.inf, -torch.inf, torch.nan]])
    projected = torch.cat([torch.ones(1, 8), gates], dim=1)
    _, found = native_recurrence(kernels, projected, None)
    torch.testing.assert_close(found, 1.0 - gates.sigmoid(), rtol=1e-6, atol=0.0, equal_nan=True)


def test_a_layer_of_some_outputs_has_the_bits_of_a_layer_made_of_their_rows() -> None:
    layer = nn.Linear(30, 150)
    ids = torch.tensor([149, 3, *range(60, 140)])
    whole = prepare_quantised([layer])
    assert isinstance(whole, NativeLinear)
    part = nn.Linear(30, len(ids))
    x = torch.randn(7, 30)
    with torch.no_grad():
        part.weight.copy_(layer.weight[ids])
        part.bias.copy_(layer.bias[ids])
    with torch.inference_mode():
        assert torch.equal(whole.with_outputs(ids)(x), prepare_quantised([part])(x))
        assert torch.equal(whole.with_outputs(ids)(x), whole(x)[:, ids])


def test_penalties_for_one_length_are_those_of_the_search() -> None:
    for normalization in ("gnmt", "average"):
        options = DecodingConfig(length_normalization=normalization, length_penalty=0.7)
        expected = length_penalties(40, options, torch.zeros(1))
        assert penalties_up_to(40, normalization, 0.7).tolist() == expected.tolist()
