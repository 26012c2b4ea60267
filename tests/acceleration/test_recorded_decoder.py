"""Recorded steps of a search give the scores of the steps that run one by one; in most tests a "recording" is the Python code itself."""

import threading
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from transformer_cli.acceleration import accelerate, recorded_decoder
from transformer_cli.acceleration.accelerate import TransformerOnGpu, with_cast_layers
from transformer_cli.acceleration.cpu_training import with_tokens_in_all
from transformer_cli.acceleration.recorded_decoder import RecordedSteps
from transformer_cli.acceleration.recorded_passes import Record, Work
from transformer_cli.config import DecodingConfig
from transformer_cli.config.decoding import SamplingConfig
from transformer_cli.decoding.engine import Request, SpecialIds
from transformer_cli.decoding.pytorch_engine import PyTorchEngine
from transformer_cli.model.transformer import DecoderState
from transformer_cli.process.device import Machine
from transformer_cli.process.errors import DataError
from transformer_cli.text import SequenceFormat

from ..imitated_gpu.recorded_operations import Recording
from ..model.samples import SOURCE_VOCAB_SIZE, TARGET_VOCAB_SIZE, small_model

GPU = torch.device("meta")  # any device but a CPU; the parameters stay on the CPU
VARIANTS: list[dict[str, Any]] = [
    {},
    {"num_kv_heads": 1, "qk_norm": True, "positions": "rotary"},
    {"positions": "learned", "max_length": 100, "norm_placement": "post"},
    {"decoder_layer": "ssru", "embedding_norm": True},
    {"positions": "none", "tie_embeddings": "target-output", "norm": "rmsnorm"},
    {"positions": "sinusoidal_marian", "scale_embeddings": True},
]


def run_each_time(work: Work) -> Work:
    """As a recorder of CUDA graphs: the work is done once before the first repetition."""
    work()
    return work


def record(device: torch.device) -> Record:
    return run_each_time


@pytest.fixture(autouse=True)
def _recordings_begin_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_decoder, "USES_BEFORE_RECORDING", 2)


def gpu_model(**settings: Any) -> TransformerOnGpu:
    torch.manual_seed(3)
    model = accelerate(small_model(torch.float64, **settings), GPU)
    assert isinstance(model, TransformerOnGpu)
    return model


def sources(*lengths: int) -> tuple[Tensor, Tensor | None]:
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    ids = torch.randint(2, SOURCE_VOCAB_SIZE, mask.shape).where(mask, 1)
    return ids, None if mask.all() else with_tokens_in_all(mask)


def scores_of(state: DecoderState, num_sentences: int, num_steps: int) -> list[Tensor]:
    """The scores of a made-up search: beams of three; rows move in each step, and sentences end."""
    random, found = torch.Generator().manual_seed(5), list[Tensor]()

    def ids(number: int) -> Tensor:
        return torch.randint(2, TARGET_VOCAB_SIZE, (number,), generator=random)

    found.append(state.advance(ids(num_sentences)).clone())
    state.select(torch.arange(num_sentences).repeat_interleave(3))
    for step in range(num_steps):
        found.append(state.advance(ids(3 * num_sentences)).clone())
        within = torch.randint(3, (num_sentences, 3), generator=random)
        rows = 3 * torch.arange(num_sentences)[:, None] + within
        is_last = step % 4 == 3 and num_sentences > 1
        if is_last:
            num_sentences -= 1
            rows = rows[torch.randperm(num_sentences + 1, generator=random)[:num_sentences]]
        if step % 3 or is_last:
            state.select(rows.flatten(), keeps_sources=not is_last)
    return found


@pytest.mark.long
@pytest.mark.parametrize("settings", VARIANTS, ids=str)
@pytest.mark.parametrize("lengths", [(5, 3, 4, 5), (4, 4)], ids=str)
def test_a_recorded_step_has_the_scores_of_a_step_that_runs_alone(
    settings: dict[str, Any], lengths: tuple[int, ...]
) -> None:
    model = gpu_model(**settings)
    source_ids, mask = sources(*lengths)
    recorded = RecordedSteps(model, record)
    with torch.inference_mode():
        memory = model.encode(source_ids, mask)
        for num_steps in (20, 8):  # the second search finds what the first one has left
            wanted = scores_of(model.start_decoding(memory, mask), len(lengths), num_steps)
            found = scores_of(recorded.start(memory, mask), len(lengths), num_steps)
            for ours, theirs in zip(found, wanted, strict=True):
                torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("settings", VARIANTS[::3], ids=str)
