"""The SSRU: a recurrence in place of decoder self-attention; a step of a translation needs one vector, not all positions so far."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_cli.config import ModelConfig
from transformer_cli.model.norms import at_least_float32


class SSRU(nn.Module):
    """The simpler simple recurrent unit: output t depends on positions 1 to t.

        f_t = sigmoid(W_f x_t + b_f)                   the forget gate
        c_t = f_t * c_{t-1} + (1 - f_t) * W x_t        the cell state; c_0 is zero
        o_t = ReLU(c_t)

    Products of vectors are element by element. The gate does not read the state before it, so only the sum depends on
    the order, and training computes all positions at once.

    Source: Kim et al. 2019, "From Research to Production and Back: Ludicrously Fast Neural Machine Translation",
    section 3.1.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.input = nn.Linear(config.d_model, config.d_model, bias=False)  # W
        self.forget_gate = nn.Linear(config.d_model, config.d_model)  # W_f and b_f

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) to the same shape, for all positions of a target."""
        candidates = self.input(x)
        forget = at_least_float32(self.forget_gate(x)).sigmoid()
        return F.relu(cell_states(forget, (1.0 - forget) * candidates)).to(candidates.dtype)

    def step(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """The output of one position, and the cell state after it.

        Args:
            x: (R, 1, D), the newest position of each row.
            state: (R, D), the cell state after the position before it; None: there is none.

        Returns:
            (R, 1, D), and (R, D) in float32 at least.
        """
        candidates = self.input(x)
        forget = at_least_float32(self.forget_gate(x)).sigmoid()
        states = (1.0 - forget) * candidates
        if state is not None:
            states = torch.addcmul(states, forget, state[:, None])
        return F.relu(states).to(candidates.dtype), states[:, 0]


def cell_states(forget: Tensor, added: Tensor) -> Tensor:
    """c_t = forget_t * c_{t-1} + added_t for all t, where c_0 is zero; (B, T, D).

    After a pass with distance d, entry t holds the contributions of the 2 d newest positions up to t. So log2(T) passes over
    all positions take the place of T steps. A position never reads a later one.

    Args:
        forget, added: (B, T, D).

    Source: Hillis and Steele 1986, "Data Parallel Algorithms"; for recurrences of this kind, Blelloch 1990, "Prefix Sums and
    Their Applications", section 1.4.1.
    """
    distance = 1
    while distance < added.size(1):
        earlier, newer = added[:, :-distance], added[:, distance:]
        of_newer = forget[:, distance:]
        added = torch.cat([added[:, :distance], torch.addcmul(newer, of_newer, earlier)], dim=1)
        forget = torch.cat([forget[:, :distance], of_newer * forget[:, :-distance]], dim=1)
        distance *= 2
    return added
