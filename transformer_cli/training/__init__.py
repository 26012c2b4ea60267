"""The trainer: a whole run, the loop, one update, and callbacks; usable from Python without the command line.

`run.py` tells a run from the top: how it is opened, validates, saves and ends; `loop.py` an update in the order in which it happens.
"""

from transformer_cli.training.callbacks import Callback as Callback
from transformer_cli.training.callbacks import StepReport as StepReport
from transformer_cli.training.callbacks import TrainingReport as TrainingReport
from transformer_cli.training.run import TrainedRun as TrainedRun
from transformer_cli.training.run import train as train
