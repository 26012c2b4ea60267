"""Several processes train one model: how they share the work, sum gradients and decide together; rank 0 writes files.

torchrun starts them, and `torch.distributed` connects them. Each process has a rank from 0 on and holds a whole copy
of the model (or a share of it, with runtime.sharding: full). One update, as each process does it:

1.  It takes its share of the micro-batches: number i of the update goes to rank i mod n (data/updates.py).
2.  The counts of target tokens are summed over all processes: the objective is divided by this sum.
3.  It runs its micro-batches forward and backward, without any communication, so a rank whose memory is too small
    cuts its batches in halves alone (training/worker.py).
4.  Gradients and losses are summed over all processes (gradients.py). Then all have the same gradient, clip it alike,
    and make the same update.
5.  All agree on whether to save or to stop (process_group.py).

Counts and agreements are small numbers on the CPU, sent by gloo, so no GPU waits for them. Only gradients and losses go
from GPU to GPU (NCCL).
"""
