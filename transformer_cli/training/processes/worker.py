"""What one process needs for its part of each update."""

from dataclasses import dataclass

from transformer_cli.training.fitting import DeviceMemory
from transformer_cli.training.processes.process_group import ALONE, Processes


@dataclass(frozen=True, slots=True)
class Worker:
    """The memory of the device of this process, and the processes that train together with it."""

    memory: DeviceMemory
    processes: Processes = ALONE
