"""CUDA graphs: recordings of the kernels of a stream."""

import torch

from transformer_cli.training.cuda_graphs.recorded_passes import Record, Work


def recorder_on(device: torch.device) -> Record:
    """A function that records work as a CUDA graph on this device.

    All graphs share their memory, because whatever a replay leaves behind lies in tensors that were made before. They also
    share a stream: for each stream, cuBLAS allocates memory that it never frees.
    """
    memory, stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream(device)

    def record(work: Work) -> Work:
        graph = torch.cuda.CUDAGraph()
        current = torch.cuda.current_stream(device)
        # If an error ends the recording, later work is in the same stream as before, and in order.
        with torch.cuda.device(device), torch.cuda.stream(current):
            stream.wait_stream(current)
            try:
                with torch.cuda.stream(stream):
                    work()  # not recorded: libraries make their handles, and layers are compiled, at their first use
            finally:
                current.wait_stream(stream)
            # "thread_local": meanwhile, another thread pins the memory of the next batches.
            with torch.cuda.graph(
                graph, pool=memory, stream=stream, capture_error_mode="thread_local"
            ):
                work()
        return graph.replay

    return record
