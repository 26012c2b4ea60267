"""Linear projections, and several of the same input."""

from torch import Tensor, nn

from transformer_cli.model.cpu import trains_on_cpu
from transformer_cli.model.cpu.fused_projections import project_on_cpu


class Projection(nn.Linear):
    """x W^T + b."""

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) to (..., D of the projection)."""
        return project(x, self)[0]


def project(x: Tensor, *projections: nn.Linear) -> tuple[Tensor, ...]:
    """The projections of one x, (..., D)."""
    if trains_on_cpu(x):
        return project_on_cpu(x, projections)
    return tuple(nn.Linear.forward(one, x) for one in projections)
