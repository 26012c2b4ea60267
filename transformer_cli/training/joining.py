"""Connecting to the other processes at the start of a training, noticing that one is gone, and what all of them share: settings, data, translations."""

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor
from torch import distributed as dist

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.config import Config, DecodingConfig, RuntimeConfig
from transformer_cli.config.section import flat_settings
from transformer_cli.data.preparation import PreparedData, open_unchecked
from transformer_cli.decoding import Engine, Hypothesis, Request, TokenIds
from transformer_cli.process.device import Machine
from transformer_cli.process.errors import ConfigError, InterruptedBySignal, TryAgainError
from transformer_cli.process.torchrun import Launch
from transformer_cli.storage.writing import read_holder
from transformer_cli.training.config_changes import as_written
from transformer_cli.training.process_group import Processes

if TYPE_CHECKING:
    from torch.distributed.distributed_c10d import Store

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 60.0
"""How long a process tries to reach the key-value store before it gives up."""
MEET_SECONDS = 600.0
"""How long a process waits until all others have reached the store; some machines start slowly."""
_TELL_SECONDS = 10.0
"""After this time, rank 0 says for whom it waits."""
_LONGEST_WAIT = timedelta(days=7)
"""How long the other processes wait for rank 0, which prepares the data or saves; heartbeats notice a dead process."""
_MOST_NAMED = 8
_SECONDS_TO_END = 30
"""After an error with GPUs: how long a process may take to end."""


def place_on_device(machine: Machine, launch: Launch, runtime: RuntimeConfig) -> Machine:
    """The machine of this process: each process of a machine gets a GPU of its own.

    Raises:
        ConfigError: there are fewer GPUs than processes, the device cannot serve several processes, or a
            setting needs several processes and there is one.
    """
    if launch.is_alone and runtime.sharding == "full":
        raise ConfigError(
            "runtime.sharding: full shares the model among several processes, but there is only one",
            hint="start several with torchrun (docs/scaling.md), or --set runtime.sharding=none",
        )
    if launch.is_alone or machine.device.type == "cpu":
        return machine
    if machine.device.type != "cuda":
        raise ConfigError(
            f"runtime.device: {machine.device.type}, and {launch.size} processes: they cannot add up gradients on an Apple GPU",
            hint="train with one process, without torchrun; or --set runtime.device=cpu",
        )
    num_gpus = torch.cuda.device_count()
    # With --gpus-per-task=1, Slurm shows each task its own GPU only.
    sees_its_own = "SLURM_GPUS_PER_TASK" in os.environ and "TORCHELASTIC_RUN_ID" not in os.environ
    if num_gpus == 1 and sees_its_own:
        device = torch.device("cuda", 0)
        torch.cuda.set_device(device)
        return replace(machine, device=device)
    if launch.local_size > num_gpus:
        raise ConfigError(
            f"torchrun has started {launch.local_size} processes on this machine, and PyTorch finds {num_gpus} GPUs",
            hint=f"torchrun --nproc-per-node {num_gpus}, or --set runtime.device=cpu",
        )
    device = torch.device("cuda", launch.local_rank)
    torch.cuda.set_device(device)
    return replace(machine, device=device)


@contextmanager
def joined_processes(launch: Launch, device: torch.device) -> Iterator[Processes]:
    """Connect to the other processes; in the block they train together.

    Raises:
        TryAgainError: the other processes cannot be reached.
        ConfigError: PyTorch was built without `torch.distributed`.
    """
    if not dist.is_available():
        raise ConfigError(
            f"{launch.size} processes, but this build of PyTorch has no torch.distributed",
            hint="install an official build of PyTorch, or train with one process",
        )
    address = f"{os.environ['MASTER_ADDR']}:{os.environ.get('MASTER_PORT', '29500')}"
    logger.debug("rank %d of %d connects to %s", launch.rank, launch.size, address)
    try:
        store = _store(launch)
        _wait_for_all(store, launch)
        dist.init_process_group(
            # gloo for small numbers on the CPU, NCCL for gradients on GPUs.
            "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo",
            store=store,
            rank=launch.rank,
            world_size=launch.size,
            timeout=_LONGEST_WAIT,
        )
        if device.type == "cuda":
            # NCCL connects the GPUs at the first sum; a mistake of the network shall show now.
            dist.all_reduce(torch.zeros(1, device=device))
    except (RuntimeError, ValueError, OSError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise TryAgainError(
            f"rank {launch.rank} of {launch.size} cannot reach the other processes at {address}: {reason}",
            hint="start all of them with torchrun; on several machines, check --rdzv-endpoint, firewalls, and the "
            "network interface (the environment variables GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME)",
        ) from error
    try:
        with Heartbeats(_store(launch), launch) as heartbeats:
            processes = Processes(launch.rank, launch.size, heartbeats)
            yield processes
            processes.sums(0)  # no process leaves while another may still need the store
    except BaseException as error:
        leave_group(device, error)
        raise
    leave_group(device)


def leave_group(device: torch.device, error: BaseException | None = None) -> None:
    # After an error, a sum may still wait on the GPU for a process that is gone, and to disconnect would wait for this
    # sum. A signal stops all processes at the same step.
    if device.type == "cuda" and not (error is None or isinstance(error, InterruptedBySignal)):
        end_within(_SECONDS_TO_END)
        return
    with suppress(RuntimeError):  # after an error the others may be gone
        dist.destroy_process_group()


def end_within(seconds: int) -> None:
    """Let the system end this process, if it has not ended by itself with a message; Windows has no such alarm."""
    if hasattr(signal, "alarm") and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)


