"""CUDA graphs: recordings of the kernels of a stream."""

from typing import Any

import torch

from transformer_cli.training.cuda_graphs.recorded_passes import Record, Work


def recorder_on(device: torch.device) -> Record:
    """What records work on a CUDA device."""
    memory = torch.cuda.graph_pool_handle()

    def record(work: Work) -> Work:
        return _captured(work, device, memory)

    return record


def _captured(work: Work, device: torch.device, memory: Any) -> Work:
    """Work as a CUDA graph.

    All graphs share their memory: whatever outlives a replay was allocated before, outside of it.
    """
    with torch.cuda.device(device):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            work()  # not recorded: libraries make their handles, and layers are compiled, at their first use
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        # "thread_local": meanwhile, another thread pins the memory of the next batches.
        with torch.cuda.graph(graph, pool=memory, capture_error_mode="thread_local"):
            work()
    return graph.replay
