"""Measures `tfm serve` with many clients at once, and compares its speed with that of `tfm translate`.

    python benchmarks/serving.py --run en-it --input sentences.txt

The file has one sentence on each line, none twice. Everything runs on this machine, over the loopback interface. CPU
seconds are those of the server process alone, so other programs on the same cores change them little; latencies are
wall time, so they change them a lot: the line "cores" says how much of the cores was left.

- Speed: `--clients` clients send texts of `--sentences` sentences for `--seconds` seconds, over connections that stay
  open. The cache of the server is off, unless `--cache-mib` says otherwise. `tfm translate` gets the same sentences from a file.
- Memory: the same until `--requests` requests are answered; the memory of the server after each quarter of them.
- Leaving clients: a third of the clients closes its connection at a random moment. The answers to the others are right.
- Overload: four times as many requests at once as the server lets wait, then one request alone.

Each answer is compared with the line of `tfm translate`. A difference would be an answer to another request, or the
effect of the other sentences of a batch on the last digits of a score.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import random
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

TFM = [sys.executable, "-m", "transformer_cli"]
MAX_WAITING = 256
LANGUAGES = ["en", "it"]


class Text(NamedTuple):
    """A text to translate, and its translation."""

    source: str
    expected: str
    num_sentences: int


@dataclass
class Server:
    """A running server process."""

    host: str
    port: int
    pid: int

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mib(self) -> float:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@dataclass
class Tally:
    """What clients have seen."""

    seconds: list[float] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)
    num_sentences: int = 0
    num_wrong: int = 0
    num_left: int = 0


def main() -> None:
    arguments = parsed_arguments()
    LANGUAGES[:] = arguments.languages.split("-")
    lines = list(dict.fromkeys(arguments.input.read_text(encoding="utf-8").splitlines()))
    offline, translations = translated_offline(arguments, lines)
    say(f"offline: {len(lines)} sentences, {offline:.1f} sentences per CPU second")
    texts = [
        Text(
            "\n".join(lines[start : start + size]),
            "\n".join(translations[start : start + size]),
            size,
        )
        for size in [arguments.sentences]
        for start in range(0, len(lines) - size + 1, size)
    ]
    with serving(arguments) as server:
        asyncio.run(warm_up(server, texts))
        rounds = [(offline, measure_speed(server, texts, arguments))]
        for _ in range(1, arguments.rounds):
            again = translated_offline(arguments, lines)[0]
            say(f"offline: {again:.1f} sentences per CPU second")
            rounds.append((again, measure_speed(server, texts, arguments)))
        report_speed(rounds)
        if arguments.requests:
            measure_memory(server, texts, arguments)
        measure_leaving(server, texts, arguments)
        measure_overload(server, texts)


def measure_speed(server: Server, texts: Sequence[Text], arguments: argparse.Namespace) -> float:
    """Sentences per CPU second of the server."""
    stop_at = time.monotonic() + arguments.seconds
    cpu_before, started_at = server.cpu_seconds(), time.monotonic()
    idle_before, batches_before = idle_seconds(), num_batches(server)
    tally = asyncio.run(load(server, texts, arguments.clients, lambda _: time.monotonic() < stop_at))
    wall, cpu = time.monotonic() - started_at, server.cpu_seconds() - cpu_before
    batches, sentences = (after - before for before, after in zip(batches_before, num_batches(server), strict=True))
    speed = tally.num_sentences / cpu
    milliseconds = [1000 * each for each in tally.seconds]
    cuts = statistics.quantiles(milliseconds, n=100)
    say(
        f"speed: {arguments.clients} clients, {arguments.sentences} sentences in a request, {wall:.0f} s: "
        f"{len(tally.seconds)} requests, {tally.num_sentences / wall:.0f} sentences per second, "
        f"{speed:.1f} per CPU second of the server, {sentences / max(1, batches):.0f} in a batch, "
        f"p50 {cuts[49]:.0f} ms, p99 {cuts[98]:.0f} ms, wrong answers {tally.num_wrong}, "
        f"statuses {tally.statuses}"
    )
    say(
        f"cores: the server had {cpu / wall:.2f} of {os.cpu_count()}, idle were "
        f"{(idle_seconds() - idle_before) / wall:.2f}"
    )
    return speed


def report_speed(rounds: Sequence[tuple[float, float]]) -> None:
    """Say how the medians of the rounds compare: offline, server."""
    offline, served = (statistics.median(one) for one in zip(*rounds, strict=True))
    say(
        f"medians of {len(rounds)} rounds in turns: offline {offline:.1f}, server {served:.1f} "
        f"sentences per CPU second ({served / offline - 1:+.1%})"
    )


def num_batches(server: Server) -> tuple[int, int]:
    """The numbers of batches and of sentences that the server has computed."""
    with urllib.request.urlopen(f"http://{server.host}:{server.port}/metrics") as answer:
        said = answer.read().decode()
    found = [re.findall(rf"^tfm_{name}_total{{.*}} (\d+)$", said, re.MULTILINE) for name in ("batches", "sentences")]
    return sum(map(int, found[0])), sum(map(int, found[1]))


def measure_memory(server: Server, texts: Sequence[Text], arguments: argparse.Namespace) -> None:
    memory = [server.resident_mib()]
    tally = Tally()
    for _ in range(4):
        numbers = itertools.count()
        quarter = arguments.requests // 4

        def goes_on(_: int, numbers: Iterator[int] = numbers, quarter: int = quarter) -> bool:
            return next(numbers) < quarter

        part = asyncio.run(load(server, texts, arguments.clients, goes_on))
        memory.append(server.resident_mib())
        tally.num_wrong += part.num_wrong
        tally.seconds += part.seconds
    shown = ", ".join(f"{each:.0f}" for each in memory)
    say(
        f"memory: MiB at the start and after each quarter of {len(tally.seconds)} requests: {shown}; wrong answers {tally.num_wrong}"
    )


def measure_leaving(server: Server, texts: Sequence[Text], arguments: argparse.Namespace) -> None:
    stop_at = time.monotonic() + arguments.seconds / 3
    tally = asyncio.run(load(server, texts, arguments.clients, lambda _: time.monotonic() < stop_at, leaves=1 / 3))
    time.sleep(1.0)
    after = asyncio.run(load(server, texts, 1, counted(20)))
    say(
        f"leaving clients: {tally.num_left} left, {len(tally.seconds)} stayed, wrong answers {tally.num_wrong}; "
        f"then one client alone: median {1000 * statistics.median(after.seconds):.0f} ms; {server.resident_mib():.0f} MiB"
    )


def measure_overload(server: Server, texts: Sequence[Text]) -> None:
    tally = asyncio.run(load(server, texts, 4 * MAX_WAITING, lambda client: False, first=True))
    started_at = time.monotonic()
    after = asyncio.run(load(server, texts, 1, counted(20)))
    say(
        f"overload: {4 * MAX_WAITING} requests at once: statuses {dict(sorted(tally.statuses.items()))}, wrong answers "
        f"{tally.num_wrong}; then one client alone: median {1000 * statistics.median(after.seconds):.0f} ms, "
        f"20 answers after {time.monotonic() - started_at:.1f} s"
    )


def counted(number: int) -> Callable[[int], bool]:
    numbers = itertools.count()
    return lambda _: next(numbers) < number


async def warm_up(server: Server, texts: Sequence[Text]) -> None:
    await load(server, texts, 16, counted(64))


async def load(
    server: Server,
    texts: Sequence[Text],
    num_clients: int,
    goes_on: Callable[[int], bool],
    *,
    leaves: float = 0.0,
    first: bool = False,
) -> Tally:
    """Let clients send texts, one after the other, as long as `goes_on` says so.

    Args:
        leaves: the share of requests whose client closes the connection before the answer.
        first: whether each client sends its first text before it asks `goes_on`.
    """
    tally = Tally()
    order = itertools.cycle(random.Random(1).sample(range(len(texts)), len(texts)))

    async def client(number: int) -> None:
        chance = random.Random(number)
        connection = None
        is_first = first
        while is_first or goes_on(number):
            is_first = False
            text = texts[next(order)]
            try:
                if connection is None:
                    connection = await asyncio.open_connection(server.host, server.port)
                if chance.random() < leaves:
                    connection[1].write(request_of(text))
                    await asyncio.sleep(chance.random() * 0.2)
                    connection[1].close()
                    connection = None
                    tally.num_left += 1
                    continue
                started_at = time.monotonic()
                status, body = await answer_to(text, *connection)
            except (OSError, asyncio.IncompleteReadError):
                tally.statuses[0] = tally.statuses.get(0, 0) + 1
                connection = None
                continue
            tally.statuses[status] = tally.statuses.get(status, 0) + 1
            if status == 200:
                tally.seconds.append(time.monotonic() - started_at)
                tally.num_sentences += text.num_sentences
                tally.num_wrong += json.loads(body)["translatedText"] != text.expected
        if connection is not None:
            connection[1].close()
            with contextlib.suppress(OSError):
                await connection[1].wait_closed()

    await asyncio.gather(*map(client, range(num_clients)))
    return tally


def request_of(text: Text) -> bytes:
    body = json.dumps({"q": text.source, "source": LANGUAGES[0], "target": LANGUAGES[1]}).encode()
    return (
        b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    )


async def answer_to(text: Text, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[int, bytes]:
    writer.write(request_of(text))
    head = await reader.readuntil(b"\r\n\r\n")
    [length] = re.findall(rb"content-length: (\d+)", head)
    return int(head[9:12]), await reader.readexactly(int(length))


def translated_offline(arguments: argparse.Namespace, lines: Sequence[str]) -> tuple[float, list[str]]:
    """Sentences per CPU second of `tfm translate` without its start, and the translations."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.txt", Path(folder) / "out.txt"

        def cpu_seconds(some: Sequence[str]) -> float:
            source.write_text("".join(f"{line}\n" for line in some), encoding="utf-8")
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            files = ["--input", str(source), "--output", str(target)]
            command = [*TFM, "translate", "--run", arguments.run, *files, *settings(arguments)]
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

        start = cpu_seconds(lines[:16])
        seconds = cpu_seconds(lines) - start
        return len(lines) / seconds, target.read_text(encoding="utf-8").splitlines()