def _wait_for_all(store: "Store", launch: Launch) -> None:
    """Wait until all processes have reached the store.

    `init_process_group` would wait inside a function in C++, where no signal ends the process, and would not say who is missing.

    Raises:
        TryAgainError: a process did not come.
    """
    store.set(f"here/{launch.rank}", "")
    store.add("num_here", 1)
    started_at, is_told = time.monotonic(), launch.rank != 0
    while store.add("num_here", 0) < launch.size:
        waited = time.monotonic() - started_at
        if waited > MEET_SECONDS:
            raise TryAgainError(
                f"rank {launch.rank} of {launch.size} has waited {MEET_SECONDS:.0f} seconds for {_missing(store, launch)}",
                hint="see what these processes say, then start all of them again",
            )
        if waited > _TELL_SECONDS and not is_told:
            is_told = True
            logger.info("waiting for %s of %d processes", _missing(store, launch), launch.size)
        time.sleep(0.05)


def _missing(store: "Store", launch: Launch) -> str:
    ranks = [str(rank) for rank in range(launch.size) if not store.check([f"here/{rank}"])]
    more = f" and {len(ranks) - _MOST_NAMED} more" if len(ranks) > _MOST_NAMED else ""
    return f"rank {', '.join(ranks[:_MOST_NAMED])}{more}"


def _store(launch: Launch) -> "Store":
    """A connection of its own to the key-value store of torchrun; without torchrun, rank 0 holds the store."""
    from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]

    host, port = os.environ["MASTER_ADDR"], int(os.environ.get("MASTER_PORT", "29500"))
    holds_store = launch.rank == 0 and launch.store_holder == "rank 0"
    _wait_for_address(host, port, is_open=not holds_store)
    store = TCPStore(
        host,
        port,
        is_master=holds_store,
        timeout=timedelta(seconds=CONNECT_SECONDS),
        multi_tenant=True,
        wait_for_workers=False,
    )
    return PrefixStore(f"tfm/{launch.attempt}", store)


def _wait_for_address(host: str, port: int, *, is_open: bool) -> None:
    """Wait until the name of the machine is known and, if `is_open`, a program answers at the port.

    `TCPStore` would try this longer than its time limit, and no signal would end the process meanwhile.

    Raises:
        OSError: it is still not so after `CONNECT_SECONDS`.
    """
    stop_at = time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            if is_open:
                socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
            else:
                socket.getaddrinfo(host, port)
        except OSError:
            if time.monotonic() > stop_at:
                raise
            time.sleep(0.1)
        else:
            return


# Heartbeats: how the processes of a training notice that one of them is gone, and which one.


BEAT_SECONDS = 1.0
SILENT_SECONDS = 5.0
"""After an error of the network, a rank that was silent for this time is named as the one that is lost."""
LOST_SECONDS = 40.0
"""If a rank was silent for this time, the training ends, even without an error of the network."""


