"""The check of each exercise, by its name."""

from collections.abc import Callable
from typing import Any

from transformer_cli.extensions.lessons.exercises.model_checks import (
    check_attention,
    check_causal_mask,
    check_heads,
    check_sinusoids,
)
from transformer_cli.extensions.lessons.exercises.search_checks import (
    check_beam_search,
    check_greedy_search,
)
from transformer_cli.extensions.lessons.exercises.training_checks import (
    check_bleu,
    check_label_smoothing,
    check_warmup,
)

CHECKS: dict[str, Callable[[Any], None]] = {
    "causal_mask": check_causal_mask,
    "scaled_attention": check_attention,
    "heads": check_heads,
    "sinusoids": check_sinusoids,
    "label_smoothing": check_label_smoothing,
    "warmup": check_warmup,
    "greedy_search": check_greedy_search,
    "beam_search": check_beam_search,
    "bleu": check_bleu,
}
"""Each takes the module of a learner, and raises WrongAnswer."""
