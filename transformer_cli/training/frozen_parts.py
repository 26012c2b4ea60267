"""The parameters that fine-tuning leaves as they are (`training.frozen`)."""

import difflib
import logging
from collections.abc import Sequence

from transformer_cli.errors import ConfigError
from transformer_cli.model import Transformer

logger = logging.getLogger(__name__)

_PARTS = {
    "encoder": ("encoder",),
    "decoder": ("decoder",),
    "embeddings": ("source_embedding", "target_embedding", "source_positions", "target_positions"),
    "output": ("output",),
}


def freeze(model: Transformer, names: Sequence[str]) -> None:
    """Let the named parts keep their weights: they get no gradient and no state of the optimizer."""
    frozen = frozen_names(model, names)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name not in frozen)
    if frozen:
        num_frozen = sum(p.numel() for p in model.parameters() if not p.requires_grad)
        logger.info("frozen: %s parameters (%s)", f"{num_frozen:,}", ", ".join(names))


def frozen_names(model: Transformer, names: Sequence[str]) -> set[str]:
    """The parameters that `training.frozen` names.

    Raises:
        ConfigError: a name matches no parameter, or the names match all parameters.
    """
    parameters = [name for name, _ in model.named_parameters()]
    frozen: set[str] = set()
    for name in names:
        prefixes = _PARTS.get(name, (name,))
        # A tied embedding has no parameter of its own; it uses that of the output.
        is_tied = model.source_embedding is None or model.target_embedding is None
        own = {"output.weight"} if name == "embeddings" and is_tied else set()
        found = own | {one for one in parameters if any(f"{one}.".startswith(f"{prefix}.") for prefix in prefixes)}  # fmt: skip
        if not found:
            raise ConfigError(
                f"training.frozen: no parameter's name begins with {name}",
                hint=_hint_on_parameters(name, parameters),
            )
        frozen |= found
    if frozen and len(frozen) == len(parameters):
        raise ConfigError(
            "training.frozen: all parameters are frozen, so nothing could be learned",
            hint=f"leave out one of {', '.join(names)}",
        )
    return frozen


def _hint_on_parameters(name: str, parameters: Sequence[str]) -> str:
    parts = (parameter.split(".") for parameter in parameters)
    known = dict.fromkeys([*_PARTS, *(".".join(one[:n]) for one in parts for n in range(1, 1 + len(one)))])  # fmt: skip
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    guess = f"did you mean {close[0]}? " if close else ""
    return f"{guess}the parts are {', '.join(_PARTS)}; tfm info --parameters lists all names"
