"""Training objectives: a model and a batch in, sums of losses out."""

from transformer_cli.config import TrainingConfig
from transformer_cli.runtime import Machine
from transformer_cli.training.objectives.likelihood import LabelSmoothedLikelihood
from transformer_cli.training.objectives.objective import Objective as Objective
from transformer_cli.training.objectives.r_drop import RDrop


def build_objective(training: TrainingConfig, machine: Machine) -> Objective:
    """The objective that a config asks for."""
    smoothing = training.label_smoothing, training.smoothed_over
    if training.r_drop is not None:
        return RDrop(training.r_drop, *smoothing, machine)
    return LabelSmoothedLikelihood(*smoothing, machine)
