"""The state of a server: whether it lives, whether it is ready, and its metrics in the text format of Prometheus."""

import os
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from transformer_cli.extensions.serving.batcher import Batcher
from transformer_cli.extensions.serving.limits import RefusedRequest
from transformer_cli.extensions.serving.request_values import ApiKeys, key_in_header
from transformer_cli.extensions.serving.service import TranslationService

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_OTHER = "other"


class ServerMetrics:
    """Counts requests; `lines` adds what the service and the operating system know."""

    def __init__(self, service: TranslationService) -> None:
        self._service = service
        self._paths: list[str] = []
        self._requests: Counter[tuple[str, int]] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._in_bucket: Counter[tuple[str, int]] = Counter()
        self._started_at = time.time()

    def name_paths(self, paths: Iterable[str]) -> None:
        """Name the routes of the server: a request to another path counts as one of `other`."""
        self._paths = [path.partition("{")[0] for path in paths]

    def observe(self, path: str, status: int, seconds: float) -> None:
        """Count a request that is answered; the status 0 means that nothing was answered."""
        label = self._label(path)
        self._requests[label, status] += 1
        self._seconds[label] += seconds
        self._in_bucket[label, bisect_left(_BOUNDS, seconds)] += 1

    def text(self) -> str:
        """All metrics."""
        return "\n".join([*self._lines(), ""])

    def _label(self, path: str) -> str:
        """One of the routes, so that clients cannot make new labels."""
        if path in self._paths:
            return path
        folders = (each for each in self._paths if len(each) > 1 and each.endswith("/"))
        return next((each for each in folders if path.startswith(each)), _OTHER)

    def _lines(self) -> Iterator[str]:
        requests = {
            f'path="{path}",status="{status}"': count for (path, status), count in sorted(self._requests.items())
        }
        yield from _metric("tfm_requests_total counter Requests that were answered.", requests)
        yield from self._histogram()
        service = self._service
        single = {
            "tfm_ready gauge Whether the models are loaded.": int(service.is_ready),
            "tfm_requests_active gauge Requests that are translated or wait for it.": service.num_active,
            "tfm_requests_refused_total counter Requests that were refused because too many waited.": service.num_refused,
            "tfm_characters_total counter Characters of texts that were translated.": service.num_characters,
            "process_start_time_seconds gauge When the process started, in seconds since 1970.": round(
                self._started_at, 3
            ),
            "process_cpu_seconds_total counter CPU seconds of the process.": round(time.process_time(), 3),
            "process_resident_memory_bytes gauge Memory of the process.": resident_bytes(),
        }
        for described, value in single.items():
            yield from _metric(described, {"": value})
        if service.is_ready:
            yield from self._lines_of_runs()

    def _histogram(self) -> Iterator[str]:
        name = "tfm_request_seconds"
        yield f"# HELP {name} Seconds from the head of a request to the end of its answer."
        yield f"# TYPE {name} histogram"
        for path in sorted(self._seconds):
            total = 0
            for number, bound in enumerate((*_BOUNDS, "+Inf")):
                total += self._in_bucket[path, number]
                yield f'{name}_bucket{{path="{path}",le="{bound}"}} {total}'
            yield f'{name}_sum{{path="{path}"}} {self._seconds[path]:.6f}'
            yield f'{name}_count{{path="{path}"}} {total}'

    def _lines_of_runs(self) -> Iterator[str]:
        runs = self._service.runs
        cache = runs.cache
        single = {
            "tfm_cache_hits_total counter Results that were in the cache.": cache.num_hits,
            "tfm_cache_misses_total counter Results that were not in the cache.": cache.num_misses,
            "tfm_cache_bytes gauge About the memory of the cache.": cache.num_bytes,
        }
        for described, value in single.items():
            yield from _metric(described, {"": value})
        batchers = {f'run="{run}"': batcher for run, batcher in runs.batchers.items()}
        batcher_measures: dict[str, Callable[[Batcher], float]] = {
            "tfm_batches_total counter Batches that were computed.": lambda one: one.counts.num_batches,
            "tfm_sentences_total counter Sentences that were computed.": lambda one: one.counts.num_items,
            "tfm_tokens_total counter Source tokens that were computed.": lambda one: one.counts.num_tokens,
            "tfm_busy_seconds_total counter Seconds in which the engine computed.": lambda one: one.counts.busy_seconds,
            "tfm_sentences_waiting gauge Sentences that wait for a batch.": lambda one: one.num_pending,
        }
        for described, measure in batcher_measures.items():
            yield from _metric(described, {run: measure(one) for run, one in batchers.items()})


def _metric(described: str, values: Mapping[str, float]) -> Iterator[str]:
    """The lines of a metric, which is described by its name, its kind and its meaning."""
    name, kind, meaning = described.split(" ", 2)
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"
    for labels, value in values.items():
        yield f"{name}{{{labels}}} {value}" if labels else f"{name} {value}"


def resident_bytes() -> int:
    """The memory of this process; 0 where the operating system does not say it in /proc."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def state_routes(service: TranslationService, keys: ApiKeys, metrics: ServerMetrics) -> list[Route]:
    """GET /health, /ready and /metrics."""

    async def health(request: Request) -> Response:
        """GET /health: 200 as long as the process answers."""
        return JSONResponse({"status": "ok"})

    async def ready(request: Request) -> Response:
        """GET /ready: 200 when the models are loaded, 503 before."""
        if service.is_ready:
            return JSONResponse({"status": "ready"})
        return JSONResponse({"status": "loading"}, 503, headers={"Retry-After": "5"})

    async def show_metrics(request: Request) -> Response:
        """GET /metrics: for Prometheus, with `Authorization: Bearer KEY` if the server needs keys."""
        key = key_in_header(request.headers.get("authorization", ""))
        headers = {"WWW-Authenticate": "Bearer"}
        await keys.check(request, key, RefusedRequest(401, "An API key is needed", headers=headers))
        return Response(metrics.text(), media_type=CONTENT_TYPE)

    return [
        Route("/health", health, methods=["GET"]),
        Route("/ready", ready, methods=["GET"]),
        Route("/metrics", show_metrics, methods=["GET"]),
    ]
