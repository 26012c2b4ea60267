"""The engine of a request: it asks the batcher of the server, so that sentences of several requests are one batch."""

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding import (
    Engine,
    ExplainingEngine,
    Explanation,
    Hypothesis,
    InterruptibleEngine,
    Request,
    TokenIds,
)
from transformer_cli.extensions.serving.batching.batcher import Batcher
from transformer_cli.extensions.serving.batching.jobs import Job
from transformer_cli.extensions.serving.batching.kinds import Kind
from transformer_cli.extensions.serving.batching.result_cache import Key, ResultCache, key_of
from transformer_cli.process.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor

# A long document asks for so many sentences at once, so that it does not hold up short requests.
_SENTENCES_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class SharedEngine:
    """An engine that many requests use together; see `for_job`."""

    engine: Engine
    model_digest: str
    """What tells this model from all other models of the server."""
    batcher: Batcher
    cache: ResultCache

    def for_job(self, job: Job, ready: Callable[[], None]) -> "EngineOfJob":
        """The engine with which the thread of a job translates.

        Args:
            ready: called when the first sentences of the job are prepared.
        """
        return EngineOfJob(self, job, ready)


@dataclass(frozen=True, slots=True)
class EngineOfJob:
    """An `ExplainingEngine` for the thread of one job: it waits for the batcher, and ends when the job is cancelled."""

    shared: SharedEngine
    job: Job
    ready: Callable[[], None]

    def translate(
        self, requests: Sequence[Request], options: DecodingConfig
    ) -> list[list[Hypothesis]]:
        """See `Engine.translate`."""
        shared, conditions = self.shared, search_conditions(self.shared.model_digest, options)
        keys = [key_of(conditions, tuple(request)) for request in requests]
        found: dict[Key, Sequence[Hypothesis]] = {}
        missing: dict[Key, Request] = {}
        for key, request in zip(keys, requests, strict=True):
            if key in found or key in missing:
                continue
            cached = shared.cache.get(key)
            if cached is None:
                missing[key] = request
            else:
                found[key] = cached
        if missing:
            kind = _translation(shared.engine, conditions, options)
            self.ready()
            for some in _in_turns(missing):
                results = shared.batcher.results(kind, some, self.job)
                for key, hypotheses in results.items():
                    shared.cache.put(key, hypotheses, _num_bytes(hypotheses))
                found |= results
        self.job.check()
        return [list(found[key]) for key in keys]

    def negative_log_likelihood(
        self, sources: Sequence[TokenIds], targets: Sequence[TokenIds], *, batch_tokens: int
    ) -> float:
        """See `Engine.negative_log_likelihood`; it is computed in the thread of the job."""
        engine = self.shared.engine
        return engine.negative_log_likelihood(sources, targets, batch_tokens=batch_tokens)

    def next_token_probabilities(self, source: TokenIds, prefix: TokenIds) -> "Tensor":
        """See `Engine.next_token_probabilities`; it is computed in the thread of the job."""
        return self.shared.engine.next_token_probabilities(source, prefix)

    def explain(
        self,
        requests: Sequence[Request],
        targets: Sequence[TokenIds],
        *,
        batch_tokens: int,
        num_best: int = 0,
    ) -> list[Explanation]:
        """See `ExplainingEngine.explain`."""
        engine = self.shared.engine
        if not isinstance(engine, ExplainingEngine):
            raise UsageError("this engine gives no probabilities and no attention weights")

        def explained(batch: Sequence[tuple[Request, TokenIds]]) -> list[Explanation]:
            of_batch, their_targets = [one for one, _ in batch], [target for _, target in batch]
            return engine.explain(
                of_batch, their_targets, batch_tokens=batch_tokens, num_best=num_best
            )

        kind = Kind(
            num_best,
            "explain",
            explained,
            lambda pair: max(len(pair[0].ids), len(pair[1])),
            batch_tokens,
        )
        pairs = list(zip(requests, targets, strict=True))
        self.ready()
        results = self.shared.batcher.results(kind, dict(zip(pairs, pairs, strict=True)), self.job)
        return [results[pair] for pair in pairs]


def _translation(engine: Engine, conditions: bytes, options: DecodingConfig) -> Kind:
    """The work of translating requests with one engine and the same options."""

    def compute_wanted(
        requests: Sequence[Request], unwanted: Callable[[], Collection[Request]]
    ) -> list[list[Hypothesis]]:
        assert isinstance(engine, InterruptibleEngine)
        return engine.interruptible(unwanted).translate(requests, options)

    kind = Kind(
        conditions,
        "translate",
        lambda requests: engine.translate(requests, options),
        lambda request: len(request.ids),
        options.batch_tokens,
    )
    if not isinstance(engine, InterruptibleEngine):
        return kind
    return replace(kind, compute_wanted=compute_wanted, max_items=engine.max_sentences(options))


def _in_turns(requests: Mapping[Key, Request]) -> Iterator[dict[Key, Request]]:
    """Requests of similar length, some at a time: between them, sentences of other jobs have their turn."""
    by_length = sorted(requests.items(), key=lambda item: len(item[1].ids))
    for start in range(0, len(by_length), _SENTENCES_AT_ONCE):
        yield dict(by_length[start : start + _SENTENCES_AT_ONCE])


def _num_bytes(hypotheses: Sequence[Hypothesis]) -> int:
    """About the memory of hypotheses."""
    return 300 + sum(200 + 40 * len(hypothesis.ids) for hypothesis in hypotheses)


@lru_cache(maxsize=1024)
def search_conditions(model_digest: str, options: DecodingConfig) -> bytes:
    """The hash of a model and of settings of decoding."""
    return hashlib.blake2b(
        f"{model_digest}\n{options.model_dump_json()}".encode(), digest_size=16
    ).digest()
