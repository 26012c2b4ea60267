"""`tfm doctor`: versions, processor, device, memory, disk and extras of this installation, for a look or a bug report."""

from __future__ import annotations

import re
from importlib import metadata
from typing import Any

from transformer_cli import __version__
from transformer_cli.commands.command_line import JsonOption
from transformer_cli.commands.output import show
from transformer_cli.config import RuntimeConfig
from transformer_cli.process.messages import counted

_PACKAGES = ("torch", "datasets", "tokenizers", "pydantic", "sacrebleu", "numpy", "pyarrow")
_WIDTH = 12


def doctor_command(as_json: JsonOption = False) -> None:
    """Show what this installation has and can use. One screen for a bug report, without paths and names of users.

    It says why a GPU, or the kernels in C, are not used.
    """
    facts = found_facts()
    show(facts, fact_lines(facts), as_json=as_json)


def found_facts() -> dict[str, Any]:
    """What is found; no paths, user names or environment variables but those of threads."""
    import os
    import platform
    import shutil

    import torch

    from transformer_cli.acceleration.accelerate import missing_for_compilation
    from transformer_cli.acceleration.native_kernels import kernel_level, why_no_kernels
    from transformer_cli.process.device import (
        free_bytes,
        num_usable_cpus,
        prepare_machine,
        processor_name,
        unused_gpu,
    )

    machine = prepare_machine(RuntimeConfig())
    return {
        "tfm": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "packages": {name: version for name in _PACKAGES if (version := _version_of(name))},
        "cuda_of_torch": torch.version.cuda,
        "processor": {
            "name": processor_name(),
            "cpus": os.cpu_count(),
            "usable_cpus": num_usable_cpus(),
            "threads": torch.get_num_threads(),
            "instructions": torch.backends.cpu.get_cpu_capability(),
            "kernels": kernel_level(),
            "why_no_kernels": why_no_kernels(),
        },
        "device": machine.describe(),
        "gpus": _gpus(),
        "why_no_compilation": (missing_for_compilation(machine.device) if machine.device.type == "cuda" else None),
        "why_no_gpu": None if machine.device.type != "cpu" else unused_gpu() or _no_gpu(torch),
        "free_bytes": {
            "memory": free_bytes(torch.device("cpu")),
            "device": None if machine.device.type == "cpu" else free_bytes(machine.device),
            "disk": shutil.disk_usage(".").free,
        },
        "extras": _extras(),
    }


def fact_lines(facts: dict[str, Any]) -> list[str]:
    """The facts as a table."""
    from transformer_cli.acceleration.native_kernels import PRICE_OF_NONE

    processor, free, extras = facts["processor"], facts["free_bytes"], facts["extras"]
    packages = "  ".join(f"{name} {version}" for name, version in facts["packages"].items())
    cuda = facts["cuda_of_torch"]
    kernels = processor["kernels"] or f"none: {processor['why_no_kernels']}"
    rows = [
        ("tfm", facts["tfm"]),
        ("python", f"{facts['python']}, {facts['system']}"),
        ("packages", packages),
        ("", f"torch is {'built without CUDA' if cuda is None else f'for CUDA {cuda}'}"),
        ("processor", processor["name"]),
        (
            "",
            f"{processor['usable_cpus']} of {counted(processor['cpus'], 'CPU')} usable, {counted(processor['threads'], 'thread')}, "
            # PyTorch's word for a processor in which it finds no wide instructions.
            f"{processor['instructions'].replace('DEFAULT', 'no wide instructions found')}",
        ),
        ("kernels in C", kernels),
        *([] if processor["kernels"] else [("", PRICE_OF_NONE)]),
        ("device", facts["device"]),
        *(("", gpu) for gpu in facts["gpus"]),
        *([("no GPU", facts["why_no_gpu"])] if facts["why_no_gpu"] else []),
        *([("compilation", f"none: {reason}")] if (reason := facts["why_no_compilation"]) else []),
        ("free memory", _gigabytes(free["memory"])),
        *([("", f"{_gigabytes(free['device'])} on the GPU")] if free["device"] is not None else []),
        ("free disk", f"{_gigabytes(free['disk'])} in the current folder"),
        ("extras", ", ".join(name for name, lacks in extras.items() if not lacks) or "none"),
        *(("", f"[{name}] lacks {', '.join(lacks)}") for name, lacks in extras.items() if lacks),
    ]
    return [f"{name:<{_WIDTH}}  {value}" for name, value in rows]


def _version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _gpus() -> list[str]:
    import torch

    if not torch.cuda.is_available():
        return []
    properties = map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
    return [
        f"{one.name}, compute capability {one.major}.{one.minor}, {_gigabytes(one.total_memory)}" for one in properties
    ]


def _no_gpu(torch_module: Any) -> str:
    built = "" if torch_module.version.cuda else ", and this PyTorch is built without CUDA"
    return f"PyTorch sees none{built}"


def _gigabytes(num_bytes: int | None) -> str:
    return "unknown" if num_bytes is None else f"{num_bytes / 1e9:,.1f} GB"


def _extras() -> dict[str, list[str]]:
    """Extra of pyproject.toml -> the packages of it that are not installed."""
    lacking: dict[str, list[str]] = {}
    try:
        requirements = metadata.requires("transformer-cli") or []
    except metadata.PackageNotFoundError:  # the package is not installed, but found through PYTHONPATH
        return lacking
    for requirement in requirements:
        name, extra = (
            re.match(r"[\w.-]+", requirement),
            re.search(r"extra == ['\"]([\w-]+)", requirement),
        )
        if name and extra and extra.group(1) != "dev":
            lacks = lacking.setdefault(extra.group(1), [])
            if _version_of(name.group()) is None:
                lacks.append(name.group())
    return lacking
