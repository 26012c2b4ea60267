"""How much of the communication between two machines is hidden behind the computation, by the speed of their network.

    python benchmarks/slow_network.py multi30k-en-de.yaml --set data.root=PATH --rates 100 300 1000

It needs root on Linux, with `ip` and `tc` of iproute2, and two free cores. Two network namespaces are the two machines;
a token bucket limits the cable between them to each rate, in Mbit a second. Each trains with one thread. The seconds of
an update come from the run's own metrics, without the first quarter of the updates. "sent" is what the cable needs for
the gradients alone, 4 bytes for each parameter; "hidden" is the part of it by which the update is not longer than on the
cable without a limit. With --against, another folder with the package trains in turns with this one.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parents[1]
_NUMBER = os.getpid() % 10**6
NAMES = (f"tfm-slow-a-{_NUMBER}", f"tfm-slow-b-{_NUMBER}")
ENDS = (f"tfms{_NUMBER}-0", f"tfms{_NUMBER}-1")  # at most 15 characters
ADDRESSES = ("10.213.78.1", "10.213.78.2")


@contextlib.contextmanager
def two_machines() -> Iterator[None]:
    """Two network namespaces with a cable between them; nothing leads out of them."""
    try:
        for name in NAMES:
            _run("ip", "netns", "add", name)
        _run(
            *("ip", "link", "add", ENDS[0], "netns", NAMES[0], "type", "veth"),
            *("peer", ENDS[1], "netns", NAMES[1]),
        )
        for name, end, address in zip(NAMES, ENDS, ADDRESSES, strict=True):
            _run("ip", "-n", name, "address", "add", f"{address}/24", "dev", end)
            _run("ip", "-n", name, "link", "set", end, "up")
            _run("ip", "-n", name, "link", "set", "lo", "up")
        yield
    finally:
        for name in NAMES:
            subprocess.run(["ip", "netns", "delete", name], check=False)


def limit(rate: int | None) -> None:
    """Limit what either machine sends, in Mbit a second; None: no limit."""
    for name, end in zip(NAMES, ENDS, strict=True):
        tc = ("tc", "-n", name, "qdisc")
        subprocess.run([*tc, "delete", "dev", end, "root"], check=False, stderr=subprocess.DEVNULL)
        if rate is not None:
            # With a smaller bucket, a fast cable is slower than its rate.
            size = str(max(256_000, 1000 * rate))
            bucket = ("tbf", "rate", f"{rate}mbit", "burst", size, "latency", "200ms")
            _run(*tc, "add", "dev", end, "root", *bucket)


def train(package: Path, folder: Path, arguments: argparse.Namespace) -> tuple[float, int]:
    """Train on both machines: the median seconds of an update, and the number of parameters."""
    steps = arguments.steps
    settings = [
        *arguments.overrides,
        *(f"training.max_steps={steps}", f"training.log_every={max(1, steps // 8)}"),
        *("training.validate_every=1000000", "training.save_every=1000000", "runtime.threads=1"),
        "name=slow",
    ]
    command = [sys.executable, "-P", "-m", "transformer_cli", "train", "--from-scratch"]
    command += ["--config", arguments.config, *(f"--set={one}" for one in settings)]
    environment = os.environ | {
        "PYTHONPATH": str(package),
        "OMP_NUM_THREADS": "1",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": ADDRESSES[0],
        "MASTER_PORT": "29477",
    }
    processes = [
        subprocess.Popen(
            ["ip", "netns", "exec", name, *command],
            cwd=folder,
            env=environment | {"RANK": str(rank), "GLOO_SOCKET_IFNAME": ENDS[rank]},
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        for rank, name in enumerate(NAMES)
    ]
    talks = [process.communicate()[1] for process in processes]
    if any(process.returncode for process in processes):
        sys.exit("\n".join(talks))
    lines = (folder / "runs/slow/metrics.jsonl").read_text().splitlines()
    reports = [report for line in lines if (report := json.loads(line))["kind"] == "train"]
    every = max(1, steps // 8)
    seconds = [
        report["num_target_tokens"] / report["target_tokens_per_second"] / every
        for report in reports[2:]
        if report["step"] % every == 0
    ]
    [line] = (line for line in talks[0].splitlines() if line.startswith("model: "))
    return statistics.median(seconds), int(line.split()[1].replace(",", ""))


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


def main() -> None:
    """Train at each rate, in turns, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config")
    parser.add_argument("--set", action="append", default=[], dest="overrides", metavar="KEY=VALUE")
    parser.add_argument("--rates", type=int, nargs="+", default=[100, 300, 1000], metavar="MBIT")
    parser.add_argument("--steps", type=int, default=40, help="updates of each training")
    parser.add_argument("--rounds", type=int, default=3, help="trainings at each rate")
    parser.add_argument("--against", type=Path, help="another folder with the package")
    arguments = parser.parse_args()
    packages = {"this": HERE} | ({"other": arguments.against} if arguments.against else {})
    measured: dict[tuple[str, int | None], list[float]] = {}
    num_parameters = 0
    with two_machines(), tempfile.TemporaryDirectory() as folder:
        for _ in range(arguments.rounds):
            for rate in (None, *arguments.rates):
                limit(rate)
                for name, package in packages.items():
                    seconds, num_parameters = train(package, Path(folder), arguments)
                    measured.setdefault((name, rate), []).append(seconds)
    sys.stdout.write(
        f"{num_parameters:,} parameters; milliseconds, median (fastest to slowest)\n"
        "code   Mbit/s                update   sent   hidden\n"
    )
    for (name, rate), times in measured.items():
        of_update = statistics.median(times)
        line = f"{name:5}  {rate or 'no limit':>8}  {1000 * of_update:7,.0f} ({1000 * min(times):,.0f} to {1000 * max(times):,.0f})"
        if rate is not None:
            sent = 4 * num_parameters * 8 / (rate * 1e6)
            longer = of_update - statistics.median(measured[name, None])
            line += f"  {1000 * sent:7,.0f}  {1 - longer / sent:6.0%}"
        sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
