"""The engine of a request, over a real model: what clients leave behind is not computed to its end."""

import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pytest

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding import Engine, Hypothesis, Request
from transformer_cli.decoding.pytorch_engine import PyTorchEngine
from transformer_cli.extensions.serving.batcher import DeadlinePassed, Job, JobCancelled

from .served_translators import small_runs, small_translator

MANY = 3000


@dataclass(frozen=True, slots=True)
class Counting(PyTorchEngine):
    """Counts the steps of all searches."""

    steps: list[int] = None  # type: ignore[assignment]

    def max_sentences(self, options: DecodingConfig) -> int:
        return 1000

    def interruptible(self, unwanted: Callable[[], Collection[Request]]) -> "Counting":
        def counted() -> Collection[Request]:
            self.steps[0] += 1
            return unwanted()

        return replace(self, unwanted=counted)


@pytest.mark.long
@pytest.mark.parametrize("ending", ["cancelled", "too late"])
def test_the_search_for_a_client_that_has_left_ends_soon(ending: str) -> None:
    made = small_translator(max_length=MANY, min_length=MANY)
    engine = made.engine
    assert isinstance(engine, PyTorchEngine)
    fields = {name: getattr(engine, name) for name in PyTorchEngine.__dataclass_fields__}
    counting = Counting(**fields, steps=[0])
    runs = small_runs(replace(made, engine=counting))
    try:
        [direction] = runs.directions.values()
        job = Job(60.0 if ending == "cancelled" else 0.3)
        with ThreadPoolExecutor(1) as threads:
            shared = direction.shared.for_job(job, lambda: None)
            found = threads.submit(shared.translate, [Request((4, 5))], made.decoding)
            while counting.steps[0] < 5:
                time.sleep(0.001)
            if ending == "cancelled":
                job.cancel()
            with pytest.raises(JobCancelled if ending == "cancelled" else DeadlinePassed):
                found.result(60.0)
            while direction.shared.batcher.counts.num_batches == 0:
                time.sleep(0.001)
        assert counting.steps[0] < MANY - 1
    finally:
        runs.close()


def test_an_engine_that_cannot_stop_is_used_as_it_is() -> None:
    class Plain:
        def translate(self, requests: list[Request], options: DecodingConfig) -> list[list[Hypothesis]]:
            return [[Hypothesis(request.ids, -1.0)] for request in requests]

    plain: Engine = Plain()  # type: ignore[assignment]
    runs = small_runs(replace(small_translator(), engine=plain))
    try:
        [direction] = runs.directions.values()
        shared = direction.shared.for_job(Job(60.0), lambda: None)
        assert shared.translate([Request((7,))], direction.translator.decoding) == [[Hypothesis((7,), -1.0)]]
    finally:
        runs.close()
