"""Training objectives: a model and a batch in, sums of losses out."""

from transformer_cli.config import TrainingConfig
from transformer_cli.runtime import Machine
from transformer_cli.training.objectives.likelihood import LabelSmoothedLikelihood
from transformer_cli.training.objectives.losses import COMPILED, PLAIN
from transformer_cli.training.objectives.objective import Objective as Objective
from transformer_cli.training.objectives.r_drop import RDrop


def build_objective(
    training: TrainingConfig, machine: Machine, *, is_compiled: bool = False
) -> Objective:
    """The objective that a config asks for.

    Args:
        training: names the objective and its settings.
        machine: the precision of matrix products.
        is_compiled: whether torch.compile makes kernels for the losses; on a CPU, training has its own in any case.
    """
    smoothing = training.label_smoothing, training.smoothed_over
    losses = COMPILED if is_compiled else PLAIN
    if training.r_drop is not None:
        return RDrop(training.r_drop, *smoothing, machine, losses)
    return LabelSmoothedLikelihood(*smoothing, machine, losses)