class Heartbeats:
    """A thread that increments a counter in a shared store, and watches the counters of the other ranks.

    A process that was killed closes its connections, so that the others get an error at once; but the error does not
    name it. A process that was suspended, or a machine that lost its network, gives no error at all.

    Args:
        store: a connection that no other thread uses.
        launch: the place of this process.
    """

    def __init__(self, store: "Store", launch: Launch) -> None:
        self._store, self._launch = store, launch
        self._keys = [f"alive/{rank}" for rank in range(launch.size)]
        self._last_counts = [-1] * launch.size
        self._changed_at = [time.monotonic()] * launch.size
        self._beat_at = time.monotonic()
        self._is_over = threading.Event()
        self._has_store = True
        self._thread = threading.Thread(target=self._beat, name="heartbeats", daemon=True)

    def __enter__(self) -> Self:
        process = f"process {os.getpid()} on {socket.gethostname()}"
        self._store.set(f"name/{self._launch.rank}", process)
        self._store.add(self._keys[self._launch.rank], 1)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join(timeout=BEAT_SECONDS)  # after an error it may wait for a store that is gone

    def lost_ranks(self) -> str:
        """The ranks that have been silent for a while, for a message; waits a few seconds for the first of them."""
        stop_at = time.monotonic() + 2 * SILENT_SECONDS
        while time.monotonic() < stop_at and self._has_store:
            if silent := self._silent_for(SILENT_SECONDS):
                return self._described(silent)
            time.sleep(BEAT_SECONDS / 4)
        return "another process" if self._has_store else self._launch.store_holder

    def _silent_for(self, seconds: float) -> list[int]:
        now = time.monotonic()
        silent = (now - changed_at > seconds for changed_at in self._changed_at)
        return [rank for rank, is_silent in enumerate(silent) if is_silent]

    def _described(self, ranks: Sequence[int]) -> str:
        names = []
        for rank in ranks:
            names.append(f"rank {rank}")
            with suppress(RuntimeError):
                if self._store.check([f"name/{rank}"]):
                    names[-1] += f" ({self._store.get(f'name/{rank}').decode()})"
        return ", ".join(names)

    def _beat(self) -> None:
        while not self._is_over.wait(BEAT_SECONDS):
            try:
                self._store.add(self._keys[self._launch.rank], 1)
                counts = [int(count) for count in self._store.multi_get(self._keys)]
            except RuntimeError:
                self._has_store = False
                # The main thread gets an error of its own where it needs the others; it may also have ended.
                if not self._is_over.wait(SILENT_SECONDS):
                    _end(self._launch.store_holder)
                return
            self._note(counts)
            if lost := self._silent_for(LOST_SECONDS):
                _end(self._described(lost))

    def _note(self, counts: Sequence[int]) -> None:
        now = time.monotonic()
        # If this process was suspended, it does not know whether the others were; so their silence starts anew.
        was_suspended = now - self._beat_at > SILENT_SECONDS
        self._beat_at = now
        for rank, count in enumerate(counts):
            if was_suspended or count != self._last_counts[rank]:
                self._last_counts[rank], self._changed_at[rank] = count, now


def _end(lost: str) -> None:
    """End the process at once: its main thread may wait for a process that is gone, and no exception reaches it."""
    error = TryAgainError(
        f"{lost} does not answer any more, so all processes end",
        hint="the same command goes on from the last checkpoint",
    )
    with suppress(OSError):  # standard error may be closed
        os.write(2, f"tfm: {error}\n".encode())
    os._exit(error.exit_code)


# What several processes agree on and share: the settings, the prepared data, the micro-batches of an update, translations.


MACHINE_SETTINGS = ("data.root", "runtime.threads", "runtime.workers")
"""These may differ between machines: they change no result."""
_MOST_SHOWN = 5


def require_same_settings(config: Config, processes: Processes, *, from_scratch: bool) -> None:
    """Compare the settings of all processes, before the first of them reads data or trains.

    With different settings the processes would compute with different models, or wait for each other for ever.

    Raises:
        ConfigError: a setting differs between rank 0 and another rank; all processes raise it.
    """
    own = flat_settings(config.model_dump(mode="json")) | {"--from-scratch": from_scratch}
    for name in MACHINE_SETTINGS:
        own.pop(name, None)
    main, *others = processes.gathered(own)
    for rank, other in enumerate(others, start=1):
        names = sorted(name for name in main.keys() | other.keys() if main.get(name) != other.get(name))
        if names:
            lines = [
                f"\n    {name}: {as_written(main.get(name))} in rank 0, {as_written(other.get(name))} in rank {rank}"
                for name in names[:_MOST_SHOWN]
            ]
            if len(names) > _MOST_SHOWN:
                lines.append(f"\n    and {len(names) - _MOST_SHOWN} more")
            raise ConfigError(
                f"the processes were started with different settings:{''.join(lines)}",
                hint="start all processes with the same command and the same config file; on several machines, copy the "
                f"file to each of them. Only {', '.join(MACHINE_SETTINGS)} may differ",
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
        lambda: {"fingerprint": dict(data.fingerprint), "holder": read_holder(folder.path)} if data else None
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
    return open_unchecked(config, folder.data_folder, told["fingerprint"])


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

    def translate(self, requests: Sequence[Request], options: DecodingConfig) -> list[list[Hypothesis]]:
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
        indices = self._indices_by_rank([max(map(len, pair)) for pair in pairs])[self.processes.rank]
        own_sources = [sources[index] for index in indices]
        own_targets = [targets[index] for index in indices]
        return sum(
            self._gathered(
                lambda: self.engine.negative_log_likelihood(own_sources, own_targets, batch_tokens=batch_tokens)
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
