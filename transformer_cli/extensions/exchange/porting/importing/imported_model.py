"""A model from elsewhere as a value: everything of which a run is made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from transformer_cli.config import Config, TrainingConfig
from transformer_cli.text.tokenizer import Tokenizers

if TYPE_CHECKING:
    from torch import Tensor

    from transformer_cli.model import Transformer


FINE_TUNING = TrainingConfig(
    max_epochs=3,
    batch_tokens=2000,
    update_tokens=4000,
    learning_rate=1e-4,
    warmup_steps=200,
    log_every=20,
    validate_every=200,
    save_every=200,
    keep_best=1,
    best_metric="chrf",
)
"""A proposal for the fine-tuning of a model whose training is not known."""


class Wishes(NamedTuple):
    """What the user says about a model folder."""

    source_language: str | None = None
    target_languages: Sequence[str] = ()


Comparison = Callable[["Transformer"], list[str]]
"""Compares our model with the program from which it comes; returns what it found, as lines for people.

Raises:
    DataError: they compute different things.
"""


@dataclass(frozen=True, slots=True)
class ImportedModel:
    """A model with its tokenizers, and what is known of its training."""

    origin: str
    """The kind of the model, such as MarianMTModel."""
    config: Config
    """Of the run that is made."""
    state: "Mapping[str, Tensor]"
    tokenizers: Tokenizers
    compare: Comparison
    step: int = 0
    """Number of updates of the model; 0 if it is not known."""
    notes: tuple[str, ...] = ()
    """What the user should know."""
