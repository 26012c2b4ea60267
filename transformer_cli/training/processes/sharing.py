"""What several processes agree on and share: the settings, the prepared data, the micro-batches of an update, translations."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.config import Config, DecodingConfig, TrainingConfig
from transformer_cli.config.section import flat_settings
from transformer_cli.data.preparation import PreparedData, open_shared
from transformer_cli.decoding import Engine, Hypothesis, Request, TokenIds
from transformer_cli.process.errors import ConfigError
from transformer_cli.storage.lock import read_holder
from transformer_cli.training.config_changes import as_written
from transformer_cli.training.processes.process_group import Processes
from transformer_cli.training.progress import Progress, is_finished

OF_ONE_MACHINE = ("data.root", "runtime.threads", "runtime.workers")
"""These may differ between machines: they change no result."""
_MOST_SHOWN = 5


def require_same_settings(config: Config, processes: Processes, *, from_scratch: bool) -> None:
    """Compare the settings of all processes, before the first of them reads data or trains.

    With different settings the processes would compute with different models, or wait for each other for ever.

    Raises:
        ConfigError: a setting differs between rank 0 and another rank; all processes raise it.
    """
    own = flat_settings(config.model_dump(mode="json")) | {"--from-scratch": from_scratch}
    for name in OF_ONE_MACHINE:
        own.pop(name, None)
    of_main, *others = processes.gathered(own)
    for rank, of_other in enumerate(others, start=1):
        names = sorted(
            name
            for name in of_main.keys() | of_other.keys()
            if of_main.get(name) != of_other.get(name)
        )
        if names:
            lines = [
                f"\n    {name}: {as_written(of_main.get(name))} in rank 0, {as_written(of_other.get(name))} in rank {rank}"
                for name in names[:_MOST_SHOWN]
            ]
            if len(names) > _MOST_SHOWN:
                lines.append(f"\n    and {len(names) - _MOST_SHOWN} more")
            raise ConfigError(
                f"the processes were started with different settings:{''.join(lines)}",
                hint="start all processes with the same command and the same config file; on several machines, copy the "
                f"file to each of them. Only {', '.join(OF_ONE_MACHINE)} may differ",
            )


MAX_DELAY_SECONDS = 10.0
"""A network file system may show a new file to other machines only after some seconds."""


def data_of_main(
    prepare: Callable[[], PreparedData], config: Config, folder: RunFolder, processes: Processes
) -> PreparedData:
    """Rank 0 prepares the data; the other processes wait, then open the same files.

    Raises:
        ConfigError: a process does not see the run folder of rank 0.
    """
    data = prepare() if processes.is_main else None
    told = processes.from_main(
        lambda: (
            {"fingerprint": dict(data.fingerprint), "holder": read_holder(folder.path)}
            if data
            else None
        )
    )
    if data is not None:
        return data
    stop_at = time.monotonic() + MAX_DELAY_SECONDS
    while read_holder(folder.path) != told["holder"]:
        if time.monotonic() > stop_at:
            raise ConfigError(
                f"{folder.path.absolute()}: rank {processes.rank} does not see the run folder into which rank 0 writes",
                hint="start all processes in the same folder, on a file system that all machines share, such as NFS",
            )
        time.sleep(MAX_DELAY_SECONDS / 50)
    return open_shared(config, folder.data_folder, told["fingerprint"])


def micro_batches_of_an_update(
    progress: Progress, training: TrainingConfig, processes: Processes
) -> int | None:
    """The number of micro-batches of each update, over all processes; None if `training.update_tokens` decides it.

    A new run makes an update of `training.accumulate` batches of each process. A resumed run keeps the number that
    it has recorded, with any number of processes: so its updates stay the same.

    Raises:
        ConfigError: the run goes on, and the processes cannot share out the number that it has recorded.
    """
    if training.update_tokens is not None:
        return None
    if progress.num_micro_batches is None and progress.step == 0:
        return training.accumulate * processes.size
    recorded = progress.num_micro_batches or training.accumulate
    if recorded % processes.size and not is_finished(progress, training):
        fitting = [str(n) for n in range(1, recorded + 1) if recorded % n == 0]
        raise ConfigError(
            f"batches in each update of this run: {recorded}, which {processes.size} processes cannot share out equally",
            hint=f"numbers of processes that can go on: {', '.join(fitting[:20])}, with training.accumulate as it was; or start a new run: "
            "--set name=..., or --from-scratch",
        )
    return recorded


def with_accumulated(config: Config, progress: Progress) -> Config:
    """The config with the micro-batches of all processes as `training.accumulate`, for the plan and the log."""
    total = progress.num_micro_batches or config.training.accumulate
    training = config.training.model_copy(update={"accumulate": total})
    return config.model_copy(update={"training": training})


# An engine that shares out its work: each process translates some sources, and all get all translations.


class StoppedError(Exception):
    """At least one process was asked to stop, so the work has no result."""


@dataclass(frozen=True, slots=True)
class SharedEngine:
    """An `Engine` for a validation by several processes; all of them make the same calls.

    The sources are shared out by their lengths, so that all processes have about the same work.
    """

    engine: Engine
    processes: Processes

    def translate(
        self, requests: Sequence[Request], options: DecodingConfig
    ) -> list[list[Hypothesis]]:
        """See `Engine.translate`."""
        by_rank = self._indices_by_rank([len(request.ids) for request in requests])
        own = [requests[index] for index in by_rank[self.processes.rank]]
        shares = self._gathered(lambda: self.engine.translate(own, options))
        found: list[list[Hypothesis]] = [[] for _ in requests]
        for indices, share in zip(by_rank, shares, strict=True):
            for index, hypotheses in zip(indices, share, strict=True):
                found[index] = [Hypothesis(tuple(ids), score) for ids, score, *_ in hypotheses]
        return found

    def negative_log_likelihood(
        self, sources: Sequence[TokenIds], targets: Sequence[TokenIds], *, batch_tokens: int
    ) -> float:
        """See `Engine.negative_log_likelihood`."""
        pairs = list(zip(sources, targets, strict=True))
        indices = self._indices_by_rank([max(map(len, pair)) for pair in pairs])[
            self.processes.rank
        ]
        own_sources = [sources[index] for index in indices]
        own_targets = [targets[index] for index in indices]
        return sum(
            self._gathered(
                lambda: self.engine.negative_log_likelihood(
                    own_sources, own_targets, batch_tokens=batch_tokens
                )
            )
        )

    def next_token_probabilities(self, source: TokenIds, prefix: TokenIds) -> Tensor:
        """See `Engine.next_token_probabilities`; each process computes them."""
        return self.engine.next_token_probabilities(source, prefix)

    def _indices_by_rank(self, lengths: Sequence[int]) -> list[list[int]]:
        """For each rank, the indices of its items: long and short ones in each."""
        by_length = sorted(range(len(lengths)), key=lambda index: lengths[index])
        return [by_length[rank :: self.processes.size] for rank in range(self.processes.size)]

    def _gathered(self, work: Callable[[], Any]) -> list[Any]:
        """The results of all processes, by rank.

        Raises:
            StoppedError: one of them was asked to stop.
        """
        try:
            result = {"of": work()}
        except StoppedError:
            result = {}
        results = self.processes.gathered(result)
        if not all(results):
            raise StoppedError
        return [one["of"] for one in results]
