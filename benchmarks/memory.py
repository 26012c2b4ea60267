"""The resident memory and the speed of a training, step by step.

    OMP_NUM_THREADS=1 python benchmarks/memory.py multi30k-en-de.yaml --set data.root=PATH --set training.max_steps=300

It trains in the folder runs/ of the current folder, from the first step. "resident" is what the process has now,
"peak" is the most that it had so far, both in MB, libraries included.
"""

import argparse
import sys
import time

from transformer_cli.config import load_config
from transformer_cli.process.device import resident_memory
from transformer_cli.training.callbacks import Callback, StepReport
from transformer_cli.training.run import train


class Watch(Callback):
    """Prints a line every few steps."""

    def __init__(self, every: int) -> None:
        self.every = every
        self.cpu_started_at = time.process_time()
        self.num_tokens = 0

    def on_step(self, step: int, report: StepReport) -> None:
        """Add up the tokens; print a line if it is time."""
        self.num_tokens += report.num_target_tokens
        if step % self.every:
            return
        cpu_seconds = time.process_time() - self.cpu_started_at
        speed = self.num_tokens / cpu_seconds
        now, peak = ((size or 0) // 10**6 for size in resident_memory())
        sys.stdout.write(f"{step:>6}  {now:>8,}  {peak:>6,}  {speed:>22,.0f}" + "\n")
        self.cpu_started_at, self.num_tokens = time.process_time(), 0


def main() -> None:
    """Train, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config")
    parser.add_argument("--set", action="append", default=[], dest="overrides", metavar="KEY=VALUE")
    parser.add_argument("--every", type=int, default=50, help="steps between two lines")
    arguments = parser.parse_args()
    sys.stdout.write("  step  resident    peak  tokens per CPU second\n")
    config = load_config(arguments.config, arguments.overrides)
    train(config, callbacks=Watch(arguments.every), from_scratch=True)


if __name__ == "__main__":
    main()
