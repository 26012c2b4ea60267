"""Warnings about settings with which this machine trains much slower than it could."""

import torch

from transformer_cli.config import RuntimeConfig
from transformer_cli.runtime import Machine, num_usable_cpus


def slow_settings(runtime: RuntimeConfig, machine: Machine) -> list[str]:
    """One text for each setting that slows this machine down: what happens, and what to set instead."""
    found, num_cpus = list[str](), num_usable_cpus()
    if machine.device.type != "cpu":
        return found
    if (runtime.threads or 0) > num_cpus:
        found.append(
            f"runtime.threads is {runtime.threads}, and this process may use {num_cpus} CPU{'s' * (num_cpus > 1)}: threads that wait for a "
            f"CPU make each update slower; set runtime.threads to at most {num_cpus}, or leave it out"
        )
    if machine.precision == torch.float16:
        found.append(
            "runtime.precision is float16, which CPUs compute several times slower than float32; "
            "set runtime.precision to auto"
        )
    if runtime.compile:
        found.append(
            "runtime.compile on a CPU: the first updates take minutes, because layers are compiled, and later ones "
            "are not faster; set runtime.compile to false"
        )
    return found
