"""torchrun itself: on one machine, and (slow) with kills, and with two network namespaces as two machines."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..experiments import TINY, essence, newest_checkpoint, write_tiny
from ..launcher import ENVIRONMENT, Tfm
from ..ranks import assert_close, run_ranks, start_ranks

pytestmark = pytest.mark.kills

ROOT = Path(__file__).parents[2]
ONE_EACH = TINY.replace("accumulate: 2", "accumulate: 1")
TRAIN = ("-m", "transformer_cli", "train", "--config", "tiny.yaml")
ADDRESSES = ("10.213.77.1", "10.213.77.2")
STARTED: list[subprocess.Popen[str]] = []


def start(
    folder: Path,
    *torchrun: str,
    before: tuple[str, ...] = (),
    after: tuple[str, ...] = (),
    **environment: str,
) -> subprocess.Popen[str]:
    command = [*before, sys.executable, "-m", "torch.distributed.run", *torchrun, *TRAIN, *after]
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | ENVIRONMENT | {"PYTHONPATH": str(ROOT)} | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    STARTED.append(process)
    return process


@pytest.fixture(autouse=True)
def nothing_is_left_running() -> Iterator[None]:
    """torchrun ends its processes when it gets SIGTERM."""
    yield
    for process in STARTED:
        if process.poll() is None:
            process.terminate()
        process.communicate()
    STARTED.clear()


def talk_of(process: subprocess.Popen[str]) -> str:
    return process.communicate(timeout=180)[1]


@pytest.fixture(scope="module")
def alone(finished_tiny: Path) -> Path:
    return finished_tiny / "runs/tiny"


def test_torchrun_trains_as_one_process_does_and_a_signal_to_it_saves(tfm: Tfm, alone: Path) -> None:
    write_tiny(tfm.folder, ONE_EACH)
    process = start(tfm.folder, "--standalone", "--nproc-per-node", "2")
    while not (tfm.folder / "runs/tiny/checkpoints").exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    talk = talk_of(process)
    assert "tfm: stopped and saved at step" in talk or "finished after 13 steps" in talk, talk
    process = start(tfm.folder, "--standalone", "--nproc-per-node", "2")
    talk = talk_of(process)
    assert process.returncode == 0, talk
    assert_close(tfm.folder / "runs/tiny", alone)


def ranks_of(torchrun: int) -> dict[str, int]:
    """The process ids of the ranks that a torchrun has started."""
    found = {}
    children = Path(f"/proc/{torchrun}/task/{torchrun}/children").read_text().split()
    for child in children:
        for variable in Path(f"/proc/{child}/environ").read_text().split("\0"):
            if variable.startswith("RANK="):
                found[variable.removeprefix("RANK=")] = int(child)
    return found


def is_running(process_id: int) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["0", "1", "torchrun"])
def test_a_process_that_is_killed_is_named_and_the_run_goes_on(tfm: Tfm, victim: str) -> None:
    """`--max-restarts` starts all ranks again; if torchrun itself is killed, they end, and the same command goes on."""
    longer = ("--set", "training.max_steps=300", "--set", "training.save_every=10")
    alone = tfm.folder / "alone"
    alone.mkdir()
    write_tiny(alone)
    assert tfm("train", "--config", "tiny.yaml", *longer, folder=alone).exit_code == 0
    write_tiny(tfm.folder, ONE_EACH)
    torchrun = ("--standalone", "--nproc-per-node", "2", "--max-restarts", "1")
    process = start(tfm.folder, *torchrun, after=longer)
    while not [*(tfm.folder / "runs/tiny/checkpoints").glob("step-*[1-9]0")]:
        time.sleep(0.02)
    ranks = ranks_of(process.pid)
    assert ranks.keys() == {"0", "1"}
    os.kill(process.pid if victim == "torchrun" else ranks[victim], signal.SIGKILL)
    talk = talk_of(process)
    if victim == "torchrun":
        until = time.monotonic() + 60
        while any(map(is_running, ranks.values())):
            assert time.monotonic() < until, "the ranks go on without torchrun"
            time.sleep(0.1)
        assert "tfm: torchrun does not answer any more, so all processes end" in talk
        process = start(tfm.folder, *torchrun, after=longer)
        talk = talk_of(process)
    else:
        assert f"tfm: rank {victim} (process {ranks[victim]} on " in talk
    assert process.returncode == 0, talk
    assert "resuming runs/tiny at step " in talk
    assert "finished after 300 steps" in talk
    assert_close(tfm.folder / "runs/tiny", alone / "runs/tiny", within=1e-4)


@pytest.fixture
def two_machines() -> Iterator[tuple[str, str]]:
    """Two network namespaces with a cable between them; nothing leads out of them."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    names = f"tfm-a-{os.getpid()}", f"tfm-b-{os.getpid()}"
    cable = f"tfm{os.getpid() % 10**6}"
    try:
        for name in names:
            subprocess.run(["ip", "netns", "add", name], check=True)
        ends = [f"{cable}{number}" for number in (0, 1)]
        subprocess.run(
            ["ip", "link", "add", ends[0], "netns", names[0], "type", "veth", "peer", ends[1], "netns", names[1]],
            check=True,
        )
        for name, end, address in zip(names, ends, ADDRESSES, strict=True):
            inside = ["ip", "-n", name]
            subprocess.run([*inside, "address", "add", f"{address}/24", "dev", end], check=True)
            subprocess.run([*inside, "link", "set", end, "up"], check=True)
            subprocess.run([*inside, "link", "set", "lo", "up"], check=True)
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False)