def test_the_last_rows_stay_when_the_first_sentences_end(settings: dict[str, Any]) -> None:
    """The row that goes on has a number that the next recording, which is for fewer rows, does not have."""
    model, random = gpu_model(**settings), torch.Generator().manual_seed(1)
    (source_ids, mask), kept = sources(3, 5, 4, 5, 2), torch.tensor([4, 4, 3])
    with torch.inference_mode():
        memory = model.encode(source_ids, mask)
        both = RecordedSteps(model, record).start(memory, mask), model.start_decoding(memory, mask)
        for step in range(9):
            ids = torch.randint(2, TARGET_VOCAB_SIZE, (5 if step < 4 else 3,), generator=random)
            found, wanted = (one.advance(ids) for one in both)
            torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)
            if step in (3, 6):
                for one in both:
                    one.select(kept if step == 3 else torch.tensor([2, 2, 0]), keeps_sources=False)


@pytest.mark.long
def test_buffers_grow_with_the_number_of_tokens_rows_and_source_tokens() -> None:
    model, recorded = gpu_model(), RecordedSteps(gpu_model(), record)
    for lengths, num_steps in (
        ((3, 2), 3),
        ((70, 9, 8, 5, 4, 3, 2, 1, 1, 1, 1, 1), 2),
        ((4, 6), 90),
    ):
        source_ids, mask = sources(*lengths)
        with torch.inference_mode():
            memory = model.encode(source_ids, mask)
            wanted = scores_of(model.start_decoding(memory, mask), len(lengths), num_steps)
            found = scores_of(recorded.start(memory, mask), len(lengths), num_steps)
        for ours, theirs in zip(found, wanted, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def test_buffers_that_grow_need_a_new_recorder() -> None:
    """On an H100 with PyTorch 2.11, to record in memory whose recordings are all gone was an internal error of PyTorch."""
    recorders = list[dict[str, int]]()

    def recorder_on(device: torch.device) -> Record:
        recorders.append({"recordings": 0})
        mine = recorders[-1]

        def record(work: Work) -> Work:
            assert mine is recorders[-1]
            mine["recordings"] += 1
            work()
            return work

        return record

    model = gpu_model()
    steps = RecordedSteps(model, recorder_on)
    with torch.inference_mode():
        for lengths in ((3, 2), (70, 3), (200, 3), (4, 4)):
            source_ids, mask = sources(*lengths)
            scores_of(steps.start(model.encode(source_ids, mask), mask), 2, 6)
    assert [one["recordings"] > 0 for one in recorders] == [True, True, True]


@pytest.mark.long
def test_nearly_all_steps_are_repetitions_and_a_shape_is_recorded_once() -> None:
    recorded_shapes, num_repeated = [], 0

    def counting(work: Work) -> Work:
        recorded_shapes.append(work)

        def repeat() -> None:
            nonlocal num_repeated
            num_repeated += 1
            work()

        work()
        return repeat

    model = gpu_model()
    steps, (source_ids, mask) = RecordedSteps(model, lambda device: counting), sources(5, 3)
    with torch.inference_mode():
        memory = model.encode(source_ids, mask)
        for _ in range(3):
            scores_of(steps.start(memory, mask), 2, 20)
    assert len(recorded_shapes) == 2  # of eight rows, and of four when a sentence has ended
    assert num_repeated == 3 * 20 - 2 * 1


def engine_of(model: TransformerOnGpu, device: str = "cpu") -> PyTorchEngine:
    machine = Machine(torch.device(device), torch.float32 if device == "cpu" else torch.bfloat16)
    return PyTorchEngine(model, SpecialIds(0, 1, 2, 3), SequenceFormat(), machine)


SEARCHES = {
    "greedy": DecodingConfig(beam_size=1, max_length=20),
    "beam": DecodingConfig(beam_size=4, max_length=20, length_penalty=0.6),
    "sampling": DecodingConfig(beam_size=1, max_length=20, sampling=SamplingConfig(top_k=3)),
}


@pytest.mark.long
@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_finds_the_same(name: str) -> None:
    engine = engine_of(gpu_model())
    requests = [Request((4, 5, 6, 7)[:length]) for length in (4, 2, 3, 1, 4)]
    requests = [*requests, Request(())]  # a source without tokens takes steps that run alone
    with_recordings = replace(engine, recorded=RecordedSteps(gpu_model(), record))
    for chosen in (requests, requests[:-1], requests[:1]):
        ours, theirs = (one.translate(chosen, SEARCHES[name]) for one in (with_recordings, engine))
        assert [[one.ids for one in some] for some in ours] == [[one.ids for one in some] for some in theirs]
        assert [one.score for some in ours for one in some] == pytest.approx(
            [one.score for some in theirs for one in some], rel=1e-9
        )


def test_each_thread_has_buffers_of_its_own() -> None:
    engine = engine_of(gpu_model())
    with_recordings = replace(engine, recorded=RecordedSteps(gpu_model(), record))
    texts = [[Request((4 + number, 5, 6)), Request((7, 5 + number))] for number in range(4)]
    wanted = [engine.translate(one, SEARCHES["beam"]) for one in texts]
    found: dict[int, Any] = {}

    def translate(number: int) -> None:
        for _ in range(3):
            found[number] = with_recordings.translate(texts[number], SEARCHES["beam"])

    threads = [threading.Thread(target=translate, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    for number, expected in enumerate(wanted):
        assert [one.ids for some in found[number] for one in some] == [one.ids for some in expected for one in some]


def test_more_tokens_than_learned_positions_are_the_same_error() -> None:
    model = gpu_model(positions="learned", max_length=6)
    source_ids, mask = sources(3)
    with torch.inference_mode():
        state = RecordedSteps(model, record).start(model.encode(source_ids, mask), mask)
        for _ in range(6):
            state.advance(torch.tensor([4]))
        with pytest.raises(DataError, match="7 tokens, but this model has learned only 6 positions"):
            state.advance(torch.tensor([4]))


@pytest.mark.gpu
@pytest.mark.parametrize("settings", VARIANTS, ids=str)
def test_cuda_graphs_of_steps_find_what_steps_that_run_alone_find(settings: dict[str, Any]) -> None:
    torch.manual_seed(3)
    wide = {"d_model": 64, "num_heads": 2, "max_length": 100}
    plain = accelerate(small_model(torch.float32, **(wide | settings)), torch.device("cuda"))
    alone = engine_of(with_cast_layers(plain.cuda(), torch.bfloat16), "cuda")  # type: ignore[arg-type]
    prepared = replace(engine_of(plain, "cuda"), records_steps=True).prepared()  # type: ignore[arg-type]
    assert prepared.recorded is not None
    for name in ("greedy", "beam"):
        for longest in (9, 9, 70, 140):  # the buffers grow for the longer ones
            requests = [Request(tuple(4 + (n + i) % 6 for i in range(1 + n % longest))) for n in range(23)]
            ours, theirs = (one.translate(requests, SEARCHES[name]) for one in (prepared, alone))
            is_equal = [
                [one.ids for one in some] == [one.ids for one in others]
                for some, others in zip(ours, theirs, strict=True)
            ]
            assert sum(is_equal) >= 21  # near ties may be decided by rounding
            for some, others in zip(ours, theirs, strict=True):
                assert some[0].score == pytest.approx(others[0].score, rel=0.05, abs=0.05)


@pytest.mark.long
def test_a_step_reads_no_value_and_copies_nothing_from_the_cpu() -> None:
    """A recording of CUDA could do neither. Tensors of the device meta have no values at all."""
    num_recorded = 0

    def watched(work: Work) -> Work:
        nonlocal num_recorded
        num_recorded += 1
        with Recording():
            work()
        return work

    for settings in VARIANTS:
        model, (source_ids, mask) = gpu_model(**settings).to("meta"), sources(5, 3)
        assert mask is not None
        of_meta = with_tokens_in_all(mask.to("meta"))
        with torch.no_grad():  # inference mode would not take operations apart
            state = RecordedSteps(model, lambda device: watched).start(
                model.encode(source_ids.to("meta"), of_meta), of_meta
            )
            for _ in range(4):
                state.advance(torch.zeros(2, dtype=torch.int64, device="meta"))
                state.select(torch.arange(2, device="meta"), keeps_sources=True)
    assert num_recorded == len(VARIANTS)
