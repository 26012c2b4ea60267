"""The trainer: a whole run, the loop, one update, and callbacks; usable from Python without the command line.

`run.py` tells a run from the top, `loop.py` an update in the order in which it happens.
"""

from transformer_cli.training.callbacks import Callback
from transformer_cli.training.meter import TrainingReport
from transformer_cli.training.run import TrainedRun, train
from transformer_cli.training.step import StepReport

__all__ = ["Callback", "StepReport", "TrainedRun", "TrainingReport", "train"]