@pytest.mark.slow
def test_two_machines_train_as_one_process_does(tfm: Tfm, alone: Path, two_machines: tuple[str, str]) -> None:
    write_tiny(tfm.folder, ONE_EACH)
    processes = [
        start(
            tfm.folder,
            *(
                "--nnodes",
                "2",
                "--nproc-per-node",
                "1",
                "--rdzv-backend",
                "c10d",
                "--rdzv-id",
                "tfm",
            ),
            *("--rdzv-endpoint", f"{ADDRESSES[0]}:29471", "--local-addr", address),
            # Else the first one would be known by its host name, which both have.
            *("--rdzv-conf", f"is_host={number == 0}"),
            before=("ip", "netns", "exec", name),
            GLOO_SOCKET_IFNAME=f"tfm{os.getpid() % 10**6}{number}",
        )
        for number, (name, address) in enumerate(zip(two_machines, ADDRESSES, strict=True))
    ]
    for process in processes:
        talk = talk_of(process)
        assert process.returncode == 0, talk
    assert_close(tfm.folder / "runs/tiny", alone)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_chain_of_kills_of_either_process_ends_as_the_uninterrupted_run(tfm: Tfm, seed: int) -> None:
    """kill -9 at random times, 8 times; what is lost is the work since the last save, and nothing else."""
    whole = tfm.folder / "whole"
    whole.mkdir()
    more = ("--set", "training.max_steps=60", "--set", "training.save_every=2")
    command = ("train", "--config", "tiny.yaml", *more)
    for folder in (whole, tfm.folder):
        write_tiny(folder, ONE_EACH)
    assert [rank.exit_code for rank in run_ranks(Tfm(tfm.launcher, whole), *command)] == [0, 0]
    chance = random.Random(seed)
    for _ in range(8):
        ranks = start_ranks(tfm, *command)
        time.sleep(chance.uniform(0.3, 4.0))
        victim = chance.randrange(2)
        if ranks[victim].is_running():
            ranks[victim].send(signal.SIGKILL)
        codes = [rank.wait().exit_code for rank in ranks]
        assert set(codes) <= {-signal.SIGKILL, 75, 0}, codes
    assert [rank.exit_code for rank in run_ranks(tfm, *command)] == [0, 0]
    ends = [essence(folder / "runs/tiny") for folder in (whole, tfm.folder)]
    for end in ends:
        del end["checkpoints"]
    assert ends[0] == ends[1]
    assert not list((tfm.folder / "runs/tiny").rglob(".tmp-*"))


@pytest.mark.slow
def test_a_suspended_process_is_named_and_ends_the_others_within_a_minute(tfm: Tfm) -> None:
    write_tiny(tfm.folder, ONE_EACH)
    main, other = start_ranks(tfm, "train", "--config", "tiny.yaml", "--set", "training.max_steps=100000")
    checkpoints = tfm.folder / "runs/tiny/checkpoints"
    main.wait_until(lambda: checkpoints.exists() and bool(list(checkpoints.glob("step-*"))))
    other.send(signal.SIGSTOP)
    stopped_at = time.monotonic()
    finished = main.wait()
    assert time.monotonic() - stopped_at < 60
    assert finished.exit_code == 75
    assert "rank 1 (process " in finished.talk
    assert "does not answer any more" in finished.talk
    other.send(signal.SIGKILL)
    assert newest_checkpoint(tfm.folder / "runs/tiny").is_dir()
