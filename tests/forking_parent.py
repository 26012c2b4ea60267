"""The parent of the processes under test: it imports everything once, and forks a child for each command.

A script: reads one JSON request per line from standard input and answers each with one line. The
child leaves the loop and goes on as if `tfm` had just been started: same arguments, same exit.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import signal
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent
HEAVY = (
    "torch.utils.tensorboard",
    "matplotlib.backends.backend_agg",
    "matplotlib.figure",
    "pyarrow",
    "sacrebleu.metrics",
    "jiwer",
)


def import_everything() -> None:
    package = importlib.import_module("transformer_cli")
    for module in pkgutil.walk_packages(package.__path__, "transformer_cli."):
        importlib.import_module(module.name)
    for name in HEAVY:
        importlib.import_module(name)
    sys.path.insert(0, str(TESTS))
    importlib.import_module("fault_points")
    # At its end, PyTorch takes back what it registered, one by one: half of the time of a small command.
    for finalizer in weakref.finalize._registry:  # type: ignore[attr-defined]
        finalizer.atexit = False
    gc.collect()
    gc.freeze()  # garbage collection in a child does not touch, and so not copy, these objects


def serve() -> dict[str, Any]:
    """Answer requests; returns only in a forked child, with the request for that child."""
    # Reading and answering must not be buffered: a child would inherit the buffered bytes.
    requests, answers = os.dup(0), os.dup(1)
    while True:
        request = json.loads(read_line(requests))
        if "poll" in request:
            pid, status = os.waitpid(request["poll"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            answer = os.fork()
            if answer == 0:
                os.close(requests)
                os.close(answers)
                return dict(request["start"])
        os.write(answers, json.dumps(answer).encode() + b"\n")


def read_line(file: int) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(file, 1)
        if not piece:
            os._exit(0)
        line += piece
    return line


def become(job: dict[str, Any]) -> None:
    os.setsid()
    os.chdir(job["folder"])
    os.environ.update(job["environment"])
    for number, path in enumerate((job["stdin"], job["stdout"], job["stderr"])):
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOCTTY
        file = os.open(path, flags, 0o666)
        os.dup2(file, number)
        os.close(file)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.argv = ["tfm", *job["arguments"]]
    for name, *arguments in job["faults"]:
        getattr(sys.modules["fault_points"], name)(*arguments)


def exit_like_python(outcome: SystemExit) -> None:
    """Exit without destroying every module, which takes longer than most commands."""
    code = outcome.code
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    import_everything()
    become(serve())
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored under `nohup`
    try:
        sys.modules["transformer_cli.__main__"].main()
    except SystemExit as outcome:
        exit_like_python(outcome)
    exit_like_python(SystemExit(0))