@contextmanager
def serving(arguments: argparse.Namespace) -> Iterator[Server]:
    """A server process of its own."""
    command = [
        *TFM,
        "serve",
        "--run",
        arguments.run,
        "--port",
        "0",
        "--cache-mib",
        str(arguments.cache_mib),
        # On a machine with little time left, 60 s would end requests whose sentences were computed already.
        "--deadline",
        "3600",
    ]
    with tempfile.TemporaryFile("w+") as talk:
        process = subprocess.Popen([*command, *settings(arguments)], stderr=talk)
        try:
            said = ""
            while "ready:" not in said:
                assert process.poll() is None, said
                time.sleep(0.1)
                talk.seek(0)
                said = talk.read()
            [(host, port)] = re.findall(r"http://([\d.]+):(\d+)", said)
            yield Server(host, int(port), process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            say(f"exit code after SIGTERM: {process.wait()}")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def settings(arguments: argparse.Namespace) -> list[str]:
    return [word for override in arguments.set for word in ("--set", override)]


def idle_seconds() -> float:
    return int(Path("/proc/stat").read_text().split()[4]) / os.sysconf("SC_CLK_TCK")


def parsed_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", required=True, help="the run")
    parser.add_argument("--languages", default="en-it", help="of the run")
    parser.add_argument("--input", required=True, type=Path, help="sentences, one per line")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, default=1, help="of the speed, in turns with offline")
    parser.add_argument("--sentences", type=int, default=1, help="in each request")
    parser.add_argument("--requests", type=int, default=20_000, help="for the memory; 0: not measured")
    parser.add_argument("--set", action="append", default=[], help="as of tfm translate and tfm serve")
    parser.add_argument("--cache-mib", type=int, default=0, help="of the server; 0: no cache")
    return parser.parse_args()


if __name__ == "__main__":
    main()
