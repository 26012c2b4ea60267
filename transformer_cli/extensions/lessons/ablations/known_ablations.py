"""All ablations by name."""

import difflib

from transformer_cli.extensions.lessons.ablations.ablation import Ablation
from transformer_cli.extensions.lessons.ablations.attention_ablations import ATTENTION
from transformer_cli.extensions.lessons.ablations.learning_ablations import LEARNING
from transformer_cli.extensions.lessons.ablations.text_ablations import TEXT
from transformer_cli.process.errors import UsageError

ABLATIONS = (*ATTENTION, *LEARNING, *TEXT)
"""In the order of the list and of docs/what_breaks.md."""


def ablation_named(name: str) -> Ablation:
    """The ablation of this name.

    Raises:
        UsageError: there is none.
    """
    known = {ablation.name: ablation for ablation in ABLATIONS}
    if name in known:
        return known[name]
    similar = difflib.get_close_matches(name, known, n=1)
    meant = f"did you mean {similar[0]}? " if similar else ""
    raise UsageError(f"there is no ablation {name!r}", hint=f"{meant}`tfm ablate` lists all")
