"""What one process needs for its part of each update."""

from dataclasses import dataclass

from transformer_cli.config import Config
from transformer_cli.model import Transformer
from transformer_cli.runtime import Machine
from transformer_cli.training.cuda_graphs.capture import recorder_on
from transformer_cli.training.cuda_graphs.recorded_passes import RecordedPasses
from transformer_cli.training.fitting import DeviceMemory
from transformer_cli.training.objectives import Objective
from transformer_cli.training.processes.process_group import ALONE, Processes


@dataclass(frozen=True, slots=True)
class Worker:
    """The memory and the recordings of the device of this process, and the processes that train together with it."""

    memory: DeviceMemory
    processes: Processes = ALONE
    recorded: RecordedPasses | None = None
    """With `runtime.cuda_graphs`."""


def worker_of(
    config: Config,
    model: Transformer,
    objective: Objective,
    machine: Machine,
    processes: Processes,
) -> Worker:
    """The memory, recordings and processes for the training of one model.

    Args:
        config: of the experiment.
        model: on the device of the machine.
        objective: what is minimised.
        machine: that of this process.
        processes: those that train together.
    """
    recorded = None
    if config.runtime.cuda_graphs:
        recorded = RecordedPasses(model, objective, recorder_on(machine.device))
    memory = DeviceMemory(machine.device, may_cut=config.runtime.sharding == "none")
    return Worker(memory, processes, recorded)
